//! Small projects for tests.

pub(crate) mod server;

use std::collections::BTreeMap;
use std::sync::Arc;

use selu_compiler::model::{
    Agent, Capability, Class, Filesystem, ImageReference, Limits, Network, NetworkMode, Origin,
    Project, Routing, Settings, Sharing, SharingMode, ToolSource,
};
use selu_compiler::yaml::node::Span;

/// Somewhere.
pub(crate) fn origin() -> Origin {
    Origin {
        file: "manifest.yaml".into(),
        line: 1,
        column: 1,
    }
}

/// A capability with every default and no tool.
pub(crate) fn capability(id: &str) -> Capability {
    let at = Span {
        line: 1,
        column: 1,
        length: 1,
    };
    Capability {
        id: id.to_owned(),
        origin: origin(),
        image_at: at,
        cpus_at: at,
        class: Class::Tool,
        image: ImageReference {
            written: format!("{id}:1"),
            registry: "docker.io".to_owned(),
            repository: format!("library/{id}"),
            tag: Some("1".to_owned()),
            digest: None,
        },
        tools: ToolSource::Static(Vec::new()),
        network: Network {
            mode: NetworkMode::None,
            hosts: Vec::new(),
        },
        filesystem: Filesystem::None,
        cache: false,
        sharing: Sharing {
            mode: SharingMode::Exclusive,
            max_concurrent: 1,
            idle_timeout_seconds: 300,
        },
        credentials: Vec::new(),
        limits: Limits {
            memory_mb: 128,
            nano_cpus: 500_000_000,
            cpu_seconds: 30,
            pids: 64,
        },
        prompts: BTreeMap::new(),
        container: None,
    }
}

/// A project of agents with capabilities.
pub(crate) fn project(agents: Vec<(&str, Vec<Capability>)>) -> Project {
    let agents = agents.into_iter().map(|(id, capabilities)| {
        let agent = Agent {
            id: id.to_owned(),
            name: id.to_owned(),
            origin: origin(),
            routing: Routing::Auto,
            own_model: false,
            idle_timeout_minutes: 30,
            definition: "{}".into(),
            prompts: BTreeMap::new(),
            capabilities: capabilities
                .into_iter()
                .map(|one| (one.id.clone(), Arc::new(one)))
                .collect(),
        };
        (id.to_owned(), agent)
    });
    Project {
        name: Some("test".to_owned()),
        settings: Settings::default(),
        agents: agents.collect(),
    }
}
