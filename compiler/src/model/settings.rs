//! selu.toml as written; see [`super::capability`] on optional fields.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{OnChange, Policy};
use crate::diag::levels::Level;
use crate::review::Kind;

/// Settings of a project.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(title = "selu.toml")]
pub struct RawSettings {
    /// The project.
    pub project: Option<RawProject>,
    /// The container engine.
    pub engine: Option<RawEngine>,
    /// `"agent/capability/tool"` → what may be done with it, whatever its author recommends.
    pub policy: Option<BTreeMap<String, Option<Policy>>>,
    /// `"agent/capability"` → how its image is built.
    pub build: Option<BTreeMap<String, Option<RawBuild>>>,
    /// `"agent/capability"` → what its network rules may reach beyond the public internet.
    pub network: Option<BTreeMap<String, Option<RawReach>>>,
    /// `"agent/capability"` → limits in place of the manifest's.
    pub limits: Option<BTreeMap<String, Option<RawLimits>>>,
    /// Discovered tools.
    pub discovery: Option<RawDiscovery>,
    /// What runs.
    pub runtime: Option<RawRuntime>,
    /// A code such as `SELU0111`, or its name, → what its findings are. Errors cannot be lowered.
    pub diagnostics: Option<BTreeMap<String, Option<Level>>>,
    /// Which changes need a person. Those rules count that a change is compared with, never its own.
    pub review: Option<RawReview>,
}

/// Which changes need a person.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawReview {
    /// Kinds of changes that need a person unless they narrow. Without it everything that widens needs one.
    pub person: Option<Vec<Option<Kind>>>,
    /// A capability that comes to have more tools that may be called than this needs a person.
    pub max_tools: Option<u64>,
    /// Whether other content of an image needs a person where the image does not say its source.
    #[schemars(extend("default" = false))]
    pub image_source: Option<bool>,
    /// Changes that a person has accepted beforehand.
    pub accepted: Option<Vec<Option<RawAccepted>>>,
}

/// A change that a person has accepted: this value at this place, and no other. All but the reason is as
/// `selu diff --format json` has it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawAccepted {
    /// `agent/capability`; absent for the project as a whole.
    pub instance: Option<String>,
    /// The tool, where the change is one of a tool.
    pub tool: Option<String>,
    /// Where, such as `network.hosts`; empty for an instance or a tool as a whole.
    pub path: Option<String>,
    /// What it becomes; absent where nothing is there then.
    pub new: Option<String>,
    /// Why that is right.
    pub reason: Option<String>,
}

/// The project.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawProject {
    /// Owns every object on the engine: lower-case letters, digits and hyphens.
    #[schemars(regex(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    pub name: Option<String>,
}

/// The container engine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawEngine {
    /// Its address, such as `unix:///run/docker.sock`.
    pub host: Option<String>,
    /// The private IPv4 range that the networks of containers are cut from, such as `10.213.0.0/16`.
    pub subnets: Option<String>,
    /// IPv4 addresses of the resolvers that the gateway asks, instead of the engine's own.
    pub resolvers: Option<Vec<Option<String>>>,
}

/// What an instance's network rules may reach beyond the public internet.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawReach {
    /// Entries as in the manifest's `network.hosts`, such as `db.corp.example:5432`: they may lead to private addresses.
    pub private: Option<Vec<Option<String>>>,
}

/// How an image is built.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawBuild {
    /// A command that runs first, with its words.
    pub prepare: Option<Vec<Option<String>>>,
}

/// Limits of one instance. What is not written here is as the manifest has it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawLimits {
    /// Memory in MiB; swap is not extra.
    #[schemars(range(min = 6, max = 16_777_216))]
    pub max_memory_mb: Option<u64>,
    /// Cores, such as 0.5.
    #[schemars(range(min = 0.01, max = 10_000.0))]
    pub max_cpu_fraction: Option<f64>,
    /// CPU time that one tool call may use, in seconds.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub max_cpu_seconds: Option<u64>,
    /// Processes and threads.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub pids_limit: Option<u64>,
}

/// What runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawRuntime {
    /// Whether the container that `apply` keeps is stopped, too, when nobody has called it for as long as the agent or the
    /// manifest says. The next call starts it.
    #[schemars(extend("default" = false))]
    pub idle_stop: Option<bool>,
}

/// Discovered tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawDiscovery {
    /// `update`: added and changed tools take effect. `hold`: they wait until a person accepts them.
    #[schemars(extend("default" = "update"))]
    pub on_change: Option<OnChange>,
}
