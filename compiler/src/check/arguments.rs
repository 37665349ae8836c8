//! Arguments of one call against the locked `input_schema`: read without losing anything, judged with pointers into
//! them.

use std::fmt;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use super::discovered::json;
use super::schema::{draft_of, options};
use crate::diag::{kind_of, shown};

/// How many alternatives' own errors a refused `anyOf` or `oneOf` shows.
const ALTERNATIVES_SHOWN: usize = 5;

/// One thing that is wrong with the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// JSON pointer into the arguments: empty for all of them.
    pub pointer: String,
    /// What was found and what the schema demands.
    pub message: String,
    /// Where the schema demands it; empty where the schema has no part in it.
    pub schema_pointer: String,
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.pointer.as_str() {
            "" => "the arguments".to_owned(),
            pointer => shown(pointer),
        };
        write!(f, "{place}: {}", self.message)?;
        match self.schema_pointer.as_str() {
            "" => Ok(()),
            pointer => write!(f, " (demanded at {} of the schema)", shown(pointer)),
        }
    }
}

/// Why no arguments can be judged: the schema makes no validator. What was locked made one.
#[derive(Debug, thiserror::Error)]
#[error("the tool's input_schema cannot be used: {0}")]
pub struct SchemaUnusable(String);

/// What a tool takes.
pub struct Arguments<'a> {
    schema: &'a Value,
    validator: Validator,
}

impl<'a> Arguments<'a> {
    /// Builds the validator.
    pub fn of(schema: &'a Value) -> Result<Self, SchemaUnusable> {
        let draft = draft_of(schema).map_err(|problem| SchemaUnusable(problem.message))?;
        let validator = options(draft).build(schema);
        let validator = validator.map_err(|error| SchemaUnusable(shown(&error.to_string())))?;
        Ok(Self { schema, validator })
    }

    /// Reads a JSON object without losing anything of it.
    pub fn from_json(&self, text: &[u8]) -> Result<Map<String, Value>, Vec<ArgumentProblem>> {
        let parsed = json::parse(text)
            .map_err(|error| vec![at("", format!("not JSON: {}", shown(&error.to_string())))])?;
        let mut problems: Vec<ArgumentProblem> = parsed
            .duplicates
            .iter()
            .map(|pointer| at(pointer, "this key stands twice".to_owned()))
            .collect();
        if let Some(number) = inexact(text) {
            let message = format!("{} cannot be carried exactly", shown(number));
            problems.push(at("", message));
        }
        match parsed.value {
            Value::Object(map) if problems.is_empty() => Ok(map),
            Value::Object(_) => Err(problems),
            other => {
                let message = format!("found {}, expected a JSON object", kind_of(&other));
                problems.push(at("", message));
                Err(problems)
            }
        }
    }

    /// Reads `key=value` pairs, each typed by what the schema takes there.
    ///
    /// A value that fits both as text and as JSON is refused: which one was meant cannot be known.
    pub fn from_pairs(&self, pairs: &[String]) -> Result<Map<String, Value>, Vec<ArgumentProblem>> {
        let mut map = Map::new();
        let mut problems = Vec::new();
        for pair in pairs {
            let Some((key, text)) = pair.split_once('=') else {
                let message = format!("`{}` is no KEY=VALUE", shown(pair));
                problems.push(at("", message));
                continue;
            };
            let place = pointer(key);
            match self.typed(key, text) {
                Ok(value) if !map.contains_key(key) => {
                    map.insert(key.to_owned(), value);
                }
                Ok(_) => problems.push(at(&place, "given twice".to_owned())),
                Err(message) => problems.push(at(&place, message)),
            }
        }
        if problems.is_empty() {
            Ok(map)
        } else {
            Err(problems)
        }
    }

    /// Everything that the schema does not take.
    pub fn judge(&self, arguments: &Map<String, Value>) -> Vec<ArgumentProblem> {
        let value = Value::Object(arguments.clone());
        self.validator
            .iter_errors(&value)
            .flat_map(|error| self.explain(&error))
            .collect()
    }

    /// The value that `text` stands for at `key`.
    fn typed(&self, key: &str, text: &str) -> Result<Value, String> {
        let as_text = Value::from(text);
        let as_json = match json::parse(text.as_bytes()) {
            // A text in JSON's own quotes is still a text: only --args takes quotes away.
            Ok(parsed) if !parsed.value.is_string() && parsed.duplicates.is_empty() => parsed.value,
            _ => return Ok(as_text),
        };
        if let Some(number) = inexact(text.as_bytes()) {
            return match self.refusal(key, &as_text) {
                Some(Refusal::Kind) => Err(format!("{} cannot be carried exactly", shown(number))),
                Some(Refusal::Value) | None => Ok(as_text),
            };
        }
        match (self.refusal(key, &as_text), self.refusal(key, &as_json)) {
            (None, None) if self.is_unknown(key) => Ok(as_text),
            (None, None) => Err(format!(
                "`{}` is taken as text and as {}; say which with --args",
                shown(text),
                kind_of(&as_json)
            )),
            (None, Some(_)) | (Some(Refusal::Value), Some(Refusal::Kind)) => Ok(as_text),
            (Some(_), None) | (Some(_), Some(_)) => Ok(as_json),
        }
    }

    /// Whether the schema takes a value at a key, other keys aside.
    fn refusal(&self, key: &str, value: &Value) -> Option<Refusal> {
        let alone = Value::Object(Map::from_iter([(key.to_owned(), value.clone())]));
        let place = pointer(key);
        let mut refusal = None;
        for error in self.validator.iter_errors(&alone) {
            let found = error.instance_path().as_str();
            if found == place && matches!(error.kind(), Kind::Type { .. }) {
                return Some(Refusal::Kind);
            }
            if found == place || found.starts_with(&format!("{place}/")) {
                refusal = Some(Refusal::Value);
            }
        }
        refusal
    }

    /// Whether the schema refuses the key itself: what is said of that is better than anything about its value.
    fn is_unknown(&self, key: &str) -> bool {
        let alone = Value::Object(Map::from_iter([(key.to_owned(), Value::Null)]));
        self.validator.iter_errors(&alone).any(|error| {
            matches!(
                error.kind(),
                Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. }
            )
        })
    }

    fn explain(&self, error: &ValidationError<'_>) -> Vec<ArgumentProblem> {
        let place = error.instance_path().as_str();
        let demand = error.schema_path().as_str();
        let problem = |pointer: String, message: String| ArgumentProblem {
            pointer,
            message,
            schema_pointer: demand.to_owned(),
        };
        match error.kind() {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let message = "this is required and not given".to_owned();
                vec![problem(format!("{place}{}", pointer(name)), message)]
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => unexpected
                .iter()
                .map(|name| {
                    let message = match self.near(place, name) {
                        Some(near) => {
                            format!("the tool takes no such argument; `{}`?", shown(near))
                        }
                        None => "the tool takes no such argument".to_owned(),
                    };
                    problem(format!("{place}{}", pointer(name)), message)
                })
                .collect(),
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                let alternatives: Vec<String> = context
                    .iter()
                    .take(ALTERNATIVES_SHOWN)
                    .filter_map(|errors| errors.first())
                    .map(|error| shown(&error.to_string()))
                    .collect();
                let message = format!(
                    "no alternative of the schema takes {}: {}",
                    shown(&error.instance().to_string()),
                    alternatives.join("; ")
                );
                vec![problem(place.to_owned(), message)]
            }
            _ => vec![problem(place.to_owned(), shown(&error.to_string()))],
        }
    }

    /// A declared name that is close to the one given, for arguments at the top.
    fn near(&self, place: &str, name: &str) -> Option<&'a str> {
        let declared = self.schema.get("properties")?.as_object()?;
        let names: Vec<&str> = declared.keys().map(String::as_str).collect();
        if place.is_empty() {
            super::shape::nearest(name, names)
        } else {
            None
        }
    }
}

/// How a value alone is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// It is of another type.
    Kind,
    /// It is of the right type.
    Value,
}

fn at(pointer: &str, message: String) -> ArgumentProblem {
    ArgumentProblem {
        pointer: pointer.to_owned(),
        message,
        schema_pointer: String::new(),
    }
}

fn pointer(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The first whole number of a JSON text that has no exact place in 64 bits: reading it would round it in silence.
fn inexact(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let from = rest.get(start..)?;
        if let Some(quoted) = from.strip_prefix('"') {
            rest = after_string(quoted);
            continue;
        }
        let in_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let end = from.find(|c| !in_number(c)).unwrap_or(from.len());
        let (number, after) = from.split_at(end);
        let whole = !number.contains(['.', 'e', 'E']);
        if whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return Some(number);
        }
        rest = after;
    }
    None
}

/// What follows a string's closing quote; `text` begins after the opening one.
fn after_string(text: &str) -> &str {
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return text.get(index + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests;
