//! Section I: schemas of tools.

use super::{HEAD, check_schema, with_schema};
use crate::fixture::{check_manifest, manifest};

/// What is found in `input_schema: …` on line 6.
fn inline(yaml: &str) -> Vec<String> {
    check_manifest(&format!(
        "{HEAD}tools:\n  - name: forecast\n    description: Tells it\n    input_schema: {yaml}\n"
    ))
}

#[test]
fn i06_every_root_has_a_stated_result() {
    for (root, expected) in [
        ("{type: array}", "6:26 error schema-root"),
        ("[]", "6:5 error schema-root"),
        ("text", "6:19 error schema-root"),
        ("'{\"type\": \"object\"}'", "6:19 error schema-root"),
        ("false", "6:19 error schema-root"),
        ("true", "6:19 warning schema-empty"),
        ("{}", "6:5 warning schema-empty"),
    ] {
        assert_eq!(inline(root), [expected], "{root}");
    }
    // Right, but not for every model.
    assert_eq!(
        inline("{type: [object, 'null']}"),
        ["6:20 warning schema-for-models"]
    );
    for nothing in ["null", ""] {
        let found = inline(nothing);
        assert_eq!(found.len(), 1, "{nothing}: {found:?}");
        assert!(found[0].contains(" error "), "{nothing}: {found:?}");
    }
    assert_eq!(
        check_manifest(&format!(
            "{HEAD}tools:\n  - name: forecast\n    description: Tells it\n"
        )),
        ["4:5 error missing-field"]
    );
}

#[test]
fn i08_the_draft_is_the_stated_one_and_2020_12_without() {
    let draft7 = "type: object\ndefinitions: {a: {type: string}}\nproperties:\n  xs: {items: [{type: string}]}";
    assert_eq!(
        check_schema(&format!(
            "$schema: http://json-schema.org/draft-07/schema#\n{draft7}"
        )),
        [""; 0]
    );
    let found = check_schema(draft7);
    assert_eq!(found, ["10:14 error schema-other-draft"]);
    assert_eq!(
        check_schema("type: object\nproperties:\n  xs: {prefixItems: [{type: string}]}"),
        [""; 0]
    );
    let text = with_schema("$schema: https://example.com/mine\ntype: object").text();
    assert!(
        text.contains("manifest.yaml:7:16") && text.contains("draft-07"),
        "{text}"
    );
}

#[test]
fn i09_nothing_is_fetched() {
    for reference in [
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "https://json-schema.org/draft/2020-12/schema",
        "../x.json",
    ] {
        let found = check_schema(&format!(
            "type: object\nproperties:\n  x:\n    $ref: {reference}"
        ));
        assert_eq!(found, ["10:17 error schema-ref-remote"], "{reference}");
    }
}

#[test]
fn i11_a_reference_to_nowhere_shows_its_pointer() {
    for pointer in [
        "#/$defs/Missing",
        "#/definitions/X",
        "#/$defs/a~1b",
        "#/$defs/a%25b",
    ] {
        let fixture = with_schema(&format!(
            "type: object\nproperties:\n  x: {{$ref: '{pointer}'}}"
        ));
        let finding = &fixture.check().diagnostics[0];
        assert_eq!(finding.code.name, "schema-ref-dangling", "{pointer}");
        assert_eq!(finding.place.origin.line, 9);
        assert!(finding.message.contains(pointer), "{}", finding.message);
    }
    assert_eq!(
        check_schema(
            "type: object\n$defs: {a/b: {type: string}, a%b: {type: string}}\nproperties:\n  x: {$ref: '#/$defs/a~1b'}\n  y: {$ref: '#/$defs/a%25b'}"
        ),
        [""; 0]
    );
}

#[test]
fn i12_patterns_compile_or_are_errors_and_none_is_skipped() {
    for fine in [r"^\d{5}$", "^(?=.*a)", r"\p{L}+", r"(a)\1"] {
        assert_eq!(
            check_schema(&format!(
                "type: object\nproperties:\n  x: {{type: string, pattern: '{fine}'}}"
            )),
            [""; 0],
            "{fine}"
        );
    }
    let fixture = with_schema("type: object\nproperties:\n  x: {type: string, pattern: '['}");
    let finding = &fixture.check().diagnostics[0];
    assert_eq!(finding.code.name, "schema-regex");
    assert_eq!(
        finding.place.path,
        "tools[0].input_schema.properties.x.pattern"
    );
}

#[test]
fn i13_what_is_misspelt_or_misplaced_is_found_with_a_suggestion() {
    for (schema, expected, suggestion) in [
        (
            "type: object\npropertis: {city: {type: string}}",
            "8:7 warning schema-keyword-misspelt",
            Some("properties"),
        ),
        (
            "type: object\nrequire: [x]\nproperties: {x: {type: string}}",
            "8:7 warning schema-keyword-misspelt",
            Some("required"),
        ),
        (
            "type: object\nrequired: [citty]\nproperties: {city: {type: string}}",
            "8:18 warning schema-required-undeclared",
            Some("city"),
        ),
        (
            "type: object\ncity: {type: string}",
            "8:7 warning schema-keyword-misplaced",
            None,
        ),
        (
            "type: object\nproperties: {a: {type: string}}\ncity: {type: string}",
            "9:7 warning schema-keyword-misplaced",
            None,
        ),
        (
            "type: object\nproperties: {n: {type: integer, default: many}}",
            "8:48 warning schema-default-mismatch",
            None,
        ),
        (
            "type: object\nproperties: {s: {type: string, minlength: 1}}",
            "8:38 warning schema-keyword-misspelt",
            Some("minLength"),
        ),
    ] {
        assert_eq!(check_schema(schema), [expected], "{schema}");
        let checked = with_schema(schema).check();
        assert_eq!(checked.diagnostics[0].suggestion.as_deref(), suggestion);
    }
}

#[test]
fn i14_keywords_of_the_wrong_type_are_refused_with_their_path() {
    for (wrong, at) in [
        ("x: {type: strng}", "x.type"),
        ("x: {required: true}", "x.required"),
        ("x: {required: city}", "x.required"),
        (
            "x: {additionalProperties: 'false'}",
            "x.additionalProperties",
        ),
        ("x: {minimum: '1'}", "x.minimum"),
        ("x: {exclusiveMinimum: true}", "x.exclusiveMinimum"),
        ("x: {enum: a}", "x.enum"),
        ("city: string", "city"),
    ] {
        let fixture = with_schema(&format!("type: object\nproperties:\n  {wrong}"));
        let checked = fixture.check();
        assert!(checked.project.is_none(), "{wrong}");
        assert_eq!(
            checked.diagnostics[0].place.path,
            format!("tools[0].input_schema.properties.{at}"),
            "{wrong}"
        );
    }
    let checked = with_schema("type: object\nproperties:\n  city: string").check();
    assert_eq!(
        checked.diagnostics[0].suggestion.as_deref(),
        Some("{type: string}")
    );
}

#[test]
fn i16_a_schema_has_bounds_that_the_error_names() {
    let text = format!("type: object\ndescription: {}", "a".repeat(2 * 1024 * 1024));
    let found = check_schema(&text);
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with("error schema-too-large"), "{found:?}");
    let many: String = (0..10_001).map(|n| format!("  p{n}: {{}}\n")).collect();
    let found = check_schema(&format!("type: object\nproperties:\n{many}"));
    assert!(found[0].ends_with("error schema-too-large"), "{found:?}");
}

#[test]
fn i19_required_beside_the_schema_is_an_error_that_says_where_it_goes() {
    let text = manifest(&format!(
        "{HEAD}tools:\n  - name: forecast\n    description: Tells it\n    input_schema: {{type: object}}\n    required: [city]\n"
    ))
    .text();
    assert!(
        text.contains("manifest.yaml:7:5") && text.contains("inside `input_schema`"),
        "{text}"
    );
    let found = selu_compiler::check::discovered::discovered(
        "weather",
        "list_tools",
        br#"[{"name": "a", "description": "b", "input_schema": {"type": "object"}, "required": ["c"]}]"#,
    );
    let names: Vec<&str> = found
        .unwrap_err()
        .iter()
        .map(|problem| problem.code.name)
        .collect();
    assert_eq!(names, ["discovery-required-beside-schema"]);
}
