//! Plan and discoveries → the next lock (D3, D4).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::entry::first_policy;
use super::values::{ValueChange, value_changes};
use super::{Lock, LockedInstance, LockedTool, ToolOrigin};
use crate::diag::shown;
use crate::model::{InstanceKey, OnChange, Policy, Settings, Tool};
use crate::plan::{ImageKind, Plan, PolicyOrigin};

/// How discovery ended for an instance. One that is not in the map was not asked, and keeps its tools.
#[derive(Debug, Clone, PartialEq)]
pub enum DiscoveryOutcome {
    /// It listed its tools.
    Found {
        /// By name, checked.
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
    /// Every instance that listed its tools, with the definitions that wait for a person; often none.
    pub waiting: BTreeMap<InstanceKey, LockedInstance>,
}

/// What happened to one discovered tool (product.md 27).
#[derive(Debug, Clone, PartialEq)]
pub struct ToolChange {
    /// Whose tool.
    pub instance: InstanceKey,
    /// Its name.
    pub tool: String,
    /// What happened.
    pub kind: ToolChangeKind,
    /// Whether it is kept out of use until a person accepts it: by `on_change = "hold"`, or because it comes under an
    /// older override that would give it more than it has by itself.
    pub held: bool,
}

/// What can happen to a discovered tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolChangeKind {
    /// It was not there before; with the policy that it has, or would have.
    Added(LockedTool),
    /// It is not there any more, and its policy went with it.
    Removed(LockedTool),
    /// Its definition, recommendation or policy differs.
    Changed(Vec<FieldChange>),
}

/// One field of a changed tool.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldChange {
    /// What the model reads.
    Description {
        /// Before.
        old: String,
        /// Now.
        new: String,
    },
    /// The arguments, place by place.
    InputSchema(Vec<ValueChange>),
    /// The author's recommendation, which is shown and not applied.
    Recommended {
        /// Before.
        old: Option<Policy>,
        /// Now.
        new: Option<Policy>,
    },
    /// The policy, by an override in selu.toml that came or went.
    Policy {
        /// Before.
        old: Policy,
        /// Now.
        new: Policy,
    },
    /// Whether the tool loop ends after a success.
    TerminalOnSuccess {
        /// Now.
        new: bool,
    },
}

impl fmt::Display for ToolChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            instance,
            tool,
            kind,
            held,
        } = self;
        let tool = shown(tool);
        match kind {
            ToolChangeKind::Added(new) => write!(f, "{instance}: + {tool} ({})", new.policy)?,
            ToolChangeKind::Removed(old) => write!(f, "{instance}: - {tool} ({})", old.policy)?,
            ToolChangeKind::Changed(fields) => {
                write!(f, "{instance}: ~ {tool}")?;
                for field in fields {
                    write!(f, "; {field}")?;
                }
            }
        }
        if *held {
            f.write_str(" [held until accepted]")?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |policy: &Option<Policy>| policy.map_or("none".to_owned(), |p| p.to_string());
        match self {
            Self::Description { old, new } => {
                write!(f, "description: `{}` → `{}`", shown(old), shown(new))
            }
            Self::InputSchema(changes) => {
                f.write_str("input_schema: ")?;
                for (index, change) in changes.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}{change}")?;
                }
                Ok(())
            }
            Self::Recommended { old, new } => write!(
                f,
                "recommended_policy: {} → {} (not applied)",
                or_none(old),
                or_none(new)
            ),
            Self::Policy { old, new } => write!(f, "policy: {old} → {new}"),
            Self::TerminalOnSuccess { new } => write!(f, "terminal_on_success: {} → {new}", !new),
        }
    }
}

impl Lock {
    /// Makes the next lock. Instances that the plan has not are gone; an instance whose image is still unknown keeps its
    /// old entry, or stays out.
    pub fn merge(
        previous: Option<&Self>,
        plan: &Plan,
        discoveries: &BTreeMap<InstanceKey, DiscoveryOutcome>,
        settings: &Settings,
    ) -> Merged {
        let mut merged = Merged {
            lock: Self::default(),
            changes: Vec::new(),
            waiting: BTreeMap::new(),
        };
        for (key, planned) in &plan.instances {
            let before = previous.and_then(|lock| lock.instances.get(key));
            let mut next = LockedInstance::from_plan(planned);
            let image_known = match next.image.kind {
                ImageKind::Registry => next.image.digest.is_some(),
                ImageKind::Local => next.image.digest.is_some() || next.image.source.is_some(),
                ImageKind::Unknown => false,
            };
            if !image_known {
                if let Some(before) = before {
                    merged.lock.instances.insert(key.clone(), before.clone());
                }
                continue;
            }
            let over = |tool: &str| {
                settings
                    .policies
                    .get(&(key.clone(), tool.to_owned()))
                    .map(|(policy, _)| *policy)
            };
            if next.discovery.is_some() {
                let outcome = discoveries.get(key);
                let (changes, waiting) =
                    discovered(before, &mut next, outcome, &over, settings.on_change);
                merged
                    .changes
                    .extend(changes.into_iter().map(|(tool, kind, held)| ToolChange {
                        instance: key.clone(),
                        tool,
                        kind,
                        held,
                    }));
                if matches!(outcome, Some(DiscoveryOutcome::Found { .. })) {
                    let entry = LockedInstance {
                        tools: waiting,
                        ..next.clone()
                    };
                    merged.waiting.insert(key.clone(), entry);
                }
            } else {
                for (name, tool) in &mut next.tools {
                    if let Some(policy) = over(name) {
                        tool.policy = policy;
                        tool.policy_origin = PolicyOrigin::Override;
                    }
                }
            }
            merged.lock.instances.insert(key.clone(), next);
        }
        merged
    }
}

impl Merged {
    /// Puts the old entries of some instances back: of those that were not applied (product.md 14).
    pub fn keep_previous<'a>(
        &mut self,
        previous: Option<&Lock>,
        keys: impl IntoIterator<Item = &'a InstanceKey>,
    ) {
        for key in keys {
            match previous.and_then(|lock| lock.instances.get(key)) {
                Some(before) => {
                    self.lock.instances.insert(key.clone(), before.clone());
                }
                None => {
                    self.lock.instances.remove(key);
                }
            }
            self.changes.retain(|change| &change.instance != key);
            self.waiting.remove(key);
        }
    }
}

type Change = (String, ToolChangeKind, bool);

/// Fills in the tools of a dynamic instance, and tells what is new and what of it waits.
fn discovered(
    before: Option<&LockedInstance>,
    next: &mut LockedInstance,
    outcome: Option<&DiscoveryOutcome>,
    over: &dyn Fn(&str) -> Option<Policy>,
    on_change: OnChange,
) -> (Vec<Change>, BTreeMap<String, LockedTool>) {
    // Tools that were written in a manifest before leave nothing to the discovered ones.
    let old: BTreeMap<&String, &LockedTool> = before
        .into_iter()
        .flat_map(|before| &before.tools)
        .filter(|(_, tool)| tool.source == ToolOrigin::Discovered)
        .collect();
    let names: BTreeSet<String>;
    let found: &dyn Fn(&str) -> Option<LockedTool>;
    let from_discovery;
    let from_lock;
    match outcome {
        Some(DiscoveryOutcome::Found {
            tools,
            credentials_present,
        }) => {
            if let Some(discovery) = &mut next.discovery {
                discovery.credentials_present = Some(credentials_present.iter().cloned().collect());
            }
            names = tools
                .keys()
                .cloned()
                .chain(old.keys().copied().cloned())
                .collect();
            from_discovery = |name: &str| tools.get(name).map(locked);
            found = &from_discovery;
        }
        Some(DiscoveryOutcome::Failed) | None => {
            let present = before
                .and_then(|before| before.discovery.as_ref())
                .and_then(|discovery| discovery.credentials_present.clone());
            if let Some(discovery) = &mut next.discovery {
                discovery.credentials_present = present;
            }
            names = old.keys().copied().cloned().collect();
            from_lock = |name: &str| old.get(&name.to_owned()).copied().cloned();
            found = &from_lock;
        }
    }

    let hold = on_change == OnChange::Hold;
    let asked_before = before
        .and_then(|before| before.discovery.as_ref())
        .is_some_and(|discovery| discovery.credentials_present.is_some());
    let mut changes = Vec::new();
    let mut waiting = BTreeMap::new();
    next.tools = BTreeMap::new();
    for name in names {
        match (old.get(&name).copied(), found(&name)) {
            (Some(old), None) => {
                changes.push((name, ToolChangeKind::Removed(old.clone()), false));
            }
            (None, Some(mut tool)) => {
                let own = first_policy(tool.recommended);
                let over = over(&name);
                (tool.policy, tool.policy_origin) =
                    over.map_or(own, |policy| (policy, PolicyOrigin::Override));
                // An override that was there before the tool was written for something else that had its name (D3).
                let held = hold || (asked_before && over.is_some_and(|policy| policy > own.0));
                changes.push((name.clone(), ToolChangeKind::Added(tool.clone()), held));
                if held {
                    waiting.insert(name, tool);
                } else {
                    next.tools.insert(name, tool);
                }
            }
            (Some(old), Some(mut tool)) => {
                (tool.policy, tool.policy_origin) = old.effective_policy(over(&name));
                let fields = field_changes(old, &tool);
                let definition_changed = fields
                    .iter()
                    .any(|field| !matches!(field, FieldChange::Policy { .. }));
                let held = hold && definition_changed;
                if !fields.is_empty() {
                    changes.push((name.clone(), ToolChangeKind::Changed(fields), held));
                }
                if held {
                    // The old definition stays in use; its policy is the person's own doing and is not held.
                    let kept = LockedTool {
                        policy: tool.policy,
                        policy_origin: tool.policy_origin,
                        ..old.clone()
                    };
                    waiting.insert(name.clone(), tool);
                    tool = kept;
                }
                next.tools.insert(name, tool);
            }
            (None, None) => {}
        }
    }
    (changes, waiting)
}

/// A discovered tool before its policy is known.
fn locked(tool: &Tool) -> LockedTool {
    let Tool {
        name: _,
        description,
        input_schema,
        recommended,
        terminal_on_success,
        origin: _,
    } = tool;
    LockedTool {
        source: ToolOrigin::Discovered,
        policy: Policy::Block,
        policy_origin: PolicyOrigin::Default,
        recommended: *recommended,
        description: description.clone(),
        input_schema: input_schema.value(),
        terminal_on_success: *terminal_on_success,
    }
}

fn field_changes(old: &LockedTool, new: &LockedTool) -> Vec<FieldChange> {
    let LockedTool {
        source: _,
        policy,
        policy_origin: _,
        recommended,
        description,
        input_schema,
        terminal_on_success,
    } = new;
    let mut fields = Vec::new();
    if old.description != *description {
        fields.push(FieldChange::Description {
            old: old.description.clone(),
            new: description.clone(),
        });
    }
    let schema = value_changes(&old.input_schema, input_schema);
    if !schema.is_empty() {
        fields.push(FieldChange::InputSchema(schema));
    }
    if old.recommended != *recommended {
        fields.push(FieldChange::Recommended {
            old: old.recommended,
            new: *recommended,
        });
    }
    if old.policy != *policy {
        fields.push(FieldChange::Policy {
            old: old.policy,
            new: *policy,
        });
    }
    if old.terminal_on_success != *terminal_on_success {
        fields.push(FieldChange::TerminalOnSuccess {
            new: *terminal_on_success,
        });
    }
    fields
}
