//! A small world for tests: a project, a lock, an engine, and an apply that does what it is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::diff::{self, Action, Cause, Change, ChangeSet, Subject};
use crate::lock::{Lock, LockedDiscovery, LockedImage, LockedInstance};
use crate::model::{
    Agent, Capability, Class, ContainerFolder, Filesystem, ImageReference, InstanceKey, Limits,
    Network, NetworkMode, Origin, Policy, Project, Routing, Settings, Sharing, SharingMode, Tool,
    ToolSource,
};
use crate::observed::{
    ContainerState, EngineFacts, ImageFacts, Observed, ObservedContainer, ObservedNetwork,
    ObservedVolume,
};
use crate::plan::{ContainerSpec, ImageKind, Plan, PlannedNetwork, label};
use crate::resolve::{Resolved, resolve};
use crate::yaml::node::Span;

/// The digest of every image that a registry has here.
pub(crate) const DIGEST: &str =
    "sha256:1111111111111111111111111111111111111111111111111111111111111111";
/// Another one.
pub(crate) const OTHER_DIGEST: &str =
    "sha256:2222222222222222222222222222222222222222222222222222222222222222";
/// The id of every image that the engine has here.
pub(crate) const IMAGE_ID: &str =
    "sha256:3333333333333333333333333333333333333333333333333333333333333333";
/// The hash of every container folder here.
pub(crate) const SOURCE: &str =
    "sha256:4444444444444444444444444444444444444444444444444444444444444444";

pub(crate) struct World {
    pub(crate) project: Project,
    pub(crate) lock: Option<Lock>,
    pub(crate) observed: Observed,
}

impl World {
    /// Project `p` with `weather/api`, whose image registry and engine have; nothing is applied yet.
    pub(crate) fn new() -> Self {
        let mut world = Self {
            project: Project {
                name: Some("p".to_owned()),
                settings: Settings::default(),
                agents: BTreeMap::new(),
            },
            lock: None,
            observed: Observed {
                engine: EngineFacts {
                    id: "the-engine".to_owned(),
                    version: "Docker 20.10.24 (API 1.41)".to_owned(),
                    cpus: 2,
                    architecture: "amd64".to_owned(),
                    warnings: Vec::new(),
                },
                ..Observed::default()
            },
        };
        world.add("weather", "api");
        world
    }

    /// Adds a capability with an image of its own.
    pub(crate) fn add(&mut self, agent: &str, id: &str) -> &mut Capability {
        let image = format!("ghcr.io/acme/{id}:1");
        self.observed.images.insert(
            image.clone(),
            ImageFacts {
                id: Some(IMAGE_ID.to_owned()),
                digest: Some(DIGEST.to_owned()),
                volumes: Vec::new(),
                labels: BTreeMap::new(),
            },
        );
        let agent = self
            .project
            .agents
            .entry(agent.to_owned())
            .or_insert_with(|| Agent {
                id: agent.to_owned(),
                name: agent.to_owned(),
                origin: origin(&format!("agents/{agent}/agent.yaml")),
                routing: Routing::Auto,
                own_model: false,
                idle_timeout_minutes: 30,
                definition: "{}".into(),
                prompts: BTreeMap::new(),
                capabilities: BTreeMap::new(),
            });
        let file = format!("agents/{}/capabilities/{id}/manifest.yaml", agent.id);
        agent
            .capabilities
            .entry(id.to_owned())
            .or_insert_with(|| Arc::new(capability(id, &image, &file)));
        let added = agent.capabilities.get_mut(id).map(Arc::make_mut);
        added.unwrap()
    }

    /// A capability that was added.
    pub(crate) fn capability(&mut self, key: &str) -> &mut Capability {
        let key = key_of(key);
        self.project
            .agents
            .get_mut(key.agent())
            .and_then(|agent| agent.capabilities.get_mut(key.capability()))
            .map(Arc::make_mut)
            .unwrap()
    }

    /// What engine and registry know of `weather/api`'s image.
    pub(crate) fn image(&mut self) -> &mut ImageFacts {
        self.observed.images.get_mut("ghcr.io/acme/api:1").unwrap()
    }

    /// Makes `weather/api`'s image one that only this engine has, with a container folder.
    pub(crate) fn make_local(&mut self) {
        self.capability("weather/api").container = Some(ContainerFolder {
            path: "agents/weather/capabilities/api/container".into(),
            hash: SOURCE.to_owned(),
        });
        let image = self.image();
        image.digest = None;
        image
            .labels
            .insert(label::SOURCE.to_owned(), SOURCE.to_owned());
    }

    /// Locks `weather/api` with that image.
    pub(crate) fn lock_image(
        &mut self,
        kind: ImageKind,
        digest: Option<&str>,
        source: Option<&str>,
    ) {
        let key = key_of("weather/api");
        let capability = self.capability("weather/api");
        let locked = LockedInstance {
            image: LockedImage {
                written: capability.image.written.clone(),
                kind,
                digest: digest.map(str::to_owned),
                source: source.map(str::to_owned),
            },
            class: capability.class,
            filesystem: capability.filesystem,
            cache: capability.cache,
            sharing: capability.sharing.clone(),
            limits: capability.limits.clone(),
            network: capability.network.clone(),
            credentials: BTreeMap::new(),
            prompts: BTreeMap::new(),
            discovery: Some(LockedDiscovery {
                tool: "list_tools".to_owned(),
                credentials_present: Some(Vec::new()),
            }),
            tools: BTreeMap::new(),
        };
        let instances = BTreeMap::from([(key, locked)]);
        self.lock = Some(Lock { instances });
    }

    pub(crate) fn resolve(&self) -> Resolved {
        resolve(&self.project, self.lock.as_ref(), Some(&self.observed))
    }

    /// The plan, of a world in which nothing is wrong.
    pub(crate) fn plan(&self) -> Plan {
        let resolved = self.resolve();
        let Some(plan) = resolved.plan else {
            panic!("no plan: {:?}", resolved.diagnostics);
        };
        plan
    }

    /// `code-name: message` of every finding.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.resolve()
            .diagnostics
            .iter()
            .map(|finding| format!("{}: {}", finding.code.name, finding.message))
            .collect()
    }

    /// The names of all findings.
    pub(crate) fn codes(&self) -> Vec<&'static str> {
        self.resolve()
            .diagnostics
            .iter()
            .map(|finding| finding.code.name)
            .collect()
    }

    pub(crate) fn changes(&self) -> ChangeSet {
        diff::changes_since(self.lock.as_ref(), &self.plan(), &self.observed)
    }

    /// What there is to do, a line an action and a line a reason; no-ops are left out.
    pub(crate) fn says(&self) -> String {
        self.changes()
            .changes
            .iter()
            .filter(|change| change.action != Action::NoOp)
            .map(say)
            .collect()
    }

    /// Makes the engine have what is planned, and nothing besides.
    pub(crate) fn apply(&mut self) {
        let plan = self.plan();
        let before = self.observed.containers.clone();
        let keep = |role: Option<&String>| role.is_some_and(|role| role == "hold");
        self.observed
            .containers
            .retain(|_, container| keep(container.spec.labels.get(label::ROLE)));
        self.observed.networks.clear();
        let mut attachments = BTreeMap::new();
        for (key, instance) in &plan.instances {
            let resident = instance.resident.as_ref().unwrap();
            self.run(&resident.name, &resident.spec, &resident.network);
            if let Some(before) = before.get(&resident.name) {
                // It was changed in place, which no label follows.
                let labels = before.spec.labels.clone();
                self.container(&resident.name).spec.labels = labels;
            }
            attachments.insert(
                resident.network.name.clone(),
                resident.network.gateway.to_string(),
            );
            for volume in resident.volumes.values() {
                let labels = BTreeMap::from([
                    (label::INSTANCE.to_owned(), key.to_string()),
                    (label::ROLE.to_owned(), volume.purpose.clone()),
                ]);
                self.observed.volumes.insert(
                    volume.name.clone(),
                    ObservedVolume {
                        labels,
                        violations: Vec::new(),
                    },
                );
            }
        }
        if let Some(gateway) = &plan.gateway {
            let mut network = gateway.network.clone();
            network.capability = network.gateway;
            self.run(&gateway.name, &gateway.spec, &network);
            let container = self.container(&gateway.name);
            container.networks.extend(attachments);
        }
    }

    pub(crate) fn container(&mut self, name: &str) -> &mut ObservedContainer {
        self.observed.containers.get_mut(name).unwrap()
    }

    /// A running container in a network of its own.
    pub(crate) fn run(&mut self, name: &str, spec: &ContainerSpec, network: &PlannedNetwork) {
        self.observed.networks.insert(
            network.name.clone(),
            ObservedNetwork {
                id: format!("id-of-{}", network.name),
                subnet: Some(network.subnet),
                bridge: Some(network.bridge),
                range: Some(network.dynamic_range()),
                closed: !network.outside,
                outside: network.outside,
                labels: spec.labels.clone(),
                attached: vec![name.to_owned(), "selu_p_gateway".to_owned()],
            },
        );
        self.observed.containers.insert(
            name.to_owned(),
            ObservedContainer {
                id: format!("id-of-{name}"),
                state: ContainerState::Running,
                spec: spec.clone(),
                image_id: IMAGE_ID.to_owned(),
                networks: BTreeMap::from([(network.name.clone(), network.capability.to_string())]),
                violations: Vec::new(),
            },
        );
    }
}

fn say(change: &Change) -> String {
    let verb = format!("{:?}", change.action).to_lowercase();
    let subject = match &change.subject {
        Subject::Gateway(_) => "gateway".to_owned(),
        Subject::Instance(key) => key.to_string(),
        Subject::Container(name) => format!("container {name}"),
        Subject::Network(name) => format!("network {name}"),
    };
    let mut text = format!("{verb} {subject}\n");
    for reason in &change.reasons {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let cause = match reason.cause {
            Cause::Intent => "intent",
            Cause::Drift => "drift",
        };
        let forces = if reason.forces_replace { "!" } else { "" };
        text.push_str(&format!(
            "  {cause}{forces} {}: {} -> {}\n",
            reason.path,
            value(&reason.old),
            value(&reason.new),
        ));
    }
    text
}

pub(crate) fn key_of(text: &str) -> InstanceKey {
    InstanceKey::parse(text).unwrap()
}

pub(crate) fn tool(name: &str, recommended: Option<Policy>) -> Tool {
    Tool {
        name: name.to_owned(),
        description: format!("does {name}"),
        input_schema: json!({"type": "object"}).into(),
        recommended,
        terminal_on_success: false,
        origin: Some(origin("manifest.yaml")),
    }
}

pub(crate) fn origin(file: &str) -> Origin {
    Origin {
        file: file.into(),
        line: 1,
        column: 5,
    }
}

fn capability(id: &str, image: &str, file: &str) -> Capability {
    Capability {
        id: id.to_owned(),
        origin: origin(file),
        image_at: Span {
            line: 2,
            column: 8,
            length: 19,
        },
        cpus_at: Span {
            line: 7,
            column: 21,
            length: 3,
        },
        class: Class::Tool,
        image: ImageReference {
            written: image.to_owned(),
            registry: "ghcr.io".to_owned(),
            repository: format!("acme/{id}"),
            tag: Some("1".to_owned()),
            digest: None,
        },
        tools: ToolSource::Static(vec![tool("get", Some(Policy::Allow))]),
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
