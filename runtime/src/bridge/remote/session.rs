//! Requests to an MCP server by HTTP/1.1, and their answers: one host, bounded bodies, no foreign redirect.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{
    ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use selu_compiler::diag::shown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::bridge::stdio::line::LONGEST;
use crate::{chain, trust};

/// To get through to the server, TLS included.
const CONNECT: Duration = Duration::from_secs(10);

/// Redirects within the host that are followed.
const REDIRECTS: usize = 3;

/// Of a refusal's body, what is read and what is told.
const REFUSAL: usize = 64 * 1024;
const REFUSAL_SHOWN: usize = 300;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// A session with an MCP server.
pub(super) struct Session {
    url: Uri,
    /// Authority of the URL, as it stands there.
    place: String,
    tls: Option<TlsConnector>,
    headers: HeaderMap,
    /// Credentials that headers want and that have no value: the likely reason for a refusal.
    missing: Vec<String>,
    id: OnceLock<HeaderValue>,
    version: OnceLock<HeaderValue>,
    /// Connections that were used.
    connections: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

/// Why there is no answer.
pub(super) struct Failure {
    pub(super) reason: String,
    /// The server does not know the session any more.
    pub(super) lost: bool,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self {
            reason,
            lost: false,
        }
    }
}

impl Session {
    pub(super) fn new(url: Uri, headers: HeaderMap, missing: Vec<String>) -> Result<Self, String> {
        let tls = match url.scheme_str() {
            Some("https") => Some(trust::connector()?),
            _ => None,
        };
        Ok(Self {
            place: url.authority().map(ToString::to_string).unwrap_or_default(),
            url,
            tls,
            headers,
            missing,
            id: OnceLock::new(),
            version: OnceLock::new(),
            connections: Mutex::default(),
        })
    }

    /// From here on, requests say which version is spoken.
    pub(super) fn speaks(&self, version: &str) {
        if let Ok(version) = HeaderValue::from_str(version) {
            let _ = self.version.set(version);
        }
    }

    /// Sends a message. The answer's status is one of success.
    pub(super) async fn post(&self, message: Bytes) -> Result<Response<Incoming>, Failure> {
        let answer = self.ask(Method::POST, message, None).await?;
        if let Some(id) = answer.headers().get(SESSION) {
            let mut id = id.clone();
            id.set_sensitive(true);
            let _ = self.id.set(id);
        }
        Ok(answer)
    }

    /// Takes a stream up again after its last event.
    pub(super) async fn resume(&self, last: HeaderValue) -> Result<Response<Incoming>, Failure> {
        self.ask(Method::GET, Bytes::new(), Some(last)).await
    }

    /// Tells the server that the session ends, where there is one.
    pub(super) async fn close(&self) {
        if self.id.get().is_some() {
            let _ = self.ask(Method::DELETE, Bytes::new(), None).await;
        }
    }

    async fn ask(
        &self,
        method: Method,
        body: Bytes,
        last: Option<HeaderValue>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut path = self
            .url
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned();
        for _ in 0..=REDIRECTS {
            let request = self.request(&method, &path, body.clone(), last.clone());
            let answer = self.send(request?).await?;
            if !answer.status().is_redirection() {
                return self.accepted(answer).await;
            }
            path = self.followed(&answer)?;
        }
        Err(format!("the MCP server at {} redirects without an end", self.place).into())
    }

    fn request(
        &self,
        method: &Method,
        path: &str,
        body: Bytes,
        last: Option<HeaderValue>,
    ) -> Result<Request<Full<Bytes>>, String> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(Full::new(body));
        let mut request = request.map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        let host = HeaderValue::from_str(&self.place).map_err(|error| error.to_string())?;
        headers.insert(HOST, host);
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static("selu-mcp-bridge/1"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static(if *method == Method::GET {
                "text/event-stream"
            } else {
                "application/json, text/event-stream"
            }),
        );
        if *method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let known = [
            (SESSION, self.id.get().cloned()),
            (VERSION, self.version.get().cloned()),
            (LAST_EVENT, last),
        ];
        for (name, value) in known {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        Ok(request)
    }

    /// On a connection that is there, if one is free. One that ended in the meantime has sent nothing: then on a new one.
    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
        loop {
            let (mut sender, fresh) = match self.free() {
                Some(sender) => (sender, false),
                None => (self.connect().await?, true),
            };
            match sender.try_send_request(request).await {
                Ok(answer) => {
                    self.connections().push(sender);
                    return Ok(answer);
                }
                Err(mut error) => match error.take_message() {
                    Some(again) if !fresh => request = again,
                    _ => {
                        return Err(format!(
                            "the MCP server at {} does not answer as HTTP does: {}",
                            self.place,
                            chain(&error.into_error())
                        ));
                    }
                },
            }
        }
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<SendRequest<Full<Bytes>>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut connections = self.connections();
        connections.retain(|sender| !sender.is_closed());
        let free = connections.iter().position(SendRequest::is_ready)?;
        Some(connections.swap_remove(free))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let host = self.url.host().unwrap_or_default();
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let port = if self.tls.is_some() { 443 } else { 80 };
        let port = self.url.port_u16().unwrap_or(port);
        let unreached = |why: String| {
            format!(
                "the MCP server at {} cannot be reached: {why}; its host and port must be in the manifest's network rules",
                self.place
            )
        };
        let connecting = async {
            let stream = TcpStream::connect((host.as_str(), port))
                .await
                .map_err(|error| unreached(error.to_string()))?;
            // Requests are small; waiting for more to send with them costs 40 ms.
            let _ = stream.set_nodelay(true);
            let Some(tls) = &self.tls else {
                return sender(stream).await;
            };
            let untrusted = |why: String| {
                format!(
                    "the MCP server at {} has no TLS that is trusted here: {why}",
                    self.place
                )
            };
            let name =
                ServerName::try_from(host.clone()).map_err(|error| untrusted(error.to_string()))?;
            let stream = tls.connect(name, stream).await;
            sender(stream.map_err(|error| untrusted(error.to_string()))?).await
        };
        match timeout(CONNECT, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(unreached(format!(
                "no answer within {} s",
                CONNECT.as_secs()
            ))),
        }
    }

    /// Where a redirect leads, within the host and with the request as it was.
    fn followed(&self, answer: &Response<Incoming>) -> Result<String, String> {
        let status = answer.status();
        let to = answer
            .headers()
            .get(LOCATION)
            .and_then(|to| to.to_str().ok());
        let refused = |to: &str| {
            format!(
                "the MCP server at {} redirects ({}) to {}; credentials go nowhere but to the URL's own host, so nothing is sent there. \
                 If that is the server's place, write it as --url",
                self.place,
                status.as_u16(),
                shown(to)
            )
        };
        let Some(to) = to else {
            return Err(refused("nowhere"));
        };
        let kept = matches!(
            status,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let target: Uri = to.parse().map_err(|_| refused(to))?;
        let same = match (target.scheme_str(), target.authority()) {
            (None, None) => to.starts_with('/'),
            (scheme, authority) => {
                scheme == self.url.scheme_str() && authority == self.url.authority()
            }
        };
        if !kept || !same {
            // A query may hold what a log should not.
            return Err(refused(to.split('?').next().unwrap_or_default()));
        }
        Ok(target
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned())
    }

    /// An answer of success, or the refusal in the server's words.
    async fn accepted(&self, answer: Response<Incoming>) -> Result<Response<Incoming>, Failure> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        if status == StatusCode::NOT_FOUND && self.id.get().is_some() {
            return Err(Failure {
                reason: "the MCP server does not know the session any more; the next call opens a new one"
                    .to_owned(),
                lost: true,
            });
        }
        let body = Limited::new(answer.into_body(), REFUSAL).collect().await;
        let words = body.map_or_else(|_| String::new(), |body| words(&body.to_bytes()));
        let hint = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if !self.missing.is_empty() => {
                format!("; without a value is {}", self.missing.join(", "))
            }
            _ => String::new(),
        };
        Err(format!("the MCP server refused with HTTP status {status}{hint}{words}").into())
    }
}

/// Speaks HTTP on a stream; the connection lives as long as somebody may ask on it.
async fn sender(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<SendRequest<Full<Bytes>>, String> {
    let (sender, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(|error| chain(&error))?;
    tokio::spawn(connection);
    Ok(sender)
}

/// What a refusal says: the message of an error of JSON-RPC, or else the text.
fn words(body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = json
        .as_ref()
        .and_then(|json| json.pointer("/error/message"));
    let text = match message.and_then(serde_json::Value::as_str) {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).into_owned(),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return String::new();
    }
    let mut shown: String = text.chars().take(REFUSAL_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!(": {shown}")
}

/// A whole body, if it is no longer than a message may be.
pub(super) async fn whole(body: Incoming) -> Result<Bytes, String> {
    match Limited::new(body, LONGEST).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(too_long()),
        Err(error) => Err(format!("the MCP server's answer broke off: {error}")),
    }
}

pub(super) fn too_long() -> String {
    format!("the MCP server sent a message of more than {LONGEST} bytes, which is the limit")
}
