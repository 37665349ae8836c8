//! Definitions that a container listed and nobody has accepted yet (D3, product.md 27).
//!
//! They have the form of a lock of their own: each instance as it was locked when it listed them, with those tools alone
//! that wait. So it is known which image said so.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::first_policy;
use super::{Lock, LockedInstance, LockedTool, Merged};
use crate::check::nearest;
use crate::diag::shown;
use crate::model::{InstanceKey, Policy, Settings};
use crate::plan::PolicyOrigin;

/// Why a definition can't be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// Nothing waits under that name.
    #[error("nothing waits to be accepted as `{name}`{}", .near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    Nothing {
        /// As it was asked for.
        name: String,
        /// A close name.
        near: Option<String>,
    },
    /// What the lock has now is not what listed them.
    #[error("what waits of {instance} was listed by another image than selu.lock has now")]
    OtherImage {
        /// Whose.
        instance: InstanceKey,
    },
}

impl Lock {
    /// What waits after a merge: of an instance that was asked, what it listed; of any other one, what waited before.
    #[must_use]
    pub fn waiting_after(&self, merged: &Merged) -> Self {
        let mut waiting = self.clone();
        for (key, entry) in &merged.waiting {
            waiting.instances.insert(key.clone(), entry.clone());
        }
        waiting.not_in(&merged.lock)
    }

    /// What still waits: not what `lock` says already, nor what is of an instance that it has not.
    #[must_use]
    pub fn not_in(mut self, lock: &Self) -> Self {
        self.instances.retain(|key, entry| {
            let Some(locked) = lock.instances.get(key) else {
                return false;
            };
            entry.tools.retain(|name, tool| {
                let accepted = locked.tools.get(name);
                accepted.is_none_or(|accepted| accepted.definition() != tool.definition())
            });
            !entry.tools.is_empty()
        });
        self
    }

    /// `AGENT/CAP/TOOL` of everything that waits.
    pub fn waiting_names(&self) -> Vec<String> {
        let tools = self.instances.iter().flat_map(|(key, entry)| {
            let tools = entry.tools.keys();
            tools.map(move |tool| format!("{key}/{tool}"))
        });
        tools.collect()
    }

    /// This lock with what is accepted of `waiting`, by `AGENT/CAP/TOOL`, or `AGENT/CAP` for all of an instance. A changed
    /// tool keeps its policy, an added one has what an override, its recommendation or `block` says (D3).
    ///
    /// # Errors
    /// When a name means nothing that waits, or another image said it.
    pub fn accept(
        &self,
        waiting: &Self,
        names: &[String],
        settings: &Settings,
    ) -> Result<Self, AcceptError> {
        let mut lock = self.clone();
        for (key, tool) in chosen(waiting, names)? {
            let (Some(entry), Some(locked)) =
                (waiting.instances.get(&key), lock.instances.get_mut(&key))
            else {
                continue;
            };
            if entry.image != locked.image {
                return Err(AcceptError::OtherImage { instance: key });
            }
            let over = settings
                .policies
                .get(&(key.clone(), tool.clone()))
                .map(|(policy, _)| *policy);
            if let Some(definition) = entry.tools.get(&tool) {
                let accepted = with_policy(definition, locked, &tool, over);
                locked.tools.insert(tool, accepted);
            }
        }
        Ok(lock)
    }
}

fn with_policy(
    definition: &LockedTool,
    locked: &LockedInstance,
    name: &str,
    over: Option<Policy>,
) -> LockedTool {
    let (policy, policy_origin) = match (locked.tools.get(name), over) {
        (Some(old), over) => old.effective_policy(over),
        (None, Some(policy)) => (policy, PolicyOrigin::Override),
        (None, None) => first_policy(definition.recommended),
    };
    LockedTool {
        policy,
        policy_origin,
        ..definition.clone()
    }
}

/// Which tools are meant, each once.
fn chosen(
    waiting: &Lock,
    names: &[String],
) -> Result<BTreeSet<(InstanceKey, String)>, AcceptError> {
    let known: BTreeMap<String, (&InstanceKey, &String)> = waiting
        .instances
        .iter()
        .flat_map(|(key, entry)| {
            let tools = entry.tools.keys();
            tools.map(move |tool| (format!("{key}/{tool}"), (key, tool)))
        })
        .collect();
    let mut chosen = BTreeSet::new();
    for name in names {
        let means = |full: &str, key: &InstanceKey| full == name || key.as_str() == name;
        let mut found = known
            .iter()
            .filter(|(full, (key, _))| means(full, key))
            .map(|(_, (key, tool))| ((*key).clone(), (*tool).clone()))
            .peekable();
        let nothing = found.peek().is_none();
        chosen.extend(found);
        if nothing {
            let names = known.keys().map(String::as_str);
            return Err(AcceptError::Nothing {
                name: shown(name),
                near: nearest(name, names).map(shown),
            });
        }
    }
    Ok(chosen)
}
