//! The two tools, as manifest.yaml declares them.

use selu_example_support::date::{Date, MONTHS};
use selu_example_support::{Call, ToolError, Tools, reply};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::normals::{City, Normals, SOURCE};

/// As manifest.yaml declares it.
const KEY: &str = "WEATHER_API_KEY";

/// How many places one comparison takes.
const COMPARED: std::ops::RangeInclusive<usize> = 2..=10;

/// The tools, and the month that "current" means.
pub(crate) struct Weather {
    normals: Result<Normals, String>,
    this_month: fn() -> u8,
}

impl Weather {
    /// With the built-in data and this machine's clock.
    pub(crate) fn new() -> Self {
        Self {
            normals: Normals::built_in(),
            this_month: || Date::today().month(),
        }
    }

    fn conditions(
        &self,
        location: &str,
        month: u8,
        units: Units,
    ) -> Result<Conditions<'_>, ToolError> {
        let normals = self.normals.as_ref().map_err(ToolError::failed)?;
        let city = normals.find(location).map_err(ToolError::failed)?;
        Conditions::of(city, month, units)
            .ok_or_else(|| ToolError::failed(format!("{month} is no month: 1 to 12")))
    }
}

impl Tools for Weather {
    fn call(&self, call: &Call) -> Result<Value, ToolError> {
        match call.tool() {
            "get_current_weather" => {
                call.credential(KEY)?;
                let CurrentWeather { location, units } = call.arguments()?;
                let month = (self.this_month)();
                reply(self.conditions(&location, month, units)?)
            }
            "compare_weather" => {
                call.credential(KEY)?;
                let Comparison {
                    locations,
                    month,
                    units,
                } = call.arguments()?;
                if !COMPARED.contains(&locations.len()) {
                    let reason = format!("locations: {} given, 2 to 10 allowed", locations.len());
                    return Err(ToolError::arguments(call, reason));
                }
                let month = month.unwrap_or_else(self.this_month);
                let mut result = locations
                    .iter()
                    .map(|location| self.conditions(location, month, units))
                    .collect::<Result<Vec<_>, _>>()?;
                result.sort_by(|a, b| b.temperature.total_cmp(&a.temperature));
                reply(Comparisons {
                    warmest_first: result,
                })
            }
            _ => Err(ToolError::unknown(call)),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CurrentWeather {
    location: String,
    #[serde(default)]
    units: Units,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comparison {
    locations: Vec<String>,
    month: Option<u8>,
    #[serde(default)]
    units: Units,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Units {
    #[default]
    Metric,
    Imperial,
}

#[derive(Serialize)]
struct Comparisons<'a> {
    warmest_first: Vec<Conditions<'a>>,
}

/// A month's means in the caller's units.
#[derive(Debug, PartialEq, Serialize)]
struct Conditions<'a> {
    location: &'a str,
    country: &'a str,
    month: &'static str,
    temperature: f64,
    temperature_unit: &'static str,
    precipitation: f64,
    precipitation_unit: &'static str,
    source: &'static str,
}

impl<'a> Conditions<'a> {
    fn of(city: &'a City, month: u8, units: Units) -> Option<Self> {
        let (celsius, millimetres) = city.month(month)?;
        let name = MONTHS.get(usize::from(month).checked_sub(1)?)?;
        let (temperature, temperature_unit, precipitation, precipitation_unit) = match units {
            Units::Metric => (celsius, "°C", millimetres, "mm"),
            Units::Imperial => (
                (celsius * 1.8 + 32.0).round(),
                "°F",
                (millimetres / 2.54).round() / 10.0,
                "in",
            ),
        };
        Some(Self {
            location: &city.name,
            country: &city.country,
            month: name,
            temperature,
            temperature_unit,
            precipitation,
            precipitation_unit,
            source: SOURCE,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn ask(tool: &str, arguments: Value, credentials: Value) -> Result<Value, String> {
        let weather = Weather {
            this_month: || 7,
            ..Weather::new()
        };
        let credentials: Map<_, _> = credentials.as_object().unwrap().clone();
        weather
            .call(&Call::new(tool, arguments, credentials))
            .map_err(|error| error.to_string())
    }

    fn with_key(tool: &str, arguments: Value) -> Result<Value, String> {
        ask(tool, arguments, json!({KEY: "k"}))
    }

    #[test]
    fn without_the_key_a_call_is_refused_by_the_keys_name() {
        for tool in ["get_current_weather", "compare_weather"] {
            let error = ask(tool, json!({"location": "Oslo"}), json!({})).unwrap_err();
            assert!(error.contains("WEATHER_API_KEY is missing"), "{error}");
        }
    }

    #[test]
    fn an_answer_says_what_it_is_and_where_it_is_from() {
        let answer = with_key("get_current_weather", json!({"location": "oslo"})).unwrap();
        assert_eq!(answer["location"], "Oslo");
        assert_eq!(answer["month"], "July");
        assert_eq!(answer["temperature"], 18.0);
        assert_eq!(answer["temperature_unit"], "°C");
        assert_eq!(answer["source"], SOURCE);
    }

    #[test]
    fn imperial_units_are_converted_and_others_refused() {
        let arguments = json!({"location": "Madrid", "units": "imperial"});
        let answer = with_key("get_current_weather", arguments).unwrap();
        assert_eq!(
            (&answer["temperature"], &answer["precipitation"]),
            (&json!(79.0), &json!(0.5))
        );
        let arguments = json!({"location": "Madrid", "units": "kelvin"});
        let error = with_key("get_current_weather", arguments).unwrap_err();
        assert!(error.contains("unknown variant `kelvin`"), "{error}");
    }

    #[test]
    fn a_comparison_is_sorted_and_takes_a_month() {
        let arguments = json!({"locations": ["Oslo", "Cairo", "Sydney"], "month": 1});
        let answer = with_key("compare_weather", arguments).unwrap();
        let names: Vec<_> = answer["warmest_first"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["location"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["Sydney", "Cairo", "Oslo"]);
    }

    #[test]
    fn what_the_schema_forbids_the_server_refuses_too() {
        for (arguments, expected) in [
            (json!({"locations": ["Oslo"]}), "2 to 10"),
            (
                json!({"locations": ["Oslo", "Rome"], "month": 13}),
                "1 to 12",
            ),
            (
                json!({"locations": ["Oslo", "Rome"], "mnoth": 3}),
                "unknown field `mnoth`",
            ),
        ] {
            let error = with_key("compare_weather", arguments).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
