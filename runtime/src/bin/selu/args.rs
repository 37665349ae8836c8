//! The command line.

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand, ValueEnum};
use selu_compiler::model::InstanceKey;
use selu_runtime::apply::DEFAULT_TIMEOUT;
use selu_runtime::invoke::DEFAULT_DEADLINE;

use crate::cmd::egress::{Since, parse_instance};

/// Compiles a directory of agents into a plan, applies it to a container engine, and locks what it found.
#[derive(Debug, Parser)]
#[command(name = "selu", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Container engine, such as unix:///run/docker.sock (default: as Docker's own client finds it)
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) host: Option<String>,
    /// Project name that owns objects on the engine, instead of the one in selu.toml
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// What standard output holds
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// File of SELU_CRED__AGENT__CAPABILITY__NAME=value lines
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) env_file: Option<Utf8PathBuf>,
    /// Say more, such as what a container answers while it is not ready (SELU_LOG=trace for everything)
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

/// Form of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: JSON from the first byte to the last.
    Json,
    /// SARIF 2.1.0, for code scanning (`check` only).
    Sarif,
    /// Annotations of GitHub's workflows (`check` only).
    Github,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile and report; needs no engine
    Check(CheckArgs),
    /// Tell what a finding's code means, and what to do about it
    Explain(ExplainArgs),
    /// Show what apply would do; changes nothing
    Plan(PlanArgs),
    /// What a change means for the rights of tools: revisions, directories, locks and plans compared
    Diff(DiffArgs),
    /// Show a plan that was saved or printed, stale or foreign
    Show(ShowArgs),
    /// Make the engine as planned, discover live tools, write selu.lock
    Apply(ApplyArgs),
    /// Pin images and discover live tools into selu.lock, leaving nothing running
    Lock(LockArgs),
    /// Ask what runs for its tools again and merge them into selu.lock
    Sync(SyncArgs),
    /// Show what a container wrote
    Logs(LogsArgs),
    /// Whether everything runs as planned
    Status(Directory),
    /// What containers reached, and what they were refused
    Egress(EgressArgs),
    /// Remove what this project owns on the engine
    Destroy(DestroyArgs),
    /// What a model would be offered
    Tools(Directory),
    /// Call a tool, within its policy, schema, credentials and limits
    Invoke(InvokeArgs),
    /// Containers of sessions and users
    Sessions(SessionsArgs),
    /// Values of credentials: the encrypted store, and what they are granted to
    Credentials(CredentialsArgs),
    /// Build local images from their container folders
    Build(BuildArgs),
    /// Print the JSON schema of a file format, for editors
    Schema(SchemaArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Directory {
    /// Project, agent or capability directory
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) dir: Utf8PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) directory: Directory,
    /// Take findings of this kind for errors
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) deny: Option<Deny>,
    /// Check again whenever a file changes, until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
}

/// What `check --deny` takes for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deny {
    /// All warnings.
    Warnings,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// From which state to which: revisions (also FROM..TO), directories, selu.lock files, plans; without any from HEAD to
    /// the directory, with one from that to the directory
    #[arg(value_name = "STATE", num_args = 0..=2)]
    pub(crate) states: Vec<String>,
    /// Compare what is staged instead of the directory
    #[arg(long)]
    pub(crate) staged: bool,
    /// The project's directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: Utf8PathBuf,
    /// Print Markdown for a comment at a pull request
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Exit with 2 if there is a difference of this kind
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) fail_on: Option<FailOn>,
}

/// What `diff --fail-on` stops at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// More is possible than before, or it can't be told.
    Widening,
    /// Anything at all differs.
    Any,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Its id or its name, such as SELU0305 or misspelt-field
    #[arg(value_name = "CODE")]
    pub(crate) code: String,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) directory: Directory,
    /// Ask neither engine nor registry; what only they know stays open
    #[arg(long)]
    pub(crate) offline: bool,
    /// Exit with 2 if there is something to do
    #[arg(long, conflicts_with = "offline")]
    pub(crate) detailed_exitcode: bool,
    /// Write the plan to a file, for `selu apply --plan FILE`
    #[arg(long, value_name = "FILE", conflicts_with = "offline")]
    pub(crate) out: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
}

/// Which instances are meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct Chosen {
    /// Only this instance, or all of this agent's, with what they depend on; may be given several times
    #[arg(long = "target", value_name = "AGENT[/CAPABILITY]")]
    pub(crate) targets: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Written by `selu plan --out` or printed by `selu plan --format json`
    #[arg(value_name = "FILE")]
    pub(crate) file: Utf8PathBuf,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Consent {
    /// Do not ask
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// How many seconds to wait while another selu works on this project
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(crate) lock_timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) directory: Directory,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// How many seconds a container may take until it answers that it is ready
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) ready_timeout: u64,
    /// Apply a plan that `selu plan --out FILE` wrote; of DIR only selu.lock is used
    #[arg(long, value_name = "FILE", conflicts_with_all = ["locked", "frozen", "targets"])]
    pub(crate) plan: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    #[command(flatten)]
    pub(crate) strict: Strict,
}

/// How far the lock binds.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Strict {
    /// Refuse unless selu.lock says exactly this; never write it
    #[arg(long)]
    pub(crate) locked: bool,
    /// As --locked, and ask no registry and pull nothing
    #[arg(long)]
    pub(crate) frozen: bool,
    /// With --locked or --frozen: accept images that exist on this engine only
    #[arg(long)]
    pub(crate) allow_local: bool,
}

impl Strict {
    /// Whether the lock is compared and never written.
    pub(crate) fn read_only(self) -> bool {
        self.locked || self.frozen
    }
}

#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    pub(crate) directory: Directory,
    /// Only say whether selu.lock fits the directory (exit 2 if not); needs no engine
    #[arg(long)]
    pub(crate) check: bool,
    /// With --check: also pin and discover, and compare; needs the credentials that were present when it was locked
    #[arg(long, requires = "check")]
    pub(crate) live: bool,
    /// Follow the tag of this agent, capability or AGENT/CAPABILITY (default: of all) to the image that it means now
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with = "check")]
    pub(crate) upgrade: Option<Option<String>>,
    /// Say what would change in selu.lock, and leave it as it is
    #[arg(long, conflicts_with = "check")]
    pub(crate) dry_run: bool,
    /// Only bring selu.lock to the newest version of its format; needs no engine
    #[arg(long, conflicts_with_all = ["check", "upgrade"])]
    pub(crate) migrate: bool,
    /// How many seconds a container may take until it answers that it is ready
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) ready_timeout: u64,
    /// How many seconds to wait while another selu works on this project
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(crate) lock_timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    #[command(flatten)]
    pub(crate) directory: Directory,
    /// Go on, with a pause such as 90s, 15m or 1h between two rounds
    #[arg(long, value_name = "DURATION", value_parser = pause)]
    pub(crate) every: Option<Duration>,
    /// File that says how it went, for Prometheus' node_exporter to collect
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<Utf8PathBuf>,
    /// How many seconds to wait while another selu works on this project
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(crate) lock_timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// AGENT/CAPABILITY, CAPABILITY, or `gateway`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) directory: Directory,
    /// Also what comes, until the container ends or you interrupt
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Not what is older than this, such as 90s, 15m or 1h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Option<Duration>,
    /// The last lines only
    #[arg(long, value_name = "LINES")]
    pub(crate) tail: Option<u32>,
}

/// `90s`, `15m`, `1h`, `2d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let help = || "a whole number with s, m, h or d, such as 90s or 15m".to_owned();
    let unit = text.chars().last().ok_or_else(help)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(help()),
    };
    let number = text.strip_suffix(unit).unwrap_or_default();
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(help());
    }
    let number: u64 = number.parse().map_err(|_| help())?;
    let seconds = number.checked_mul(seconds).ok_or_else(help)?;
    Ok(Duration::from_secs(seconds))
}

/// A pause that leaves an engine and a registry in peace, and comes to an end.
fn pause(text: &str) -> Result<Duration, String> {
    let pause = duration(text)?;
    let (shortest, longest) = (Duration::from_secs(10), Duration::from_secs(30 * 86_400));
    if (shortest..=longest).contains(&pause) {
        Ok(pause)
    } else {
        Err("from 10s to 30d".to_owned())
    }
}

#[derive(Debug, Args)]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    pub(crate) directory: Directory,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Remove volumes and the data in them, too
    #[arg(long)]
    pub(crate) volumes: bool,
}

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

#[derive(Debug, Args)]
pub(crate) struct EgressArgs {
    #[command(flatten)]
    pub(crate) directory: Directory,
    /// Go on with what happens, until interrupted; with --format json, one line of JSON for each event
    #[arg(long, short, conflicts_with_all = ["live", "suggest"])]
    pub(crate) follow: bool,
    /// Only the last while, such as 90s, 15m, 2h or 7d
    #[arg(long, value_name = "TIME", conflicts_with = "live")]
    pub(crate) since: Option<Since>,
    /// Only this instance
    #[arg(long, value_name = "AGENT/CAPABILITY", value_parser = parse_instance)]
    pub(crate) instance: Option<InstanceKey>,
    /// Only connections that are open now
    #[arg(long)]
    pub(crate) live: bool,
    /// The smallest `network` block that allows what this instance tried
    #[arg(long, value_name = "AGENT/CAPABILITY", value_parser = parse_instance, conflicts_with_all = ["instance", "live"])]
    pub(crate) suggest: Option<InstanceKey>,
}

#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// AGENT/CAPABILITY or CAPABILITY; all that have a container folder if absent
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Project, agent or capability directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: Utf8PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Which format
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_form_and_pauses_have_bounds() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2d"), Ok(Duration::from_secs(172_800)));
        for wrong in [
            "",
            "s",
            "15",
            "1.5h",
            "-1m",
            "+1m",
            "1 m",
            "99999999999999999999s",
            "1w",
            "1µ",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(pause("15m").is_ok());
        assert!(pause("9s").is_err() && pause("31d").is_err());
    }
}
