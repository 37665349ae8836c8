//! Tools with their policies (T1, D3) and how an agent's tools reach the model (A4).

use std::collections::BTreeMap;

use crate::diag::codes::plan as code;
use crate::diag::{Diagnostic, Place};
use crate::lock::{Lock, LockedInstance, LockedTool, ToolOrigin};
use crate::model::{Agent, Capability, InstanceKey, Policy, Project, Routing, Tool, ToolSource};
use crate::plan::{PlannedInstance, PlannedTool, PolicyOrigin};

/// Of a static capability, the manifest's tools; of a dynamic one, those that the lock has.
pub(super) fn planned(
    project: &Project,
    key: &InstanceKey,
    capability: &Capability,
    locked: Option<&LockedInstance>,
) -> BTreeMap<String, PlannedTool> {
    let over = |tool: &str| {
        project
            .settings
            .policies
            .get(&(key.clone(), tool.to_owned()))
            .map(|(policy, _)| *policy)
    };
    match &capability.tools {
        ToolSource::Static(tools) => tools
            .iter()
            .map(|tool| (tool.name.clone(), written(tool, over(&tool.name))))
            .collect(),
        ToolSource::Dynamic { discovery_tool } => locked
            .into_iter()
            .flat_map(|locked| &locked.tools)
            .filter(|(name, tool)| {
                // T4 holds for a lock that was edited, too.
                tool.source == ToolOrigin::Discovered && *name != discovery_tool
            })
            .map(|(name, tool)| (name.clone(), discovered(tool, over(name))))
            .collect(),
    }
}

fn written(tool: &Tool, over: Option<Policy>) -> PlannedTool {
    let (policy, policy_origin) = match (over, tool.recommended) {
        (Some(policy), _) => (policy, PolicyOrigin::Override),
        (None, Some(policy)) => (policy, PolicyOrigin::Manifest),
        (None, None) => (Policy::Block, PolicyOrigin::Default),
    };
    PlannedTool {
        description: tool.description.clone(),
        input_schema: tool.input_schema.value(),
        policy,
        policy_origin,
        terminal_on_success: tool.terminal_on_success,
        origin: tool.origin.clone(),
    }
}

fn discovered(tool: &LockedTool, over: Option<Policy>) -> PlannedTool {
    let (policy, policy_origin) = tool.effective_policy(over);
    PlannedTool {
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
        policy,
        policy_origin,
        terminal_on_success: tool.terminal_on_success,
        origin: None,
    }
}

/// Policies for tools that a discovery did not list. Before one there is nothing to judge, and those for static tools
/// and unknown instances are found without a lock, by the checks.
pub(super) fn check_policies(
    project: &Project,
    lock: Option<&Lock>,
    instances: &BTreeMap<InstanceKey, PlannedInstance>,
    findings: &mut Vec<Diagnostic>,
) {
    for ((key, tool), (policy, origin)) in &project.settings.policies {
        let Some(instance) = instances.get(key) else {
            continue;
        };
        if instance.discovery_tool.is_none()
            || instance.tools.contains_key(tool)
            || !lock.is_some_and(|lock| lock.was_asked(key))
        {
            continue;
        }
        let place = Place {
            origin: origin.clone(),
            length: 1,
            path: format!("policy.\"{key}/{tool}\""),
        };
        let message = format!(
            "{key} has discovered no tool `{tool}`, so its policy `{policy}` guards nothing"
        );
        let mut finding = Diagnostic::new(&code::POLICY_WITHOUT_TOOL, place, message);
        if let Some(close) = close_to(tool, instance.tools.keys()) {
            finding = finding.help(format!("did you mean `{close}`?"));
        }
        findings.push(finding);
    }
}

fn close_to<'a>(wanted: &str, names: impl Iterator<Item = &'a String>) -> Option<&'a str> {
    names
        .map(|name| (strsim::damerau_levenshtein(wanted, name), name.as_str()))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, name)| name)
}

/// A4: inline with at most three tools, no model of its own and under 2,000 characters of capability prompts. Of a
/// prompt's translations the longest counts, so that the answer is the same in every language.
pub(super) fn routing(
    agent: &Agent,
    instances: &BTreeMap<InstanceKey, PlannedInstance>,
) -> Routing {
    if agent.routing != Routing::Auto {
        return agent.routing;
    }
    let tools: usize = agent
        .capabilities
        .keys()
        .filter_map(|id| instances.get(&InstanceKey::new(&agent.id, id)))
        .map(|instance| instance.tools.len())
        .sum();
    let characters: usize = agent
        .capabilities
        .values()
        .filter_map(|capability| {
            capability
                .prompts
                .values()
                .map(|prompt| prompt.characters)
                .max()
        })
        .sum();
    if tools <= 3 && !agent.own_model && characters < 2_000 {
        Routing::Inline
    } else {
        Routing::Delegate
    }
}
