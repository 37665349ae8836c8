//! Residents.

use super::fields::{self, Made};
use super::{Action, Cause, Change, Reason, Subject};
use crate::model::{InstanceKey, Limits};
use crate::observed::{ContainerState, Observed, ObservedContainer};
use crate::plan::{Plan, PlannedContainer, PlannedInstance, PlannedNetwork, label, names};

/// Residents of an instance, the oldest first: name, role and instance label agree (S12).
pub(crate) fn residents<'a>(
    project: &str,
    key: &InstanceKey,
    observed: &'a Observed,
) -> Vec<(u64, &'a str)> {
    let mut found: Vec<(u64, &str)> = observed
        .containers
        .iter()
        .filter(|(_, container)| {
            let labels = &container.spec.labels;
            labels.get(label::INSTANCE).map(String::as_str) == Some(key.as_str())
                && labels.get(label::ROLE).map(String::as_str) == Some("resident")
        })
        .filter_map(|(name, _)| Some((names::generation(name, project, key)?, name.as_str())))
        .collect();
    found.sort_unstable();
    found
}

/// The residents that a replacement removes, with their networks of the same names: all but the planned one.
pub fn predecessors(plan: &Plan, key: &InstanceKey, observed: &Observed) -> Vec<String> {
    let planned = plan
        .instances
        .get(key)
        .and_then(|instance| instance.resident.as_ref());
    residents(&plan.project, key, observed)
        .into_iter()
        .map(|(_, name)| name)
        .filter(|name| planned.is_none_or(|planned| planned.name != *name))
        .map(str::to_owned)
        .collect()
}

/// Whether the live container of that name is what is planned, or can be made so in place.
pub(crate) fn may_stay(planned: &PlannedContainer, project: &str, observed: &Observed) -> bool {
    observed
        .containers
        .get(&planned.name)
        .is_some_and(|container| {
            !reasons(planned, container, project, observed)
                .iter()
                .any(|reason| reason.forces_replace)
        })
}

pub(super) fn change(
    plan: &Plan,
    key: &InstanceKey,
    planned: &PlannedInstance,
    observed: &Observed,
    applied: Option<&Limits>,
) -> Change {
    let subject = Subject::Instance(key.clone());
    let Some(resident) = &planned.resident else {
        // Resolved without an engine: nothing can be compared, and nothing of it can be applied.
        return Change {
            subject,
            action: Action::Create,
            reasons: Vec::new(),
        };
    };
    if let Some(container) = observed.containers.get(&resident.name) {
        let mut reasons = reasons(resident, container, &plan.project, observed);
        blame(&mut reasons, applied);
        let action = action(&reasons);
        return Change {
            subject,
            action,
            reasons,
        };
    }
    match residents(&plan.project, key, observed).last() {
        None => Change {
            subject,
            action: Action::Create,
            reasons: Vec::new(),
        },
        Some((generation, name)) => Change {
            subject,
            action: Action::Replace,
            reasons: {
                let mut reasons = why_replaced(resident, *generation, name, plan, observed);
                blame(&mut reasons, applied);
                reasons
            },
        },
    }
}

/// Limits are changed in place, so the labels of a container do not tell who changed them; what was applied last does.
fn blame(reasons: &mut [Reason], applied: Option<&Limits>) {
    for (path, value) in applied.into_iter().flat_map(fields::applied_limits) {
        for reason in reasons.iter_mut().filter(|reason| reason.path == path) {
            reason.cause = if reason.old.as_ref() == Some(&value.to_string()) {
                Cause::Intent
            } else {
                Cause::Drift
            };
        }
    }
}

pub(super) fn action(reasons: &[Reason]) -> Action {
    if reasons.iter().any(|reason| reason.forces_replace) {
        Action::Replace
    } else if reasons.iter().any(|reason| reason.path != STATE) {
        Action::Update
    } else if reasons.is_empty() {
        Action::NoOp
    } else {
        Action::Start
    }
}

/// The path of a container's state.
pub(super) const STATE: &str = "state";

/// A container that the engine is about to start again, as a reason has it.
pub(super) const RESTARTING: &str = "restarting";

/// Why the newest resident cannot stay.
fn why_replaced(
    planned: &PlannedContainer,
    generation: u64,
    name: &str,
    plan: &Plan,
    observed: &Observed,
) -> Vec<Reason> {
    let Some(container) = observed.containers.get(name) else {
        return Vec::new();
    };
    let network = observed.networks.get(name);
    let Some(subnet) = network.and_then(|network| network.subnet) else {
        let mut planned = planned.in_generation(generation, name, planned.network.subnet);
        // Which resolver was right for a network that is gone, nobody can say.
        planned.spec.dns.clone_from(&container.spec.dns);
        let mut reasons = spec_reasons(&planned.spec, &planned.spec_hash, container);
        reasons.push(Reason::drift("network", None, Some("its own network")).forcing());
        return reasons;
    };
    let as_it_was = planned.in_generation(generation, name, subnet);
    let mut reasons = reasons(&as_it_was, container, &plan.project, observed);
    if subnet.prefix_len() != planned.network.subnet.prefix_len() {
        let size = |prefix: u8| format!("/{prefix}");
        let (old, new) = (
            size(subnet.prefix_len()),
            size(planned.network.subnet.prefix_len()),
        );
        let mut reason = Reason::drift("network.size", Some(&old), Some(&new)).forcing();
        reason.cause = fields::made(&planned.spec, &planned.spec_hash, &container.spec).cause();
        reasons.push(reason);
    }
    reasons
}

/// Everything in which the live container of that name differs.
fn reasons(
    planned: &PlannedContainer,
    container: &ObservedContainer,
    project: &str,
    observed: &Observed,
) -> Vec<Reason> {
    let mut reasons = spec_reasons(&planned.spec, &planned.spec_hash, container);
    let labels = [label::INSTANCE, label::GENERATION, label::ROLE]
        .into_iter()
        .filter_map(|name| Some((name, planned.spec.labels.get(name)?.as_str())));
    reasons.extend(network_reasons(
        &planned.network,
        &labels.collect::<Vec<_>>(),
        &planned.name,
        &names::gateway(project),
        observed,
    ));
    let here = container.networks.get(&planned.network.name);
    let address = planned.network.capability.to_string();
    reasons.extend(attachment(
        &planned.network.name,
        here.map(String::as_str),
        &address,
        &container.state,
    ));
    for (name, address) in &container.networks {
        if *name != planned.network.name {
            let path = format!("networks.{name}");
            reasons.push(Reason::drift(path, Some(address), None).forcing());
        }
    }
    // Whatever ties a resident to its network cannot be mended without a moment in which it is not cut off.
    for reason in &mut reasons {
        if reason.path.starts_with("networks.") {
            reason.forces_replace = true;
        }
    }
    reasons
}

/// Settings, hash label, violations and state: the same for residents and the gateway.
pub(super) fn spec_reasons(
    planned: &crate::plan::ContainerSpec,
    planned_hash: &str,
    container: &ObservedContainer,
) -> Vec<Reason> {
    let made = fields::made(planned, planned_hash, &container.spec);
    let mut reasons = fields::settings(planned, &container.spec, made);
    if made == Made::ForOther && !reasons.iter().any(|reason| reason.forces_replace) {
        // The hash covers nothing that is not compared above, so the label itself was changed or lost.
        let old = container.spec.labels.get(label::SPEC).map(String::as_str);
        let path = format!("spec.labels.{}", label::SPEC);
        reasons.push(Reason::drift(path, old, Some(planned_hash)).forcing());
    }
    if made != Made::ForOther {
        // Otherwise they differ because the rest does: another image has other labels to blank.
        reasons.extend(fields::bindings(planned, &container.spec, made));
    }
    for violation in &container.violations {
        reasons.push(Reason::drift("violations", Some(violation), None).forcing());
    }
    if container.state != ContainerState::Running {
        let state = state(&container.state);
        let mut reason = Reason::drift(STATE, Some(&state), Some("running"));
        // A dead container can be neither started nor changed.
        reason.forces_replace = container.state == ContainerState::Dead;
        reasons.push(reason);
    }
    reasons
}

/// A network must be there, closed, and without a stranger in it.
pub(super) fn network_reasons(
    planned: &PlannedNetwork,
    labels: &[(&str, &str)],
    container: &str,
    gateway: &str,
    observed: &Observed,
) -> Vec<Reason> {
    let Some(network) = observed.networks.get(&planned.name) else {
        return vec![Reason::drift("network", None, Some(&planned.name)).forcing()];
    };
    let mut reasons = Vec::new();
    let subnet = network.subnet.map(|subnet| subnet.to_string());
    let wanted = planned.subnet.to_string();
    if subnet.as_deref() != Some(&wanted) {
        reasons.push(Reason::drift("network.subnet", subnet.as_deref(), Some(&wanted)).forcing());
    }
    if subnet.as_ref() == Some(&wanted) {
        let bridge = network.bridge.map(|address| address.to_string());
        let range = network.range.map(|range| range.to_string());
        let dynamic = planned.dynamic_range();
        for (path, old, new) in [
            ("network.bridge", bridge, planned.bridge.to_string()),
            ("network.range", range, dynamic.to_string()),
        ] {
            if old.as_ref() != Some(&new) {
                reasons.push(Reason::drift(path, old.as_deref(), Some(&new)).forcing());
            }
        }
    }
    for &(name, new) in labels {
        let old = network.labels.get(name).map(String::as_str);
        if old != Some(new) {
            let path = format!("network.labels.{name}");
            reasons.push(Reason::drift(path, old, Some(new)).forcing());
        }
    }
    if planned.outside && !network.outside {
        let old = if network.closed { "none" } else { "other" };
        reasons.push(Reason::drift("network.outside", Some(old), Some("only")).forcing());
    }
    if !planned.outside && !network.closed {
        reasons.push(Reason::drift("network.closed", Some("false"), Some("true")).forcing());
    }
    for stranger in &network.attached {
        if stranger != container && stranger != gateway {
            reasons.push(Reason::drift("network.attached", Some(stranger), None).forcing());
        }
    }
    reasons
}

/// The address in one network. An engine shows none for a container that does not run.
pub(super) fn attachment(
    network: &str,
    address: Option<&str>,
    wanted: &str,
    state: &ContainerState,
) -> Option<Reason> {
    let same = match address {
        Some("") => *state != ContainerState::Running,
        Some(address) => address == wanted,
        None => false,
    };
    (!same).then(|| Reason::drift(format!("networks.{network}"), address, Some(wanted)))
}

fn state(state: &ContainerState) -> String {
    match state {
        ContainerState::Created => "never started".to_owned(),
        ContainerState::Running => "running".to_owned(),
        ContainerState::Paused => "paused".to_owned(),
        ContainerState::Restarting => RESTARTING.to_owned(),
        ContainerState::Exited {
            oom_killed: true, ..
        } => "stopped, out of memory".to_owned(),
        ContainerState::Exited { code, .. } => format!("stopped, exit code {code}"),
        ContainerState::Dead => "dead".to_owned(),
    }
}
