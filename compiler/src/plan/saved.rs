//! A plan in a file: all that applying it needs, and what it was made from, so that a stale one is refused by name
//! (product.md 5).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FORMAT_VERSION, Plan, hash, label};
use crate::diag::shown;
use crate::diff::ChangeSet;
use crate::lock::Lock;
use crate::model::{InstanceKey, OnChange, Origin, Policy, Settings};
use crate::observed::{
    ContainerState, Observed, ObservedContainer, ObservedNetwork, ObservedVolume,
};
use crate::review::Review;

/// What `plan --format json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanDocument {
    /// [`FORMAT_VERSION`].
    pub format_version: String,
    /// What should exist.
    pub plan: Plan,
    /// What there is to do; `null` where nothing was compared (`plan --offline`).
    pub changes: Option<ChangeSet>,
    /// The instances that `--target` chose; `null` for all.
    pub targets: Option<BTreeSet<InstanceKey>>,
    /// What it means for rights, compared with what runs and what the lock says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

/// What `plan --out` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SavedPlan {
    /// [`FORMAT_VERSION`].
    pub format_version: String,
    /// Random: a plan is used once.
    pub plan_id: String,
    /// What should exist.
    pub plan: Plan,
    /// What there is to do.
    pub changes: ChangeSet,
    /// The instances that `--target` chose; `null` for all.
    pub targets: Option<BTreeSet<InstanceKey>>,
    /// What it means for rights, for whoever looks at it; applying it does not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Dynamic instances that are to be asked for their tools although nothing about them changes (D5).
    pub due: BTreeSet<InstanceKey>,
    /// What applying needs of selu.toml.
    pub settings: SavedSettings,
    /// What it was made from.
    pub basis: Basis,
}

/// What applying needs of selu.toml.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SavedSettings {
    /// `[engine] host`.
    pub engine_host: Option<String>,
    /// `[discovery] on_change`.
    pub on_change: OnChange,
    /// `[policy]`: instance → tool → policy.
    pub policies: BTreeMap<InstanceKey, BTreeMap<String, Policy>>,
}

/// What a plan was made from, object by object. Objects are known by the engine's id and by a hash of everything that was
/// observed of them: nothing that somebody may have set on them gets into a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Basis {
    /// Hash of each entry of selu.lock; `null` where there was none.
    pub lock: Option<BTreeMap<InstanceKey, String>>,
    /// The engine's own id.
    pub engine: String,
    /// By name.
    pub containers: BTreeMap<String, Fact>,
    /// By name.
    pub networks: BTreeMap<String, Fact>,
    /// By name.
    pub volumes: BTreeMap<String, Fact>,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// The engine's id; the name for volumes, which have none.
    pub id: String,
    /// `sha256:…` of what was observed.
    pub hash: String,
}

/// What is not any more as it was when a plan was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// selu.lock appeared or went.
    Lock {
        /// Whether there is one now.
        exists: bool,
    },
    /// An entry of selu.lock.
    Entry {
        /// Whose.
        instance: InstanceKey,
        /// How.
        how: How,
    },
    /// It is another engine.
    Engine,
    /// An object of ours on the engine.
    Object {
        /// `container`, `network`, `volume`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// How.
        how: How,
    },
    /// A name that the plan needs is somebody else's by now.
    NameTaken {
        /// The name.
        name: String,
        /// What is known of the owner.
        owner: String,
    },
    /// A subnet that the plan gives to a network is used by somebody else by now.
    SubnetTaken {
        /// The network.
        network: String,
    },
    /// An image that the engine had is gone.
    ImageGone {
        /// Whose.
        instance: InstanceKey,
        /// Which.
        reference: String,
    },
}

/// How something moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is gone.
    Gone,
    /// It is new.
    New,
    /// Another one has its name.
    Remade,
    /// It is the same one, changed.
    Changed,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock { exists: true } => f.write_str("selu.lock exists now"),
            Self::Lock { exists: false } => f.write_str("selu.lock is gone"),
            Self::Entry { instance, how } => write!(f, "selu.lock: the entry of {instance} {how}"),
            Self::Engine => f.write_str("the engine is another one"),
            Self::Object { kind, name, how } => write!(f, "{kind} {} {how}", shown(name)),
            Self::NameTaken { name, owner } => {
                write!(f, "the name {} is taken by {}", shown(name), shown(owner))
            }
            Self::SubnetTaken { network } => {
                write!(f, "the subnet of network {} is in use", shown(network))
            }
            Self::ImageGone {
                instance,
                reference,
            } => write!(
                f,
                "{instance}: the engine has no image {} any more",
                shown(reference)
            ),
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "is gone",
            Self::New => "is new",
            Self::Remade => "was made anew",
            Self::Changed => "has changed",
        })
    }
}

/// Why a file is no plan that can be applied.
#[derive(Debug, thiserror::Error)]
pub enum SavedPlanError {
    /// Not JSON, or not a saved plan.
    #[error("it is no saved plan")]
    Malformed(#[source] serde_json::Error),
    /// Printed by `plan --format json`, which does not say what it was made from.
    #[error(
        "it was printed by `selu plan --format json`; a plan that can be applied is written by `selu plan --out`"
    )]
    Printed,
    /// Another version of the format.
    #[error("it has format {found}, and this selu applies {FORMAT_VERSION}")]
    Version {
        /// What it says.
        found: String,
    },
    /// A field that this version does not know may be a guard, so the plan is not applied without it.
    #[error(
        "it has something that this selu does not know or would write differently, at {pointer}"
    )]
    Unknown {
        /// Where, as a JSON pointer.
        pointer: String,
    },
}

impl PlanDocument {
    /// For people: the chosen instances and their agents alone.
    pub fn chosen(&self) -> Plan {
        let mut plan = self.plan.clone();
        if let Some(targets) = &self.targets {
            plan.instances.retain(|key, _| targets.contains(key));
            let agents: BTreeSet<&str> = targets.iter().map(InstanceKey::agent).collect();
            plan.agents.retain(|id, _| agents.contains(id.as_str()));
        }
        plan
    }
}

impl SavedPlan {
    /// The part of it that `plan` prints.
    pub fn document(&self) -> PlanDocument {
        PlanDocument {
            format_version: self.format_version.clone(),
            plan: self.plan.clone(),
            changes: Some(self.changes.clone()),
            targets: self.targets.clone(),
            review: self.review.clone(),
        }
    }

    /// Reads one that is to be applied: strictly, because a field that is passed over may be a guard.
    ///
    /// # Errors
    /// When it is not a plan of this version's format, as this version writes it.
    pub fn read(text: &str) -> Result<Self, SavedPlanError> {
        let value: Value = serde_json::from_str(text).map_err(SavedPlanError::Malformed)?;
        match value.get("format_version").and_then(Value::as_str) {
            Some(FORMAT_VERSION) | None => {}
            Some(found) => {
                return Err(SavedPlanError::Version {
                    found: shown(found),
                });
            }
        }
        if value.get("plan_id").is_none() && value.get("plan").is_some() {
            return Err(SavedPlanError::Printed);
        }
        let saved: Self =
            serde_json::from_value(value.clone()).map_err(SavedPlanError::Malformed)?;
        let again = serde_json::to_value(&saved).map_err(SavedPlanError::Malformed)?;
        match first_difference(&value, &again, String::new()) {
            Some(pointer) => Err(SavedPlanError::Unknown {
                pointer: shown(&pointer),
            }),
            None => Ok(saved),
        }
    }

    /// Everything that is not as it was when the plan was made. Of `observed`, `images` must have what the engine knows
    /// of the plan's own references, and `foreign_names` what it knows of [`Plan::wanted_names`].
    pub fn moved(&self, lock: Option<&Lock>, observed: &Observed) -> Vec<Moved> {
        let mut moved = self.basis.moved(&Basis::of(lock, observed));
        for (name, owner) in &observed.foreign_names {
            moved.push(Moved::NameTaken {
                name: name.clone(),
                owner: owner.clone(),
            });
        }
        for (key, instance) in &self.plan.instances {
            let chosen = self.targets.as_ref().is_none_or(|set| set.contains(key));
            let here = |reference: &String| {
                let image = observed.images.get(reference);
                image.is_some_and(|image| image.id.is_some())
            };
            let needed = instance.image.reference.as_ref();
            let needed = needed.filter(|_| chosen && !instance.image.pull);
            if let Some(reference) = needed.filter(|reference| !here(reference)) {
                moved.push(Moved::ImageGone {
                    instance: key.clone(),
                    reference: reference.clone(),
                });
            }
            let network = instance.resident.as_ref().map(|resident| &resident.network);
            if let Some(network) = network.filter(|network| {
                !observed.networks.contains_key(&network.name)
                    && observed.foreign_subnets.iter().any(|other| {
                        other.contains(&network.subnet) || network.subnet.contains(other)
                    })
            }) {
                moved.push(Moved::SubnetTaken {
                    network: network.name.clone(),
                });
            }
        }
        moved
    }
}

impl Plan {
    /// Names of containers, networks and volumes that the plan uses (F08).
    pub fn wanted_names(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        if let Some(gateway) = &self.gateway {
            names.insert(gateway.name.clone());
            names.extend(gateway.volumes().into_iter().map(|volume| volume.name));
        }
        for resident in self
            .instances
            .values()
            .filter_map(|instance| instance.resident.as_ref())
        {
            names.insert(resident.name.clone());
            names.extend(resident.volumes.values().map(|volume| volume.name.clone()));
        }
        names.into_iter().collect()
    }
}

impl SavedSettings {
    /// The part that applying needs.
    pub fn of(settings: &Settings) -> Self {
        let mut policies: BTreeMap<InstanceKey, BTreeMap<String, Policy>> = BTreeMap::new();
        for ((key, tool), (policy, _)) in &settings.policies {
            let tools = policies.entry(key.clone()).or_default();
            tools.insert(tool.clone(), *policy);
        }
        Self {
            engine_host: settings.engine_host.clone(),
            on_change: settings.on_change,
            policies,
        }
    }

    /// As if they had been read; nothing is known of the places.
    pub fn settings(&self) -> Settings {
        let place = Origin {
            file: "selu.toml".into(),
            line: 0,
            column: 0,
        };
        let policies = self.policies.iter().flat_map(|(key, tools)| {
            let place = place.clone();
            tools
                .iter()
                .map(move |(tool, policy)| ((key.clone(), tool.clone()), (*policy, place.clone())))
        });
        Settings {
            policies: policies.collect(),
            engine_host: self.engine_host.clone(),
            on_change: self.on_change,
            ..Settings::default()
        }
    }
}

impl Basis {
    /// What a plan is made from. Holds and other short-lived containers are somebody's work at this moment and no basis.
    pub fn of(lock: Option<&Lock>, observed: &Observed) -> Self {
        let for_a_while = |labels: &BTreeMap<String, String>| {
            let role = labels.get(label::ROLE).map(String::as_str);
            matches!(role, Some("hold" | "discovery" | "helper"))
        };
        let passing = |name: &String| {
            let container = observed.containers.get(name);
            container.is_some_and(|container| for_a_while(&container.spec.labels))
        };
        let containers = observed
            .containers
            .iter()
            .filter(|(name, _)| !passing(name))
            .map(|(name, container)| (name.clone(), container_fact(container)));
        let networks = observed.networks.iter();
        let networks = networks.filter(|(_, network)| !for_a_while(&network.labels));
        let networks = networks.map(|(name, network)| {
            let mut network = network.clone();
            // Which of ours are in it each of them knows itself, and one that does not run at this moment is not shown.
            network
                .attached
                .retain(|name| !observed.containers.contains_key(name));
            network.attached.sort();
            (name.clone(), network_fact(&network))
        });
        let volumes = observed
            .volumes
            .iter()
            .filter(|(_, volume)| !for_a_while(&volume.labels))
            .map(|(name, volume)| (name.clone(), volume_fact(name, volume)));
        Self {
            lock: lock.map(entries),
            engine: observed.engine.id.clone(),
            containers: containers.collect(),
            networks: networks.collect(),
            volumes: volumes.collect(),
        }
    }

    /// From this to what is now.
    pub fn moved(&self, now: &Self) -> Vec<Moved> {
        let Self {
            lock,
            engine,
            containers,
            networks,
            volumes,
        } = self;
        let mut moved = Vec::new();
        match (lock, &now.lock) {
            (None, None) => {}
            (None, Some(_)) => moved.push(Moved::Lock { exists: true }),
            (Some(_), None) => moved.push(Moved::Lock { exists: false }),
            (Some(old), Some(new)) => {
                let keys: BTreeSet<&InstanceKey> = old.keys().chain(new.keys()).collect();
                for key in keys {
                    if let Some(how) = how(old.get(key), new.get(key), |_, _| true) {
                        moved.push(Moved::Entry {
                            instance: key.clone(),
                            how,
                        });
                    }
                }
            }
        }
        if *engine != now.engine {
            moved.push(Moved::Engine);
        }
        for (kind, old, new) in [
            ("container", containers, &now.containers),
            ("network", networks, &now.networks),
            ("volume", volumes, &now.volumes),
        ] {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let same = |old: &Fact, new: &Fact| old.id == new.id;
                if let Some(how) = how(old.get(name), new.get(name), same) {
                    moved.push(Moved::Object {
                        kind,
                        name: name.clone(),
                        how,
                    });
                }
            }
        }
        moved
    }
}

fn how<T: PartialEq>(
    old: Option<&T>,
    new: Option<&T>,
    same: impl Fn(&T, &T) -> bool,
) -> Option<How> {
    match (old, new) {
        (Some(_), None) => Some(How::Gone),
        (None, Some(_)) => Some(How::New),
        (Some(old), Some(new)) if old != new && same(old, new) => Some(How::Changed),
        (Some(old), Some(new)) if old != new => Some(How::Remade),
        _ => None,
    }
}

fn entries(lock: &Lock) -> BTreeMap<InstanceKey, String> {
    let one = |(key, entry): (&InstanceKey, &crate::lock::LockedInstance)| {
        let alone = Lock {
            instances: BTreeMap::from([(key.clone(), entry.clone())]),
        };
        (key.clone(), hash::sha256(alone.write(None).as_bytes()))
    };
    lock.instances.iter().map(one).collect()
}

fn container_fact(container: &ObservedContainer) -> Fact {
    let ObservedContainer {
        id,
        state,
        spec,
        image_id,
        networks,
        violations,
    } = container;
    // One that ends again and again is at one moment this and at the next moment that, and has no addresses meanwhile.
    let state = match state {
        ContainerState::Restarting => &ContainerState::Running,
        state => state,
    };
    let networks: Vec<&String> = networks.keys().collect();
    Fact {
        id: id.clone(),
        hash: hash_of(&(state, spec, image_id, networks, violations)),
    }
}

fn network_fact(network: &ObservedNetwork) -> Fact {
    let ObservedNetwork {
        id,
        subnet,
        bridge,
        range,
        closed,
        outside,
        labels,
        attached,
    } = network;
    Fact {
        id: id.clone(),
        hash: hash_of(&(subnet, bridge, range, closed, outside, labels, attached)),
    }
}

fn volume_fact(name: &str, volume: &ObservedVolume) -> Fact {
    let ObservedVolume { labels, violations } = volume;
    Fact {
        id: name.to_owned(),
        hash: hash_of(&(labels, violations)),
    }
}

/// These types are plain data with text keys, which always have a JSON form; one that had none would differ from
/// everything that has one.
fn hash_of(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    hash::sha256(text.as_bytes())
}

/// Where two JSON values differ first, as a pointer.
fn first_difference(a: &Value, b: &Value, pointer: String) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            keys.into_iter().find_map(|key| {
                let here = format!("{pointer}/{key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => first_difference(a, b, here),
                    _ => Some(here),
                }
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(index, (a, b))| first_difference(a, b, format!("{pointer}/{index}"))),
        _ => (a != b).then_some(pointer),
    }
}

#[cfg(test)]
mod tests;
