//! Asking a dynamic capability which tools it has (section 5 of the format).

mod journal;

pub use journal::{Journal, JournalError};

use std::time::Duration;

use selu_compiler::check::discovered::{Discovered, discovered};
use selu_compiler::diag::Problem;
use selu_compiler::model::{Credential, InstanceKey, Tool};
use serde_json::Map;

use crate::chain;
use crate::invoke::{Call, CallError, Client};
use crate::secrets::{MissingCredentials, Redactor, Secrets};

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
    /// The list would carry a value into the lock and to the model (product.md 29). It is not quoted.
    #[error(
        "the discovery tool `{tool}` gave a list that holds the value of a credential, in tool `{listed}`; the lock must \
         not hold it"
    )]
    Secret {
        /// The discovery tool.
        tool: String,
        /// Whose definition it is in, secrets removed.
        listed: String,
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
            Self::Credentials(_)
            | Self::NoDiscoveryTool { .. }
            | Self::Secret { .. }
            | Self::Result { .. } => false,
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
            user: "",
            deadline: wanted.deadline,
        };
        let result = client
            .call(&call)
            .await
            .map_err(|error| failed(wanted.tool, error))?;
        let list = discovered(wanted.instance.capability(), wanted.tool, &result);
        let list = list.map_err(|problems| DiscoveryError::Result {
            tool: wanted.tool.to_owned(),
            problems,
        })?;
        let redactor = secrets.redactor();
        match list.tools.iter().find(|(_, tool)| tells(redactor, tool)) {
            Some((listed, _)) => Err(DiscoveryError::Secret {
                tool: wanted.tool.to_owned(),
                listed: redactor.clean(listed),
            }),
            None => Ok(list),
        }
    };
    let discovered = match attempt(0).await {
        Ok(discovered) => discovered,
        Err(first) => {
            // The capability's words are in it, and it has been given the values.
            let first = secrets.redactor().clean(&chain(&first));
            tracing::info!(instance = %wanted.instance, "discovery failed once, trying again: {first}");
            attempt(1).await.map_err(|second| both(first, second))?
        }
    };
    Ok(Found {
        discovered,
        credentials_present: config.names(),
    })
}

/// Whether what is locked of a tool holds a value.
fn tells(redactor: &Redactor, tool: &Tool) -> bool {
    let Tool {
        name,
        description,
        input_schema,
        recommended: _,
        terminal_on_success: _,
        origin: _,
    } = tool;
    redactor.finds(name)
        || redactor.finds(description)
        || redactor.finds(&input_schema.value().to_string())
}

/// `first` is the first attempt's failure in words.
fn both(first: String, second: DiscoveryError) -> DiscoveryError {
    match chain(&second) {
        words if words != first => DiscoveryError::Twice {
            first,
            second: words,
        },
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
