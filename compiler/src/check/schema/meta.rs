//! What the metaschema says, in words that name the keyword and what it takes.

use std::collections::BTreeMap;

use jsonschema::Draft;
use jsonschema::meta::MetaValidator;
use serde_json::Value;

use super::keyword::{self, type_meant};
use super::walk::Walk;
use super::{draft, pointer};
use crate::diag::codes::tools as codes;
use crate::diag::{Problem, shown};

/// Every place that the draft's metaschema refuses.
pub(super) fn problems(root: &Value, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = innermost(root, errors(root, walk.draft), walk);
    for at in &walk.hidden {
        if let Some(location) = walk.locations.get(*at) {
            for (place, message) in errors(location.value, walk.draft) {
                found.insert(format!("{}{place}", location.pointer), message);
            }
        }
    }
    for place in walk.not_schemas.keys() {
        found.entry(place.clone()).or_default();
    }
    let other = other_draft(root, walk, &found);
    found
        .iter()
        .map(|(place, message)| {
            let problem = explain(root, place, message, walk);
            match other {
                None => problem,
                Some(other) => Problem {
                    code: &codes::SCHEMA_OTHER_DRAFT,
                    message: format!(
                        "valid in {} only, but read as {}: {}",
                        draft::name(other),
                        draft::name(walk.draft),
                        problem.message
                    ),
                    help: Some(format!("set `$schema` to `{}`", draft::uri(other))),
                    suggestion: None,
                    ..problem
                },
            }
        })
        .collect()
}

/// Where a metaschema allows a schema or something else, it refuses the schema as a whole; what is wrong is inside.
fn innermost(
    root: &Value,
    found: BTreeMap<String, String>,
    walk: &Walk<'_>,
) -> BTreeMap<String, String> {
    let mut innermost = BTreeMap::new();
    let mut open: Vec<(String, String)> = found.into_iter().collect();
    while let Some((place, message)) = open.pop() {
        let inner = match root.pointer(&place) {
            Some(value) if !place.is_empty() && walk.at(&place).is_some() => {
                errors(value, walk.draft)
            }
            _ => BTreeMap::new(),
        };
        if inner.is_empty() || inner.contains_key("") {
            innermost.insert(place, message);
            continue;
        }
        for (below, message) in inner {
            open.push((format!("{place}{below}"), message));
        }
    }
    innermost
}

/// Pointer → message.
fn errors(schema: &Value, draft: Draft) -> BTreeMap<String, String> {
    validator(draft)
        .iter_errors(schema)
        .map(|error| (error.instance_path().as_str().to_owned(), error.to_string()))
        .collect()
}

/// The validators are built once for each draft, in the library.
fn validator(draft: Draft) -> MetaValidator<'static> {
    match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validator(),
        Draft::Draft6 => jsonschema::draft6::meta::validator(),
        Draft::Draft7 => jsonschema::draft7::meta::validator(),
        Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
        _ => jsonschema::draft202012::meta::validator(),
    }
}

/// A draft in which the schema is valid, and which knows the keywords that this one refuses.
fn other_draft(root: &Value, walk: &Walk<'_>, found: &BTreeMap<String, String>) -> Option<Draft> {
    if found.is_empty() {
        return None;
    }
    draft::KNOWN.iter().copied().find(|other| {
        *other != walk.draft
            && validator(*other).is_valid(root)
            && walk
                .hidden
                .iter()
                .filter_map(|at| walk.locations.get(*at))
                .all(|location| validator(*other).is_valid(location.value))
            && found.keys().all(|place| {
                keyword_at(place, walk).is_some_and(|(around, keyword)| {
                    // Old metaschemas say nothing about `$ref` and its like, nor look below `$defs`.
                    !keyword.starts_with('$')
                        && other.is_known_keyword(&keyword)
                        && root
                            .pointer(&around)
                            .is_some_and(|schema| validator(*other).is_valid(schema))
                })
            })
    })
}

/// The nearest subschema around a place, and the keyword of it that the place belongs to.
fn keyword_at(place: &str, walk: &Walk<'_>) -> Option<(String, String)> {
    let mut end = place.len();
    while let Some(slash) = place.get(..end).and_then(|text| text.rfind('/')) {
        let around = place.get(..slash)?;
        if walk.at(around).is_some() {
            let keyword = pointer::segments(place.get(slash..end)?).pop()?;
            return Some((around.to_owned(), keyword));
        }
        end = slash;
    }
    None
}

fn explain(root: &Value, place: &str, message: &str, walk: &Walk<'_>) -> Problem {
    let value = root.pointer(place).unwrap_or(&Value::Null);
    let found = shown(&value.to_string());
    let invalid = |message: String| Problem::new(&codes::SCHEMA_INVALID, message).at(place);
    let Some((around, keyword)) = keyword_at(place, walk) else {
        return invalid(shown(message));
    };
    let direct = pointer::push(&around, &keyword) == place;
    if walk.not_schemas.contains_key(place) && !direct {
        return not_a_schema(place, &keyword, value, &invalid);
    }
    let expects = keyword::expects(&keyword);
    let problem = match (expects, direct) {
        (Some(expects), true) => invalid(format!("`{keyword}` is {found}; it must be {expects}")),
        (Some(expects), false) => {
            invalid(format!("`{keyword}` holds {found}; it must be {expects}"))
        }
        (None, _) => invalid(format!("`{keyword}`: {}", shown(message))),
    };
    match (keyword.as_str(), value) {
        ("type", Value::String(text)) => match type_meant(text) {
            Some(meant) => problem.help(format!("write `{meant}`")).suggest(meant),
            None => problem,
        },
        ("required", Value::Bool(_)) => {
            problem.help("list the name in `required` of the object that has the property")
        }
        ("required", Value::String(name)) if direct => problem.suggest(format!("[{name}]")),
        (_, Value::String(text)) => match requoted(text, expects) {
            Some(plain) => problem
                .help(format!("write `{plain}` without quotes"))
                .suggest(plain),
            None => problem,
        },
        _ => problem,
    }
}

/// The value of an entry below `properties`, `$defs`, `allOf` and their like.
fn not_a_schema(
    place: &str,
    keyword: &str,
    value: &Value,
    invalid: &dyn Fn(String) -> Problem,
) -> Problem {
    let name = pointer::segments(place).pop().unwrap_or_default();
    let found = shown(&value.to_string());
    let problem = invalid(format!(
        "`{}` below `{keyword}` is {found}; it must be a schema: an object, true or false",
        shown(&name)
    ));
    match value {
        // `properties: {type: object}`: the keywords slid one level down.
        _ if keyword == "properties"
            && keyword::ALL.contains(&name.as_str())
            && keyword::holds(&name).is_none()
            && (name != "description" && name != "title" || value.is_string()) =>
        {
            problem.help(format!(
                "if the keyword `{name}` is meant, move it out of `properties`; a property of that name is written `{name}: {{type: …}}`"
            ))
        }
        Value::String(text) => match type_meant(text) {
            Some(meant) => problem
                .help(format!("write `{{type: {meant}}}`"))
                .suggest(format!("{{type: {meant}}}")),
            None => problem,
        },
        _ => problem,
    }
}

/// A number or boolean that was put in quotes by mistake.
fn requoted(text: &str, expects: Option<&str>) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let fits = match expects? {
        expects if expects.contains("number") => value.is_number(),
        expects if expects.contains("true or false") => value.is_boolean(),
        _ => false,
    };
    fits.then(|| text.to_owned())
}
