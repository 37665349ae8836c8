//! A lock as lines that each say all: what `git diff` shows in place of the file (textconv).

use serde_json::Value;

use super::write::{basic, head_text};
use super::{Lock, LockedTool};
use crate::model::InstanceKey;

impl Lock {
    /// One fact a line, each with its instance and tool, so that three lines of context need not be searched for a table's
    /// head.
    pub fn flat(&self) -> String {
        let mut out = String::new();
        for (key, instance) in &self.instances {
            head(key, &head_text(key, instance), &mut out);
            for (name, tool) in &instance.tools {
                let LockedTool {
                    source,
                    policy,
                    policy_origin,
                    recommended,
                    description,
                    input_schema,
                    terminal_on_success,
                } = tool;
                let mut line = |path: &str, value: &str| {
                    out.push_str(&format!("{key} {} {path} = {value}\n", bare(name)));
                };
                line("source", super::words::origin_word(*source));
                let origin = super::words::policy_origin_word(*policy_origin);
                line("policy", &format!("{policy} ({origin})"));
                if let Some(recommended) = recommended {
                    line("recommended", &recommended.to_string());
                }
                line("terminal_on_success", &terminal_on_success.to_string());
                for text in description.split('\n') {
                    line("description", &basic(text));
                }
                leaves(input_schema, "input_schema", &mut line);
            }
        }
        out
    }
}

/// The lines of an instance's table, lists joined.
fn head(key: &InstanceKey, table: &str, out: &mut String) {
    let mut list: Option<&str> = None;
    // An empty line and the table's own name come first.
    for line in table.lines().skip(2) {
        list = match (list, line) {
            (Some(_), "]") => None,
            (Some(path), item) => {
                let item = item.trim().trim_end_matches(',');
                out.push_str(&format!("{key} {path} has {item}\n"));
                Some(path)
            }
            (None, line) => {
                let opened = line.strip_suffix(" = [");
                if opened.is_none() {
                    out.push_str(&format!("{key} {line}\n"));
                }
                opened
            }
        };
    }
}

fn leaves(value: &Value, path: &str, line: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            for (name, value) in entries {
                leaves(value, &format!("{path}/{}", bare(name)), line);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                match item {
                    Value::Object(_) | Value::Array(_) => leaves(item, &format!("{path}[]"), line),
                    leaf => line(&format!("{path}[]"), &scalar(leaf)),
                }
            }
        }
        leaf => line(path, &scalar(leaf)),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => basic(text),
        other => other.to_string(),
    }
}

/// A name as it is where it is plain, else quoted and escaped.
fn bare(name: &str) -> String {
    let plain = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.$".contains(&byte));
    if plain { name.to_owned() } else { basic(name) }
}
