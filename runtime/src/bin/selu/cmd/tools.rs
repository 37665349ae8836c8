//! `selu tools`: what a model would be offered.

use std::collections::BTreeMap;

use selu_compiler::model::Policy;
use selu_compiler::plan::{Plan, PlannedTool};
use selu_compiler::report::escape;
use serde_json::{Value, json};

use crate::args::{Cli, Directory};
use crate::exit::Exit;
use crate::outcome::counted;
use crate::printer::Printer;
use crate::project::{document, load_planned};

pub(crate) fn run(cli: &Cli, printer: &Printer, args: &Directory) -> anyhow::Result<Exit> {
    let Some((loaded, plan)) = load_planned(cli, printer, &args.dir)? else {
        return Ok(Exit::Failed);
    };
    let waiting = loaded.tell_waiting(printer)?;
    for (key, instance) in &plan.instances {
        let prefix = format!("{key}/");
        let known = waiting.iter().any(|tool| tool.starts_with(&prefix));
        if instance.discovery_tool.is_some() && instance.tools.is_empty() && !known {
            printer.warn(&format!(
                "{key}: its tools are not known yet; `selu apply` or `selu lock` asks for them"
            ));
        }
    }
    printer.data(&text(&plan));
    printer.json(&data(&plan, waiting));
    Ok(Exit::Done)
}

/// Agent → full name → tool, without what policy blocks.
fn offered(plan: &Plan) -> BTreeMap<&str, BTreeMap<String, &PlannedTool>> {
    let mut agents: BTreeMap<&str, BTreeMap<String, &PlannedTool>> = BTreeMap::new();
    for (key, instance) in &plan.instances {
        let tools = agents.entry(key.agent()).or_default();
        for (name, tool) in &instance.tools {
            // T4, and D3: a policy of `block` is how a tool that nobody judged begins.
            if tool.policy != Policy::Block && instance.discovery_tool.as_ref() != Some(name) {
                tools.insert(format!("{}__{name}", key.capability()), tool);
            }
        }
    }
    agents
}

fn text(plan: &Plan) -> String {
    let mut text = String::new();
    for (agent, tools) in offered(plan) {
        text.push_str(&format!("{agent}: {}\n", counted(tools.len(), "tool")));
        for (name, tool) in tools {
            let ends = if tool.terminal_on_success {
                ", ends the turn"
            } else {
                ""
            };
            text.push_str(&format!(
                "  {name} ({}{ends})\n    {}\n",
                tool.policy,
                escape(tool.description.trim())
            ));
        }
    }
    let blocked = blocked(plan);
    if !blocked.is_empty() {
        text.push_str(&format!(
            "not offered, policy `block`: {}\n",
            blocked.join(", ")
        ));
    }
    text
}

fn data(plan: &Plan, waiting: Vec<String>) -> Value {
    let agents: serde_json::Map<String, Value> = offered(plan)
        .into_iter()
        .map(|(agent, tools)| {
            let tools: Vec<Value> = tools
                .into_iter()
                .map(|(name, tool)| {
                    json!({
                        "name": name,
                        "description": tool.description,
                        "policy": tool.policy,
                        "input_schema": for_a_model(&tool.input_schema),
                        "terminal_on_success": tool.terminal_on_success,
                    })
                })
                .collect();
            (agent.to_owned(), tools.into())
        })
        .collect();
    let mut document = document(&plan.project);
    document.insert("agents".to_owned(), agents.into());
    document.insert("blocked".to_owned(), blocked(plan).into());
    document.insert("waiting".to_owned(), waiting.into());
    document.into()
}

fn blocked(plan: &Plan) -> Vec<String> {
    let tools = plan.instances.iter().flat_map(|(key, instance)| {
        let blocked = instance
            .tools
            .iter()
            .filter(|(_, tool)| tool.policy == Policy::Block);
        blocked.map(move |(name, _)| format!("{key} {name}"))
    });
    tools.collect()
}

/// Some providers refuse an object schema without `properties` (I21).
fn for_a_model(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.entry("type").or_insert_with(|| "object".into());
            fields.entry("properties").or_insert_with(|| json!({}));
            fields.into()
        }
        _ => json!({ "type": "object", "properties": {} }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_gets_always_has_an_object_with_properties() {
        let empty = json!({ "type": "object", "properties": {} });
        assert_eq!(for_a_model(&json!({})), empty);
        assert_eq!(for_a_model(&json!(true)), empty);
        assert_eq!(for_a_model(&json!({ "type": "object" })), empty);
        let own = json!({ "type": "object", "properties": { "a": true }, "required": ["a"] });
        assert_eq!(for_a_model(&own), own);
    }
}
