//! The HTTP proxy of one network: for clients that want one, and for addresses, which nothing else reaches (N4).
//!
//! It knows who asks by the device, so there are no tokens; it goes by the same rules, dials in the same way and looks
//! into tunnels as into any other connection (N10). What it refuses it answers in words.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::Scheme;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::NetworkContext;
use super::carry::Passage;
use super::http::{self, Body, Broken, Dialect, FAREWELL, Tasks, Upstream};
use super::limits::{HEAD_LIMIT, IDLE_LIMIT};
use super::metered::Metered;
use super::rules::{Reason, Target};
use super::splice::Activity;
use crate::egress::record::{Event, Phase, Via};

/// What a client is told for which there is no place.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\nx-selu-refused: \
    too-many-connections\r\n\r\n";

/// One client's requests, and the tunnel that may come of them.
pub(super) async fn converse(context: Arc<NetworkContext>, client: TcpStream) {
    // Not even a request is read without a place: its buffers are what the place stands for.
    let place = match context.limits.admit_http(Dialect::One) {
        Ok(place) => place,
        Err(reason) => {
            record(&context, None, &reason);
            return turn_away(client).await;
        }
    };
    let tasks = Tasks::default();
    let _end = tasks.end_with();
    let proxy = Arc::new(Proxy {
        context,
        tasks,
        upstream: tokio::sync::Mutex::default(),
        tunnel: Mutex::default(),
    });
    let service = service_fn({
        let proxy = Arc::clone(&proxy);
        move |request| {
            let proxy = Arc::clone(&proxy);
            async move { proxy.answer(request).await }
        }
    });
    let served = http::server_one(HEAD_LIMIT)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades()
        .await;
    // A client that waits between two requests is idle, not slow.
    if let Err(reason @ Reason::NotHttp(_)) = http::outcome(served) {
        record(&proxy.context, None, &reason);
    }
    let kept = proxy.upstream.lock().await.take();
    let tunnel = proxy.lock_tunnel().take();
    if let Some((passage, upgrade)) = tunnel {
        let upgraded = tokio::select! {
            biased;
            () = passage.ticket.cut() => return passage.ticket.because(Reason::Revoked),
            upgraded = upgrade => upgraded,
        };
        // A client that has gone before the answer reached it leaves nothing to be carried.
        if let Ok(upgraded) = upgraded
            && let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>()
        {
            // What passes now is no request any more.
            drop((kept, place));
            passage.carry(parts.io.into_inner(), parts.read_buf).await;
        }
    } else if kept.is_some_and(|(_, upstream)| upstream.has_tunnel()) {
        proxy.tasks.ended().await;
    }
}

/// Says why, and reads on until the client has read it: what is closed with something unread is reset at once.
async fn turn_away(mut client: TcpStream) {
    let farewell = async {
        if client.write_all(BUSY).await.is_ok() && client.shutdown().await.is_ok() {
            while client.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
        }
    };
    // Who does not read it is gone as well.
    let _ = timeout(FAREWELL, farewell).await;
}

struct Proxy {
    context: Arc<NetworkContext>,
    tasks: Tasks,
    /// Where the last plain request went.
    upstream: tokio::sync::Mutex<Option<(Target, Arc<Upstream>)>>,
    tunnel: Mutex<Option<(Passage, OnUpgrade)>>,
}

impl Proxy {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Broken> {
        let version = request.version();
        let answered = if request.method() == Method::CONNECT {
            self.connect(request).await
        } else {
            self.pass(request).await
        };
        Ok(answered.unwrap_or_else(|Refused(status, target, reason)| {
            http::refusal(status, target.as_ref(), &reason, version)
        }))
    }

    /// Opens a tunnel.
    async fn connect(&self, mut request: Request<Incoming>) -> Result<Response<Body>, Refused> {
        let authority = request.uri().authority();
        let Some(target) = authority.and_then(|authority| http::target_of(authority, None)) else {
            return Err(self.malformed("CONNECT takes host:port"));
        };
        // Clients send the header with a port, without it, or not at all.
        match http::one_host(request.headers()) {
            Ok(None) => {}
            Ok(Some(host)) => {
                http::names(&target, host).map_err(|reason| self.confused(&target, reason))?;
            }
            Err(reason) => return Err(self.confused(&target, reason)),
        }
        if !request.body().is_end_stream() {
            return Err(self.malformed("CONNECT has no body"));
        }
        let passage = self.open(&target).await?;
        let upgrade = hyper::upgrade::on(&mut request);
        *self.lock_tunnel() = Some((passage, upgrade));
        Ok(Response::new(Either::Right(Full::new(Bytes::new()))))
    }

    /// Passes a plain request on.
    async fn pass(&self, mut request: Request<Incoming>) -> Result<Response<Body>, Refused> {
        let uri = request.uri();
        let Some(authority) = uri.authority() else {
            return Err(
                self.malformed("this is a proxy, and takes CONNECT host:port or GET http://host/…")
            );
        };
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(self.malformed("only http:// is passed on; the rest takes CONNECT"));
        }
        let Some(target) = http::target_of(authority, Some(80)) else {
            return Err(self.malformed("its host is neither a name nor an address"));
        };
        match http::one_host(request.headers()) {
            // A header without a port means 80, as the first line does.
            Ok(Some(host)) => {
                let same = http::read_authority(host).is_some_and(|(host, port)| {
                    host == target.host && port.unwrap_or(80) == target.port
                });
                if !same {
                    let reason = Reason::HostMismatch(http::repeated(host));
                    return Err(self.confused(&target, reason));
                }
            }
            Ok(None) if request.version() == Version::HTTP_10 => {
                let text = match target.port {
                    80 => target.host.to_string(),
                    _ => target.to_string(),
                };
                let Ok(host) = HeaderValue::from_str(&text) else {
                    return Err(self.malformed("its host is neither a name nor an address"));
                };
                request.headers_mut().insert(HOST, host);
            }
            Ok(None) => return Err(self.confused(&target, Reason::NoHost)),
            Err(reason) => return Err(self.confused(&target, reason)),
        }
        let upstream = self.upstream(&target).await?;
        upstream.exchange(request).await.map_err(|error| {
            let reason = Reason::ConnectFailed(error.to_string());
            Refused(StatusCode::BAD_GATEWAY, Some(target), reason)
        })
    }

    /// The connection that is there, if it goes to the target and may still be used, or a new one.
    async fn upstream(&self, target: &Target) -> Result<Arc<Upstream>, Refused> {
        let mut kept = self.upstream.lock().await;
        // What the policy forbids by now was cut, and is not open.
        if let Some((to, upstream)) = kept.as_ref()
            && to == target
            && upstream.is_open()
        {
            return Ok(Arc::clone(upstream));
        }
        *kept = None;
        let Passage { ticket, upstream } = self.open(target).await?;
        let activity = Arc::new(Activity::new());
        let stream = Metered::new(Arc::new(upstream), ticket.meter(&activity));
        let until = async move {
            let reason = tokio::select! {
                biased;
                () = ticket.cut() => Reason::Revoked,
                () = activity.idle(IDLE_LIMIT) => Reason::Idle,
            };
            ticket.because(reason);
        };
        let upstream = Upstream::one(stream, &self.tasks, until).await;
        let upstream = Arc::new(upstream.map_err(|error| {
            let reason = Reason::ConnectFailed(error.to_string());
            Refused(StatusCode::BAD_GATEWAY, Some(target.clone()), reason)
        })?);
        *kept = Some((target.clone(), Arc::clone(&upstream)));
        Ok(upstream)
    }

    /// Checks and dials; a refusal is recorded there.
    async fn open(&self, target: &Target) -> Result<Passage, Refused> {
        Passage::open(&self.context, target, Via::Proxy)
            .await
            .map_err(|reason| Refused(status(&reason), Some(target.clone()), reason))
    }

    /// What names two hosts is refused whatever the rules say of each.
    fn confused(&self, target: &Target, reason: Reason) -> Refused {
        record(&self.context, Some(target), &reason);
        Refused(StatusCode::BAD_REQUEST, Some(target.clone()), reason)
    }

    fn malformed(&self, why: &str) -> Refused {
        let reason = Reason::NotHttp(why.to_owned());
        record(&self.context, None, &reason);
        Refused(StatusCode::BAD_REQUEST, None, reason)
    }

    fn lock_tunnel(&self) -> std::sync::MutexGuard<'_, Option<(Passage, OnUpgrade)>> {
        self.tunnel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that gets an answer of ours.
struct Refused(StatusCode, Option<Target>, Reason);

fn status(reason: &Reason) -> StatusCode {
    match reason {
        Reason::TimedOut(_) => StatusCode::GATEWAY_TIMEOUT,
        Reason::TooManyConnections => StatusCode::SERVICE_UNAVAILABLE,
        reason if reason.is_failure() => StatusCode::BAD_GATEWAY,
        _ => StatusCode::FORBIDDEN,
    }
}

fn record(context: &NetworkContext, target: Option<&Target>, reason: &Reason) {
    match target {
        Some(target) => context.denied(Via::Proxy, target, reason),
        None => {
            let mut event = Event::new(
                &context.instance,
                &context.network,
                Via::Proxy,
                Phase::Denied,
            );
            event.reason = Some(reason.into());
            context.recorder.record(event);
        }
    }
}

#[cfg(test)]
mod tests;
