//! What a change means for the rights of tools: every difference between two states of a project, typed, with its path
//! and a grade (product.md 28).
//!
//! Whatever is compared — locks, plans, directories, revisions — becomes a [`Snapshot`] first. Widening comes first, and
//! what can't be decided counts as widening.

mod instance;
pub mod schema;
pub mod text;
mod tool;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lock::{Lock, LockedInstance};
use crate::model::InstanceKey;
use crate::plan::Plan;

/// Version of the JSON form.
pub const FORMAT_VERSION: &str = "1.0";

/// What there is to compare: everything that grants or limits a right.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// By key.
    pub instances: BTreeMap<InstanceKey, LockedInstance>,
    /// Rules whose destinations may be private addresses (N8); nothing where only a lock is known.
    pub private: BTreeMap<InstanceKey, Vec<String>>,
}

impl Snapshot {
    /// All that a lock says.
    pub fn of_lock(lock: &Lock) -> Self {
        Self {
            instances: lock.instances.clone(),
            private: BTreeMap::new(),
        }
    }

    /// What a plan says, with what only its lock knows: which credentials were present, what discovered tools
    /// recommended, and images that the plan could not tell.
    pub fn of_plan(plan: &Plan, lock: Option<&Lock>) -> Self {
        let locked = |key: &InstanceKey| lock.and_then(|lock| lock.instances.get(key));
        let instances = plan.instances.iter().map(|(key, planned)| {
            let mut instance = LockedInstance::from_plan(planned);
            if let Some(locked) = locked(key) {
                instance.recall(locked);
            }
            (key.clone(), instance)
        });
        let private = plan.instances.iter().filter_map(|(key, planned)| {
            (!planned.private.is_empty()).then(|| (key.clone(), planned.private.clone()))
        });
        Self {
            instances: instances.collect(),
            private: private.collect(),
        }
    }
}

/// What a change means for rights.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// More is possible than before, or it can't be told.
    Widening,
    /// Less is possible than before.
    Narrowing,
    /// Neither.
    Neutral,
}

/// Which right or fact a finding is about.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A whole instance came or went.
    Instance,
    /// What runs.
    Image,
    /// Stateless or stateful.
    Class,
    /// What is writable.
    Filesystem,
    /// Whether `/cache` is kept.
    Cache,
    /// Who shares a container, and how long it lives.
    Sharing,
    /// Memory, CPU, processes.
    Limit,
    /// What may be reached.
    Network,
    /// A secret that is handed over.
    Credential,
    /// What an agent or a capability tells a model.
    Prompt,
    /// How tools come to be known.
    Discovery,
    /// A whole tool came or went.
    Tool,
    /// Whether a tool may be called.
    Policy,
    /// What a tool recommends about itself.
    Recommendation,
    /// What a model reads about a tool.
    Description,
    /// What a tool's arguments may be.
    Schema,
    /// Whether a success ends the loop.
    Loop,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Whose right.
    pub instance: InstanceKey,
    /// Which tool's; `None` for the instance as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Which right.
    pub kind: Kind,
    /// Where in the lock, such as `limits.memory_mb` or `input_schema/properties/city/enum`.
    pub path: String,
    /// What it means.
    pub grade: Grade,
    /// A sentence for a reviewer.
    pub says: String,
    /// Before, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Now, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// What hides in the new text and did not hide in the old one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<text::Suspicion>,
}

/// Everything that differs between two snapshots, widening first, then by place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// [`FORMAT_VERSION`].
    pub format_version: String,
    /// What differs.
    pub findings: Vec<Finding>,
}

impl Review {
    /// Compares.
    pub fn new(old: &Snapshot, new: &Snapshot) -> Self {
        let mut findings = Vec::new();
        let keys: BTreeSet<&InstanceKey> =
            old.instances.keys().chain(new.instances.keys()).collect();
        for key in keys {
            let before = old.instances.get(key);
            let now = new.instances.get(key);
            let mut about = About::new(key);
            match (before, now) {
                (Some(before), Some(now)) => {
                    instance::compare(&mut about, before, now);
                    let none = Vec::new();
                    let private =
                        |snapshot: &Snapshot| snapshot.private.get(key).unwrap_or(&none).clone();
                    instance::private(&mut about, &private(old), &private(new));
                }
                (None, Some(now)) => instance::added(&mut about, now),
                (Some(before), None) => instance::removed(&mut about, before),
                (None, None) => {}
            }
            findings.extend(about.findings);
        }
        // Stable: within a grade the order of the places stays.
        findings.sort_by_key(|finding| finding.grade);
        Self {
            format_version: FORMAT_VERSION.to_owned(),
            findings,
        }
    }

    /// How many findings have a grade.
    pub fn count(&self, grade: Grade) -> usize {
        let with_it = |finding: &&Finding| finding.grade == grade;
        self.findings.iter().filter(with_it).count()
    }
}

/// The findings about one instance, or one of its tools.
struct About<'a> {
    instance: &'a InstanceKey,
    tool: Option<&'a str>,
    findings: Vec<Finding>,
}

impl<'a> About<'a> {
    fn new(instance: &'a InstanceKey) -> Self {
        Self {
            instance,
            tool: None,
            findings: Vec::new(),
        }
    }

    fn add(
        &mut self,
        kind: Kind,
        path: impl Into<String>,
        grade: Grade,
        says: impl Into<String>,
    ) -> &mut Finding {
        self.findings.push(Finding {
            instance: self.instance.clone(),
            tool: self.tool.map(str::to_owned),
            kind,
            path: path.into(),
            grade,
            says: says.into(),
            old: None,
            new: None,
            hidden: Vec::new(),
        });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }
}

impl Finding {
    fn from_to(&mut self, old: Option<impl ToString>, new: Option<impl ToString>) -> &mut Self {
        self.old = old.map(|old| old.to_string());
        self.new = new.map(|new| new.to_string());
        self
    }
}

#[cfg(test)]
mod tests;
