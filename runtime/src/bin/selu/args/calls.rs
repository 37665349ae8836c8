//! Calls of tools, and what they need: sessions, policies, credentials.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand, ValueEnum};
use selu_runtime::invoke::DEFAULT_DEADLINE;

#[derive(Debug, Args)]
pub(crate) struct InvokeArgs {
    /// AGENT/CAPABILITY, or CAPABILITY where only one agent has it
    #[arg(value_name = "AGENT/CAP")]
    pub(crate) capability: String,
    /// The tool's name, as `selu tools` lists it after the two underscores
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// One argument each, typed by the tool's schema
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args")]
    pub(crate) pairs: Vec<String>,
    /// All arguments as a JSON object, from a file, or from standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    pub(crate) args: Option<String>,
    /// The user whose credentials the call carries
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// The session, which has a container and a workspace of its own
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// A thread of the conversation, which the capability is told
    #[arg(long, value_name = "THREAD", default_value = "")]
    pub(crate) thread: String,
    /// How many seconds the call may take
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_DEADLINE.as_secs(), value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) deadline: u64,
    /// Show the result piece by piece, as the tool makes it
    #[arg(long, conflicts_with = "download")]
    pub(crate) stream: bool,
    /// Hand a file over first; the argument KEY gets the capability's id for it
    #[arg(long, value_name = "KEY=FILE")]
    pub(crate) upload: Vec<String>,
    /// Fetch the file whose id stands at this JSON pointer of the result
    #[arg(long, value_name = "POINTER=FILE")]
    pub(crate) download: Vec<String>,
    /// Agree beforehand to this tool's call, where its policy is `ask`
    #[arg(long, value_name = "AGENT/CAP/TOOL")]
    pub(crate) yes_to: Vec<String>,
    /// Project, agent or capability directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: Utf8PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) action: SessionsAction,
}

/// What is done with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsAction {
    /// Which are open, and for how long nobody has called them
    List {
        /// Project, agent or capability directory
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: Utf8PathBuf,
    },
    /// Remove a session's container, network and workspace
    Close {
        /// AGENT/CAPABILITY, or CAPABILITY where only one agent has it
        #[arg(value_name = "AGENT/CAP", conflicts_with = "all")]
        capability: Option<String>,
        /// The user that it is of
        #[arg(long, value_name = "USER", conflicts_with = "all")]
        user: Option<String>,
        /// Its name
        #[arg(long, value_name = "SESSION", conflicts_with = "all")]
        session: Option<String>,
        /// All of the project's
        #[arg(long)]
        all: bool,
        /// Project, agent or capability directory
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: Utf8PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) action: PolicyAction,
    /// The project's directory
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) dir: Utf8PathBuf,
}

/// What is done with policies.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyAction {
    /// Every tool's policy, with what is still to be judged first
    List,
    /// The policy of a tool, and every source of it in the order in which they count
    Explain {
        /// The tool
        #[arg(value_name = "AGENT/CAP/TOOL")]
        tool: String,
    },
    /// Write a policy into selu.toml, where it counts before everything else
    Set {
        /// The tool
        #[arg(value_name = "AGENT/CAP/TOOL")]
        tool: String,
        /// What may be done with it
        #[arg(value_enum, value_name = "POLICY")]
        policy: PolicyWord,
    },
    /// Remove a policy from selu.toml
    Rm {
        /// The tool
        #[arg(value_name = "AGENT/CAP/TOOL")]
        tool: String,
    },
    /// Remove the policies of tools that are gone from selu.toml
    Prune,
}

/// What may be done with a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyWord {
    /// It is called freely.
    Allow,
    /// It is called after a person agrees.
    Ask,
    /// It is never called.
    Block,
}

#[derive(Debug, Args)]
pub(crate) struct CredentialsArgs {
    #[command(subcommand)]
    pub(crate) action: CredentialsAction,
    /// Project, agent or capability directory
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) dir: Utf8PathBuf,
}

/// What is done with stored values.
#[derive(Debug, Subcommand)]
pub(crate) enum CredentialsAction {
    /// Store a value: asked for without showing it, or read from standard input or a file; never an argument
    Set {
        /// AGENT/CAPABILITY, or CAPABILITY where only one agent has it
        #[arg(value_name = "AGENT/CAP")]
        capability: String,
        /// The credential, as the manifest declares it
        #[arg(value_name = "NAME")]
        name: String,
        /// Whose value it is, where there is one per user
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// The file that holds the value; one line end at its very end is not part of it
        #[arg(long, value_name = "FILE")]
        file: Option<Utf8PathBuf>,
    },
    /// Which values there are, without showing them
    List,
    /// Remove a value
    Rm {
        /// AGENT/CAPABILITY
        #[arg(value_name = "AGENT/CAP")]
        capability: String,
        /// The credential
        #[arg(value_name = "NAME")]
        name: String,
        /// Whose value it is
        #[arg(long, value_name = "USER")]
        user: Option<String>,
    },
    /// Store every value of an env file
    Import {
        /// Of SELU_CRED__AGENT__CAPABILITY__NAME=value lines
        #[arg(value_name = "FILE")]
        file: Utf8PathBuf,
    },
    /// Whether every required credential has a value, from wherever, for each user of whom any value is stored
    Check {
        /// For this user only
        #[arg(long, value_name = "USER")]
        user: Option<String>,
    },
    /// Let a capability have its stored values although its image, network rules or credential names have changed
    Grant {
        /// AGENT/CAPABILITY, or CAPABILITY where only one agent has it
        #[arg(value_name = "AGENT/CAP")]
        capability: String,
        /// Do not ask
        #[arg(long, short = 'y')]
        yes: bool,
    },
    /// Encrypt the store with a new key
    Rotate,
}
