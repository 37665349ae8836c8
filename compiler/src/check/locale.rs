//! Translations (A3): each supported locale has its files, and those name what exists.

use std::collections::{BTreeMap, BTreeSet};

use super::capability::Outcome;
use super::place::Nearest;
use super::shape::{self, Unknown};
use crate::diag::codes::{agent as codes, manifest};
use crate::diag::{Diagnostic, Severity};
use crate::model::agent::RawAgent;
use crate::model::locale::RawLocale;
use crate::model::{ToolSource, schemas};
use crate::source::AgentFolder;
use crate::yaml::{self, Document, escape};

/// The locale of agent.yaml's own labels and of agent.md, unless `default_locale` says otherwise.
const DEFAULT: &str = "en";

/// Checks `i18n` of agent.yaml and every locale file.
pub(super) fn check(
    document: &Document,
    raw: &RawAgent,
    folder: &AgentFolder,
    capabilities: &BTreeMap<&str, &Outcome>,
    findings: &mut Vec<Diagnostic>,
) {
    supported(document, raw, folder, findings);
    let names = Names::of(raw, capabilities);
    for file in &folder.locales {
        let (document, problems) = yaml::read(&file.path, &file.text);
        findings.extend(problems);
        let Some(document) = document else { continue };
        let first = findings.len();
        let raw: RawLocale = shape::read(&document, schemas::locale(), Unknown::Manifest, findings);
        for finding in findings.iter_mut().skip(first) {
            // A translation guards nothing: what is misspelt there stays untranslated, no more.
            if [&manifest::MISSPELT_FIELD, &manifest::MISPLACED_FIELD].contains(&finding.code) {
                finding.severity = Severity::Warning;
            }
        }
        names.check(&document, &raw, findings);
    }
}

/// Each supported locale but the default one has labels and prompts of its own.
fn supported(
    document: &Document,
    raw: &RawAgent,
    folder: &AgentFolder,
    findings: &mut Vec<Diagnostic>,
) {
    let Some(i18n) = &raw.i18n else { return };
    let default = i18n.default_locale.as_deref().unwrap_or(DEFAULT);
    let listed: Vec<(usize, &str)> = i18n
        .supported_locales
        .iter()
        .flatten()
        .enumerate()
        .filter_map(|(index, locale)| Some((index, locale.as_deref()?)))
        .collect();
    if !listed.is_empty() && !listed.iter().any(|(_, locale)| *locale == default) {
        let place = document.place("/i18n/default_locale");
        let message = format!("the default locale `{default}` is not among the supported ones");
        findings.push(
            Diagnostic::new(&codes::LOCALE_FILES, place, message)
                .nearest(default, listed.iter().map(|(_, locale)| *locale)),
        );
    }
    let mut seen = BTreeSet::new();
    for (index, locale) in listed {
        let place = document.place(&format!("/i18n/supported_locales/{index}"));
        if !seen.insert(locale) {
            let message = format!("the locale `{locale}` is listed twice");
            findings.push(Diagnostic::new(&codes::LOCALE_FILES, place, message));
            continue;
        }
        if locale == default {
            continue;
        }
        let missing = missing(folder, locale);
        if !missing.is_empty() {
            let message = format!(
                "the supported locale `{locale}` has no {}",
                missing.join(", no ")
            );
            findings.push(Diagnostic::new(&codes::LOCALE_FILES, place, message));
        }
    }
}

/// Files of a locale that are not there. A file of the language serves its regions: `de` for `de-AT`.
fn missing(folder: &AgentFolder, locale: &str) -> Vec<String> {
    let language = locale.split(['-', '_']).next().unwrap_or(locale);
    let has = |files: &[crate::source::SourceFile], name: &dyn Fn(&str) -> String| {
        files.iter().any(|file| {
            file.path
                .file_name()
                .is_some_and(|found| found == name(locale) || found == name(language))
        })
    };
    let mut missing = Vec::new();
    if !has(&folder.locales, &|locale| format!("{locale}.yaml")) {
        missing.push(format!("i18n/{locale}.yaml"));
    }
    if !folder.prompts.is_empty() && !has(&folder.prompts, &|locale| format!("agent.{locale}.md")) {
        missing.push(format!("agent.{locale}.md"));
    }
    for capability in &folder.capabilities {
        if !capability.prompts.is_empty()
            && !has(&capability.prompts, &|locale| format!("prompt.{locale}.md"))
        {
            let name = capability.path.file_name().unwrap_or_default();
            missing.push(format!("capabilities/{name}/prompt.{locale}.md"));
        }
    }
    missing
}

/// What a translation may name.
struct Names<'a> {
    steps: Vec<&'a str>,
    schedules: Vec<&'a str>,
    capabilities: &'a BTreeMap<&'a str, &'a Outcome>,
}

impl<'a> Names<'a> {
    fn of(raw: &'a RawAgent, capabilities: &'a BTreeMap<&'a str, &'a Outcome>) -> Self {
        let steps = raw.install_steps.iter().flatten().flatten();
        let schedules = raw
            .automation
            .iter()
            .flat_map(|automation| automation.schedules.iter().flatten().flatten());
        Self {
            steps: steps.filter_map(|step| step.id.as_deref()).collect(),
            schedules: schedules
                .filter_map(|schedule| schedule.id.as_deref())
                .collect(),
            capabilities,
        }
    }

    fn check(&self, document: &Document, raw: &RawLocale, findings: &mut Vec<Diagnostic>) {
        let mut named = |pointer: String, name: &str, what: &str, known: &[&str]| {
            if known.iter().any(|known| same(known, name)) {
                return true;
            }
            let message = format!("there is no {what} `{name}` to translate");
            findings.push(
                Diagnostic::new(&codes::LOCALE_NAME, document.key_place(&pointer), message)
                    .nearest(name, known.iter().copied()),
            );
            false
        };
        for name in raw.install_steps.iter().flat_map(BTreeMap::keys) {
            let pointer = format!("/install_steps/{}", escape(name));
            named(pointer, name, "install step", &self.steps);
        }
        let schedules = raw.automation.iter().flat_map(|it| it.schedules.iter());
        for name in schedules.flat_map(BTreeMap::keys) {
            let pointer = format!("/automation/schedules/{}", escape(name));
            named(pointer, name, "schedule", &self.schedules);
        }
        let ids: Vec<&str> = self.capabilities.keys().copied().collect();
        for (id, text) in raw.capabilities.iter().flatten() {
            let base = format!("/capabilities/{}", escape(id));
            if !named(base.clone(), id, "capability", &ids) {
                continue;
            }
            let Some((outcome, text)) = self.find(id).zip(text.as_ref()) else {
                continue;
            };
            if let Some(tools) = tools(outcome) {
                for name in text.tools.iter().flat_map(BTreeMap::keys) {
                    named(
                        format!("{base}/tools/{}", escape(name)),
                        name,
                        "tool",
                        &tools,
                    );
                }
            }
            if outcome.credentials_known {
                let known: Vec<&str> = outcome.credentials.keys().map(String::as_str).collect();
                for name in text.credentials.iter().flat_map(BTreeMap::keys) {
                    let pointer = format!("{base}/credentials/{}", escape(name));
                    named(pointer, name, "credential", &known);
                }
            }
        }
        let full: Vec<String> = self
            .capabilities
            .iter()
            .flat_map(|(id, outcome)| {
                let tools = tools(outcome).unwrap_or_default();
                tools.into_iter().map(move |tool| format!("{id}__{tool}"))
            })
            .collect();
        let full: Vec<&str> = full.iter().map(String::as_str).collect();
        let approvals = raw
            .approval
            .iter()
            .flat_map(|approval| approval.tools.iter());
        for name in approvals.flat_map(BTreeMap::keys) {
            let pointer = format!("/approval/tools/{}", escape(name));
            // Tools that only a discovery lists cannot be judged here.
            let open = name
                .split_once("__")
                .and_then(|(id, _)| self.find(id))
                .is_some_and(|outcome| tools(outcome).is_none());
            if !open {
                named(pointer, name, "tool", &full);
            }
        }
    }

    fn find(&self, id: &str) -> Option<&'a Outcome> {
        self.capabilities
            .iter()
            .find(|(known, _)| same(known, id))
            .map(|(_, outcome)| *outcome)
    }
}

/// Names of tools, where they are known.
fn tools(outcome: &Outcome) -> Option<Vec<&str>> {
    match &outcome.capability.as_ref()?.tools {
        ToolSource::Static(tools) => Some(tools.iter().map(|tool| tool.name.as_str()).collect()),
        ToolSource::Dynamic { .. } => None,
    }
}

/// Translations are found whatever the case and whichever of `-` and `_` is written.
fn same(known: &str, written: &str) -> bool {
    let plain = |c: char| {
        if c == '-' {
            '_'
        } else {
            c.to_ascii_lowercase()
        }
    };
    known.chars().map(plain).eq(written.chars().map(plain))
}
