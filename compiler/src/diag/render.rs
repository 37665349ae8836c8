//! Findings as text for people, as JSON for programs, as SARIF and as GitHub's annotations.

mod github;
mod json;
mod sarif;
mod text;

use std::borrow::Cow;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};

use super::{Diagnostic, Severity};
use crate::report::hidden;

pub use github::github;
pub use json::{json, json_schema};
pub use sarif::sarif;
pub(crate) use sarif::{artifact, run};
pub use text::{Look, Texts, text, text_for};

/// Version of the JSON form.
pub const FORMAT_VERSION: &str = "1.0";

/// How many findings there are of each severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Any of these means that nothing compiles.
    pub errors: usize,
    /// Most likely not meant.
    pub warnings: usize,
    /// Good to know.
    pub notes: usize,
}

/// Counts findings; exit codes and the last line that people read both come from here.
pub fn count(diagnostics: &[Diagnostic]) -> Counts {
    let of = |severity| {
        diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == severity)
            .count()
    };
    Counts {
        errors: of(Severity::Error),
        warnings: of(Severity::Warning),
        notes: of(Severity::Note),
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (self.errors, "error"),
            (self.warnings, "warning"),
            (self.notes, "note"),
        ];
        let parts: Vec<String> = words
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| {
                let plural = if *number == 1 { "" } else { "s" };
                format!("{number} {word}{plural}")
            })
            .collect();
        if parts.is_empty() {
            f.write_str("no findings")
        } else {
            f.write_str(&parts.join(", "))
        }
    }
}

/// A path from where the caller stands; `base` leads there to the directory that was checked.
fn below(base: &Utf8Path, file: &Utf8Path) -> Utf8PathBuf {
    let path = if base == "." {
        file.to_owned()
    } else if file.as_str().is_empty() {
        base.to_owned()
    } else {
        base.strip_prefix(".").unwrap_or(base).join(file)
    };
    if path.as_str().is_empty() {
        Utf8PathBuf::from(".")
    } else {
        path
    }
}

/// Text from files or containers, with what a terminal would obey or hide made visible.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if hidden(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}
