//! Calls to a capability over gRPC, section 4 of the format.
//!
//! A call goes through an engine pipe that the gateway splices to the container's port (S1), so nothing is published
//! anywhere. One client is one pipe. Nothing here is ever retried: tools write (W3).

mod artifact;
mod limits;
mod older;
mod stream;

pub use artifact::{MAX_ARTIFACT_BYTES, Received, mime_type};
pub use limits::{After, Again, Bounds, Failure};

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prost::Message;
use selu_proto::v1::capability_client::CapabilityClient;
use selu_proto::v1::capability_service_client::CapabilityServiceClient;
use selu_proto::v1::{HealthRequest, InvokeRequest, OlderHealthRequest};
use selu_proto::{MAX_MESSAGE_BYTES, PORT};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::engine::Engine;
use crate::gateway::{self, GatewayError};
use crate::secrets::Config;

/// How long a call may take unless the caller says otherwise (W3).
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

/// Longest text of a capability's own that an error carries (J02).
const LONGEST_MESSAGE: usize = 2_000;

/// Why a call gave no result. Texts of the capability are shortened; secrets are removed by whoever shows them.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The gateway could not be used.
    #[error("the gateway could not open a pipe to the container")]
    Gateway(#[source] GatewayError),
    /// Nothing listens on the port.
    #[error("nothing answers on port {PORT} of the container: {reason}")]
    Unreachable {
        /// What the pipe said.
        reason: String,
    },
    /// The connection ended in the middle of a call.
    #[error("the connection to the container broke: {reason}")]
    Broken {
        /// What the client saw.
        reason: String,
    },
    /// Something listens that speaks no plaintext gRPC (J03).
    #[error(
        "what listens on port {PORT} does not speak plaintext gRPC (HTTP/2 without TLS): {reason}"
    )]
    NotGrpc {
        /// What the client saw.
        reason: String,
    },
    /// The service is another one: neither ours nor the older dialect (W4).
    #[error(
        "the capability answers gRPC on port {PORT}, but neither the service selu.capability.v1.Capability nor the older \
         selu.capability.v1.CapabilityService"
    )]
    OtherService,
    /// What the older dialect does not have (W4).
    #[error("the capability speaks the older dialect of the interface, which has no {what}")]
    NotInOlder {
        /// Such as `streamed results`.
        what: &'static str,
    },
    /// In the older dialect a credential would take the place of what the call itself says (W4).
    #[error(
        "the capability speaks the older dialect of the interface, in which the credential `{name}` would replace the \
         call's own `{name}`; rename the credential"
    )]
    ContextName {
        /// The credential.
        name: String,
    },
    /// The method is not implemented.
    #[error("the capability reports that this is not implemented: {message}")]
    Unimplemented {
        /// Its words.
        message: String,
    },
    /// No answer in time.
    #[error("no answer within {} s", .deadline.as_secs_f64())]
    Deadline {
        /// The limit.
        deadline: Duration,
    },
    /// The request is too large (J01).
    #[error("the request is {bytes} bytes, the limit is {limit}")]
    RequestTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The result is too large (J01).
    #[error("the result is {bytes} bytes, the limit is {limit}")]
    ResultTooLarge {
        /// Its size as the capability announced it.
        bytes: String,
        /// The limit.
        limit: usize,
    },
    /// A file did not come over.
    #[error("the artifact was not carried: {reason}")]
    Artifact {
        /// Why.
        reason: String,
    },
    /// The tool's own error (W4).
    #[error("the tool failed: {message}")]
    Tool {
        /// Its words.
        message: String,
    },
    /// Any other gRPC status.
    #[error("the call failed with gRPC status {code}: {message}")]
    Status {
        /// Such as `INTERNAL`.
        code: String,
        /// The capability's words.
        message: String,
    },
}

/// One call.
#[derive(Debug)]
pub struct Call<'a> {
    /// Which tool.
    pub tool: &'a str,
    /// Its arguments.
    pub args: &'a Map<String, Value>,
    /// The declared credentials (C3).
    pub config: &'a Config,
    /// The session, `default` for the resident (X1).
    pub session: &'a str,
    /// The capability's id.
    pub capability: &'a str,
    /// The thread, or nothing.
    pub thread: &'a str,
    /// The user that the call is for, or nothing; only the older dialect tells it (W4).
    pub user: &'a str,
    /// When to give up.
    pub deadline: Duration,
}

/// What a health check said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Tools can be called.
    Ready,
    /// It answered, and not yet with `ready: true`.
    NotReady {
        /// Its words.
        message: String,
    },
}

/// Which service a capability has (W4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `selu.capability.v1.Capability`.
    Present,
    /// `selu.capability.v1.CapabilityService`.
    Older,
}

/// A connection to one container.
pub struct Client {
    service: CapabilityClient<Channel>,
    older: CapabilityServiceClient<Channel>,
    /// Decided by the first health check that is answered, and by nothing else (W4).
    dialect: OnceCell<Dialect>,
    /// Whether an answer ever came: only before that may what listens be something else than gRPC.
    spoke: AtomicBool,
}

impl Client {
    /// Opens a pipe to the container in `network` (S1).
    pub async fn connect(
        engine: &dyn Engine,
        gateway: &str,
        network: &str,
    ) -> Result<Self, CallError> {
        match gateway::pipe(engine, gateway, network).await {
            Ok(channel) => Ok(Self::new(channel)),
            Err(GatewayError::Role { message, .. }) => Err(CallError::Unreachable {
                reason: shorten(&message),
            }),
            Err(GatewayError::Transport { source, .. }) => Err(CallError::NotGrpc {
                reason: shorten(&innermost(&source)),
            }),
            Err(other) => Err(CallError::Gateway(other)),
        }
    }

    /// Speaks over a channel that is open.
    pub fn new(channel: Channel) -> Self {
        let service = CapabilityClient::new(channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let older = CapabilityServiceClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Self {
            service,
            older,
            dialect: OnceCell::new(),
            spoke: AtomicBool::new(false),
        }
    }

    /// Asks whether tools can be called (W1), in the dialect that the capability speaks (W4).
    pub async fn health(&self, deadline: Duration) -> Result<Health, CallError> {
        within(deadline, async {
            match self.dialect.get() {
                Some(Dialect::Present) => self.present_health().await,
                Some(Dialect::Older) => self.older_health().await,
                None => match self.present_health().await {
                    Err(CallError::Unimplemented { .. }) => match self.older_health().await {
                        Err(CallError::Unimplemented { .. }) => Err(CallError::OtherService),
                        answer => self.decided(Dialect::Older, answer),
                    },
                    answer => self.decided(Dialect::Present, answer),
                },
            }
        })
        .await
    }

    /// What the capability speaks; asks for its health if that is not known yet.
    async fn dialect(&self) -> Result<Dialect, CallError> {
        if self.dialect.get().is_none() {
            self.health(DEFAULT_DEADLINE).await?;
        }
        Ok(self.dialect.get().copied().unwrap_or(Dialect::Present))
    }

    fn decided(
        &self,
        dialect: Dialect,
        answer: Result<Health, CallError>,
    ) -> Result<Health, CallError> {
        if answer.is_ok() {
            // Two checks at once come to the same answer.
            let _ = self.dialect.set(dialect);
        }
        answer
    }

    async fn present_health(&self) -> Result<Health, CallError> {
        let answer = self.service.clone().healthcheck(HealthRequest {}).await;
        let response = self.heard(answer)?;
        Ok(if response.ready {
            Health::Ready
        } else {
            Health::NotReady {
                message: shorten(&response.message),
            }
        })
    }

    async fn older_health(&self) -> Result<Health, CallError> {
        let answer = self.older.clone().health_check(OlderHealthRequest {}).await;
        let response = self.heard(answer)?;
        Ok(if response.healthy {
            Health::Ready
        } else {
            Health::NotReady {
                message: String::new(),
            }
        })
    }

    /// Calls a tool once and gives its result back as it came.
    pub async fn call(&self, call: &Call<'_>) -> Result<Vec<u8>, CallError> {
        within(call.deadline, async {
            match self.dialect().await? {
                Dialect::Present => self.present_call(call).await,
                Dialect::Older => self.older_call(call).await,
            }
        })
        .await
    }

    async fn present_call(&self, call: &Call<'_>) -> Result<Vec<u8>, CallError> {
        let request = timed(call, fits(request(call))?);
        let answer = self.service.clone().invoke(request).await;
        let response = self.heard(answer).map_err(|error| late(call, error))?;
        if response.error.is_empty() {
            Ok(response.result_json)
        } else {
            Err(CallError::Tool {
                message: shorten(&response.error),
            })
        }
    }

    async fn older_call(&self, call: &Call<'_>) -> Result<Vec<u8>, CallError> {
        let request = timed(call, fits(older::request(call)?)?);
        let answer = self.older.clone().invoke(request).await;
        let response = self.heard(answer).map_err(|error| late(call, error))?;
        older::result(response)
    }

    /// An answer, or what its absence means.
    fn heard<T>(&self, answer: Result<tonic::Response<T>, Status>) -> Result<T, CallError> {
        match answer {
            Ok(response) => {
                self.spoke.store(true, Ordering::Relaxed);
                Ok(response.into_inner())
            }
            Err(status) => Err(self.explain(&status)),
        }
    }

    fn explain(&self, status: &Status) -> CallError {
        let message = status.message();
        if status.code() == Code::OutOfRange
            && let Some(bytes) = announced_size(message)
        {
            return CallError::ResultTooLarge {
                bytes: bytes.to_owned(),
                limit: MAX_MESSAGE_BYTES,
            };
        }
        if status.code() == Code::Unimplemented {
            return CallError::Unimplemented {
                message: shorten(message),
            };
        }
        if status.code() == Code::DeadlineExceeded {
            return CallError::Status {
                code: code_name(status.code()),
                message: shorten(message),
            };
        }
        // A status that the client made up has a cause; one that the capability sent has none.
        if std::error::Error::source(status).is_some() {
            let reason = shorten(&innermost(status));
            return if self.spoke.load(Ordering::Relaxed) {
                CallError::Broken { reason }
            } else {
                CallError::NotGrpc { reason }
            };
        }
        CallError::Status {
            code: code_name(status.code()),
            message: shorten(message),
        }
    }
}

/// Gives up at the deadline.
async fn within<T>(
    deadline: Duration,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    tokio::time::timeout(deadline, work)
        .await
        .unwrap_or(Err(CallError::Deadline { deadline }))
}

fn request(call: &Call<'_>) -> InvokeRequest {
    InvokeRequest {
        tool_name: call.tool.to_owned(),
        args_json: to_json(call.args),
        config_json: to_json(call.config.expose()),
        session_id: call.session.to_owned(),
        capability_id: call.capability.to_owned(),
        thread_id: call.thread.to_owned(),
    }
}

/// A request that is too large is never sent (J01).
fn fits<T: Message>(request: T) -> Result<T, CallError> {
    let bytes = request.encoded_len();
    if bytes > MAX_MESSAGE_BYTES {
        return Err(CallError::RequestTooLarge {
            bytes,
            limit: MAX_MESSAGE_BYTES,
        });
    }
    Ok(request)
}

/// The server learns the deadline too, and can stop working for nobody.
fn timed<T>(call: &Call<'_>, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.set_timeout(call.deadline);
    request
}

/// The server may be the first to see that the time is over.
fn late(call: &Call<'_>, error: CallError) -> CallError {
    match error {
        CallError::Status { code, .. } if code == code_name(Code::DeadlineExceeded) => {
            CallError::Deadline {
                deadline: call.deadline,
            }
        }
        other => other,
    }
}

fn to_json(object: &Map<String, Value>) -> Vec<u8> {
    // Displaying a JSON value cannot fail, unlike serializing an arbitrary type.
    Value::from(object.clone()).to_string().into_bytes()
}

/// What the client saw: the texts around it are the library's own structure.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .last()
        .map_or_else(String::new, ToString::to_string)
}

fn announced_size(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("decoded message length too large: found ")?;
    rest.split_once(" bytes").map(|(size, _)| size)
}

fn shorten(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}… ({} bytes in all)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

fn code_name(code: Code) -> String {
    // `Debug` of a code is its name in camel case, which is how the Rust and Go libraries write it.
    format!("{code:?}")
}

#[cfg(test)]
mod tests;
