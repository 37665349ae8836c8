//! MCP servers as capabilities: the bridge, and what is written for it.

use std::net::SocketAddr;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Args, Subcommand, ValueEnum};
use selu_runtime::bridge::DISCOVERY_TOOL;

use super::duration;

#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    /// Policy to recommend for a tool, whatever its annotations say; may be given several times
    #[arg(long = "policy", value_name = "TOOL=POLICY")]
    pub(crate) policies: Vec<String>,
    /// File of TOOL=POLICY lines
    #[arg(long, value_name = "FILE")]
    pub(crate) policy_file: Option<Utf8PathBuf>,
    /// Credential that the server needs to start and has no value for discovery; may be given several times
    #[arg(long = "placeholder", value_name = "NAME")]
    pub(crate) placeholders: Vec<String>,
    /// The tool that answers with the list, as in the manifest's discovery_tool_name
    #[arg(long, value_name = "NAME", default_value = DISCOVERY_TOOL)]
    pub(crate) discovery_tool: String,
    /// How long an MCP server without calls is kept, such as 90s or 10m
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub(crate) idle: Duration,
    /// Print the server's tools as a capability would, and end
    #[arg(long)]
    pub(crate) list: bool,
    /// Where to serve gRPC
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:50051")]
    pub(crate) listen: SocketAddr,
    /// URL of an MCP server that runs elsewhere and speaks Streamable HTTP
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// Header of every request to it, such as 'Authorization: Bearer ${API_TOKEN}'; may be given several times
    #[arg(
        long = "header",
        value_name = "NAME: VALUE",
        conflicts_with = "command"
    )]
    pub(crate) headers: Vec<String>,
    /// Program and arguments of the MCP server, which speaks over standard streams
    #[arg(last = true, required_unless_present = "url", value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    #[command(subcommand)]
    pub(crate) kind: NewKind,
}

/// What is new.
#[derive(Debug, Subcommand)]
pub(crate) enum NewKind {
    /// An agent with one capability: an MCP server behind `selu mcp-bridge`
    Mcp(NewMcpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NewMcpArgs {
    /// Id of the agent and of its capability
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) source: NewMcpSource,
    /// Header for the server at --url, such as 'Authorization: Bearer ${API_TOKEN}'; may be given several times
    #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with_all = ["npm", "pypi", "image"])]
    pub(crate) headers: Vec<String>,
    /// Credential that the server takes from its environment; may be given several times
    #[arg(long = "credential", value_name = "NAME", conflicts_with = "url")]
    pub(crate) credentials: Vec<String>,
    /// Host that the server must reach, such as api.example.com:443; may be given several times
    #[arg(long = "allow", value_name = "HOST")]
    pub(crate) hosts: Vec<String>,
    /// The project's directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: Utf8PathBuf,
    /// The server's program and arguments, where they are not the package's own
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Where the server comes from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct NewMcpSource {
    /// A package of npm, with its version
    #[arg(long, value_name = "PACKAGE@VERSION")]
    pub(crate) npm: Option<String>,
    /// A package of PyPI, with its version
    #[arg(long, value_name = "PACKAGE==VERSION")]
    pub(crate) pypi: Option<String>,
    /// An image that has the server; COMMAND says how to run it
    #[arg(long, value_name = "IMAGE", requires = "command")]
    pub(crate) image: Option<String>,
    /// The URL of a server that runs elsewhere and speaks Streamable HTTP
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What shape the files have
    #[arg(value_enum, value_name = "SHAPE")]
    pub(crate) shape: Shape,
    /// Files to read
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<Utf8PathBuf>,
    /// The project's directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: Utf8PathBuf,
}

/// What `selu import` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// The `mcpServers` of a desktop client's JSON.
    McpJson,
    /// A server.yaml of the Docker MCP registry.
    DockerMcp,
    /// A spec.yaml of the ToolHive registry, or its registry.json.
    Toolhive,
}
