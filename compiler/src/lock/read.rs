//! Text → lock, strictly: the version first, then everything else, and nothing in doubt.

use camino::Utf8Path;
use serde::Deserialize;
use toml::Spanned;

use super::{Lock, VERSION, marked, wire};
use crate::diag::codes::lock as codes;
use crate::diag::{Code, Diagnostic, Place, shown};
use crate::model::Origin;

/// Why a lock cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// A merge left both sides in it (product.md 26).
    #[error("line {line}: conflict markers of a merge")]
    Conflict {
        /// From 1.
        line: u32,
    },
    /// No version.
    #[error("no `version`: a lock begins with `version = {VERSION}`")]
    VersionMissing,
    /// A version that is none.
    #[error(
        "line {line}, column {column}: `version` is {found}, but it is a whole number such as {VERSION}"
    )]
    VersionInvalid {
        /// From 1.
        line: u32,
        /// From 1, in characters.
        column: u32,
        /// As it stands there.
        found: String,
    },
    /// A version that this compiler does not know (H08).
    #[error(
        "line {line}: the lock has version {found} and needs at least the `selu` that introduced it; this one knows version {VERSION}"
    )]
    VersionNewer {
        /// From 1.
        line: u32,
        /// What it says.
        found: i64,
    },
    /// Not TOML, or not what a lock holds.
    #[error("line {line}, column {column}: {message}")]
    Invalid {
        /// From 1.
        line: u32,
        /// From 1, in characters.
        column: u32,
        /// What is wrong.
        message: String,
    },
}

impl LockError {
    /// What kind of finding it is.
    pub fn code(&self) -> &'static Code {
        match self {
            Self::Conflict { .. } => &codes::CONFLICT,
            Self::VersionMissing | Self::VersionInvalid { .. } => &codes::VERSION,
            Self::VersionNewer { .. } => &codes::VERSION_NEWER,
            Self::Invalid { .. } => &codes::SYNTAX,
        }
    }

    /// Line and column from 1; 0 for the file as a whole.
    pub fn position(&self) -> (u32, u32) {
        match self {
            Self::Conflict { line } | Self::VersionNewer { line, .. } => (*line, 1),
            Self::VersionMissing => (0, 0),
            Self::VersionInvalid { line, column, .. } | Self::Invalid { line, column, .. } => {
                (*line, *column)
            }
        }
    }

    /// As a finding in the named file, with its cure.
    pub fn diagnostic(&self, file: &Utf8Path) -> Diagnostic {
        let (line, column) = self.position();
        let message = match self {
            Self::Conflict { .. } => "conflict markers of a merge".to_owned(),
            Self::Invalid { message, .. } => message.clone(),
            Self::VersionNewer { found, .. } => format!(
                "the lock has version {found} and needs at least the `selu` that introduced it; this one knows version {VERSION}"
            ),
            Self::VersionInvalid { found, .. } => {
                format!("`version` is {found}, but it is a whole number such as {VERSION}")
            }
            Self::VersionMissing => self.to_string(),
        };
        let place = Place {
            origin: Origin {
                file: file.to_owned(),
                line,
                column,
            },
            length: u32::from(line > 0),
            path: String::new(),
        };
        Diagnostic::new(self.code(), place, message).help(self.code().cure)
    }
}

impl Lock {
    /// Reads selu.lock. A byte-order mark and CRLF are fine.
    ///
    /// # Errors
    /// When the text is not a lock of a version that this compiler knows.
    pub fn read(text: &str) -> Result<Self, LockError> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        if let Some(index) = text.lines().position(marked::is_marker) {
            return Err(LockError::Conflict {
                line: number(index + 1),
            });
        }
        check_version(text)?;
        let file: wire::File = toml::from_str(text).map_err(|error| toml_error(text, &error))?;
        let instances = file.into_instances().map_err(|fault| {
            let (line, column) = position(text, fault.offset);
            LockError::Invalid {
                line,
                column,
                message: fault.message,
            }
        })?;
        Ok(Self { instances })
    }
}

/// Only the version, whatever else there is: a newer lock may have fields and forms that are unknown here.
#[derive(Deserialize)]
struct Versioned {
    version: Option<Spanned<toml::Value>>,
}

fn check_version(text: &str) -> Result<(), LockError> {
    // A lock as it is written need not be read twice for this: whatever else is wrong is found with all the rest.
    if scanned_version(text).is_some_and(|(_, found)| found == i64::from(VERSION)) {
        return Ok(());
    }
    let versioned: Versioned = match toml::from_str(text) {
        Ok(versioned) => versioned,
        // A newer lock may not even be the TOML that is known here.
        Err(error) => {
            return Err(match scanned_version(text) {
                Some((line, found)) if found > i64::from(VERSION) => {
                    LockError::VersionNewer { line, found }
                }
                _ => toml_error(text, &error),
            });
        }
    };
    let Some(version) = versioned.version else {
        return Err(LockError::VersionMissing);
    };
    let (line, column) = position(text, version.span().start);
    match version.get_ref() {
        toml::Value::Integer(found) if *found == i64::from(VERSION) => Ok(()),
        toml::Value::Integer(found) if *found > i64::from(VERSION) => {
            Err(LockError::VersionNewer {
                line,
                found: *found,
            })
        }
        other => Err(LockError::VersionInvalid {
            line,
            column,
            found: shown(&other.to_string()),
        }),
    }
}

/// The version in the first line that says something.
fn scanned_version(text: &str) -> Option<(u32, i64)> {
    let (index, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))?;
    let value = line
        .trim()
        .strip_prefix("version")?
        .trim_start()
        .strip_prefix('=')?;
    Some((number(index + 1), value.trim().parse().ok()?))
}

fn toml_error(text: &str, error: &toml::de::Error) -> LockError {
    let span = error.span().unwrap_or_default();
    let (line, column) = position(text, span.start);
    let message = shown(error.message().trim());
    let what = text
        .get(span)
        .filter(|what| !what.is_empty() && !what.contains('\n'));
    LockError::Invalid {
        line,
        column,
        message: match what {
            Some(what) => format!("{message} at `{}`", shown(what)),
            None => message,
        },
    }
}

/// Line and column, from 1, of a byte.
fn position(text: &str, offset: usize) -> (u32, u32) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = text.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |line| line.chars().count())
        + 1;
    (number(line), number(column))
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
