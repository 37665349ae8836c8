//! Plain HTTP through the gateway: what a connection to one name carries is for that name, request by request (N10).
//!
//! hyper reads what the client sends and writes it anew, so that client, gateway and server cannot read different
//! messages out of the same bytes. Bodies are passed on as they come and are never held.

mod head;
mod tasks;
#[cfg(test)]
mod tests;
mod upstream;

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use super::limits::{BUFFER, HEAD_LIMIT, STREAMS};
use super::reach;
use super::rules::{Host, Reason, Target};
pub(crate) use head::{names, one_host, read_authority, repeated, target_of};
pub(crate) use tasks::Tasks;
pub(crate) use upstream::Upstream;

/// Largest head, of requests and responses.
pub(crate) const HEAD_MAX: usize = 32 * 1024;

/// What is held of a body that one side sends faster than the other takes it.
const BODY_BUFFER: usize = BUFFER;

/// How long a client may take to read that its request was refused.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);

/// A body that is passed on, or our own words.
pub(crate) type Body = Either<Incoming, Full<Bytes>>;

/// Which HTTP a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// HTTP/1.0 or 1.1.
    One,
    /// HTTP/2 without TLS, known beforehand.
    Two,
}

/// Carries requests from `client` to `upstream`, which is connected to `target`, until one of them ends. A request for
/// another host is answered with a refusal, and nothing is carried after it. Dropping the future cuts everything.
pub(crate) async fn forward<C, U>(
    dialect: Dialect,
    target: &Target,
    client: C,
    upstream: U,
) -> Result<(), Reason>
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    U: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    forward_within(HEAD_LIMIT, dialect, target, client, upstream).await
}

async fn forward_within<C, U>(
    head_limit: Duration,
    dialect: Dialect,
    target: &Target,
    client: C,
    upstream: U,
) -> Result<(), Reason>
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    U: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let tasks = Tasks::default();
    let _end = tasks.end_with();
    let upstream = match dialect {
        Dialect::One => Upstream::one(upstream, &tasks, std::future::pending()).await,
        Dialect::Two => Upstream::two(upstream, &tasks).await,
    };
    let upstream = Arc::new(upstream.map_err(|error| Reason::NotHttp(error.to_string()))?);
    let cut = Arc::new(Cut::default());
    let service = service_fn({
        let (target, upstream, cut) = (target.clone(), Arc::clone(&upstream), Arc::clone(&cut));
        move |request: Request<Incoming>| {
            let (target, upstream, cut) = (target.clone(), Arc::clone(&upstream), Arc::clone(&cut));
            async move {
                cut.asked.store(true, Ordering::SeqCst);
                if let Err(reason) = head::check(&target, &request) {
                    let response = refusal(
                        StatusCode::FORBIDDEN,
                        Some(&target),
                        &reason,
                        request.version(),
                    );
                    cut.with(reason);
                    return Ok(response);
                }
                upstream.exchange(request).await
            }
        }
    });
    let ended = upstream.ended();
    let served = match dialect {
        Dialect::One => {
            let connection = server_one(head_limit).serve_connection(TokioIo::new(client), service);
            serve(connection.with_upgrades(), &cut, ended).await
        }
        Dialect::Two => {
            let connection = server_two(&tasks).serve_connection(TokioIo::new(client), service);
            serve(connection, &cut, ended).await
        }
    };
    if let Some(reason) = cut.reason() {
        return Err(reason);
    }
    match served {
        Err(Reason::TooSlow) if cut.asked.load(Ordering::SeqCst) => {}
        served => served?,
    }
    if upstream.has_tunnel() {
        tasks.ended().await;
    }
    Ok(())
}

/// A connection of hyper's server, of either version.
pub(crate) trait Serving: Future<Output = hyper::Result<()>> {
    /// Ends it after what it is at.
    fn shut_down(self: Pin<&mut Self>);
}

impl<I, S, B> Serving for hyper::server::conn::http1::UpgradeableConnection<I, S>
where
    S: hyper::service::HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn shut_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S, B, E> Serving for hyper::server::conn::http2::Connection<I, S, E>
where
    S: hyper::service::HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    E: hyper::rt::bounds::Http2ServerConnExec<S::Future, B>,
{
    fn shut_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Serves until the client ends, or the upstream does, or the connection is cut.
async fn serve(
    connection: impl Serving,
    cut: &Cut,
    upstream_ended: impl Future<Output = ()>,
) -> Result<(), Reason> {
    let mut connection = pin!(connection);
    let result = tokio::select! {
        result = &mut connection => result,
        () = upstream_ended => {
            connection.as_mut().shut_down();
            connection.await
        }
        () = cut.notify.notified() => {
            connection.as_mut().shut_down();
            return tokio::time::timeout(FAREWELL, connection).await.map_or(Ok(()), outcome);
        }
    };
    outcome(result)
}

/// What a connection's end means. A client that goes away in the middle of something is no event.
pub(crate) fn outcome(result: hyper::Result<()>) -> Result<(), Reason> {
    match result {
        Err(error) if error.is_parse() => Err(Reason::NotHttp(error.to_string())),
        Err(error) if error.is_timeout() => Err(Reason::TooSlow),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Why a connection is ended before its time.
#[derive(Debug, Default)]
struct Cut {
    /// Whether anything was asked yet: only then a client that waits is idle, not slow.
    asked: AtomicBool,
    reason: Mutex<Option<Reason>>,
    notify: Notify,
}

impl Cut {
    fn with(&self, reason: Reason) {
        let mut first = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(reason);
        self.notify.notify_one();
    }

    fn reason(&self) -> Option<Reason> {
        self.reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// hyper's server for HTTP/1 within our limits.
pub(crate) fn server_one(head_limit: Duration) -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(head_limit)
        .max_header_size(HEAD_MAX)
        .max_buf_size(HEAD_MAX)
        .preserve_header_case(true)
        .auto_date_header(false)
        .half_close(true);
    builder
}

fn server_two(tasks: &Tasks) -> hyper::server::conn::http2::Builder<Tasks> {
    let mut builder = hyper::server::conn::http2::Builder::new(tasks.clone());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS as u32)
        .max_header_list_size(HEAD_MAX as u32)
        .initial_stream_window_size(BODY_BUFFER as u32)
        .initial_connection_window_size(2 * BODY_BUFFER as u32)
        .max_send_buf_size(BODY_BUFFER)
        .auto_date_header(false);
    builder
}

/// Tells a client why it gets nothing, and the line in the manifest that would allow it.
pub(crate) fn refusal(
    status: StatusCode,
    target: Option<&Target>,
    reason: &Reason,
    version: Version,
) -> Response<Body> {
    let what = target.map_or_else(|| "this request".to_owned(), ToString::to_string);
    let mut text = format!("selu does not carry {what}: {reason}\n");
    // No list opens an address that is never dialled.
    let can_be_listed = |target: &&Target| match target.host {
        Host::Name(_) => true,
        Host::Literal(address) => reach::kind(address) == reach::Kind::Global,
    };
    if let (Some(target), Reason::NotListed | Reason::PortNotListed) =
        (target.filter(can_be_listed), reason)
    {
        text.push_str(&format!(
            "to allow it, write into the capability's manifest.yaml:\nnetwork:\n  mode: allowlist\n  hosts:\n    - \
             \"{target}\"\n"
        ));
    }
    let mut response = Response::new(Either::Right(Full::new(Bytes::from(text))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert("x-selu-refused", HeaderValue::from_static(reason.code()));
    if version < Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// What a service of ours fails with where nothing can be answered: the client's connection ends then.
pub(crate) type Broken = io::Error;
