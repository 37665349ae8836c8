//! What one network may take, and what all may take together. A flood in one network ends at its own limit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::http::Dialect;
use super::rules::Reason;

/// Connections of one network, and of all networks.
const CONNECTIONS: Share = Share(256, ALL_CONNECTIONS);
const ALL_CONNECTIONS: usize = 2_000;
/// Of them, those that carry HTTP/1, or talk to the proxy: each holds up to four buffers, two for each side.
const HTTP: Share = Share(64, 512);
/// And those that carry HTTP/2, whose streams have buffers of their own.
const HTTP_2: Share = Share(4, 16);
/// Those whose first bytes are more than [`OPENING`].
const OPENINGS: Share = Share(32, 256);
/// What is held of a connection's bytes outside the kernel, at most.
pub(crate) const BUFFER: usize = 32 * 1024;
/// What is held of a connection's first bytes without asking. A usual TLS hello is a fourth of it.
pub(crate) const OPENING: usize = 4 * 1024;
/// Streams that one HTTP/2 connection may have open.
pub(crate) const STREAMS: usize = 16;
/// How long a client's whole TLS hello or first line may take from its first byte on.
pub(crate) const OPENING_LIMIT: Duration = Duration::from_secs(10);
/// How long an HTTP head may take.
pub(crate) const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// How long a destination may take to accept.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long a connection may carry nothing.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(3600);

/// Places of one kind that a network may take, and all of them together.
#[derive(Debug, Clone, Copy)]
struct Share(usize, usize);

/// Counts what all networks take.
#[derive(Debug, Clone)]
pub(crate) struct Everyone {
    connections: Arc<Semaphore>,
    http: Arc<Semaphore>,
    http_2: Arc<Semaphore>,
    openings: Arc<Semaphore>,
}

impl Everyone {
    /// Nobody has taken anything yet.
    pub(crate) fn new() -> Self {
        let all = |Share(_, all): Share| Arc::new(Semaphore::new(all));
        Self {
            connections: all(CONNECTIONS),
            http: all(HTTP),
            http_2: all(HTTP_2),
            openings: all(OPENINGS),
        }
    }
}

/// Counts what one network takes.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    own: Everyone,
    all: Everyone,
}

/// A place; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Limits {
    /// A network's limits within those of all.
    pub(crate) fn new(all: &Everyone) -> Self {
        let own = |Share(own, _): Share| Arc::new(Semaphore::new(own));
        Self {
            own: Everyone {
                connections: own(CONNECTIONS),
                http: own(HTTP),
                http_2: own(HTTP_2),
                openings: own(OPENINGS),
            },
            all: all.clone(),
        }
    }

    /// A place, or the refusal: nobody waits.
    pub(crate) fn admit(&self) -> Result<Place, Reason> {
        place(&self.own.connections, &self.all.connections)
    }

    /// A place among those that carry plain HTTP, for a connection that was admitted.
    pub(crate) fn admit_http(&self, dialect: Dialect) -> Result<Place, Reason> {
        match dialect {
            Dialect::One => place(&self.own.http, &self.all.http),
            Dialect::Two => place(&self.own.http_2, &self.all.http_2),
        }
    }

    /// A place among those that begin with much.
    pub(crate) fn admit_opening(&self) -> Result<Place, Reason> {
        place(&self.own.openings, &self.all.openings)
    }
}

fn place(own: &Arc<Semaphore>, all: &Arc<Semaphore>) -> Result<Place, Reason> {
    let take = |semaphore: &Arc<Semaphore>| {
        Arc::clone(semaphore)
            .try_acquire_owned()
            .map_err(|_| Reason::TooManyConnections)
    };
    Ok(Place {
        _own: take(own)?,
        _all: take(all)?,
    })
}

/// Tokens that come back at a steady rate.
#[derive(Debug)]
pub(crate) struct Bucket {
    state: Mutex<(f64, Instant)>,
    size: f64,
    per_second: f64,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(size: u32, refilled_in: Duration, now: Instant) -> Self {
        let size = f64::from(size);
        Self {
            state: Mutex::new((size, now)),
            size,
            per_second: size / refilled_in.as_secs_f64(),
        }
    }

    /// Takes a token if there is one.
    pub(crate) fn take(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, last) = *state;
        let refill = now.saturating_duration_since(last).as_secs_f64() * self.per_second;
        let tokens = (tokens + refill).min(self.size);
        let taken = tokens >= 1.0;
        *state = (if taken { tokens - 1.0 } else { tokens }, now.max(last));
        taken
    }
}

#[cfg(test)]
mod tests {
    use selu_compiler::plan::spec::{GATEWAY_FILES, OPEN_GATEWAY_MEMORY};

    use super::*;
    use crate::egress::worker::http::HEAD_MAX;

    const MIB: usize = 1024 * 1024;

    /// Programs, threads, networks, names, the log's lines: `scripts/bench egress` shows 5.2 MiB with a hundred networks.
    const BASE: usize = 32 * MIB;
    /// A carried connection beside its [`OPENING`]: `scripts/bench egress` shows 12.7 KiB for both, over a thousand.
    const CONNECTION: usize = 12 * 1024;

    #[test]
    fn one_networks_flood_leaves_the_others_their_places() {
        let all = Everyone::new();
        let flooding = Limits::new(&all);
        let other = Limits::new(&all);
        let held: Vec<_> = (0..CONNECTIONS.0)
            .map(|_| flooding.admit().unwrap())
            .collect();
        assert_eq!(flooding.admit().unwrap_err(), Reason::TooManyConnections);
        assert!(other.admit().is_ok());
        drop(held);
        assert!(flooding.admit().is_ok());
    }

    #[test]
    fn a_refused_connection_takes_no_place_of_the_others() {
        let all = Everyone::new();
        let flooding = Limits::new(&all);
        let held: Vec<_> = (0..2 * CONNECTIONS.0)
            .map(|_| flooding.admit().ok())
            .collect();
        let left = all.connections.available_permits();
        assert_eq!(left, CONNECTIONS.1 - CONNECTIONS.0);
        drop(held);
    }

    /// Every place taken at once, and each filled to its end: the kernel has nobody to kill.
    #[test]
    fn the_worst_that_all_networks_can_do_fits_into_the_gateways_memory() {
        let http = 4 * BUFFER.max(HEAD_MAX);
        // On either side a window, and for each stream a head and what waits to be sent.
        let http_2 = 2 * (2 * BUFFER + STREAMS * (HEAD_MAX + BUFFER));
        let worst = BASE
            + ALL_CONNECTIONS * (CONNECTION + OPENING)
            + OPENINGS.1 * (BUFFER + OPENING)
            + HTTP.1 * http
            + HTTP_2.1 * http_2;
        let limit = usize::try_from(OPEN_GATEWAY_MEMORY).unwrap();
        assert!(worst < limit, "{} of {}", worst / MIB, limit / MIB);
    }

    /// Both ends of a connection, and a pipe with two ends for each direction while there are bytes in it.
    #[test]
    fn every_connection_finds_its_descriptors() {
        let networks = 512 * 4;
        let resolver_and_log = 2_048;
        let worst = ALL_CONNECTIONS * 6 + networks + resolver_and_log;
        assert!(worst < usize::try_from(GATEWAY_FILES).unwrap());
    }

    #[test]
    fn a_bucket_gives_its_size_and_then_its_rate() {
        let begin = Instant::now();
        let bucket = Bucket::new(3, Duration::from_secs(3), begin);
        let taken = |at: Instant| (0..10).filter(|_| bucket.take(at)).count();
        assert_eq!(taken(begin), 3);
        assert_eq!(taken(begin + Duration::from_secs(2)), 2);
        assert_eq!(taken(begin + Duration::from_secs(3600)), 3);
    }
}
