//! The gateway.

use super::instance::{action, attachment, network_reasons, spec_reasons};
use super::{Action, Cause, Change, Reason, Subject};
use crate::observed::Observed;
use crate::plan::{Plan, PlannedGateway, label};

pub(super) fn change(plan: &Plan, observed: &Observed) -> Option<Change> {
    let planned = plan.gateway.as_ref()?;
    let subject = Subject::Gateway(planned.name.clone());
    let Some(container) = observed.containers.get(&planned.name) else {
        return Some(Change {
            subject,
            action: Action::Create,
            reasons: Vec::new(),
        });
    };
    let mut reasons = spec_reasons(&planned.spec, &planned.spec_hash, container);
    reasons.extend(
        network_reasons(
            &planned.network,
            &[(label::ROLE, "gateway")],
            &planned.name,
            &planned.name,
            observed,
        )
        .into_iter()
        // Short-lived helpers of ours may stand in the gateway's own network.
        .filter(|reason| {
            reason.path != "network.attached"
                || reason
                    .old
                    .as_ref()
                    .is_none_or(|name| !observed.containers.contains_key(name))
        }),
    );
    // An engine changes no resolvers of a live container, so it is the setting that has changed.
    for reason in reasons.iter_mut().filter(|one| one.path == "spec.dns") {
        reason.cause = Cause::Intent;
    }
    if reasons.iter().any(|reason| reason.cause == Cause::Intent) {
        // A gateway that begins to carry moves to a network that leads outside, and back.
        let moved = |path: &str| matches!(path, "network.outside" | "network.closed");
        for reason in reasons.iter_mut().filter(|reason| moved(&reason.path)) {
            reason.cause = Cause::Intent;
        }
    }
    reasons.extend(own_attachment(planned, container).map(Reason::forcing));
    reasons.extend(attachments(plan, container, observed));
    Some(Change {
        subject,
        action: action(&reasons),
        reasons,
    })
}

fn own_attachment(
    planned: &PlannedGateway,
    container: &crate::observed::ObservedContainer,
) -> Option<Reason> {
    attachment(
        &planned.network.name,
        container
            .networks
            .get(&planned.network.name)
            .map(String::as_str),
        &planned.network.gateway.to_string(),
        &container.state,
    )
}

/// Attachments to the networks of residents that exist: a new resident's network is attached along with it, and an old
/// one's is detached along with it.
fn attachments(
    plan: &Plan,
    container: &crate::observed::ObservedContainer,
    observed: &Observed,
) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = plan
        .instances
        .values()
        .filter_map(|instance| instance.resident.as_ref())
        .filter(|resident| observed.containers.contains_key(&resident.name))
        .filter_map(|resident| {
            attachment(
                &resident.network.name,
                container
                    .networks
                    .get(&resident.network.name)
                    .map(String::as_str),
                &resident.network.gateway.to_string(),
                &container.state,
            )
        })
        .collect();
    for (name, address) in &container.networks {
        if !observed.networks.contains_key(name) {
            let path = format!("networks.{name}");
            reasons.push(Reason::drift(path, Some(address), None).forcing());
        }
    }
    reasons
}
