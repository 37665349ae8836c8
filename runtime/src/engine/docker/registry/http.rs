//! One question over HTTP/1.1, with TLS trusted as this machine trusts it.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT,
};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// To get through: a network that swallows packets must not hold up a plan for long, the engine is asked next.
const CONNECT: Duration = Duration::from_secs(5);

/// For the whole answer.
const ANSWER: Duration = Duration::from_secs(20);

/// Manifests and configurations are smaller by far.
const BODY: usize = 4 << 20;

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("{at} cannot be reached: {why}")]
    Unreached { at: String, why: String },
    #[error("{at} has no TLS that is trusted here: {why}")]
    Tls { at: String, why: String },
    #[error("{at} does not answer as HTTP does: {why}")]
    Broken { at: String, why: String },
}

/// What is asked.
pub(super) struct Question<'a> {
    pub(super) method: Method,
    pub(super) at: Uri,
    pub(super) accept: &'a str,
    pub(super) authorization: Option<HeaderValue>,
    /// A form to post.
    pub(super) form: Option<String>,
}

/// What came back.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    /// A status and nothing else.
    pub(super) fn bare(status: StatusCode) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }
}

/// Asks, on a connection of its own.
pub(super) async fn send(question: Question<'_>) -> Result<Answer, HttpError> {
    let place = question
        .at
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    let unreached = |why: String| HttpError::Unreached {
        at: place.clone(),
        why,
    };
    let host = question.at.host().unwrap_or_default();
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let tls = question.at.scheme_str() == Some("https");
    let port = question.at.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let connecting = tokio::time::timeout(CONNECT, TcpStream::connect((host.as_str(), port)));
    let stream = match connecting.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(unreached(error.to_string())),
        Err(_) => {
            return Err(unreached(format!(
                "no answer within {} s",
                CONNECT.as_secs()
            )));
        }
    };
    let answering = async {
        if !tls {
            return exchange(stream, question, &place).await;
        }
        let refused = |why: String| HttpError::Tls {
            at: place.clone(),
            why,
        };
        let connector = crate::trust::connector().map_err(refused)?;
        let name = ServerName::try_from(host).map_err(|error| refused(error.to_string()))?;
        let handshake = connector.connect(name, stream).await;
        let stream = handshake.map_err(|error| refused(error.to_string()))?;
        exchange(stream, question, &place).await
    };
    match tokio::time::timeout(ANSWER, answering).await {
        Ok(answer) => answer,
        Err(_) => Err(unreached(format!(
            "no answer within {} s",
            ANSWER.as_secs()
        ))),
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    question: Question<'_>,
    place: &str,
) -> Result<Answer, HttpError> {
    let broken = |why: &dyn std::error::Error| HttpError::Broken {
        at: place.to_owned(),
        why: crate::chain::chain(why),
    };
    let path = question
        .at
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let mut request = Request::builder()
        .method(question.method)
        .uri(path)
        .header(HOST, place)
        .header(USER_AGENT, concat!("selu/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, question.accept);
    if let Some(value) = question.authorization {
        request = request.header(AUTHORIZATION, value);
    }
    if question.form.is_some() {
        request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    let body = Full::new(Bytes::from(question.form.unwrap_or_default()));
    let request = request.body(body).map_err(|error| broken(&error))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(&error))?;
    let carrying = tokio::spawn(connection);
    let answer = async {
        let answer = sender
            .send_request(request)
            .await
            .map_err(|error| broken(&error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, BODY).collect().await;
        let body = body.map_err(|error| broken(&io::Error::other(error)))?;
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    }
    .await;
    carrying.abort();
    answer
}
