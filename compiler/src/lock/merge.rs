//! Plan and discoveries → the next lock (D3, D4).

use std::collections::{BTreeMap, BTreeSet};

use super::Lock;
use crate::model::{InstanceKey, Policy, Settings, Tool};
use crate::plan::Plan;

/// How discovery ended for an instance.
#[derive(Debug, Clone, PartialEq)]
pub enum DiscoveryOutcome {
    /// It listed its tools.
    Found {
        /// By name.
        tools: BTreeMap<String, Tool>,
        /// Names of the credentials that were present.
        credentials_present: BTreeSet<String>,
    },
    /// It failed: what is locked stays (D4).
    Failed,
}

/// The next lock, and what is new about the discovered tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// To be written.
    pub lock: Lock,
    /// By instance and tool.
    pub changes: Vec<ToolChange>,
}

/// What happened to one discovered tool (product.md 27).
#[derive(Debug, Clone, PartialEq)]
pub struct ToolChange {
    /// Whose tool.
    pub instance: InstanceKey,
    /// Its name.
    pub tool: String,
    /// What it is now.
    pub policy: Option<Policy>,
}

impl Lock {
    /// Makes the next lock.
    pub fn merge(
        previous: Option<&Self>,
        plan: &Plan,
        discoveries: &BTreeMap<InstanceKey, DiscoveryOutcome>,
        settings: &Settings,
    ) -> Merged {
        let _ = (plan, discoveries, settings);
        Merged {
            lock: previous.cloned().unwrap_or_default(),
            changes: Vec::new(),
        }
    }
}
