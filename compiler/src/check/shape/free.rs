//! Values whose shape is the author's own, such as `input_schema`.

use serde_yaml::{Mapping, Number, Value};

use super::Walk;
use crate::diag::Diagnostic;
use crate::diag::codes::yaml;
use crate::yaml::node::{Data, Node};
use crate::yaml::scalar::{Kind, Scalar};

impl Walk<'_> {
    /// The whole value by the core schema. Never leaves anything out; what has no form in JSON is a finding.
    pub(super) fn free(&mut self, node: &Node) -> Option<Value> {
        if let Some(scalar) = node.scalar()
            && scalar.kind == Kind::Null
        {
            self.nothing(scalar, "a JSON Schema, such as `{type: object}`");
            return None;
        }
        Some(self.part(node))
    }

    fn part(&mut self, node: &Node) -> Value {
        match &node.data {
            Data::List(items) => {
                let mut filled = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let length = self.push_index(index);
                    filled.push(self.part(item));
                    self.pointer.truncate(length);
                }
                Value::Sequence(filled)
            }
            Data::Map(map) => {
                let entries = map.entries();
                let mut filled = Mapping::with_capacity(entries.len());
                for entry in entries {
                    let length = self.push(&entry.key);
                    let value = self.part(&entry.value);
                    filled.insert(Value::String(entry.key.clone()), value);
                    self.pointer.truncate(length);
                }
                Value::Mapping(filled)
            }
            Data::Scalar(scalar) => match scalar.kind {
                Kind::Null => Value::Null,
                Kind::Bool => Value::Bool(scalar.text.eq_ignore_ascii_case("true")),
                Kind::String => {
                    if scalar.plain && is_radix_number(&scalar.text) {
                        self.ambiguous(&scalar.text);
                    }
                    Value::String(scalar.text.clone())
                }
                Kind::Int | Kind::Float => self.any_number(scalar),
            },
        }
    }

    fn ambiguous(&mut self, text: &str) {
        let finding = Diagnostic::new(
            &yaml::AMBIGUOUS,
            self.here(),
            format!("`{text}` is a text here, and a number to some readers of YAML"),
        )
        .help(format!("quote it if a text is meant: \"{text}\""));
        self.report(finding);
    }

    fn any_number(&mut self, scalar: &Scalar) -> Value {
        let Some((number, json)) = exact(scalar) else {
            self.finding(
                &yaml::NOT_JSON,
                format!("the number `{}` has no exact form in JSON", scalar.text),
            );
            return Value::Null;
        };
        if json != scalar.text {
            let text = &scalar.text;
            let finding = Diagnostic::new(
                &yaml::NUMBER_REWRITTEN,
                self.here(),
                format!("`{text}` is read as the number {json}"),
            )
            .help(format!("quote it if a text is meant: \"{text}\""));
            self.report(finding);
        }
        Value::Number(number)
    }
}

/// `0b11`, `-0x1F` and the like, which the core schema takes for texts and `serde_yaml` for numbers.
fn is_radix_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    [("0b", 2), ("0o", 8), ("0x", 16)]
        .iter()
        .any(|(prefix, radix)| {
            digits.strip_prefix(prefix).is_some_and(|digits| {
                !digits.is_empty() && digits.chars().all(|c| c.is_digit(*radix))
            })
        })
}

/// A number and how JSON writes it.
fn exact(scalar: &Scalar) -> Option<(Number, String)> {
    let text = scalar.text.strip_prefix('+').unwrap_or(&scalar.text);
    if scalar.kind == Kind::Int {
        let (digits, radix) = if let Some(octal) = text.strip_prefix("0o") {
            (octal, 8)
        } else if let Some(hex) = text.strip_prefix("0x") {
            (hex, 16)
        } else {
            (text, 10)
        };
        let number = match u64::from_str_radix(digits, radix) {
            Ok(unsigned) => Number::from(unsigned),
            Err(_) => Number::from(i64::from_str_radix(digits, radix).ok()?),
        };
        let json = number.to_string();
        return Some((number, json));
    }
    let float: f64 = text.parse().ok().filter(|float: &f64| float.is_finite())?;
    let json = serde_json::Number::from_f64(float)?.to_string();
    Some((Number::from(float), json))
}
