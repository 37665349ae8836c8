//! The sockets of one network, each bound to its device before its address: a packet of another network never gets as far
//! as being refused (S5).

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::sockopt::ip_original_dst;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use super::carry::{abort, carry};
use super::limits::Bucket;
use super::proxy::converse;
use super::rules::{Host, Reason, Target};
use super::{NetworkContext, dns};
use crate::egress::control::{PROXY_PORT, REDIRECT_PORT};
use crate::egress::record::Via;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 256;
/// DNS over TCP is the exception.
const DNS_STREAMS: usize = 16;
/// Connections of a listener that are accepted at once, and how soon as many may come again: 300 a second.
const ACCEPTED: u32 = 600;
const ACCEPTED_REFILL: Duration = Duration::from_secs(2);
/// How long nothing is accepted when there were too many, or the process has no descriptor left.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a task of a network that is gone may go on.
const GRACE: Duration = Duration::from_millis(500);

/// Every socket of a network.
pub(super) struct Sockets {
    datagrams: UdpSocket,
    questions: TcpListener,
    redirected: TcpListener,
    proxied: TcpListener,
}

impl Sockets {
    /// Binds them all, or none.
    pub(super) fn bind(context: &NetworkContext) -> io::Result<Self> {
        let device = context.device.as_deref();
        let at = |port| SocketAddrV4::new(context.gateway, port);
        Ok(Self {
            datagrams: datagrams(device, at(dns::PORT))?,
            questions: listener(device, at(dns::PORT))?,
            redirected: listener(device, at(REDIRECT_PORT))?,
            proxied: listener(device, at(PROXY_PORT))?,
        })
    }

    /// Serves until the network is cancelled. `capability` is the one address that is served.
    pub(super) fn serve(
        self,
        context: &Arc<NetworkContext>,
        capability: Ipv4Addr,
        tasks: &TaskTracker,
    ) {
        let Self {
            datagrams,
            questions,
            redirected,
            proxied,
        } = self;
        let datagrams = dns::serve_datagrams(Arc::clone(context), datagrams, capability);
        spawn(context, tasks, datagrams);

        let streams = Arc::new(Semaphore::new(DNS_STREAMS));
        let server = Server {
            context: Arc::clone(context),
            capability,
            tasks: tasks.clone(),
        };
        let asked = move |context, stream| {
            let streams = Arc::clone(&streams);
            async move {
                match streams.try_acquire() {
                    Ok(_permit) => dns::serve_stream(context, stream).await,
                    Err(_) => abort(&stream),
                }
            }
        };
        spawn(
            context,
            tasks,
            server.clone().accept(Via::Dns, questions, asked),
        );
        spawn(
            context,
            tasks,
            server.clone().accept(Via::Proxy, proxied, converse),
        );
        spawn(context, tasks, server.accept(Via::Tcp, redirected, arrived));
    }
}

/// Runs a task of the network until the network is gone. A connection that can end in its own way then does; what takes
/// longer is dropped.
fn spawn(
    context: &NetworkContext,
    tasks: &TaskTracker,
    task: impl Future<Output = ()> + Send + 'static,
) {
    let cancelled = context.cancelled.clone();
    tasks.spawn(async move {
        let over = async {
            cancelled.cancelled().await;
            sleep(GRACE).await;
        };
        tokio::select! {
            () = over => {}
            () = task => {}
        }
    });
}

#[derive(Clone)]
struct Server {
    context: Arc<NetworkContext>,
    capability: Ipv4Addr,
    tasks: TaskTracker,
}

impl Server {
    /// Accepts, and gives each connection a task and a place among the network's connections.
    async fn accept<F>(
        self,
        via: Via,
        listener: TcpListener,
        serve: impl Fn(Arc<NetworkContext>, TcpStream) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let pace = Bucket::new(ACCEPTED, ACCEPTED_REFILL, Instant::now());
        loop {
            // A flood waits in the kernel, and is lost there, rather than take the time of other networks.
            if !pace.take(Instant::now()) {
                sleep(PAUSE).await;
                continue;
            }
            let accepted = tokio::select! {
                biased;
                () = self.context.cancelled.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            // A peer that is gone again is no trouble; no descriptor is, for a while.
            let Ok((stream, peer)) = accepted else {
                sleep(PAUSE).await;
                continue;
            };
            // One container lives here. Whatever else somebody attached to its network is not served.
            if peer.ip() != IpAddr::V4(self.capability) {
                abort(&stream);
                continue;
            }
            match self.context.limits.admit() {
                Ok(admission) => {
                    let served = serve(Arc::clone(&self.context), stream);
                    spawn(&self.context, &self.tasks, async move {
                        served.await;
                        drop(admission);
                    });
                }
                Err(reason) => {
                    if let Some(target) = asked_for(&self.context, &stream) {
                        self.context.denied(via, &target, &reason);
                    }
                    abort(&stream);
                }
            }
        }
    }
}

/// A connection to a virtual address.
async fn arrived(context: Arc<NetworkContext>, stream: TcpStream) {
    match asked_for(&context, &stream) {
        Some(target) if target.name().is_some() => {
            carry(&context, stream, &target, Via::Tcp).await;
        }
        Some(target) => {
            context.denied(Via::Tcp, &target, &Reason::RawAddress);
            abort(&stream);
        }
        None => abort(&stream),
    }
}

/// What the container asked for before the kernel brought the connection here.
fn asked_for(context: &NetworkContext, stream: &TcpStream) -> Option<Target> {
    let asked = ip_original_dst(stream).ok()?;
    let host = match context.name(*asked.ip()) {
        Some(name) => Host::Name(name),
        None => Host::Literal(IpAddr::V4(*asked.ip())),
    };
    Some(Target {
        host,
        port: asked.port(),
    })
}

fn socket(device: Option<&str>, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, kind.nonblocking(), Some(protocol))?;
    socket.bind_device(device.map(str::as_bytes))?;
    Ok(socket)
}

fn datagrams(device: Option<&str>, address: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = socket(device, Type::DGRAM, Protocol::UDP)?;
    socket.bind(&SocketAddr::V4(address).into())?;
    UdpSocket::from_std(socket.into())
}

fn listener(device: Option<&str>, address: SocketAddrV4) -> io::Result<TcpListener> {
    let socket = socket(device, Type::STREAM, Protocol::TCP)?;
    // A worker that takes over from another one finds its closed connections at the same port.
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::V4(address).into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}
