//! `selu gateway worker`: everything that touches bytes of a container or of the outside (S7).
//!
//! It runs without a capability, in a jail of its own, and carries nothing but what its parent ordered last. Each network
//! has its own DNS, listener and proxy, bound to its device (S5); a [`NetworkContext`] is what they share.

mod carry;
mod dial;
mod http;
mod limits;
mod live;
mod metered;
mod proxy;
mod reach;
mod rules;
mod sniff;
mod splice;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use selu_compiler::model::InstanceKey;
use tokio_util::sync::CancellationToken;

use self::dial::Dialer;
use self::limits::Limits;
use self::live::Connections;
use self::rules::{Reason, Rules, Target};
use super::record::{Event, Phase, Recorder, Via, Why};

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
    going_by: Mutex<Arc<GoingBy>>,
}

/// What a network goes by now.
pub(crate) struct GoingBy {
    /// Which names and ports.
    pub(crate) rules: Rules,
    /// The way out.
    pub(crate) dialer: Arc<Dialer>,
}

impl NetworkContext {
    /// What to go by, at this moment.
    pub(crate) fn going_by(&self) -> Arc<GoingBy> {
        let going_by = self.going_by.lock();
        Arc::clone(&going_by.unwrap_or_else(PoisonError::into_inner))
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
            rules::Host::Name(name) => event.name = Some(name.clone()),
            rules::Host::Literal(address) => event.address = Some(*address),
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
