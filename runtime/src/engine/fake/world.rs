//! What exists on the engine in memory, and its rules.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use selu_compiler::model::ImageReference;
use selu_compiler::observed::{
    ContainerState, EngineFacts, ImageFacts, Observed, ObservedContainer, ObservedNetwork,
    ObservedVolume,
};
use selu_compiler::plan::{ContainerSpec, PlannedNetwork, label};
use tokio::sync::watch;

use super::{Call, Serve};
use crate::egress::policy::Sealed;
use crate::engine::{EngineResult, Incident, Labels, Usage};

/// An image, and how its containers behave.
#[derive(Clone)]
pub struct Image {
    /// What the engine says of it.
    pub facts: ImageFacts,
    /// Serves pipes to its containers; nothing listens without it.
    pub serve: Option<Serve>,
    /// Its containers end at once with this code and log.
    pub ends: Option<(i64, String)>,
}

/// A container.
#[derive(Clone)]
pub struct Container {
    /// As it is inspected.
    pub observed: ObservedContainer,
    /// Its log.
    pub log: String,
    /// What its statistics say while it runs.
    pub usage: Usage,
    /// What its events say.
    pub incidents: Vec<Incident>,
    /// Whether its input is kept open for one client.
    pub(super) open_stdin: bool,
    /// Its exit code, once it has ended or was removed.
    pub(super) ended: watch::Sender<Option<i64>>,
}

/// A volume.
#[derive(Clone)]
pub struct Volume {
    /// As it is listed.
    pub observed: ObservedVolume,
    /// The path whose owner it was given.
    pub seeded: Option<String>,
    /// The policy that the gateway keeps in it.
    pub policy: Option<Sealed>,
}

/// Everything on the engine.
#[derive(Clone)]
pub struct World {
    /// The engine's own account.
    pub engine: EngineFacts,
    /// By reference, exactly as asked for.
    pub images: BTreeMap<String, Image>,
    /// What can be pulled: `registry/repository:tag` → image with its digest.
    pub registry: BTreeMap<String, Image>,
    /// By name.
    pub containers: BTreeMap<String, Container>,
    /// By name.
    pub networks: BTreeMap<String, ObservedNetwork>,
    /// By name.
    pub volumes: BTreeMap<String, Volume>,
    /// Counts up; part of each id.
    made: u64,
}

impl Image {
    /// One whose containers run and serve nothing.
    pub fn new(facts: ImageFacts) -> Self {
        Self {
            facts,
            serve: None,
            ends: None,
        }
    }
}

impl Volume {
    /// An empty one.
    pub fn new(labels: &Labels) -> Self {
        Self {
            observed: ObservedVolume {
                labels: labels.clone(),
                violations: Vec::new(),
            },
            seeded: None,
            policy: None,
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self {
            engine: EngineFacts {
                id: "the-engine".to_owned(),
                version: "Fake 1 (API 1.41)".to_owned(),
                cpus: 2,
                architecture: match std::env::consts::ARCH {
                    "x86_64" => "amd64",
                    "aarch64" => "arm64",
                    other => other,
                }
                .to_owned(),
                warnings: Vec::new(),
            },
            images: BTreeMap::new(),
            registry: BTreeMap::new(),
            containers: BTreeMap::new(),
            networks: BTreeMap::new(),
            volumes: BTreeMap::new(),
            made: 0,
        }
    }
}

impl Container {
    pub(super) fn runs(&self) -> bool {
        matches!(
            self.observed.state,
            ContainerState::Running | ContainerState::Paused | ContainerState::Restarting
        )
    }

    /// Ends its process, if it has one.
    pub fn end(&mut self, code: i64) {
        if self.runs() {
            self.observed.state = ContainerState::Exited {
                code,
                oom_killed: false,
            };
        }
        self.ended.send_replace(Some(code));
    }
}

impl World {
    pub(super) fn find(&self, name: &str) -> Option<&Container> {
        self.containers.get(name).or_else(|| {
            self.containers
                .values()
                .find(|found| found.observed.id == name)
        })
    }

    pub(super) fn find_mut(&mut self, name: &str) -> Option<&mut Container> {
        let name = self.name_of(name)?;
        self.containers.get_mut(&name)
    }

    fn name_of(&self, name: &str) -> Option<String> {
        self.containers
            .iter()
            .find(|(own, found)| *own == name || found.observed.id == name)
            .map(|(own, _)| own.clone())
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(mut container) = self
            .name_of(name)
            .and_then(|name| self.containers.remove(&name))
        {
            container.end(137);
        }
    }

    pub(super) fn observe(&self, project: &str, wanted: &[String]) -> Observed {
        let prefix = format!("selu_{project}_");
        let labelled =
            |labels: &Labels| labels.get(label::PROJECT).is_some_and(|own| own == project);
        let owns = |name: &str, labels: &Labels| name.starts_with(&prefix) && labelled(labels);
        let owns_volume =
            |name: &str, labels: &Labels| name.starts_with("selu_") && labelled(labels);

        let mut observed = Observed {
            engine: self.engine.clone(),
            ..Observed::default()
        };
        let mut foreign = Vec::new();
        for (name, container) in &self.containers {
            if owns(name, &container.observed.spec.labels) {
                let container = container.observed.clone();
                observed.containers.insert(name.clone(), container);
            } else {
                foreign.push((name, "a container that selu did not make"));
            }
        }
        for (name, network) in &self.networks {
            if owns(name, &network.labels) {
                let attached = self
                    .containers
                    .iter()
                    .filter(|(_, container)| container.observed.networks.contains_key(name))
                    .map(|(name, _)| name.clone())
                    .collect();
                let network = ObservedNetwork {
                    attached,
                    ..network.clone()
                };
                observed.networks.insert(name.clone(), network);
            } else {
                observed.foreign_subnets.extend(network.subnet);
                foreign.push((name, "a network that selu did not make"));
            }
        }
        for (name, volume) in &self.volumes {
            if owns_volume(name, &volume.observed.labels) {
                observed
                    .volumes
                    .insert(name.clone(), volume.observed.clone());
            } else {
                foreign.push((name, "a volume that selu did not make"));
            }
        }
        for (name, what) in foreign {
            if wanted.contains(name) {
                observed
                    .foreign_names
                    .entry(name.clone())
                    .or_insert_with(|| what.to_owned());
            }
        }
        observed
    }

    pub(super) fn create_network(
        &mut self,
        call: &Call,
        network: &PlannedNetwork,
        labels: &Labels,
    ) -> EngineResult<()> {
        if self.networks.contains_key(&network.name) {
            return Err(call.conflict("a network of that name exists"));
        }
        let overlaps =
            |other: &Ipv4Net| other.contains(&network.subnet) || network.subnet.contains(other);
        if self
            .networks
            .values()
            .filter_map(|found| found.subnet)
            .any(|net| overlaps(&net))
        {
            return Err(call.refuse("Pool overlaps with other one on this address space"));
        }
        let network_of = ObservedNetwork {
            id: self.next_id(),
            subnet: Some(network.subnet),
            bridge: Some(network.bridge),
            range: Some(network.dynamic_range()),
            closed: !network.outside,
            outside: network.outside,
            labels: labels.clone(),
            attached: Vec::new(),
        };
        self.networks.insert(network.name.clone(), network_of);
        Ok(())
    }

    pub(super) fn remove_network(&mut self, call: &Call, name: &str) -> EngineResult<()> {
        let active = self
            .containers
            .values()
            .any(|container| container.runs() && container.observed.networks.contains_key(name));
        if active {
            return Err(call.refuse(format!("network {name} has active endpoints")));
        }
        self.networks.remove(name);
        Ok(())
    }

    pub(super) fn connect(
        &mut self,
        call: &Call,
        network: &str,
        container: &str,
        address: Ipv4Addr,
    ) -> EngineResult<()> {
        if !self.networks.contains_key(network) {
            return Err(call.missing(format!("network {network} not found")));
        }
        let address = address.to_string();
        let Some(name) = self.name_of(container) else {
            return Err(call.missing(format!("No such container: {container}")));
        };
        let has = |found: &Container| found.observed.networks.get(network) == Some(&address);
        if self
            .containers
            .iter()
            .any(|(own, found)| *own != name && found.runs() && has(found))
        {
            return Err(call.refuse("Address already in use"));
        }
        let Some(found) = self.containers.get_mut(&name) else {
            return Err(call.missing(format!("No such container: {container}")));
        };
        match found.observed.networks.get(network) {
            Some(present) if *present != address => Err(call.refuse(format!(
                "endpoint with name {name} already exists in {network}"
            ))),
            _ => {
                found.observed.networks.insert(network.to_owned(), address);
                Ok(())
            }
        }
    }

    pub(super) fn create_container(
        &mut self,
        call: &Call,
        name: &str,
        spec: &ContainerSpec,
        network: &str,
        address: Option<Ipv4Addr>,
        open_stdin: bool,
    ) -> EngineResult<()> {
        if let Some(found) = self.containers.get(name) {
            return Err(call.conflict(format!("already in use by container {}", found.observed.id)));
        }
        let by_id = |image: &&Image| image.facts.id.as_ref() == Some(&spec.image);
        let Some(image) = self
            .images
            .get(&spec.image)
            .or_else(|| self.images.values().find(by_id))
        else {
            return Err(call.missing(format!("No such image: {}", spec.image)));
        };
        let image_id = image.facts.id.clone().unwrap_or_default();
        let networks = match network {
            "none" | "host" => BTreeMap::new(),
            _ => BTreeMap::from([(
                network.to_owned(),
                address
                    .map(|address| address.to_string())
                    .unwrap_or_default(),
            )]),
        };
        let observed = ObservedContainer {
            id: self.next_id(),
            state: ContainerState::Created,
            spec: spec.clone(),
            image_id,
            networks,
            violations: Vec::new(),
        };
        let container = Container {
            observed,
            log: String::new(),
            usage: Usage {
                cpu_nanos: 0,
                pids: 1,
            },
            incidents: Vec::new(),
            open_stdin,
            ended: watch::Sender::new(None),
        };
        self.containers.insert(name.to_owned(), container);
        Ok(())
    }

    pub(super) fn start(&mut self, call: &Call, name: &str) -> EngineResult<()> {
        let Some(found) = self.find(name) else {
            return Err(call.missing(format!("No such container: {name}")));
        };
        match found.observed.state {
            ContainerState::Running => return Ok(()),
            ContainerState::Paused => {
                return Err(call.refuse("cannot start a paused container, try unpause instead"));
            }
            _ => {}
        }
        for (network, address) in &found.observed.networks {
            if !self.networks.contains_key(network) {
                return Err(call.missing(format!("network {network} not found")));
            }
            let taken = self.containers.values().any(|other| {
                other.observed.id != found.observed.id
                    && other.runs()
                    && other.observed.networks.get(network) == Some(address)
            });
            if taken {
                return Err(call.refuse("Address already in use"));
            }
        }
        let ends = self
            .image_of(&found.observed.image_id)
            .and_then(|image| image.ends.clone());
        if let Some(container) = self.find_mut(name) {
            container.observed.state = ContainerState::Running;
            container.ended.send_replace(None);
            if let Some((code, log)) = ends {
                container.log = log;
                container.end(code);
            }
        }
        Ok(())
    }

    pub(super) fn image_of(&self, id: &str) -> Option<&Image> {
        self.images
            .values()
            .find(|image| image.facts.id.as_deref() == Some(id))
    }

    pub(super) fn pull(&mut self, call: &Call, reference: &str) -> EngineResult<()> {
        let found = reference.split_once('@').and_then(|(repository, digest)| {
            self.registry
                .iter()
                .find(|(name, image)| {
                    name.rsplit_once(':')
                        .is_some_and(|(own, _)| own == repository)
                        && image.facts.digest.as_deref() == Some(digest)
                })
                .map(|(_, image)| image.clone())
        });
        match found {
            Some(image) => {
                self.images.insert(reference.to_owned(), image);
                Ok(())
            }
            None => Err(call.missing(format!("manifest for {reference} not found"))),
        }
    }

    /// What the registry has for a tag, or whether it has a digest at all.
    pub(super) fn registry_digest(&self, reference: &ImageReference) -> Option<String> {
        let digest = |image: &Image| image.facts.digest.clone();
        if reference.digest.is_none() {
            return self.registry.get(&reference.in_full()).and_then(digest);
        }
        let repository = format!("{}/{}", reference.registry, reference.repository);
        let own = |name: &str| {
            name.rsplit_once(':')
                .is_some_and(|(own, _)| own == repository)
        };
        let images = self.registry.iter().filter(|(name, _)| own(name));
        let mut digests = images.filter_map(|(_, image)| digest(image));
        digests.find(|found| Some(found) == reference.digest.as_ref())
    }

    fn next_id(&mut self) -> String {
        self.made += 1;
        format!("{:064x}", self.made)
    }
}

/// Tag and labels of a `docker save` archive.
pub(super) fn read_archive(archive: &[u8]) -> io::Result<(String, Image)> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        let name = entry.path()?.display().to_string();
        if name.ends_with(".json") {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            files.insert(name, content);
        }
    }
    let json = |name: &str| -> io::Result<serde_json::Value> {
        let content = files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(serde_json::from_slice(content)?)
    };
    let manifest = json("manifest.json")?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let config_name = text(&manifest[0]["Config"]);
    let config = json(&config_name)?;
    let labels = config["config"]["Labels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), text(value)))
        .collect();
    let facts = ImageFacts {
        id: Some(format!("sha256:{}", config_name.trim_end_matches(".json"))),
        digest: None,
        volumes: Vec::new(),
        labels,
    };
    Ok((text(&manifest[0]["RepoTags"][0]), Image::new(facts)))
}
