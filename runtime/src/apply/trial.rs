//! Containers that exist for a discovery alone and leave nothing behind (D6).
//!
//! They are residents in all but name, addresses and volumes: the same image under the same limits and rules, so that
//! what they list is what the resident would list. A resident that runs is not touched.

use std::collections::BTreeMap;

use selu_compiler::diff::{self, Action, Change, ChangeSet, Subject};
use selu_compiler::model::InstanceKey;
use selu_compiler::observed::Observed;
use selu_compiler::plan::{Plan, PlannedContainer, PlannedGateway, label, names};

use super::policy::PolicyDesk;
use super::{Job, StepError};
use crate::engine::{Engine, EngineResult};

/// What the containers, networks and volumes of a discovery have as their role.
const ROLE: &str = "discovery";

/// The facts as they would be if no resident existed: addresses in use stay in use, and nothing is there to be kept or
/// replaced.
pub fn without_residents(observed: &Observed) -> Observed {
    let gateway = |labels: &BTreeMap<String, String>| {
        labels
            .get(label::ROLE)
            .is_some_and(|role| role == "gateway")
    };
    let mut masked = observed.clone();
    masked
        .containers
        .retain(|_, container| gateway(&container.spec.labels));
    masked
        .networks
        .retain(|_, network| gateway(&network.labels));
    let hidden = observed
        .networks
        .iter()
        .filter(|(name, _)| !masked.networks.contains_key(*name));
    masked
        .foreign_subnets
        .extend(hidden.filter_map(|(_, network)| network.subnet));
    masked
}

/// From a plan that was made [without residents](without_residents): the plan of the discoveries of `wanted`, and what to
/// do for it. `in_use` is the plan of what really runs, whose rules the gateway keeps.
pub fn trial(
    mut plan: Plan,
    masked: &Observed,
    in_use: &Plan,
    wanted: &[InstanceKey],
) -> (Plan, ChangeSet) {
    plan.instances.retain(|key, _| wanted.contains(key));
    let mut rules = BTreeMap::new();
    for (key, instance) in &mut plan.instances {
        let Some(resident) = &mut instance.resident else {
            continue;
        };
        let planned = plan
            .gateway
            .as_ref()
            .and_then(|gateway| gateway.policy.get(&resident.name));
        let planned = planned.cloned();
        rename(&plan.project, key, resident);
        rules.extend(planned.map(|rule| (resident.name.clone(), rule)));
    }
    let mut changes = Vec::new();
    if let Some(gateway) = &mut plan.gateway {
        gateway.policy = rules;
        if let Some(real) = &in_use.gateway {
            gateway.policy.extend(real.policy.clone());
        }
        let subject = Subject::Gateway(gateway.name.clone());
        let all = diff::changes(&plan, masked).changes;
        changes.extend(all.into_iter().find(|change| change.subject == subject));
    }
    changes.extend(plan.instances.keys().map(|key| Change {
        subject: Subject::Instance(key.clone()),
        action: Action::Create,
        reasons: Vec::new(),
    }));
    (plan, ChangeSet { changes })
}

fn rename(project: &str, key: &InstanceKey, resident: &mut PlannedContainer) {
    // Generations are numbers, so no resident ever bears such a name.
    let name = format!("selu_{project}_{}_{}_{ROLE}", key.agent(), key.capability());
    resident.network.name.clone_from(&name);
    resident.name = name;
    for (path, volume) in &mut resident.volumes {
        volume.name = names::volume(project, key, "", ROLE, path);
        volume.purpose = ROLE.to_owned();
        resident
            .spec
            .volumes
            .insert(path.clone(), volume.name.clone());
    }
    let labels = &mut resident.spec.labels;
    labels.insert(label::ROLE.to_owned(), ROLE.to_owned());
}

impl Job<'_> {
    /// Whether an instance's container exists for a discovery alone.
    pub(super) fn is_trial(&self, key: &InstanceKey) -> bool {
        let resident = self
            .plan
            .instances
            .get(key)
            .and_then(|one| one.resident.as_ref());
        resident.is_some_and(|planned| {
            planned
                .spec
                .labels
                .get(label::ROLE)
                .is_some_and(|role| role == ROLE)
        })
    }

    /// Removes what discoveries made, also what an earlier one left after a crash: only whoever has the hold discovers.
    /// A gateway that was not there before goes as well.
    pub async fn clear_trials(&self, keep_gateway: bool) -> Result<(), StepError> {
        let engine = self.engine;
        let look = |step| StepError::engine(step);
        let observed = engine.observe(&self.plan.project, &[]).await;
        let observed = observed.map_err(look("look at what the discovery left"))?;
        let of_trial = |labels: &BTreeMap<String, String>| {
            labels.get(label::ROLE).is_some_and(|role| role == ROLE)
        };
        for (name, container) in &observed.containers {
            if of_trial(&container.spec.labels) {
                let removed = engine.remove_container(name).await;
                removed.map_err(look("remove the discovery's container"))?;
            }
        }
        let networks: Vec<&String> = observed
            .networks
            .iter()
            .filter(|(_, network)| of_trial(&network.labels))
            .map(|(name, _)| name)
            .collect();
        if let Some(gateway) = &self.plan.gateway
            && observed.containers.contains_key(&gateway.name)
        {
            if keep_gateway {
                self.revoke(&gateway.name, &observed, &networks).await?;
            } else {
                self.remove_gateway(gateway)
                    .await
                    .map_err(look("remove the gateway that the discovery needed"))?;
            }
        }
        for name in networks {
            let removed = engine.remove_network(name).await;
            removed.map_err(look("remove the discovery's network"))?;
        }
        for (name, volume) in &observed.volumes {
            if of_trial(&volume.labels) {
                let removed = engine.remove_volume(name).await;
                removed.map_err(look("remove the discovery's volume"))?;
            }
        }
        Ok(())
    }

    pub(super) async fn revoke(
        &self,
        gateway: &str,
        observed: &Observed,
        networks: &[&String],
    ) -> Result<(), StepError> {
        if networks.is_empty() {
            return Ok(());
        }
        let Some(planned) = &self.plan.gateway else {
            return Ok(());
        };
        let job = Job { observed, ..*self };
        let mut rules = job.rules_in_use(planned);
        rules.retain(|name, _| !networks.contains(&name));
        PolicyDesk::open(self.engine, planned, &self.plan.project, rules)
            .await
            .map_err(StepError::gateway(
                "take the network out of the gateway's policy",
            ))?;
        for name in networks {
            let detached = self.engine.disconnect(name, gateway).await;
            detached.map_err(StepError::engine("detach the gateway from the network"))?;
        }
        Ok(())
    }

    async fn remove_gateway(&self, gateway: &PlannedGateway) -> EngineResult<()> {
        let engine: &dyn Engine = self.engine;
        engine.remove_container(&gateway.name).await?;
        engine.remove_network(&gateway.network.name).await?;
        for volume in gateway.volumes() {
            engine.remove_volume(&volume.name).await?;
        }
        Ok(())
    }
}
