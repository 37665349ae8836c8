//! The one narrow door to a container engine.
//!
//! [`EngineView`] can only look; `plan`, `status` and `check` get nothing else, so that they cannot change or pull
//! anything is a matter of types (product.md 3). [`Engine`] can act. Every call has a time limit and names itself in its
//! error. "Already in that state" answers (304, 404 on removal) are success, and nothing else is (F16).

pub mod docker;
pub mod fake;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use selu_compiler::model::ImageReference;
use selu_compiler::observed::{ImageFacts, Observed, ObservedContainer};
use selu_compiler::plan::{ContainerSpec, PlannedNetwork};
use tokio::io::{AsyncRead, AsyncWrite};

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// Why a call to the engine failed. Texts of the engine are kept, secrets removed before they are shown.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Nothing answered.
    #[error("no container engine answered; tried {}", .tried.join(", "))]
    Unreachable {
        /// Each address with what happened there.
        tried: Vec<String>,
    },
    /// The socket exists but may not be opened.
    #[error("no permission to open the engine's socket {socket}")]
    Permission {
        /// Its path.
        socket: String,
    },
    /// No answer within the limit.
    #[error("the engine did not answer {call} within {} s", .limit.as_secs())]
    Timeout {
        /// Such as `create container selu_x_y_z_1`.
        call: String,
        /// The limit.
        limit: Duration,
    },
    /// A name is taken (409).
    #[error("{call}: the name is already in use: {message}")]
    Conflict {
        /// The call.
        call: String,
        /// The engine's words.
        message: String,
    },
    /// The thing is not there (404).
    #[error("{call}: {message}")]
    NotFound {
        /// The call.
        call: String,
        /// The engine's words.
        message: String,
    },
    /// The registry limits the rate (429, or an engine's 500 that says so, B11).
    #[error("{call}: the registry limits requests: {message}")]
    RateLimited {
        /// The call.
        call: String,
        /// The engine's words.
        message: String,
    },
    /// It answers, and would not keep what a plan promises.
    #[error("{engine} is not supported: {why}")]
    Unsupported {
        /// Such as `Podman 4.9.3 (API 1.41)`.
        engine: String,
        /// What it lacks.
        why: &'static str,
    },
    /// The registry wants to know who asks, or does not let them (401, 403); some say so of images that do not exist.
    #[error("{call}: registry {registry} refuses {message}")]
    Unauthorized {
        /// The call.
        call: String,
        /// The registry.
        registry: String,
        /// Which credentials were used and where they are from, never what they are; and what was said to them.
        message: String,
    },
    /// The registry's TLS is not trusted, or it has none.
    #[error("{call}: there is no trusted TLS to the registry: {message}")]
    Tls {
        /// The call.
        call: String,
        /// The engine's words.
        message: String,
    },
    /// Anything else that the engine refused.
    #[error("{call}: {message}")]
    Refused {
        /// The call.
        call: String,
        /// HTTP status, 0 where there was none.
        status: u16,
        /// The engine's words.
        message: String,
    },
    /// An answer that makes no sense, or a broken stream.
    #[error("{call}: unexpected answer from the engine: {message}")]
    Protocol {
        /// The call.
        call: String,
        /// What was wrong.
        message: String,
    },
}

/// Takes short lines of progress. A name of its own: inside an async trait `Fn(&str)` would lose its free lifetime.
pub type Progress<'a> = dyn Fn(&str) + Send + Sync + 'a;

/// How a process ended: its exit code and the last 4 KiB of its standard error.
pub type Ended = Pin<Box<dyn Future<Output = EngineResult<(i64, String)>> + Send>>;

/// Result of an engine call.
pub type EngineResult<T> = Result<T, EngineError>;

/// What a running container has used and uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// CPU time since it started.
    pub cpu_nanos: u64,
    /// Processes and threads now.
    pub pids: u64,
}

/// What happened to processes of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incident {
    /// The kernel ended one for memory.
    OutOfMemory,
    /// The container's own ended.
    Ended {
        /// Its exit code.
        code: i64,
    },
}

/// Looking without touching.
#[async_trait]
pub trait EngineView: Send + Sync {
    /// The engine, our containers (inspected concurrently), networks and volumes, and everyone else's subnets; `images`
    /// stays empty. A constant number of list calls plus one inspect per owned container (product.md 8).
    /// `wanted_names` are container, network and volume names that a plan would use: those that exist without our
    /// labels end up in `foreign_names`.
    async fn observe(&self, project: &str, wanted_names: &[String]) -> EngineResult<Observed>;

    /// What the engine has under a reference; no registry is asked. `digest` is the one that the engine remembers for
    /// this very repository, if any.
    async fn image(&self, reference: &str) -> EngineResult<Option<ImageFacts>>;

    /// Asks the registry which digest a reference has now, once per reference and command. `None` if it has no such
    /// reference.
    async fn registry_digest(&self, reference: &ImageReference) -> EngineResult<Option<String>>;

    /// Asks the registry which platforms a digest of a reference's repository is for, such as `linux/amd64`; empty where
    /// that cannot be known.
    async fn registry_platforms(
        &self,
        reference: &ImageReference,
        digest: &str,
    ) -> EngineResult<Vec<String>>;

    /// One container of any owner, by name or id.
    async fn container(&self, name: &str) -> EngineResult<Option<ObservedContainer>>;

    /// The last lines of a container's log, standard output and error together; a sentence in brackets where the engine
    /// cannot give them (F13).
    async fn logs(&self, name: &str, lines: u32) -> EngineResult<String>;

    /// What a container uses; `None` if it does not run.
    async fn usage(&self, name: &str) -> EngineResult<Option<Usage>>;

    /// What happened in a container since a moment of this process's clock, in order, as far as the engine remembers.
    async fn incidents(&self, name: &str, since: Instant) -> EngineResult<Vec<Incident>>;

    /// A container's log, piece by piece, and what is added to it if that is asked for.
    async fn log_stream(&self, name: &str, range: LogRange) -> EngineResult<LogStream>;
}

/// Which part of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogRange {
    /// Not what is older, in seconds since 1970.
    pub since: Option<u64>,
    /// The last lines only.
    pub tail: Option<u32>,
    /// Also what comes, until the container ends.
    pub follow: bool,
}

/// Where a container wrote something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogSource {
    /// Its standard output.
    Out,
    /// Its standard error.
    Error,
}

/// Pieces of a log, which need not be whole lines.
pub type LogStream = Pin<Box<dyn Stream<Item = EngineResult<(LogSource, Bytes)>> + Send>>;

/// Acting.
#[async_trait]
pub trait Engine: EngineView {
    /// The same engine, for looking.
    fn view(&self) -> &dyn EngineView;

    /// Creates a network: internal and without an address of the host (S10), or one that leads outside, as planned.
    async fn create_network(&self, network: &PlannedNetwork, labels: &Labels) -> EngineResult<()>;

    /// Removes a network; one that is not there is removed already.
    async fn remove_network(&self, name: &str) -> EngineResult<()>;

    /// Attaches a container with a static address.
    async fn connect(&self, network: &str, container: &str, address: Ipv4Addr) -> EngineResult<()>;

    /// Detaches a container, gone or not.
    async fn disconnect(&self, network: &str, container: &str) -> EngineResult<()>;

    /// Creates a volume; one of that name and our labels is there already.
    async fn create_volume(&self, name: &str, labels: &Labels) -> EngineResult<()>;

    /// Removes a volume.
    async fn remove_volume(&self, name: &str) -> EngineResult<()>;

    /// Hands a new volume the owner and mode that `image` has at `path`: the engine copies them when a container is
    /// created with it, so the helper is created and removed and never runs (F4). A volume with content stays as it is.
    async fn seed_volume(
        &self,
        volume: &str,
        image: &str,
        path: &str,
        labels: &Labels,
    ) -> EngineResult<()>;

    /// Creates a container in one network with a static address, and does not start it. The network `none` leaves it
    /// with its loopback alone. `open_stdin` keeps its standard input open until the first attached client leaves (the
    /// hold).
    async fn create_container(
        &self,
        name: &str,
        spec: &ContainerSpec,
        network: &str,
        address: Option<Ipv4Addr>,
        open_stdin: bool,
    ) -> EngineResult<()>;

    /// Starts a container.
    async fn start(&self, name: &str) -> EngineResult<()>;

    /// Stops a container, gently for up to `grace`.
    async fn stop(&self, name: &str, grace: Duration) -> EngineResult<()>;

    /// Ends a container's processes at once and starts it again, running or not.
    async fn restart(&self, name: &str) -> EngineResult<()>;

    /// Removes a container with its anonymous volumes, running or not.
    async fn remove_container(&self, name: &str) -> EngineResult<()>;

    /// Removes a container by id if it does not run, in one step; says whether it is gone.
    async fn remove_ended(&self, id: &str) -> EngineResult<bool>;

    /// Changes in place what the engine can change: memory, CPU, pids, restart.
    async fn update_container(&self, name: &str, spec: &ContainerSpec) -> EngineResult<()>;

    /// Runs a command in a running container, its streams attached.
    async fn exec(&self, container: &str, user: &str, command: &[String]) -> EngineResult<Pipe>;

    /// Attaches to a created container's standard streams.
    async fn attach(&self, container: &str) -> EngineResult<Pipe>;

    /// Loads an image archive (`docker save` form).
    async fn load_image(&self, archive: Bytes) -> EngineResult<()>;

    /// Removes an image by reference; one in use by others stays.
    async fn remove_image(&self, reference: &str) -> EngineResult<()>;

    /// Pulls `repository@digest`; `progress` gets short lines.
    async fn pull(&self, reference: &str, progress: &Progress<'_>) -> EngineResult<()>;

    /// Builds an image from a tar of its context, without network, tags it and gives it labels; `progress` gets the
    /// builder's lines.
    async fn build(
        &self,
        context: Bytes,
        dockerfile: &str,
        tag: &str,
        labels: &Labels,
        progress: &Progress<'_>,
    ) -> EngineResult<()>;
}

/// The streams of a process in a container.
pub struct Pipe {
    /// Its standard output.
    pub output: Pin<Box<dyn AsyncRead + Send>>,
    /// Its standard input; dropping or shutting it down ends the input.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Resolves once the process has ended.
    pub ended: Ended,
}
