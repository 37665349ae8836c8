mod callable;
mod join;
mod merge;
mod read;
mod round_trip;
mod stale;
mod waiting;
mod write;

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::model::{Credential, NetworkMode, Origin, SharingMode};
use crate::plan::{FORMAT_VERSION, Plan, PlannedImage, PlannedInstance, PlannedTool};

pub(super) fn hash(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

pub(super) fn key(text: &str) -> InstanceKey {
    InstanceKey::parse(text).unwrap()
}

fn origin() -> Origin {
    Origin {
        file: "agents/weather/capabilities/api/manifest.yaml".into(),
        line: 1,
        column: 5,
    }
}

pub(super) fn planned_tool(policy: Policy, policy_origin: PolicyOrigin) -> PlannedTool {
    PlannedTool {
        description: "Tomorrow's weather".to_owned(),
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
        policy,
        policy_origin,
        terminal_on_success: false,
        origin: Some(origin()),
    }
}

/// A static instance with an image from a registry.
pub(super) fn static_instance() -> PlannedInstance {
    PlannedInstance {
        origin: origin(),
        image: PlannedImage {
            written: "ghcr.io/acme/weather:1".to_owned(),
            kind: ImageKind::Registry,
            digest: Some(hash('a')),
            source: None,
            reference: None,
            pull: true,
            built_from_source: None,
        },
        class: Class::Tool,
        filesystem: Filesystem::Temp,
        cache: false,
        sharing: Sharing {
            mode: SharingMode::Exclusive,
            max_concurrent: 1,
            idle_timeout_seconds: 300,
        },
        limits: Limits {
            memory_mb: 128,
            nano_cpus: 500_000_000,
            cpu_seconds: 30,
            pids: 64,
        },
        private: Vec::new(),
        limit_overrides: BTreeMap::new(),
        network_rules: Network {
            mode: NetworkMode::Allowlist,
            hosts: vec!["*.example.com:443".to_owned(), "api.example.org".to_owned()],
        },
        credentials: vec![Credential {
            name: "API_KEY".to_owned(),
            scope: CredentialScope::System,
            required: true,
            description: "From the account page".to_owned(),
        }],
        prompts: BTreeMap::from([("prompt.md".to_owned(), hash('b'))]),
        discovery_tool: None,
        tools: BTreeMap::from([(
            "forecast".to_owned(),
            planned_tool(Policy::Ask, PolicyOrigin::Manifest),
        )]),
        resident: None,
    }
}

/// A dynamic instance whose image is built from a folder.
pub(super) fn dynamic_instance() -> PlannedInstance {
    let mut instance = static_instance();
    instance.image.written = "selu.local/files:dev".to_owned();
    instance.image.kind = ImageKind::Local;
    instance.image.digest = Some(hash('c'));
    instance.image.source = Some(hash('d'));
    instance.network_rules = Network {
        mode: NetworkMode::None,
        hosts: Vec::new(),
    };
    instance.credentials = Vec::new();
    instance.prompts = BTreeMap::new();
    instance.discovery_tool = Some("list_tools".to_owned());
    instance.tools = BTreeMap::new();
    instance
}

pub(super) fn plan(instances: impl IntoIterator<Item = (&'static str, PlannedInstance)>) -> Plan {
    Plan {
        format_version: FORMAT_VERSION.to_owned(),
        project: "home".to_owned(),
        agents: BTreeMap::new(),
        instances: instances
            .into_iter()
            .map(|(name, instance)| (key(name), instance))
            .collect(),
        gateway: None,
    }
}
