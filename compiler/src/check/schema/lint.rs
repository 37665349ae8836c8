//! What is legal JSON Schema and most likely not meant (I13).

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::keyword;
use super::pointer;
use super::walk::{Location, Walk};
use crate::diag::codes::tools as codes;
use crate::diag::{Problem, shown};

/// Findings that get a suggestion; measuring distances takes time, and nobody reads more.
const SUGGESTIONS_MAX: usize = 20;

/// Declared names that a suggestion is looked for among, for the same reason.
const CANDIDATES_MAX: usize = 300;

/// Unknown keys that are nearly keywords, or that look like properties one level too high. Other unknown keys are kept
/// in silence.
pub(super) fn keywords(walk: &Walk<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for location in &walk.locations {
        for (key, value) in location.map {
            if keyword::ALL.contains(&key.as_str()) || key.starts_with("x-") {
                continue;
            }
            let place = pointer::push(&location.pointer, key);
            if key == "nullable" {
                problems.push(
                    Problem::new(
                        &codes::SCHEMA_KEYWORD_MISSPELT,
                        "`nullable` is no keyword of JSON Schema and checks nothing",
                    )
                    .help("list the types: `type: [string, \"null\"]`")
                    .at_key(place),
                );
            } else if let Some(meant) =
                keyword::meant(key).filter(|m| !location.map.contains_key(*m))
            {
                problems.push(
                    Problem::new(
                        &codes::SCHEMA_KEYWORD_MISSPELT,
                        format!("`{}` is not a keyword and checks nothing", shown(key)),
                    )
                    .help(format!("write `{meant}`"))
                    .suggest(meant)
                    .at_key(place),
                );
            } else if looks_like_property(location, value) {
                problems.push(
                    Problem::new(
                        &codes::SCHEMA_KEYWORD_MISPLACED,
                        format!("`{}` is not a keyword and checks nothing", shown(key)),
                    )
                    .help(format!(
                        "if it is a property, write `properties: {{{}: …}}`",
                        shown(key)
                    ))
                    .at_key(place),
                );
            }
        }
    }
    problems
}

/// A schema beside `type: object`, or beside `properties` instead of below it.
fn looks_like_property(location: &Location<'_>, value: &Value) -> bool {
    let is_object = location.map.get("type").is_none_or(|kind| kind == "object");
    let is_schema = value.as_object().is_some_and(|map| {
        let kind = map.get("type").and_then(Value::as_str);
        kind.is_some_and(|kind| keyword::TYPES.contains(&kind)) || map.contains_key("$ref")
    });
    is_object && is_schema
}

/// Numbers and booleans among the values of a string: in YAML a missing pair of quotes, and `1.10` is 1.1 then (A03).
pub(super) fn enums(walk: &Walk<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for location in &walk.locations {
        let types: Vec<&str> = match location.map.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => continue,
        };
        if !types.contains(&"string") {
            continue;
        }
        let values = location
            .map
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(index, value)| ("enum", format!("{}/enum/{index}", location.pointer), value))
            .chain(
                location
                    .map
                    .get("const")
                    .map(|value| ("const", format!("{}/const", location.pointer), value)),
            );
        for (keyword, place, value) in values {
            let kind = match value {
                Value::Number(_) if !types.contains(&"number") && !types.contains(&"integer") => {
                    "number"
                }
                Value::Bool(_) if !types.contains(&"boolean") => "boolean",
                _ => continue,
            };
            problems.push(
                Problem::new(
                    &codes::SCHEMA_ENUM_TYPE,
                    format!("`{keyword}` holds the {kind} {value}, but the type is string"),
                )
                .help("quote it as it is meant")
                .at(place),
            );
        }
    }
    problems
}

/// Names in `required` that nothing declares for the same value.
pub(super) fn required(walk: &Walk<'_>) -> Vec<Problem> {
    let mut declared: HashMap<usize, Declared<'_>> = HashMap::new();
    let mut problems = Vec::new();
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); walk.locations.len()];
    for (at, location) in walk.locations.iter().enumerate() {
        if let Some(owner) = location.same_value.and_then(|owner| parts.get_mut(owner)) {
            owner.push(at);
        }
    }
    for (at, location) in walk.locations.iter().enumerate() {
        let Some(names) = location.map.get("required").and_then(Value::as_array) else {
            continue;
        };
        // A definition without properties is one half of an `allOf` elsewhere.
        let is_definition = pointer::segments(&location.pointer)
            .iter()
            .rev()
            .nth(1)
            .is_some_and(|around| around == "$defs" || around == "definitions");
        if is_definition && !location.map.contains_key("properties") {
            continue;
        }
        let mut top = at;
        while let Some(owner) = walk.locations.get(top).and_then(|l| l.same_value) {
            top = owner;
        }
        let declared = declared
            .entry(top)
            .or_insert_with(|| Declared::from(top, walk, &parts));
        if declared.open {
            continue;
        }
        for (index, name) in names.iter().enumerate() {
            let Some(name) = name.as_str().filter(|name| !declared.names.contains(name)) else {
                continue;
            };
            let mut problem = Problem::new(
                &codes::SCHEMA_REQUIRED_UNDECLARED,
                format!(
                    "`{}` is required but not declared in `properties`",
                    shown(name)
                ),
            )
            .at(format!("{}/required/{index}", location.pointer));
            let near = (problems.len() < SUGGESTIONS_MAX && declared.names.len() <= CANDIDATES_MAX)
                .then(|| nearest(name, &declared.names))
                .flatten();
            if let Some(near) = near {
                problem = problem
                    .help(format!("write `{}`", shown(near)))
                    .suggest(near);
            }
            problems.push(problem);
        }
    }
    problems
}

/// The one declared name that is close.
fn nearest<'a>(name: &str, names: &BTreeSet<&'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    let limit = if name.chars().count() < 5 { 1 } else { 2 };
    names
        .iter()
        .filter(|other| name.len() <= LONGEST && name.len().abs_diff(other.len()) <= 2 * limit)
        .map(|other| (strsim::osa_distance(name, other), *other))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, near)| near)
}

/// What is declared for one value, by all schemas that apply to it.
struct Declared<'a> {
    names: BTreeSet<&'a str>,
    /// Whether other names are described too: by pattern, as a map, or by a reference that leads nowhere.
    open: bool,
}

impl<'a> Declared<'a> {
    fn from(top: usize, walk: &Walk<'a>, parts: &[Vec<usize>]) -> Self {
        let mut declared = Self {
            names: BTreeSet::new(),
            open: false,
        };
        let mut seen = HashSet::new();
        let mut open = vec![top];
        while let Some(at) = open.pop() {
            let Some(location) = walk.locations.get(at).filter(|_| seen.insert(at)) else {
                continue;
            };
            if let Some(properties) = location.map.get("properties").and_then(Value::as_object) {
                declared.names.extend(properties.keys().map(String::as_str));
            }
            declared.open |= location.map.contains_key("patternProperties");
            declared.open |= ["additionalProperties", "unevaluatedProperties"]
                .into_iter()
                .filter_map(|key| location.map.get(key)?.as_object())
                .any(|schema| !schema.is_empty());
            open.extend(parts.get(at).into_iter().flatten());
            let targets = walk.targets_of(location.value);
            declared.open |= targets.is_empty()
                && ["$ref", "$dynamicRef", "$recursiveRef"]
                    .into_iter()
                    .any(|key| location.map.contains_key(key));
            open.extend(
                targets
                    .into_iter()
                    .filter_map(|target| walk.position(target)),
            );
        }
        declared
    }
}
