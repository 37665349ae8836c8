//! Plan × Observed → [`ChangeSet`]: what apply has to do, and why, path by path.
//!
//! Settings are compared field by field, whatever the labels say. An engine changes limits in place; everything else
//! replaces the container. The spec label tells who changed something: a container that was made for what is planned and
//! differs now was changed by someone else (drift); one that was made for something else differs by intent. Limits follow
//! no label once they were changed in place; who changed them is told by what was applied last, which the lock has.

mod fields;
mod gateway;
mod instance;
mod order;
mod orphans;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lock::Lock;
use crate::model::InstanceKey;
use crate::observed::{ContainerState, Observed};
use crate::plan::{Plan, names};

pub use instance::predecessors;
pub(crate) use instance::{may_stay, residents};
pub use order::dependencies;

/// What apply has to do so that what is observed becomes what is planned. `plan` was resolved with the same `observed`.
///
/// Volumes hold data and are in no change (product.md 15).
pub fn changes(plan: &Plan, observed: &Observed) -> ChangeSet {
    changes_since(None, plan, observed)
}

/// As [`changes`], with the lock that the last apply wrote, which tells intent and drift of limits apart.
pub fn changes_since(applied: Option<&Lock>, plan: &Plan, observed: &Observed) -> ChangeSet {
    let mut changes = Vec::new();
    changes.extend(gateway::change(plan, observed));
    for (key, planned) in &plan.instances {
        let applied = applied.and_then(|lock| lock.instances.get(key));
        let limits = applied.map(|applied| &applied.limits);
        changes.push(instance::change(plan, key, planned, observed, limits));
    }
    changes.extend(orphans::changes(plan, observed, &changes));
    ChangeSet {
        changes: order::in_order(plan, changes),
    }
}

/// The actions that lead from what is to what should be, in an order that apply may follow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ChangeSet {
    /// One per thing that exists or should exist, no-ops included.
    pub changes: Vec<Change>,
}

impl ChangeSet {
    /// Whether apply has nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes
            .iter()
            .all(|change| change.action == Action::NoOp)
    }
}

impl ChangeSet {
    /// What concerns the chosen instances: they, what is left over of them, and the gateway, which they depend on
    /// (product.md 6). Orphans and everything else stay as they are.
    pub fn only(self, plan: &Plan, targets: &BTreeSet<InstanceKey>) -> Self {
        let of_a_target = |name: &str| {
            targets
                .iter()
                .any(|key| names::generation(name, &plan.project, key).is_some())
        };
        let concerns = |change: &Change| match &change.subject {
            Subject::Gateway(_) => true,
            Subject::Instance(key) => targets.contains(key),
            Subject::Container(name) | Subject::Network(name) => of_a_target(name),
        };
        Self {
            changes: self.changes.into_iter().filter(concerns).collect(),
        }
    }

    /// Without what comes and goes by itself: a container that ends again and again is restarting at one moment and
    /// running at the next. Two sets are the same work if they are equal in this form.
    pub fn settled(&self) -> Self {
        let settle = |change: &Change| {
            let mut change = change.clone();
            let restarting = Some(instance::RESTARTING);
            change.reasons.retain(|reason| {
                reason.path != instance::STATE || reason.old.as_deref() != restarting
            });
            if change.action == Action::Start && change.reasons.is_empty() {
                change.action = Action::NoOp;
            }
            change
        };
        Self {
            changes: self.changes.iter().map(settle).collect(),
        }
    }

    /// With `[runtime] idle_stop`, a resident that was stopped and is else as planned is healthy: the next call starts it
    /// (X4). Those that are to be `asked` for their tools are started all the same, and so is one that memory ended.
    #[must_use]
    pub fn asleep(
        mut self,
        plan: &Plan,
        observed: &Observed,
        asked: &BTreeSet<InstanceKey>,
    ) -> Self {
        for change in &mut self.changes {
            let Subject::Instance(key) = &change.subject else {
                continue;
            };
            let instance = plan.instances.get(key);
            let resident = instance.and_then(|instance| instance.resident.as_ref());
            let found = resident.and_then(|one| observed.containers.get(&one.name));
            let stopped = found.is_some_and(|found| {
                matches!(
                    found.state,
                    ContainerState::Exited {
                        oom_killed: false,
                        ..
                    }
                )
            });
            if change.action == Action::Start && stopped && !asked.contains(key) {
                change.action = Action::NoOp;
                change.reasons.clear();
            }
        }
        self
    }
}

/// What happens to one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What it is.
    pub subject: Subject,
    /// What is done to it.
    pub action: Action,
    /// Why, never empty for update, replace, start and delete.
    pub reasons: Vec<Reason>,
}

/// What a change is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "kind", content = "name")]
pub enum Subject {
    /// The project's gateway with its network, volume and policy.
    Gateway(String),
    /// An instance's resident with its network and volumes.
    Instance(InstanceKey),
    /// A container of ours that the plan does not know (orphan, or left over from a crash), by name.
    Container(String),
    /// A network of ours that the plan does not know, by name.
    Network(String),
}

/// What is done (product.md 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It does not exist.
    Create,
    /// The engine can change it in place: limits, the restart setting, the gateway's attachments. It is started as well if
    /// it does not run.
    Update,
    /// A new one is made, made ready, and then the old ones ([`predecessors`]) are removed with their networks (product.md
    /// 12). The gateway has one name for good and is removed first.
    Replace,
    /// It is right but stopped, paused or never started.
    Start,
    /// It is ours and not in the directory any more (product.md 15).
    Delete,
    /// Nothing to do.
    NoOp,
}

/// Why, with the path of the field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Such as `spec.memory_bytes`, `spec.env.SELU_SESSION_ID`, `state`.
    pub path: String,
    /// What was observed, as text; `None` if it was absent.
    pub old: Option<String>,
    /// What is planned, as text; `None` if it is to be absent.
    pub new: Option<String>,
    /// Intent, or someone else's doing.
    pub cause: Cause,
    /// Whether this reason alone forces a replacement.
    pub forces_replace: bool,
}

/// Who changed something (product.md 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The directory or the lock changed.
    Intent,
    /// The live object changed, and not by us.
    Drift,
}

impl Reason {
    fn drift(path: impl Into<String>, old: Option<&str>, new: Option<&str>) -> Self {
        Self {
            path: path.into(),
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
            cause: Cause::Drift,
            forces_replace: false,
        }
    }

    fn forcing(mut self) -> Self {
        self.forces_replace = true;
        self
    }
}

#[cfg(test)]
mod tests;
