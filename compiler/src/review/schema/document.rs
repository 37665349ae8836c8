//! One of the two schemas as a whole: what its references lead to.

use std::collections::HashSet;
use std::sync::LazyLock;

use jsonschema::Draft;
use serde_json::{Map, Value};

use crate::check::schema::{draft, pointer};

/// A schema with its references.
pub(super) struct Document<'a> {
    pub(super) root: &'a Value,
    draft: Draft,
}

/// The schema that accepts everything.
pub(super) const ANY: &Value = &Value::Bool(true);

/// The same, as an object.
static ANYTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// A schema as an object. `false` has none.
pub(super) fn map(schema: &Value) -> Option<&Map<String, Value>> {
    match schema {
        Value::Object(map) => Some(map),
        Value::Bool(true) => Some(&ANYTHING),
        _ => None,
    }
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self {
            root,
            // A draft that nobody knows is refused long before; what is compared here is then undecided anyway.
            draft: draft::of(root).unwrap_or(Draft::Draft202012),
        }
    }

    /// Before 2019-09 what stands beside a `$ref` is ignored.
    pub(super) fn ignores_siblings(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }

    /// Whether references may lead to places that a pointer does not name.
    pub(super) fn is_opaque(&self) -> bool {
        let identifier = if self.draft == Draft::Draft4 {
            "id"
        } else {
            "$id"
        };
        let names_itself = |(key, value): (&String, &Value)| {
            value.is_string()
                && (key == identifier
                    || matches!(
                        key.as_str(),
                        "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveRef"
                    ))
                || key == "$recursiveAnchor"
                || key == "$ref" && value.as_str().is_some_and(|text| !is_pointer(text))
        };
        any(self.root, &|value| {
            value
                .as_object()
                .is_some_and(|map| map.iter().any(names_itself))
        })
    }

    /// What a reference leads to.
    pub(super) fn resolve(&self, reference: &Value) -> Option<&'a Value> {
        self.at(&pointer::decode(reference.as_str()?.strip_prefix('#')?)?)
    }

    pub(super) fn at(&self, pointer: &str) -> Option<&'a Value> {
        pointer::resolve(self.root, pointer)
    }

    /// Whether every reference in `part`, which both have, leads to the same in both.
    pub(super) fn leads_to_the_same(&self, other: &Document<'_>, part: &Value) -> bool {
        let mut seen = HashSet::new();
        let mut open = references(part);
        while let Some(reference) = open.pop() {
            if !seen.insert(reference.clone()) {
                continue;
            }
            let reference = Value::String(reference);
            match (self.resolve(&reference), other.resolve(&reference)) {
                (Some(mine), Some(theirs)) if mine == theirs => open.extend(references(mine)),
                _ => return false,
            }
        }
        true
    }
}

/// Every reference in a part of a schema.
fn references(part: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![part];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(reference)) = map.get("$ref") {
                    found.push(reference.clone());
                }
                open.extend(map.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

fn any(root: &Value, is: &dyn Fn(&Value) -> bool) -> bool {
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        if is(value) {
            return true;
        }
        match value {
            Value::Object(map) => open.extend(map.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}

fn is_pointer(reference: &str) -> bool {
    reference == "#" || reference.starts_with("#/")
}
