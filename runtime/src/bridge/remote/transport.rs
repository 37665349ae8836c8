//! rmcp's transport over HTTP: each message of ours is a request of its own, and what comes back is read as it comes.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::events::Events;
use super::session::{Failure, Session, too_long, whole};
use crate::bridge::messages::{Messages, Sent};
use crate::bridge::said::Said;

/// Documents that wait to be read. Each may be as long as a message.
const WAITING: usize = 2;

/// How long a server may take to accept what has no answer.
const NOTICE: Duration = Duration::from_secs(10);

/// See the module.
pub(in crate::bridge) struct Http {
    session: Arc<Session>,
    messages: Messages,
    said: Arc<Said>,
    /// Ends the session.
    end: CancellationToken,
    /// Requests that have no whole answer; dropping them ends them.
    open: JoinSet<()>,
    handles: HashMap<i64, AbortHandle>,
    arrives: mpsc::Sender<Arrived>,
    arrived: mpsc::Receiver<Arrived>,
}

/// What the request of this number brings.
struct Arrived {
    id: i64,
    what: What,
}

enum What {
    Document(Vec<u8>),
    /// Asks whether the answer was among the documents.
    IsAwaited(oneshot::Sender<bool>),
    Failed(Failure),
}

impl Http {
    pub(super) fn new(session: Arc<Session>, said: Arc<Said>, end: CancellationToken) -> Self {
        let (arrives, arrived) = mpsc::channel(WAITING);
        Self {
            session,
            messages: Messages::new(Arc::clone(&said), "answer"),
            said,
            end,
            open: JoinSet::new(),
            handles: HashMap::new(),
            arrives,
            arrived,
        }
    }

    fn take(&mut self, arrived: Arrived) {
        let Arrived { id, what } = arrived;
        match what {
            What::Document(bytes) => {
                self.messages.read(&bytes);
                if let Some(version) = self.messages.version() {
                    self.session.speaks(version.as_str());
                }
            }
            What::IsAwaited(tell) => {
                let _ = tell.send(self.messages.awaits(id));
            }
            What::Failed(failure) => {
                if self.messages.awaits(id) {
                    self.messages.fail(Some(id), &failure.reason);
                }
                if failure.lost {
                    self.end.cancel();
                }
            }
        }
        if !self.messages.awaits(id) {
            self.forget(id);
        }
    }

    /// Whatever the server would still send is nobody's.
    fn forget(&mut self, id: i64) {
        if let Some(handle) = self.handles.remove(&id) {
            handle.abort();
        }
        while self.open.try_join_next().is_some() {}
    }
}

impl Transport<RoleClient> for Http {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sent = self.messages.sends(&item);
        let message = serde_json::to_vec(&item).map(Bytes::from);
        if let Sent::Cancelled(id) = sent {
            self.forget(id);
        }
        let session = Arc::clone(&self.session);
        let asked = match (&message, &sent) {
            (Ok(message), Sent::Request(id)) => {
                let request = Exchange {
                    session: Arc::clone(&session),
                    id: *id,
                    arrives: self.arrives.clone(),
                };
                let handle = self.open.spawn(request.run(message.clone()));
                self.handles.insert(*id, handle);
                true
            }
            _ => false,
        };
        let said = Arc::clone(&self.said);
        async move {
            let message = message?;
            if asked {
                return Ok(());
            }
            // Kept until it is sent: an answer to a request of the server's is counted.
            let _sent = sent;
            match timeout(NOTICE, session.post(message)).await {
                Ok(Ok(_)) => {}
                // The next request finds out for itself.
                Ok(Err(failure)) => said.say(&failure.reason),
                Err(_) => said.say("the MCP server does not take a notification"),
            }
            Ok(())
        }
    }

    /// A caller may drop the future between two awaits.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(message) = self.messages.next() {
                return Some(message);
            }
            let arrived = self.arrived.recv().await?;
            self.take(arrived);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.end.cancel();
        self.open.abort_all();
        Ok(())
    }
}

/// One request of ours, up to its answer.
struct Exchange {
    session: Arc<Session>,
    id: i64,
    arrives: mpsc::Sender<Arrived>,
}

impl Exchange {
    async fn run(self, message: Bytes) {
        if let Err(failure) = self.answered(message).await {
            self.tell(What::Failed(failure)).await;
        }
    }

    async fn tell(&self, what: What) {
        // Nobody takes it once the session ended.
        let _ = self.arrives.send(Arrived { id: self.id, what }).await;
    }

    async fn answered(&self, message: Bytes) -> Result<(), Failure> {
        let answer = self.session.post(message).await?;
        match kind(&answer).as_str() {
            "application/json" => {
                let document = whole(answer.into_body()).await?;
                self.tell(What::Document(document.into())).await;
                if self.is_awaited().await {
                    return Err("the MCP server's answer is none to what it was asked"
                        .to_owned()
                        .into());
                }
                Ok(())
            }
            "text/event-stream" => self.followed(answer).await,
            other => Err(format!(
                "the MCP server answered with status {} and {}, which is no answer of MCP",
                answer.status(),
                if other.is_empty() {
                    "no content"
                } else {
                    other
                }
            )
            .into()),
        }
    }

    /// Reads a stream of events up to the answer. A server may end the stream before it, if it said how to go on.
    async fn followed(&self, mut answer: Response<Incoming>) -> Result<(), Failure> {
        let mut last = None;
        loop {
            let mut events = Events::new();
            events.last = last;
            let broken = self.read(answer.into_body(), &mut events).await?;
            if !self.is_awaited().await {
                return Ok(());
            }
            let Some(id) = events.last else {
                let why = broken.map_or_else(String::new, |error| format!(" ({error})"));
                return Err(
                    format!("the MCP server ended its stream before it answered{why}").into(),
                );
            };
            tokio::time::sleep(events.again).await;
            answer = self.session.resume(id.clone()).await?;
            if kind(&answer) != "text/event-stream" {
                return Err("the MCP server ended its stream before it answered, and does not take it up again"
                    .to_owned()
                    .into());
            }
            last = Some(id);
        }
    }

    /// Hands on every event, to the end of the stream, which may be a broken one.
    async fn read(
        &self,
        mut body: Incoming,
        events: &mut Events,
    ) -> Result<Option<hyper::Error>, String> {
        while let Some(frame) = body.frame().await {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => return Ok(Some(error)),
            };
            let Some(bytes) = frame.data_ref() else {
                continue;
            };
            for document in events.take(bytes).map_err(|_| too_long())? {
                self.tell(What::Document(document)).await;
            }
        }
        Ok(None)
    }

    async fn is_awaited(&self) -> bool {
        let (tell, told) = oneshot::channel();
        self.tell(What::IsAwaited(tell)).await;
        told.await.unwrap_or(false)
    }
}

/// The type of an answer's content, without its parameters.
fn kind(answer: &Response<Incoming>) -> String {
    let kind = answer.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}
