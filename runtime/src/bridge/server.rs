//! One MCP server: started or reached, initialised, asked, outlived.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientConfig,
    ClientNotification, ClientRequest, CustomResult, Implementation, PingRequest, ProtocolVersion,
    RequestId, ServerResult,
};
use rmcp::service::{
    Peer, PeerRequestOptions, RoleClient, RunningService, ServiceError, serve_client_with_ct,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};
use tokio::time::timeout;

use super::credentials::CredentialSet;
use super::error::CallError;
use super::link::{END, LAST_WORDS, Link, in_words};
use super::said::Said;
use super::{Target, process};

/// How long a server may take to answer `initialize`. Python with little CPU takes several seconds.
const START: Duration = Duration::from_secs(60);

/// How long a server that was told to give a call up may take to show that it is still there.
const PONG: Duration = Duration::from_secs(3);

/// The protocol versions that begin with `initialize`. A server answers with the one of ours that it knows, or with its
/// own newest.
const VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2024_11_05,
];

/// What the bridge says of itself, always the same: lists of tools depend on what a client can do, and must not depend on
/// the bridge's version.
#[derive(Clone)]
struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("selu-mcp-bridge", "1"),
        )
        .with_protocol_version(VERSIONS[0].clone())
    }
}

/// A server that answered `initialize`.
pub(super) struct Server {
    peer: Peer<RoleClient>,
    /// Ends the conversation when it is dropped.
    _running: RunningService<RoleClient, Client>,
    link: Link,
    /// Held for writing while it is not known whether the server still answers.
    doubt: Arc<RwLock<()>>,
    /// Requests at the moment.
    asked: AtomicUsize,
}

impl Server {
    /// Starts a server with these values in its environment, or opens a session with one that gets them in headers.
    pub(super) async fn start(
        target: &Target,
        credentials: &CredentialSet,
    ) -> Result<Arc<Self>, CallError> {
        let said = Arc::new(Said::new(credentials.redactor().clone()));
        match target {
            Target::Command(command) => {
                let (link, transport) = process::launch(command, credentials, &said).await?;
                Self::initialise(link, transport).await
            }
            Target::Url(remote) => {
                let (link, transport) = remote.open(credentials, &said)?;
                Self::initialise(link, transport).await
            }
        }
    }

    async fn initialise<T>(link: Link, transport: T) -> Result<Arc<Self>, CallError>
    where
        T: Transport<RoleClient> + 'static,
    {
        // Whoever waits for this may give up: then nothing stays behind.
        let given_up = link.end.clone().drop_guard();
        let started = timeout(
            START,
            serve_client_with_ct(Client, transport, link.end.clone()),
        );
        let running = match started.await {
            Ok(Ok(running)) => running,
            Ok(Err(error)) => return Err(link.not_initialised(error).await),
            Err(_) => {
                return Err(CallError::Initialise {
                    reason: format!(
                        "it did not answer within {} s{}",
                        START.as_secs(),
                        link.said.last()
                    ),
                });
            }
        };
        if let Some(info) = running.peer().peer_info()
            && !VERSIONS.contains(&info.protocol_version)
        {
            return Err(CallError::Version {
                theirs: info.protocol_version.to_string(),
                ours: VERSIONS.iter().map(ToString::to_string).collect(),
            });
        }
        given_up.disarm();
        Ok(Arc::new(Self {
            peer: running.peer().clone(),
            _running: running,
            link,
            doubt: Arc::default(),
            asked: AtomicUsize::new(0),
        }))
    }

    /// Whether it can be asked. Waits while that is in doubt.
    pub(super) async fn answers(&self) -> bool {
        drop(self.doubt.read().await);
        self.link.ended.borrow().is_none() && !self.link.end.is_cancelled()
    }

    /// Tells it to end; [`Self::ended`] waits for that.
    pub(super) fn stop(&self) {
        self.link.end.cancel();
    }

    /// Resolves once it ended.
    pub(super) async fn ended(&self) {
        self.link.ended().await;
    }

    /// Asks, and gives the answer as it came. Where the caller gives up, the server is told.
    pub(super) async fn request(
        self: &Arc<Self>,
        method: &'static str,
        request: ClientRequest,
    ) -> Result<Value, CallError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut open = Open {
            server: Arc::clone(self),
            request: None,
        };
        let sent = self
            .peer
            .send_request_with_option(request, PeerRequestOptions::no_options())
            .await;
        let Ok(sent) = sent else {
            return Err(self.link.has_ended().await);
        };
        open.request = Some(sent.id);
        let mut answer = sent.rx;
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer.ok(),
            () = self.link.ended() => {
                timeout(LAST_WORDS, &mut answer).await.ok().and_then(Result::ok)
            }
        };
        open.request = None;
        match answer {
            Some(Ok(ServerResult::CustomResult(CustomResult(value)))) => Ok(value),
            Some(Ok(_)) => Err(CallError::Answer {
                method,
                reason: "it answers another request".to_owned(),
            }),
            Some(Err(ServiceError::McpError(error))) => Err(CallError::Protocol {
                message: in_words(&error),
            }),
            Some(Err(_)) | None => Err(self.link.has_ended().await),
        }
    }

    /// Tells the server that nobody waits for an answer any more, and, where nothing else is asked of it, sees whether it
    /// still answers. One that does not is ended: the next call must not wait for it, too.
    async fn give_up(self: Arc<Self>, id: RequestId, doubt: Option<OwnedRwLockWriteGuard<()>>) {
        let _doubt = match doubt {
            Some(doubt) => doubt,
            None => Arc::clone(&self.doubt).write_owned().await,
        };
        let told = timeout(PONG, async {
            let params =
                CancelledNotificationParam::new(Some(id), Some("the caller gave up".to_owned()));
            let notification =
                ClientNotification::CancelledNotification(CancelledNotification::new(params));
            self.peer.send_notification(notification).await?;
            if self.asked.load(Ordering::SeqCst) > 0 {
                return Ok(());
            }
            let ping = ClientRequest::PingRequest(PingRequest::default());
            match self.peer.send_request(ping).await {
                // An error is an answer.
                Ok(_) | Err(ServiceError::McpError(_)) => Ok(()),
                Err(error) => Err(error),
            }
        });
        if !matches!(told.await, Ok(Ok(()))) {
            self.link.said.say(
                "the MCP server was told to give a call up and answers nothing more; it is ended",
            );
            self.stop();
            let _ = timeout(3 * END, self.ended()).await;
        }
    }
}

/// Something that is asked, and once it is sent, the request that has no answer.
struct Open {
    server: Arc<Server>,
    request: Option<RequestId>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.server.asked.fetch_sub(1, Ordering::SeqCst);
        let Some(id) = self.request.take() else {
            return;
        };
        let server = Arc::clone(&self.server);
        // At once, so that no call comes in between.
        let doubt = Arc::clone(&server.doubt).try_write_owned().ok();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(server.give_up(id, doubt));
        }
    }
}
