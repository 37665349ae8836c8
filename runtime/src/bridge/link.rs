//! What is known of an MCP server besides its answers: a subprocess or a session, what it said, and how it ended.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ErrorData;
use rmcp::service::ClientInitializeError;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::CallError;
use super::messages::NOT_THE_SERVERS;
use super::said::Said;

/// How long a server may take to end by itself, each time it is asked more firmly.
pub(super) const END: Duration = Duration::from_secs(1);

/// How long to wait for what a server that ended had still written.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) said: Arc<Said>,
    /// How it ended, once it did.
    pub(super) ended: watch::Receiver<Option<String>>,
    /// Ends it.
    pub(super) end: CancellationToken,
}

impl Link {
    pub(super) async fn ended(&self) {
        let mut ended = self.ended.clone();
        let _ = ended.wait_for(Option::is_some).await;
    }

    /// Why `initialize` got no answer.
    pub(super) async fn not_initialised(&self, error: ClientInitializeError) -> CallError {
        let reason = match error {
            ClientInitializeError::JsonRpcError(error) => {
                format!("{}{}", in_words(&error), self.said.last())
            }
            ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::TransportError { .. } => {
                let how = self.how().await;
                format!("it {how}{}", self.said.last())
            }
            other => other.to_string(),
        };
        CallError::Initialise { reason }
    }

    /// The error of a call whose server went away.
    pub(super) async fn has_ended(&self) -> CallError {
        CallError::Ended {
            how: self.how().await,
            last: self.said.last(),
        }
    }

    /// How it ended. One that only closed its streams is ended first: it can't be asked anything.
    async fn how(&self) -> String {
        if timeout(LAST_WORDS, self.ended()).await.is_err() {
            self.end.cancel();
            return "closed its output".to_owned();
        }
        let how = self.ended.borrow().clone();
        how.unwrap_or_else(|| "was lost".to_owned())
    }
}

/// An error of the protocol as one text: the server's words come first.
pub(super) fn in_words(error: &ErrorData) -> String {
    if error.code == NOT_THE_SERVERS {
        return error.message.clone().into_owned();
    }
    match &error.data {
        Some(data) => format!("{} (MCP error {}: {data})", error.message, error.code.0),
        None => format!("{} (MCP error {})", error.message, error.code.0),
    }
}
