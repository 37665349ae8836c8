//! Policies: what decides one, and how one is written into selu.toml.

pub mod edit;

use std::collections::BTreeMap;

use crate::lock::{Lock, LockedTool};
use crate::model::{InstanceKey, Origin, Policy, Project, Settings, ToolSource};
use crate::plan::{Plan, PolicyOrigin};

/// Something that has a say in a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `[policy]` in selu.toml.
    Override,
    /// What a discovered tool was given when it was added, or kept since.
    Kept,
    /// What the manifest recommends (T1).
    Manifest,
    /// What a discovered tool recommends now. Once the tool is known it is shown and not applied.
    Recommended,
    /// What holds where nobody says anything.
    Default,
}

/// One source, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Say {
    /// Who.
    pub source: Source,
    /// What; `None` where it says nothing.
    pub policy: Option<Policy>,
    /// Where it is written.
    pub place: Option<Origin>,
    /// Whether it is the one that counts.
    pub decides: bool,
}

/// The policy of a tool and every source of it, in the order in which they count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// What holds.
    pub policy: Policy,
    /// The first of them that says something decides, but for what is only shown.
    pub sources: Vec<Say>,
}

/// Explains the policy of a planned tool; `None` if the plan has no such tool.
pub fn explain(
    project: &Project,
    plan: &Plan,
    lock: Option<&Lock>,
    key: &InstanceKey,
    tool: &str,
) -> Option<Explained> {
    let planned = plan.instances.get(key)?.tools.get(tool)?;
    let over = project
        .settings
        .policies
        .get(&(key.clone(), tool.to_owned()));
    let locked = lock.and_then(|lock| lock.instances.get(key));
    let locked = locked.and_then(|locked| locked.tools.get(tool));
    let say = |source, policy, place| Say {
        source,
        policy,
        place,
        decides: false,
    };
    let written = over.map(|(policy, place)| (*policy, place.clone()));
    let mut sources = vec![say(
        Source::Override,
        written.as_ref().map(|(policy, _)| *policy),
        written.map(|(_, place)| place),
    )];
    if is_static(project, key) {
        let recommended = manifest(project, key, tool);
        sources.push(say(Source::Manifest, recommended, planned.origin.clone()));
    } else {
        let kept = locked.and_then(kept);
        let recommended = locked.and_then(|locked| locked.recommended);
        sources.push(say(Source::Kept, kept, None));
        sources.push(say(Source::Recommended, recommended, None));
    }
    sources.push(say(Source::Default, Some(Policy::Block), None));
    let deciding = match planned.policy_origin {
        PolicyOrigin::Override => Source::Override,
        PolicyOrigin::Manifest => Source::Manifest,
        // Where an override ended that the lock still has, nothing is kept.
        PolicyOrigin::Discovered if locked.and_then(kept).is_some() => Source::Kept,
        PolicyOrigin::Discovered => Source::Recommended,
        PolicyOrigin::Default => Source::Default,
    };
    for say in &mut sources {
        say.decides = say.source == deciding;
    }
    Some(Explained {
        policy: planned.policy,
        sources,
    })
}

/// What a locked tool has by itself; nothing where an override hides it, or where nobody ever said anything.
fn kept(locked: &LockedTool) -> Option<Policy> {
    matches!(locked.policy_origin, PolicyOrigin::Discovered).then_some(locked.policy)
}

fn is_static(project: &Project, key: &InstanceKey) -> bool {
    let mut instances = project.instances();
    instances.any(|(found, _, capability)| {
        found == *key && matches!(capability.tools, ToolSource::Static(_))
    })
}

fn manifest(project: &Project, key: &InstanceKey, tool: &str) -> Option<Policy> {
    let (_, _, capability) = project.instances().find(|(found, ..)| found == key)?;
    match &capability.tools {
        ToolSource::Static(tools) => {
            let tool = tools.iter().find(|one| one.name == tool)?;
            tool.recommended
        }
        ToolSource::Dynamic { .. } => None,
    }
}

/// Overrides that guard nothing: of instances that are not there, and of tools that those which are there do not have. One
/// of a capability that was never asked for its tools is not among them, nor one of a tool that waits to be accepted.
pub fn without_target(
    settings: &Settings,
    plan: &Plan,
    lock: Option<&Lock>,
    waiting: &Lock,
) -> BTreeMap<(InstanceKey, String), (Policy, Origin)> {
    let stays = |key: &InstanceKey, tool: &String| {
        let Some(instance) = plan.instances.get(key) else {
            return false;
        };
        let asked = lock.is_some_and(|lock| lock.was_asked(key));
        let waits = waiting.instances.get(key);
        instance.tools.contains_key(tool)
            || (instance.discovery_tool.is_some() && !asked)
            || waits.is_some_and(|entry| entry.tools.contains_key(tool))
    };
    let policies = settings.policies.iter();
    policies
        .filter(|((key, tool), _)| !stays(key, tool))
        .map(|(key, policy)| (key.clone(), policy.clone()))
        .collect()
}
