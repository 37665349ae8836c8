//! The command line.

mod calls;
mod mcp;

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand, ValueEnum};
use selu_compiler::model::InstanceKey;
use selu_runtime::apply::DEFAULT_TIMEOUT;

pub(crate) use self::calls::{
    CredentialsAction, CredentialsArgs, InvokeArgs, PolicyAction, PolicyArgs, PolicyWord,
    SessionsAction, SessionsArgs,
};
pub(crate) use self::mcp::{BridgeArgs, ImportArgs, NewArgs, NewKind, NewMcpArgs, Shape};
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
    /// SARIF 2.1.0, for code scanning (`check` and `diff` only).
    Sarif,
    /// Annotations of GitHub's workflows (`check` only).
    Github,
    /// A page that needs nothing else (`plan` and `diff` only).
    Html,
    /// A drawing (`graph` only).
    Svg,
    /// For Graphviz (`graph` only).
    Dot,
    /// For Mermaid, which forges draw in their Markdown (`graph` only).
    Mermaid,
    /// Markdown for a comment at a pull request (`plan` and `diff` only).
    Markdown,
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
    /// What git is told about selu.lock
    Git(GitArgs),
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
    /// Whether tools may be called, and who says so
    Policy(PolicyArgs),
    /// Values of credentials: the encrypted store, and what they are granted to
    Credentials(CredentialsArgs),
    /// Build local images from their container folders
    Build(BuildArgs),
    /// Draw agents, capabilities and what they use
    Graph(Directory),
    /// What uses a host, a credential or an image
    Why(WhyArgs),
    /// Make the archive of an agent that Selu's own installer takes, with its images by their locked digests
    Package(PackageArgs),
    /// Print the JSON schema of a file format, for editors
    Schema(SchemaArgs),
    /// Inside a capability's image: serve an MCP server as a capability
    McpBridge(BridgeArgs),
    /// Write the files of a new capability
    New(NewArgs),
    /// Turn entries of public catalogues, or a client's settings, into capabilities
    Import(ImportArgs),
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
    /// Check again whenever a file changes, until interrupted; as text only
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
    /// Ask the engine what images that differ say of their source; it pulls nothing
    #[arg(long)]
    pub(crate) images: bool,
    /// Make the report with a template of your own (minijinja), in the form that --format names; taken from the older
    /// state where that is a revision of the repository that it is in
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<Utf8PathBuf>,
    /// Exit with 2 if there is a difference of this kind that nobody has accepted in the older state's selu.toml
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) fail_on: Option<FailOn>,
}

/// What `diff --fail-on` stops at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// More is possible than before, or it can't be told.
    Widening,
    /// It needs a person by `[review]` of the older state's selu.toml.
    Review,
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
    /// Make the report with a template of your own (minijinja), in the form that --format names; the counts above it
    /// and the exit code are not its own
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<Utf8PathBuf>,
    /// Exit with 2 if applying it would let something do more than before
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) fail_on: Option<PlanFailOn>,
    /// Write the plan to a file, for `selu apply --plan FILE`
    #[arg(long, value_name = "FILE", conflicts_with = "offline")]
    pub(crate) out: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
}

/// What `plan --fail-on` stops at. A plan has no older selu.toml whose rules could say more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFailOn {
    /// More is possible than before, or it can't be told.
    Widening,
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
    /// Settle the conflict markers of a merge in selu.lock, entry by entry; `=ours` or `=theirs` says whose entry counts
    /// where both sides changed it; needs no engine
    #[arg(long, value_enum, value_name = "SIDE", num_args = 0..=1, require_equals = true, conflicts_with_all = ["check", "upgrade", "migrate"])]
    pub(crate) resolve: Option<Option<Taken>>,
    /// Be git's merge driver: of BASE, OURS and THEIRS make OURS, with markers of this SIZE where they clash
    #[arg(long, num_args = 5, value_names = ["BASE", "OURS", "THEIRS", "SIZE", "PATH"], conflicts_with_all = ["check", "upgrade", "migrate", "resolve", "dry_run"])]
    pub(crate) merge_driver: Option<Vec<String>>,
    /// Print a lock with one fact a line, which is what `git diff` compares
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "upgrade", "migrate", "resolve", "merge_driver", "dry_run"])]
    pub(crate) textconv: Option<Utf8PathBuf>,
    /// Accept a definition that waits (`on_change = "hold"`), or all that wait of AGENT/CAP; may be given several times; needs no engine
    #[arg(long, value_name = "AGENT/CAP[/TOOL]", conflicts_with_all = ["check", "upgrade", "migrate"])]
    pub(crate) accept: Vec<String>,
    /// How many seconds a container may take until it answers that it is ready
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) ready_timeout: u64,
    /// How many seconds to wait while another selu works on this project
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(crate) lock_timeout: u64,
}

/// What `lock --resolve` takes where both sides changed the same entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Taken {
    /// Of the branch that is merged into.
    Ours,
    /// Of the branch that is merged.
    Theirs,
}

#[derive(Debug, Args)]
pub(crate) struct GitArgs {
    #[command(subcommand)]
    pub(crate) action: GitAction,
}

/// What git is told.
#[derive(Debug, Subcommand)]
pub(crate) enum GitAction {
    /// Let git merge and show selu.lock entry by entry: a line of .gitattributes, and settings of this clone
    Install {
        #[command(flatten)]
        directory: Directory,
        /// Take all of it back
        #[arg(long)]
        remove: bool,
    },
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
pub(crate) struct WhyArgs {
    /// Such as api.example.com, api.example.com:443, API_KEY, ghcr.io/acme/weather
    #[arg(value_name = "HOST|CREDENTIAL|IMAGE")]
    pub(crate) name: String,
    /// Project, agent or capability directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: Utf8PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PackageArgs {
    /// The agent's id
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
    /// The archive (default: AGENT.tar.gz)
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<Utf8PathBuf>,
    /// The version that the catalogue's entry names
    #[arg(long, value_name = "VERSION")]
    pub(crate) release: Option<String>,
    /// Who releases it
    #[arg(long, value_name = "NAME")]
    pub(crate) author: Option<String>,
    /// Where the archive will be
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Project or agent directory
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
