//! What the plan says of an instance, in the lock's terms: the part that merge writes and staleness compares.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Lock, LockedCredential, LockedDiscovery, LockedImage, LockedInstance, LockedTool, ToolOrigin,
};
use crate::model::{Credential, InstanceKey, Policy};
use crate::plan::{ImageKind, Plan, PlannedImage, PlannedInstance, PlannedTool, PolicyOrigin};

impl Lock {
    /// Without what pins the images of some instances, as if their tags had never been locked (`lock --upgrade`).
    pub fn unpinned<'a>(&self, keys: impl IntoIterator<Item = &'a InstanceKey>) -> Self {
        let mut lock = self.clone();
        for key in keys {
            if let Some(entry) = lock.instances.get_mut(key) {
                entry.image = LockedImage {
                    // A pin holds for the reference that it was made for, and nobody can write this one.
                    written: String::new(),
                    kind: ImageKind::Unknown,
                    digest: None,
                    source: None,
                };
            }
        }
        lock
    }

    /// With the images of a plan: what was asked of a registry once need not be asked again.
    pub fn pinned(&self, plan: &Plan) -> Self {
        let mut lock = self.clone();
        for (key, entry) in &mut lock.instances {
            if let Some(planned) = plan.instances.get(key) {
                entry.image = locked_image(&planned.image);
            }
        }
        lock
    }
}

impl LockedTool {
    /// The policy of a locked discovered tool under an override, or without one (D3).
    ///
    /// Without one it keeps its policy, unless that came from an override which is gone: then it has what was
    /// recommended when it was locked, else `block`.
    pub fn effective_policy(&self, over: Option<Policy>) -> (Policy, PolicyOrigin) {
        match (over, self.policy_origin) {
            (Some(policy), _) => (policy, PolicyOrigin::Override),
            (None, PolicyOrigin::Override) => first_policy(self.recommended),
            (None, origin) => (self.policy, origin),
        }
    }
}

/// What a model is told, what it may send, and what the tool asks for; not what a person made of it.
#[derive(PartialEq)]
pub(super) struct Definition<'a> {
    source: ToolOrigin,
    recommended: Option<Policy>,
    description: &'a str,
    input_schema: &'a Value,
    terminal_on_success: bool,
}

impl LockedTool {
    /// Without its policy.
    pub(super) fn definition(&self) -> Definition<'_> {
        let Self {
            source,
            policy: _,
            policy_origin: _,
            recommended,
            description,
            input_schema,
            terminal_on_success,
        } = self;
        Definition {
            source: *source,
            recommended: *recommended,
            description,
            input_schema,
            terminal_on_success: *terminal_on_success,
        }
    }
}

/// The policy of a discovered tool that was not known before, without an override (D3).
pub(super) fn first_policy(recommended: Option<Policy>) -> (Policy, PolicyOrigin) {
    match recommended {
        Some(policy) => (policy, PolicyOrigin::Discovered),
        None => (Policy::Block, PolicyOrigin::Default),
    }
}

impl LockedInstance {
    /// The instance as the plan has it. `credentials_present` and the recommendations of discovered tools are not the
    /// plan's to know.
    pub(crate) fn from_plan(planned: &PlannedInstance) -> Self {
        let PlannedInstance {
            origin: _,
            image,
            class,
            filesystem,
            cache,
            sharing,
            limits,
            limit_overrides: _,
            network_rules,
            // What selu.toml permits stands beside the lock, in the same commit.
            private: _,
            credentials,
            prompts,
            discovery_tool,
            tools,
            resident: _,
        } = planned;
        let source = match discovery_tool {
            Some(_) => ToolOrigin::Discovered,
            None => ToolOrigin::Manifest,
        };
        Self {
            image: locked_image(image),
            class: *class,
            filesystem: *filesystem,
            cache: *cache,
            sharing: sharing.clone(),
            limits: limits.clone(),
            network: network_rules.clone(),
            credentials: credentials.iter().map(locked_credential).collect(),
            prompts: prompts.clone(),
            discovery: discovery_tool.as_ref().map(|tool| LockedDiscovery {
                tool: tool.clone(),
                credentials_present: None,
            }),
            tools: locked_tools(tools, source),
        }
    }

    /// Fills in from an older entry what a plan does not know.
    pub(crate) fn recall(&mut self, locked: &Self) {
        if self.image.kind == ImageKind::Unknown && self.image.written == locked.image.written {
            self.image = locked.image.clone();
        }
        if let (Some(discovery), Some(locked)) = (&mut self.discovery, &locked.discovery) {
            discovery.credentials_present = locked.credentials_present.clone();
        }
        for (name, tool) in &mut self.tools {
            if let Some(locked) = locked.tools.get(name) {
                tool.recommended = locked.recommended;
            }
        }
    }
}

/// Local images are locked by their source where there is one (product.md 19).
fn locked_image(image: &PlannedImage) -> LockedImage {
    let PlannedImage {
        written,
        kind,
        digest,
        source,
        reference: _,
        pull: _,
        built_from_source: _,
    } = image;
    let (digest, source) = match (kind, source) {
        (ImageKind::Local, Some(source)) => (None, Some(source.clone())),
        _ => (digest.clone(), None),
    };
    LockedImage {
        written: written.clone(),
        kind: *kind,
        digest,
        source,
    }
}

fn locked_credential(credential: &Credential) -> (String, LockedCredential) {
    let Credential {
        name,
        scope,
        required,
        description: _,
    } = credential;
    (
        name.clone(),
        LockedCredential {
            scope: *scope,
            required: *required,
        },
    )
}

fn locked_tools(
    tools: &BTreeMap<String, PlannedTool>,
    source: ToolOrigin,
) -> BTreeMap<String, LockedTool> {
    tools
        .iter()
        .map(|(name, tool)| {
            let PlannedTool {
                description,
                input_schema,
                policy,
                policy_origin,
                terminal_on_success,
                origin: _,
            } = tool;
            let locked = LockedTool {
                source,
                policy: *policy,
                policy_origin: *policy_origin,
                recommended: None,
                description: description.clone(),
                input_schema: input_schema.clone(),
                terminal_on_success: *terminal_on_success,
            };
            (name.clone(), locked)
        })
        .collect()
}
