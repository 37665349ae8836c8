//! The gateway from the desk's side: its image, its container, its policy and the pipes through it.
//!
//! The plan says what the gateway is; this module makes it so, and may be called again at any point (product.md 13).

mod host;
mod image;
pub mod leaks;
mod log;
mod pipe;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

use selu_compiler::observed::{ContainerState, Observed, ObservedContainer};
use selu_compiler::plan::{PlannedGateway, PlannedNetwork, PlannedVolume, label};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::egress::policy::{Ack, Policy, PolicyError, Standing};
use crate::egress::record::LOG_FOLDER;
use crate::egress::{POLICY_FOLDER, RUN_USER};
use crate::engine::{Engine, EngineError, Labels, Pipe};

pub use host::host_addresses;
pub use image::{ImageError, image_archive, image_archive_of};
pub use log::{EgressLog, egress_log};
#[cfg(test)]
pub(crate) use pipe::endpoint;
pub use pipe::pipe;

/// How long a policy may take to be taken and acknowledged, with the exec that carries it.
const TALK_LIMIT: std::time::Duration = std::time::Duration::from_secs(120);

/// Longest acknowledgement that is read, in bytes: whatever runs in the gateway must not fill this process's memory.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// Why the gateway could not do something.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Its image cannot be made from this executable.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A name or a network that it needs is someone else's (product.md 10).
    #[error("{name} belongs to someone else: {owner}")]
    Foreign {
        /// The name.
        name: String,
        /// What is known of the owner.
        owner: String,
    },
    /// Somebody else's containers are in its network; they are not ours to take out (product.md 10).
    #[error("containers that are not ours are in network {network}: {}; disconnect them", .strangers.join(", "))]
    Strangers {
        /// The gateway's network.
        network: String,
        /// Their names.
        strangers: Vec<String>,
    },
    /// A policy that makes no sense was about to be sent.
    #[error("the policy cannot be sent")]
    Policy(#[from] PolicyError),
    /// A role inside the gateway failed; its own words.
    #[error("{gateway}: `{role}` ended with exit code {code}: {message}")]
    Role {
        /// The gateway's container.
        gateway: String,
        /// Such as `gateway pipe selu_x_y_z_1`.
        role: String,
        /// Its exit code.
        code: i64,
        /// The end of its standard error.
        message: String,
    },
    /// It answered something else than it should.
    #[error("{gateway}: `{role}` gave an answer that makes no sense: {message}")]
    Answer {
        /// The gateway's container.
        gateway: String,
        /// The role.
        role: String,
        /// What was wrong.
        message: String,
    },
    /// It did not answer in time (F14).
    #[error("{gateway}: `{role}` did not answer within {} s", .limit.as_secs())]
    Silent {
        /// The gateway's container.
        gateway: String,
        /// The role.
        role: String,
        /// The limit.
        limit: std::time::Duration,
    },
    /// The streams to it broke.
    #[error("{gateway}: the streams of `{role}` broke")]
    Streams {
        /// The gateway's container.
        gateway: String,
        /// The role.
        role: String,
        /// Why.
        source: std::io::Error,
    },
    /// HTTP/2 could not be spoken over an open pipe.
    #[error("network {network}: the pipe opened, but HTTP/2 failed on it")]
    Transport {
        /// The network.
        network: String,
        /// Why.
        source: tonic::transport::Error,
    },
}

/// Loads the gateway's image from this executable if the engine has none of that tag; says whether it did.
pub async fn ensure_image(
    engine: &dyn Engine,
    project: &str,
    tag: &str,
) -> Result<bool, GatewayError> {
    if engine.image(tag).await?.is_some() {
        return Ok(false);
    }
    let facts = engine.observe(project, &[]).await?.engine;
    image::check_platform(&facts)?;
    engine
        .load_image(image_archive(tag, project)?.into())
        .await?;
    Ok(true)
}

/// Makes the gateway as planned, running and attached to those of `networks` that exist; says whether anything was done.
///
/// What is there and right is left alone. A gateway that differs is made anew: its pipes break, and calls on them end
/// with an error; the capabilities go on running.
pub async fn ensure(
    engine: &dyn Engine,
    project: &str,
    planned: &PlannedGateway,
    networks: &[&PlannedNetwork],
) -> Result<bool, GatewayError> {
    let mut changed = ensure_image(engine, project, &planned.spec.image).await?;
    let volumes = planned.volumes();
    let names: Vec<String> = [&planned.name, &planned.network.name]
        .into_iter()
        .chain(volumes.iter().map(|volume| &volume.name))
        .cloned()
        .collect();
    let observed = engine.observe(project, &names).await?;
    if let Some((name, owner)) = observed.foreign_names.iter().next() {
        return Err(GatewayError::Foreign {
            name: name.clone(),
            owner: owner.clone(),
        });
    }

    if let Some(network) = observed.networks.get(&planned.network.name) {
        let strangers: Vec<String> = network
            .attached
            .iter()
            .filter(|name| !observed.containers.contains_key(*name))
            .cloned()
            .collect();
        if !strangers.is_empty() {
            return Err(GatewayError::Strangers {
                network: planned.network.name.clone(),
                strangers,
            });
        }
    }

    let network_right = observed
        .networks
        .get(&planned.network.name)
        .is_some_and(|network| {
            let labelled = labels(project)
                .iter()
                .all(|(name, value)| network.labels.get(name) == Some(value));
            let as_planned = match planned.network.outside {
                true => network.outside,
                false => network.closed,
            };
            as_planned && labelled && network.is_laid_out_as(&planned.network)
        });
    let container = observed.containers.get(&planned.name);
    let container_right =
        network_right && container.is_some_and(|found| is_right(found, planned, &observed));

    if !container_right && container.is_some() {
        engine.remove_container(&planned.name).await?;
        changed = true;
    }
    if !network_right {
        if observed.networks.contains_key(&planned.network.name) {
            engine.remove_network(&planned.network.name).await?;
        }
        engine
            .create_network(&planned.network, &labels(project))
            .await?;
        changed = true;
    }
    // Also where it exists: whoever made it may have been ended before it was handed over.
    for volume in &volumes {
        if !container_right || !observed.volumes.contains_key(&volume.name) {
            prepare_volume(engine, &planned.spec.image, volume, &labels(project)).await?;
            changed = true;
        }
    }
    if !container_right {
        engine
            .create_container(
                &planned.name,
                &planned.spec,
                &planned.network.name,
                Some(planned.network.gateway),
                false,
            )
            .await?;
        changed = true;
    }
    if container.is_none_or(|found| !container_right || found.state != ContainerState::Running) {
        engine.start(&planned.name).await?;
        changed = true;
    }
    let attached = if container_right { container } else { None };
    Ok(attach_existing(engine, planned, networks, &observed, attached).await? || changed)
}

/// Attaches the gateway to a container's network at its planned address. Attached already is fine.
pub async fn attach(
    engine: &dyn Engine,
    gateway: &str,
    network: &PlannedNetwork,
) -> Result<(), GatewayError> {
    Ok(engine
        .connect(&network.name, gateway, network.gateway)
        .await?)
}

async fn attach_existing(
    engine: &dyn Engine,
    planned: &PlannedGateway,
    networks: &[&PlannedNetwork],
    observed: &Observed,
    container: Option<&ObservedContainer>,
) -> Result<bool, GatewayError> {
    let mut changed = false;
    for network in networks {
        let name = network.name.as_str();
        if !observed.networks.contains_key(name) {
            continue;
        }
        let address = container.and_then(|found| found.networks.get(name).map(|at| (found, at)));
        if let Some((found, address)) = address {
            if is_at(found, address, network.gateway) {
                continue;
            }
            engine.disconnect(name, &planned.name).await?;
        }
        attach(engine, &planned.name, network).await?;
        changed = true;
    }
    Ok(changed)
}

/// Whether the container may stay: as planned, at its address, and in no network but the project's.
fn is_right(found: &ObservedContainer, planned: &PlannedGateway, observed: &Observed) -> bool {
    let dead = matches!(found.state, ContainerState::Dead | ContainerState::Paused);
    let own = found.networks.get(&planned.network.name);
    !dead
        && found.violations.is_empty()
        && found.spec == planned.spec
        && own.is_some_and(|address| is_at(found, address, planned.network.gateway))
        && found
            .networks
            .keys()
            .all(|name| observed.networks.contains_key(name))
}

/// An engine shows no address of a container that does not run.
fn is_at(found: &ObservedContainer, address: &str, planned: Ipv4Addr) -> bool {
    match address {
        "" => found.state != ContainerState::Running,
        address => address == planned.to_string(),
    }
}

fn labels(project: &str) -> Labels {
    Labels::from([
        (label::PROJECT.to_owned(), project.to_owned()),
        (label::ROLE.to_owned(), "gateway".to_owned()),
    ])
}

/// Creates a volume and hands it to the user that will write to it: 1000:1000, or the gateway's own for its policy and
/// for its log (F4). `image` is the gateway's. A volume that has content keeps it, so this is called before every container that is
/// made with the volume: one that exists may have been left between the two steps.
pub async fn prepare_volume(
    engine: &dyn Engine,
    image: &str,
    volume: &PlannedVolume,
    labels: &Labels,
) -> Result<(), GatewayError> {
    let mut own = labels.clone();
    own.insert(label::ROLE.to_owned(), volume.purpose.clone());
    engine.create_volume(&volume.name, &own).await?;
    let path = match volume.purpose.as_str() {
        "policy" => POLICY_FOLDER,
        "egress" => LOG_FOLDER,
        _ => image::HANDED_FOLDER,
    };
    Ok(engine.seed_volume(&volume.name, image, path, &own).await?)
}

/// Sends a policy and waits for its acknowledgement (S8). Its generation must be the present one plus one.
pub async fn push_policy(
    engine: &dyn Engine,
    gateway: &str,
    policy: &Policy,
) -> Result<Ack, GatewayError> {
    policy.validate()?;
    let sealed = policy.clone().seal()?;
    let role = ["policy"];
    let delivery = serde_json::to_vec(&sealed).map_err(|error| answer(gateway, &role, error))?;
    let ack: Ack = converse(engine, gateway, &role, &delivery).await?;
    if ack == sealed.ack() {
        Ok(ack)
    } else {
        Err(answer(
            gateway,
            &role,
            format!(
                "generation {} with {} was acknowledged, not {} with {}",
                ack.generation, ack.hash, policy.generation, sealed.hash
            ),
        ))
    }
}

/// Which policy the gateway goes by, and how it stands. An error if it has none or cannot go by it: it denies everything
/// then.
pub async fn standing(engine: &dyn Engine, gateway: &str) -> Result<Standing, GatewayError> {
    converse(engine, gateway, &["policy", "--show"], &[]).await
}

async fn converse<T: DeserializeOwned>(
    engine: &dyn Engine,
    gateway: &str,
    role: &[&str],
    input: &[u8],
) -> Result<T, GatewayError> {
    let talk = talk(engine, gateway, role, input);
    tokio::time::timeout(TALK_LIMIT, talk)
        .await
        .unwrap_or_else(|_| Err(silent(gateway, role, TALK_LIMIT)))
}

async fn talk<T: DeserializeOwned>(
    engine: &dyn Engine,
    gateway: &str,
    role: &[&str],
    input: &[u8],
) -> Result<T, GatewayError> {
    let Pipe {
        output,
        input: mut to_role,
        ended,
    } = engine.exec(gateway, RUN_USER, &command(role)).await?;
    let broken = |source| GatewayError::Streams {
        gateway: gateway.to_owned(),
        role: role_text(role),
        source,
    };
    // A role that has refused early closes its input: its own words are better than the broken pipe.
    let sent = async {
        to_role.write_all(input).await?;
        to_role.shutdown().await
    }
    .await;
    let mut answered = Vec::new();
    let heard = output.take(LONGEST_ANSWER).read_to_end(&mut answered).await;
    let (code, message) = ended.await?;
    if code != 0 {
        // A role speaks on its error stream. Why it could not even be started the engine says on the other one.
        let words = match message.trim() {
            "" => String::from_utf8_lossy(&answered).trim().to_owned(),
            words => words.to_owned(),
        };
        return Err(GatewayError::Role {
            gateway: gateway.to_owned(),
            role: role_text(role),
            code,
            message: words,
        });
    }
    sent.map_err(broken)?;
    heard.map_err(broken)?;
    serde_json::from_slice(&answered).map_err(|error| answer(gateway, role, error))
}

fn command(role: &[&str]) -> Vec<String> {
    ["/selu", "gateway"]
        .iter()
        .chain(role)
        .map(|word| (*word).to_owned())
        .collect()
}

fn role_text(role: &[&str]) -> String {
    format!("gateway {}", role.join(" "))
}

fn silent(gateway: &str, role: &[&str], limit: std::time::Duration) -> GatewayError {
    GatewayError::Silent {
        gateway: gateway.to_owned(),
        role: role_text(role),
        limit,
    }
}

fn answer(gateway: &str, role: &[&str], message: impl ToString) -> GatewayError {
    GatewayError::Answer {
        gateway: gateway.to_owned(),
        role: role_text(role),
        message: message.to_string(),
    }
}
