//! Defaults that their own schema refuses.

use std::collections::HashMap;

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

/// Subschemas with references that are built to try defaults: each is built with all that it leads to.
const BUILT_MAX: usize = 50;

/// Every default that its own schema refuses. Only called for a schema that is valid and resolves.
pub(super) fn mismatches(walk: &Walk<'_>) -> Vec<Problem> {
    let mut trial = Trial {
        walk,
        registry: None,
        built: HashMap::new(),
    };
    let mut problems = Vec::new();
    for location in &walk.locations {
        let Some(default) = location.map.get("default") else {
            continue;
        };
        match by_type(location, default).or_else(|| trial.accepts(location, default)) {
            Some(true) => {}
            Some(false) => problems.push(mismatch(location, default)),
            None => {
                problems.push(
                    Problem::new(
                        &codes::SCHEMA_DEFAULT_MISMATCH,
                        format!(
                            "this default was not tried, nor those after it: more than {BUILT_MAX} stand beside references"
                        ),
                    )
                    .at(format!("{}/default", location.pointer)),
                );
                break;
            }
        }
    }
    problems
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

/// Validators of subschemas, with the whole schema around them so that references resolve.
struct Trial<'w, 'a> {
    walk: &'w Walk<'a>,
    registry: Option<Registry<'a>>,
    /// Those with references, by pointer.
    built: HashMap<String, Validator>,
}

impl<'a> Trial<'_, 'a> {
    /// `None` when too many validators would be needed.
    fn accepts(&mut self, location: &Location<'a>, default: &Value) -> Option<bool> {
        let location = decisive(self.walk, location);
        if !has_reference(location.value) {
            return Some(self.build(&location.pointer)?.is_valid(default));
        }
        if let Some(validator) = self.built.get(&location.pointer) {
            return Some(validator.is_valid(default));
        }
        if self.built.len() >= BUILT_MAX {
            return None;
        }
        let validator = self.build(&location.pointer)?;
        let accepted = validator.is_valid(default);
        self.built.insert(location.pointer.clone(), validator);
        Some(accepted)
    }

    fn build(&mut self, pointer: &str) -> Option<Validator> {
        const BASE: &str = "selu:///schema";
        if self.registry.is_none() {
            let root = self.walk.locations.first()?.value;
            self.registry = Registry::new()
                .draft(self.walk.draft)
                .add(BASE, self.walk.draft.create_resource_ref(root))
                .ok()?
                .prepare()
                .ok();
        }
        let target = format!("{BASE}#{}", pointer::encode(pointer));
        options(self.walk.draft)
            .with_registry(self.registry.as_ref()?)
            .build(&json!({ "$ref": target }))
            .ok()
    }
}

/// The target of a reference that stands alone, which many defaults may share; else the location itself.
fn decisive<'l, 'a>(walk: &'l Walk<'a>, location: &'l Location<'a>) -> &'l Location<'a> {
    let alone = location
        .map
        .keys()
        .all(|key| key == "$ref" || (ANNOTATIONS.contains(&key.as_str()) && key != "type"));
    match walk.targets_of(location.value).as_slice() {
        [target] if alone => walk
            .position(target)
            .and_then(|at| walk.locations.get(at))
            .unwrap_or(location),
        _ => location,
    }
}

/// Whether a reference stands anywhere in it.
fn has_reference(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            ["$ref", "$dynamicRef", "$recursiveRef"]
                .into_iter()
                .any(|key| map.contains_key(key))
                || map.values().any(has_reference)
        }
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}
