//! Findings for programs: JSON, SARIF and GitHub's annotations, and the text of a narrow terminal.

use std::fs;

use camino::Utf8Path;
use selu_compiler::check;
use selu_compiler::diag::{Diagnostic, render};
use selu_compiler::model::schemas;
use serde_json::{Value, json};

use crate::fixture::{Fixture, PROJECT, manifest, repository};

/// Findings with every part there is: related places, help, suggestions, whole files, hostile texts, all severities.
fn every_kind() -> Vec<Diagnostic> {
    let mut files = Vec::from(PROJECT);
    files.extend([
        ("selu.toml", "[polcy]\n"),
        (
            "agents/helper/capabilities/a b/manifest.yaml",
            "id: weather\nimage: ghcr.io/Acme/cap\nclass: Tool\nid: x\nnetwork: {mode: allowlist, hosts: [a.b]}\n",
        ),
        (
            "agents/helper/capabilities/evil/manifest.yaml",
            "id: \"ev\\e[2Jil\\n::error::\\u202e\"\nimage: a/b:1\n",
        ),
        ("agents/helper/capabilities/empty/prompt.md", "Nothing.\n"),
    ]);
    let checked = Fixture::new(files).check();
    let found = checked.diagnostics;
    let counts = render::count(&found);
    assert!(counts.errors > 0 && counts.warnings > 0 && counts.notes > 0);
    assert!(found.iter().any(|found| !found.related.is_empty()));
    assert!(found.iter().any(|found| found.suggestion.is_some()));
    assert!(found.iter().any(|found| found.place.origin.line == 0));
    found
}

/// Whether it is what code scanning services take, by the format's official schema.
#[track_caller]
pub(crate) fn assert_sarif(log: &Value) {
    let path = repository().join("tests/sarif/sarif-schema-2.1.0.json");
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    // This validator does not take the regex of a field that is not written: it has a bracket too many.
    for of in ["run", "toolComponent"] {
        let language = schema.pointer_mut(&format!("/definitions/{of}/properties/language"));
        language.unwrap().as_object_mut().unwrap().remove("pattern");
    }
    assert_valid(&schema, log);
}

#[track_caller]
fn assert_valid(schema: &Value, value: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn json_is_as_its_committed_schema_says() {
    let text = fs::read_to_string(repository().join("schemas/diagnostics.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(Some(&schema), schemas::schema("diagnostics").as_ref());
    let value = render::json(&every_kind());
    assert_valid(&schema, &value);
    assert_valid(&schema, &render::json(&[]));
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (pointer, wrong) in [
        ("/format_version", json!("2.0")),
        ("/diagnostics/0/code", json!("E1")),
        ("/diagnostics/0/severity", json!("fatal")),
        ("/diagnostics/0/line", json!("1")),
        ("/errors", json!(-1)),
    ] {
        let mut broken = value.clone();
        *broken.pointer_mut(pointer).unwrap() = wrong;
        assert!(!validator.is_valid(&broken), "{pointer}");
    }
}

#[test]
fn sarif_is_as_its_official_schema_says() {
    let found = every_kind();
    for base in ["", ".", "projects/demo", "/srv/demo"] {
        assert_sarif(&render::sarif(&found, Utf8Path::new(base)));
    }
    assert_sarif(&render::sarif(&[], Utf8Path::new("")));
}

#[test]
fn sarif_names_rule_place_and_fix() {
    let found = manifest("id: weather\nimage: a/b:1\nclass: Tool\n").check();
    let log = render::sarif(&found.diagnostics, Utf8Path::new("my caps/é"));
    let result = &log["runs"][0]["results"][0];
    let rule =
        &log["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
    assert_eq!(rule["id"], "SELU0304");
    assert_eq!(result["level"], "error");
    let physical = &result["locations"][0]["physicalLocation"];
    assert_eq!(
        physical["artifactLocation"]["uri"],
        "my%20caps/%C3%A9/manifest.yaml"
    );
    let region = json!({"startLine": 3, "startColumn": 8, "endColumn": 12});
    assert_eq!(physical["region"], region);
    let change = &result["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(change["deletedRegion"], region);
    assert_eq!(change["insertedContent"]["text"], "tool");
}

#[test]
fn github_has_one_command_a_line_whatever_a_file_holds() {
    let found = every_kind();
    let text = render::github(&found, Utf8Path::new("a:b,c%"));
    assert_eq!(text.lines().count(), found.len());
    for line in text.lines() {
        let starts = [
            "::error file=a%3Ab%2Cc%25",
            "::warning file=a%3Ab%2Cc%25",
            "::notice file=a%3Ab%2Cc%25",
        ];
        assert!(starts.iter().any(|start| line.starts_with(start)), "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    let found = manifest("id: weather\nimage: a/b:1\nclass: Tool\nid: 100%\n").check();
    insta::assert_snapshot!(render::github(&found.diagnostics, Utf8Path::new(".")), @r#"
    ::error file=manifest.yaml,line=3,endLine=3,col=8,endColumn=12,title=SELU0304 not-one-of::class: the string "Tool" is not allowed here; it takes `tool` or `environment`%0Ahelp: did you mean `tool`?
    ::error file=manifest.yaml,line=4,endLine=4,col=1,endColumn=3,title=SELU0202 duplicate-key::id: the key `id` is written twice in the same mapping%0Afirst written here: manifest.yaml:1
    "#);
}

#[test]
fn a_narrow_terminal_gets_narrow_text() {
    let fixture = manifest(&format!(
        "id: weather\nimage: a/b:1\nnetwork: {{mode: allowlist, hosts: [\"{}.example.com:443\", \"http://x.y\"]}}\nlicence: MIT\n",
        "a".repeat(60)
    ));
    let sources = fixture.read();
    let checked = check::check(&sources);
    for width in [40, 60, 80] {
        let look = render::Look {
            width: Some(width),
            ..render::Look::default()
        };
        let text = render::text_for(&checked.diagnostics, &sources, &look);
        // A suggested line is whole, so that it can be pasted.
        let shown = |line: &&str| !line.contains(" + ") && !line.contains(" - ");
        for line in text.lines().filter(shown) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert!(text.contains("^^^^^^^^^^^^"), "{text}");
    }
}

#[test]
fn paths_lead_from_where_the_reader_stands() {
    let fixture = manifest("id: weather\n");
    let sources = fixture.read();
    let found = check::check(&sources).diagnostics;
    for (base, shown) in [
        ("", "--> manifest.yaml:1:1"),
        (".", "--> manifest.yaml:1:1"),
        ("./caps/weather/", "--> caps/weather/manifest.yaml:1:1"),
        ("../weather", "--> ../weather/manifest.yaml:1:1"),
    ] {
        let look = render::Look {
            base: base.into(),
            ..render::Look::default()
        };
        let text = render::text_for(&found, &sources, &look);
        assert!(text.contains(shown), "{text}");
    }
}

#[test]
fn a_finding_shows_the_item_and_the_key_that_it_is_below() {
    let text = manifest(
        "id: weather\nimage: a/b:1\ntools:\n  - name: forecast\n    description: Tells it\n    recommended_policy: ask\n    input_schema:\n      type: object\n      # Where.\n\n      properties:\n        when: {type: string}\n        city: string\n",
    )
    .text();
    insta::assert_snapshot!(text, @r#"
    error[SELU0411]: `city` below `properties` is "string"; it must be a schema: an object, true or false
      --> manifest.yaml:13:15
       |
     4 |   - name: forecast
    ...
    11 |       properties:
    12 |         when: {type: string}
    13 |         city: string
       |               ^^^^^^ tools[0].input_schema.properties.city
       |
    help: write `{type: string}`
       |
    13 -         city: string
    13 +         city: {type: string}
       |

    1 error
    "#);
}

#[test]
fn a_suggestion_can_be_pasted_over_quotes() {
    let found = manifest(
        "id: weather\nimage: a/b:1\nclass: \"Tool\"\nnetwork: {mode: allowlist, hosts: ['https://a.example.com']}\n",
    )
    .check();
    let suggested: Vec<&str> = found
        .diagnostics
        .iter()
        .filter_map(|found| found.suggestion.as_deref())
        .collect();
    assert_eq!(suggested, ["\"tool\"", "\"a.example.com:443\""]);
}
