//! Asking a dynamic capability which tools it has (section 5 of the format).

mod journal;

pub use journal::{Journal, JournalError};

use std::time::Duration;

use selu_compiler::check::discovered::{Discovered, discovered};
use selu_compiler::diag::Problem;
use selu_compiler::model::{Credential, InstanceKey};
use serde_json::Map;

use crate::apply::chain;
use crate::invoke::{Call, CallError, Client};
use crate::secrets::{MissingCredentials, Secrets};

/// What is to be discovered.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Whose tools.
    pub instance: &'a InstanceKey,
    /// The tool that lists them.
    pub tool: &'a str,
    /// What the manifest declares.
    pub credentials: &'a [Credential],
    /// The session that is told, `default` for the resident (X1).
    pub session: &'a str,
    /// When to give up.
    pub deadline: Duration,
}

/// A list of tools, and what it depended on.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The tools, and what was odd about them.
    pub discovered: Discovered,
    /// Sorted names of the credentials that were present (product.md 22).
    pub credentials_present: Vec<String>,
}

/// Why a discovery failed.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// Nothing was asked (C4).
    #[error(transparent)]
    Credentials(#[from] MissingCredentials),
    /// The container could not be reached or made.
    #[error("{0}")]
    Container(String),
    /// W7.
    #[error(
        "the capability has no tool `{tool}`, which `discovery_tool_name` says lists its tools ({message})"
    )]
    NoDiscoveryTool {
        /// The discovery tool.
        tool: String,
        /// The capability's words.
        message: String,
    },
    /// The call failed.
    #[error("the discovery tool `{tool}` gave no result")]
    Call {
        /// The discovery tool.
        tool: String,
        /// Why.
        source: CallError,
    },
    /// Both attempts failed, each in another way (D2): the first says what happened, the second may only meet what it left.
    #[error("{first}; and once more: {second}")]
    Twice {
        /// The first, with its sources.
        first: String,
        /// The second, with its sources.
        second: String,
    },
    /// The result breaks D1.
    #[error("the discovery tool `{tool}` gave a result that can't be used:{}", lines(.problems))]
    Result {
        /// The discovery tool.
        tool: String,
        /// Every problem.
        problems: Vec<Problem>,
    },
}

impl DiscoveryError {
    /// Whether the container's state and log may say more than the error itself.
    pub(crate) fn may_be_explained_by_the_container(&self) -> bool {
        match self {
            Self::Container(_) | Self::Call { .. } | Self::Twice { .. } => true,
            Self::Credentials(_) | Self::NoDiscoveryTool { .. } | Self::Result { .. } => false,
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |mut text, problem| {
        text.push_str("\n  ");
        text.push_str(&describe(problem));
        text
    })
}

/// One problem of a result on one line.
pub fn describe(problem: &Problem) -> String {
    let place = match problem.pointer.as_str() {
        "" => "the result",
        pointer => pointer,
    };
    let help = problem.help.as_deref().map(|help| format!("; {help}"));
    format!(
        "{place}: {} ({}){}",
        problem.message,
        problem.code.id,
        help.unwrap_or_default()
    )
}

/// Discovers, and tries once more after a failure (D2). `connect` is called once an attempt, with its number from 0; the
/// caller that owns the container makes a fresh one for the second.
pub async fn discover(
    wanted: Wanted<'_>,
    secrets: &Secrets,
    mut connect: impl AsyncFnMut(usize) -> Result<Client, String>,
) -> Result<Found, DiscoveryError> {
    let config = secrets.discovery_config(wanted.instance, wanted.credentials)?;
    let mut attempt = async |number: usize| {
        let client = connect(number).await.map_err(DiscoveryError::Container)?;
        let call = Call {
            tool: wanted.tool,
            args: &Map::new(),
            config: &config,
            session: wanted.session,
            capability: wanted.instance.capability(),
            thread: "",
            deadline: wanted.deadline,
        };
        let result = client
            .call(&call)
            .await
            .map_err(|error| failed(wanted.tool, error))?;
        discovered(wanted.instance.capability(), wanted.tool, &result).map_err(|problems| {
            DiscoveryError::Result {
                tool: wanted.tool.to_owned(),
                problems,
            }
        })
    };
    let discovered = match attempt(0).await {
        Ok(discovered) => discovered,
        Err(first) => {
            tracing::info!(instance = %wanted.instance, "discovery failed once, trying again: {first}");
            attempt(1).await.map_err(|second| both(&first, second))?
        }
    };
    Ok(Found {
        discovered,
        credentials_present: config.names(),
    })
}

fn both(first: &DiscoveryError, second: DiscoveryError) -> DiscoveryError {
    let texts = (chain(first), chain(&second));
    match texts {
        (first, second) if first != second => DiscoveryError::Twice { first, second },
        _ => second,
    }
}

fn failed(tool: &str, error: CallError) -> DiscoveryError {
    let unknown = |message: &str| message.to_lowercase().contains("unknown tool");
    match error {
        CallError::Unimplemented { message } => DiscoveryError::NoDiscoveryTool {
            tool: tool.to_owned(),
            message,
        },
        CallError::Tool { message } | CallError::Status { message, .. } if unknown(&message) => {
            DiscoveryError::NoDiscoveryTool {
                tool: tool.to_owned(),
                message,
            }
        }
        source => DiscoveryError::Call {
            tool: tool.to_owned(),
            source,
        },
    }
}

#[cfg(test)]
mod tests;
