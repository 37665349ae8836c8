//! The connections of one network: what a changed policy is held against (S5).

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::limits::Limits;
use super::metered::Meter;
use super::rules::{Reason, Target};
use super::splice::Activity;
use super::{GoingBy, NetworkContext};
use crate::egress::record::{Phase, Via};

/// How long a connection may take to notice that it is cut.
const CUT_LIMIT: Duration = Duration::from_secs(5);

/// Every connection that is being made or carried.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    entries: Mutex<HashMap<u64, Entry>>,
    ended: Notify,
}

#[derive(Debug)]
struct Entry {
    target: Target,
    /// Once it is known.
    address: Option<IpAddr>,
    cut: CancellationToken,
}

impl Connections {
    /// Cuts what these rules no longer allow. Whether it is all gone within the time.
    pub(super) async fn revoke(&self, going_by: &GoingBy) -> bool {
        let cut: Vec<u64> = self
            .entries()
            .iter()
            .filter(|(_, entry)| going_by.verdict(&entry.target, entry.address).is_err())
            .map(|(id, entry)| {
                entry.cut.cancel();
                *id
            })
            .collect();
        timeout(CUT_LIMIT, self.gone(&cut)).await.is_ok()
    }

    /// Ends when none of these is there any more.
    async fn gone(&self, ids: &[u64]) {
        loop {
            let mut ended = pin!(self.ended.notified());
            // From here on an end is noticed, also one between the look and the wait.
            ended.as_mut().enable();
            let left = {
                let entries = self.entries();
                ids.iter().any(|id| entries.contains_key(id))
            };
            if !left {
                return;
            }
            ended.await;
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GoingBy {
    /// Whether a target is allowed, and its address, where that is known.
    pub(super) fn verdict(&self, target: &Target, address: Option<IpAddr>) -> Result<(), Reason> {
        self.rules.check(target)?;
        match address {
            Some(address) => self
                .dialer
                .judge(address, self.rules.permits_private(target)),
            None => Ok(()),
        }
    }
}

/// One connection from the moment that it is allowed. When this is dropped, the connection is over and recorded.
pub(crate) struct Ticket {
    context: Arc<NetworkContext>,
    target: Target,
    via: Via,
    id: u64,
    began: Instant,
    cut: CancellationToken,
    /// Bytes from the capability.
    pub(crate) sent: Arc<AtomicU64>,
    /// Bytes to the capability.
    pub(crate) received: Arc<AtomicU64>,
    opened: Mutex<Option<IpAddr>>,
    reason: Mutex<Option<Reason>>,
}

impl Ticket {
    /// Checks the rules and registers the connection, in one step: a policy that comes later finds it.
    pub(super) fn take(
        context: &Arc<NetworkContext>,
        target: &Target,
        via: Via,
    ) -> Result<Self, Reason> {
        let id = context.recorder.next_id();
        let cut = context.cancelled.child_token();
        let mut entries = context.live.entries();
        context.going_by().rules.check(target)?;
        entries.insert(
            id,
            Entry {
                target: target.clone(),
                address: None,
                cut: cut.clone(),
            },
        );
        drop(entries);
        Ok(Self {
            context: Arc::clone(context),
            target: target.clone(),
            via,
            id,
            began: Instant::now(),
            cut,
            sent: Arc::default(),
            received: Arc::default(),
            opened: Mutex::new(None),
            reason: Mutex::new(None),
        })
    }

    /// The connection is made. The address is judged again, by the policy of this moment.
    pub(super) fn opened(&self, address: IpAddr) -> Result<(), Reason> {
        let mut entries = self.context.live.entries();
        self.context
            .going_by()
            .verdict(&self.target, Some(address))?;
        if let Some(entry) = entries.get_mut(&self.id) {
            entry.address = Some(address);
        }
        drop(entries);
        *lock(&self.opened) = Some(address);
        let mut event = self.context.event(self.via, Phase::Opened, &self.target);
        event.id = self.id;
        event.address = Some(address);
        self.context.recorder.record(event);
        Ok(())
    }

    /// Where to.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// How many connections its network may have.
    pub(super) fn limits(&self) -> &Limits {
        &self.context.limits
    }

    /// Counts what passes over the connection to the outside.
    pub(super) fn meter(&self, activity: &Arc<Activity>) -> Meter {
        Meter {
            written: Arc::clone(&self.sent),
            read: Arc::clone(&self.received),
            activity: Arc::clone(activity),
        }
    }

    /// Ends when the connection has to be cut.
    pub(crate) async fn cut(&self) {
        self.cut.cancelled().await;
    }

    /// Says why the gateway ends the connection; the first reason stays.
    pub(crate) fn because(&self, reason: Reason) {
        lock(&self.reason).get_or_insert(reason);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.cut.is_cancelled() {
            self.because(Reason::Revoked);
        }
        let opened = *lock(&self.opened);
        if let Some(address) = opened {
            let mut event = self.context.event(self.via, Phase::Closed, &self.target);
            event.id = self.id;
            event.address = Some(address);
            event.reason = lock(&self.reason).as_ref().map(Into::into);
            event.sent = self.sent.load(Ordering::Relaxed);
            event.received = self.received.load(Ordering::Relaxed);
            event.millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.context.recorder.record(event);
        }
        self.context.live.entries().remove(&self.id);
        self.context.live.ended.notify_waiters();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
