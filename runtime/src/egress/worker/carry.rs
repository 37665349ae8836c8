//! One allowed connection: dialled, its first bytes checked (N10), then carried by the kernel.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rustix::net::sockopt;
use tokio::net::TcpStream;

use super::NetworkContext;
use super::http::{self, Dialect};
use super::limits::IDLE_LIMIT;
use super::live::Ticket;
use super::metered::Metered;
use super::rules::{Host, Reason, Target};
use super::sniff::{Opening, Room, Stop, read_on, sniff};
use super::splice::{self, Activity};
use crate::egress::record::Via;

/// A connection that is allowed and made. Nothing of the client's has passed yet.
pub(crate) struct Passage {
    /// Registers, counts and in the end records it.
    pub(crate) ticket: Ticket,
    /// The other end.
    pub(crate) upstream: TcpStream,
}

impl Passage {
    /// Checks the rules, dials and registers. A refusal is recorded here.
    pub(crate) async fn open(
        context: &Arc<NetworkContext>,
        target: &Target,
        via: Via,
    ) -> Result<Self, Reason> {
        let opened = Self::try_open(context, target, via).await;
        opened.inspect_err(|reason| context.denied(via, target, reason))
    }

    async fn try_open(
        context: &Arc<NetworkContext>,
        target: &Target,
        via: Via,
    ) -> Result<Self, Reason> {
        let ticket = Ticket::take(context, target, via)?;
        let going_by = context.going_by();
        if let Some(name) = target.name() {
            context.may_look_up(name, going_by.rules.lists(name), Instant::now())?;
        }
        let private = going_by.rules.permits_private(target);
        let (upstream, address): (TcpStream, IpAddr) = tokio::select! {
            biased;
            () = ticket.cut() => return Err(Reason::Revoked),
            dialled = going_by.dialer.dial(target, private) => dialled?,
        };
        tune(&upstream);
        ticket.opened(address)?;
        Ok(Self { ticket, upstream })
    }

    /// Carries the connection to its end. `read` is what was read of the client's bytes already.
    pub(crate) async fn carry(self, client: TcpStream, read: Bytes) {
        let Self { ticket, upstream } = self;
        tune(&client);
        let (client, upstream) = (Arc::new(client), Arc::new(upstream));
        let activity = Arc::new(Activity::new());
        let outcome = tokio::select! {
            biased;
            () = ticket.cut() => Err(Reason::Revoked.into()),
            outcome = converse(&ticket, &client, &upstream, read.into(), &activity) => outcome,
            () = activity.idle(IDLE_LIMIT) => Err(Reason::Idle.into()),
        };
        if let Err(stop) = outcome {
            abort(&client);
            abort(&upstream);
            if let Stop::Refused(reason) = stop {
                ticket.because(reason);
            }
        }
    }
}

/// Makes a connection and carries it. The listener of virtual addresses and the proxy's tunnels end up here.
pub(crate) async fn carry(
    context: &Arc<NetworkContext>,
    client: TcpStream,
    target: &Target,
    via: Via,
) {
    match Passage::open(context, target, via).await {
        Ok(passage) => passage.carry(client, Bytes::new()).await,
        Err(_) => abort(&client),
    }
}

/// Closes with a reset, as a host does at a port where nobody listens.
pub(crate) fn abort(stream: &TcpStream) {
    // Where that fails the stream is closed in the ordinary way.
    let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Small writes leave at once, and a peer that is gone is noticed.
fn tune(stream: &TcpStream) {
    // What cannot be set makes a connection slower, not wrong.
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
}

/// Waits for the client's first bytes, checks what they say, and carries. A server that speaks first is heard meanwhile.
async fn converse(
    ticket: &Ticket,
    client: &Arc<TcpStream>,
    upstream: &Arc<TcpStream>,
    mut read: BytesMut,
    activity: &Arc<Activity>,
) -> Result<(), Stop> {
    let mut room = Room::new(ticket.limits(), &read)?;
    let first = tokio::select! {
        biased;
        opening = sniff(client, &mut read, &mut room) => Some(opening?),
        _ = upstream.readable() => None,
    };
    let dialect = match first {
        Some(Opening::Http1) => Some(Dialect::One),
        Some(Opening::Http2) => Some(Dialect::Two),
        _ => None,
    };
    if let Some(dialect) = dialect {
        let _place = ticket.limits().admit_http(dialect)?;
        let client = Metered::unmetered(Arc::clone(client), read.freeze());
        let upstream = Metered::new(Arc::clone(upstream), ticket.meter(activity));
        // A refusal is told to the client in words, so that its connection is not broken off but ended.
        // In a box, so that connections that are no HTTP do not have the room for it.
        let forward = Box::pin(http::forward(dialect, ticket.target(), client, upstream));
        if let Err(reason) = forward.await {
            ticket.because(reason);
        }
        return Ok(());
    }
    let sending = async {
        let opening = match first {
            Some(opening) => opening,
            None => sniff(client, &mut read, &mut room).await?,
        };
        let mut unclear = opening == Opening::Pending;
        check(ticket.target(), opening)?;
        splice::write(upstream, &read, &ticket.sent).await?;
        while unclear {
            let passed = read.len();
            unclear = read_on(client, &mut read, &mut room).await?;
            splice::write(upstream, &read[passed..], &ticket.sent).await?;
        }
        drop((read, room));
        splice::carry(client, upstream, &ticket.sent, activity).await?;
        Ok(())
    };
    let receiving = async {
        splice::carry(upstream, client, &ticket.received, activity).await?;
        Ok(())
    };
    tokio::try_join!(sending, receiving).map(|_: ((), ())| ())
}

/// Whether the first bytes agree with what was asked for (N10).
fn check(target: &Target, opening: Opening) -> Result<(), Reason> {
    match (opening, &target.host) {
        (Opening::Raw | Opening::Pending, _) => Ok(()),
        (Opening::Tls(Some(sni)), Host::Name(name)) if sni.eq_ignore_ascii_case(name) => Ok(()),
        (Opening::Tls(Some(sni)), _) => Err(Reason::SniMismatch(sni)),
        (Opening::Tls(None), Host::Name(_)) => Err(Reason::NoSni),
        // An address has no name that a hello could have.
        (Opening::Tls(None), Host::Literal(_)) => Ok(()),
        // A server that spoke first does not speak HTTP, and what it has sent cannot be taken back.
        (Opening::Http1 | Opening::Http2, _) => Err(Reason::NotHttp(
            "the server spoke before the client".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests;
