//! Why a call through the bridge failed.

use std::time::Duration;

/// The text goes to the caller as `InvokeResponse.error`, after every credential value was removed from it (P3).
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// One of the request's two JSON fields is not an object.
    #[error("{field} must be a JSON object: {reason}")]
    Request { field: &'static str, reason: String },
    /// A credential that no environment can carry.
    #[error("credential: {problem}")]
    Credential { problem: String },
    /// A placeholder is good enough for a list of tools, and for nothing else.
    #[error("the credential {name} is missing; the MCP server cannot be called without it")]
    MissingCredential { name: String },
    /// All servers are busy, and there may not be more.
    #[error(
        "{running} MCP servers run already, each with other credentials, and all of them are busy; try again"
    )]
    Full { running: usize },
    /// The program did not start.
    #[error("the MCP server could not be started: {reason}")]
    Start { reason: String },
    /// It started, and was no MCP server.
    #[error("the MCP server could not be initialised: {reason}")]
    Initialise { reason: String },
    /// It speaks another language.
    #[error(
        "the MCP server speaks protocol version {theirs}; this bridge speaks {}",
        .ours.join(", ")
    )]
    Version { theirs: String, ours: Vec<String> },
    /// It ended while it was asked.
    #[error("the MCP server {how} while it was asked; the next call starts it again{last}")]
    Ended {
        how: String,
        /// Its last lines, with an introduction, or nothing.
        last: String,
    },
    /// It did not answer in time.
    #[error("the MCP server did not answer within {} s; it was told to give up", .limit.as_secs_f64())]
    Deadline { limit: Duration },
    /// An error of the protocol, in the server's words.
    #[error("{message}")]
    Protocol { message: String },
    /// The tool's own error, in the server's words.
    #[error("{message}")]
    Tool { message: String },
    /// The answer has another shape than MCP says.
    #[error("the MCP server's answer to {method} is not MCP: {reason}")]
    Answer {
        method: &'static str,
        reason: String,
    },
    /// What came is MCP, and of no use.
    #[error("{problem}")]
    Unusable { problem: String },
    /// What came is more than goes out (W3).
    #[error("the result is {bytes} bytes, the limit is {limit}")]
    TooLarge { bytes: usize, limit: usize },
}
