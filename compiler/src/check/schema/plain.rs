//! Schemas that are plainly right: objects of described scalars, lists and objects, as most tools take. For them nothing
//! would be found, which is proven here without a metaschema, without references to follow and without a validator to
//! build: the tests compare with [`super::check`]. Whatever is not recognised is not refused, but checked in full.

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::{draft, keyword};

/// Longer lists are not compared item by item.
const DISTINCT_MAX: usize = 64;

/// The longest name of a property that model providers take.
const NAME_MAX: usize = 64;

/// Keywords beside which a schema without a type accepts anything, if one of its alternatives does.
const UNDECIDING: [&str; 9] = [
    "$comment",
    "anyOf",
    "default",
    "deprecated",
    "description",
    "format",
    "readOnly",
    "title",
    "writeOnly",
];

/// Whether nothing is to be said about a schema within the bounds. `false` leaves it open.
pub(super) fn is_right(root: &Value) -> bool {
    let Value::Object(map) = root else {
        return false;
    };
    map.get("type").is_some_and(|kind| kind == "object")
        && draft::of(root).is_ok_and(|draft| draft != Draft::Draft4)
        && subschema(map, true)
}

fn subschema(map: &Map<String, Value>, is_root: bool) -> bool {
    let kind = match map.get("type") {
        Some(Value::String(kind)) if keyword::TYPES.contains(&kind.as_str()) => kind.as_str(),
        Some(_) => return false,
        None => "",
    };
    if kind == "array" && !map.contains_key("items") {
        return false;
    }
    map.iter().all(|(key, value)| match key.as_str() {
        "$comment" | "description" | "format" | "title" => value.is_string(),
        "type" => true,
        // The root's is a known draft.
        "$schema" => is_root,
        "deprecated" | "readOnly" | "uniqueItems" | "writeOnly" => value.is_boolean(),
        "minItems" | "maxItems" | "minLength" | "maxLength" => value.is_u64(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "enum" => kind == "string" && distinct_strings(value).is_some_and(|words| words > 0),
        "properties" => value.as_object().is_some_and(|properties| {
            properties
                .iter()
                .all(|(name, value)| is_name(name) && is_subschema(value))
        }),
        "additionalProperties" => value.is_boolean() || is_subschema(value),
        "items" => is_subschema(value),
        "required" => distinct_strings(value).is_some() && all_declared(value, map),
        // Model providers refuse it at the root.
        "anyOf" => {
            !is_root
                && value
                    .as_array()
                    .is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_subschema))
        }
        "default" => fits(value, kind, map),
        _ => false,
    })
}

fn is_subschema(value: &Value) -> bool {
    value.as_object().is_some_and(|map| subschema(map, false))
}

fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// How many, if nothing else is in the list and none is there twice.
fn distinct_strings(value: &Value) -> Option<usize> {
    let items = value.as_array().filter(|all| all.len() <= DISTINCT_MAX)?;
    let distinct = items
        .iter()
        .enumerate()
        .all(|(at, item)| item.is_string() && !items.iter().take(at).any(|other| other == item));
    distinct.then_some(items.len())
}

fn all_declared(names: &Value, map: &Map<String, Value>) -> bool {
    let properties = map.get("properties").and_then(Value::as_object);
    let mut names = names.as_array().into_iter().flatten();
    names.all(|name| {
        name.as_str()
            .zip(properties)
            .is_some_and(|(name, properties)| properties.contains_key(name))
    })
}

/// Whether a plain schema surely accepts its own default.
fn fits(default: &Value, kind: &str, map: &Map<String, Value>) -> bool {
    let without = |keywords: &[&str]| !keywords.iter().any(|key| map.contains_key(*key));
    let any = map.get("anyOf").and_then(Value::as_array);
    let fits_one = any.is_none_or(|parts| {
        parts.iter().filter_map(Value::as_object).any(|part| {
            let kind = part.get("type").and_then(Value::as_str);
            fits(default, kind.unwrap_or_default(), part)
        })
    });
    if !fits_one {
        return false;
    }
    match (kind, default) {
        // Nothing else decides.
        ("", _) => map.keys().all(|key| UNDECIDING.contains(&key.as_str())),
        ("boolean", Value::Bool(_)) | ("null", Value::Null) => true,
        ("string", Value::String(text)) => {
            let length = text.chars().count() as u64;
            let bound = |key: &str| map.get(key).and_then(Value::as_u64);
            bound("minLength").is_none_or(|least| length >= least)
                && bound("maxLength").is_none_or(|most| length <= most)
                && map
                    .get("enum")
                    .and_then(Value::as_array)
                    .is_none_or(|words| words.contains(default))
        }
        ("integer" | "number", Value::Number(number)) => {
            let within = |key: &str, holds: fn(i64, i64) -> bool| match map.get(key) {
                None => true,
                Some(bound) => number
                    .as_i64()
                    .zip(bound.as_i64())
                    .is_some_and(|(number, bound)| holds(number, bound)),
            };
            (kind == "number" || number.is_i64())
                && without(&["exclusiveMinimum", "exclusiveMaximum"])
                && within("minimum", |number, bound| number >= bound)
                && within("maximum", |number, bound| number <= bound)
        }
        ("array", Value::Array(items)) => items.is_empty() && without(&["minItems"]),
        ("object", Value::Object(fields)) => fields.is_empty() && without(&["required"]),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
