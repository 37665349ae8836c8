//! What is a right schema and refused by model providers all the same. Each of these makes a provider refuse the whole
//! request, with every tool in it; providers tell it by their errors more than by their documents.

use serde_json::{Map, Value};

use super::pointer;
use super::walk::Walk;
use crate::diag::codes::tools as codes;
use crate::diag::{Problem, shown};

/// The longest name of an argument that providers take.
const NAME_MAX: usize = 64;

/// Keywords that providers refuse at the root.
const NOT_AT_ROOT: [&str; 5] = ["allOf", "anyOf", "enum", "not", "oneOf"];

/// Warnings about a schema that is right otherwise.
pub(super) fn problems(walk: &Walk<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, location) in walk.locations.iter().enumerate() {
        if at == 0 {
            root(location.map, &mut problems);
        }
        let here = &location.pointer;
        if location.map.get("type").is_some_and(|kind| kind == "array")
            && !["items", "prefixItems", "$ref"]
                .iter()
                .any(|keyword| location.map.contains_key(*keyword))
        {
            problems.push(
                refused("an array without `items`")
                    .help("say what its items are, such as `items: {type: string}`")
                    .at_key(here),
            );
        }
        let properties = location.map.get("properties").and_then(Value::as_object);
        for name in properties.into_iter().flat_map(Map::keys) {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            let place = pointer::push(&pointer::push(here, "properties"), name);
            if name.is_empty() || !name.chars().all(plain) {
                problems.push(
                    refused(&format!("the name `{}`", shown(name)))
                        .help("an argument's name has letters, digits, `_`, `-` and `.`")
                        .at_key(place),
                );
            } else if name.len() > NAME_MAX {
                let message = format!("a name of {} characters", name.len());
                problems.push(
                    refused(&message)
                        .help(format!(
                            "an argument's name has at most {NAME_MAX} characters"
                        ))
                        .at_key(place),
                );
            }
        }
    }
    problems
}

fn root(map: &Map<String, Value>, problems: &mut Vec<Problem>) {
    for keyword in NOT_AT_ROOT
        .iter()
        .filter(|keyword| map.contains_key(**keyword))
    {
        problems.push(
            refused(&format!("`{keyword}` at the root"))
                .help("list every argument below `properties` of the root, and say in the description what goes together")
                .at_key(pointer::push("", keyword)),
        );
    }
    if map.contains_key("$ref") {
        problems.push(
            Problem::new(
                &codes::SCHEMA_FOR_MODELS,
                "model providers follow no `$ref` at the root: the model would see no arguments",
            )
            .help("copy the definition to the root")
            .at_key("/$ref"),
        );
    }
    // A root without `type` is offered to models as an object.
    if map.get("type").is_some_and(|kind| kind != "object") {
        problems.push(
            refused("a root whose type is not `object` alone")
                .help("write `type: object`")
                .at("/type"),
        );
    }
}

fn refused(what: &str) -> Problem {
    Problem::new(
        &codes::SCHEMA_FOR_MODELS,
        format!("model providers refuse {what}"),
    )
}
