//! Install steps (A1).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::capability::Outcome;
use super::place::Nearest;
use crate::diag::Diagnostic;
use crate::diag::codes::agent as codes;
use crate::model::CredentialScope;
use crate::model::agent::{RawAgent, RawStep, RawStepType, RawStoreAs, RawStoreScope};
use crate::yaml::Document;

/// Names of steps, of the steps before them, and of the credentials that they fill.
pub(super) fn check(
    document: &Document,
    raw: &RawAgent,
    capabilities: &BTreeMap<&str, &Outcome>,
    findings: &mut Vec<Diagnostic>,
) {
    let steps: Vec<(usize, &RawStep)> = raw
        .install_steps
        .iter()
        .flatten()
        .enumerate()
        .filter_map(|(index, step)| Some((index, step.as_ref()?)))
        .collect();
    let mut order: HashMap<&str, usize> = HashMap::new();
    for (index, step) in &steps {
        let Some(id) = step.id.as_deref() else {
            continue;
        };
        if let Some(first) = order.get(id) {
            findings.push(
                Diagnostic::new(
                    &codes::DUPLICATE_ENTRY,
                    document.place(&format!("/install_steps/{index}/id")),
                    format!("there are two steps `{id}`"),
                )
                .related(
                    document.place(&format!("/install_steps/{first}/id")),
                    "the first one",
                ),
            );
        } else {
            order.insert(id, *index);
        }
    }
    let used: HashSet<&str> = steps
        .iter()
        .filter_map(|(_, step)| step.request.as_ref()?.url.as_deref())
        .flat_map(placeholders)
        .collect();
    for (index, step) in steps {
        without_effect(document, index, step, &used, findings);
        default(document, index, step, findings);
        let base = format!("/install_steps/{index}");
        for (at, earlier) in step.depends_on.iter().flatten().enumerate() {
            let Some(earlier) = earlier else { continue };
            let message = match order.get(earlier.as_str()) {
                Some(found) if *found < index => continue,
                // Only earlier steps may be named, so no circle can arise.
                Some(_) => format!("the step `{earlier}` does not come before this one"),
                None => format!("there is no step `{earlier}`"),
            };
            let place = document.place(&format!("{base}/depends_on/{at}"));
            findings.push(
                Diagnostic::new(&codes::STEP_NOT_FOUND, place, message)
                    .nearest(earlier, order.keys().copied()),
            );
        }
        if let Some(url) = step
            .request
            .as_ref()
            .and_then(|request| request.url.as_deref())
        {
            if url.rfind("{{") > url.rfind("}}") {
                let place = document.place(&format!("{base}/request/url"));
                let message = "`{{` is not closed: a step is named as `{{step_id}}`";
                findings.push(Diagnostic::new(&codes::STEP_NOT_FOUND, place, message));
            }
            for name in placeholders(url) {
                if !order.contains_key(name) {
                    let place = document.place(&format!("{base}/request/url"));
                    let message = format!("`{{{{{name}}}}}` names no step");
                    let mut finding = Diagnostic::new(&codes::STEP_NOT_FOUND, place, message)
                        .nearest(name, order.keys().copied());
                    // What is pasted takes the place of the whole address.
                    finding.suggestion = finding.suggestion.map(|near| {
                        url.replace(&format!("{{{{{name}}}}}"), &format!("{{{{{near}}}}}"))
                    });
                    findings.push(finding);
                }
            }
        }
        if let Some(target) = &step.store_as {
            store_as(
                document,
                &format!("{base}/store_as"),
                target,
                capabilities,
                findings,
            );
        }
    }
}

/// What a step asks for, or has, in vain.
fn without_effect(
    document: &Document,
    index: usize,
    step: &RawStep,
    used: &HashSet<&str>,
    findings: &mut Vec<Diagnostic>,
) {
    let base = format!("/install_steps/{index}");
    let is_used = step.id.as_deref().is_some_and(|id| used.contains(id));
    // What is written and was refused has its own finding.
    let written = |field: &str| document.at(&format!("{base}/{field}")).is_some();
    let (place, message) = match step.kind {
        Some(RawStepType::Input) if !written("store_as") && !is_used => (
            document.place(&format!("{base}/id")),
            "nothing stores or uses the value of this step",
        ),
        Some(RawStepType::Test) if !written("request") => (
            document.place(&format!("{base}/id")),
            "this step tests nothing: it has no `request`",
        ),
        _ => {
            let vain: &[&str] = match step.kind {
                Some(RawStepType::Input) => &["request"],
                Some(RawStepType::Test) => &["store_as", "default", "validation"],
                None => &[],
            };
            let Some(field) = vain.iter().find(|field| written(field)) else {
                return;
            };
            let message = match step.kind {
                Some(RawStepType::Test) => "this has no effect: a `test` step asks for no value",
                _ => "this has no effect: an `input` step sends no request",
            };
            (document.key_place(&format!("{base}/{field}")), message)
        }
    };
    findings.push(Diagnostic::new(&codes::STEP_WITHOUT_EFFECT, place, message));
}

/// The offered value against the checks that have a known meaning; other words are the installer's own.
fn default(document: &Document, index: usize, step: &RawStep, findings: &mut Vec<Diagnostic>) {
    let (Some(value), Some(validation)) = (&step.default, &step.validation) else {
        return;
    };
    let refused = match validation.as_str() {
        "not_empty" => value.trim().is_empty(),
        "url" => !["http://", "https://"].iter().any(|scheme| {
            value
                .strip_prefix(scheme)
                .is_some_and(|rest| !rest.is_empty())
        }),
        _ => false,
    };
    if refused {
        findings.push(Diagnostic::new(
            &codes::STEP_DEFAULT,
            document.place(&format!("/install_steps/{index}/default")),
            format!("`validation: {validation}` refuses this default"),
        ));
    }
}

/// The names in `{{…}}`.
fn placeholders(url: &str) -> impl Iterator<Item = &str> {
    url.split("{{")
        .skip(1)
        .filter_map(|rest| rest.split_once("}}"))
        .map(|(name, _)| name.trim())
}

fn store_as(
    document: &Document,
    base: &str,
    target: &RawStoreAs,
    capabilities: &BTreeMap<&str, &Outcome>,
    findings: &mut Vec<Diagnostic>,
) {
    let (Some(id), Some(name)) = (&target.capability_id, &target.credential_name) else {
        return;
    };
    let Some(outcome) = capabilities.get(id.as_str()) else {
        let finding = Diagnostic::new(
            &codes::STORE_AS,
            document.place(&format!("{base}/capability_id")),
            format!("the agent has no capability `{id}`"),
        );
        findings.push(finding.nearest(id, capabilities.keys().copied()));
        return;
    };
    if !outcome.credentials_known {
        return;
    }
    let Some(declared) = outcome.credentials.get(name) else {
        let finding = Diagnostic::new(
            &codes::STORE_AS,
            document.place(&format!("{base}/credential_name")),
            format!("the capability `{id}` declares no credential `{name}`"),
        )
        .related(outcome.place.clone(), "its manifest");
        let known = outcome.credentials.keys().map(String::as_str);
        findings.push(finding.nearest(name, known));
        return;
    };
    let wanted = match target.scope {
        Some(RawStoreScope::SystemCredential) => CredentialScope::System,
        Some(RawStoreScope::UserCredential) => CredentialScope::User,
        None => return,
    };
    if declared.is_some_and(|declared| declared != wanted) {
        let right = match wanted {
            CredentialScope::System => "user_credential",
            CredentialScope::User => "system_credential",
        };
        findings.push(
            Diagnostic::new(
                &codes::STORE_AS,
                document.place(&format!("{base}/scope")),
                format!("the credential `{name}` of `{id}` has another scope"),
            )
            .help(format!("write {right}"))
            .suggest(right)
            .related(outcome.place.clone(), "its manifest"),
        );
    }
}
