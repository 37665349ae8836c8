//! Discovery results (D1, D7): untrusted bytes from a container. One bad item fails the whole result, with every
//! problem of every item.

pub(crate) mod json;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{schema, tool};
use crate::diag::codes::discovery as codes;
use crate::diag::codes::tools as tool_codes;
use crate::diag::{Problem, kind_of, shown};
use crate::model::{Policy, Tool};

/// The most tools of one capability.
pub const TOOLS_MAX: usize = 1_000;

/// The most bytes of one tool, as compact JSON.
pub const TOOL_BYTES_MAX: usize = 1024 * 1024;

/// The most bytes of a result.
pub const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A discovery result without doubt.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovered {
    /// By name.
    pub tools: BTreeMap<String, Tool>,
    /// Warnings and notes: what was dropped, what is legal but odd. Pointers are into the result.
    pub notes: Vec<Problem>,
}

/// Reads what a discovery tool returned.
///
/// # Errors
/// Every problem of the result, errors and warnings, if at least one is an error.
pub fn discovered(
    capability: &str,
    discovery_tool: &str,
    result: &[u8],
) -> Result<Discovered, Vec<Problem>> {
    let items = items(result).map_err(|problem| vec![problem])?;
    let mut tools: BTreeMap<String, Tool> = BTreeMap::new();
    let mut first_of: BTreeMap<String, usize> = BTreeMap::new();
    let mut problems = items.duplicates;
    for (index, value) in items.values.iter().enumerate() {
        let mut item = Item::new(index, value);
        let found = item.read(capability, discovery_tool);
        if let Some(name) = item.name.clone() {
            if let Some(first) = first_of.get(&name) {
                let problem = Problem::new(
                    &codes::NAME_DUPLICATE,
                    format!("item {first} has the same name"),
                );
                item.report(problem.at("/name"));
            } else {
                first_of.insert(name, index);
            }
        }
        problems.append(&mut item.problems);
        if let Some(tool) = found {
            tools.insert(tool.name.clone(), tool);
        }
    }
    if problems.iter().any(Problem::is_error) {
        return Err(problems);
    }
    Ok(Discovered {
        tools,
        notes: problems,
    })
}

struct Items {
    values: Vec<Value>,
    duplicates: Vec<Problem>,
}

/// The array, within the bounds.
fn items(result: &[u8]) -> Result<Items, Problem> {
    if result.len() > RESULT_BYTES_MAX {
        return Err(Problem::new(
            &codes::TOO_LARGE,
            format!(
                "the result has {} bytes, at most {RESULT_BYTES_MAX} are allowed",
                result.len()
            ),
        ));
    }
    let invalid = |message: String| Problem::new(&codes::RESULT_INVALID, message);
    if result.iter().all(u8::is_ascii_whitespace) {
        return Err(invalid("the result is empty, not a JSON array".to_owned()));
    }
    let parsed = json::parse(result).map_err(|error| {
        invalid(format!(
            "the result is not JSON: {}",
            shown(&error.to_string())
        ))
    })?;
    let values = match parsed.value {
        Value::Array(values) => values,
        Value::Object(map) if map.contains_key("tools") => {
            return Err(
                invalid("the result is an object, not a JSON array".to_owned())
                    .help("return the list under `tools` itself, all pages of it in one answer"),
            );
        }
        other => {
            return Err(invalid(format!(
                "the result is {}, not a JSON array",
                kind_of(&other)
            )));
        }
    };
    if values.len() > TOOLS_MAX {
        return Err(Problem::new(
            &codes::TOO_LARGE,
            format!(
                "the result has {} tools, at most {TOOLS_MAX} are allowed",
                values.len()
            ),
        ));
    }
    let duplicates = parsed
        .duplicates
        .into_iter()
        .map(|pointer| {
            let index = pointer
                .split('/')
                .nth(1)
                .and_then(|segment| segment.parse().ok())
                .unwrap_or_default();
            let item = Item::new(index, values.get(index).unwrap_or(&Value::Null));
            let key = pointer.rsplit('/').next().unwrap_or_default().to_owned();
            Problem::new(
                &codes::DUPLICATE_KEY,
                format!("{}: the key `{}` stands twice", item.label(), shown(&key)),
            )
            .at_key(pointer)
        })
        .collect();
    Ok(Items { values, duplicates })
}

/// One item of the array, and what is wrong with it.
struct Item<'a> {
    index: usize,
    value: &'a Value,
    name: Option<String>,
    problems: Vec<Problem>,
}

impl<'a> Item<'a> {
    fn new(index: usize, value: &'a Value) -> Self {
        Self {
            index,
            value,
            name: value.get("name").and_then(Value::as_str).map(str::to_owned),
            problems: Vec::new(),
        }
    }

    /// Index and name, as every message begins.
    fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("item {} `{}`", self.index, shown(name)),
            None => format!("item {}", self.index),
        }
    }

    /// Takes a problem whose pointer is inside the item.
    fn report(&mut self, problem: Problem) {
        self.problems.push(Problem {
            pointer: format!("/{}{}", self.index, problem.pointer),
            message: format!("{}: {}", self.label(), problem.message),
            ..problem
        });
    }

    fn invalid(&mut self, pointer: &str, message: String, help: Option<&str>) {
        let mut problem = Problem::new(&codes::ITEM_INVALID, message).at(pointer);
        problem.help = help.map(str::to_owned);
        self.report(problem);
    }

    fn read(&mut self, capability: &str, discovery_tool: &str) -> Option<Tool> {
        let Value::Object(map) = self.value else {
            self.invalid("", format!("{} is not a tool", kind_of(self.value)), None);
            return None;
        };
        let bytes = self.value.to_string().len();
        if bytes > TOOL_BYTES_MAX {
            self.report(Problem::new(
                &codes::TOO_LARGE,
                format!("the tool has {bytes} bytes, at most {TOOL_BYTES_MAX} are allowed"),
            ));
            return None;
        }
        let name = self.read_name(map, capability, discovery_tool);
        let description = self.read_description(map);
        let input_schema = self.read_schema(map);
        let recommended = self.read_policy(map);
        self.other_fields(map);
        Some(Tool {
            name: name?,
            description: description?,
            input_schema: input_schema?.into(),
            recommended,
            terminal_on_success: false,
            origin: None,
        })
    }

    fn read_name(
        &mut self,
        map: &Map<String, Value>,
        capability: &str,
        discovery_tool: &str,
    ) -> Option<String> {
        let name = match map.get("name") {
            Some(Value::String(name)) => name,
            Some(other) => {
                self.invalid(
                    "/name",
                    format!("the name is {}, not a string", kind_of(other)),
                    None,
                );
                return None;
            }
            None => {
                self.invalid("", "the name is missing".to_owned(), None);
                return None;
            }
        };
        for problem in tool::name(capability, name) {
            self.report(problem.at("/name"));
        }
        if name == discovery_tool {
            self.report(
                Problem::new(
                    &codes::LISTS_ITSELF,
                    "the discovery tool cannot be one of the tools that it lists",
                )
                .at("/name"),
            );
        }
        Some(name.clone())
    }

    fn read_description(&mut self, map: &Map<String, Value>) -> Option<String> {
        match map.get("description") {
            Some(Value::String(text)) => {
                if text.trim().is_empty() {
                    self.report(
                        Problem::new(&tool_codes::DESCRIPTION_EMPTY, "the description is empty")
                            .at("/description"),
                    );
                }
                Some(text.clone())
            }
            Some(other) => {
                let message = format!("the description is {}, not a string", kind_of(other));
                self.invalid("/description", message, None);
                None
            }
            None => {
                self.invalid("", "the description is missing".to_owned(), None);
                None
            }
        }
    }

    fn read_schema(&mut self, map: &Map<String, Value>) -> Option<Value> {
        let Some(value) = map.get("input_schema") else {
            let help = ["inputSchema", "parameters", "schema"]
                .into_iter()
                .find(|key| map.contains_key(*key))
                .map(|key| format!("rename `{key}` to `input_schema`"));
            self.invalid(
                "",
                "the input_schema is missing".to_owned(),
                help.as_deref(),
            );
            return None;
        };
        for problem in schema::schema(value) {
            let pointer = format!("/input_schema{}", problem.pointer);
            let message = format!("input_schema{}: {}", problem.pointer, problem.message);
            self.report(Problem {
                pointer,
                message,
                ..problem
            });
        }
        Some(value.clone())
    }

    fn read_policy(&mut self, map: &Map<String, Value>) -> Option<Policy> {
        let value = map.get("recommended_policy")?;
        let policy = match value.as_str() {
            Some("allow") => Some(Policy::Allow),
            Some("ask") => Some(Policy::Ask),
            Some("block") => Some(Policy::Block),
            _ => None,
        };
        if policy.is_none() {
            let found = match value {
                Value::String(text) => shown(text),
                other => shown(&other.to_string()),
            };
            self.report(
                Problem::new(
                    &codes::POLICY_UNKNOWN,
                    format!("recommended_policy `{found}` is not allow, ask or block, and counts as absent"),
                )
                .at("/recommended_policy"),
            );
        }
        policy
    }

    fn other_fields(&mut self, map: &Map<String, Value>) {
        const KNOWN: &[&str] = &["name", "description", "input_schema", "recommended_policy"];
        for key in map.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
            let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
            if key == "required" {
                self.report(
                    Problem::new(
                        &codes::REQUIRED_BESIDE,
                        "`required` stands beside input_schema, where it would be ignored",
                    )
                    .help("move it into input_schema")
                    .at_key(pointer),
                );
                continue;
            }
            let mut problem = Problem::new(
                &codes::FIELD_DROPPED,
                format!("the unknown field `{}` is dropped", shown(key)),
            )
            .at_key(pointer);
            let near = KNOWN
                .iter()
                .find(|known| key.len() < 40 && strsim::osa_distance(known, key) <= 2);
            if let Some(near) = near {
                problem = problem.help(format!("`{near}` may be meant"));
            }
            self.report(problem);
        }
    }
}

#[cfg(test)]
mod tests;
