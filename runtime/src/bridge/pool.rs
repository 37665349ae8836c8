//! Which servers run: one for each set of credential values, few of them, and none for longer than it is used (P1).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rmcp::model::ClientRequest;
use serde_json::Value;

use super::Target;
use super::credentials::CredentialSet;
use super::error::CallError;
use super::server::Server;

/// Servers at once. A container serves one user (C5): what is above two are values that were replaced.
const MOST: usize = 4;

/// The servers of one bridge.
pub(super) struct Pool {
    target: Target,
    idle: Duration,
    slots: Mutex<Vec<Arc<Slot>>>,
}

/// A place for a server with certain values.
struct Slot {
    credentials: CredentialSet,
    /// Locked while it starts: whoever comes second waits for the same one.
    server: tokio::sync::Mutex<Option<Arc<Server>>>,
    /// Calls that use it.
    calls: AtomicUsize,
    /// When the last one ended.
    since: Mutex<Instant>,
}

/// A server that is not stopped or replaced while this is held.
pub(super) struct Lease {
    server: Arc<Server>,
    used: Used,
}

/// Counts a call.
struct Used {
    slot: Arc<Slot>,
    pool: Arc<Pool>,
    /// Whether the server has no use once nobody calls it.
    last: bool,
}

impl Pool {
    pub(super) fn new(target: Target, idle: Duration) -> Arc<Self> {
        let pool = Arc::new(Self {
            target,
            idle,
            slots: Mutex::default(),
        });
        tokio::spawn(stop_idle(Arc::downgrade(&pool), idle));
        pool
    }

    /// The server with these values, started if it does not run.
    pub(super) async fn lease(
        self: &Arc<Self>,
        credentials: CredentialSet,
    ) -> Result<Lease, CallError> {
        let used = self.used(credentials)?;
        let mut current = used.slot.server.lock().await;
        if let Some(server) = current.as_ref()
            && server.answers().await
        {
            let server = Arc::clone(server);
            drop(current);
            return Ok(Lease { server, used });
        }
        *current = None;
        let server = Server::start(&self.target, &used.slot.credentials).await?;
        *current = Some(Arc::clone(&server));
        drop(current);
        Ok(Lease { server, used })
    }

    /// Finds or makes the place. At the bound the one goes that was not used for longest.
    fn used(self: &Arc<Self>, credentials: CredentialSet) -> Result<Used, CallError> {
        let mut slots = self.slots();
        let found = slots.iter().find(|slot| slot.credentials == credentials);
        let slot = match found {
            Some(slot) => Arc::clone(slot),
            None => {
                if slots.len() >= MOST {
                    let oldest = slots
                        .iter()
                        .enumerate()
                        .filter(|(_, slot)| slot.is_idle())
                        .min_by_key(|(_, slot)| slot.since())
                        .map(|(index, _)| index);
                    let Some(oldest) = oldest else {
                        return Err(CallError::Full {
                            running: slots.len(),
                        });
                    };
                    slots.swap_remove(oldest).stop();
                }
                let slot = Arc::new(Slot {
                    credentials,
                    server: tokio::sync::Mutex::default(),
                    calls: AtomicUsize::new(0),
                    since: Mutex::new(Instant::now()),
                });
                slots.push(Arc::clone(&slot));
                slot
            }
        };
        slot.calls.fetch_add(1, Ordering::SeqCst);
        Ok(Used {
            slot,
            pool: Arc::clone(self),
            last: false,
        })
    }

    /// Ends every server and waits for that.
    pub(super) async fn stop_all(&self) {
        let slots = std::mem::take(&mut *self.slots());
        let mut servers = Vec::new();
        for slot in slots {
            // One that is starting ends with its call.
            if let Ok(current) = slot.server.try_lock() {
                servers.extend(current.clone());
            }
        }
        for server in &servers {
            server.stop();
        }
        for server in &servers {
            server.ended().await;
        }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what `which` says among the servers that nobody uses.
    fn stop_where(&self, which: impl Fn(&Slot) -> bool) {
        self.slots().retain(|slot| {
            let stops = slot.is_idle() && which(slot);
            if stops {
                slot.stop();
            }
            !stops
        });
    }
}

impl Slot {
    fn is_idle(&self) -> bool {
        self.calls.load(Ordering::SeqCst) == 0
    }

    fn since(&self) -> Instant {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        if let Ok(current) = self.server.try_lock()
            && let Some(server) = current.as_ref()
        {
            server.stop();
        }
    }
}

impl Lease {
    /// Asks the server.
    pub(super) async fn request(
        &self,
        method: &'static str,
        request: ClientRequest,
    ) -> Result<Value, CallError> {
        self.server.request(method, request).await
    }

    /// After this call nobody else needs the server.
    pub(super) fn is_the_last(&mut self) {
        self.used.last = true;
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        *self
            .slot
            .since
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.slot.calls.fetch_sub(1, Ordering::SeqCst);
        if self.last {
            let mine = Arc::as_ptr(&self.slot);
            self.pool.stop_where(|slot| std::ptr::eq(slot, mine));
        }
    }
}

/// Ends servers that nobody called for long.
async fn stop_idle(pool: Weak<Pool>, idle: Duration) {
    let pause = (idle / 4).clamp(Duration::from_millis(50), Duration::from_secs(30));
    loop {
        tokio::time::sleep(pause).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        pool.stop_where(|slot| slot.since().elapsed() >= pool.idle);
    }
}
