//! One connection to a server, and requests on it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use http_body_util::Either;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, oneshot, watch};

use super::tasks::Tasks;
use super::{BODY_BUFFER, Body, Broken, HEAD_MAX, STREAMS, head, refusal};

/// A connection that is driven by a task of its own.
#[derive(Debug)]
pub(crate) struct Upstream {
    sender: Sender,
    open: watch::Receiver<()>,
    tunnel: Tunnel,
}

#[derive(Debug)]
enum Sender {
    /// One request after the other.
    One(Mutex<http1::SendRequest<Incoming>>),
    /// Many at a time.
    Two(http2::SendRequest<Incoming>),
}

/// What the connection becomes after its last request, if anything.
#[derive(Debug, Default)]
struct Tunnel {
    /// It may become one, or is one.
    likely: Arc<AtomicBool>,
    /// Tells the connection's task which ends belong together.
    ends: std::sync::Mutex<Option<oneshot::Sender<(OnUpgrade, OnUpgrade)>>>,
}

impl Upstream {
    /// Speaks HTTP/1.1 on a connection, until it ends or `until` does.
    pub(crate) async fn one<U>(
        upstream: U,
        tasks: &Tasks,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> hyper::Result<Self>
    where
        U: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::Builder::new()
            .max_header_size(HEAD_MAX)
            .max_buf_size(HEAD_MAX)
            .preserve_header_case(true)
            .handshake(TokioIo::new(upstream))
            .await?;
        let (ended, open) = watch::channel(());
        let (ends, tunnel_of) = oneshot::channel();
        let likely = Arc::new(AtomicBool::new(false));
        let tunnel = Tunnel {
            likely: Arc::clone(&likely),
            ends: std::sync::Mutex::new(Some(ends)),
        };
        let driven = async move {
            // Why it ended, the request that was on its way is told.
            let _ = connection.with_upgrades().await;
            drop(ended);
            if likely.load(Ordering::SeqCst)
                && let Ok((client, server)) = tunnel_of.await
                && let (Ok(client), Ok(server)) = tokio::join!(client, server)
            {
                let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
                // Whichever side breaks it off: it is over.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        };
        tasks.spawn(async move {
            tokio::select! {
                () = until => {}
                () = driven => {}
            }
        });
        Ok(Self {
            sender: Sender::One(Mutex::new(sender)),
            open,
            tunnel,
        })
    }

    /// Speaks HTTP/2 on a connection.
    pub(crate) async fn two<U>(upstream: U, tasks: &Tasks) -> hyper::Result<Self>
    where
        U: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http2::Builder::new(tasks.clone())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS as u32)
            .max_header_list_size(HEAD_MAX as u32)
            .initial_stream_window_size(BODY_BUFFER as u32)
            .initial_connection_window_size(2 * BODY_BUFFER as u32)
            .max_send_buf_size(BODY_BUFFER)
            .handshake(TokioIo::new(upstream))
            .await?;
        let (ended, open) = watch::channel(());
        tasks.spawn(async move {
            let _ = connection.await;
            drop(ended);
        });
        Ok(Self {
            sender: Sender::Two(sender),
            open,
            tunnel: Tunnel::default(),
        })
    }

    /// When the server has ended the connection. Never, once it has become a tunnel.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut open = self.open.clone();
        let tunnel = Arc::clone(&self.tunnel.likely);
        async move {
            while open.changed().await.is_ok() {}
            if tunnel.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether it carries something else than requests by now.
    pub(crate) fn has_tunnel(&self) -> bool {
        self.tunnel.likely.load(Ordering::SeqCst)
    }

    /// Whether another request can be sent on it.
    pub(crate) fn is_open(&self) -> bool {
        self.open.has_changed().is_ok() && !self.has_tunnel()
    }

    /// Passes a request on that was found to be for this server, and its answer back.
    pub(crate) async fn exchange(
        &self,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, Broken> {
        let version = request.version();
        let upgrade = head::asks_for_web_socket(&request);
        if let Err(reason) = head::strip(request.headers_mut(), upgrade) {
            return Ok(refusal(StatusCode::NOT_IMPLEMENTED, None, &reason, version));
        }
        let mut response = match &self.sender {
            Sender::Two(sender) => {
                let mut sender = sender.clone();
                sender.ready().await.map_err(Broken::other)?;
                sender.send_request(request).await.map_err(Broken::other)?
            }
            Sender::One(sender) => {
                let client = upgrade.then(|| hyper::upgrade::on(&mut request));
                *request.version_mut() = Version::HTTP_11;
                *request.uri_mut() = origin_form(request.uri());
                // Before it can have happened: the task that drives the connection ends with it.
                self.tunnel.likely.store(upgrade, Ordering::SeqCst);
                let mut sender = sender.lock().await;
                sender.ready().await.map_err(Broken::other)?;
                let mut response = sender.send_request(request).await.map_err(Broken::other)?;
                let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
                self.tunnel.likely.store(switches, Ordering::SeqCst);
                if switches {
                    let to_web_socket = head::upgrades_to_web_socket(response.headers());
                    let Some(client) = client.filter(|_| to_web_socket) else {
                        return Err(Broken::other(
                            "the server switched to a protocol that nobody asked for",
                        ));
                    };
                    let ends = self.tunnel.ends.lock();
                    if let Some(ends) = ends.unwrap_or_else(PoisonError::into_inner).take() {
                        // A task that has ended meanwhile needs them no more.
                        let _ = ends.send((client, hyper::upgrade::on(&mut response)));
                    }
                }
                response
            }
        };
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if let Err(reason) = head::strip(response.headers_mut(), switches) {
            return Ok(refusal(StatusCode::BAD_GATEWAY, None, &reason, version));
        }
        if version < Version::HTTP_2 {
            *response.version_mut() = Version::HTTP_11;
        }
        Ok(response.map(Either::Left))
    }
}

/// The path, whatever the form of the request was: the host is in its header.
fn origin_form(uri: &Uri) -> Uri {
    match uri.path_and_query() {
        Some(path) => Uri::from(path.clone()),
        None => Uri::from_static("/"),
    }
}
