//! What is ours and not planned (product.md 15).

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, Change, Reason, Subject, instance};
use crate::model::InstanceKey;
use crate::observed::{ContainerState, Observed, ObservedContainer};
use crate::plan::{Plan, label, names, session};

/// Deletions. `changes` are those of the gateway and the instances: what a replacement removes is not listed again.
pub(super) fn changes(plan: &Plan, observed: &Observed, changes: &[Change]) -> Vec<Change> {
    let accounted = accounted(plan, observed, changes);
    let mut deletions = Vec::new();
    for (name, container) in &observed.containers {
        if !accounted.contains(name.as_str()) && is_left_over(plan, container) {
            let reason = Reason::drift("container", Some(&describe(&container.spec.labels)), None);
            deletions.push(delete(Subject::Container(name.clone()), reason));
        }
    }
    for (name, network) in &observed.networks {
        let used = network.attached.iter().any(|container| {
            observed
                .containers
                .get(container)
                .is_some_and(|container| !is_left_over(plan, container))
        });
        if !accounted.contains(name.as_str()) && !used {
            let reason = Reason::drift("network", Some(&describe(&network.labels)), None);
            deletions.push(delete(Subject::Network(name.clone()), reason));
        }
    }
    deletions
}

/// Names, of containers and networks alike, that other changes see to.
fn accounted(plan: &Plan, observed: &Observed, changes: &[Change]) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = plan
        .gateway
        .iter()
        .map(|gateway| gateway.name.clone())
        .collect();
    for (key, instance) in &plan.instances {
        match &instance.resident {
            Some(resident) => {
                names.insert(resident.name.clone());
            }
            // Not compared, so not judged either.
            None => {
                names.extend(instance::predecessors(plan, key, observed));
                names.insert(names::gateway(&plan.project));
            }
        }
    }
    for change in changes {
        if let (Subject::Instance(key), Action::Replace) = (&change.subject, change.action) {
            names.extend(instance::predecessors(plan, key, observed));
        }
    }
    names
}

/// A hold is somebody's apply, whatever its state: only whoever takes the hold judges it. A discovery that runs is
/// somebody's, too; one that does not was left by a crash. A session that runs stays if it was made from what is planned;
/// its next call makes it anew.
fn is_left_over(plan: &Plan, container: &ObservedContainer) -> bool {
    let labels = &container.spec.labels;
    let runs = matches!(
        container.state,
        ContainerState::Running | ContainerState::Paused | ContainerState::Restarting
    );
    match labels.get(label::ROLE).map(String::as_str) {
        Some("hold") => false,
        Some("discovery" | "helper") => !runs,
        Some(session::ROLE) => !(runs && is_of_plan(plan, labels)),
        _ => true,
    }
}

/// Whether a session's container was made from the resident that is planned. What is not known is not judged.
fn is_of_plan(plan: &Plan, labels: &BTreeMap<String, String>) -> bool {
    let instance = labels
        .get(label::INSTANCE)
        .and_then(|key| InstanceKey::parse(key))
        .and_then(|key| plan.instances.get(&key));
    match instance {
        Some(instance) => instance
            .resident
            .as_ref()
            .is_none_or(|resident| labels.get(label::SPEC) == Some(&resident.spec_hash)),
        None => false,
    }
}

fn describe(labels: &BTreeMap<String, String>) -> String {
    let role = labels.get(label::ROLE).map_or("of no role", String::as_str);
    match labels.get(label::INSTANCE) {
        Some(instance) => format!("{role} of {instance}"),
        None => role.to_owned(),
    }
}

fn delete(subject: Subject, mut reason: Reason) -> Change {
    // The directory no longer has it.
    reason.cause = super::Cause::Intent;
    Change {
        subject,
        action: Action::Delete,
        reasons: vec![reason],
    }
}
