//! `selu mcp-bridge`: an MCP server behind the capability service (section 6 of the format).
//!
//! The bridge is process 1 of a capability's container. It serves gRPC, starts the MCP server as a subprocess over
//! standard streams, one for each set of credential values (P1), and takes nothing that the server does for granted (P4).
//! Everything of MCP that the protocol itself decides is rmcp's; what bounds a hostile peer is here: `stdio` frames,
//! `server` outlives, `tools` and `content` read answers as plain JSON.

mod artifacts;
mod content;
mod credentials;
mod domain;
mod error;
mod link;
mod messages;
mod policy;
mod pool;
mod process;
mod reap;
mod remote;
mod said;
mod server;
mod service;
mod stdio;
mod tools;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use selu_proto::MAX_MESSAGE_BYTES;
use selu_proto::v1::capability_server::CapabilityServer;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::sleep;

pub use policy::{Policies, PolicyError};
pub use remote::{Remote, RemoteError};

use crate::chain;
use crate::stop::Stop;
use credentials::CredentialSet;
use said::Said;

/// The tool that discovery calls, unless the manifest names another.
pub const DISCOVERY_TOOL: &str = "list_tools";

/// How long an MCP server without calls is kept.
pub const IDLE: Duration = Duration::from_secs(600);

/// How long callers have to take their last answers and leave, after the servers were stopped.
const FAREWELL: Duration = Duration::from_millis(500);

/// What the bridge is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the MCP server is.
    pub target: Target,
    /// Where gRPC is served.
    pub listen: SocketAddr,
    /// The tool that answers with the list.
    pub discovery_tool: String,
    /// What the capability's author says of tools, instead of their annotations (P2).
    pub policies: Policies,
    /// Credentials without which the server does not start, not even to be asked for its tools (P1).
    pub placeholders: Vec<String>,
    /// How long a server without calls is kept.
    pub idle: Duration,
}

/// An MCP server to start, or one that runs elsewhere.
#[derive(Debug, Clone)]
pub enum Target {
    /// Program and arguments; it speaks over standard streams.
    Command(Vec<String>),
    /// Where it is reached, and with which headers.
    Url(Remote),
}

/// Why the bridge does not serve.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// There is nothing to run.
    #[error("no command: write the MCP server's program and arguments after `--`")]
    NoCommand,
    /// The program is not there.
    #[error("the MCP server's program `{program}` is {problem}")]
    Program {
        /// As given.
        program: String,
        /// Such as `in no folder of PATH`.
        problem: String,
    },
    /// A placeholder could be no credential.
    #[error("--placeholder: {problem}")]
    Placeholder {
        /// C1's words.
        problem: String,
    },
    /// The port is taken, or it is not ours to take.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// gRPC ended.
    #[error("cannot serve gRPC")]
    Serve(#[source] tonic::transport::Error),
}

/// Asks the server once for its tools, without a value of a credential, and ends it: what discovery would get, or why not.
pub async fn list(options: Options) -> Result<serde_json::Value, String> {
    check(&options).map_err(|error| chain(&error))?;
    let pool = pool::Pool::new(options.target, options.idle);
    let listed = async {
        let credentials = CredentialSet::read(b"{}")?.with_placeholders(&options.placeholders);
        let lease = pool.lease(credentials).await?;
        tools::list(&lease, &options.policies).await
    };
    let listed = listed
        .await
        .map_err(|error: error::CallError| chain(&error));
    pool.stop_all().await;
    listed
}

/// What can be known before anything is started; gives the server's name for the log.
fn check(options: &Options) -> Result<String, BridgeError> {
    for name in &options.placeholders {
        credentials::check(name).map_err(|problem| BridgeError::Placeholder { problem })?;
    }
    match &options.target {
        Target::Command(command) => {
            let program = command.first().ok_or(BridgeError::NoCommand)?;
            find(program)?;
            Ok(program.clone())
        }
        Target::Url(remote) => Ok(remote.to_string()),
    }
}

/// Serves until it is told to stop, and stops the servers that it started.
pub async fn serve(options: Options, stop: Stop) -> Result<(), BridgeError> {
    let server = check(&options)?;
    let listen = |source| BridgeError::Listen {
        address: options.listen,
        source,
    };
    let listener = TcpListener::bind(options.listen).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let own = Said::own();
    if matches!(options.target, Target::Command(_)) {
        own.say(&domain::what_the_kernel_has());
    }
    own.say(&format!("serving on {address}, for {server}"));
    let reaper = reap::start();
    let (service, pool) = service::Service::new(options);
    let service = CapabilityServer::new(service)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let (stopped, all_stopped) = oneshot::channel();
    let serving = tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming_shutdown(incoming(listener), async {
            stop.wait().await;
            // A call that never ends must not keep the process: what it waits for goes now.
            pool.stop_all().await;
            let _ = stopped.send(());
        });
    let served = tokio::select! {
        served = serving => served.map_err(BridgeError::Serve),
        // Nor must a caller that keeps its connection.
        () = async { let _ = all_stopped.await; sleep(FAREWELL).await } => Ok(()),
    };
    reaper.abort();
    served
}

/// Connections as they come. One that fails before it is there concerns nobody else.
fn incoming(
    listener: TcpListener,
) -> impl futures_util::Stream<Item = Result<tokio::net::TcpStream, std::io::Error>> {
    futures_util::stream::unfold(listener, |listener| async move {
        let stream = listener.accept().await.map(|(stream, _)| {
            // Answers are small; waiting for more to send with them costs 40 ms.
            let _ = stream.set_nodelay(true);
            stream
        });
        Some((stream, listener))
    })
}

/// The program that `exec` would take: a bridge whose server is missing must end at its start, not at the first call (W2).
fn find(program: &str) -> Result<PathBuf, BridgeError> {
    let wrong = |problem: String| BridgeError::Program {
        program: program.to_owned(),
        problem,
    };
    if program.contains('/') {
        let path = PathBuf::from(program);
        return match runnable(&path) {
            Ok(true) => Ok(path),
            Ok(false) => Err(wrong("no executable file".to_owned())),
            Err(error) => Err(wrong(format!("not readable: {error}"))),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| runnable(path).unwrap_or(false))
        .ok_or_else(|| wrong("in no folder of PATH".to_owned()))
}

fn runnable(path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(path)?;
    Ok(metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
