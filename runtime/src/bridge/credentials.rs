//! `config_json` as the environment of a subprocess (P1).

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use selu_compiler::check::credential;
use selu_compiler::diag::codes::credentials::NAME_PROXY;
use selu_compiler::diag::shown;
use serde_json::{Map, Value};

use super::error::CallError;
use crate::secrets::Redactor;

/// What a placeholder is set to.
const PLACEHOLDER: &str = "placeholder";

/// Values by name: what one subprocess runs with. It shows no value.
#[derive(Clone)]
pub(super) struct CredentialSet {
    values: BTreeMap<String, SecretString>,
    redactor: Redactor,
}

impl PartialEq for CredentialSet {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            values,
            redactor: _,
        } = self;
        values.len() == other.values.len()
            && values.iter().zip(&other.values).all(|(mine, theirs)| {
                mine.0 == theirs.0 && mine.1.expose_secret() == theirs.1.expose_secret()
            })
    }
}

impl CredentialSet {
    /// Reads the field of a call. No error quotes a value.
    pub(super) fn read(config_json: &[u8]) -> Result<Self, CallError> {
        let mut values = BTreeMap::new();
        for (name, value) in object(config_json, "config_json")? {
            check(&name).map_err(|problem| CallError::Credential { problem })?;
            let wrong = |problem: &str| CallError::Credential {
                problem: format!("{name} {problem}"),
            };
            let Value::String(value) = value else {
                return Err(wrong("must be a string"));
            };
            if value.contains('\0') {
                return Err(wrong(
                    "holds a zero byte, which no environment variable can",
                ));
            }
            values.insert(name, SecretString::from(value));
        }
        let redactor = Redactor::new(values.values().map(ExposeSecret::expose_secret));
        Ok(Self { values, redactor })
    }

    /// The same with a stand-in for each of `names` that has no value.
    pub(super) fn with_placeholders(mut self, names: &[String]) -> Self {
        for name in names {
            if self.lacks(name) {
                self.values
                    .insert(name.clone(), SecretString::from(PLACEHOLDER.to_owned()));
            }
        }
        self
    }

    /// Whether there is no value, or an empty one.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.value(name).is_none()
    }

    /// A value that is not empty.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let value = self.values.get(name)?.expose_secret();
        (!value.is_empty()).then_some(value)
    }

    /// Removes the values from a text. A placeholder is none.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// What the subprocess gets in its environment.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose_secret()))
    }
}

/// C1, once more: whoever speaks to the port could set `LD_PRELOAD` otherwise.
pub(super) fn check(name: &str) -> Result<(), String> {
    match credential::name(name)
        .into_iter()
        .find(|problem| problem.code.id != NAME_PROXY.id)
    {
        Some(problem) => Err(problem.message),
        // The bridge's own word on the time zone holds: lists must not depend on it.
        None if name == "TZ" => Err(format!("`{}` is fixed to UTC", shown(name))),
        None => Ok(()),
    }
}

/// A JSON object of the request. The bytes are not quoted: `config_json` holds secrets.
pub(super) fn object(bytes: &[u8], field: &'static str) -> Result<Map<String, Value>, CallError> {
    let reason = match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => return Ok(object),
        Ok(_) => "it is JSON of another type".to_owned(),
        Err(error) => format!("line {}, column {}", error.line(), error.column()),
    };
    Err(CallError::Request { field, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CredentialSet, String> {
        CredentialSet::read(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn values_become_variables_and_placeholders_fill_what_is_missing() {
        let names = ["MAIL".to_owned(), "PW".to_owned()];
        let set = read(r#"{"MAIL": "a@b", "PW": ""}"#)
            .unwrap()
            .with_placeholders(&names);
        let environment: Vec<_> = set.environment().collect();
        assert_eq!(environment, [("MAIL", "a@b"), ("PW", "placeholder")]);
    }

    #[test]
    fn equal_values_are_one_set_and_others_are_another() {
        let one = read(r#"{"A": "1", "B": "2"}"#).unwrap();
        assert!(one == read(r#"{"B": "2", "A": "1"}"#).unwrap());
        for other in [
            r#"{"A": "1"}"#,
            r#"{"A": "1", "B": "3"}"#,
            r#"{"A": "1", "C": "2"}"#,
        ] {
            assert!(one != read(other).unwrap(), "{other}");
        }
    }

    #[test]
    fn what_would_steer_the_process_or_is_no_string_is_refused_without_its_value() {
        for config in [
            r#"{"LD_PRELOAD": "s3cret-value"}"#,
            r#"{"PATH": "s3cret-value"}"#,
            r#"{"TZ": "s3cret-value"}"#,
            r#"{"A B": "s3cret-value"}"#,
            r#"{"KEY": ["s3cret-value"]}"#,
            r#"{"KEY": "s3cret-value\u0000"}"#,
            r#"["s3cret-value"]"#,
            r#"{"KEY": "s3cret-value"#,
        ] {
            let error = read(config).err().unwrap();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
