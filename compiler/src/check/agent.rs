//! agent.yaml: Raw → [`Agent`] (section 3), and which capabilities an agent has (L2, L3).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::capability::{self, Outcome};
use super::place::{self, Nearest};
use super::shape::{self, Unknown};
use super::{cron, locale, steps};
use crate::diag::codes::{agent as codes, layout};
use crate::diag::{Diagnostic, Place, Severity};
use crate::model::agent::RawAgent;
use crate::model::{Agent, Capability, Routing, schemas};
use crate::source::{AgentFolder, SourceFile};
use crate::yaml::{self, Document};

/// Unless the agent says otherwise.
pub(super) const IDLE_TIMEOUT_MINUTES: u64 = 30;

/// An agent.yaml by itself: what it says depends on no other file.
#[derive(Debug)]
pub(super) struct Draft {
    /// Its id; the folder's name where agent.yaml gives none.
    pub(super) id: String,
    /// Where the id is written, or the folder.
    pub(super) place: Place,
    /// agent.yaml, where it can be read.
    file: Option<(Document, RawAgent)>,
    findings: Vec<Diagnostic>,
}

/// Reads one folder's agent.yaml.
pub(super) fn read(folder: &AgentFolder) -> Draft {
    let mut draft = Draft {
        id: folder.path.file_name().unwrap_or_default().to_owned(),
        place: super::whole(&folder.path),
        file: None,
        findings: Vec::new(),
    };
    let Some(file) = &folder.agent else {
        return draft;
    };
    let (document, findings) = yaml::read(&file.path, &file.text);
    draft.findings = findings;
    let Some(document) = document else {
        return draft;
    };
    let raw: RawAgent = shape::read(
        &document,
        schemas::agent(),
        Unknown::Manifest,
        &mut draft.findings,
    );
    place::id(
        &document,
        &folder.path,
        raw.id.as_deref(),
        &mut draft.findings,
    );
    if let Some(id) = &raw.id {
        draft.id.clone_from(id);
    }
    draft.place = document.place("/id");
    draft.file = Some((document, raw));
    draft
}

/// The project's shared capabilities, and which of them an agent names.
pub(super) struct Shared {
    by_id: HashMap<String, usize>,
    outcomes: Vec<Arc<Outcome>>,
    named: Vec<bool>,
}

impl Shared {
    pub(super) fn new(outcomes: Vec<Arc<Outcome>>, findings: &mut Vec<Diagnostic>) -> Self {
        let mut by_id: HashMap<String, usize> = HashMap::new();
        for (index, outcome) in outcomes.iter().enumerate() {
            if let Some(first) = by_id.get(&outcome.id) {
                findings.push(twice(&outcome.id, &outcome.place, &outcomes[*first].place));
            } else {
                by_id.insert(outcome.id.clone(), index);
            }
        }
        let named = vec![false; outcomes.len()];
        Self {
            by_id,
            outcomes,
            named,
        }
    }

    /// L2: what no agent names never runs. Gives the findings of the capabilities themselves, too.
    pub(super) fn finish(self, findings: &mut Vec<Diagnostic>) {
        for (outcome, named) in self.outcomes.into_iter().zip(self.named) {
            if !named {
                findings.push(Diagnostic::new(
                    &layout::UNUSED_SHARED,
                    outcome.place.clone(),
                    format!("no agent names the shared capability `{}`", outcome.id),
                ));
            }
            outcome.report(findings);
        }
    }
}

fn twice(id: &str, place: &Place, first: &Place) -> Diagnostic {
    Diagnostic::new(
        &codes::CAPABILITY_TWICE,
        place.clone(),
        format!("there are two capabilities `{id}`"),
    )
    .related(first.clone(), "the other one")
}

impl Draft {
    /// The agent with its own and its named capabilities; `None` if anything is wrong with one of them.
    pub(super) fn finish(
        &self,
        folder: &AgentFolder,
        own: Vec<Arc<Outcome>>,
        shared: &mut Shared,
        ids: &mut HashMap<String, Vec<String>>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Agent> {
        let Self {
            id,
            place,
            file,
            findings: mine,
        } = self;
        let mut mine = mine.clone();
        let mut found = by_id(&own, &mut mine);
        let mut borrowed = Vec::new();
        if let Some((document, raw)) = file {
            borrowed = named(document, raw, &found, shared, &mut mine);
            for other in &borrowed {
                let outcome = &*shared.outcomes[*other];
                found.insert(&outcome.id, outcome);
            }
            steps::check(document, raw, &found, &mut mine);
            schedules(document, raw, &mut mine);
            locale::check(document, raw, folder, &found, &mut mine);
            if !found.is_empty() {
                mine.extend(prompt(folder, place.clone()));
            }
            document.keep_pasteable(&mut mine);
        }
        let right = mine
            .iter()
            .all(|finding| finding.severity != Severity::Error);
        ids.insert(
            id.clone(),
            found.keys().map(|id| (*id).to_owned()).collect(),
        );
        // Of two with the same id none counts: that is an error.
        let capabilities: Option<BTreeMap<String, Arc<Capability>>> = own
            .iter()
            .chain(borrowed.into_iter().map(|other| &shared.outcomes[other]))
            .map(|outcome| outcome.capability.clone())
            .map(|capability| capability.map(|capability| (capability.id.clone(), capability)))
            .collect();
        findings.append(&mut mine);
        for outcome in own {
            outcome.report(findings);
        }
        let (document, raw) = file.as_ref().filter(|_| right)?;
        Some(Agent {
            id: raw.id.clone()?,
            name: raw.name.clone()?,
            origin: document.origin("/id"),
            routing: raw.routing.unwrap_or(Routing::Auto),
            own_model: raw.model.is_some(),
            idle_timeout_minutes: raw
                .session
                .as_ref()
                .and_then(|session| session.idle_timeout_minutes)
                .unwrap_or(IDLE_TIMEOUT_MINUTES),
            definition: definition(raw),
            prompts: capability::prompts(&folder.prompts),
            capabilities: capabilities?,
        })
    }
}

/// What no other part of the model has, without what is not written.
fn definition(raw: &RawAgent) -> Box<str> {
    fn written(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.retain(|_, field| !field.is_null());
                fields.values_mut().for_each(written);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(written),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(raw).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("id");
        fields.remove("capabilities");
    }
    written(&mut value);
    value.to_string().into()
}

/// A5: an agent that has tools needs to be told what for.
fn prompt(folder: &AgentFolder, place: Place) -> Option<Diagnostic> {
    let is_prompt = |file: &&SourceFile| file.path.file_name() == Some("agent.md");
    let message = match folder.prompts.iter().find(is_prompt) {
        Some(file) if !file.text.trim().is_empty() => return None,
        Some(_) => "the agent has capabilities and its system prompt agent.md is empty",
        None => "the agent has capabilities and no agent.md, which is its system prompt",
    };
    Some(Diagnostic::new(&layout::NO_PROMPT, place, message))
}

/// A2, and ids that are written twice.
fn schedules(document: &Document, raw: &RawAgent, findings: &mut Vec<Diagnostic>) {
    let schedules = raw
        .automation
        .iter()
        .flat_map(|automation| automation.schedules.iter().flatten().enumerate());
    let mut ids: HashMap<&str, usize> = HashMap::new();
    for (index, schedule) in schedules {
        let Some(schedule) = schedule else { continue };
        let at = |index: usize, field: &str| {
            document.place(&format!("/automation/schedules/{index}/{field}"))
        };
        if let Some(id) = schedule.id.as_deref() {
            if let Some(first) = ids.get(id) {
                findings.push(
                    Diagnostic::new(
                        &codes::DUPLICATE_ENTRY,
                        at(index, "id"),
                        format!("there are two schedules `{id}`"),
                    )
                    .related(at(*first, "id"), "the first one"),
                );
            } else {
                ids.insert(id, index);
            }
        }
        if let Some(Err(reason)) = schedule.cron_expression.as_deref().map(cron::check) {
            findings.push(Diagnostic::new(
                &codes::BAD_CRON,
                at(index, "cron_expression"),
                reason,
            ));
        }
    }
}

/// An agent's own capabilities (L3).
fn by_id<'a>(
    own: &'a [Arc<Outcome>],
    findings: &mut Vec<Diagnostic>,
) -> BTreeMap<&'a str, &'a Outcome> {
    let mut found: BTreeMap<&str, &Outcome> = BTreeMap::new();
    for outcome in own {
        if let Some(first) = found.get(outcome.id.as_str()) {
            findings.push(twice(&outcome.id, &outcome.place, &first.place));
        } else {
            found.insert(&outcome.id, outcome);
        }
    }
    found
}

/// The shared capabilities that an agent names (L2).
fn named(
    document: &Document,
    raw: &RawAgent,
    own: &BTreeMap<&str, &Outcome>,
    shared: &mut Shared,
    findings: &mut Vec<Diagnostic>,
) -> Vec<usize> {
    let mut named = Vec::new();
    for (index, name) in raw.capabilities.iter().flatten().enumerate() {
        let Some(id) = name.as_ref().and_then(|name| name.id.as_deref()) else {
            continue;
        };
        let place = document.place(&format!("/capabilities/{index}/id"));
        match (shared.by_id.get(id).copied(), own.get(id)) {
            (Some(other), Some(own)) => {
                shared.named[other] = true;
                findings.push(
                    Diagnostic::new(
                        &codes::CAPABILITY_TWICE,
                        place,
                        format!("`{id}` is one of the agent's own capabilities and a shared one"),
                    )
                    .related(own.place.clone(), "the agent's own")
                    .related(shared.outcomes[other].place.clone(), "the shared one"),
                );
            }
            (Some(other), None) if named.contains(&other) => {
                findings.push(Diagnostic::new(
                    &codes::CAPABILITY_TWICE,
                    place,
                    format!("`{id}` is named twice"),
                ));
            }
            (Some(other), None) => {
                shared.named[other] = true;
                named.push(other);
            }
            (None, Some(_)) => {}
            (None, None) => {
                let finding = Diagnostic::new(
                    &codes::CAPABILITY_NOT_FOUND,
                    place,
                    format!(
                        "there is no capability `{id}`, neither the agent's own nor a shared one"
                    ),
                );
                let known = own
                    .keys()
                    .copied()
                    .chain(shared.by_id.keys().map(String::as_str));
                findings.push(finding.nearest(id, known));
            }
        }
    }
    named
}
