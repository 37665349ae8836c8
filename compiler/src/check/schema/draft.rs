//! Which draft of JSON Schema a schema is written in.

use jsonschema::Draft;
use serde_json::Value;

use crate::diag::codes::tools as codes;
use crate::diag::{Problem, shown};

/// Every known draft, the default first, then by how common they are.
pub(super) const KNOWN: &[Draft] = &[
    Draft::Draft202012,
    Draft::Draft7,
    Draft::Draft201909,
    Draft::Draft6,
    Draft::Draft4,
];

/// Its name for people.
pub(super) fn name(draft: Draft) -> &'static str {
    match draft {
        Draft::Draft4 => "draft-04",
        Draft::Draft6 => "draft-06",
        Draft::Draft7 => "draft-07",
        Draft::Draft201909 => "2019-09",
        _ => "2020-12",
    }
}

/// What `$schema` says for it.
pub(super) fn uri(draft: Draft) -> &'static str {
    match draft {
        Draft::Draft4 => "http://json-schema.org/draft-04/schema#",
        Draft::Draft6 => "http://json-schema.org/draft-06/schema#",
        Draft::Draft7 => "http://json-schema.org/draft-07/schema#",
        Draft::Draft201909 => "https://json-schema.org/draft/2019-09/schema",
        _ => "https://json-schema.org/draft/2020-12/schema",
    }
}

/// From the root's `$schema`, else 2020-12.
pub(crate) fn of(root: &Value) -> Result<Draft, Problem> {
    match root.get("$schema") {
        None => Ok(Draft::Draft202012),
        Some(value) => read(value).ok_or_else(|| unknown(value).at("/$schema")),
    }
}

/// A known draft.
pub(super) fn read(value: &Value) -> Option<Draft> {
    match Draft::from_schema_uri(value.as_str()?) {
        Draft::Unknown => None,
        draft => Some(draft),
    }
}

/// The error for any other.
pub(super) fn unknown(value: &Value) -> Problem {
    let found = match value {
        Value::String(text) => shown(text),
        other => shown(&other.to_string()),
    };
    let known: Vec<&str> = KNOWN.iter().copied().map(uri).collect();
    Problem::new(
        &codes::SCHEMA_DRAFT_UNKNOWN,
        format!("`{found}` is not a known draft, and it is never fetched"),
    )
    .help(format!("the known ones are {}", known.join(", ")))
}
