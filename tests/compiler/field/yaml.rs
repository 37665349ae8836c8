//! Section A: YAML.

use std::time::Instant;

use super::{HEAD, capability, check_schema, schema, with_schema};
use crate::fixture::{Fixture, check_agent, check_manifest, manifest};

/// What is found below [`HEAD`].
fn check(rest: &str) -> Vec<String> {
    check_manifest(&format!("{HEAD}{rest}"))
}

#[test]
fn a01_words_of_yaml_1_1_stay_words() {
    let fixture = with_schema(
        "type: object\nproperties:\n  light: {type: string, enum: [on, off, yes, no, NO], default: no}",
    );
    assert_eq!(
        schema(&fixture)["properties"]["light"],
        serde_json::json!({"type": "string", "enum": ["on", "off", "yes", "no", "NO"], "default": "no"})
    );
    let text = manifest(&format!(
        "{HEAD}credentials:\n  - name: KEY\n    scope: user\n    required: no\n"
    ))
    .text();
    assert!(
        text.contains("manifest.yaml:6:15")
            && text.contains("credentials[0].required")
            && text.contains("true or false"),
        "{text}"
    );
    assert_eq!(
        check_agent("id: helper\nname: no\n"),
        ["2:7 error unquoted-string"]
    );
}

#[test]
fn a02_base_60_is_text() {
    assert_eq!(
        check("network: {mode: allowlist, hosts: [22:22]}\n"),
        ["3:36 error host-invalid"]
    );
    let fixture = with_schema("type: object\nproperties:\n  at: {type: string, default: 12:30}");
    assert_eq!(schema(&fixture)["properties"]["at"]["default"], "12:30");
}

#[test]
fn a03_a_tag_keeps_its_last_zero_or_is_refused() {
    assert_eq!(
        check_manifest("id: weather\nimage: 1.10\n"),
        ["2:8 error unquoted-string"]
    );
    assert_eq!(
        check_manifest("id: weather\nimage: \"1.10\"\n"),
        ["2:8 error image-invalid"]
    );
    assert_eq!(
        check_schema("type: object\nproperties:\n  v: {type: string, enum: [1.10, 1.9]}"),
        [
            "9:34 warning number-rewritten",
            "9:34 error schema-enum-type",
            "9:40 error schema-enum-type"
        ]
    );
}

#[test]
fn a04_numbers_have_one_form_that_the_error_shows() {
    for (written, meant) in [
        ("0128", "128"),
        ("0o200", "128"),
        ("1_024", "1024"),
        ("128.0", "128"),
        ("1e3", "1000"),
    ] {
        let fixture = manifest(&format!("{HEAD}resources: {{max_memory_mb: {written}}}\n"));
        assert_eq!(
            fixture.lines(),
            ["manifest.yaml:3:28 error number-form"],
            "{written}"
        );
        assert_eq!(
            fixture.check().diagnostics[0].suggestion.as_deref(),
            Some(meant),
            "{written}"
        );
    }
    // Ours: an id must be quoted to be a number's text (L5).
    assert_eq!(
        check_manifest("id: 007\nimage: a/b:1\n"),
        ["1:5 error unquoted-string"]
    );
    let quoted = manifest("id: \"007\"\nimage: a/b:1\n").check();
    assert_eq!(capability(&quoted).id, "007");
}

#[test]
fn a05_a_block_that_is_written_twice_shows_both_lines() {
    let fixture = manifest(&format!(
        "{HEAD}network:\n  mode: none\nclass: tool\nnetwork:\n  mode: any\n"
    ));
    let checked = fixture.check();
    assert!(checked.project.is_none());
    let finding = &checked.diagnostics[0];
    assert_eq!(finding.code.name, "duplicate-key");
    assert_eq!(finding.place.origin.line, 6);
    assert_eq!(finding.related[0].place.origin.line, 3);
    assert!(finding.message.contains("`network`"));
}

#[test]
fn a06_duplicates_in_schemas_are_found_too() {
    let fixture =
        with_schema("type: object\nproperties:\n  city: {type: string}\n  city: {type: integer}");
    let finding = &fixture.check().diagnostics[0];
    assert_eq!(finding.code.name, "duplicate-key");
    assert_eq!(finding.place.path, "tools[0].input_schema.properties.city");
    assert_eq!(finding.place.origin.line, 10);
    assert_eq!(finding.related[0].place.origin.line, 9);
}

#[test]
fn a07_byte_order_marks_and_line_ends_of_windows_change_nothing() {
    let files = [
        ("selu.toml", "[project]\nname = \"demo\"\n"),
        ("agents/a/agent.yaml", "id: a\nname: A\n"),
        ("agents/a/agent.md", "Help.\n"),
        (
            "agents/a/capabilities/w/manifest.yaml",
            "---\nid: w\nimage: a/b:1\nnetwork:\n  mode: any\nx-text: |\n  one\n  two\n",
        ),
        ("agents/a/capabilities/w/prompt.md", "Ask.\n"),
    ];
    let plain = Fixture::new(files).check();
    assert!(plain.project.is_some() && !plain.diagnostics.is_empty());
    for line_end in ["\n", "\r\n"] {
        let marked = Fixture::new([]);
        for (path, content) in files {
            let content = content.replace('\n', line_end);
            marked.write(path, format!("\u{FEFF}{content}").as_bytes());
        }
        let marked = marked.check();
        assert_eq!(marked.diagnostics, plain.diagnostics);
        assert_eq!(
            format!("{:?}", marked.project),
            format!("{:?}", plain.project)
        );
    }
}

#[test]
fn a_carriage_return_alone_ends_a_line_of_yaml_where_it_is_counted_too() {
    let text = manifest("id: weather\rimage: Bad\r").text();
    assert!(
        text.contains("manifest.yaml:2:8") && text.contains("image: Bad"),
        "{text}"
    );
}

#[test]
fn a09_a_latin_1_byte_has_line_column_and_cure() {
    let fixture = Fixture::new([]);
    fixture.write("agent.yaml", b"id: a\nname: A\n\n\n\n\nx-text: f\xFCr\n");
    let text = fixture.text();
    assert!(text.contains("agent.yaml:7:10"), "{text}");
    assert!(text.contains("0xFC") && text.contains("UTF-8"), "{text}");
    assert!(fixture.check().project.is_none());
}

#[test]
fn a12_merge_keys_are_expanded() {
    let fixture = manifest(&format!(
        "{HEAD}x-a: &a {{max_memory_mb: 64, pids_limit: 8}}\nx-b: &b {{max_memory_mb: 32, max_cpu_seconds: 5}}\nresources:\n  pids_limit: 9\n  <<: [*a, *b]\n"
    ));
    let checked = fixture.check();
    assert_eq!(checked.diagnostics, []);
    let limits = &capability(&checked).limits;
    assert_eq!(
        (limits.memory_mb, limits.cpu_seconds, limits.pids),
        (64, 5, 9)
    );
    let fixture = with_schema(
        "x-base: &base\n  city: {type: string}\ntype: object\nproperties:\n  <<: *base\n  day: {type: string}",
    );
    let properties = schema(&fixture)["properties"].clone();
    let names: Vec<&String> = properties.as_object().unwrap().keys().collect();
    assert_eq!(names, ["city", "day"]);
    assert_eq!(check("resources: {<<: 12}\n"), ["3:17 error bad-merge-key"]);
}

#[test]
fn a13_a_bomb_of_aliases_is_refused_and_many_small_ones_are_not() {
    let mut bomb = String::from("type: object\nx-0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
    for level in 1..9 {
        let alias = format!("*a{}", level - 1);
        bomb += &format!(
            "x-{level}: &a{level} [{}]\n",
            [alias.as_str(); 9].join(", ")
        );
    }
    let began = Instant::now();
    let found = check_schema(&bomb);
    assert!(
        found[0].ends_with("error yaml-too-many-values"),
        "{found:?}"
    );
    // A hang guard: the report asks for one second.
    assert!(began.elapsed().as_secs() < 30);
    let legal: String = (0..200)
        .map(|number| format!("  p{number}: *text\n"))
        .collect();
    let found = check_schema(&format!(
        "type: object\nproperties:\n  first: &text {{type: string}}\n{legal}"
    ));
    assert_eq!(found, [""; 0]);
}

#[test]
fn a14_deep_nesting_is_an_error_and_no_crash() {
    for deep in [
        format!("x-deep: {}", "[".repeat(100_000)),
        format!("x-deep: {}1{}\n", "{a: ".repeat(300), "}".repeat(300)),
    ] {
        assert_eq!(check(&deep).len(), 1);
        assert!(check(&deep)[0].ends_with("error yaml-too-deep"));
    }
}

#[test]
fn a17_a_misspelt_guard_is_never_ignored() {
    for (written, at, meant) in [
        ("resourses: {max_memory_mb: 64}\n", "3:1", "resources"),
        ("resources: {max_memory: 64}\n", "3:13", "max_memory_mb"),
        ("network: {host: [\"a.example:443\"]}\n", "3:11", "hosts"),
        (
            "credentials: [{name: X, scope: user, requried: true}]\n",
            "3:38",
            "required",
        ),
    ] {
        let fixture = manifest(&format!("{HEAD}{written}"));
        assert_eq!(
            fixture.lines()[0],
            format!("manifest.yaml:{at} error misspelt-field")
        );
        let checked = fixture.check();
        assert_eq!(checked.diagnostics[0].suggestion.as_deref(), Some(meant));
        assert!(checked.project.is_none());
    }
    assert_eq!(check("x-limits: {max_memory: 64}\n"), [""; 0]);
}

#[test]
fn a18_one_document_a_file() {
    assert_eq!(
        check("---\nid: other\nimage: a/b:1\n"),
        ["3:1 error several-documents"]
    );
    assert_eq!(check("...\n"), [""; 0]);
    // A line of dashes begins a document, be it an empty one.
    assert_eq!(check("---\n"), ["3:1 error several-documents"]);
}

#[test]
fn a21_a_decimal_comma_is_refused_with_a_point() {
    for written in [
        "resources: {max_cpu_fraction: 0,5}\n",
        "resources:\n  max_cpu_fraction: 0,5\n",
    ] {
        let fixture = manifest(&format!("{HEAD}{written}"));
        assert!(fixture.check().project.is_none());
        let text = fixture.text();
        assert!(text.contains("0.5"), "{text}");
    }
}

#[test]
fn a22_hosts_that_yaml_reads_as_something_else_get_the_cure() {
    for (written, at, cure) in [
        (
            "  hosts:\n    - *.example.com:443\n",
            "manifest.yaml:6:7",
            "quote it: \"*.example.com:443\"",
        ),
        (
            "  hosts:\n    - api.example.com: 443\n",
            "manifest.yaml:6:7",
            "remove the space, `api.example.com:443`",
        ),
        (
            "  hosts: api.example.com:443\n",
            "manifest.yaml:5:10",
            "write a list: [\"api.example.com:443\"]",
        ),
    ] {
        let fixture = manifest(&format!("{HEAD}network:\n  mode: allowlist\n{written}"));
        let text = fixture.text();
        assert!(text.contains(at) && text.contains(cure), "{text}");
        assert!(fixture.check().project.is_none());
        assert!(!text.contains("SELU0512"), "not taken for empty: {text}");
    }
}

#[test]
fn a23_the_message_names_the_field_the_word_and_the_words() {
    let text = manifest(&format!(
        "{HEAD}network: {{mode: allowlst, hosts: [\"a.example:443\"]}}\n"
    ))
    .text();
    for part in [
        "network.mode",
        "\"allowlst\"",
        "`none`, `allowlist` or `any`",
        "manifest.yaml:3:17",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut tools = String::from("tools:\n");
    for number in 0..9 {
        tools += &format!("  - name: t{number}\n    description: d\n");
        if number != 7 {
            tools += "    input_schema: {type: object}\n";
        }
    }
    let fixture = manifest(&format!("{HEAD}{tools}"));
    let checked = fixture.check();
    assert_eq!(checked.diagnostics.len(), 1);
    assert_eq!(checked.diagnostics[0].place.path, "tools[7].input_schema");
    assert_eq!(checked.diagnostics[0].place.origin.line, 25);
}

#[test]
fn a25_an_empty_file_says_so() {
    for text in ["", "# a comment\n# and another\n", "  \n\n \n"] {
        assert_eq!(check_manifest(text), ["0:0 error empty-file"], "{text:?}");
    }
}
