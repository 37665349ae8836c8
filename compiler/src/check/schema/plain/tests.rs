use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::is_right;
use crate::check::schema::check;

/// A value of any kind, often one that keywords take.
fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => prop::sample::select(vec![
            json!("string"), json!("integer"), json!("number"), json!("boolean"), json!("array"), json!("object"),
            json!("null"), json!("any"), json!(""), json!(true), json!(false), json!(null), json!(0), json!(1),
            json!(5), json!(-3), json!(1.5), json!(1.0), json!(18_446_744_073_709_551_615_u64), json!([]), json!({}),
            json!(["a"]), json!(["a", "b"]), json!(["a", "a"]), json!(["a", 1]), json!([1, 1.0]), json!([null]),
            json!("a"), json!("b"), json!("("), json!("#/$defs/a"), json!("https://example.org/x"),
        ]),
        1 => any::<i64>().prop_map(|number| json!(number)),
    ]
}

/// A keyword with a value that fits it, or with any.
fn keyword(inner: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = (String, Value)> {
    let name = prop::sample::select(vec!["a", "b", "city", "$id", "a b", "type"]);
    let named = prop::collection::btree_map(name.prop_map(str::to_owned), inner.clone(), 0..3)
        .prop_map(|map| json!(map));
    let pick = |values: Vec<Value>| prop::sample::select(values);
    let kinds = [
        "string", "integer", "number", "boolean", "array", "object", "null",
    ];
    let lists = vec![json!(["a"]), json!(["a", "b"]), json!([]), json!(["x"])];
    let number = pick(vec![json!(0), json!(1), json!(5), json!(-2), json!(0.5)]);
    let right = prop_oneof![
        1 => pick(vec![json!("text"), json!("date")]).prop_flat_map(|value| {
            prop::sample::select(vec!["title", "description", "format", "$comment"])
                .prop_map(move |key| (key.to_owned(), value.clone()))
        }),
        4 => named.prop_map(|value| ("properties".to_owned(), value)),
        2 => inner.clone().prop_map(|value| ("items".to_owned(), value)),
        2 => prop::collection::vec(inner.clone(), 1..3)
            .prop_map(|parts| ("anyOf".to_owned(), json!(parts))),
        1 => inner.prop_map(|value| ("additionalProperties".to_owned(), value)),
        3 => pick(kinds.iter().map(|kind| json!(kind)).collect())
            .prop_map(|value| ("type".to_owned(), value)),
        2 => pick(lists.clone()).prop_map(|value| ("required".to_owned(), value)),
        2 => pick(lists).prop_map(|value| ("enum".to_owned(), value)),
        4 => any_value().prop_map(|value| ("default".to_owned(), value)),
        2 => number.prop_flat_map(|value| {
            prop::sample::select(vec!["minimum", "maximum", "exclusiveMaximum", "minLength", "maxItems", "minItems"])
                .prop_map(move |key| (key.to_owned(), value.clone()))
        }),
    ];
    let all = prop::sample::select(super::keyword::ALL).prop_map(str::to_owned);
    let odd =
        prop_oneof![4 => all, 1 => Just("propertys".to_owned()), 1 => Just("x-own".to_owned())];
    prop_oneof![12 => right, 1 => (odd, any_value())]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => Just(json!({ "type": "string" })),
        1 => Just(json!({})),
        1 => any_value(),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop::collection::vec(keyword(inner.boxed()), 0..5)
            .prop_map(|pairs| Value::Object(pairs.into_iter().collect()))
    })
}

#[test]
fn nothing_is_ever_found_in_what_is_plainly_right() {
    let right = Cell::new(0);
    let mut runner = TestRunner::new_with_rng(
        Config::with_cases(8_000),
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let root = prop::collection::vec(keyword(schema().boxed()), 0..5).prop_map(|pairs| {
        let mut map: serde_json::Map<String, Value> = pairs.into_iter().collect();
        map.entry("type").or_insert_with(|| json!("object"));
        Value::Object(map)
    });
    runner
        .run(&root, |schema| {
            if is_right(&schema) {
                right.set(right.get() + 1);
                prop_assert_eq!(check(&schema), Vec::new(), "{}", schema);
            }
            Ok(())
        })
        .unwrap();
    assert!(right.get() > 500, "only {} were plainly right", right.get());
}

#[test]
fn what_tools_usually_take_is_plainly_right() {
    for schema in [
        json!({ "type": "object", "properties": {} }),
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "Where", "enum": ["a", "b"], "default": "a" },
                "days": { "type": "integer", "minimum": 1, "maximum": 7, "default": 3 },
                "tags": { "type": "array", "items": { "type": "string" }, "default": [] },
            },
            "required": ["city"],
            "additionalProperties": false,
        }),
        json!({ "type": "object", "properties": {
            "project": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null, "title": "Project" },
            "ids": { "anyOf": [{ "type": "array", "items": { "type": "integer" } }, { "type": "string" }], "default": "" },
            "key": { "type": "string", "minLength": 2, "maxLength": 3, "default": "äöü" },
            "any": { "default": null, "title": "Any" },
        }}),
    ] {
        assert!(is_right(&schema), "{schema}");
        assert_eq!(check(&schema), Vec::new());
    }
}

#[test]
fn what_is_not_plainly_right_is_left_to_the_full_check() {
    for schema in [
        json!({ "type": "array" }),
        json!({ "type": "object", "properties": { "a": { "type": "strin" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "(" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "integer", "default": "1" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "integer", "maximum": 1, "default": 2 } } }),
        json!({ "type": "object", "properties": { "a": { "type": "string", "enum": ["x"], "default": "y" } } }),
        json!({ "type": "object", "required": ["a"] }),
        json!({ "type": "object", "anyOf": [{ "type": "object" }] }),
        json!({ "type": "object", "properties": { "a": { "anyOf": [] } } }),
        json!({ "type": "object", "properties": { "a": { "anyOf": [{ "type": "string" }], "default": null } } }),
        json!({ "type": "object", "properties": { "a": { "type": "string", "minLength": 2, "default": "ä" } } }),
        json!({ "type": "object", "properties": { "a": { "required": [], "default": null } } }),
        json!({ "type": "object", "propertys": {} }),
        json!({ "$schema": "http://json-schema.org/draft-04/schema#", "type": "object" }),
    ] {
        assert!(!is_right(&schema), "{schema}");
    }
}
