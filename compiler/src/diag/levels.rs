//! Levels of codes: what a project, or the command line, makes of a finding.
//!
//! One rule holds for all of it: an error stays an error. Notes and warnings may be raised, lowered or allowed.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Code, Diagnostic, Severity};

/// What `[diagnostics]` in selu.toml makes of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It is not shown.
    Allow,
    /// It is shown and never fails anything.
    Note,
    /// It is shown, and fails where warnings are denied.
    Warning,
    /// The project does not compile.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Levels by code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Levels(BTreeMap<&'static str, Level>);

impl Levels {
    /// Sets the level of a code. `false` if the code is an error and the level is not: it is not set then.
    pub fn set(&mut self, code: &'static Code, level: Level) -> bool {
        let keeps = code.severity != Severity::Error || level == Level::Error;
        if keeps {
            self.0.insert(code.id, level);
        }
        keeps
    }

    /// What becomes of a code's findings.
    pub fn of(&self, code: &Code) -> Level {
        let own = match code.severity {
            Severity::Note => Level::Note,
            Severity::Warning => Level::Warning,
            Severity::Error => Level::Error,
        };
        self.0.get(code.id).copied().unwrap_or(own)
    }

    /// Gives findings their level and takes out the allowed ones.
    pub fn apply(&self, diagnostics: &mut Vec<Diagnostic>) {
        if self.0.is_empty() {
            return;
        }
        diagnostics.retain_mut(|diagnostic| {
            match self.0.get(diagnostic.code.id) {
                None => {}
                Some(Level::Allow) => return false,
                Some(Level::Note) => diagnostic.severity = Severity::Note,
                Some(Level::Warning) => diagnostic.severity = Severity::Warning,
                Some(Level::Error) => diagnostic.severity = Severity::Error,
            }
            true
        });
    }
}

/// Makes every warning an error (`--deny warnings`).
pub fn deny_warnings(diagnostics: &mut [Diagnostic]) {
    for diagnostic in diagnostics {
        if diagnostic.severity == Severity::Warning {
            diagnostic.severity = Severity::Error;
        }
    }
}
