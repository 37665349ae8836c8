//! Containers of sessions and users (X2, X3): made as residents are made, on demand, and removed when they are closed.

use std::collections::{BTreeMap, BTreeSet};

use selu_compiler::diff::{Action, Change, ChangeSet, Subject};
use selu_compiler::model::InstanceKey;
use selu_compiler::observed::{ContainerState, Observed, ObservedContainer};
pub(super) use selu_compiler::plan::session::ROLE;
use selu_compiler::plan::session::Who;
use selu_compiler::plan::{GatewayRule, Plan, PlannedContainer, PlannedNetwork, label, names};

use super::{Job, StepError};
use crate::engine::EngineResult;

/// A session's container that exists, whatever its state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Open {
    /// Its name, and its network's.
    pub name: String,
    /// Whose tools it serves.
    pub instance: InstanceKey,
    /// Whose it is.
    pub who: Who,
    /// Whether it runs.
    pub running: bool,
}

impl Open {
    /// Every one of a project, by instance, user and session.
    pub fn all(observed: &Observed) -> Vec<Self> {
        let mut open: Vec<Self> = observed
            .containers
            .iter()
            .filter_map(|(name, container)| Self::of(name, container))
            .collect();
        open.sort_by(|a, b| (&a.instance, &a.who).cmp(&(&b.instance, &b.who)));
        open
    }

    fn of(name: &str, container: &ObservedContainer) -> Option<Self> {
        let labels = &container.spec.labels;
        Some(Self {
            name: name.to_owned(),
            instance: InstanceKey::parse(labels.get(label::INSTANCE)?)?,
            who: Who::of_labels(labels)?,
            running: container.state == ContainerState::Running,
        })
    }

    /// Whether a container is what is planned for its session, and can be called.
    pub fn is_right(observed: &Observed, planned: &PlannedContainer) -> bool {
        let network = observed.networks.get(&planned.network.name);
        let network = network.is_some_and(|network| {
            network.closed && network.subnet == Some(planned.network.subnet)
        });
        let address = planned.network.capability.to_string();
        let found = observed.containers.get(&planned.name);
        network
            && found.is_some_and(|found| {
                found.state == ContainerState::Running
                    && found.violations.is_empty()
                    && found.spec == planned.spec
                    && found.networks.len() == 1
                    && found.networks.get(&planned.network.name) == Some(&address)
            })
    }
}

/// What the gateway carries for the sessions that exist and were made from what is planned.
pub fn session_rules(plan: &Plan, observed: &Observed) -> BTreeMap<String, GatewayRule> {
    let rule = |open: Open| {
        let subnet = observed.networks.get(&open.name)?.subnet?;
        let instance = plan.instances.get(&open.instance)?;
        let found = &observed.containers.get(&open.name)?.spec.labels;
        let resident = instance.resident.as_ref()?;
        let network = PlannedNetwork::new(open.name.clone(), subnet);
        let rule = GatewayRule {
            subnet,
            capability: network.capability,
            ..plan
                .gateway
                .as_ref()?
                .policy
                .get(&resident.network.name)?
                .clone()
        };
        (found.get(label::SPEC) == Some(&resident.spec_hash)).then_some((open.name, rule))
    };
    Open::all(observed).into_iter().filter_map(rule).collect()
}

/// The plan of a session's container beside all that runs, and what to do for it: nothing is discovered, and nothing else
/// is touched.
pub fn session_plan(
    plan: &Plan,
    key: &InstanceKey,
    container: PlannedContainer,
) -> (Plan, ChangeSet) {
    let mut plan = plan.clone();
    plan.instances.retain(|other, _| other == key);
    if let (Some(instance), Some(gateway)) = (plan.instances.get_mut(key), &mut plan.gateway) {
        instance.discovery_tool = None;
        let of_resident = instance
            .resident
            .as_ref()
            .and_then(|resident| gateway.policy.get(&resident.network.name));
        // The same rules in another place.
        if let Some(rule) = of_resident.cloned() {
            let rule = GatewayRule {
                subnet: container.network.subnet,
                capability: container.network.capability,
                ..rule
            };
            gateway.policy.insert(container.network.name.clone(), rule);
        }
        instance.resident = Some(container);
    }
    let change = Change {
        subject: Subject::Instance(key.clone()),
        action: Action::Create,
        reasons: Vec::new(),
    };
    let changes = ChangeSet {
        changes: vec![change],
    };
    (plan, changes)
}

impl Job<'_> {
    /// Removes containers of sessions by name with their networks; whether they exist, or only a part of them after a
    /// crash, makes no difference. Only whoever has the hold closes.
    pub async fn close(&self, names: &BTreeSet<String>) -> Result<(), StepError> {
        let engine = self.engine;
        for name in names {
            if self.observed.containers.contains_key(name) {
                let removed = engine.remove_container(name).await;
                removed.map_err(StepError::engine("remove the session's container"))?;
            }
        }
        let networks: Vec<&String> = names
            .iter()
            .filter(|name| self.observed.networks.contains_key(*name))
            .collect();
        if let Some(gateway) = &self.plan.gateway
            && self.observed.containers.contains_key(&gateway.name)
        {
            self.revoke(&gateway.name, self.observed, &networks).await?;
        }
        for name in networks {
            let removed = engine.remove_network(name).await;
            removed.map_err(StepError::engine("remove the session's network"))?;
        }
        Ok(())
    }

    /// Removes a closed session's workspace; its cache is the user's, and stays (X3).
    pub async fn remove_workspace(
        &self,
        instance: &InstanceKey,
        who: &Who,
    ) -> Result<(), StepError> {
        let Who { user, session } = who;
        let name = names::volume(&self.plan.project, instance, user, session, "/workspace");
        let found = self.observed.volumes.get(&name);
        let own = |labels: &BTreeMap<String, String>| {
            let is = |label: &str, value: &str| labels.get(label).is_some_and(|own| own == value);
            is(label::INSTANCE, instance.as_str()) && is(label::ROLE, "workspace")
        };
        let removed: EngineResult<()> = match found {
            Some(volume) if own(&volume.labels) => self.engine.remove_volume(&name).await,
            _ => Ok(()),
        };
        removed.map_err(StepError::engine("remove the session's workspace"))
    }
}
