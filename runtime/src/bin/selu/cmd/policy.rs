//! `selu policy`: whether a tool may be called, who says so, and how that is written into selu.toml.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use selu_compiler::check::nearest;
use selu_compiler::lock::no_instance;
use selu_compiler::model::{InstanceKey, Origin, Policy};
use selu_compiler::plan::{Plan, PolicyOrigin};
use selu_compiler::policy::{self, Explained, Say, Source, edit};
use selu_compiler::report::escape;
use selu_compiler::source::RootKind;
use selu_runtime::lockfile;
use selu_runtime::waiting::Waiting;
use serde_json::{Value, json};

use crate::args::{Cli, PolicyAction, PolicyArgs, PolicyWord};
use crate::exit::Exit;
use crate::hints::Hinted;
use crate::printer::{Printer, shown};
use crate::project::{Loaded, document, load_planned, say_waiting};

const SETTINGS: &str = "selu.toml";

pub(crate) fn run(cli: &Cli, printer: &Printer, args: &PolicyArgs) -> anyhow::Result<Exit> {
    let Some((loaded, plan)) = load_planned(cli, printer, &args.dir)? else {
        return Ok(Exit::Failed);
    };
    let desk = Desk {
        printer,
        waiting: Waiting::load(&loaded.root, loaded.lock())?,
        loaded: &loaded,
        plan: &plan,
    };
    match &args.action {
        PolicyAction::List => desk.list(),
        PolicyAction::Explain { tool } => desk.explain(tool),
        PolicyAction::Set { tool, policy } => desk.set(tool, *policy),
        PolicyAction::Rm { tool } => desk.remove(tool),
        PolicyAction::Prune => desk.prune(),
    }
}

struct Desk<'a> {
    printer: &'a Printer,
    loaded: &'a Loaded,
    plan: &'a Plan,
    waiting: Waiting,
}

impl Desk<'_> {
    /// Fresh tools first (D5): what waits, then what nobody has judged, then the rest.
    fn list(&self) -> anyhow::Result<Exit> {
        let waiting = self.waiting.lock().waiting_names();
        say_waiting(self.printer, &waiting);
        let mut rows = Vec::new();
        for (key, instance) in &self.plan.instances {
            for (name, tool) in &instance.tools {
                let unjudged = tool.policy_origin == PolicyOrigin::Default;
                rows.push((!unjudged, key, name, tool));
            }
        }
        rows.sort_by_key(|(judged, key, name, _)| (*judged, *key, *name));
        let mut tools = Vec::new();
        for (judged, key, name, tool) in rows {
            let by = match tool.policy_origin {
                PolicyOrigin::Override => "[policy] in selu.toml",
                PolicyOrigin::Manifest => "the manifest",
                PolicyOrigin::Discovered => "its own recommendation when it was added",
                PolicyOrigin::Default => "nobody yet",
            };
            let fresh = if judged { "" } else { "  ← to be judged" };
            self.printer.data(&format!(
                "{key}/{}: {} by {by}{fresh}\n",
                escape(name),
                tool.policy
            ));
            tools.push(json!({
                "instance": key, "tool": name, "policy": tool.policy, "by": tool.policy_origin,
            }));
        }
        let gone = self.without_target();
        for ((key, tool), (policy, origin)) in &gone {
            self.printer.data(&format!(
                "{key}/{}: {policy} in {}, for a tool that is not there\n",
                escape(tool),
                at(origin)
            ));
        }
        if !gone.is_empty() {
            self.printer
                .hint("`selu policy prune` removes what guards nothing");
        }
        self.answer([
            ("tools", tools.into()),
            ("waiting", waiting.into()),
            ("without_tool", gone.keys().map(name).collect()),
        ]);
        Ok(Exit::Done)
    }

    fn explain(&self, text: &str) -> anyhow::Result<Exit> {
        let (key, tool) = self.known(text)?;
        let (project, lock) = (&self.loaded.project, self.loaded.lock());
        let waits = self.waits(&key, &tool);
        let Some(explained) = policy::explain(project, self.plan, lock, &key, &tool) else {
            let message = format!(
                "{key} `{}` is not in use, so nothing decides yet",
                shown(&tool)
            );
            let hint = if waits {
                format!("`selu lock --accept {key}/{tool}` shows it and accepts it")
            } else {
                "`selu apply` or `selu lock` asks the capability for its tools".to_owned()
            };
            return Err(Hinted::new(message, hint).into());
        };
        let Explained { policy, sources } = &explained;
        self.printer
            .data(&format!("{key}/{}: {}\n", escape(&tool), meaning(*policy)));
        for (index, say) in sources.iter().enumerate() {
            self.printer
                .data(&format!("  {}. {}\n", index + 1, line(say)));
        }
        if waits {
            self.printer.say(&format!(
                "another definition of it waits: `selu lock --accept {key}/{}`",
                shown(&tool)
            ));
        }
        let sources: Vec<Value> = sources.iter().map(source_json).collect();
        self.answer([
            ("instance", json!(key)),
            ("tool", tool.into()),
            ("policy", json!(policy)),
            ("sources", sources.into()),
            ("waiting", waits.into()),
        ]);
        Ok(Exit::Done)
    }

    fn set(&self, text: &str, word: PolicyWord) -> anyhow::Result<Exit> {
        let (key, tool) = self.known(text)?;
        let policy = match word {
            PolicyWord::Allow => Policy::Allow,
            PolicyWord::Ask => Policy::Ask,
            PolicyWord::Block => Policy::Block,
        };
        let full = format!("{key}/{tool}");
        let before = self.settings()?;
        let edited = edit::set(&before, &full, policy).map_err(by_hand)?;
        let planned = self.plan.instances.get(&key);
        let old = planned.and_then(|instance| instance.tools.get(&tool));
        let old = old.map(|tool| tool.policy);
        self.write(&before, &edited)?;
        let was = old.map_or("not in use".to_owned(), |old| old.to_string());
        self.printer
            .data(&format!("{}: {was} → {policy}\n", escape(&full)));
        if old != Some(policy) && self.loaded.lock().is_some() {
            self.printer
                .hint("`selu apply` or `selu lock` takes it into selu.lock; until then the tool is not called");
        }
        self.answer([
            ("set", full.into()),
            ("old", json!(old)),
            ("policy", json!(policy)),
        ]);
        Ok(Exit::Done)
    }

    /// Also what names no tool any more, so the name need not be known.
    fn remove(&self, text: &str) -> anyhow::Result<Exit> {
        let policies = &self.loaded.project.settings.policies;
        let names: BTreeSet<String> = policies.keys().map(name).collect();
        if !names.contains(text) {
            let message = format!("[policy] in selu.toml has no \"{}\"", shown(text));
            let hint = match nearest(text, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean {near}?"),
                None => "`selu policy list` shows what there is".to_owned(),
            };
            return Err(Hinted::new(message, hint).into());
        }
        self.take_out([text.to_owned()])
    }

    fn prune(&self) -> anyhow::Result<Exit> {
        let gone = self.without_target();
        if gone.is_empty() {
            self.printer
                .say("Every policy in selu.toml is for a tool that is there, or may still come.");
        }
        self.take_out(gone.keys().map(name))
    }

    fn take_out(&self, names: impl IntoIterator<Item = String>) -> anyhow::Result<Exit> {
        let before = self.settings()?;
        let mut edited = before.clone();
        let mut removed = Vec::new();
        for name in names {
            edited = edit::remove(&edited, &name).map_err(by_hand)?;
            removed.push(name);
        }
        self.write(&before, &edited)?;
        for name in &removed {
            self.printer.data(&format!("{}: removed\n", escape(name)));
        }
        self.answer([("removed", removed.into())]);
        Ok(Exit::Done)
    }

    /// A tool that is there, or waits, or may come because its capability was never asked. A misspelt guard is an error.
    fn known(&self, text: &str) -> anyhow::Result<(InstanceKey, String)> {
        let Some((key, tool)) = InstanceKey::parse_tool(text) else {
            let message = format!("{} is not of the form AGENT/CAP/TOOL", shown(text));
            return Err(Hinted::new(message, "`selu policy list` shows all").into());
        };
        let Some(instance) = self.plan.instances.get(&key) else {
            return Err(no_instance(self.plan, key.as_str()).into());
        };
        let asked = self.loaded.lock().is_some_and(|lock| lock.was_asked(&key));
        let may_come = instance.discovery_tool.is_some() && !asked;
        if instance.tools.contains_key(tool) || self.waits(&key, tool) || may_come {
            return Ok((key, tool.to_owned()));
        }
        let message = format!("{key} has no tool `{}`", shown(tool));
        let hint = match nearest(tool, instance.tools.keys().map(String::as_str)) {
            Some(near) => format!("did you mean {key}/{near}?"),
            None => "`selu policy list` shows all".to_owned(),
        };
        Err(Hinted::new(message, hint).into())
    }

    fn waits(&self, key: &InstanceKey, tool: &str) -> bool {
        let entry = self.waiting.lock().instances.get(key);
        entry.is_some_and(|entry| entry.tools.contains_key(tool))
    }

    fn without_target(&self) -> BTreeMap<(InstanceKey, String), (Policy, Origin)> {
        let settings = &self.loaded.project.settings;
        let waiting = self.waiting.lock();
        policy::without_target(settings, self.plan, self.loaded.lock(), waiting)
    }

    /// The text of selu.toml. What has none gets none here: the file would make a project of a lone agent (L1).
    fn settings(&self) -> anyhow::Result<String> {
        match &self.loaded.sources.settings {
            Some(file) => std::fs::read_to_string(self.loaded.root.join(&file.path))
                .context("selu.toml cannot be read"),
            None if self.loaded.sources.kind == Some(RootKind::Project) => Ok(String::new()),
            None => {
                let hint = "policies are a project's: put it below agents/ of one";
                Err(Hinted::new("there is no selu.toml here", hint).into())
            }
        }
    }

    fn write(&self, before: &str, text: &str) -> anyhow::Result<()> {
        if before == text {
            return Ok(());
        }
        let path = self.loaded.root.join(SETTINGS);
        lockfile::replace(&path, text.as_bytes()).context("selu.toml could not be written")
    }

    fn answer<const N: usize>(&self, fields: [(&str, Value); N]) {
        let mut document = document(&self.plan.project);
        for (name, value) in fields {
            document.insert(name.to_owned(), value);
        }
        document.insert("exit_code".to_owned(), Exit::Done.code().into());
        self.printer.json(&document.into());
    }
}

/// `agent/cap/tool`.
fn name((key, tool): &(InstanceKey, String)) -> String {
    format!("{key}/{tool}")
}

fn at(origin: &Origin) -> String {
    format!("{}:{}", origin.file, origin.line)
}

fn by_hand(error: edit::EditError) -> anyhow::Error {
    let message = format!("selu.toml is left as it is: {error}");
    Hinted::new(message, "edit it by hand").into()
}

fn meaning(policy: Policy) -> &'static str {
    match policy {
        Policy::Allow => "allow, a model may call it freely",
        Policy::Ask => "ask, it is called after a person agrees",
        Policy::Block => "block, it is never called",
    }
}

fn word(source: Source) -> &'static str {
    match source {
        Source::Override => "override",
        Source::Kept => "kept",
        Source::Manifest => "manifest",
        Source::Recommended => "recommended",
        Source::Default => "default",
    }
}

fn line(say: &Say) -> String {
    let Say {
        source,
        policy,
        place,
        decides,
    } = say;
    let who = match source {
        Source::Override => "[policy] in selu.toml",
        Source::Kept => "kept in selu.lock since the tool was added",
        Source::Manifest => "the manifest's recommendation",
        Source::Recommended if *decides => "what the capability recommended when it was locked",
        Source::Recommended => "what the capability recommends now (shown, not applied)",
        Source::Default => "otherwise",
    };
    let what = policy.map_or("says nothing".to_owned(), |policy| policy.to_string());
    let place = match (policy, place) {
        (Some(_), Some(place)) => format!(" ({})", escape(&at(place))),
        _ => String::new(),
    };
    let decides = if *decides { "  ← decides" } else { "" };
    format!("{who}: {what}{place}{decides}")
}

fn source_json(say: &Say) -> Value {
    json!({
        "source": word(say.source),
        "policy": say.policy,
        "place": say.place.as_ref().map(at),
        "decides": say.decides,
    })
}
