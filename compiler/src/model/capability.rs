//! manifest.yaml as written. Every field is optional here, required ones too: what is missing or wrong is already a
//! finding when these types are filled (`check/shape.rs`), and the rest of the file is checked all the same.
//!
//! The doc comments become the descriptions that editors show.

use schemars::JsonSchema;
use serde::Deserialize;

use super::tool::RawTool;
use super::{Class, CredentialScope, Filesystem, NetworkMode, SharingMode};

/// A capability: a container that offers tools to an agent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(title = "manifest.yaml")]
pub struct RawCapability {
    /// Unique within its agent: lower-case letters, digits and hyphens.
    #[schemars(required, regex(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    pub id: Option<String>,
    /// `tool` is stateless, `environment` is stateful and may own a workspace.
    #[schemars(extend("default" = "tool"))]
    pub class: Option<Class>,
    /// The container image that implements the capability, best with a tag or digest.
    #[schemars(required, length(min = 1))]
    pub image: Option<String>,
    /// `manifest`: the tools are listed below. `dynamic`: the container lists them.
    #[schemars(extend("default" = "manifest"))]
    pub tool_source: Option<RawToolSource>,
    /// The tool that lists the others, for `tool_source: dynamic`.
    #[schemars(extend("default" = "list_tools"))]
    pub discovery_tool_name: Option<String>,
    /// Static tools, only with `tool_source: manifest`.
    pub tools: Option<Vec<Option<RawTool>>>,
    /// What the container may reach. Nothing unless it is listed.
    pub network: Option<RawNetwork>,
    /// What the container may write: nothing, `/tmp`, or a volume at `/workspace`.
    #[schemars(extend("default" = "none"))]
    pub filesystem: Option<Filesystem>,
    /// Secrets that the capability needs.
    pub credentials: Option<Vec<Option<RawCredential>>>,
    /// Limits of the container.
    pub resources: Option<RawResources>,
    /// A volume at `/cache`, only for `class: environment`.
    pub cache: Option<RawCache>,
    /// Whether sessions share one container.
    pub sharing: Option<RawSharing>,
}

/// Where tools come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RawToolSource {
    /// Written in the manifest.
    Manifest,
    /// Listed live by the container.
    Dynamic,
}

/// What a container may reach.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawNetwork {
    /// `none`, `allowlist` (the listed hosts) or `any` (any public name).
    #[schemars(extend("default" = "none"))]
    pub mode: Option<NetworkMode>,
    /// `host:port`, `host`, `*.host:port` or `*.host`, for `mode: allowlist`.
    pub hosts: Option<Vec<Option<String>>>,
}

/// A secret that the capability needs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawCredential {
    /// Named like an environment variable, such as `API_KEY`.
    #[schemars(required, regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub name: Option<String>,
    /// One value for all (`system`), or one per user (`user`).
    #[schemars(required)]
    pub scope: Option<CredentialScope>,
    /// Only `secret`.
    #[schemars(extend("default" = "secret"))]
    pub credential_type: Option<RawCredentialType>,
    /// Whether nothing runs without it.
    #[schemars(extend("default" = true))]
    pub required: Option<bool>,
    /// Shown to the person who enters it.
    #[schemars(extend("default" = ""))]
    pub description: Option<String>,
}

/// What kind of secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RawCredentialType {
    /// A text that is never shown.
    Secret,
}

/// Limits of a container. Zero never means unlimited.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawResources {
    /// Memory in MiB; swap is not extra.
    #[schemars(range(min = 6, max = 16_777_216), extend("default" = 128))]
    pub max_memory_mb: Option<u64>,
    /// Cores, such as 0.5.
    #[schemars(range(min = 0.01, max = 10_000.0), extend("default" = 0.5))]
    pub max_cpu_fraction: Option<f64>,
    /// CPU time that one tool call may use, in seconds.
    #[schemars(range(min = 1, max = 31_536_000), extend("default" = 30))]
    pub max_cpu_seconds: Option<u64>,
    /// Processes and threads.
    #[schemars(range(min = 1, max = 4_194_304), extend("default" = 64))]
    pub pids_limit: Option<u64>,
}

/// A volume at `/cache`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawCache {
    /// Whether there is one.
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
}

/// Whether sessions share one container.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RawSharing {
    /// `exclusive`: one container per session. `shared`: one for all, only for `class: tool` without a workspace.
    #[schemars(extend("default" = "exclusive"))]
    pub mode: Option<SharingMode>,
    /// Calls at once, for `mode: shared`.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 1))]
    pub max_concurrent: Option<u32>,
    /// Seconds without a call after which the container is stopped.
    #[schemars(range(min = 1, max = 31_536_000), extend("default" = 300))]
    pub idle_timeout_seconds: Option<u64>,
}
