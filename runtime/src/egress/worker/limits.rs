//! What one network may take, and what all may take together. A flood in one network ends at its own limit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::rules::Reason;

/// Connections of one network.
pub(crate) const NETWORK_CONNECTIONS: usize = 256;
/// Connections of all networks.
pub(crate) const ALL_CONNECTIONS: usize = 4_000;
/// Of one network's connections, those that carry plain HTTP: each holds up to four buffers, two for each side.
pub(crate) const NETWORK_HTTP: usize = 64;
/// What is held of a connection's bytes outside the kernel, at most.
pub(crate) const BUFFER: usize = 32 * 1024;
/// How long a client's whole TLS hello or first line may take from its first byte on.
pub(crate) const OPENING_LIMIT: Duration = Duration::from_secs(10);
/// How long an HTTP head may take.
pub(crate) const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// How long a destination may take to accept.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long a connection may carry nothing.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(3600);

/// Counts connections.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    network: Arc<Semaphore>,
    http: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

/// A place for one connection; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    _network: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Limits {
    /// A network's limits within those of all.
    pub(crate) fn new(all: Arc<Semaphore>) -> Self {
        Self {
            network: Arc::new(Semaphore::new(NETWORK_CONNECTIONS)),
            http: Arc::new(Semaphore::new(NETWORK_HTTP)),
            all,
        }
    }

    /// A place, or the refusal: nobody waits.
    pub(crate) fn admit(&self) -> Result<Admission, Reason> {
        Ok(Admission {
            _network: place(&self.network)?,
            _all: place(&self.all)?,
        })
    }

    /// A place among those that carry plain HTTP, for a connection that was admitted.
    pub(crate) fn admit_http(&self) -> Result<OwnedSemaphorePermit, Reason> {
        place(&self.http)
    }
}

fn place(semaphore: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Reason> {
    Arc::clone(semaphore)
        .try_acquire_owned()
        .map_err(|_| Reason::TooManyConnections)
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
    use super::*;

    #[test]
    fn one_networks_flood_leaves_the_others_their_places() {
        let all = Arc::new(Semaphore::new(ALL_CONNECTIONS));
        let flooding = Limits::new(Arc::clone(&all));
        let other = Limits::new(all);
        let held: Vec<_> = (0..NETWORK_CONNECTIONS)
            .map(|_| flooding.admit().unwrap())
            .collect();
        assert_eq!(flooding.admit().unwrap_err(), Reason::TooManyConnections);
        assert!(other.admit().is_ok());
        drop(held);
        assert!(flooding.admit().is_ok());
    }

    #[test]
    fn a_refused_connection_takes_no_place_of_the_others() {
        let all = Arc::new(Semaphore::new(NETWORK_CONNECTIONS + 1));
        let flooding = Limits::new(Arc::clone(&all));
        let held: Vec<_> = (0..2 * NETWORK_CONNECTIONS)
            .map(|_| flooding.admit().ok())
            .collect();
        assert_eq!(all.available_permits(), 1);
        drop(held);
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
