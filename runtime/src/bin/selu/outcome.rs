//! What an apply or a lock came to: the counts that a person reads, the JSON and the exit code, from one place; and the
//! lock that follows from it.

use std::collections::BTreeMap;

use selu_compiler::diag::Diagnostic;
use selu_compiler::diag::render::{self, Look};
use selu_compiler::diff::{ChangeSet, Subject};
use selu_compiler::lock::{
    DiscoveryOutcome, FieldChange, Lock, Stale, ToolChange, ToolChangeKind, differences,
};
use selu_compiler::model::{InstanceKey, Policy, Settings};
use selu_compiler::plan::Plan;
use selu_runtime::apply::{self, Discovery, Report};
use selu_runtime::discover::{Journal, describe};
use selu_runtime::events::subject_name;
use selu_runtime::lockfile::{self, LockFile};
use selu_runtime::waiting::Waiting;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::printer::{Printer, shown};
use crate::project::{Loaded, document};
use crate::targets::{Targets, meant};

/// A report with its exit code.
pub(crate) struct Outcome {
    report: Report,
    exit: Exit,
    /// Why what was done is not on disk: the error with its causes.
    unwritten: Option<String>,
    /// What differs from the lock, where it was only compared.
    differences: Vec<Value>,
    /// Images that were followed to what their tags mean now.
    upgrades: Vec<Value>,
    /// What could not be verified, by instance.
    unverified: BTreeMap<InstanceKey, String>,
}

#[derive(Default)]
struct Counts {
    done: usize,
    failed: usize,
    not_started: usize,
}

impl Outcome {
    /// Judges a report.
    pub(crate) fn of(report: Report) -> Self {
        let counts = Counts::of(&report);
        let exit = if report.interrupted {
            Exit::Interrupted
        } else if counts.failed + counts.not_started == 0 {
            Exit::Done
        } else if counts.done > 0 {
            Exit::Partial
        } else {
            Exit::Failed
        };
        Self {
            report,
            exit,
            unwritten: None,
            differences: Vec::new(),
            upgrades: Vec::new(),
            unverified: BTreeMap::new(),
        }
    }

    /// Nothing was begun.
    pub(crate) fn declined(changes: &ChangeSet, exit: Exit) -> Self {
        Self {
            report: Report::not_begun(changes),
            exit,
            unwritten: None,
            differences: Vec::new(),
            upgrades: Vec::new(),
            unverified: BTreeMap::new(),
        }
    }

    /// Images that `lock --upgrade` followed: instance, old and new.
    pub(crate) fn with_upgrades(mut self, upgrades: Vec<Value>) -> Self {
        self.upgrades = upgrades;
        self
    }

    /// What could not be verified is never fine (product.md 24).
    pub(crate) fn with_unverified(mut self, unverified: BTreeMap<InstanceKey, String>) -> Self {
        if !unverified.is_empty() && self.exit == Exit::Done {
            self.exit = Exit::Failed;
        }
        self.unverified = unverified;
        self
    }

    /// The work is done and cannot be written down; nothing of the report is lost for that.
    fn unwritten(&mut self, printer: &Printer, error: &anyhow::Error) {
        if self.exit == Exit::Done {
            self.exit = match Counts::of(&self.report).done {
                0 => Exit::Failed,
                _ => Exit::Partial,
            };
        }
        let text = format!("{error:#}");
        printer.say(&format!("error: {}", shown(&text)));
        self.unwritten = Some(text);
    }

    /// Says how it went, once.
    pub(crate) fn show(&self, printer: &Printer, project: &str, tools: &[ToolChange]) -> Exit {
        let counts = Counts::of(&self.report);
        let mut objects = Vec::new();
        for (change, outcome) in &self.report.outcomes {
            let name = subject_name(&change.subject);
            let (word, why) = match outcome {
                apply::Outcome::Unchanged => ("unchanged", None),
                apply::Outcome::Done => ("done", None),
                apply::Outcome::Failed(why) => ("failed", Some(why)),
                apply::Outcome::NotStarted(why) => ("not-started", Some(why)),
            };
            if let apply::Outcome::NotStarted(why) = outcome {
                printer.say(&format!("{name}: not started: {}", shown(why)));
            }
            objects.push(json!({
                "subject": change.subject,
                "action": change.action,
                "outcome": word,
                "error": why,
            }));
        }
        let discoveries: serde_json::Map<String, Value> = self
            .report
            .discoveries
            .iter()
            .map(|(key, discovery)| (key.to_string(), discovered(printer, key, discovery)))
            .collect();
        if counts.done + counts.failed + counts.not_started > 0 {
            printer.say(&format!(
                "{} done, {} failed, {} not started.",
                counts.done, counts.failed, counts.not_started
            ));
        }
        let mut document = document(project);
        document.insert("objects".to_owned(), objects.into());
        document.insert("discoveries".to_owned(), discoveries.into());
        document.insert(
            "tool_changes".to_owned(),
            tools.iter().map(tool_change).collect(),
        );
        document.insert("done".to_owned(), counts.done.into());
        document.insert("failed".to_owned(), counts.failed.into());
        document.insert("not_started".to_owned(), counts.not_started.into());
        document.insert("interrupted".to_owned(), self.report.interrupted.into());
        for (name, values) in [
            ("differences", &self.differences),
            ("upgrades", &self.upgrades),
        ] {
            if !values.is_empty() {
                document.insert(name.to_owned(), values.clone().into());
            }
        }
        if !self.unverified.is_empty() {
            document.insert("not_verified".to_owned(), json!(self.unverified));
        }
        if let Some(why) = &self.unwritten {
            document.insert("unwritten".to_owned(), why.clone().into());
        }
        document.insert("exit_code".to_owned(), self.exit.code().into());
        printer.json(&document.into());
        self.exit
    }
}

impl Counts {
    fn of(report: &Report) -> Self {
        let mut counts = Self::default();
        for (_, outcome) in &report.outcomes {
            match outcome {
                apply::Outcome::Unchanged => {}
                apply::Outcome::Done => counts.done += 1,
                apply::Outcome::Failed(_) => counts.failed += 1,
                apply::Outcome::NotStarted(_) => counts.not_started += 1,
            }
        }
        for discovery in report.discoveries.values() {
            match discovery {
                Discovery::Found(_) => counts.done += 1,
                Discovery::Failed(_) => counts.failed += 1,
                Discovery::NotStarted => counts.not_started += 1,
            }
        }
        counts
    }
}

fn discovered(printer: &Printer, key: &InstanceKey, discovery: &Discovery) -> Value {
    match discovery {
        Discovery::Found(found) => {
            let tools: Vec<&String> = found.discovered.tools.keys().collect();
            printer.say(&format!(
                "{key}: {} discovered",
                counted(tools.len(), "tool")
            ));
            let notes: Vec<String> = found
                .discovered
                .notes
                .iter()
                .map(|note| printer.clean(&describe(note)))
                .collect();
            for note in &notes {
                printer.say(&format!("  note: {}", shown(note)));
            }
            json!({ "outcome": "done", "tools": tools, "notes": notes })
        }
        Discovery::Failed(why) => {
            printer.say(&format!("{key}: discovery failed: {}", shown(why)));
            json!({ "outcome": "failed", "error": why })
        }
        Discovery::NotStarted => {
            printer.say(&format!("{key}: discovery not started"));
            json!({ "outcome": "not-started" })
        }
    }
}

fn tool_change(change: &ToolChange) -> Value {
    let (kind, policy, fields) = match &change.kind {
        ToolChangeKind::Added(tool) => ("added", Some(tool.policy), Vec::new()),
        ToolChangeKind::Removed(_) => ("removed", None, Vec::new()),
        ToolChangeKind::Changed(fields) => ("changed", None, field_changes(fields)),
    };
    json!({
        "instance": change.instance,
        "tool": change.tool,
        "kind": kind,
        "policy": policy,
        "held": change.held,
        "fields": fields,
    })
}

/// Path, old and new value, as text.
type Values = (String, Option<String>, Option<String>);

fn field_values(field: &FieldChange) -> Vec<Values> {
    let policy = |policy: &Option<Policy>| policy.map(|policy| policy.to_string());
    let one = |path: &str, old, new| vec![(path.to_owned(), old, new)];
    match field {
        FieldChange::Description { old, new } => {
            one("description", Some(old.clone()), Some(new.clone()))
        }
        FieldChange::InputSchema(changes) => changes
            .iter()
            .map(|change| {
                let text = |value: &Option<Value>| value.as_ref().map(ToString::to_string);
                let path = format!("input_schema{}", change.pointer);
                (path, text(&change.old), text(&change.new))
            })
            .collect(),
        FieldChange::Recommended { old, new } => one(
            "recommended_policy (shown, not applied)",
            policy(old),
            policy(new),
        ),
        FieldChange::Policy { old, new } => {
            one("policy", Some(old.to_string()), Some(new.to_string()))
        }
        FieldChange::TerminalOnSuccess { new } => one(
            "terminal_on_success",
            Some((!new).to_string()),
            Some(new.to_string()),
        ),
    }
}

fn field_changes(fields: &[FieldChange]) -> Vec<Value> {
    fields
        .iter()
        .flat_map(field_values)
        .map(|(path, old, new)| json!({ "path": path, "old": old, "new": new }))
        .collect()
}

/// `1 tool`, `2 tools`.
pub(crate) fn counted(number: usize, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {word}{plural}")
}

/// Says why a lock does not fit, every entry of it, with code and place.
pub(crate) fn stale_text(printer: &Printer, loaded: &Loaded, plan: &Plan, stale: &[Stale]) -> Exit {
    let reasons: Vec<String> = stale.iter().map(ToString::to_string).collect();
    printer.say(&format!(
        "selu.lock does not fit the directory, {}:",
        counted(stale.len(), "difference")
    ));
    let text = loaded.lock.text().unwrap_or_default();
    let findings: Vec<Diagnostic> = stale
        .iter()
        .map(|one| one.diagnostic(plan, lockfile::NAME.into(), text))
        .collect();
    let look = Look {
        color: printer.color_out(),
        width: printer.width_out(),
        base: loaded.sources.root.clone(),
    };
    printer.data(&render::text_for(&findings, &loaded.sources, &look));
    printer.hint("`selu apply` or `selu lock` writes the lock anew; review what changes in it");
    let mut document = document(&plan.project);
    document.insert("stale".to_owned(), reasons.into());
    let findings = render::json(&findings);
    document.insert("diagnostics".to_owned(), findings["diagnostics"].clone());
    document.insert("exit_code".to_owned(), Exit::Differs.code().into());
    printer.json(&document.into());
    Exit::Differs
}

/// From a report to the lock on disk.
pub(crate) struct Locking<'a> {
    pub(crate) printer: &'a Printer,
    pub(crate) lock: &'a LockFile,
    pub(crate) settings: &'a Settings,
    /// The entries of all others stay as they are.
    pub(crate) targets: &'a Targets,
    pub(crate) mode: Mode,
}

/// What becomes of the lock that follows from the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It is written.
    Write,
    /// `--locked`: it is compared, and what differs stays due.
    Locked,
    /// `--dry-run`: it is compared, and what differs is told.
    DryRun,
    /// `--check --live`: as well, and a difference ends with 2.
    Check,
}

impl Locking<'_> {
    /// Merges what was found, keeps old entries of what was not done, writes, and says how it went.
    pub(crate) fn finish(
        &self,
        plan: &Plan,
        mut outcome: Outcome,
        journal: &mut Journal,
    ) -> anyhow::Result<Exit> {
        let Self {
            printer,
            lock,
            settings,
            targets,
            mode,
        } = *self;
        let discoveries: BTreeMap<InstanceKey, DiscoveryOutcome> = outcome
            .report
            .discoveries
            .iter()
            .map(|(key, discovery)| (key.clone(), wire(discovery)))
            .collect();
        let previous = lock.lock();
        let mut merged = Lock::merge(previous, plan, &discoveries, settings);
        let not_done = outcome
            .report
            .outcomes
            .iter()
            .filter_map(|(change, outcome)| match &change.subject {
                Subject::Instance(key) if !outcome.is_success() => Some(key),
                _ => None,
            });
        merged.keep_previous(previous, not_done);
        if targets.is_some() {
            let locked = previous.into_iter().flat_map(|lock| lock.instances.keys());
            let others = plan.instances.keys().chain(locked);
            merged.keep_previous(previous, others.filter(|key| !meant(targets, key)));
        }
        for (key, discovery) in &outcome.report.discoveries {
            match discovery {
                Discovery::Found(_) => journal.settle(key),
                Discovery::Failed(why) => journal.note(key, why),
                Discovery::NotStarted => {}
            }
        }
        match mode {
            Mode::Write => {
                // What was discovered stays due until it is in the lock.
                let save = || -> anyhow::Result<bool> {
                    let mut waiting = Waiting::load(lock.root(), previous)?;
                    waiting.merge(&merged);
                    // First what waits: a definition that is in neither file would be lost.
                    waiting.save()?;
                    let written = lock.save(&merged.lock)?;
                    journal.save()?;
                    Ok(written)
                };
                match save() {
                    Ok(true) => {
                        let path = lock.path();
                        printer.say(&format!(
                            "{} written",
                            path.strip_prefix(".").unwrap_or(path)
                        ));
                    }
                    Ok(false) => {}
                    Err(error) => outcome.unwritten(printer, &error),
                }
            }
            Mode::Locked => {
                let differs = lock.differs(&merged.lock) || held(&merged.changes);
                for change in &merged.changes {
                    // It stays due: neither this command nor the next one may pass over it.
                    journal.note(&change.instance, "its tools were not those of selu.lock");
                }
                journal.save()?;
                if differs {
                    return Ok(self.differs(&plan.project, &merged.changes, outcome));
                }
            }
            Mode::DryRun | Mode::Check => {
                let empty = Lock::default();
                let differences = differences(previous.unwrap_or(&empty), &merged.lock);
                let differs = lock.differs(&merged.lock);
                self.tell(&differences, differs);
                // What is held is no change of the lock, and a difference from what it says all the same.
                let differs = differs || held(&merged.changes);
                if mode == Mode::Check && differs && outcome.exit == Exit::Done {
                    outcome.exit = Exit::Differs;
                }
                outcome.differences = differences.iter().map(difference).collect();
            }
        }
        for change in &merged.changes {
            printer.say(&tool_text(change));
        }
        Ok(outcome.show(printer, &plan.project, &merged.changes))
    }

    /// What would change in the lock.
    fn tell(&self, differences: &[Stale], differs: bool) {
        let Self { printer, .. } = *self;
        match (differs, differences.len()) {
            (false, _) => printer.say("selu.lock says exactly this."),
            (true, 0) => printer.say(
                "selu.lock: nothing but names of credentials that were present, or recommendations, would change",
            ),
            (true, count) => {
                printer.say(&format!("selu.lock, {}:", counted(count, "difference")));
            }
        }
        for one in differences {
            printer.data(&format!("{}\n", shown(&difference_text(one))));
        }
    }

    /// `--locked`, and what runs lists other tools than the lock (product.md 27).
    fn differs(&self, project: &str, changes: &[ToolChange], mut outcome: Outcome) -> Exit {
        self.printer
            .say("--locked: what was discovered is not what selu.lock says; nothing was written");
        for change in changes {
            self.printer.say(&tool_text(change));
        }
        if outcome.exit == Exit::Done {
            outcome.exit = Exit::Differs;
        }
        outcome.show(self.printer, project, changes)
    }
}

/// `a/b: image.digest: sha256:1… → sha256:2…`.
fn difference_text(one: &Stale) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    match one {
        Stale::NoLock => "there is no selu.lock yet".to_owned(),
        Stale::Missing(key) => format!("{key}: new"),
        Stale::Extra(key) => format!("{key}: gone"),
        Stale::Field {
            instance,
            path,
            old,
            new,
        } => format!("{instance}: {path}: {} → {}", value(old), value(new)),
    }
}

fn difference(one: &Stale) -> Value {
    let (path, old, new) = match one {
        Stale::NoLock | Stale::Missing(_) => (None, None, Some("present")),
        Stale::Extra(_) => (None, Some("present"), None),
        Stale::Field { path, old, new, .. } => (Some(path), old.as_deref(), new.as_deref()),
    };
    json!({ "instance": one.instance(), "path": path, "old": old, "new": new })
}

/// A changed tool field by field (product.md 27).
fn tool_text(change: &ToolChange) -> String {
    let head = |word: &str| format!("{} {}: {word}", change.instance, shown(&change.tool));
    let mut text = match &change.kind {
        ToolChangeKind::Added(tool) => head(&format!("new tool, policy `{}`", tool.policy)),
        ToolChangeKind::Removed(_) => head("the tool is gone, and its policy with it"),
        ToolChangeKind::Changed(fields) => {
            let mut text = head("the tool has changed");
            for (path, old, new) in fields.iter().flat_map(field_values) {
                let value = |value: Option<String>| match value {
                    Some(value) => shown(&value),
                    None => "nothing".to_owned(),
                };
                text.push_str(&format!(
                    "\n  {}: {} → {}",
                    shown(&path),
                    value(old),
                    value(new)
                ));
            }
            text
        }
    };
    if change.held {
        text.push_str(&format!(
            "\n  kept out of use until somebody accepts it: `selu lock --accept {}/{}`",
            change.instance,
            shown(&change.tool)
        ));
    }
    text
}

/// Whether anything is kept out of use.
fn held(changes: &[ToolChange]) -> bool {
    changes.iter().any(|change| change.held)
}

fn wire(discovery: &Discovery) -> DiscoveryOutcome {
    match discovery {
        Discovery::Found(found) => DiscoveryOutcome::Found {
            tools: found.discovered.tools.clone(),
            credentials_present: found.credentials_present.iter().cloned().collect(),
        },
        Discovery::Failed(_) | Discovery::NotStarted => DiscoveryOutcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use selu_compiler::diff::{Action, Change};

    use super::*;

    fn report(outcomes: Vec<apply::Outcome>, discoveries: Vec<Discovery>) -> Report {
        let change = |outcome| {
            let change = Change {
                subject: Subject::Network("n".to_owned()),
                action: Action::Create,
                reasons: Vec::new(),
            };
            (change, outcome)
        };
        let key = |n: usize| InstanceKey::new("a", &format!("c{n}"));
        Report {
            outcomes: outcomes.into_iter().map(change).collect(),
            discoveries: discoveries
                .into_iter()
                .enumerate()
                .map(|(n, discovery)| (key(n), discovery))
                .collect(),
            interrupted: false,
        }
    }

    #[test]
    fn the_exit_code_follows_from_the_counts() {
        use apply::Outcome::{Done, Failed, NotStarted, Unchanged};
        let fail = || Failed("x".to_owned());
        let wait = || NotStarted("x".to_owned());
        let exit = |outcomes, discoveries| Outcome::of(report(outcomes, discoveries)).exit;
        assert_eq!(exit(vec![Unchanged], vec![]), Exit::Done);
        assert_eq!(exit(vec![Done, Unchanged], vec![]), Exit::Done);
        assert_eq!(exit(vec![Done, fail()], vec![]), Exit::Partial);
        assert_eq!(exit(vec![Unchanged, fail(), wait()], vec![]), Exit::Failed);
        let broken = || vec![Discovery::Failed("x".to_owned())];
        assert_eq!(exit(vec![Done], broken()), Exit::Partial, "D4");
        assert_eq!(exit(vec![Unchanged], broken()), Exit::Failed, "D4");
        let mut stopped = report(vec![Done, wait()], vec![]);
        stopped.interrupted = true;
        assert_eq!(Outcome::of(stopped).exit, Exit::Interrupted);
    }
}
