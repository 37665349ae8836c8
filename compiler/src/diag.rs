//! Findings: a unique code, a severity, a place, a cure.
//!
//! A [`Code`] is declared once, in the file of its family below [`codes`], together with its documentation;
//! docs/diagnostics.md is generated from there. Codes are never reused.

pub mod codes;
pub mod levels;
pub mod render;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::model::Origin;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know; never fails anything.
    Note,
    /// Legal but most likely not meant.
    Warning,
    /// The project does not compile.
    Error,
}

/// A kind of finding.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// `SELU` and four digits; the first two are the family.
    pub id: &'static str,
    /// Kebab-case, for people.
    pub name: &'static str,
    /// The severity unless selu.toml says otherwise.
    pub severity: Severity,
    /// Ids of the rules that it enforces, such as `T3`.
    pub rules: &'static [&'static str],
    /// Why this is a finding, one or two sentences.
    pub cause: &'static str,
    /// What to do.
    pub cure: &'static str,
    /// A smallest example that causes it (YAML or TOML).
    pub example: &'static str,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind.
    pub code: &'static Code,
    /// After per-code levels of selu.toml.
    pub severity: Severity,
    /// One sentence that names what was found and what is allowed. No trailing period.
    pub message: String,
    /// Where.
    pub place: Place,
    /// The way out, if the message does not already say it.
    pub help: Option<String>,
    /// Text that can be pasted over the place.
    pub suggestion: Option<String>,
    /// Other places that matter: the first of two duplicates, the manifest that an agent names.
    pub related: Vec<Related>,
}

/// Where a finding is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// File, line and column where it starts. Line 0 and column 0 mean the file or folder as a whole.
    pub origin: Origin,
    /// Characters to underline on that line; at least 1 unless the whole file is meant.
    pub length: u32,
    /// Path of the field, such as `tools[2].input_schema.type`; empty where there is none.
    pub path: String,
}

/// A further place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// Where.
    pub place: Place,
    /// What is there, such as "first defined here".
    pub message: String,
}

impl Diagnostic {
    /// A finding with its code's own severity and nothing besides.
    pub fn new(code: &'static Code, place: Place, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity,
            message: message.into(),
            place,
            help: None,
            suggestion: None,
            related: Vec::new(),
        }
    }

    /// Adds the way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds text that can be pasted over the place.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Adds a further place.
    #[must_use]
    pub fn related(mut self, place: Place, message: impl Into<String>) -> Self {
        self.related.push(Related {
            place,
            message: message.into(),
        });
        self
    }
}

/// Text from a file or a container as a message shows it: characters that cannot be seen are escaped, so that nothing
/// hides or reorders what a person reads, and what is too long ends in an ellipsis.
pub fn shown(text: &str) -> String {
    const LIMIT: usize = 120;
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == LIMIT {
            out.push('…');
            break;
        }
        match c {
            '"' | '\'' | '\\' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
    }
    out
}

/// A value's kind in words, as messages name it.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A finding inside one value, before the place of that value is known: what the pure leaf checks return. The caller
/// adds the place by looking up `pointer` below the value's own pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind.
    pub code: &'static Code,
    /// JSON pointer from the value that was checked: empty for the value itself, else `/properties/city/type`.
    pub pointer: String,
    /// Whether the key at `pointer` is at fault, not its value.
    pub at_key: bool,
    /// As in [`Diagnostic::message`].
    pub message: String,
    /// As in [`Diagnostic::help`].
    pub help: Option<String>,
    /// As in [`Diagnostic::suggestion`].
    pub suggestion: Option<String>,
}

impl Problem {
    /// A problem at the value itself; [`Self::at`] and [`Self::at_key`] move it.
    pub fn new(code: &'static Code, message: impl Into<String>) -> Self {
        Self {
            code,
            pointer: String::new(),
            at_key: false,
            message: message.into(),
            help: None,
            suggestion: None,
        }
    }

    /// Puts it at the value that `pointer` names.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = pointer.into();
        self
    }

    /// Puts it at the key that `pointer` names.
    #[must_use]
    pub fn at_key(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = pointer.into();
        self.at_key = true;
        self
    }

    /// Adds the way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds text that can be pasted over the place.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Whether it keeps the project from compiling.
    pub fn is_error(&self) -> bool {
        self.code.severity == Severity::Error
    }
}
