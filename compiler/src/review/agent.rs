//! Agents: what they tell a model, what they do by themselves, what installing them asks and sends. What their capabilities
//! may do is said at those.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{About, Grade, Kind, Snapshot, text};
use crate::model::Origin;

/// What is compared of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Where it is written.
    pub origin: Origin,
    /// Its system prompts: file name → hash.
    pub prompts: BTreeMap<String, String>,
    /// Minutes without a call after which a session's container goes; `None` where only a plan is known.
    pub idle_timeout_minutes: Option<u64>,
    /// The rest of agent.yaml: path, as `automation.schedules.morning.prompt` → value; `None` where only a plan is known.
    pub definition: Option<BTreeMap<String, String>>,
}

/// A definition's values by path. An item that has an id is found by it and not by its number, so that one more at the
/// front is one more and not a change of all.
pub(super) fn flat(definition: &str) -> BTreeMap<String, String> {
    fn into(value: &Value, path: &str, flat: &mut BTreeMap<String, String>) {
        let below = |name: &str| match path {
            "" => name.to_owned(),
            _ => format!("{path}.{name}"),
        };
        let id = |item: &Value| Some(item.get("id")?.as_str()?.to_owned());
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    into(field, &below(name), flat);
                }
            }
            Value::Array(items) if items.iter().all(|item| id(item).is_some()) => {
                for item in items {
                    let path = below(&id(item).unwrap_or_default());
                    into(item, &path, flat);
                    flat.remove(&format!("{path}.id"));
                }
            }
            Value::String(text) => {
                flat.insert(path.to_owned(), text.clone());
            }
            other => {
                flat.insert(path.to_owned(), other.to_string());
            }
        }
    }
    let mut values = BTreeMap::new();
    if let Ok(value) = serde_json::from_str(definition) {
        into(&value, "", &mut values);
    }
    values
}

/// Compares the agents that both sides know of; a lock knows none.
pub(super) fn compare(about: &mut About<'_>, old: &Snapshot, new: &Snapshot) {
    let (Some(old), Some(new)) = (&old.agents, &new.agents) else {
        return;
    };
    let ids: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let none = BTreeMap::new();
    for id in ids {
        let (before, now) = (old.get(id), new.get(id));
        let texts = |agent: Option<&Agent>| agent.map_or(&none, |agent| &agent.prompts).clone();
        prompts(about, id, &texts(before), &texts(now));
        let minutes = |agent: Option<&Agent>| agent.and_then(|agent| agent.idle_timeout_minutes);
        if let (Some(before), Some(now)) = (minutes(before), minutes(now))
            && before != now
        {
            let (grade, says) = if now > before {
                (Grade::Widening, "its sessions live longer without a call")
            } else {
                (
                    Grade::Narrowing,
                    "its sessions live less long without a call",
                )
            };
            let path = format!("{id}/session.idle_timeout_minutes");
            about
                .add(Kind::Sharing, path, grade, says)
                .between(Some(before), Some(now));
        }
        definition(about, id, before, now);
    }
}

/// The values of agent.yaml that differ. Of an agent that came or went as a whole only those are told that give a right
/// or take one.
fn definition(about: &mut About<'_>, id: &str, before: Option<&Agent>, now: Option<&Agent>) {
    let nothing = BTreeMap::new();
    let values = |agent: Option<&Agent>| match agent {
        Some(agent) => agent.definition.clone(),
        None => Some(nothing.clone()),
    };
    let (Some(old), Some(new)) = (values(before), values(now)) else {
        return;
    };
    let whole = before.is_none() || now.is_none();
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for path in paths {
        let (was, is) = (old.get(path), new.get(path));
        if was == is || path == "session.idle_timeout_minutes" {
            continue;
        }
        let (kind, mut grade, mut says) = meaning(path, was, is);
        let hidden = match is {
            Some(is) => text::new_suspicions(was.map_or("", String::as_str), is),
            None => Vec::new(),
        };
        if !hidden.is_empty() {
            (grade, says) = (Grade::Widening, "something hides in the new text");
        }
        if whole && grade == Grade::Neutral {
            continue;
        }
        let finding = about.add(kind, format!("{id}/{path}"), grade, says);
        finding.between(was, is);
        finding.hidden = hidden;
    }
}

/// What one value means for rights. What can't be told counts as widening.
fn meaning(path: &str, was: Option<&String>, is: Option<&String>) -> (Kind, Grade, &'static str) {
    let parts: Vec<&str> = path.split('.').collect();
    match *parts.as_slice() {
        ["automation", "schedules", .., "cron_expression"] => match (was, is) {
            (None, _) => (Kind::Schedule, Grade::Widening, "it acts by itself now"),
            (_, None) => (
                Kind::Schedule,
                Grade::Narrowing,
                "it no longer acts by itself at these times",
            ),
            _ => (
                Kind::Schedule,
                Grade::Widening,
                "it acts by itself at other times; whether more often can't be told",
            ),
        },
        ["automation", .., "prompt"] => (
            Kind::Prompt,
            Grade::Neutral,
            "what it tells a model when it acts by itself",
        ),
        ["automation", ..] => (
            Kind::Schedule,
            Grade::Neutral,
            "what people see of what it does by itself",
        ),
        ["install_steps", _, "request", ..] => match is {
            Some(_) => (
                Kind::Agent,
                Grade::Widening,
                "installing it sends this request, with what was put in",
            ),
            None => (
                Kind::Agent,
                Grade::Narrowing,
                "installing it no longer sends this request",
            ),
        },
        ["install_steps", _, "store_as", ..] => match (was, is) {
            (_, None) => (
                Kind::Agent,
                Grade::Narrowing,
                "what is put in is not kept as a credential any more",
            ),
            (None, _) => (
                Kind::Agent,
                Grade::Neutral,
                "what is put in becomes a credential that the manifest declares",
            ),
            _ => (
                Kind::Agent,
                Grade::Widening,
                "what is put in becomes another credential, and goes elsewhere",
            ),
        },
        ["install_steps", ..] => (
            Kind::Agent,
            Grade::Neutral,
            "what whoever installs it is asked",
        ),
        ["model", "provider"] => (
            Kind::Agent,
            Grade::Widening,
            "what it is told goes to another provider of models",
        ),
        ["model", ..] => (Kind::Agent, Grade::Neutral, "another model answers"),
        ["memory", "policy"] => (
            Kind::Agent,
            Grade::Widening,
            "it keeps other memories of conversations; whether more can't be told",
        ),
        ["memory", ..] => (
            Kind::Agent,
            Grade::Neutral,
            "how many of its memories it is reminded of",
        ),
        ["session", "isolation"] if is.is_some_and(|is| is == "per_thread") => (
            Kind::Sharing,
            Grade::Narrowing,
            "threads no longer share a session",
        ),
        ["session", "isolation"] => (
            Kind::Sharing,
            Grade::Widening,
            "threads may share a session now",
        ),
        ["session", "trigger"] => (
            Kind::Agent,
            Grade::Widening,
            "other messages begin a conversation; whether more can't be told",
        ),
        ["session", ..] => (Kind::Agent, Grade::Widening, "another rule of its sessions"),
        ["routing"] => (
            Kind::Agent,
            Grade::Neutral,
            "how its tools reach the model that talks to the user",
        ),
        ["name"] | ["i18n", ..] => (Kind::Agent, Grade::Neutral, "what people see of it"),
        _ => (
            Kind::Agent,
            Grade::Widening,
            "a rule that this version can't grade",
        ),
    }
}

fn prompts(
    about: &mut About<'_>,
    id: &str,
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (before, now) = (old.get(name), new.get(name));
        if before != now {
            let says = super::instance::prompt_says(name, before, now);
            about
                .add(Kind::Prompt, format!("{id}/{name}"), Grade::Neutral, says)
                .between(before, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::{Finding, Review};

    fn snapshot(definition: Option<&str>) -> Snapshot {
        let agent = definition.map(|definition| {
            let origin = Origin {
                file: "agents/post/agent.yaml".into(),
                line: 1,
                column: 1,
            };
            let agent = Agent {
                origin,
                prompts: BTreeMap::new(),
                idle_timeout_minutes: Some(30),
                definition: Some(flat(definition)),
            };
            ("post".to_owned(), agent)
        });
        Snapshot {
            agents: Some(agent.into_iter().collect()),
            ..Snapshot::default()
        }
    }

    fn findings(old: Option<&str>, new: Option<&str>) -> Vec<Finding> {
        Review::new(&snapshot(old), &snapshot(new)).findings
    }

    #[test]
    fn each_value_of_an_agent_has_its_grade() {
        use Grade::{Narrowing, Neutral, Widening};
        let daily = |rest: &str| {
            format!(
                r#"{{"automation":{{"schedules":[{{"id":"daily","cron_expression":"0 0 8 * * *","prompt":"Read."{rest}}}]}}}}"#
            )
        };
        let step =
            |rest: &str| format!(r#"{{"install_steps":[{{"id":"key","type":"input"{rest}}}]}}"#);
        let stored = |name: &str| {
            step(&format!(
                r#","store_as":{{"scope":"user_credential","capability_id":"mail","credential_name":"{name}"}}"#
            ))
        };
        let sent = |url: &str| step(&format!(r#","request":{{"url":"{url}"}}"#));
        let of = |text: &str| text.to_owned();
        let rows: [(String, String, &str, Kind, Grade); 19] = [
            (
                of("{}"),
                daily(""),
                "automation.schedules.daily.cron_expression",
                Kind::Schedule,
                Widening,
            ),
            (
                daily(""),
                of("{}"),
                "automation.schedules.daily.cron_expression",
                Kind::Schedule,
                Narrowing,
            ),
            (
                daily(""),
                daily("").replace(" 8 ", " * "),
                "automation.schedules.daily.cron_expression",
                Kind::Schedule,
                Widening,
            ),
            (
                daily(""),
                daily("").replace("Read.", "Write."),
                "automation.schedules.daily.prompt",
                Kind::Prompt,
                Neutral,
            ),
            (
                daily(""),
                daily("").replace("Read.", "Read\u{200b}."),
                "automation.schedules.daily.prompt",
                Kind::Prompt,
                Widening,
            ),
            (
                daily(""),
                daily(r#","label":"Daily""#),
                "automation.schedules.daily.label",
                Kind::Schedule,
                Neutral,
            ),
            (
                step(""),
                sent("https://a.example"),
                "install_steps.key.request.url",
                Kind::Agent,
                Widening,
            ),
            (
                sent("https://a.example"),
                sent("https://b.example"),
                "install_steps.key.request.url",
                Kind::Agent,
                Widening,
            ),
            (
                sent("https://a.example"),
                step(""),
                "install_steps.key.request.url",
                Kind::Agent,
                Narrowing,
            ),
            (
                stored("A"),
                stored("B"),
                "install_steps.key.store_as.credential_name",
                Kind::Agent,
                Widening,
            ),
            (
                stored("A"),
                step(""),
                "install_steps.key.store_as.credential_name",
                Kind::Agent,
                Narrowing,
            ),
            (
                step(""),
                step(r#","label":"Key""#),
                "install_steps.key.label",
                Kind::Agent,
                Neutral,
            ),
            (
                of("{}"),
                of(r#"{"model":{"provider":"other"}}"#),
                "model.provider",
                Kind::Agent,
                Widening,
            ),
            (
                of(r#"{"model":{"temperature":0.1}}"#),
                of("{}"),
                "model.temperature",
                Kind::Agent,
                Neutral,
            ),
            (
                of("{}"),
                of(r#"{"session":{"isolation":"per_thread"}}"#),
                "session.isolation",
                Kind::Sharing,
                Narrowing,
            ),
            (
                of(r#"{"session":{"isolation":"per_thread"}}"#),
                of("{}"),
                "session.isolation",
                Kind::Sharing,
                Widening,
            ),
            (
                of(r#"{"session":{"trigger":"mention"}}"#),
                of(r#"{"session":{"trigger":"always"}}"#),
                "session.trigger",
                Kind::Agent,
                Widening,
            ),
            (
                of(r#"{"memory":{"policy":"none"}}"#),
                of(r#"{"memory":{"policy":"all"}}"#),
                "memory.policy",
                Kind::Agent,
                Widening,
            ),
            (
                of(r#"{"routing":"inline"}"#),
                of(r#"{"routing":"delegate"}"#),
                "routing",
                Kind::Agent,
                Neutral,
            ),
        ];
        for (old, new, path, kind, grade) in rows {
            let found = findings(Some(&old), Some(&new));
            let path = format!("post/{path}");
            assert!(
                found.iter().any(|finding| finding.path == path
                    && finding.kind == kind
                    && finding.grade == grade),
                "{old} → {new}: {path} {kind:?} {grade:?} is not in {found:#?}"
            );
            assert_eq!(findings(Some(&new), Some(&new)), []);
        }
    }

    #[test]
    fn one_more_schedule_at_the_front_is_one_change() {
        let schedule = |id: &str| format!(r#"{{"id":"{id}","cron_expression":"0 0 8 * * *"}}"#);
        let all =
            |items: &[String]| format!(r#"{{"automation":{{"schedules":[{}]}}}}"#, items.join(","));
        let (old, new) = (all(&[schedule("b")]), all(&[schedule("a"), schedule("b")]));
        let found = findings(Some(&old), Some(&new));
        let paths: Vec<&str> = found.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["post/automation.schedules.a.cron_expression"]);
    }

    #[test]
    fn of_a_whole_agent_only_what_gives_or_takes_a_right_is_told() {
        let definition = r#"{"name":"Post","routing":"inline","automation":{"schedules":[{"id":"daily","label":"Daily","cron_expression":"0 0 8 * * *"}]}}"#;
        for (old, new, grade) in [
            (None, Some(definition), Grade::Widening),
            (Some(definition), None, Grade::Narrowing),
        ] {
            let found = findings(old, new);
            assert_eq!(found.len(), 1, "{found:#?}");
            assert_eq!(found[0].grade, grade);
            assert_eq!(
                found[0].path,
                "post/automation.schedules.daily.cron_expression"
            );
        }
    }
}
