//! What the servers of one network share.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use selu_compiler::model::InstanceKey;
use tokio_util::sync::CancellationToken;

use super::addresses::{Addresses, AddressesError};
use super::dial::Dialer;
use super::limits::{Bucket, Limits};
use super::live::Connections;
use super::rules::{Host, Reason, Rules, Target};
use crate::chain;
use crate::egress::record::{Event, Phase, Recorder, Via, Why};

/// Questions to the DNS at once, and how soon as many may come again: 50 a second.
const QUESTIONS: u32 = 200;
const QUESTIONS_REFILL: Duration = Duration::from_secs(4);
/// New names below wildcards, or of mode `any`, in an hour (S15).
const NEW_NAMES: u32 = 120;
const NEW_NAMES_REFILL: Duration = Duration::from_secs(3600);
/// Names of the proxy that are remembered; beyond, they are new again.
const PROXIED_NAMES: usize = 1024;

/// One container's network, for as long as its device stays the same. The rules may change meanwhile.
pub(crate) struct NetworkContext {
    /// The network.
    pub(crate) network: String,
    /// Whose it is.
    pub(crate) instance: InstanceKey,
    /// The gateway's device in it. `None` in tests alone, which have no device to bind to.
    pub(crate) device: Option<String>,
    /// The gateway's address in it.
    pub(crate) gateway: Ipv4Addr,
    /// Takes what happens.
    pub(crate) recorder: Recorder,
    /// How many connections it may have.
    pub(crate) limits: Limits,
    /// The network is gone, or its device.
    pub(crate) cancelled: CancellationToken,
    /// Every connection that is being made or carried.
    pub(crate) live: Connections,
    /// Questions to its DNS.
    pub(super) questions: Bucket,
    /// Names that nobody listed one by one.
    new_names: Bucket,
    /// Those of them that the proxy was asked for.
    proxied: Mutex<HashSet<String>>,
    addresses: Mutex<Addresses>,
    going_by: Mutex<Arc<GoingBy>>,
}

/// What a network goes by now.
pub(crate) struct GoingBy {
    /// Which names and ports.
    pub(crate) rules: Rules,
    /// The way out.
    pub(crate) dialer: Arc<Dialer>,
}

/// What a network is made of.
pub(super) struct Parts {
    pub(super) network: String,
    pub(super) instance: InstanceKey,
    pub(super) device: Option<String>,
    pub(super) gateway: Ipv4Addr,
    pub(super) recorder: Recorder,
    pub(super) limits: Limits,
    pub(super) addresses: Addresses,
    pub(super) going_by: GoingBy,
}

impl NetworkContext {
    /// A network whose listed names have their virtual addresses.
    pub(super) fn new(parts: Parts) -> Result<Self, AddressesError> {
        let now = Instant::now();
        let context = Self {
            network: parts.network,
            instance: parts.instance,
            device: parts.device,
            gateway: parts.gateway,
            recorder: parts.recorder,
            limits: parts.limits,
            cancelled: CancellationToken::new(),
            live: Connections::default(),
            questions: Bucket::new(QUESTIONS, QUESTIONS_REFILL, now),
            new_names: Bucket::new(NEW_NAMES, NEW_NAMES_REFILL, now),
            proxied: Mutex::default(),
            addresses: Mutex::new(parts.addresses),
            going_by: Mutex::new(Arc::new(parts.going_by)),
        };
        context.assign_listed(&context.going_by().rules)?;
        Ok(context)
    }

    /// What to go by, at this moment.
    pub(crate) fn going_by(&self) -> Arc<GoingBy> {
        Arc::clone(&lock(&self.going_by))
    }

    /// Gives every listed name its virtual address, so that names below a wildcard cannot take it, then goes by the new
    /// rules, and returns when everything that they no longer allow is cut; `false` if something was not in time.
    pub(super) async fn go_by(&self, going_by: GoingBy) -> Result<bool, AddressesError> {
        let going_by = Arc::new(going_by);
        self.assign_listed(&going_by.rules)?;
        *lock(&self.going_by) = Arc::clone(&going_by);
        Ok(self.live.revoke(&going_by).await)
    }

    /// A name for which there is no address left is told when it is asked for.
    fn assign_listed(&self, rules: &Rules) -> Result<(), AddressesError> {
        let mut addresses = lock(&self.addresses);
        for name in rules.exact_names() {
            addresses.assign(name)?;
        }
        Ok(())
    }

    /// The virtual address of an allowed name.
    pub(super) fn address(
        &self,
        name: &str,
        listed: bool,
        now: Instant,
    ) -> Result<Ipv4Addr, Reason> {
        let mut addresses = lock(&self.addresses);
        if let Some(address) = addresses.of(name) {
            return Ok(address);
        }
        if !listed && !self.new_names.take(now) {
            return Err(Reason::TooManyNames);
        }
        let assigned = addresses.assign(name);
        drop(addresses);
        match assigned {
            Ok(Some(address)) => {
                if !listed {
                    self.named(Via::Dns, name, Some(address));
                }
                Ok(address)
            }
            Ok(None) => Err(Reason::PoolEmpty),
            Err(error) => Err(Reason::LookupFailed(chain(&error))),
        }
    }

    /// Whether a name may be looked up outside. One that nobody listed is new once, whether the DNS or the proxy was
    /// asked for it, and only so many are new in an hour (S15).
    pub(super) fn may_look_up(&self, name: &str, listed: bool, now: Instant) -> Result<(), Reason> {
        if listed || lock(&self.addresses).of(name).is_some() {
            return Ok(());
        }
        let mut proxied = lock(&self.proxied);
        if proxied.contains(name) {
            return Ok(());
        }
        if !self.new_names.take(now) {
            return Err(Reason::TooManyNames);
        }
        if proxied.len() >= PROXIED_NAMES {
            proxied.clear();
        }
        proxied.insert(name.to_owned());
        drop(proxied);
        self.named(Via::Proxy, name, None);
        Ok(())
    }

    fn named(&self, via: Via, name: &str, address: Option<Ipv4Addr>) {
        let mut event = Event::new(&self.instance, &self.network, via, Phase::Named);
        event.name = Some(name.to_owned());
        event.address = address.map(Into::into);
        self.recorder.record(event);
    }

    /// The name that a virtual address stands for.
    pub(super) fn name(&self, address: Ipv4Addr) -> Option<String> {
        lock(&self.addresses).name(address).map(str::to_owned)
    }

    /// Records a refusal.
    pub(crate) fn denied(&self, via: Via, target: &Target, reason: &Reason) {
        let mut event = self.event(via, Phase::Denied, target);
        event.address = reason.address().or(event.address);
        event.reason = Some(reason.into());
        self.recorder.record(event);
    }

    /// An event about a target.
    pub(crate) fn event(&self, via: Via, phase: Phase, target: &Target) -> Event {
        let mut event = Event::new(&self.instance, &self.network, via, phase);
        match &target.host {
            Host::Name(name) => event.name = Some(name.clone()),
            Host::Literal(address) => event.address = Some(*address),
        }
        event.port = Some(target.port);
        event
    }
}

impl From<&Reason> for Why {
    fn from(reason: &Reason) -> Self {
        Self {
            code: reason.code().to_owned(),
            text: reason.to_string(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
