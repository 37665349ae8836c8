//! Whether a tool may be called: it is offered, locked, and the lock says what the directory says.

use std::collections::BTreeMap;

use super::{Lock, LockedTool, Stale, stale};
use crate::check::nearest;
use crate::diag::shown;
use crate::model::{InstanceKey, Policy};
use crate::plan::{Plan, PlannedInstance, PolicyOrigin};

/// A tool that may be called, subject to its policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Callable<'a> {
    /// Whose tool.
    pub instance: &'a PlannedInstance,
    /// What was reviewed.
    pub tool: &'a LockedTool,
    /// `ask` or `allow`; a blocked tool is a [`Refusal`].
    pub policy: Policy,
}

/// Why a tool is not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such instance.
    #[error("there is no capability `{name}`{}; there are {}", hint(.near.as_ref()), listed(.known))]
    NoInstance {
        /// As it was asked for.
        name: String,
        /// A close name.
        near: Option<String>,
        /// All of them.
        known: Vec<String>,
    },
    /// T4.
    #[error(
        "`{tool}` is the discovery tool of {instance}: selu calls it by itself, nobody else does"
    )]
    Discovery {
        /// Whose.
        instance: InstanceKey,
        /// Its name.
        tool: String,
    },
    /// Nothing is locked.
    #[error(
        "there is no selu.lock, so no tool was ever reviewed; `selu apply` or `selu lock` writes it"
    )]
    NoLock,
    /// Not one of its tools.
    #[error("{instance} has no tool `{tool}`{}; it has {}", hint(.near.as_ref()), listed(.known))]
    NoTool {
        /// Whose.
        instance: InstanceKey,
        /// As it was asked for.
        tool: String,
        /// A close name.
        near: Option<String>,
        /// All of them.
        known: Vec<String>,
    },
    /// A dynamic capability that was never asked.
    #[error("the tools of {instance} are not known yet; `selu apply` or `selu lock` asks for them")]
    NotDiscovered {
        /// Whose.
        instance: InstanceKey,
    },
    /// The lock says something else than the directory.
    #[error(
        "{instance} is not what selu.lock says; review the difference, then `selu apply` or `selu lock`:{}",
        lines(.reasons)
    )]
    Stale {
        /// Whose.
        instance: InstanceKey,
        /// Every difference.
        reasons: Vec<Stale>,
    },
    /// The policy.
    #[error("the policy of {instance} {tool} is `block`, by {}", by(*.origin))]
    Blocked {
        /// Whose.
        instance: InstanceKey,
        /// Which tool.
        tool: String,
        /// Why it is that.
        origin: PolicyOrigin,
    },
}

/// Finds what is to be called, or why it is not.
pub fn callable<'a>(
    plan: &'a Plan,
    lock: Option<&'a Lock>,
    key: &InstanceKey,
    tool: &str,
) -> Result<Callable<'a>, Refusal> {
    let Some(instance) = plan.instances.get(key) else {
        return Err(no_instance(plan, key.as_str()));
    };
    if instance.discovery_tool.as_deref() == Some(tool) {
        return Err(Refusal::Discovery {
            instance: key.clone(),
            tool: tool.to_owned(),
        });
    }
    let lock = lock.ok_or(Refusal::NoLock)?;
    let reasons = differences(lock, plan, key);
    if !reasons.is_empty() {
        return Err(Refusal::Stale {
            instance: key.clone(),
            reasons,
        });
    }
    let locked = lock.instances.get(key);
    let tools = locked.map(|locked| &locked.tools);
    let never_asked = locked
        .and_then(|locked| locked.discovery.as_ref())
        .is_some_and(|discovery| discovery.credentials_present.is_none());
    let (Some(found), Some(planned)) = (
        tools.and_then(|tools| tools.get(tool)),
        instance.tools.get(tool),
    ) else {
        return Err(if never_asked {
            Refusal::NotDiscovered {
                instance: key.clone(),
            }
        } else {
            no_tool(key, tool, tools)
        });
    };
    match planned.policy {
        Policy::Block => Err(Refusal::Blocked {
            instance: key.clone(),
            tool: tool.to_owned(),
            origin: planned.policy_origin,
        }),
        policy @ (Policy::Ask | Policy::Allow) => Ok(Callable {
            instance,
            tool: found,
            policy,
        }),
    }
}

/// What of an instance is not as it is locked. Prompts are read by models, not by calls.
fn differences(lock: &Lock, plan: &Plan, key: &InstanceKey) -> Vec<Stale> {
    let concerns = |reason: &Stale| match reason {
        Stale::NoLock => true,
        Stale::Missing(instance) | Stale::Extra(instance) => instance == key,
        Stale::Field { instance, path, .. } => instance == key && !path.starts_with("prompt."),
    };
    let mut reasons = stale(Some(lock), plan);
    reasons.retain(concerns);
    reasons
}

/// The refusal of a name that no instance has.
pub fn no_instance(plan: &Plan, name: &str) -> Refusal {
    let known: Vec<String> = plan.instances.keys().map(ToString::to_string).collect();
    let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    Refusal::NoInstance {
        name: shown(name),
        near,
        known,
    }
}

fn no_tool(key: &InstanceKey, tool: &str, tools: Option<&BTreeMap<String, LockedTool>>) -> Refusal {
    let known: Vec<String> = tools
        .into_iter()
        .flat_map(|tools| tools.keys().cloned())
        .collect();
    let near = nearest(tool, known.iter().map(String::as_str)).map(str::to_owned);
    Refusal::NoTool {
        instance: key.clone(),
        tool: shown(tool),
        near,
        known,
    }
}

fn hint(near: Option<&String>) -> String {
    near.map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

fn lines(reasons: &[Stale]) -> String {
    reasons
        .iter()
        .map(|reason| format!("\n  {reason}"))
        .collect()
}

fn by(origin: PolicyOrigin) -> &'static str {
    match origin {
        PolicyOrigin::Override => "[policy] in selu.toml",
        PolicyOrigin::Manifest => "the manifest",
        PolicyOrigin::Discovered => "the capability's own recommendation",
        PolicyOrigin::Default => {
            "default, because nobody recommended anything; `[policy]` in selu.toml settles it"
        }
    }
}
