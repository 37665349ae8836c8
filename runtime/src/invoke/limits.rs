//! A call within its container's limits (R2, R3): ended when it has used up its CPU time, and explained when something
//! else ended it. The container is usable again afterwards, and the call is never repeated (W3).

use std::time::Duration;

use selu_compiler::model::{InstanceKey, Limits};
use selu_compiler::observed::ContainerState;
use selu_compiler::plan::PlannedContainer;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use super::{Call, CallError, Client, Health};
use crate::apply::{DEFAULT_TIMEOUT, NotReady, Wait, explain_exit};
use crate::chain::chain;
use crate::engine::{Engine, EngineError, Incident, Usage};
use crate::secrets::Redactor;
use crate::slots::{End, Slot};
use crate::stop::Stop;

/// The CPU time that a call may use beyond its limit before it is seen (R2).
const GRACE: Duration = Duration::from_millis(300);

/// CPU time between two looks near the limit: the wait for the engine's answer comes on top of it.
const CLOSEST: Duration = Duration::from_millis(80);

/// The longest time between two looks.
const LONGEST: Duration = Duration::from_secs(1);

/// How long a container may take to answer that it is well after a call that never ended.
const WELL: Duration = Duration::from_secs(5);

/// How long an engine may take to know that a container has ended.
const NOTICED: Duration = Duration::from_secs(2);

/// How often it is asked meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Where a call is made, and within what.
pub struct Bounds<'a> {
    /// Where the container runs.
    pub engine: &'a dyn Engine,
    /// The gateway's container.
    pub gateway: &'a str,
    /// Whose tool is called.
    pub instance: &'a InstanceKey,
    /// The container.
    pub container: &'a PlannedContainer,
    /// Its limits.
    pub limits: &'a Limits,
    /// Keeps values out of what is told of it.
    pub redactor: &'a Redactor,
    /// The call's own place among those that the container serves.
    pub slot: &'a Slot,
    /// Whether to stop.
    pub stop: &'a Stop,
}

/// Why a call gave no result, and how its container is now.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nothing but the call itself.
    #[error(transparent)]
    Call(#[from] CallError),
    /// R2.
    #[error(
        "the call had used up its {limit} s of CPU time (resources.max_cpu_seconds), counted for its whole container, and \
         was ended; {after}"
    )]
    CpuTime {
        /// The limit.
        limit: u64,
        /// The container afterwards.
        after: After,
    },
    /// The statistics are not to be had, so the limit could no longer be kept (R2).
    #[error(
        "the engine did not say how much CPU time the call used, so that its limit of {limit} s \
         (resources.max_cpu_seconds) could not be kept, and it was ended; {after}"
    )]
    Unwatched {
        /// The limit.
        limit: u64,
        /// The container afterwards.
        after: After,
        /// Why.
        source: EngineError,
    },
    /// The container ended during the call (R3).
    #[error("the container ended during the call: {how}; {after}")]
    Ended {
        /// Exit code and grade in words.
        how: String,
        /// The container afterwards.
        after: After,
        /// What the call saw of it.
        source: CallError,
    },
    /// Another call that the container served had it started anew (R2).
    #[error("the container was started anew during the call, for another call: {why}; {after}")]
    WithAnother {
        /// Which, and why.
        why: String,
        /// The container afterwards.
        after: After,
        /// What the call saw of it.
        source: CallError,
    },
    /// A process in the container ended for memory, its server did not (R3).
    #[error(
        "a process in the container was killed for memory during the call: the limit of {limit} MiB \
         (resources.max_memory_mb) was reached"
    )]
    Memory {
        /// The limit.
        limit: u64,
        /// What the call saw of it.
        source: CallError,
    },
    /// No process could be started any more.
    #[error(
        "the limit of {limit} processes and threads (resources.pids_limit) was reached; {after}"
    )]
    Processes {
        /// The limit.
        limit: u64,
        /// The container afterwards.
        after: After,
        /// What the call saw of it.
        source: CallError,
    },
    /// The call never ended, and the container answers nothing else either.
    #[error("the container was still busy with it and answered no health check; {after}")]
    Stuck {
        /// The container afterwards.
        after: After,
        /// What the call saw of it.
        source: CallError,
    },
}

/// How a container is after a call that something ended.
#[derive(Debug)]
pub struct After {
    /// The calls that ended with it, such as `burn (process 12)`.
    pub others: Vec<String>,
    /// Whether it can be called.
    pub state: Again,
}

/// Whether a container that was ended can be called.
#[derive(Debug)]
pub enum Again {
    /// It can.
    Ready,
    /// It cannot.
    NotReady(NotReady),
    /// It could not be started again.
    NotStarted(EngineError),
}

impl std::fmt::Display for After {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { others, state } = self;
        if !others.is_empty() {
            write!(
                f,
                "the other calls that it served ended with it: {}; ",
                others.join(", ")
            )?;
        }
        match state {
            Again::Ready => f.write_str("its container was started anew and is ready"),
            Again::NotReady(why) => write!(f, "its container was started anew, but {why}"),
            Again::NotStarted(why) => write!(f, "its container could not be started anew: {why}"),
        }
    }
}

/// Why the watch ends a call.
enum Over {
    Used,
    Unknown(EngineError),
}

impl Bounds<'_> {
    /// Calls a tool once, within the limits.
    pub async fn call(&self, client: &Client, call: &Call<'_>) -> Result<Vec<u8>, Failure> {
        self.within(client.call(call)).await
    }

    /// Calls a tool once, within the limits, piece by piece.
    pub async fn call_stream(
        &self,
        client: &Client,
        call: &Call<'_>,
        piece: impl FnMut(&[u8]) -> Result<(), CallError>,
    ) -> Result<(), Failure> {
        self.within(client.call_stream(call, piece)).await
    }

    async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, Failure> {
        let watch = Watch {
            started: Instant::now(),
            first: OnceCell::new(),
        };
        let error = tokio::select! {
            biased;
            result = call => match result {
                Ok(result) => return Ok(result),
                Err(error) => error,
            },
            over = self.over(&watch) => {
                let limit = self.limits.cpu_seconds;
                return Err(match over {
                    Over::Used => {
                        let why = "had used up its CPU time (resources.max_cpu_seconds)";
                        Failure::CpuTime { limit, after: self.again(why).await }
                    }
                    Over::Unknown(source) => {
                        let after = self.again("could not be watched").await;
                        Failure::Unwatched { limit, after, source }
                    }
                });
            }
        };
        Err(self.explain(error, &watch).await)
    }

    /// Resolves once the call has used more than it may.
    async fn over(&self, watch: &Watch) -> Over {
        let limit = Duration::from_secs(self.limits.cpu_seconds);
        let mut known = Duration::ZERO;
        let mut at = watch.started;
        loop {
            let left = match self.reading().await {
                Ok(Some(usage)) => {
                    known = watch.used(usage);
                    at = Instant::now();
                    limit.checked_sub(known)
                }
                // It has ended, which the call will notice.
                Ok(None) => Some(LONGEST),
                Err(error) => {
                    // As much as it can have used meanwhile.
                    let at_most = known + self.cores(at.elapsed());
                    if at_most > limit + GRACE {
                        return Over::Unknown(error);
                    }
                    tracing::debug!(instance = %self.instance, "no statistics: {error}");
                    Some(limit.saturating_sub(at_most))
                }
            };
            match left {
                None => return Over::Used,
                Some(left) => sleep(self.pause(left)).await,
            }
        }
    }

    /// What the container has used; `None` if it does not run. An engine that says nothing of one that runs is no reason
    /// to let it go on for ever.
    async fn reading(&self) -> Result<Option<Usage>, EngineError> {
        let name = &self.container.name;
        match self.engine.usage(name).await? {
            Some(usage) => Ok(Some(usage)),
            None if self.state().await == Some(ContainerState::Running) => {
                Err(EngineError::Protocol {
                    call: format!("read the statistics of {name}"),
                    message: "it runs, and there is neither CPU time nor a number of processes"
                        .to_owned(),
                })
            }
            None => Ok(None),
        }
    }

    /// How long to wait before the next look: by then the rest of the time can be used up, and not sooner.
    fn pause(&self, left: Duration) -> Duration {
        let cores = self.limits.nano_cpus.max(1);
        let nanos = u128::from(cores);
        let time = left.max(CLOSEST).as_nanos().saturating_mul(1_000_000_000) / nanos;
        Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX)).min(LONGEST)
    }

    /// The most CPU time that so much time can hold.
    fn cores(&self, time: Duration) -> Duration {
        let nanos = time.as_nanos() * u128::from(self.limits.nano_cpus) / 1_000_000_000;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    async fn explain(&self, error: CallError, watch: &Watch) -> Failure {
        match error {
            CallError::Broken { .. }
            | CallError::Unreachable { .. }
            | CallError::NotGrpc { .. }
            | CallError::Gateway(_) => self.lost(error, watch).await,
            CallError::Deadline { .. } => self.stuck(error).await,
            CallError::Tool { .. } | CallError::Status { .. } => self.hindered(error, watch).await,
            CallError::OtherService
            | CallError::NotInOlder { .. }
            | CallError::ContextName { .. }
            | CallError::Unimplemented { .. }
            | CallError::RequestTooLarge { .. }
            | CallError::ResultTooLarge { .. }
            | CallError::Artifact { .. } => error.into(),
        }
    }

    /// The connection is gone: did the container end?
    async fn lost(&self, error: CallError, watch: &Watch) -> Failure {
        if let Ok(Some(why)) = self.slot.ended() {
            return Failure::WithAnother {
                why,
                after: self.again("was lost with it").await,
                source: error,
            };
        }
        let Some((code, memory)) = self.ended(watch).await else {
            return error.into();
        };
        let how = explain_exit(code, memory, self.container.spec.memory_bytes);
        let after = match self.state().await {
            // The engine has started it again by itself.
            Some(ContainerState::Running) => After {
                others: self.others(),
                state: self.wait().await,
            },
            _ => {
                self.again(&format!("was under way when it ended: {how}"))
                    .await
            }
        };
        Failure::Ended {
            how,
            after,
            source: error,
        }
    }

    /// The exit code, and whether memory was short. The connection breaks before the engine knows of the end.
    async fn ended(&self, watch: &Watch) -> Option<(i64, bool)> {
        let give_up = Instant::now() + NOTICED;
        loop {
            let incidents = self.incidents(watch).await;
            let memory = incidents.contains(&Incident::OutOfMemory);
            let code = incidents.iter().rev().find_map(|incident| match incident {
                Incident::Ended { code } => Some(*code),
                Incident::OutOfMemory => None,
            });
            if let Some(code) = code {
                return Some((code, memory));
            }
            // An engine that remembers no events still has its state.
            if let Some(ContainerState::Exited { code, oom_killed }) = self.state().await {
                return Some((code, oom_killed));
            }
            if Instant::now() >= give_up {
                return None;
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// The tool failed: was it for want of memory or processes?
    async fn hindered(&self, error: CallError, watch: &Watch) -> Failure {
        let usage = self.engine.usage(&self.container.name).await;
        if let Ok(Some(usage)) = usage
            && usage.pids >= self.limits.pids
        {
            return Failure::Processes {
                limit: self.limits.pids,
                after: self
                    .again("met the limit of processes (resources.pids_limit)")
                    .await,
                source: error,
            };
        }
        if self.incidents(watch).await.contains(&Incident::OutOfMemory) {
            return Failure::Memory {
                limit: self.limits.memory_mb,
                source: error,
            };
        }
        error.into()
    }

    /// The time is over. A server that can still be asked has room for the next call.
    async fn stuck(&self, error: CallError) -> Failure {
        let check = async {
            let network = &self.container.network.name;
            let client = Client::connect(self.engine, self.gateway, network).await?;
            client.health(WELL).await
        };
        match tokio::time::timeout(WELL * 2, check).await {
            Ok(Ok(Health::Ready)) => error.into(),
            _ => Failure::Stuck {
                after: self.again("never ended").await,
                source: error,
            },
        }
    }

    async fn incidents(&self, watch: &Watch) -> Vec<Incident> {
        let name = &self.container.name;
        self.engine
            .incidents(name, watch.started.into_std())
            .await
            .unwrap_or_else(|error| {
                tracing::debug!(instance = %self.instance, "no events: {error}");
                Vec::new()
            })
    }

    async fn state(&self) -> Option<ContainerState> {
        let found = self.engine.container(&self.container.name).await;
        found.ok().flatten().map(|found| found.state)
    }

    /// Ends whatever goes on in the container, and has it ready for the next call. `why` says what this call did, to the
    /// others that end with it. What another of them has begun is not done twice.
    async fn again(&self, why: &str) -> After {
        let others = self.others();
        let why = format!("{} {why}", self.slot.what());
        let own = match self.slot.end(&why).await {
            Ok(End::Own(ending)) => Some(ending),
            Ok(End::Others(_)) => {
                return After {
                    others: Vec::new(),
                    state: self.wait().await,
                };
            }
            // The limit counts more than telling the others.
            Err(error) => {
                tracing::debug!(instance = %self.instance, "no note of the end: {}", chain(&error));
                None
            }
        };
        let state = match self.engine.restart(&self.container.name).await {
            Ok(()) => self.wait().await,
            Err(error) => Again::NotStarted(error),
        };
        drop(own);
        After { others, state }
    }

    /// What else the container serves.
    fn others(&self) -> Vec<String> {
        self.slot
            .others()
            .unwrap_or_else(|error| vec![format!("any that there were ({})", chain(&error))])
    }

    async fn wait(&self) -> Again {
        let wait = Wait {
            engine: self.engine,
            gateway: self.gateway,
            instance: self.instance,
            container: self.container,
            limit: DEFAULT_TIMEOUT,
            redactor: self.redactor,
            stop: self.stop,
        };
        match wait.ready().await {
            Ok(()) => Again::Ready,
            Err(why) => Again::NotReady(why),
        }
    }
}

/// A call's own share of what its container uses.
struct Watch {
    started: Instant,
    /// The first reading.
    first: OnceCell<u64>,
}

impl Watch {
    /// The CPU time since the first reading. A container that was started anew counts from zero.
    fn used(&self, usage: Usage) -> Duration {
        let Some(first) = self.first.get() else {
            // Only one look goes on at a time.
            let _ = self.first.set(usage.cpu_nanos);
            return Duration::ZERO;
        };
        let used = usage.cpu_nanos.checked_sub(*first);
        Duration::from_nanos(used.unwrap_or(usage.cpu_nanos))
    }
}

#[cfg(test)]
mod tests;
