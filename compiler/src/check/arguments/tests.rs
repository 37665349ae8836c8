use serde_json::json;

use super::*;

fn forecast() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 20},
            "days": {"type": "integer", "minimum": 1},
            "metric": {"type": "boolean"},
            "hours": {"type": "array", "items": {"type": "integer"}},
            "level": {"enum": ["low", 1, "2", null]},
            "note": {"type": ["string", "null"]},
            "zip": {"type": ["string", "integer"]},
            "where": {"$ref": "#/$defs/place"},
            "free": true,
        },
        "required": ["city"],
        "additionalProperties": false,
        "$defs": {"place": {"anyOf": [
            {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
            {"type": "integer"},
        ]}},
    })
}

fn read(
    read: impl FnOnce(&Arguments<'_>) -> Result<Map<String, Value>, Vec<ArgumentProblem>>,
) -> Result<Value, Vec<String>> {
    let schema = forecast();
    let arguments = Arguments::of(&schema).unwrap();
    let judged = read(&arguments).and_then(|map| match arguments.judge(&map) {
        problems if problems.is_empty() => Ok(Value::Object(map)),
        problems => Err(problems),
    });
    judged.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn pairs(list: &[&str]) -> Result<Value, Vec<String>> {
    let list: Vec<String> = list.iter().map(ToString::to_string).collect();
    read(|arguments| arguments.from_pairs(&list))
}

fn json_text(text: &str) -> Result<Value, Vec<String>> {
    read(|arguments| arguments.from_json(text.as_bytes()))
}

#[test]
fn pairs_get_the_type_that_the_schema_takes_there() {
    let read = pairs(&[
        "city=12345",
        "days=3",
        "metric=true",
        "hours=[1, 2]",
        "level=2",
        "note=a=b",
        "where={\"lat\": 1.5}",
        "free=plain words",
    ]);
    assert_eq!(
        read.unwrap(),
        json!({
            "city": "12345", "days": 3, "metric": true, "hours": [1, 2], "level": "2", "note": "a=b",
            "where": {"lat": 1.5}, "free": "plain words",
        })
    );
    assert_eq!(pairs(&["city=x", "level=1"]).unwrap()["level"], json!(1));
    assert_eq!(pairs(&["city=x", "where=4"]).unwrap()["where"], json!(4));
    assert_eq!(pairs(&["city="]).unwrap()["city"], json!(""));
}

#[test]
fn a_pair_that_could_mean_two_things_is_refused_not_guessed() {
    for pair in ["note=null", "zip=12345", "free=5"] {
        let problems = pairs(&["city=x", pair]).unwrap_err();
        assert!(
            problems[0].contains("say which with --args"),
            "{problems:?}"
        );
    }
}

#[test]
fn every_problem_names_its_place_in_the_arguments_and_the_schemas_demand() {
    let problems = json_text(r#"{"days": 0, "metric": "yes", "hours": [1, "x"], "wheer": 1}"#);
    let problems = problems.unwrap_err();
    let expected = [
        "/city: this is required and not given (demanded at /required of the schema)",
        "/days: 0 is less than the minimum of 1 (demanded at /properties/days/minimum of the schema)",
        "/metric: \"yes\" is not of type \"boolean\" (demanded at /properties/metric/type of the schema)",
        "/hours/1: \"x\" is not of type \"integer\" (demanded at /properties/hours/items/type of the schema)",
        "/wheer: the tool takes no such argument; `where`? (demanded at /additionalProperties of the schema)",
    ];
    for line in expected {
        assert!(problems.iter().any(|p| p == line), "{line}\n{problems:#?}");
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
}

#[test]
fn a_pair_of_the_right_type_and_a_wrong_value_is_told_so() {
    let long = format!("city={}", "9".repeat(15));
    assert!(pairs(&[&long]).is_ok());
    let problems = pairs(&["city=x", "days=0"]).unwrap_err();
    assert!(
        problems[0].starts_with("/days: 0 is less than"),
        "{problems:?}"
    );
    let problems = pairs(&["city=x", "days=123456789012345678901"]).unwrap_err();
    assert!(
        problems[0].contains("cannot be carried exactly"),
        "{problems:?}"
    );
    let problems = pairs(&["city=123456789012345678901"]).unwrap_err();
    assert!(problems[0].contains("longer than 20"), "{problems:?}");
    let problems = pairs(&["city=[1,2,3,4,5,6,7,8,9,10]"]).unwrap_err();
    assert!(problems[0].contains("longer than 20"), "{problems:?}");
}

#[test]
fn nothing_is_dropped_in_silence() {
    let says = |read: Result<Value, Vec<String>>, text: &str| {
        let problems = read.unwrap_err();
        assert!(
            problems.iter().any(|p| p.contains(text)),
            "{text}: {problems:?}"
        );
    };
    says(
        json_text(r#"{"city": "a", "city": "b"}"#),
        "/city: this key stands twice",
    );
    says(json_text("[1]"), "found an array, expected a JSON object");
    says(json_text("{"), "not JSON");
    says(json_text("{} {}"), "not JSON");
    says(
        json_text(r#"{"city": "a", "days": 99999999999999999999}"#),
        "exactly",
    );
    says(pairs(&["city=a", "city=b"]), "/city: given twice");
    says(pairs(&["city"]), "no KEY=VALUE");
    says(
        pairs(&["city=a", "a/b~=1"]),
        "/a~1b~0: the tool takes no such argument",
    );
}

#[test]
fn numbers_in_strings_are_texts_whatever_their_length() {
    let text = r#"{"city": "\"123456789012345"}"#;
    assert_eq!(
        json_text(text).unwrap(),
        json!({"city": "\"123456789012345"})
    );
    assert_eq!(
        inexact(br#"{"a": "99999999999999999999", "b": 1e99, "c": -9223372036854775808}"#),
        None
    );
    assert_eq!(
        inexact(b"[18446744073709551616]"),
        Some("18446744073709551616")
    );
}

#[test]
fn a_schema_that_takes_anything_takes_an_object() {
    for schema in [json!({}), json!(true)] {
        let arguments = Arguments::of(&schema).unwrap();
        assert!(arguments.from_json(b"{\"a\": 1}").is_ok());
        assert!(arguments.from_json(b"null").is_err());
    }
}
