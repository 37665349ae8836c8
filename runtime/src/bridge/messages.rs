//! JSON-RPC with a server, however its bytes come: what was asked, what is answered, and noise that ends nothing (P4).
//!
//! Answers to the bridge's own requests are handed on as plain JSON, but for the answer to `initialize`: rmcp's types would
//! drop fields that they do not know, and guess between shapes.

mod answer;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{
    CancelledNotification, ClientNotification, ClientRequest, CustomResult, ErrorCode, ErrorData,
    InitializeResult, JsonRpcError, JsonRpcMessage, JsonRpcResponse, JsonRpcVersion2_0,
    ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::Value;

use super::said::Said;
use answer::Envelope;

pub(super) use answer::id_in;

/// Marks errors that the transport makes in a server's place; no server's code has this value.
pub(super) const NOT_THE_SERVERS: ErrorCode = ErrorCode(i32::MIN);

/// What the bridge asked and has no answer to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Initialize,
    Other,
}

/// Requests of the server's that may be without an answer at once. Each waits in memory until the server reads.
const MOST_REQUESTS: usize = 64;

/// The conversation with one MCP server.
pub(super) struct Messages {
    pending: HashMap<i64, Asked>,
    /// The server's requests whose answers are not written yet.
    requests: Arc<AtomicUsize>,
    ready: VecDeque<RxJsonRpcMessage<RoleClient>>,
    said: Arc<Said>,
    /// What its log lines call the place where documents come from.
    from: &'static str,
    /// The version that the server answered `initialize` with.
    version: Option<ProtocolVersion>,
}

/// What goes out, as far as a transport must know it.
pub(super) enum Sent {
    /// A request of ours.
    Request(i64),
    /// Nobody waits for the answer to this request any more.
    Cancelled(i64),
    /// The answer to a request of the server's. Counted as given when this goes.
    Answer(#[expect(dead_code, reason = "counts when it goes")] Answered),
    /// Anything else.
    Other,
}

impl Messages {
    pub(super) fn new(said: Arc<Said>, from: &'static str) -> Self {
        Self {
            pending: HashMap::new(),
            requests: Arc::default(),
            ready: VecDeque::new(),
            said,
            from,
            version: None,
        }
    }

    /// The protocol version of the answer to `initialize`, once that came.
    pub(super) fn version(&self) -> Option<&ProtocolVersion> {
        self.version.as_ref()
    }

    fn noise(&self, what: &str, bytes: &[u8]) {
        self.said.line(&format!("{}, {what}", self.from), bytes);
    }

    /// Remembers what goes out.
    pub(super) fn sends(&mut self, item: &TxJsonRpcMessage<RoleClient>) -> Sent {
        match item {
            JsonRpcMessage::Request(request) => {
                let asked = match request.request {
                    ClientRequest::InitializeRequest(_) => Asked::Initialize,
                    _ => Asked::Other,
                };
                let RequestId::Number(id) = request.id else {
                    return Sent::Other;
                };
                self.pending.insert(id, asked);
                Sent::Request(id)
            }
            JsonRpcMessage::Notification(notification) => {
                let ClientNotification::CancelledNotification(CancelledNotification {
                    params, ..
                }) = &notification.notification
                else {
                    return Sent::Other;
                };
                let Some(RequestId::Number(id)) = params.request_id else {
                    return Sent::Other;
                };
                self.pending.remove(&id);
                Sent::Cancelled(id)
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                Sent::Answer(Answered(Arc::clone(&self.requests)))
            }
        }
    }

    /// The next message for rmcp.
    pub(super) fn next(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.ready.pop_front()
    }

    /// Whether a request has no answer yet.
    pub(super) fn awaits(&self, id: i64) -> bool {
        self.pending.contains_key(&id)
    }

    /// Takes one document of the server's.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        let bytes = bytes.trim_ascii();
        match bytes.first() {
            None => {}
            Some(b'{') => match serde_json::from_slice(bytes) {
                Ok(envelope) => self.message(envelope, bytes),
                Err(error) => {
                    let reason = format!("the MCP server's answer is not valid JSON: {error}");
                    match answer::id_in(bytes, bytes).filter(|id| self.pending.contains_key(id)) {
                        Some(id) => self.fail(Some(id), &reason),
                        None => self.noise("not JSON", bytes),
                    }
                }
            },
            // Versions of 2025-03-26 allowed several messages in one line.
            Some(b'[') => match serde_json::from_slice::<Vec<Value>>(bytes) {
                Ok(messages) => {
                    for message in messages {
                        self.read(message.to_string().as_bytes());
                    }
                }
                Err(_) => self.noise("not JSON", bytes),
            },
            Some(_) => self.noise("not JSON", bytes),
        }
    }

    fn message(&mut self, envelope: Envelope, bytes: &[u8]) {
        let Envelope {
            id,
            method,
            params,
            result,
            error,
        } = envelope;
        match (method, result, error) {
            (Some(_), None, None) if id.is_some() => match serde_json::from_slice(bytes) {
                Ok(_) if self.requests.load(Ordering::SeqCst) >= MOST_REQUESTS => {
                    self.noise("too many requests", bytes);
                }
                Ok(request) => {
                    self.requests.fetch_add(1, Ordering::SeqCst);
                    self.ready.push_back(request);
                }
                Err(_) => self.noise("not MCP", bytes),
            },
            (Some(method), None, None) => self.notification(&method, params.as_ref()),
            (None, Some(result), None) => {
                let Some((id, asked)) = self.answered(id.as_ref()) else {
                    return;
                };
                let result = match asked {
                    Asked::Other => Ok(ServerResult::CustomResult(CustomResult(result))),
                    Asked::Initialize => {
                        serde_json::from_value::<InitializeResult>(result).map(|result| {
                            self.version = Some(result.protocol_version.clone());
                            ServerResult::InitializeResult(result)
                        })
                    }
                };
                self.ready.push_back(match result {
                    Ok(result) => JsonRpcMessage::Response(JsonRpcResponse {
                        jsonrpc: JsonRpcVersion2_0,
                        id,
                        result,
                    }),
                    Err(error) => own_error(id, format!("its answer is not MCP: {error}")),
                });
            }
            (None, None, Some(error)) => {
                if id.as_ref().is_none_or(Value::is_null) {
                    self.noise("an error of no request", bytes);
                } else if let Some((id, _)) = self.answered(id.as_ref()) {
                    let error = answer::error_data(error);
                    self.ready
                        .push_back(JsonRpcMessage::Error(JsonRpcError::new(Some(id), error)));
                }
            }
            _ => self.noise("not MCP", bytes),
        }
    }

    /// The request that an answer belongs to. What nobody waits for was given up, or is invented.
    fn answered(&mut self, id: Option<&Value>) -> Option<(RequestId, Asked)> {
        let id = answer::number(id?)?;
        let asked = self.pending.remove(&id)?;
        Some((RequestId::Number(id), asked))
    }

    /// Nothing waits for a notification; two kinds are worth a line of the log.
    fn notification(&self, method: &str, params: Option<&Value>) {
        match method {
            "notifications/tools/list_changed" => self.said.say(
                "the MCP server says that its list of tools changed; the next discovery shows it",
            ),
            "notifications/message" => {
                let data = params.and_then(|params| params.get("data"));
                let text = match data {
                    Some(Value::String(text)) => text.clone(),
                    Some(data) => data.to_string(),
                    None => String::new(),
                };
                self.said.line("message", text.as_bytes());
            }
            _ => {}
        }
    }

    /// Answers a request in the server's place, or all that are open where nobody can tell which was meant.
    pub(super) fn fail(&mut self, id: Option<i64>, reason: &str) {
        self.said.say(reason);
        let ids: Vec<i64> = match id.filter(|id| self.awaits(*id)) {
            Some(id) => {
                self.pending.remove(&id);
                vec![id]
            }
            None => self.pending.drain().map(|(id, _)| id).collect(),
        };
        for id in ids {
            self.ready
                .push_back(own_error(RequestId::Number(id), reason.to_owned()));
        }
    }
}

/// Counts a request of the server's as answered once its answer is written, or never will be.
pub(super) struct Answered(Arc<AtomicUsize>);

impl Drop for Answered {
    fn drop(&mut self) {
        // Only what was counted is answered.
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| {
                count.checked_sub(1)
            });
    }
}

fn own_error(id: RequestId, message: String) -> RxJsonRpcMessage<RoleClient> {
    let error = ErrorData::new(NOT_THE_SERVERS, message, None);
    JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))
}
