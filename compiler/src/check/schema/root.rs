//! The root must accept an object (I06).

use std::collections::HashMap;

use serde_json::Value;

use super::keyword::type_meant;
use super::walk::Walk;
use crate::diag::codes::tools as codes;
use crate::diag::{Problem, shown};

/// The problem of a root that is not an object with keywords.
pub(super) fn not_an_object(root: &Value) -> Problem {
    let error = |message: String| Problem::new(&codes::SCHEMA_ROOT, message);
    match root {
        Value::Object(_) => empty("`{}`"),
        Value::Bool(true) => empty("`true`"),
        Value::Bool(false) => {
            error("`false` accepts nothing, so the tool could never be called".to_owned())
        }
        Value::Null => error("the schema is empty".to_owned())
            .help("write `{type: object, properties: {}}` for a tool without arguments"),
        Value::String(text) => {
            let is_json = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
            if is_json {
                error("the schema is JSON text in a string, not an object".to_owned())
                    .help("write the object itself, without quotes around it")
            } else {
                let problem = error(format!("`{}` is a string, not a schema", shown(text)));
                match type_meant(text) {
                    Some(_) => problem.help("write `{type: object, properties: {…}}`"),
                    None => problem,
                }
            }
        }
        Value::Array(_) => error("the schema is a list, not an object".to_owned()),
        Value::Number(number) => error(format!("`{number}` is a number, not a schema")),
    }
}

fn empty(found: &str) -> Problem {
    Problem::new(
        &codes::SCHEMA_EMPTY,
        format!("{found} accepts any arguments and tells the model nothing about them"),
    )
    .help("write `{type: object, properties: {}}` for a tool without arguments")
}

/// The error of a root that no object can satisfy by its `type`, `enum` or `const`, followed through references and
/// combinations.
pub(super) fn refuses_objects(root: &Value, walk: &Walk<'_>) -> Option<Problem> {
    let mut known = HashMap::new();
    if accepts(root, walk, &mut known) {
        return None;
    }
    let mut problem = Problem::new(
        &codes::SCHEMA_ROOT,
        "the root accepts no object, but the arguments of a tool are one",
    );
    if let Some(kind) = root.get("type") {
        problem = Problem::new(
            &codes::SCHEMA_ROOT,
            format!(
                "the root's type is `{}`, but the arguments of a tool are an object",
                in_words(kind)
            ),
        )
        .at("/type");
        if kind == "array" {
            problem = problem.help("put the array below `properties` of an object");
        }
    }
    Some(problem)
}

fn in_words(kind: &Value) -> String {
    match kind {
        Value::String(text) => shown(text),
        other => shown(&other.to_string()),
    }
}

/// Only for schemas without loops; `known` keeps references that fan out from being followed again and again.
fn accepts<'a>(
    schema: &'a Value,
    walk: &Walk<'a>,
    known: &mut HashMap<*const Value, bool>,
) -> bool {
    if let Some(accepts) = known.get(&std::ptr::from_ref(schema)) {
        return *accepts;
    }
    let Value::Object(map) = schema else {
        return schema != &Value::Bool(false);
    };
    let by_type = match map.get("type") {
        // Anything but a name or names is the metaschema's finding.
        Some(Value::String(name)) => {
            name == "object" || !super::keyword::TYPES.contains(&name.as_str())
        }
        Some(Value::Array(names)) => names.is_empty() || names.iter().any(|name| name == "object"),
        _ => true,
    };
    let by_value = map
        .get("enum")
        .and_then(Value::as_array)
        .is_none_or(|values| values.is_empty() || values.iter().any(Value::is_object))
        && map.get("const").is_none_or(Value::is_object);
    let mut each = |keyword: &str| -> Vec<bool> {
        map.get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|part| accepts(part, walk, known))
            .collect()
    };
    let all = each("allOf").into_iter().all(|accepts| accepts);
    let any = ["anyOf", "oneOf"].into_iter().all(|keyword| {
        let parts = each(keyword);
        parts.is_empty() || parts.contains(&true)
    });
    let targets = walk.targets_of(schema);
    let by_reference = targets
        .into_iter()
        .all(|target| accepts(target, walk, known));
    let accepted = by_type && by_value && all && any && by_reference;
    known.insert(std::ptr::from_ref(schema), accepted);
    accepted
}
