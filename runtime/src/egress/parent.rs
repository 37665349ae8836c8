//! Process 1 of a gateway that carries egress: the one privileged part (S7).
//!
//! It reads the policy that the desk has delivered, gives the kernel its routes and its packet filter, has the worker go
//! by the policy, and says so on the control socket. It never touches a byte of a container. Whatever fails, the
//! outcome is that nothing is carried: without a worker nothing listens, and the filter is closed by default.

mod socket;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use ipnet::Ipv4Net;
use rustix::process::{WaitOptions, wait};
use selu_compiler::plan::GatewayRule;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::control::{Apply, Device, Question};
use super::devices::{Devices, Routes};
use super::netlink::{self, NetlinkError, Notices};
use super::policy::{PolicyError, Sealed, Standing};
use super::store::{Store, StoreError};
use super::wall::{self, Door, Wall};
use crate::chain;
use socket::Asked;
use worker::{Worker, WorkerError};

/// How long a worker waits to be started again at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A worker that lived so long did not fail at once.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// A device comes with several notices; after the first the others are awaited.
const SETTLE: Duration = Duration::from_millis(20);

/// Devices are looked at so often even without a notice.
const LOOK: Duration = Duration::from_secs(2);

/// Why the parent ends, and with it everything in the container. The engine starts it again.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParentError {
    /// It could not begin, or lost what it watches.
    #[error("cannot {what}")]
    Begin {
        /// Such as `listen on the control socket`.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// It has no right to end the worker, so it ends itself.
    #[error("the worker does not end although its orders did")]
    Stubborn,
}

/// Why the policy is not gone by.
#[derive(Debug, thiserror::Error)]
enum ApplyError {
    #[error(transparent)]
    Policy(#[from] StoreError),
    #[error("cannot look at the gateway's devices")]
    Devices(#[source] io::Error),
    #[error(transparent)]
    Kernel(#[from] NetlinkError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

/// Serves until it is told to end.
pub(super) async fn run(store: Store) -> Result<(), ParentError> {
    let begin = |what| move |source| ParentError::Begin { what, source };
    let mut terminate =
        signal(SignalKind::terminate()).map_err(begin("listen for the signal to end"))?;
    let mut interrupt =
        signal(SignalKind::interrupt()).map_err(begin("listen for the signal to end"))?;
    let mut child = signal(SignalKind::child()).map_err(begin("listen for ended processes"))?;
    let mut notices = Notices::listen().map_err(begin("listen for devices"))?;
    let mut questions = socket::open().map_err(begin("listen on the control socket"))?;
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);

    let mut parent = Parent::new(store);
    parent.apply().await?;
    loop {
        let again = parent.again;
        tokio::select! {
            biased;
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = child.recv() => parent.bury(),
            question = questions.recv() => parent.answer(question).await?,
            () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => parent.apply().await?,
            noise = heard(&mut parent.worker) => parent.noise(noise).await?,
            notice = notices.next() => {
                notice.map_err(begin("listen for devices"))?;
                sleep(SETTLE).await;
                parent.look().await?;
            }
            _ = tick.tick() => {
                parent.look().await?;
                parent.check().await?;
            }
        }
    }
}

/// Whatever a worker says without being asked.
async fn heard(worker: &mut Option<Worker>) -> Option<String> {
    match worker {
        Some(worker) => worker.unasked().await,
        None => std::future::pending().await,
    }
}

/// The devices, as far as the policy is concerned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Scan {
    outside: Option<Device>,
    networks: BTreeMap<String, Device>,
}

impl Scan {
    fn of(sealed: &Sealed) -> io::Result<Self> {
        let routes = Routes::read()?;
        let mut networks = BTreeMap::new();
        let devices = Devices::open()?;
        for (network, rule) in &sealed.policy.networks {
            if let Some(name) = routes.device_in(rule.subnet)
                && let Some(device) = devices.find(name)?
            {
                networks.insert(network.clone(), device);
            }
        }
        let outside = match routes.outside() {
            Some(name) => devices.find(name)?,
            None => None,
        };
        Ok(Self { outside, networks })
    }
}

struct Parent {
    store: Store,
    worker: Option<Worker>,
    /// Routes that are set.
    owned: BTreeSet<Ipv4Net>,
    /// What is gone by, and the devices that it was given.
    standing: Result<(Standing, Scan), String>,
    /// When to try again.
    again: Option<Instant>,
    pause: Duration,
}

impl Parent {
    fn new(store: Store) -> Self {
        Self {
            store,
            worker: None,
            owned: BTreeSet::new(),
            standing: Err("the gateway has just begun".to_owned()),
            again: None,
            pause: FIRST_PAUSE,
        }
    }

    async fn answer(&mut self, asked: Option<Asked>) -> Result<(), ParentError> {
        let Some(Asked { question, reply }) = asked else {
            return Ok(());
        };
        match question {
            Question::Reload => self.apply().await?,
            Question::Show => self.look().await?,
        }
        let standing = self.standing.clone().map(|(standing, _)| standing);
        // Whoever asked may have gone.
        let _ = reply.send(standing);
        Ok(())
    }

    /// Goes by the policy again if the devices are not what they were.
    async fn look(&mut self) -> Result<(), ParentError> {
        let Ok((_, known)) = &self.standing else {
            return Ok(());
        };
        let scan = self.store.load().ok().map(|sealed| Scan::of(&sealed));
        match scan {
            Some(Ok(scan)) if scan == *known => Ok(()),
            _ => self.apply().await,
        }
    }

    /// Goes by the policy that is there. What can't be gone by ends the worker, so that nothing is carried.
    async fn apply(&mut self) -> Result<(), ParentError> {
        self.again = None;
        match self.try_apply().await {
            Ok(standing) => {
                self.standing = Ok(standing);
                Ok(())
            }
            Err(error) => {
                let text = chain(&error);
                let news = self.standing.as_ref().err() != Some(&text);
                match error {
                    ApplyError::Policy(StoreError::Policy(PolicyError::Missing)) => {}
                    ApplyError::Policy(_) if news => super::roles::complain_of(&text),
                    ApplyError::Policy(_) => {}
                    _ => {
                        super::roles::complain_of(&text);
                        self.try_later();
                    }
                }
                self.standing = Err(text);
                self.end_worker().await
            }
        }
    }

    async fn try_apply(&mut self) -> Result<(Standing, Scan), ApplyError> {
        let sealed = match self.store.load() {
            Ok(sealed) => sealed,
            Err(error) => {
                wall::put_up(&Wall::default())?;
                return Err(error.into());
            }
        };
        let scan = Scan::of(&sealed).map_err(ApplyError::Devices)?;
        let wall = wall_for(&sealed, &scan);
        let ranges: BTreeSet<Ipv4Net> = wall.doors.iter().filter_map(|door| door.open).collect();
        let missing: Vec<Ipv4Net> = ranges.difference(&self.owned).copied().collect();
        netlink::own(&missing)?;
        self.owned.extend(missing);
        wall::put_up(&wall)?;
        let worker = match &mut self.worker {
            Some(worker) => worker,
            none => none.insert(Worker::start()?),
        };
        worker.order(order(&sealed, &scan)).await?;
        for range in self.owned.clone().difference(&ranges) {
            netlink::disown(*range)?;
            self.owned.remove(range);
        }
        let unattached = |network: &&String| !scan.networks.contains_key(*network);
        let networks = sealed.policy.networks.keys();
        let standing = Standing {
            ack: sealed.ack(),
            refused: sealed.policy.refused.clone(),
            unattached: networks.filter(unattached).cloned().collect(),
            problem: None,
        };
        Ok((standing, scan))
    }

    /// A worker that hangs carries nothing and would be noticed by nobody: it is replaced.
    async fn check(&mut self) -> Result<(), ParentError> {
        let Some(worker) = &mut self.worker else {
            return Ok(());
        };
        match worker.check().await {
            Ok(()) => Ok(()),
            Err(error) => {
                self.lost_worker(&chain(&error));
                self.end_worker().await
            }
        }
    }

    /// A worker that says something unasked has lost the thread: it ends.
    async fn noise(&mut self, noise: Option<String>) -> Result<(), ParentError> {
        let text = match noise {
            Some(line) => format!("the worker said something unasked: {line}"),
            None => "the worker has closed its output".to_owned(),
        };
        self.lost_worker(&text);
        self.end_worker().await
    }

    fn lost_worker(&mut self, text: &str) {
        super::roles::complain_of(text);
        self.standing = Err(text.to_owned());
        self.try_later();
    }

    fn try_later(&mut self) {
        let lived = self.worker.as_ref().map(Worker::lived);
        if lived.is_some_and(|lived| lived > LONG_ENOUGH) {
            self.pause = FIRST_PAUSE;
        }
        self.again = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Its orders end, and so must it.
    async fn end_worker(&mut self) -> Result<(), ParentError> {
        let Some(worker) = self.worker.take() else {
            return Ok(());
        };
        if worker.end().await {
            Ok(())
        } else {
            Err(ParentError::Stubborn)
        }
    }

    /// Buries whoever has ended: the worker, and orphans of what the desk ran.
    fn bury(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if self.worker.as_ref().is_some_and(|worker| worker.is(pid)) {
                let how = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => format!("with exit code {code}"),
                    (None, Some(signal)) => format!("by signal {signal}"),
                    (None, None) => "somehow".to_owned(),
                };
                self.lost_worker(&format!("the worker has ended {how}"));
                self.worker = None;
            }
        }
    }
}

fn wall_for(sealed: &Sealed, scan: &Scan) -> Wall {
    let door = |(network, rule): (&String, &GatewayRule)| {
        let planned = rule.network(network);
        Some(Door {
            device: scan.networks.get(network)?.index,
            capability: planned.capability,
            gateway: planned.gateway,
            open: rule.is_open().then(|| planned.virtual_range()),
        })
    };
    Wall {
        outside: scan.outside.as_ref().map(|device| device.index),
        doors: sealed.policy.networks.iter().filter_map(door).collect(),
    }
}

fn order(sealed: &Sealed, scan: &Scan) -> Apply {
    let open = |network: &String| {
        let rule = sealed.policy.networks.get(network);
        rule.is_some_and(GatewayRule::is_open)
    };
    let networks = scan.networks.iter().filter(|(network, _)| open(network));
    Apply {
        hash: sealed.hash.clone(),
        policy: sealed.policy.clone(),
        networks: networks
            .map(|(network, device)| (network.clone(), device.clone()))
            .collect(),
        outside: scan.outside.clone(),
    }
}
