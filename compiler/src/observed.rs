//! Facts that only the world knows, observed by the runtime and passed to the compiler as plain data.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use crate::plan::{ContainerSpec, PlannedNetwork};

/// What an engine said about itself and about our objects, at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// The engine.
    pub engine: EngineFacts,
    /// Image reference → what is known of it: as written ([`crate::resolve::image_references`]), and as pinned
    /// ([`crate::resolve::pinned_references`]). Nothing is known of one that is not here.
    pub images: BTreeMap<String, ImageFacts>,
    /// What registries said of images that the engine does not have: `repository@sha256:…` → answer. Nobody was asked about
    /// one that is not here.
    #[serde(default)]
    pub registries: BTreeMap<String, RegistryAnswer>,
    /// Our containers by name: label and name both say so (S12).
    pub containers: BTreeMap<String, ObservedContainer>,
    /// Our networks by name.
    pub networks: BTreeMap<String, ObservedNetwork>,
    /// Our volumes by name.
    pub volumes: BTreeMap<String, ObservedVolume>,
    /// Names that we would use but that belong to someone else: name → what is known of the owner (F08).
    pub foreign_names: BTreeMap<String, String>,
    /// Every subnet in use on the engine that is not ours.
    pub foreign_subnets: Vec<Ipv4Net>,
}

/// The engine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineFacts {
    /// The engine's own id, which survives its restarts; empty where it has none.
    pub id: String,
    /// Such as `Docker 20.10.24 (API 1.41)`.
    pub version: String,
    /// Cores; a limit above it is an error of `plan` (R1).
    pub cpus: u64,
    /// OCI architecture, such as `amd64`.
    pub architecture: String,
    /// What the engine warns about, such as a missing swap limit (C08).
    pub warnings: Vec<String>,
}

/// An image as the engine or the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFacts {
    /// The id of the image that the engine has, `sha256:…`; `None` if it has none, or none with this very `digest`.
    pub id: Option<String>,
    /// The registry's index digest, `sha256:…`, if a registry was asked or the engine remembers one for this repository.
    pub digest: Option<String>,
    /// Paths of the image's VOLUMEs (F5).
    pub volumes: Vec<String>,
    /// Its labels (W6).
    pub labels: BTreeMap<String, String>,
}

/// What a registry said of one digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields, tag = "answer")]
pub enum RegistryAnswer {
    /// It has it.
    Has {
        /// The platforms that it is for, such as `linux/amd64`; empty where that is unknown.
        platforms: Vec<String>,
    },
    /// It gave no answer.
    Silent {
        /// Why.
        why: String,
    },
    /// It has it no more.
    Gone {
        /// The digest that the tag has now, where there is a tag.
        tag_now: Option<String>,
    },
}

/// A container of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedContainer {
    /// The engine's id.
    pub id: String,
    /// Its state.
    pub state: ContainerState,
    /// What is set on it, read back.
    pub spec: ContainerSpec,
    /// The image id that it runs.
    pub image_id: String,
    /// Networks that it is attached to: name → IPv4 address.
    pub networks: BTreeMap<String, String>,
    /// What W6 forbids and the spec cannot express, each in words: a host mount, a device, privileged mode, a published
    /// port, a shared namespace. Always empty unless somebody changed it.
    pub violations: Vec<String>,
}

/// How a container is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields, tag = "status")]
pub enum ContainerState {
    /// Never started (F17).
    Created,
    /// Running.
    Running,
    /// Paused by someone.
    Paused,
    /// The engine is about to start it again.
    Restarting,
    /// Ended.
    Exited {
        /// Its exit code.
        code: i64,
        /// Whether the kernel ended it for memory.
        oom_killed: bool,
    },
    /// The engine cannot remove it.
    Dead,
}

/// A network of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedNetwork {
    /// The engine's id.
    pub id: String,
    /// Its subnet.
    pub subnet: Option<Ipv4Net>,
    /// The bridge's address in it.
    pub bridge: Option<Ipv4Addr>,
    /// The part of it from which the engine takes addresses by itself (S9).
    pub range: Option<Ipv4Net>,
    /// Whether it is internal, with no address of the host on it (S10).
    pub closed: bool,
    /// Whether it is an ordinary network that leads outside, made as the gateway's own is.
    pub outside: bool,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Names of the containers attached, ours and others'.
    pub attached: Vec<String>,
}

impl ObservedNetwork {
    /// Whether its addresses are laid out as planned.
    pub fn is_laid_out_as(&self, planned: &PlannedNetwork) -> bool {
        self.subnet == Some(planned.subnet)
            && self.bridge == Some(planned.bridge)
            && self.range == Some(planned.dynamic_range())
    }
}

/// A volume of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedVolume {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// What it has beyond a plain volume of the engine's own, each in words: another driver, an option such as a host
    /// folder. Always empty unless somebody made it anew.
    pub violations: Vec<String>,
}
