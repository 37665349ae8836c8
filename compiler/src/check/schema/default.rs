//! Defaults that their own schema refuses.

use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

use super::keyword;
use super::walk::{Location, Walk};
use super::{options, pointer};
use crate::diag::codes::tools as codes;
use crate::diag::{Problem, shown};

/// Keywords that do not decide whether a value is accepted.
const ANNOTATIONS: &[&str] = &[
    "$anchor",
    "$comment",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "format",
    "readOnly",
    "title",
    "type",
    "writeOnly",
];

/// Every default that its own schema refuses. Only called for a schema that is valid and resolves.
pub(super) fn mismatches(walk: &Walk<'_>) -> Vec<Problem> {
    let mut registry = None;
    walk.locations
        .iter()
        .filter_map(|location| {
            let default = location.map.get("default")?;
            let accepted = match by_type(location, default) {
                Some(accepted) => accepted,
                None => validator(walk, location, &mut registry)?.is_valid(default),
            };
            (!accepted).then(|| mismatch(location, default))
        })
        .collect()
}

fn mismatch(location: &Location<'_>, default: &Value) -> Problem {
    let found = shown(&default.to_string());
    let problem = match location.map.get("type") {
        Some(kind) if by_type(location, default) == Some(false) => Problem::new(
            &codes::SCHEMA_DEFAULT_MISMATCH,
            format!(
                "the default {found} is not of the type {}",
                shown(&kind.to_string())
            ),
        ),
        _ => Problem::new(
            &codes::SCHEMA_DEFAULT_MISMATCH,
            format!("the default {found} is refused by its own schema"),
        ),
    };
    let problem = problem.at(format!("{}/default", location.pointer));
    if default.is_null() {
        problem.help("remove the default: an optional argument is simply left out")
    } else {
        problem
    }
}

/// The answer where only the type decides, or where the type already refuses.
fn by_type(location: &Location<'_>, default: &Value) -> Option<bool> {
    let names: Vec<&str> = match location.map.get("type")? {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    // Up to draft-07 a reference hides the type beside it.
    if location.map.contains_key("$ref") {
        return None;
    }
    let fits = |name: &&str| match default {
        Value::Null => *name == "null",
        Value::Bool(_) => *name == "boolean",
        Value::String(_) => *name == "string",
        Value::Array(_) => *name == "array",
        Value::Object(_) => *name == "object",
        Value::Number(number) => {
            let whole = number.as_f64().is_none_or(|number| number.fract() == 0.0);
            *name == "number" || (*name == "integer" && whole)
        }
    };
    debug_assert!(names.iter().all(|name| keyword::TYPES.contains(name)));
    if !names.iter().any(fits) {
        return Some(false);
    }
    let only_type = location
        .map
        .keys()
        .all(|key| ANNOTATIONS.contains(&key.as_str()) || !keyword::ALL.contains(&key.as_str()));
    only_type.then_some(true)
}

/// A validator of the subschema, with the whole schema around it so that references resolve.
fn validator<'a>(
    walk: &Walk<'a>,
    location: &Location<'a>,
    registry: &mut Option<Registry<'a>>,
) -> Option<Validator> {
    const BASE: &str = "selu:///schema";
    if registry.is_none() {
        let root = walk.locations.first()?.value;
        *registry = Registry::new()
            .draft(walk.draft)
            .add(BASE, walk.draft.create_resource_ref(root))
            .ok()?
            .prepare()
            .ok();
    }
    let target = format!("{BASE}#{}", pointer::encode(&location.pointer));
    options(walk.draft)
        .with_registry(registry.as_ref()?)
        .build(&json!({ "$ref": target }))
        .ok()
}
