//! Tool schemas (T3): JSON Schema whose root accepts an object, read without fetching anything.
//!
//! The metaschema alone misses dangling references and bad regular expressions, so that a walk over all subschemas
//! checks those with precise places, and a validator is built in the end: what cannot be built cannot check a call.

mod default;
pub(crate) mod draft;
mod keyword;
mod lint;
mod meta;
mod models;
mod plain;
pub(crate) mod pointer;
mod regex;
mod root;
mod walk;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jsonschema::Draft;
use serde_json::Value;

use self::walk::Walk;
use crate::diag::codes::tools as codes;
use crate::diag::{Problem, Severity};

/// Levels of nesting.
pub const DEPTH_MAX: usize = 64;

/// Values of any kind, the root included.
pub const NODES_MAX: usize = 10_000;

/// Bytes of compact JSON.
pub const BYTES_MAX: usize = 1024 * 1024;

/// Bytes of one compiled regular expression.
const REGEX_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Results are remembered for schemas up to this many values: the same few occur thousands of times in a project.
const REMEMBERED_NODES_MAX: usize = 500;

/// How many results are remembered.
const REMEMBERED_MAX: usize = 2048;

/// Results by schema, as compact JSON: as a tree it would take several times the room. A pure function's memory, which no
/// caller can tell from its absence.
static REMEMBERED: Mutex<Option<HashMap<String, Vec<Problem>>>> = Mutex::new(None);

/// Everything that is wrong with an `input_schema`, errors and warnings.
pub fn schema(value: &Value) -> Vec<Problem> {
    let size = match Size::of(value) {
        Ok(size) => size,
        Err(problem) => return vec![problem],
    };
    if plain::is_right(value) {
        return Vec::new();
    }
    if size.nodes > REMEMBERED_NODES_MAX {
        return check(value);
    }
    let text = value.to_string();
    let mut remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(problems) = remembered.get_or_insert_default().get(&text) {
        return problems.clone();
    }
    drop(remembered);
    let problems = check(value);
    let mut remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    let remembered = remembered.get_or_insert_default();
    if remembered.len() >= REMEMBERED_MAX {
        remembered.clear();
    }
    remembered.insert(text, problems.clone());
    problems
}

fn check(value: &Value) -> Vec<Problem> {
    match value {
        Value::Object(map) if !map.is_empty() => {}
        other => return vec![root::not_an_object(other)],
    }
    let draft = match draft::of(value) {
        Ok(draft) => draft,
        Err(problem) => return vec![problem],
    };
    let walk = Walk::over(value, draft);
    let mut problems = meta::problems(value, &walk);
    let references = walk.references();
    if references.is_empty() {
        problems.extend(root::refuses_objects(value, &walk));
    }
    problems.extend(references);
    problems.extend(regex::problems(&walk));
    problems.extend(lint::enums(&walk));
    let sound = problems.is_empty();
    problems.extend(lint::keywords(&walk));
    problems.extend(lint::required(&walk));
    if sound {
        problems.extend(models::problems(&walk));
        // Defaults can be tried, and a validator built, only where everything resolves.
        match build(value, draft) {
            Ok(()) => problems.extend(default::mismatches(&walk)),
            Err(problem) => problems.push(problem),
        }
    }
    problems.sort_by(|a, b| {
        let key = |problem: &Problem| (problem.code.severity == Severity::Error, problem.code.id);
        (&a.pointer, key(b)).cmp(&(&b.pointer, key(a)))
    });
    problems
}

/// The last word: what the validator that checks calls thinks of it.
fn build(value: &Value, draft: Draft) -> Result<(), Problem> {
    options(draft).build(value).map(drop).map_err(|error| {
        Problem::new(
            &codes::SCHEMA_INVALID,
            format!(
                "no validator can be built from this schema: {}",
                crate::diag::shown(&error.to_string())
            ),
        )
        .at(error.instance_path().as_str())
    })
}

/// Which draft a schema is written in.
pub(crate) fn draft_of(root: &Value) -> Result<Draft, Problem> {
    draft::of(root)
}

/// How schemas are read everywhere: the stated draft, nothing fetched, formats not asserted, regular expressions within
/// bounds.
pub(crate) fn options(draft: Draft) -> jsonschema::ValidationOptions<'static> {
    with_regex_bytes(draft, REGEX_BYTES_MAX)
}

/// The same with another bound on the size of one compiled regular expression.
fn with_regex_bytes(draft: Draft, bytes: usize) -> jsonschema::ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(draft)
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(
            jsonschema::PatternOptions::fancy_regex()
                .backtrack_limit(100_000)
                .size_limit(bytes)
                .dfa_size_limit(bytes),
        )
}

/// How large a schema is.
struct Size {
    nodes: usize,
}

impl Size {
    /// Measures, and refuses what is beyond the bounds, with the place where it crosses them.
    fn of(value: &Value) -> Result<Self, Problem> {
        const SCALAR: usize = 32;
        let text = |text: &str| 6 * text.len() + 4;
        let (mut nodes, mut most) = (0, 0);
        // Explicit, so that depth costs no stack.
        let mut open: Vec<(&Value, usize)> = vec![(value, 1)];
        while let Some((value, depth)) = open.pop() {
            nodes += 1;
            if nodes > NODES_MAX {
                return Err(Problem::new(
                    &codes::SCHEMA_TOO_LARGE,
                    format!("the schema has more than {NODES_MAX} values"),
                ));
            }
            if depth > DEPTH_MAX {
                return Err(Problem::new(
                    &codes::SCHEMA_TOO_LARGE,
                    format!("the schema is nested more than {DEPTH_MAX} levels deep"),
                ));
            }
            most += match value {
                Value::Array(items) => {
                    open.extend(items.iter().map(|item| (item, depth + 1)));
                    2 + items.len()
                }
                Value::Object(map) => {
                    open.extend(map.values().map(|value| (value, depth + 1)));
                    2 + map.keys().map(|key| text(key)).sum::<usize>()
                }
                Value::String(string) => text(string),
                Value::Null | Value::Bool(_) | Value::Number(_) => SCALAR,
            };
        }
        // Written out only where it may be too large: escapes make six bytes of one at most.
        let bytes = if most > BYTES_MAX {
            value.to_string().len()
        } else {
            most
        };
        if bytes > BYTES_MAX {
            return Err(Problem::new(
                &codes::SCHEMA_TOO_LARGE,
                format!("the schema has {bytes} bytes of JSON, at most {BYTES_MAX} are allowed"),
            ));
        }
        Ok(Self { nodes })
    }
}

#[cfg(test)]
mod tests;
