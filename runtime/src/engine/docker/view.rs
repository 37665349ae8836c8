//! Looking: list, inspect, logs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::models::{ContainerSummary, ImageConfig, Network, Volume};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptions, ListVolumesOptions, LogsOptionsBuilder,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use ipnet::Ipv4Net;
use selu_compiler::model::ImageReference;
use selu_compiler::observed::{
    EngineFacts, ImageFacts, Observed, ObservedContainer, ObservedNetwork, ObservedVolume,
};
use selu_compiler::plan::label;

use super::Docker;
use super::call::{plain, timeout};
use super::mark::Marks;
use super::{readback, supported};
use crate::engine::{
    EngineError, EngineResult, EngineView, Incident, LogRange, LogSource, LogStream, Usage,
};

/// How many inspects run at once: more gain nothing.
const AT_ONCE: usize = 8;

/// How much of a log is kept, in bytes: its lines are as long as their container wants them to be.
const LOG_BYTES: usize = 64 * 1024;

/// The bridge driver's option that keeps the host off a network.
pub(super) const INHIBIT: &str = "com.docker.network.bridge.inhibit_ipv4";

/// Options of a network that leads outside: as by default, but said, and whoever else may be put into it is kept apart.
pub(super) const OUTSIDE: [(&str, &str); 2] = [
    ("com.docker.network.bridge.enable_icc", "false"),
    ("com.docker.network.bridge.enable_ip_masquerade", "true"),
];

#[async_trait]
impl EngineView for Docker {
    async fn observe(&self, project: &str, wanted_names: &[String]) -> EngineResult<Observed> {
        let (engine, summaries, networks, volumes) = tokio::try_join!(
            self.facts(),
            self.call("list containers", self.limits.look, async {
                let all = ListContainersOptionsBuilder::default().all(true).build();
                self.api.list_containers(Some(all)).await
            }),
            self.call(
                "list networks",
                self.limits.look,
                self.api.list_networks(None::<ListNetworksOptions>)
            ),
            self.call(
                "list volumes",
                self.limits.look,
                self.api.list_volumes(None::<ListVolumesOptions>)
            ),
        )?;
        let marks = Marks { engine: &engine.id };
        let owner = Owner::new(project);
        let mut foreign = Foreign::new(wanted_names);

        let mut own_ids = Vec::new();
        for summary in &summaries {
            let name = name_of(summary);
            let labels = summary.labels.as_ref();
            let image = summary.image.as_deref().unwrap_or("unknown");
            let what = format!("a container of image {image}");
            match labels.filter(|_| owner.owns(name, labels)) {
                Some(labels) if marks.fits(name, labels) => {
                    own_ids.push((name.to_owned(), summary.id.clone().unwrap_or_default()));
                }
                Some(_) => foreign.note(name, || {
                    format!(
                        "{what} with this project's labels, which selu did not make on this engine \
                         (remove it with `docker rm -f {name}` if nobody needs it)"
                    )
                }),
                None => foreign.note(name, || described(&what, labels)),
            }
        }
        let containers = self.inspect_all(&marks, own_ids).await?;

        let mut observed = Observed {
            engine,
            containers,
            ..Observed::default()
        };
        for network in networks {
            let name = network.name.clone().unwrap_or_default();
            if owner.owns(&name, network.labels.as_ref()) {
                let network = network_of(&network, &summaries);
                observed.networks.insert(name, network);
            } else {
                observed.foreign_subnets.extend(subnets(&network));
                foreign.note(&name, || described("a network", network.labels.as_ref()));
            }
        }
        for volume in volumes.volumes.unwrap_or_default() {
            let Volume {
                name,
                labels,
                driver,
                options,
                ..
            } = volume;
            if owner.owns_volume(&name, &labels) {
                let labels = labels.into_iter().collect();
                let violations = volume_violations(&driver, options);
                observed
                    .volumes
                    .insert(name, ObservedVolume { labels, violations });
            } else {
                foreign.note(&name, || described("a volume", Some(&labels)));
            }
        }
        observed.foreign_subnets.sort();
        observed.foreign_subnets.dedup();
        observed.foreign_names = foreign.found;
        Ok(observed)
    }

    async fn image(&self, reference: &str) -> EngineResult<Option<ImageFacts>> {
        let call = format!("inspect image {reference}");
        let plain = plain(&call, reference)?;
        let answer = match self
            .call(&call, self.limits.look, self.api.inspect_image(plain))
            .await
        {
            Ok(answer) => answer,
            Err(EngineError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let config = answer.config.unwrap_or_default();
        Ok(Some(ImageFacts {
            id: answer.id,
            digest: remembered(&answer.repo_digests.unwrap_or_default(), reference),
            volumes: config.volumes.unwrap_or_default(),
            labels: config.labels.unwrap_or_default().into_iter().collect(),
        }))
    }

    async fn registry_digest(&self, reference: &ImageReference) -> EngineResult<Option<String>> {
        self.asked_digest(reference).await
    }

    async fn registry_platforms(
        &self,
        reference: &ImageReference,
        digest: &str,
    ) -> EngineResult<Vec<String>> {
        self.asked_platforms(reference, digest).await
    }

    async fn container(&self, name: &str) -> EngineResult<Option<ObservedContainer>> {
        let call = format!("inspect container {name}");
        let inspecting = self.api.inspect_container(plain(&call, name)?, None);
        let mut answer = match self.call(&call, self.limits.look, inspecting).await {
            Ok(answer) => answer,
            Err(EngineError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let engine = self.engine_id().await?;
        Marks { engine }.take(&mut answer);
        let image = self.image_config(answer.image.as_deref()).await?;
        readback::container(&call, answer, &image).map(Some)
    }

    async fn logs(&self, name: &str, lines: u32) -> EngineResult<String> {
        let call = format!("read the log of {name}");
        let options = LogsOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .tail(&lines.to_string())
            .build();
        let mut stream = self.api.logs(plain(&call, name)?, Some(options));
        let mut text = Vec::new();
        loop {
            let piece = match tokio::time::timeout(self.limits.look, stream.next()).await {
                Ok(Some(Ok(piece))) => piece,
                Ok(None) => break,
                Ok(Some(Err(error))) => match self.failure(&call, self.limits.look, error) {
                    EngineError::Refused {
                        status: 501,
                        message,
                        ..
                    } => {
                        return Ok(format!(
                            "[the engine cannot give this container's log: {message}]"
                        ));
                    }
                    other => return Err(other),
                },
                Err(_) => return Err(timeout(&call, self.limits.look)),
            };
            match piece {
                LogOutput::StdOut { message }
                | LogOutput::StdErr { message }
                | LogOutput::Console { message } => {
                    text.extend_from_slice(&message);
                    let surplus = text.len().saturating_sub(LOG_BYTES);
                    text.drain(..surplus);
                }
                LogOutput::StdIn { .. } => {}
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    async fn usage(&self, name: &str) -> EngineResult<Option<Usage>> {
        self.read_usage(name).await
    }

    async fn incidents(&self, name: &str, since: Instant) -> EngineResult<Vec<Incident>> {
        self.read_incidents(name, since).await
    }

    async fn log_stream(&self, name: &str, range: LogRange) -> EngineResult<LogStream> {
        let call = format!("read the log of {name}");
        let LogRange {
            since,
            tail,
            follow,
        } = range;
        let mut options = LogsOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .follow(follow)
            .tail(&tail.map_or_else(|| "all".to_owned(), |lines| lines.to_string()));
        if let Some(since) = since {
            options = options.since(i32::try_from(since).unwrap_or(i32::MAX));
        }
        let pieces = self.api.logs(plain(&call, name)?, Some(options.build()));
        let docker = self.clone();
        Ok(Box::pin(pieces.filter_map(move |piece| {
            let piece = match piece {
                Ok(LogOutput::StdErr { message }) => Some(Ok((LogSource::Error, message))),
                Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => {
                    Some(Ok((LogSource::Out, message)))
                }
                Ok(LogOutput::StdIn { .. }) => None,
                Err(error) => Some(Err(docker.failure(&call, docker.limits.look, error))),
            };
            std::future::ready(piece)
        })))
    }
}

impl Docker {
    async fn facts(&self) -> EngineResult<EngineFacts> {
        let (version, info) = tokio::try_join!(
            self.call("ask for the version", self.limits.look, self.api.version()),
            self.call("ask for information", self.limits.look, self.api.info()),
        )?;
        supported::facts(version, info)
    }

    /// Inspects our containers concurrently, and each image among them once. One that is removed meanwhile is absent.
    async fn inspect_all(
        &self,
        marks: &Marks<'_>,
        own: Vec<(String, String)>,
    ) -> EngineResult<BTreeMap<String, ObservedContainer>> {
        let answers: Vec<_> = stream::iter(own)
            .map(|(name, id)| async move {
                let call = format!("inspect container {name}");
                match self
                    .call(
                        &call,
                        self.limits.look,
                        self.api.inspect_container(&id, None),
                    )
                    .await
                {
                    Ok(answer) => Ok(Some((name, call, answer))),
                    Err(EngineError::NotFound { .. }) => Ok(None),
                    Err(error) => Err(error),
                }
            })
            .buffer_unordered(AT_ONCE)
            .try_filter_map(|found| async { Ok(found) })
            .try_collect()
            .await?;

        let ids: BTreeSet<String> = answers
            .iter()
            .filter_map(|(_, _, answer)| answer.image.clone())
            .collect();
        let images: HashMap<String, ImageConfig> = stream::iter(ids)
            .map(|id| async move {
                let config = self.image_config(Some(&id)).await?;
                EngineResult::Ok((id, config))
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;

        let none = ImageConfig::default();
        answers
            .into_iter()
            .map(|(name, call, mut answer)| {
                marks.take(&mut answer);
                let image = answer.image.as_ref().and_then(|id| images.get(id));
                let observed = readback::container(&call, answer, image.unwrap_or(&none))?;
                Ok((name, observed))
            })
            .collect()
    }

    /// What an image sets by itself; nothing if the engine has removed it from under its container.
    async fn image_config(&self, id: Option<&str>) -> EngineResult<ImageConfig> {
        let Some(id) = id else {
            return Ok(ImageConfig::default());
        };
        let call = format!("inspect image {id}");
        match self
            .call(&call, self.limits.look, self.api.inspect_image(id))
            .await
        {
            Ok(answer) => Ok(answer.config.unwrap_or_default()),
            Err(EngineError::NotFound { .. }) => Ok(ImageConfig::default()),
            Err(error) => Err(error),
        }
    }
}

/// Whose an object is: its label and the form of its name must both say so, and a container's mark besides (S12).
pub(super) struct Owner<'a> {
    project: &'a str,
    prefix: String,
}

impl<'a> Owner<'a> {
    pub(super) fn new(project: &'a str) -> Self {
        Self {
            project,
            prefix: format!("selu_{project}_"),
        }
    }

    fn owns(&self, name: &str, labels: Option<&HashMap<String, String>>) -> bool {
        name.starts_with(&self.prefix) && self.labelled(labels)
    }

    /// Names of data volumes are hashes (X3).
    pub(super) fn owns_volume(&self, name: &str, labels: &HashMap<String, String>) -> bool {
        let hashed = name.strip_prefix("selu_").is_some_and(|rest| {
            rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        (hashed || name.starts_with(&self.prefix)) && self.labelled(Some(labels))
    }

    fn labelled(&self, labels: Option<&HashMap<String, String>>) -> bool {
        labels
            .and_then(|labels| labels.get(label::PROJECT))
            .is_some_and(|project| project == self.project)
    }
}

struct Foreign<'a> {
    wanted: BTreeSet<&'a str>,
    found: BTreeMap<String, String>,
}

impl<'a> Foreign<'a> {
    fn new(wanted: &'a [String]) -> Self {
        Self {
            wanted: wanted.iter().map(String::as_str).collect(),
            found: BTreeMap::new(),
        }
    }

    fn note(&mut self, name: &str, what: impl FnOnce() -> String) {
        if self.wanted.contains(name) {
            self.found.entry(name.to_owned()).or_insert_with(what);
        }
    }
}

fn described(what: &str, labels: Option<&HashMap<String, String>>) -> String {
    match labels.and_then(|labels| labels.get(label::PROJECT)) {
        Some(project) => format!("{what} of project {project}"),
        None => format!("{what} that selu did not make"),
    }
}

fn name_of(summary: &ContainerSummary) -> &str {
    // Links add names with a second slash; the container's own has one.
    summary
        .names
        .iter()
        .flatten()
        .filter_map(|name| name.strip_prefix('/'))
        .find(|name| !name.contains('/'))
        .unwrap_or_default()
}

/// An option of a volume can be a folder of the host.
fn volume_violations(driver: &str, options: HashMap<String, String>) -> Vec<String> {
    let other = (driver != "local").then(|| format!("driver {driver}"));
    let options: BTreeMap<String, String> = options.into_iter().collect();
    let options = options.into_iter();
    let options = options.map(|(name, value)| format!("option {name}={value}"));
    other.into_iter().chain(options).collect()
}

fn network_of(network: &Network, summaries: &[ContainerSummary]) -> ObservedNetwork {
    let name = network.name.as_deref().unwrap_or_default();
    let option = |name: &str| {
        let options = network.options.as_ref()?;
        options.get(name).map(String::as_str)
    };
    let plain_bridge =
        network.enable_ipv6 != Some(true) && network.driver.as_deref() == Some("bridge");
    let inhibited = option(INHIBIT) == Some("true");
    let closed = plain_bridge && network.internal == Some(true) && inhibited;
    let as_made = OUTSIDE
        .iter()
        .all(|(name, value)| option(name) == Some(value));
    let outside = plain_bridge && network.internal != Some(true) && !inhibited && as_made;
    let attached = summaries
        .iter()
        .filter(|summary| {
            summary
                .network_settings
                .as_ref()
                .and_then(|settings| settings.networks.as_ref())
                .is_some_and(|networks| networks.contains_key(name))
        })
        .map(|summary| name_of(summary).to_owned())
        .collect();
    let layouts = network.ipam.iter();
    let mut layouts = layouts.flat_map(|ipam| ipam.config.iter().flatten());
    let layout = layouts.find(|config| {
        let subnet = config.subnet.as_deref();
        subnet.is_some_and(|subnet| subnet.parse::<Ipv4Net>().is_ok())
    });
    ObservedNetwork {
        id: network.id.clone().unwrap_or_default(),
        subnet: subnets(network).next(),
        bridge: layout.and_then(|config| config.gateway.as_deref()?.parse().ok()),
        range: layout.and_then(|config| config.ip_range.as_deref()?.parse().ok()),
        closed,
        outside,
        labels: network
            .labels
            .clone()
            .unwrap_or_default()
            .into_iter()
            .collect(),
        attached,
    }
}

/// A network's IPv4 subnets; those of the other family cannot collide with ours.
fn subnets(network: &Network) -> impl Iterator<Item = Ipv4Net> {
    network
        .ipam
        .iter()
        .flat_map(|ipam| ipam.config.iter().flatten())
        .filter_map(|config| config.subnet.as_deref())
        .filter_map(|subnet| subnet.parse().ok())
}

/// The digest that the engine remembers for the reference's own repository. Of several (a manifest and its index) none
/// is certain, and only the registry can tell.
fn remembered(digests: &[String], reference: &str) -> Option<String> {
    let (wanted, digest) = match reference.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (reference, None),
    };
    let wanted = repository(wanted);
    let mut found = digests
        .iter()
        .filter_map(|entry| entry.split_once('@'))
        .filter(|(name, _)| repository(name) == wanted)
        .map(|(_, found)| found);
    match digest {
        Some(digest) => found
            .any(|found| found == digest)
            .then(|| digest.to_owned()),
        None => {
            let first = found.next()?;
            found.next().is_none().then(|| first.to_owned())
        }
    }
}

/// A reference's registry and repository, as Docker fills them in, without tag.
fn repository(name: &str) -> String {
    let name = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => name,
    };
    match name.split_once('/') {
        None => format!("docker.io/library/{name}"),
        Some(("docker.io" | "index.docker.io", rest)) if !rest.contains('/') => {
            format!("docker.io/library/{rest}")
        }
        Some(("index.docker.io", rest)) => format!("docker.io/{rest}"),
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_without_the_name_or_a_name_without_the_label_owns_nothing() {
        let owner = Owner::new("demo");
        let labels =
            |project: &str| HashMap::from([(label::PROJECT.to_owned(), project.to_owned())]);
        assert!(owner.owns("selu_demo_a_b_1", Some(&labels("demo"))));
        assert!(!owner.owns("selu_demo_a_b_1", Some(&labels("other"))));
        assert!(!owner.owns("selu_demo_a_b_1", None));
        assert!(!owner.owns("forged", Some(&labels("demo"))));
        assert!(!owner.owns("selu_demo-two_a_b_1", Some(&labels("demo"))));
        let hashed = format!("selu_{}", "0a".repeat(16));
        assert!(owner.owns_volume(&hashed, &labels("demo")));
        assert!(!owner.owns_volume(&hashed, &labels("other")));
        assert!(!owner.owns_volume("selu_data", &labels("demo")));
    }

    #[test]
    fn the_engine_remembers_a_digest_for_the_very_repository_only() {
        let digests =
            |entries: &[&str]| entries.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>();
        let one = digests(&["redis@sha256:aa", "mirror.example/redis@sha256:bb"]);
        assert_eq!(remembered(&one, "redis:7").as_deref(), Some("sha256:aa"));
        assert_eq!(
            remembered(&one, "docker.io/library/redis").as_deref(),
            Some("sha256:aa")
        );
        assert_eq!(
            remembered(&one, "mirror.example/redis:7").as_deref(),
            Some("sha256:bb")
        );
        assert_eq!(remembered(&one, "acme/redis"), None);
        let two = digests(&["redis@sha256:aa", "redis@sha256:cc"]);
        assert_eq!(remembered(&two, "redis:7"), None, "manifest or index?");
        assert_eq!(
            remembered(&two, "redis@sha256:cc").as_deref(),
            Some("sha256:cc")
        );
        assert_eq!(
            repository("localhost:5000/x:1"),
            "localhost:5000/x",
            "a port is no tag"
        );
    }
}
