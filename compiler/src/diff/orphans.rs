//! What is ours and not planned (product.md 15).

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, Change, Reason, Subject, instance};
use crate::observed::{ContainerState, Observed, ObservedContainer};
use crate::plan::{Plan, label, names};

/// Deletions. `changes` are those of the gateway and the instances: what a replacement removes is not listed again.
pub(super) fn changes(plan: &Plan, observed: &Observed, changes: &[Change]) -> Vec<Change> {
    let accounted = accounted(plan, observed, changes);
    let mut deletions = Vec::new();
    for (name, container) in &observed.containers {
        if !accounted.contains(name.as_str()) && is_left_over(container) {
            let reason = Reason::drift("container", Some(&describe(&container.spec.labels)), None);
            deletions.push(delete(Subject::Container(name.clone()), reason));
        }
    }
    for (name, network) in &observed.networks {
        let used = network.attached.iter().any(|container| {
            observed
                .containers
                .get(container)
                .is_some_and(|container| !is_left_over(container))
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
/// somebody's, too; one that does not was left by a crash.
fn is_left_over(container: &ObservedContainer) -> bool {
    let role = container.spec.labels.get(label::ROLE).map(String::as_str);
    match role {
        Some("hold") => false,
        Some("discovery" | "helper") => !matches!(
            container.state,
            ContainerState::Running | ContainerState::Paused | ContainerState::Restarting
        ),
        _ => true,
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
