//! Env files: `NAME=value` a line, `#` comments, `export` allowed, quotes around a whole value taken off.
//!
//! Nothing is expanded: a `$` in a secret is a `$`.

use std::collections::BTreeSet;

use secrecy::SecretString;

use super::{EnvFile, PREFIX, SecretsError};

/// What is wrong with a line. Never holds the line, which may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvFileError {
    /// No `=`.
    #[error("expected NAME=value")]
    NoEquals,
    /// The name has another form.
    #[error("names in an env file begin with {PREFIX} and hold A-Z, 0-9 and _ only")]
    Name,
    /// A quote that is not closed, or text after it.
    #[error("the value of {0} opens a quote that does not end the line")]
    Quote(String),
    /// The name was there before.
    #[error("{0} is set twice")]
    Duplicate(String),
}

pub(super) fn parse(file: EnvFile<'_>) -> Result<Vec<(String, SecretString)>, SecretsError> {
    let mut seen = BTreeSet::new();
    let mut entries = Vec::new();
    let text = file.text.strip_prefix('\u{feff}').unwrap_or(file.text);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = entry(line).map_err(|problem| fail(file, index, problem))?;
        if !seen.insert(name.to_owned()) {
            let problem = EnvFileError::Duplicate(name.to_owned());
            return Err(fail(file, index, problem));
        }
        entries.push((name.to_owned(), SecretString::from(value)));
    }
    Ok(entries)
}

fn entry(line: &str) -> Result<(&str, &str), EnvFileError> {
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (name, value) = line.split_once('=').ok_or(EnvFileError::NoEquals)?;
    let name = name.trim_end();
    let plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    if !name.starts_with(PREFIX) || !name.bytes().all(plain) {
        return Err(EnvFileError::Name);
    }
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            return match rest.strip_suffix(quote) {
                Some(inner) if !inner.contains(quote) => Ok((name, inner)),
                _ => Err(EnvFileError::Quote(name.to_owned())),
            };
        }
    }
    Ok((name, value))
}

fn fail(file: EnvFile<'_>, index: usize, problem: EnvFileError) -> SecretsError {
    SecretsError::EnvFile {
        file: file.name.to_owned(),
        line: index + 1,
        problem,
    }
}
