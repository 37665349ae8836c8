//! Numbers of the format's own fields: plain decimal, nothing else (L5).

use serde_json::Value as Schema;
use serde_yaml::{Number, Value};

use super::Walk;
use crate::diag::Diagnostic;
use crate::diag::codes::{manifest, yaml};
use crate::yaml::node::{Data, Node};
use crate::yaml::scalar::{Kind, Scalar};

impl Walk<'_> {
    pub(super) fn integer(&mut self, node: &Node, schema: &Schema) -> Option<Value> {
        let scalar = self.number_scalar(node, "a whole number", whole)?;
        let text = &scalar.text;
        let (least, most) = bounds(schema);
        let Ok(number) = text.parse::<i128>() else {
            self.out_of_range(text, least, most);
            return None;
        };
        // Bounds of whole numbers are far below 2^53: exact as floats.
        let outside = least.is_some_and(|least| number < least as i128)
            || most.is_some_and(|most| number > most as i128);
        match u64::try_from(number) {
            Ok(number) if !outside => Some(Value::Number(Number::from(number))),
            _ => {
                self.out_of_range(text, least, most);
                None
            }
        }
    }

    pub(super) fn number(&mut self, node: &Node, schema: &Schema) -> Option<Value> {
        let scalar = self.number_scalar(node, "a number", decimal)?;
        let text = &scalar.text;
        let (least, most) = bounds(schema);
        let number = text.parse().ok().filter(|number: &f64| {
            // Digits enough make an infinity, which no bound may be there to refuse.
            number.is_finite()
                && least.is_none_or(|least| *number >= least)
                && most.is_none_or(|most| *number <= most)
        });
        if number.is_none() {
            self.out_of_range(text, least, most);
        }
        number.map(|number| Value::Number(Number::from(number)))
    }

    /// A scalar whose text has the one form.
    fn number_scalar<'n>(
        &mut self,
        node: &'n Node,
        allowed: &str,
        form: fn(&str) -> bool,
    ) -> Option<&'n Scalar> {
        let Data::Scalar(scalar) = &node.data else {
            self.wrong_type(&node.data, allowed);
            return None;
        };
        let text = &scalar.text;
        if scalar.kind == Kind::Null && text.is_empty() {
            self.nothing(scalar, allowed);
            return None;
        }
        if matches!(scalar.kind, Kind::Int | Kind::Float) && form(text) {
            return Some(scalar);
        }
        if let Some(meant) = meant(text).filter(|meant| form(meant)) {
            let quoted = form(text);
            let message = if quoted {
                format!("{} is written, and this takes {allowed}", scalar.shown())
            } else {
                format!("`{text}` is not the form that numbers have here")
            };
            let how = if quoted {
                format!("remove the quotes: {meant}")
            } else if text.contains(',') {
                format!("use a point: {meant}")
            } else {
                format!("write {meant}")
            };
            let finding = Diagnostic::new(&yaml::NUMBER_FORM, self.here(), message)
                .help(how)
                .suggest(meant);
            self.report(finding);
        } else if matches!(scalar.kind, Kind::Int | Kind::Float)
            && text.contains(|c: char| c.is_ascii_digit())
        {
            let message = format!(
                "`{}` is not the form that numbers have here",
                crate::diag::shown(text)
            );
            let finding = Diagnostic::new(&yaml::NUMBER_FORM, self.here(), message)
                .help(format!("write {allowed} in plain digits"));
            self.report(finding);
        } else {
            let mut finding = self.wrong_type_finding(&node.data, allowed);
            let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
            if !digits.is_empty() {
                finding = finding.help("write the number alone: the field's name says its unit");
            }
            self.report(finding);
        }
        None
    }

    fn out_of_range(&mut self, text: &str, least: Option<f64>, most: Option<f64>) {
        let range = match (least, most) {
            (Some(least), Some(most)) => format!("from {least} to {most}"),
            (Some(least), None) => format!("from {least}"),
            (None, Some(most)) => format!("up to {most}"),
            (None, None) => "that fit into 64 bits".to_owned(),
        };
        let zero = text
            .trim_start_matches('-')
            .chars()
            .all(|c| matches!(c, '0' | '.'));
        let unlimited = if zero {
            "; zero does not mean unlimited"
        } else {
            ""
        };
        self.finding(
            &manifest::OUT_OF_RANGE,
            format!(
                "{} is out of range; allowed are numbers {range}{unlimited}",
                crate::diag::shown(text)
            ),
        );
    }
}

fn bounds(schema: &Schema) -> (Option<f64>, Option<f64>) {
    let bound = |name: &str| schema.get(name).and_then(Schema::as_f64);
    (bound("minimum"), bound("maximum"))
}

/// `0`, `128`, `-3`: no sign but minus, no leading zeros.
fn whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'))
}

/// As [`whole`], with an optional point between digits.
fn decimal(text: &str) -> bool {
    match text.split_once('.') {
        None => whole(text),
        Some((before, after)) => {
            whole(before) && !after.is_empty() && after.bytes().all(|b| b.is_ascii_digit())
        }
    }
}

/// The plain decimal that another way of writing a number most likely means.
fn meant(text: &str) -> Option<String> {
    let text = text.trim();
    let radix = |digits: &str, radix| {
        u64::from_str_radix(digits, radix)
            .ok()
            .map(|n| n.to_string())
    };
    if let Some(octal) = text.strip_prefix("0o") {
        return radix(octal, 8);
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return radix(hex, 16);
    }
    let plain = text.replace('_', "").replace(',', ".");
    let plain = plain.strip_prefix('+').unwrap_or(&plain);
    let number: f64 = plain
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())?;
    // Not `inf` and the like, and nothing so large that it would be written in full.
    if !plain.contains(|c: char| c.is_ascii_digit()) || number.abs() >= 1e15 {
        return None;
    }
    Some(number.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use camino::Utf8Path;
    use serde_json::json;

    use super::{decimal, meant, whole};
    use crate::check::shape::{self, Unknown};

    #[test]
    fn a_number_too_large_for_the_machine_is_refused_where_no_bound_is() {
        let schema = json!({ "type": "object", "properties": {
            "whole": { "type": "integer" }, "real": { "type": "number" },
        }});
        let huge = "9".repeat(400);
        for (text, found) in [
            (format!("whole: 1\nreal: {huge}\n"), "2:7 out-of-range"),
            (format!("whole: 1\nreal: -{huge}.5\n"), "2:7 out-of-range"),
            (format!("real: 1\nwhole: {huge}\n"), "2:8 out-of-range"),
            (
                "real: 1\nwhole: 18446744073709551616\n".to_owned(),
                "2:8 out-of-range",
            ),
            ("whole: 1\nreal: 1e999\n".to_owned(), "2:7 number-form"),
            ("real: 1\nwhole: 1e999\n".to_owned(), "2:8 number-form"),
        ] {
            let (document, problems) = crate::yaml::read(Utf8Path::new("a.yaml"), &text);
            assert_eq!(problems, [], "{text}");
            let mut findings = Vec::new();
            let filled: BTreeMap<String, f64> = shape::read(
                &document.unwrap(),
                &schema,
                Unknown::Manifest,
                &mut findings,
            );
            let [finding] = findings.as_slice() else {
                panic!("{text}: {findings:?}");
            };
            let at = &finding.place.origin;
            assert_eq!(
                format!("{}:{} {}", at.line, at.column, finding.code.name),
                found,
                "{text}"
            );
            assert!(finding.message.len() < 400, "{}", finding.message);
            // What is right beside it is kept.
            assert_eq!(filled.into_values().collect::<Vec<_>>(), [1.0], "{text}");
        }
    }

    #[test]
    fn numbers_have_one_form_and_others_are_translated() {
        for text in ["0", "7", "128", "-3"] {
            assert!(whole(text), "{text}");
        }
        for text in ["", "-", "0128", "+1", "1.0", "1e3", "1_0", "00"] {
            assert!(!whole(text), "{text}");
        }
        for text in ["0.5", "10", "1.50", "-0.1"] {
            assert!(decimal(text), "{text}");
        }
        for text in [".5", "5.", "1e-1", "0,5", "00.5"] {
            assert!(!decimal(text), "{text}");
        }
        for (text, number) in [
            ("0128", "128"),
            ("0o200", "128"),
            ("0x80", "128"),
            ("1_024", "1024"),
            ("128.0", "128"),
            ("1e3", "1000"),
            ("0,5", "0.5"),
            (".5", "0.5"),
        ] {
            assert_eq!(meant(text).as_deref(), Some(number), "{text}");
        }
        for text in ["", "many", ".inf", "nan", "128MB"] {
            assert_eq!(meant(text), None, "{text}");
        }
    }
}
