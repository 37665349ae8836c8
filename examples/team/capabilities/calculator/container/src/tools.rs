//! The tools, as manifest.yaml declares them.

use selu_example_support::date::Date;
use selu_example_support::{Call, ToolError, Tools, reply};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::units::convert;

/// Units and dates.
pub(crate) struct Calculator;

impl Tools for Calculator {
    fn call(&self, call: &Call) -> Result<Value, ToolError> {
        let refuse = |reason| ToolError::arguments(call, reason);
        match call.tool() {
            "convert_units" => {
                let Conversion { value, from, to } = call.arguments()?;
                let result = convert(value, &from, &to).map_err(refuse)?;
                reply(json!({"value": result, "unit": to}))
            }
            "days_between" => {
                let Span { start, end } = call.arguments()?;
                let start: Date = start.parse().map_err(refuse)?;
                let end: Date = end.parse().map_err(refuse)?;
                reply(json!({"days": end.days() - start.days()}))
            }
            "add_days" => {
                let Shift { date, days } = call.arguments()?;
                let date: Date = date.parse().map_err(refuse)?;
                let result = date
                    .days()
                    .checked_add(days)
                    .and_then(Date::from_days)
                    .ok_or_else(|| {
                        refuse("the result is outside the years 1 to 9999".to_owned())
                    })?;
                reply(json!({"date": result.to_string(), "weekday": result.weekday()}))
            }
            _ => Err(ToolError::unknown(call)),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Conversion {
    value: f64,
    from: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Span {
    start: String,
    end: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shift {
    date: String,
    days: i64,
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn ask(tool: &str, arguments: Value) -> Result<Value, String> {
        Calculator
            .call(&Call::new(tool, arguments, Map::new()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_tool_answers() {
        for (tool, arguments, expected) in [
            (
                "convert_units",
                json!({"value": 350, "from": "fahrenheit", "to": "celsius"}),
                json!({"value": 176.6666667, "unit": "celsius"}),
            ),
            (
                "days_between",
                json!({"start": "2024-02-28", "end": "2024-03-01"}),
                json!({"days": 2}),
            ),
            (
                "add_days",
                json!({"date": "2023-12-31", "days": 60}),
                json!({"date": "2024-02-29", "weekday": "Thursday"}),
            ),
        ] {
            assert_eq!(ask(tool, arguments), Ok(expected), "{tool}");
        }
    }

    #[test]
    fn a_refusal_names_the_tool_and_the_argument() {
        for (tool, arguments, expected) in [
            (
                "days_between",
                json!({"start": "2023-02-29", "end": "2024-01-01"}),
                "2023-02-29 is not in the calendar",
            ),
            (
                "add_days",
                json!({"date": "2024-01-01", "days": i64::MAX}),
                "outside the years",
            ),
            (
                "add_days",
                json!({"date": "2024-01-01", "days": 1.5}),
                "floating point `1.5`",
            ),
            (
                "convert_units",
                json!({"value": "1", "from": "m", "to": "km"}),
                "string \"1\"",
            ),
        ] {
            let error = ask(tool, arguments).unwrap_err();
            assert!(
                error.starts_with(&format!("arguments of {tool}: ")),
                "{error}"
            );
            assert!(error.contains(expected), "{error}");
        }
    }
}
