use serde_json::{Value, json};

use super::{Discovered, discovered};
use crate::diag::Problem;
use crate::model::Policy;

fn read(result: &str) -> Result<Discovered, Vec<Problem>> {
    discovered("weather", "list_tools", result.as_bytes())
}

fn names(problems: &[Problem]) -> Vec<String> {
    problems
        .iter()
        .map(|problem| format!("{} {}", problem.code.name, problem.pointer))
        .collect()
}

/// Code and pointer of every problem of a result that fails.
fn refused(result: &Value) -> Vec<String> {
    names(&read(&result.to_string()).expect_err("accepted"))
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "A tool", "input_schema": {"type": "object"}})
}

/// A tool with one field set.
fn with(field: &str, value: Value) -> Value {
    let mut tool = tool("a");
    tool[field] = value;
    tool
}

#[test]
fn a_list_of_tools_is_read() {
    let result = json!([tool("b"), with("recommended_policy", json!("ask"))]);
    let found = read(&result.to_string()).unwrap();
    assert_eq!(found.notes, []);
    assert_eq!(found.tools.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(found.tools["a"].recommended, Some(Policy::Ask));
    assert_eq!(found.tools["b"].recommended, None);
    assert!(!found.tools["a"].terminal_on_success);
}

#[test]
fn order_does_not_matter_h14() {
    let one = read(&json!([tool("a"), tool("b")]).to_string()).unwrap();
    let other = read(&json!([tool("b"), tool("a")]).to_string()).unwrap();
    assert_eq!(one, other);
}

#[test]
fn an_empty_list_is_a_list() {
    assert!(read("[]").unwrap().tools.is_empty());
}

#[test]
fn anything_but_an_array_fails() {
    for result in [
        "",
        "  ",
        "{}",
        "null",
        "\"[]\"",
        "7",
        "[",
        "[] []",
        "[}",
        "{\"tools\": []}",
        "\u{1}",
    ] {
        let problems = read(result).unwrap_err();
        assert_eq!(names(&problems), ["discovery-result-invalid "], "{result}");
    }
    assert!(discovered("a", "list_tools", b"[\"\xff\"]").is_err());
}

#[test]
fn j09_j10_one_page_of_several_is_an_error_and_no_second_one_is_asked_for() {
    let pages = read("{\"tools\": [], \"next_cursor\": \"x\"}").unwrap_err();
    assert_eq!(names(&pages), ["discovery-result-invalid "]);
    assert!(pages[0].help.as_ref().unwrap().contains("pages"));
}

#[test]
fn one_bad_item_fails_all_with_index_and_name() {
    let result = json!([tool("good"), with("input_schema", json!({"type": "strng"})), 7, {"description": 1}]);
    let problems = read(&result.to_string()).unwrap_err();
    assert_eq!(
        names(&problems),
        [
            "schema-invalid /1/input_schema/type",
            "discovery-item-invalid /2",
            "discovery-item-invalid /3",
            "discovery-item-invalid /3/description",
            "discovery-item-invalid /3",
        ]
    );
    assert!(
        problems[0]
            .message
            .starts_with("item 1 `a`: input_schema/type: "),
        "{}",
        problems[0].message
    );
    assert!(problems[1].message.starts_with("item 2: "));
}

#[test]
fn each_field_is_checked() {
    for (item, expected) in [
        (with("name", json!("")), "tool-name-invalid /0/name"),
        (with("name", json!("a b")), "tool-name-invalid /0/name"),
        (with("name", json!(1)), "discovery-item-invalid /0/name"),
        (
            with("name", json!("list_tools")),
            "discovery-lists-itself /0/name",
        ),
        (
            with("description", json!(null)),
            "discovery-item-invalid /0/description",
        ),
        (
            with("input_schema", json!(null)),
            "schema-root /0/input_schema",
        ),
        (
            with("input_schema", json!("{}")),
            "schema-root /0/input_schema",
        ),
        (
            with(
                "input_schema",
                json!({"type": "object", "properties": {"x": {"$ref": "file:///etc/passwd"}}}),
            ),
            "schema-ref-remote /0/input_schema/properties/x/$ref",
        ),
        (
            with("required", json!(["x"])),
            "discovery-required-beside-schema /0/required",
        ),
    ] {
        assert_eq!(refused(&json!([item.clone()])), [expected], "{item}");
    }
}

#[test]
fn a_schema_by_another_name_is_explained() {
    let item = json!({"name": "a", "description": "A", "inputSchema": {"type": "object"}});
    let problems = read(&json!([item]).to_string()).unwrap_err();
    assert_eq!(
        problems[0].help.as_deref(),
        Some("rename `inputSchema` to `input_schema`")
    );
}

#[test]
fn what_is_odd_but_legal_is_noted() {
    for (item, expected) in [
        (
            with("description", json!("")),
            "tool-description-empty /0/description",
        ),
        (
            with("colour", json!(1)),
            "discovery-field-dropped /0/colour",
        ),
        (
            with("requires_confirmation", json!(true)),
            "discovery-field-dropped /0/requires_confirmation",
        ),
        (
            with("recommended_policy", json!("yes")),
            "discovery-policy-unknown /0/recommended_policy",
        ),
        (
            with("recommended_policy", json!("Allow")),
            "discovery-policy-unknown /0/recommended_policy",
        ),
        (
            with("recommended_policy", json!(null)),
            "discovery-policy-unknown /0/recommended_policy",
        ),
        (
            with("input_schema", json!({})),
            "schema-empty /0/input_schema",
        ),
    ] {
        let found = read(&json!([item.clone()]).to_string()).unwrap();
        assert_eq!(names(&found.notes), [expected], "{item}");
        assert_eq!(found.tools["a"].recommended, None);
    }
    let misspelt = read(&json!([with("recomended_policy", json!("block"))]).to_string()).unwrap();
    assert_eq!(
        misspelt.notes[0].help.as_deref(),
        Some("`recommended_policy` may be meant")
    );
}

#[test]
fn two_tools_of_one_name_fail() {
    assert_eq!(
        refused(&json!([tool("a"), tool("a")])),
        ["discovery-name-duplicate /1/name"]
    );
}

#[test]
fn a_key_that_stands_twice_fails() {
    let problems = read(
        r#"[{"name":"a","description":"A","input_schema":{"type":"object","properties":{"x":{},"x":{"type":"string"}}}},
            {"name":"b","name":"c","description":"B","input_schema":{"type":"object"}}]"#,
    )
    .unwrap_err();
    assert_eq!(
        names(&problems),
        [
            "discovery-duplicate-key /0/input_schema/properties/x",
            "discovery-duplicate-key /1/name"
        ]
    );
    assert!(problems[0].message.starts_with("item 0 `a`: "));
}

#[test]
fn the_bounds_hold_d7() {
    let many =
        |count: usize| -> Value { (0..count).map(|index| tool(&format!("t{index}"))).collect() };
    assert_eq!(read(&many(1_000).to_string()).unwrap().tools.len(), 1_000);
    assert_eq!(refused(&many(1_001)), ["discovery-too-large "]);

    let long = |bytes: usize| json!([with("description", json!("x".repeat(bytes)))]);
    assert!(read(&long(1_048_000).to_string()).is_ok());
    assert_eq!(refused(&long(1_048_577)), ["discovery-too-large /0"]);

    let mut whole = "[]".to_owned();
    whole.push_str(&" ".repeat(16 * 1024 * 1024));
    assert_eq!(names(&read(&whole).unwrap_err()), ["discovery-too-large "]);
}

#[test]
fn nesting_without_end_fails_and_does_not_overflow() {
    let deep = "[".repeat(100_000);
    assert_eq!(
        names(&read(&deep).unwrap_err()),
        ["discovery-result-invalid "]
    );
}

#[test]
fn text_from_a_container_is_shown_escaped_d7() {
    let problems =
        read(&json!([with("name", json!("a\u{202e}\u{1b}[31m"))]).to_string()).unwrap_err();
    assert!(
        problems[0].message.contains("\\u{202e}\\u{1b}"),
        "{}",
        problems[0].message
    );
}
