//! The checked model: what a project means once nothing about it is in doubt.
//!
//! Raw types, as written and with places, live in the submodules; [`crate::check`] turns them into these.

pub mod agent;
pub mod capability;
mod json;
pub mod locale;
pub mod schemas;
pub mod settings;
pub mod tool;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use camino::Utf8PathBuf;
pub use json::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diag::levels::Levels;
use crate::review::rules::Rules;
use crate::yaml::node::Span;

/// `agent/capability`, the key of an instance everywhere (L3). A capability compiled alone lives under the nameless
/// agent, written `_`, which no id can be.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct InstanceKey(String);

impl InstanceKey {
    /// The agent of a capability that is compiled alone (L1).
    pub const NAMELESS: &'static str = "_";

    /// Joins two ids that are already known to be valid.
    pub fn new(agent: &str, capability: &str) -> Self {
        Self(format!("{agent}/{capability}"))
    }

    /// Reads `agent/capability` as it stands in locks, labels and arguments; `None` for any other form.
    pub fn parse(text: &str) -> Option<Self> {
        let (agent, capability) = text.split_once('/')?;
        let agent_ok = agent == Self::NAMELESS || is_id(agent);
        (agent_ok && is_id(capability)).then(|| Self(text.to_owned()))
    }

    /// Reads `agent/capability/tool`: the instance, and whatever follows its slash as the tool's name; `None` for any
    /// other form.
    pub fn parse_tool(text: &str) -> Option<(Self, &str)> {
        let (at, _) = text.match_indices('/').nth(1)?;
        let tool = &text[at + 1..];
        Some((Self::parse(&text[..at])?, tool)).filter(|_| !tool.is_empty())
    }

    /// The whole key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the slash.
    pub fn agent(&self) -> &str {
        self.0.split_once('/').map_or("", |(agent, _)| agent)
    }

    /// The part after the slash.
    pub fn capability(&self) -> &str {
        self.0
            .split_once('/')
            .map_or("", |(_, capability)| capability)
    }
}

impl fmt::Display for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether `text` is an id: `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$` (section 2).
pub fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            bytes.len() <= 63
                && plain(first)
                && plain(last)
                && bytes.iter().all(|b| plain(b) || *b == b'-')
        }
        _ => false,
    }
}

/// Where something is written: a file below the project's root, and a line and column from 1 (column in characters).
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Relative to the root, with forward slashes.
    #[schemars(with = "String")]
    pub file: Utf8PathBuf,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// A whole project, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// The name that owns objects on an engine: from selu.toml, else the lone agent's or capability's id; `None` for a
    /// project directory without a name, which cannot be applied unless one is given.
    pub name: Option<String>,
    /// selu.toml, checked.
    pub settings: Settings,
    /// By id; the nameless agent `_` for a lone capability.
    pub agents: BTreeMap<String, Agent>,
}

impl Project {
    /// Every instance in key order.
    pub fn instances(&self) -> impl Iterator<Item = (InstanceKey, &Agent, &Capability)> {
        self.agents.values().flat_map(|agent| {
            agent.capabilities.values().map(move |capability| {
                (
                    InstanceKey::new(&agent.id, &capability.id),
                    agent,
                    &**capability,
                )
            })
        })
    }
}

/// selu.toml with every default filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// `[policy]`: instance and tool → policy, and where it is written.
    pub policies: BTreeMap<(InstanceKey, String), (Policy, Origin)>,
    /// `[engine] host`: an engine address such as `unix:///run/docker.sock`.
    pub engine_host: Option<String>,
    /// `[engine] subnets`: the range that container networks are cut from.
    pub subnets: Option<ipnet::Ipv4Net>,
    /// `[engine] resolvers`: what the gateway asks for names; the engine's own where it is empty.
    pub resolvers: Vec<std::net::Ipv4Addr>,
    /// `[network."agent/capability"] private`: entries whose destinations may be private addresses (N8), normalised and
    /// sorted; each is covered by the instance's rules.
    pub private: BTreeMap<InstanceKey, Vec<String>>,
    /// `[build."agent/capability"] prepare`: a command that `selu build` runs first, with its words.
    pub prepare: BTreeMap<InstanceKey, Vec<String>>,
    /// `[limits."agent/capability"]`: already in [`Capability::limits`], kept to say where a limit comes from.
    pub limits: BTreeMap<InstanceKey, LimitOverrides>,
    /// `[discovery] on_change`.
    pub on_change: OnChange,
    /// `[runtime] idle_stop` (X4).
    pub idle_stop: bool,
    /// `[diagnostics]`.
    pub levels: Levels,
    /// `[review]`.
    pub review: Rules,
}

/// What happens to a discovered tool that was added or changed (D3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnChange {
    /// It takes effect, as D3 says.
    #[default]
    Update,
    /// It stays out of use until a person accepts it.
    Hold,
}

/// One agent (section 3).
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Unique in the project; `_` for the nameless one.
    pub id: String,
    /// For people.
    pub name: String,
    /// Where `id` is written.
    pub origin: Origin,
    /// As written, before A4.
    pub routing: Routing,
    /// Whether it names a model of its own (A4).
    pub own_model: bool,
    /// Minutes without a call after which a session's container goes (X4).
    pub idle_timeout_minutes: u64,
    /// Everything else that agent.yaml says, as written and as JSON: what installing it asks and sends, what it does by
    /// itself, which model answers. Only a review reads it.
    pub definition: Box<str>,
    /// Its system prompts by file name, such as `agent.md`, `agent.de.md`.
    pub prompts: BTreeMap<String, Prompt>,
    /// Own and named shared ones, by id. Several agents may name the same, and `check --watch` keeps them.
    pub capabilities: BTreeMap<String, Arc<Capability>>,
}

/// How an agent's tools reach the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Routing {
    /// Resolved by A4.
    Auto,
    /// Tools are offered directly.
    Inline,
    /// The agent is a tool of its own.
    Delegate,
}

/// A prompt file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Relative to the root.
    pub file: Utf8PathBuf,
    /// `sha256:` and hex, of the text without BOM and with LF line ends.
    pub hash: String,
    /// Length in characters (A4).
    pub characters: usize,
}

/// One capability (section 2).
#[derive(Debug, Clone, PartialEq)]
pub struct Capability {
    /// Unique within its agent.
    pub id: String,
    /// Where `id` is written; its file is the manifest.
    pub origin: Origin,
    /// Where `image` is, in the same file.
    pub image_at: Span,
    /// The same of `resources.max_cpu_fraction`, or of what would hold it.
    pub cpus_at: Span,
    /// tool or environment.
    pub class: Class,
    /// The image as written, checked.
    pub image: ImageReference,
    /// Static tools or a promise to list them live.
    pub tools: ToolSource,
    /// Egress rules.
    pub network: Network,
    /// What is writable.
    pub filesystem: Filesystem,
    /// Whether a volume is kept at `/cache`.
    pub cache: bool,
    /// Exclusive or shared.
    pub sharing: Sharing,
    /// Required secrets, sorted by name.
    pub credentials: Vec<Credential>,
    /// Limits with every default filled in, and those of selu.toml in place of the manifest's.
    pub limits: Limits,
    /// `prompt.md` and its translations by file name.
    pub prompts: BTreeMap<String, Prompt>,
    /// What builds the image, where the folder has it.
    pub container: Option<ContainerFolder>,
}

/// `class`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Stateless.
    Tool,
    /// Stateful, may own a workspace.
    Environment,
}

/// An image reference in OCI's grammar (I1), normalised as Docker does: `docker.io/library/…` and `:latest` are filled
/// in for `repository` and `tag`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageReference {
    /// As the manifest has it.
    pub written: String,
    /// Registry host and optional port, such as `docker.io`.
    pub registry: String,
    /// Path in that registry, such as `library/redis`.
    pub repository: String,
    /// The tag; `latest` where neither tag nor digest is written (I2); `None` with a digest and no tag.
    pub tag: Option<String>,
    /// `sha256:` and 64 hex digits, where written.
    pub digest: Option<String>,
}

impl ImageReference {
    /// `docker.io/library/redis@sha256:…`: what cannot move, as an engine is told.
    pub fn at(&self, digest: &str) -> String {
        format!("{}/{}@{digest}", self.registry, self.repository)
    }

    /// What of it a registry is asked for: the digest where there is one, else the tag.
    pub fn which(&self) -> &str {
        let tag = self.tag.as_deref().unwrap_or("latest");
        self.digest.as_deref().unwrap_or(tag)
    }

    /// In full: `docker.io/library/redis@sha256:…`, or `docker.io/library/redis:7`.
    pub fn in_full(&self) -> String {
        match &self.digest {
            Some(digest) => self.at(digest),
            None => format!("{}/{}:{}", self.registry, self.repository, self.which()),
        }
    }
}

/// Where the tools come from.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolSource {
    /// Written in the manifest; sorted by name.
    Static(Vec<Tool>),
    /// Listed live by the named tool.
    Dynamic {
        /// `discovery_tool_name`.
        discovery_tool: String,
    },
}

/// A tool whose definition is known to be valid (T1–T4, D1).
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Sent as `InvokeRequest.tool_name`.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// A valid JSON Schema that accepts an object (T3).
    pub input_schema: Json,
    /// The author's effective recommendation (T1 for static tools; as reported for discovered ones, where `None` means
    /// none was given).
    pub recommended: Option<Policy>,
    /// The tool loop ends after a success.
    pub terminal_on_success: bool,
    /// Where it is written; `None` for a discovered tool.
    pub origin: Option<Origin>,
}

/// What may be done with a tool.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Never called.
    Block,
    /// Called after a person agrees.
    Ask,
    /// Called freely.
    Allow,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Block => "block",
            Self::Ask => "ask",
            Self::Allow => "allow",
        })
    }
}

/// Egress rules (N1–N10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// N1.
    pub mode: NetworkMode,
    /// Normalised, de-duplicated, sorted (N6): `host`, `host:port`, `*.host`, `*.host:port`, in lower case.
    /// Empty unless the mode is `allowlist`.
    pub hosts: Vec<String>,
}

impl Network {
    /// Whether anything may leave.
    pub fn opens(&self) -> bool {
        match self.mode {
            NetworkMode::None => false,
            NetworkMode::Allowlist => !self.hosts.is_empty(),
            NetworkMode::Any => true,
        }
    }
}

/// N1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// Nothing is reachable.
    None,
    /// The listed hosts are.
    Allowlist,
    /// Any public name is, on any TCP port (N9).
    Any,
}

/// F1–F3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Filesystem {
    /// Nothing is writable.
    None,
    /// `/tmp` is a tmpfs.
    Temp,
    /// A volume at `/workspace`.
    Workspace,
}

/// `sharing` with its defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sharing {
    /// exclusive or shared.
    pub mode: SharingMode,
    /// Calls at once.
    pub max_concurrent: u32,
    /// In seconds.
    pub idle_timeout_seconds: u64,
}

/// `sharing.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SharingMode {
    /// One container per session.
    Exclusive,
    /// One container for all (X1).
    Shared,
}

/// A required secret; never its value (C2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// C1.
    pub name: String,
    /// One value for all, or one per user.
    pub scope: CredentialScope,
    /// Whether nothing runs without it.
    pub required: bool,
    /// Shown to the person who enters it.
    pub description: String,
}

/// `credentials[*].scope`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum CredentialScope {
    /// One value for all.
    System,
    /// One value per user.
    User,
}

/// Limits in the units of the format, CPU in integers (R5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// In MiB; swap is not extra (R4).
    pub memory_mb: u64,
    /// Billionths of a core: 0.57 cores is 570,000,000.
    pub nano_cpus: u64,
    /// CPU time that one call may use, in seconds.
    pub cpu_seconds: u64,
    /// Processes and threads.
    pub pids: u64,
}

/// Limits of one instance that selu.toml has in place of the manifest's, each with where it is written. Units as in
/// [`Limits`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitOverrides {
    /// `max_memory_mb`.
    pub memory_mb: Option<(u64, Origin)>,
    /// `max_cpu_fraction`.
    pub nano_cpus: Option<(u64, Origin)>,
    /// `max_cpu_seconds`.
    pub cpu_seconds: Option<(u64, Origin)>,
    /// `pids_limit`.
    pub pids: Option<(u64, Origin)>,
}

impl LimitOverrides {
    /// Puts them into a manifest's limits.
    pub fn apply(&self, limits: &mut Limits) {
        let Limits {
            memory_mb,
            nano_cpus,
            cpu_seconds,
            pids,
        } = limits;
        for (own, other) in [
            (memory_mb, &self.memory_mb),
            (nano_cpus, &self.nano_cpus),
            (cpu_seconds, &self.cpu_seconds),
            (pids, &self.pids),
        ] {
            if let Some((limit, _)) = other {
                *own = *limit;
            }
        }
    }

    /// Where each is written, by the name of its field in [`Limits`].
    pub fn origins(&self) -> BTreeMap<String, Origin> {
        let Self {
            memory_mb,
            nano_cpus,
            cpu_seconds,
            pids,
        } = self;
        [
            ("memory_mb", memory_mb),
            ("nano_cpus", nano_cpus),
            ("cpu_seconds", cpu_seconds),
            ("pids", pids),
        ]
        .into_iter()
        .filter_map(|(name, limit)| Some((name.to_owned(), limit.as_ref()?.1.clone())))
        .collect()
    }
}

/// The folder that builds an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerFolder {
    /// Relative to the root: `…/container`, or the capability's own folder when the Dockerfile is beside the manifest.
    pub path: Utf8PathBuf,
    /// `sha256:` and hex over its files (product.md 19).
    pub hash: String,
}
