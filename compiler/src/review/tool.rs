//! Tools: which there are, whether they may be called, what they say and what they take.

use std::collections::{BTreeMap, BTreeSet};

use super::schema::{self, SchemaChange};
use super::{About, Grade, Kind, text};
use crate::lock::{LockedTool, ToolOrigin};
use crate::model::Policy;

/// Compares all tools of an instance.
pub(super) fn compare<'a>(
    about: &mut About<'a>,
    old: &'a BTreeMap<String, LockedTool>,
    new: &'a BTreeMap<String, LockedTool>,
) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        about.tool = Some(name);
        match (old.get(name), new.get(name)) {
            (Some(before), Some(now)) => changed(about, before, now),
            (None, Some(now)) => {
                let gone = old.iter().filter(|(name, _)| !new.contains_key(*name));
                added(about, now, twin(now, gone));
            }
            (Some(before), None) => {
                let come = new.iter().filter(|(name, _)| !old.contains_key(*name));
                removed(about, before, twin(before, come));
            }
            (None, None) => {}
        }
    }
    about.tool = None;
}

/// A tool that came where another one went, or the other way round, and is the same but for its name.
fn twin<'a>(
    tool: &LockedTool,
    mut others: impl Iterator<Item = (&'a String, &'a LockedTool)>,
) -> Option<&'a str> {
    others
        .find(|(_, other)| {
            other.description == tool.description || {
                let takes_something = tool.input_schema.get("properties").is_some();
                takes_something && other.input_schema == tool.input_schema
            }
        })
        .map(|(name, _)| name.as_str())
}

/// A new tool.
pub(super) fn added(about: &mut About<'_>, tool: &LockedTool, twin: Option<&str>) {
    let (grade, may) = match tool.policy {
        Policy::Allow => (Grade::Widening, "a model may call it freely"),
        Policy::Ask => (Grade::Widening, "a model may call it after a person agrees"),
        Policy::Block => (
            Grade::Neutral,
            "it is never called as long as its policy is `block`",
        ),
    };
    let renamed = twin.map_or(String::new(), |twin| {
        format!(
            "; perhaps `{}` under another name",
            crate::diag::shown(twin)
        )
    });
    let hidden = in_all_text(tool);
    let grade = if hidden.is_empty() {
        grade
    } else {
        Grade::Widening
    };
    let finding = about.add(Kind::Tool, "", grade, format!("a new tool: {may}{renamed}"));
    finding.from_to(None::<&str>, Some(tool.policy));
    finding.hidden = hidden;
}

/// A tool that is gone.
pub(super) fn removed(about: &mut About<'_>, tool: &LockedTool, twin: Option<&str>) {
    let renamed = twin.map_or(String::new(), |twin| {
        format!("; perhaps it is `{}` now", crate::diag::shown(twin))
    });
    about
        .add(
            Kind::Tool,
            "",
            Grade::Narrowing,
            format!("the tool is gone{renamed}"),
        )
        .from_to(Some(tool.policy), None::<&str>);
}

fn changed(about: &mut About<'_>, old: &LockedTool, new: &LockedTool) {
    let LockedTool {
        source,
        policy,
        // Why a policy is what it is changes nothing; the policy does.
        policy_origin: _,
        recommended,
        description,
        input_schema,
        terminal_on_success,
    } = new;
    if old.policy != *policy {
        let (grade, says) = if *policy > old.policy {
            (Grade::Widening, "it may be called with less in the way")
        } else {
            (Grade::Narrowing, "more stands in the way of a call")
        };
        about
            .add(Kind::Policy, "policy", grade, says)
            .from_to(Some(old.policy), Some(policy));
    }
    if old.recommended != *recommended {
        let (grade, says) = if *recommended > old.recommended {
            (
                Grade::Widening,
                "the tool recommends less in its way; this is not applied by itself",
            )
        } else {
            (
                Grade::Narrowing,
                "the tool recommends more in its way; this is not applied by itself",
            )
        };
        about
            .add(Kind::Recommendation, "recommended", grade, says)
            .from_to(old.recommended, *recommended);
    }
    if old.source != *source {
        let (grade, says) = match source {
            ToolOrigin::Discovered => (
                Grade::Widening,
                "the container defines the tool now, not the manifest",
            ),
            ToolOrigin::Manifest => (
                Grade::Narrowing,
                "the manifest defines the tool now, not the container",
            ),
        };
        about.add(Kind::Tool, "source", grade, says);
    }
    if old.description != *description {
        let hidden = text::new_suspicions(&old.description, description);
        let (grade, says) = if hidden.is_empty() {
            (
                Grade::Neutral,
                "a model reads another description of the tool",
            )
        } else {
            (Grade::Widening, "something hides in the new description")
        };
        let finding = about.add(Kind::Description, "description", grade, says);
        finding.from_to(Some(&old.description), Some(description));
        finding.hidden = hidden;
    }
    for change in schema::compare(&old.input_schema, input_schema) {
        schema_change(about, change);
    }
    if old.terminal_on_success != *terminal_on_success {
        let says = if *terminal_on_success {
            "a success ends the model's turn now"
        } else {
            "the model goes on after a success now"
        };
        about
            .add(Kind::Loop, "terminal_on_success", Grade::Neutral, says)
            .from_to(Some(old.terminal_on_success), Some(terminal_on_success));
    }
}

fn schema_change(about: &mut About<'_>, change: SchemaChange) {
    let SchemaChange {
        pointer,
        mut grade,
        says,
        old,
        new,
    } = change;
    let text = |value: &Option<serde_json::Value>| match value {
        None => String::new(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let hidden = text::new_suspicions(&text(&old), &text(&new));
    if !hidden.is_empty() {
        grade = Grade::Widening;
    }
    let finding = about.add(Kind::Schema, format!("input_schema{pointer}"), grade, says);
    finding.from_to(old, new);
    finding.hidden = hidden;
}

/// What hides anywhere in a tool.
fn in_all_text(tool: &LockedTool) -> Vec<text::Suspicion> {
    let mut found = text::suspicions(&tool.description);
    let mut open = vec![&tool.input_schema];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::String(words) => found.extend(text::suspicions(words)),
            serde_json::Value::Array(items) => open.extend(items),
            serde_json::Value::Object(map) => {
                for (key, value) in map {
                    found.extend(text::suspicions(key));
                    open.push(value);
                }
            }
            _ => {}
        }
    }
    found.sort();
    found.dedup();
    found
}
