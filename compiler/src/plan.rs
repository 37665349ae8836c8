//! The plan: plain, ordered, versioned data that leaves the runtime nothing to choose.
//!
//! Names, digests, limits, mounts and addresses are decided here. What only the world knows and could not be observed
//! (an image that was never pulled, an engine that was not asked) is `None`, and then the plan cannot be applied.

pub mod hash;
pub mod names;
pub mod saved;
pub mod session;
pub mod spec;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{
    Class, Credential, Filesystem, InstanceKey, Limits, Network, Origin, Policy, Routing, Sharing,
};

/// Version of the plan's wire form.
pub const FORMAT_VERSION: &str = "1.0";

/// What should exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// [`FORMAT_VERSION`].
    pub format_version: String,
    /// The project's name, which owns every object (product.md 10).
    pub project: String,
    /// By id.
    pub agents: BTreeMap<String, PlannedAgent>,
    /// By key.
    pub instances: BTreeMap<InstanceKey, PlannedInstance>,
    /// The project's gateway; `None` when there is no instance, or no engine was asked.
    pub gateway: Option<PlannedGateway>,
}

impl Plan {
    /// The plan but for the addresses of its networks. They are cut from what is free when the engine is asked, and
    /// another project may take some of that between two plans; two plans that are equal in this form do the same work.
    #[must_use]
    pub fn without_addresses(mut self) -> Self {
        let nowhere = Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 28);
        for instance in self.instances.values_mut() {
            if let Some(container) = &mut instance.resident {
                *container =
                    container.in_generation(container.generation, &container.name, nowhere);
            }
        }
        if let Some(gateway) = &mut self.gateway {
            let outside = gateway.network.outside;
            gateway.network = PlannedNetwork::new(gateway.network.name.clone(), nowhere);
            gateway.network.outside = outside;
            for rule in gateway.policy.values_mut() {
                rule.subnet = nowhere;
                rule.capability = Ipv4Addr::UNSPECIFIED;
            }
        }
        self
    }
}

/// What is planned of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedAgent {
    /// Where it is written.
    pub origin: Origin,
    /// For people.
    pub name: String,
    /// Resolved by A4; never `auto`.
    pub routing: Routing,
    /// File name → hash (A5).
    pub prompts: BTreeMap<String, String>,
}

/// What is planned of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedInstance {
    /// Where its manifest's id is written.
    pub origin: Origin,
    /// What runs.
    pub image: PlannedImage,
    /// tool or environment.
    pub class: Class,
    /// What is writable.
    pub filesystem: Filesystem,
    /// Whether `/cache` is kept.
    pub cache: bool,
    /// Exclusive or shared.
    pub sharing: Sharing,
    /// Limits, also those that the engine does not enforce by itself (`cpu_seconds`).
    pub limits: Limits,
    /// Which of them selu.toml has in place of the manifest's, and where: the name of the field → its place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limit_overrides: BTreeMap<String, Origin>,
    /// Egress rules.
    pub network_rules: Network,
    /// Entries whose destinations may be private addresses, by selu.toml's permission (N8); normalised and sorted.
    pub private: Vec<String>,
    /// Required secrets by name.
    pub credentials: Vec<Credential>,
    /// File name → hash.
    pub prompts: BTreeMap<String, String>,
    /// The tool that lists the tools, for a dynamic capability. It is never offered to a model (T4).
    pub discovery_tool: Option<String>,
    /// What a model is offered: static tools, or those that the lock has for a dynamic capability.
    pub tools: BTreeMap<String, PlannedTool>,
    /// The resident container (X1); `None` while the image or the engine is unknown.
    pub resident: Option<PlannedContainer>,
}

/// A tool with its policy and where the policy came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTool {
    /// What the model reads.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: serde_json::Value,
    /// The effective policy.
    pub policy: Policy,
    /// Why it is that.
    pub policy_origin: PolicyOrigin,
    /// The tool loop ends after a success.
    pub terminal_on_success: bool,
    /// Where the tool is written; `None` for a discovered one.
    pub origin: Option<Origin>,
}

/// Where a policy came from (D3, T1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyOrigin {
    /// `[policy]` in selu.toml.
    Override,
    /// The manifest's `recommended_policy` or `requires_confirmation`.
    Manifest,
    /// The recommendation that came with a discovered tool when it was added.
    Discovered,
    /// Nobody said anything: `block`.
    Default,
}

/// An image by what cannot move (I3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedImage {
    /// As the manifest has it.
    pub written: String,
    /// Where it comes from.
    pub kind: ImageKind,
    /// Registry kind: the index digest. Local kind: the image id. `None` while unknown.
    pub digest: Option<String>,
    /// Local kind with a `container/` folder: the folder's hash (product.md 19).
    pub source: Option<String>,
    /// What the engine is told: `repository@sha256:…` or the image id. `None` while unknown.
    pub reference: Option<String>,
    /// Whether the engine does not have it yet. Its VOLUMEs and labels are then unknown too, so the resident's spec is a
    /// forecast: apply pulls, observes and plans again, and creates nothing while this is set.
    pub pull: bool,
    /// Local kind: whether the image says that it was built from `source` (`dev.selu.source`); `None` while unknown.
    pub built_from_source: Option<bool>,
}

/// Where an image comes from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ImageKind {
    /// Pinned to a registry's index digest.
    Registry,
    /// Exists only on an engine (product.md 19).
    Local,
    /// Not known yet: no lock, no engine, no registry was asked.
    Unknown,
}

/// One container with the network and the volumes that are its own (S2, X3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedContainer {
    /// Counts up with each replacement; part of the names of container and network.
    pub generation: u64,
    /// `selu_<project>_<agent>_<capability>_<generation>`.
    pub name: String,
    /// Its own network.
    pub network: PlannedNetwork,
    /// Its volumes, by path in the container.
    pub volumes: BTreeMap<String, PlannedVolume>,
    /// Everything that is set on the container.
    pub spec: ContainerSpec,
    /// `v1:sha256:…` over the canonical spec and the rules that it runs under (product.md 7).
    pub spec_hash: String,
}

impl PlannedContainer {
    /// The same container in another generation, and so under another name and at other addresses. The spec hash does
    /// not depend on them.
    pub(crate) fn in_generation(&self, generation: u64, name: &str, subnet: Ipv4Net) -> Self {
        let network = PlannedNetwork::new(name.to_owned(), subnet);
        let mut spec = self.spec.clone();
        spec.dns = vec![network.gateway];
        spec.labels
            .insert(label::GENERATION.to_owned(), generation.to_string());
        Self {
            generation,
            name: name.to_owned(),
            network,
            volumes: self.volumes.clone(),
            spec,
            spec_hash: self.spec_hash.clone(),
        }
    }
}

/// One internal network for one container (S2), or the gateway's own.
///
/// A subnet's lower half holds real addresses, its upper half the virtual ones of the gateway's DNS. Nothing in it is
/// assigned by the engine's choice: bridge, capability and gateway have the first three addresses, and what the engine
/// may hand out by itself, to a container that someone else attaches, is confined to
/// [`PlannedNetwork::dynamic_range`], so that it can never take the gateway's address while the gateway is down (S9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedNetwork {
    /// Equal to the container's name.
    pub name: String,
    /// Cut from the configured range; the size follows the rules (S9).
    #[schemars(with = "String")]
    pub subnet: Ipv4Net,
    /// Whether it leads outside, through the host's own address translation: the gateway's own network where a rule opens
    /// anything, and no other. All others are internal, without an address of the host.
    pub outside: bool,
    /// The bridge's address, which `inhibit_ipv4` keeps off the host unless it leads outside: the first of the subnet.
    pub bridge: Ipv4Addr,
    /// The capability's static address.
    pub capability: Ipv4Addr,
    /// The gateway's static address in this network, outside the dynamic range (S9).
    pub gateway: Ipv4Addr,
}

impl PlannedNetwork {
    /// Lays out a subnet; ours have at least sixteen addresses.
    pub fn new(name: String, subnet: Ipv4Net) -> Self {
        let first = u32::from(subnet.network());
        let at = |offset: u32| Ipv4Addr::from(first.saturating_add(offset));
        Self {
            name,
            outside: false,
            bridge: at(1),
            capability: at(2),
            gateway: at(3),
            subnet,
        }
    }

    /// The upper half of the subnet: what the gateway's DNS answers with. The last of them is the broadcast address.
    pub fn virtual_range(&self) -> Ipv4Net {
        let prefix = (self.subnet.prefix_len() + 1).min(32);
        let first = u32::from(self.subnet.network()).saturating_add(1 << (32 - prefix));
        Ipv4Net::new_assert(Ipv4Addr::from(first), prefix)
    }

    /// The second quarter of the subnet: the only part from which the engine may take an address by itself. Neither a
    /// static nor a virtual address is in it.
    pub fn dynamic_range(&self) -> Ipv4Net {
        let prefix = (self.subnet.prefix_len() + 2).min(32);
        let first = u32::from(self.subnet.network()).saturating_add(1 << (32 - prefix));
        Ipv4Net::new_assert(Ipv4Addr::from(first), prefix)
    }
}

/// A volume that holds data: never removed without being asked for by name (product.md 15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedVolume {
    /// `selu_` and 32 hex digits, a hash of project, instance, user, session and path (X3).
    pub name: String,
    /// `workspace` or `cache`.
    pub purpose: String,
}

/// The gateway of a project: one container, attached to every container's network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedGateway {
    /// `selu_<project>_gateway`.
    pub name: String,
    /// The network that it starts in; it leads outside where anything may leave.
    pub network: PlannedNetwork,
    /// The volume that keeps its policy (S8): `selu_<project>_gateway`, mounted at `/policy`.
    pub volume: String,
    /// The volume that keeps its log and the virtual addresses, mounted at `/egress`: where anything may leave.
    pub log_volume: Option<String>,
    /// Everything that is set on it. Its image is the local tag `selu.local/<project>/gateway:<protocol>`, which the
    /// runtime makes from its own executable where it is missing: a new build of `selu` changes nothing here, a new
    /// policy protocol does.
    pub spec: ContainerSpec,
    /// As for an instance.
    pub spec_hash: String,
    /// What networks are cut from: no rule ever reaches into it (N8).
    #[schemars(with = "String")]
    pub range: Ipv4Net,
    /// What it may carry, per network. Acknowledged before a container starts (S8).
    pub policy: BTreeMap<String, GatewayRule>,
}

impl PlannedGateway {
    /// Whether it is made to carry what leaves; else it has no privilege, and takes no policy that opens anything.
    pub fn carries(&self) -> bool {
        self.log_volume.is_some()
    }

    /// Its volumes.
    pub fn volumes(&self) -> Vec<PlannedVolume> {
        let volume = |name: &String, purpose: &str| PlannedVolume {
            name: name.clone(),
            purpose: purpose.to_owned(),
        };
        let policy = volume(&self.volume, "policy");
        let log = self.log_volume.as_ref().map(|name| volume(name, "egress"));
        std::iter::once(policy).chain(log).collect()
    }
}

/// What the gateway may do in one container's network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayRule {
    /// Whose network it is.
    pub instance: InstanceKey,
    /// The network's subnet, by which the gateway finds its device.
    #[schemars(with = "String")]
    pub subnet: Ipv4Net,
    /// Where calls go, port 50051.
    pub capability: Ipv4Addr,
    /// The egress rules.
    pub rules: Network,
    /// Entries whose destinations may be private addresses, normalised and sorted (N8). Each is covered by the rules.
    pub private: Vec<String>,
}

impl GatewayRule {
    /// Whether anything may leave this network.
    pub fn is_open(&self) -> bool {
        self.rules.opens()
    }

    /// The network as it is laid out in its subnet.
    pub fn network(&self, name: &str) -> PlannedNetwork {
        PlannedNetwork::new(name.to_owned(), self.subnet)
    }
}

/// Everything that we set on a container, in the engine's units and in no engine's words (W6).
///
/// The engine adapter turns it into a create call, and reads the same type back from an inspect answer: comparing the
/// two finds drift in what we set, and nothing else. Fields are compared by destructuring (house rule 7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerSpec {
    /// `repository@sha256:…` or an image id.
    pub image: String,
    /// Arguments that replace the image's command; `None` keeps it. Only the gateway and our helpers set it.
    pub command: Option<Vec<String>>,
    /// `uid:gid`.
    pub user: String,
    /// Variables that we set; the image's own are not here.
    pub env: BTreeMap<String, String>,
    /// W6.
    pub read_only_root: bool,
    /// Capabilities taken away; `["ALL"]`.
    pub cap_drop: Vec<String>,
    /// Capabilities given; empty for a capability's container.
    pub cap_add: Vec<String>,
    /// W6.
    pub no_new_privileges: bool,
    /// `sha256:…` of the seccomp profile [`SECCOMP_PROFILE`].
    pub seccomp: String,
    /// Bytes. Swap is not extra (R4): memory + swap = memory.
    pub memory_bytes: u64,
    /// Bytes, memory and swap together.
    pub memory_swap_bytes: u64,
    /// Billionths of a core.
    pub nano_cpus: u64,
    /// Processes and threads.
    pub pids: u64,
    /// Open files, soft and hard.
    pub nofile: u64,
    /// Whether `/dev/shm` exists, and its size in bytes.
    pub shm_bytes: Option<u64>,
    /// tmpfs mounts: path → options such as `rw,noexec,nosuid,nodev,size=67108864,mode=1777`.
    pub tmpfs: BTreeMap<String, String>,
    /// Volume mounts: path → volume name; never with the image's content copied in.
    pub volumes: BTreeMap<String, String>,
    /// Kernel settings of the container's network namespace.
    pub sysctls: BTreeMap<String, String>,
    /// Resolvers.
    pub dns: Vec<Ipv4Addr>,
    /// Size of one log file in bytes, and how many are kept.
    pub log_bytes: u64,
    /// How many log files are kept.
    pub log_files: u32,
    /// Whether the engine starts it again after a crash or a reboot. Set only once it was ready (W2).
    pub restart: bool,
    /// Ours (product.md 10), and the image's own labels blanked (W6).
    pub labels: BTreeMap<String, String>,
}

/// The seccomp profile of every container, in the engine's JSON (W6).
pub const SECCOMP_PROFILE: &str = include_str!("plan/seccomp.json");

/// Labels of the objects that we make (product.md 10).
pub mod label {
    /// The project's name.
    pub const PROJECT: &str = "dev.selu.project";
    /// The instance's key; absent on the gateway's objects.
    pub const INSTANCE: &str = "dev.selu.instance";
    /// The versioned spec hash.
    pub const SPEC: &str = "dev.selu.spec";
    /// The generation.
    pub const GENERATION: &str = "dev.selu.generation";
    /// What an object is for: `resident`, `session`, `gateway`, `hold`, `discovery`, `helper`, `workspace`, `cache`,
    /// `policy`, `egress`.
    pub const ROLE: &str = "dev.selu.role";
    /// The rules that a container runs under and that its settings cannot show, as canonical JSON
    /// ([`super::hash::RunRules`]): it lets a plan name old values. Only [`SPEC`] decides.
    pub const RULES: &str = "dev.selu.rules";
    /// On a session's container: the session (X2).
    pub const SESSION: &str = "dev.selu.session";
    /// On a session's container: the user whose values its calls carry; empty for nobody's.
    pub const USER: &str = "dev.selu.user";
    /// The limits that a resident was made with, as canonical JSON ([`super::hash::MadeLimits`]): an engine changes limits
    /// in place and no label, so [`SPEC`] alone could not be judged afterwards.
    pub const LIMITS: &str = "dev.selu.limits";
    /// What all of them begin with.
    pub const PREFIX: &str = "dev.selu.";
    /// On an image that `selu build` made: the hash of its folder. The only one of ours that an image may bear (W6).
    pub const SOURCE: &str = "dev.selu.source";
}
