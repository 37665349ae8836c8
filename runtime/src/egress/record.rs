//! What the gateway carried and what it refused: events, and the bounded files that keep them.
//!
//! The worker records; it must never wait for a disk, and a capability must never be able to fill one. So
//! `Recorder::record` hands events to a thread over a bounded channel, of which one instance may fill a part only;
//! what does not fit is counted and told as one event. Each instance has two files of at most 1 MiB. They hold names,
//! addresses and counts, never a byte of what was carried.

mod read;
mod rings;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, io, thread};

use selu_compiler::model::InstanceKey;
use serde::{Deserialize, Serialize};

pub use read::{Ask, copy};
use rings::Rings;

/// Where the volume is mounted that keeps the files, with the virtual addresses.
pub const LOG_FOLDER: &str = "/egress";

/// Version of the lines' form.
pub const FORM: u32 = 1;

/// Events that may wait for the thread.
const PENDING: usize = 4096;
/// Of them, events of one instance: one flood does not cost the others their events.
const PENDING_EACH: u64 = 256;
/// Longest name that is kept: DNS allows 253 characters.
const NAME_MAX: usize = 255;
/// Longest reason that is kept.
const TEXT_MAX: usize = 300;
/// How long the thread waits before it writes what it held back.
const TICK: Duration = Duration::from_secs(1);

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Milliseconds since 1970, by the gateway's clock.
    pub time_ms: u64,
    /// Whose container.
    pub instance: InstanceKey,
    /// Its network.
    pub network: String,
    /// Ties a connection's end to its begin, within a run of the worker. 0 where nothing was opened.
    pub id: u64,
    /// How it was asked.
    pub via: Via,
    /// What happened.
    pub phase: Phase,
    /// The name that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The address that was dialled, or asked for as such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port; `None` for a question to the DNS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Why it was refused, or cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Why>,
    /// Bytes from the capability.
    #[serde(default)]
    pub sent: u64,
    /// Bytes to the capability.
    #[serde(default)]
    pub received: u64,
    /// How long it was open.
    #[serde(default)]
    pub millis: u64,
}

/// How something was asked of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// A question to its DNS.
    Dns,
    /// A connection to a virtual address.
    Tcp,
    /// A request to its proxy.
    Proxy,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Refused.
    Denied,
    /// A name that a wildcard or `any` allows was asked for the first time (S15).
    Named,
    /// Connected.
    Opened,
    /// Ended; with a reason where the gateway ended it.
    Closed,
    /// Events were lost, as many as the line's `times` says; 0 where nobody knows.
    Lost,
}

/// Why something was refused or cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Why {
    /// For programs, in kebab case.
    pub code: String,
    /// For people.
    pub text: String,
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Which run of the worker: the time at which it began.
    pub run: u64,
    /// How often this happened; the same refusal within a short time is told twice, not a thousand times.
    pub times: u64,
    /// Whether this is an old line of a connection that was still open when the file before this one was full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carried: bool,
    /// What happened.
    pub event: Event,
}

/// One line of the role `log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Told {
    /// The first line, and again when the worker has begun another run.
    Head(Head),
    /// A line of a file.
    Line(Line),
}

/// What the role `log` begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`FORM`].
    pub form: u32,
    /// The worker's present run; `None` if none ever ran. Connections of other runs are not open any more.
    pub run: Option<u64>,
    /// The gateway's clock.
    pub now_ms: u64,
}

impl Event {
    /// An event of this moment that has happened to nothing yet.
    pub(crate) fn new(instance: &InstanceKey, network: &str, via: Via, phase: Phase) -> Self {
        Self {
            time_ms: now_ms(),
            instance: instance.clone(),
            network: network.to_owned(),
            id: 0,
            via,
            phase,
            name: None,
            address: None,
            port: None,
            reason: None,
            sent: 0,
            received: 0,
            millis: 0,
        }
    }

    fn bound(mut self) -> Self {
        if let Some(name) = &mut self.name {
            shorten(name, NAME_MAX);
        }
        if let Some(why) = &mut self.reason {
            shorten(&mut why.text, TEXT_MAX);
            shorten(&mut why.code, TEXT_MAX);
        }
        self
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dns => "dns",
            Self::Tcp => "tcp",
            Self::Proxy => "proxy",
        })
    }
}

/// Takes events; clones share one thread and one set of files.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    events: SyncSender<Event>,
}

#[derive(Debug, Default)]
struct Shared {
    ids: AtomicU64,
    instances: Mutex<HashMap<InstanceKey, Load>>,
}

/// What one instance has in the channel, and what it has lost.
#[derive(Debug, Default)]
struct Load {
    pending: u64,
    lost: u64,
    network: String,
}

impl Recorder {
    /// Begins a run: events go to files in `folder`, written by a thread that ends with the last recorder.
    pub(crate) fn start(folder: &Path) -> io::Result<Self> {
        Self::start_with(folder, rings::FILE_BYTES, TICK)
    }

    fn start_with(folder: &Path, file_bytes: u64, tick: Duration) -> io::Result<Self> {
        let mut rings = Rings::open(folder, now_ms(), file_bytes)?;
        let (events, receiver) = sync_channel::<Event>(PENDING);
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::Builder::new()
            .name("record".to_owned())
            .spawn(move || {
                loop {
                    match receiver.recv_timeout(tick) {
                        Ok(event) => {
                            of_thread.taken(&event.instance);
                            rings.write(event);
                        }
                        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                    }
                    for (instance, network, lost) in of_thread.losses() {
                        rings.lost(&instance, &network, lost);
                    }
                    rings.settle(now_ms());
                }
                for (instance, network, lost) in of_thread.losses() {
                    rings.lost(&instance, &network, lost);
                }
                rings.settle(u64::MAX);
            })?;
        Ok(Self { shared, events })
    }

    /// A number for a connection that is about to be recorded, from 1.
    pub(crate) fn next_id(&self) -> u64 {
        self.shared.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Takes an event; never waits. One that does not fit is counted.
    pub(crate) fn record(&self, event: Event) {
        let event = event.bound();
        if !self.shared.admit(&event) {
            return;
        }
        if let Err(TrySendError::Full(event) | TrySendError::Disconnected(event)) =
            self.events.try_send(event)
        {
            self.shared.refused(&event.instance);
        }
    }
}

impl Shared {
    /// Whether the instance may have one more in the channel.
    fn admit(&self, event: &Event) -> bool {
        let mut instances = self
            .instances
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let load = instances.entry(event.instance.clone()).or_default();
        if load.pending >= PENDING_EACH {
            load.lost += 1;
            load.network.clone_from(&event.network);
            return false;
        }
        load.pending += 1;
        true
    }

    fn refused(&self, instance: &InstanceKey) {
        let mut instances = self
            .instances
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(load) = instances.get_mut(instance) {
            load.pending = load.pending.saturating_sub(1);
            load.lost += 1;
        }
    }

    fn taken(&self, instance: &InstanceKey) {
        let mut instances = self
            .instances
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(load) = instances.get_mut(instance) {
            load.pending = load.pending.saturating_sub(1);
            if load.pending == 0 && load.lost == 0 {
                instances.remove(instance);
            }
        }
    }

    /// What was lost by instances whose other events are all written: so the count stands after what it follows, once
    /// a flood, not once an event.
    fn losses(&self) -> Vec<(InstanceKey, String, u64)> {
        let mut instances = self
            .instances
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut losses = Vec::new();
        instances.retain(|instance, load| {
            if load.pending > 0 {
                return true;
            }
            if load.lost > 0 {
                losses.push((instance.clone(), load.network.clone(), load.lost));
            }
            false
        });
        losses
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
}

fn shorten(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

#[cfg(test)]
mod tests;
