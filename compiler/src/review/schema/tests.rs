//! Every kind of change with its grade, and the property that a grade never says less than what is true.

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use serde_json::{Map, Value, json};

use super::{SchemaChange, compare};
use crate::review::Grade::{self, Narrowing, Neutral, Widening};

/// The worst grade of a change: widening before narrowing before neutral.
fn grade(old: &Value, new: &Value) -> Option<Grade> {
    compare(old, new).iter().map(|change| change.grade).min()
}

/// A schema of one argument `x` beside which nothing is accepted.
fn argument(schema: &Value) -> Value {
    json!({ "type": "object", "properties": { "x": schema }, "additionalProperties": false })
}

#[test]
fn each_change_of_an_argument_has_its_grade() {
    let table = [
        // Types.
        (json!({"type": "string"}), json!({}), Widening),
        (json!({}), json!({"type": "string"}), Narrowing),
        (
            json!({"type": "string"}),
            json!({"type": ["string", "null"]}),
            Widening,
        ),
        (
            json!({"type": ["string", "null"]}),
            json!({"type": "string"}),
            Narrowing,
        ),
        (
            json!({"type": "integer"}),
            json!({"type": "number"}),
            Widening,
        ),
        (
            json!({"type": "number"}),
            json!({"type": "integer"}),
            Narrowing,
        ),
        (
            json!({"type": "string"}),
            json!({"type": "integer"}),
            Widening,
        ),
        (
            json!({"type": ["string"]}),
            json!({"type": "string"}),
            Neutral,
        ),
        (
            json!({"type": "string", "nullable": false}),
            json!({"type": "string", "nullable": true}),
            Widening,
        ),
        (json!({"nullable": true}), json!({}), Narrowing),
        // Listed values.
        (
            json!({"enum": ["a", "b"]}),
            json!({"enum": ["a"]}),
            Narrowing,
        ),
        (
            json!({"enum": ["a"]}),
            json!({"enum": ["a", "b"]}),
            Widening,
        ),
        (json!({"enum": ["a"]}), json!({}), Widening),
        (json!({}), json!({"enum": ["a"]}), Narrowing),
        (
            json!({"enum": ["a", "b"]}),
            json!({"enum": ["b", "a"]}),
            Neutral,
        ),
        (
            json!({"enum": ["a", "b"]}),
            json!({"const": "a"}),
            Narrowing,
        ),
        (json!({"const": "a"}), json!({"enum": ["a"]}), Neutral),
        (json!({"const": "a"}), json!({"const": "b"}), Widening),
        (json!({"enum": [1]}), json!({"enum": [1.0]}), Neutral),
        (
            json!({"type": "string", "enum": ["a"]}),
            json!({"enum": ["a"]}),
            Neutral,
        ),
        (
            json!({"type": "string", "enum": ["a"]}),
            json!({"enum": ["a", 1]}),
            Widening,
        ),
        // Bounds.
        (json!({"minimum": 1}), json!({"minimum": 2}), Narrowing),
        (json!({"minimum": 2}), json!({"minimum": 1}), Widening),
        (json!({"minimum": 2}), json!({}), Widening),
        (json!({}), json!({"maximum": 2}), Narrowing),
        (json!({"maximum": 2}), json!({"maximum": 3}), Widening),
        (json!({"maximum": 2}), json!({"maximum": 2.0}), Neutral),
        (
            json!({"maximum": 2}),
            json!({"exclusiveMaximum": 2}),
            Narrowing,
        ),
        (
            json!({"exclusiveMinimum": 2}),
            json!({"minimum": 2}),
            Widening,
        ),
        (
            json!({"exclusiveMinimum": 2}),
            json!({"minimum": 3}),
            Narrowing,
        ),
        (
            json!({"minimum": 1}),
            json!({"minimum": 1, "exclusiveMinimum": 0}),
            Neutral,
        ),
        (
            json!({"maximum": 9_007_199_254_740_993_u64}),
            json!({"maximum": 9_007_199_254_740_992.0}),
            Widening,
        ),
        (
            json!({"multipleOf": 2}),
            json!({"multipleOf": 4}),
            Narrowing,
        ),
        (json!({"multipleOf": 4}), json!({"multipleOf": 2}), Widening),
        (json!({"multipleOf": 4}), json!({}), Widening),
        (json!({"maxLength": 10}), json!({"maxLength": 20}), Widening),
        (json!({"maxLength": 10}), json!({"maxLength": 5}), Narrowing),
        (json!({"maxLength": 10}), json!({}), Widening),
        (json!({"minLength": 1}), json!({}), Widening),
        (json!({}), json!({"minLength": 0}), Neutral),
        (json!({"minLength": 1}), json!({"minLength": 2}), Narrowing),
        (json!({"pattern": "^a"}), json!({"pattern": "^b"}), Widening),
        (json!({"pattern": "^a"}), json!({}), Widening),
        (json!({}), json!({"pattern": "^a"}), Narrowing),
        (json!({"format": "uri"}), json!({}), Widening),
        (json!({}), json!({"format": "uri"}), Narrowing),
        // Lists.
        (json!({"items": {"type": "string"}}), json!({}), Widening),
        (json!({}), json!({"items": {"type": "string"}}), Narrowing),
        (
            json!({"items": {"maximum": 1}}),
            json!({"items": {"maximum": 2}}),
            Widening,
        ),
        (
            json!({"items": {"maximum": 2}}),
            json!({"items": {"maximum": 1}}),
            Narrowing,
        ),
        (json!({"maxItems": 3}), json!({"maxItems": 30}), Widening),
        (json!({"uniqueItems": true}), json!({}), Widening),
        (json!({}), json!({"uniqueItems": true}), Narrowing),
        (
            json!({"prefixItems": [{"type": "string"}]}),
            json!({"prefixItems": [{}]}),
            Widening,
        ),
        (
            json!({}),
            json!({"prefixItems": [{"type": "string"}]}),
            Narrowing,
        ),
        (
            json!({"contains": {"const": 1}}),
            json!({"contains": {"const": 2}}),
            Widening,
        ),
        (json!({}), json!({"contains": {"const": 2}}), Narrowing),
        // Objects inside.
        (json!({"minProperties": 1}), json!({}), Widening),
        (
            json!({"maxProperties": 1}),
            json!({"maxProperties": 2}),
            Widening,
        ),
        (
            json!({"propertyNames": {"maxLength": 3}}),
            json!({"propertyNames": {"maxLength": 4}}),
            Widening,
        ),
        (
            json!({"propertyNames": {"maxLength": 3}}),
            json!({"propertyNames": {"maxLength": 2}}),
            Narrowing,
        ),
        (
            json!({"patternProperties": {"^a": {"type": "string"}}}),
            json!({}),
            Widening,
        ),
        (
            json!({}),
            json!({"patternProperties": {"^a": {"type": "string"}}}),
            Narrowing,
        ),
        (
            json!({"additionalProperties": false}),
            json!({"patternProperties": {"^a": {}}, "additionalProperties": false}),
            Widening,
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({}),
            Widening,
        ),
        (
            json!({}),
            json!({"dependentRequired": {"a": ["b"]}}),
            Narrowing,
        ),
        // Combined.
        (
            json!({"allOf": [{"minimum": 1}]}),
            json!({"allOf": [{"minimum": 1}, {"maximum": 5}]}),
            Narrowing,
        ),
        (
            json!({"allOf": [{"minimum": 1}, {"maximum": 5}]}),
            json!({"allOf": [{"maximum": 5}]}),
            Widening,
        ),
        (
            json!({"anyOf": [{"type": "string"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            Widening,
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "string"}]}),
            Narrowing,
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "null"}, {"type": "string"}]}),
            Neutral,
        ),
        (json!({"anyOf": [{"type": "string"}]}), json!({}), Widening),
        (json!({}), json!({"anyOf": [{"type": "string"}]}), Narrowing),
        (
            json!({"oneOf": [{"type": "string"}]}),
            json!({"oneOf": [{"type": "string"}, {"minLength": 1}]}),
            Widening,
        ),
        (json!({}), json!({"oneOf": [{"type": "string"}]}), Narrowing),
        (
            json!({"not": {"const": 1}}),
            json!({"not": {"const": 2}}),
            Widening,
        ),
        (json!({}), json!({"not": {"const": 2}}), Narrowing),
        (
            json!({"if": {"const": 1}, "then": false}),
            json!({}),
            Widening,
        ),
        // Everything and nothing.
        (json!(false), json!(true), Widening),
        (json!(true), json!(false), Narrowing),
        (json!({"type": "string"}), json!(true), Widening),
        (json!(true), json!({}), Neutral),
        // Words, and what nobody knows.
        (
            json!({"description": "a"}),
            json!({"description": "b"}),
            Neutral,
        ),
        (json!({"default": 1}), json!({"default": 2}), Neutral),
        (json!({"x-limit": 1}), json!({"x-limit": 2}), Widening),
        (
            json!({"unevaluatedProperties": false}),
            json!({"properties": {"a": {}}, "unevaluatedProperties": false}),
            Widening,
        ),
    ];
    assert!(table.len() >= 80, "{}", table.len());
    for (old, new, expected) in table {
        let found = compare(&argument(&old), &argument(&new));
        let worst = found.iter().map(|change| change.grade).min();
        assert_eq!(worst, Some(expected), "{old} → {new}: {found:#?}");
    }
}

#[test]
fn each_change_of_the_arguments_together_has_its_grade() {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false});
    let with = |edit: fn(&mut Map<String, Value>)| {
        let mut schema = city.clone();
        edit(schema.as_object_mut().unwrap());
        schema
    };
    let table: [(Value, &str, Grade); 6] = [
        (
            with(|schema| drop(schema.remove("required"))),
            "`city` is not required any more",
            Widening,
        ),
        (
            with(|schema| drop(schema.remove("additionalProperties"))),
            "`*` was refused and is accepted now",
            Widening,
        ),
        (
            with(|schema| schema["properties"]["bcc"] = json!({"type": "string"})),
            "there is a new argument `bcc`",
            Widening,
        ),
        (
            with(|schema| drop(schema["properties"].as_object_mut().unwrap().remove("city"))),
            "`city` is not an argument any more",
            Narrowing,
        ),
        (
            with(|schema| schema["properties"]["city"]["enum"] = json!(["Bonn"])),
            "`city` may only be `\"Bonn\"` now",
            Narrowing,
        ),
        (
            with(|schema| schema["properties"]["city"]["type"] = json!(["string", "integer"])),
            "`city` may be of type integer now",
            Widening,
        ),
    ];
    for (new, says, grade) in table {
        let found = compare(&city, &new);
        let there = found
            .iter()
            .any(|change| change.says == says && change.grade == grade);
        assert!(there, "{says}: {found:#?}");
    }
    // Anything was accepted beside it, and still the tool now takes one more for something.
    let open = json!({"properties": {"a": {}}});
    let more = json!({"properties": {"a": {}, "b": {"type": "string"}}});
    assert_eq!(grade(&open, &more), Some(Widening));
}

#[test]
fn references_are_followed_and_definitions_alone_are_nothing() {
    let schema = |definition: Value, reference: &str| {
        json!({
            "type": "object",
            "properties": {"x": {"$ref": reference}},
            "$defs": {"a": definition, "b": {"type": "string"}},
        })
    };
    let changes = [
        (json!({"maximum": 1}), json!({"maximum": 2}), Widening),
        (json!({"maximum": 2}), json!({"maximum": 1}), Narrowing),
    ];
    for (old, new, expected) in changes {
        let (old_a, new_a) = (
            schema(old.clone(), "#/$defs/a"),
            schema(new.clone(), "#/$defs/a"),
        );
        assert_eq!(grade(&old_a, &new_a), Some(expected));
        // Through a reference or without it is the same.
        let inline = json!({"type": "object", "properties": {"x": new}});
        assert_eq!(grade(&old_a, &inline), Some(expected));
        let unused = (
            schema(old, "#/$defs/b"),
            schema(new_a["$defs"]["a"].clone(), "#/$defs/b"),
        );
        assert_eq!(grade(&unused.0, &unused.1), Some(Neutral));
    }
    let tree = |limit: u64| {
        json!({
            "type": "object",
            "properties": {"node": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "maxProperties": limit, "properties": {"child": {"$ref": "#/$defs/node"}}}},
        })
    };
    assert_eq!(grade(&tree(3), &tree(2)), Some(Narrowing));
    assert_eq!(grade(&tree(2), &tree(3)), Some(Widening));
    // A circle that leads nowhere ends all the same.
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
    assert_eq!(grade(&circle, &json!({"type": "object"})), Some(Neutral));
    assert_eq!(grade(&json!({"type": "object"}), &circle), Some(Neutral));
    // A name of its own could lead anywhere.
    let named = json!({"$defs": {"a": {"$anchor": "a"}}, "properties": {"x": {"$ref": "#a"}}});
    assert_eq!(
        grade(&named, &json!({"properties": {"x": {}}})),
        Some(Widening)
    );
    // `oneOf` is the same text, but what it leads to is not.
    let one_of = |limit: u64| json!({"oneOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "$defs": {"a": {"maximum": limit}}});
    assert_eq!(grade(&one_of(1), &one_of(2)), Some(Widening));
}

#[test]
fn a_change_has_its_place_and_both_values() {
    let old = argument(&json!({"enum": ["a"]}));
    let new = argument(&json!({"enum": ["a", "b"]}));
    let expected = SchemaChange {
        pointer: "/properties/x/enum".to_owned(),
        grade: Widening,
        says: "`x` may be `\"b\"` now".to_owned(),
        old: Some(json!(["a"])),
        new: Some(json!(["a", "b"])),
    };
    assert_eq!(compare(&old, &new), [expected]);
    assert_eq!(compare(&old, &old), []);
}

/// Names that schemas and instances share, so that they meet.
const NAMES: [&str; 3] = ["a", "b", "ab"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..4).prop_map(Value::from),
        select(vec![0.5, 1.0, 1.5]).prop_map(Value::from),
        select(vec!["", "a", "b", "ab", "bbb"]).prop_map(Value::from),
    ]
}

fn instance() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(select(NAMES.to_vec()), inner, 0..3)
                .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

/// A keyword with a value that fits it.
fn keyword(
    inner: impl Strategy<Value = Value> + Clone + 'static,
) -> BoxedStrategy<(String, Value)> {
    let small = (0_u64..3).prop_map(Value::from);
    let number = prop_oneof![
        (-1_i64..4).prop_map(Value::from),
        select(vec![0.5, 1.0]).prop_map(Value::from)
    ];
    let types = select(vec![
        "null", "boolean", "integer", "number", "string", "array", "object",
    ]);
    let members = prop::collection::btree_map(select(NAMES.to_vec()), inner.clone(), 0..3)
        .prop_map(|map| {
            map.into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect::<Value>()
        });
    let names = prop::sample::subsequence(NAMES.to_vec(), 0..3).prop_map(Value::from);
    let list = prop::collection::vec(inner.clone(), 1..3).prop_map(Value::from);
    let named = |name: &'static str, value: BoxedStrategy<Value>| {
        value
            .prop_map(move |value| (name.to_owned(), value))
            .boxed()
    };
    prop_oneof![
        4 => named("type", types.clone().prop_map(Value::from).boxed()),
        2 => named("type", prop::collection::btree_set(types, 1..3).prop_map(|set| set.into_iter().collect::<Vec<_>>().into()).boxed()),
        2 => named("enum", prop::collection::vec(instance(), 1..3).prop_map(Value::from).boxed()),
        1 => named("const", instance().boxed()),
        4 => (select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), number).prop_map(|(name, value)| (name.to_owned(), value)),
        4 => (select(vec!["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]), small).prop_map(|(name, value)| (name.to_owned(), value)),
        1 => named("multipleOf", (1_i64..4).prop_map(Value::from).boxed()),
        1 => named("pattern", select(vec!["^a", "b"]).prop_map(Value::from).boxed()),
        1 => named("uniqueItems", any::<bool>().prop_map(Value::from).boxed()),
        4 => named("properties", members.clone().boxed()),
        2 => named("patternProperties", prop::collection::btree_map(select(vec!["^a", "b"]), inner.clone(), 0..2).prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Value>()).boxed()),
        3 => named("additionalProperties", inner.clone().boxed()),
        2 => named("required", names.clone().boxed()),
        1 => named("propertyNames", inner.clone().boxed()),
        1 => named("dependentRequired", (select(NAMES.to_vec()), names).prop_map(|(name, names)| json!({ name: names })).boxed()),
        1 => named("dependentSchemas", members.boxed()),
        2 => named("items", inner.clone().boxed()),
        1 => named("prefixItems", list.clone().boxed()),
        1 => named("contains", inner.clone().boxed()),
        1 => (select(vec!["minContains", "maxContains"]), 0_u64..3).prop_map(|(name, value)| (name.to_owned(), value.into())),
        2 => (select(vec!["allOf", "anyOf", "oneOf"]), list).prop_map(|(name, value)| (name.to_owned(), value)),
        1 => (select(vec!["not", "if", "then", "else"]), inner.clone()).prop_map(|(name, value)| (name.to_owned(), value)),
        1 => (select(vec!["unevaluatedProperties", "unevaluatedItems"]), inner).prop_map(|(name, value)| (name.to_owned(), value)),
        2 => named("$ref", select(vec!["#/$defs/p", "#/$defs/q"]).prop_map(Value::from).boxed()),
        1 => named("title", Just(json!("t")).boxed()),
    ]
    .boxed()
}

fn subschema() -> impl Strategy<Value = Value> + Clone {
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::from),
        3 => select(vec!["string", "integer", "object"]).prop_map(|kind| json!({"type": kind})),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        prop::collection::vec(keyword(inner), 0..4)
            .prop_map(|keywords| Value::Object(keywords.into_iter().collect()))
    })
}

/// A whole schema, with two definitions that references lead to. They do not lead to each other.
fn whole() -> impl Strategy<Value = Value> {
    let flat = prop_oneof![
        (0_i64..3).prop_map(|limit| json!({"maximum": limit})),
        select(NAMES.to_vec()).prop_map(|name| json!({"required": [name]})),
        any::<bool>().prop_map(Value::from),
    ];
    (subschema(), flat.clone(), flat).prop_map(|(schema, p, q)| {
        let mut root = match schema {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        root.insert("$defs".to_owned(), json!({"p": p, "q": q}));
        Value::Object(root)
    })
}

/// The same schema with one thing changed somewhere.
fn edited(schema: &Value, path: &[prop::sample::Index], with: &(String, Value), how: u8) -> Value {
    let mut schema = schema.clone();
    let mut at = &mut schema;
    for step in path {
        let count = match &*at {
            Value::Object(map) => map.values().filter(|value| value.is_object()).count(),
            _ => 0,
        };
        if count == 0 {
            break;
        }
        let chosen = step.index(count);
        let map = at.as_object_mut().unwrap();
        at = map
            .values_mut()
            .filter(|value| value.is_object())
            .nth(chosen)
            .unwrap();
    }
    if let Value::Object(map) = at {
        let keys: Vec<String> = map.keys().filter(|key| *key != "$defs").cloned().collect();
        match (how % 3, keys.is_empty()) {
            (0, false) => {
                let key = &keys[usize::from(how / 3) % keys.len()];
                map.remove(key);
            }
            _ => {
                map.insert(with.0.clone(), with.1.clone());
            }
        }
    }
    schema
}

fn pair() -> impl Strategy<Value = (Value, Value)> {
    let edit = (
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        keyword(subschema()),
        any::<u8>(),
    );
    prop_oneof![
        4 => (whole(), prop::collection::vec(edit, 1..3)).prop_map(|(old, edits)| {
            let new = edits.iter().fold(old.clone(), |schema, (path, with, how)| edited(&schema, path, with, *how));
            (old, new)
        }),
        1 => (whole(), whole()),
    ]
}

fn validator(schema: &Value) -> Option<Validator> {
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .ok()
}

proptest! {
    /// The grade never says narrowing or neutral when the new schema accepts what the old one refused
    /// (`PROPTEST_CASES=100000` for longer).
    #[test]
    fn what_is_newly_accepted_is_graded_as_widening(
        (old, new) in pair(),
        instances in prop::collection::vec(instance(), 40),
    ) {
        let (Some(before), Some(now)) = (validator(&old), validator(&new)) else {
            return Ok(());
        };
        if compare(&old, &new).iter().any(|change| change.grade == Widening) {
            return Ok(());
        }
        for instance in &instances {
            prop_assert!(
                !now.is_valid(instance) || before.is_valid(instance),
                "{instance} is newly accepted by {new}\nwas {old}"
            );
        }
    }

    /// Whatever the schemas are, a comparison ends, and the same says nothing.
    #[test]
    fn every_difference_is_said((old, new) in pair()) {
        prop_assert_eq!(compare(&old, &new).is_empty(), old == new);
    }
}

#[test]
fn most_stricter_schemas_are_seen_to_be_stricter() {
    // The property would hold for a comparison that always says widening. This one must not.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut graded, mut pairs) = (0, 0);
    for _ in 0..600 {
        let (old, new) = pair().new_tree(&mut runner).unwrap().current();
        if old != new {
            pairs += 1;
            graded += usize::from(grade(&old, &new) != Some(Widening));
        }
    }
    assert!(graded * 5 > pairs, "{graded} of {pairs} are not widening");
}
