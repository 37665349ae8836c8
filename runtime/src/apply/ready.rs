//! Waiting until a container can be called (W1, W2), and saying why it cannot.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use selu_compiler::model::InstanceKey;
use selu_compiler::observed::ContainerState;
use selu_compiler::plan::PlannedContainer;
use tokio::time::{sleep, timeout};

use crate::engine::{Engine, EngineError};
use crate::invoke::{CallError, Client, Health};
use crate::secrets::Redactor;
use crate::stop::Stop;

/// How long a container may take unless the caller says otherwise (W1).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the state is looked at, and the first pause between two health checks.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two health checks: a slow start must not fill the container's log with refusals.
const LONGEST_PAUSE: Duration = Duration::from_millis(800);

/// Limit of one health check: one that hangs must not use up the whole time.
const ONE_CHECK: Duration = Duration::from_secs(5);

/// How many log lines an error quotes.
const LOG_LINES: u32 = 20;

/// How many characters of a log line an error quotes.
const LINE_CHARS: usize = 400;

/// Why a container is not ready.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// It ended (W2).
    #[error("the container ended before it was ready: {how}{logs}")]
    Ended {
        /// Exit code in words.
        how: String,
        /// Last log lines, ready to be appended.
        logs: String,
    },
    /// It disappeared.
    #[error("the container disappeared before it was ready; did somebody remove it?")]
    Gone,
    /// The time is over.
    #[error("the container was not ready within {} s: {last}{logs}", .limit.as_secs())]
    Slow {
        /// The limit.
        limit: Duration,
        /// What the last health check said.
        last: String,
        /// Last log lines, ready to be appended.
        logs: String,
    },
    /// It serves something else (W4).
    #[error(
        "the capability answers gRPC, but neither selu.capability.v1.Capability/Healthcheck nor, for the older dialect, \
         selu.capability.v1.CapabilityService/HealthCheck{logs}"
    )]
    OtherService {
        /// Last log lines, ready to be appended.
        logs: String,
    },
    /// The engine failed.
    #[error("the container's state is unknown")]
    Engine(#[from] EngineError),
    /// A wish to stop came first.
    #[error("interrupted while waiting for the container to be ready")]
    Interrupted,
}

/// What is waited for.
pub(crate) struct Wait<'a> {
    pub(crate) engine: &'a dyn Engine,
    pub(crate) gateway: &'a str,
    pub(crate) instance: &'a InstanceKey,
    pub(crate) container: &'a PlannedContainer,
    pub(crate) limit: Duration,
    pub(crate) redactor: &'a Redactor,
    pub(crate) stop: &'a Stop,
}

impl Wait<'_> {
    /// Polls the health from the start, watches the container meanwhile, and gives up at the limit.
    pub(crate) async fn ready(&self) -> Result<(), NotReady> {
        let last = Mutex::new("no health check was answered".to_owned());
        tokio::select! {
            biased;
            () = self.stop.wait() => Err(NotReady::Interrupted),
            answer = self.healthy(&last) => answer,
            ended = self.ended() => Err(ended),
            () = sleep(self.limit) => {
                // It may have ended in this very moment, which says more.
                if let Some(ended) = self.look().await? {
                    return Err(ended);
                }
                let last = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
                Err(NotReady::Slow { limit: self.limit, last, logs: self.logs().await })
            }
        }
    }

    async fn healthy(&self, last: &Mutex<String>) -> Result<(), NotReady> {
        let mut pause = PAUSE;
        loop {
            let said = match self.check().await {
                Ok(Health::Ready) => return Ok(()),
                Ok(Health::NotReady { message }) if message.is_empty() => {
                    "it answers `ready: false`".to_owned()
                }
                Ok(Health::NotReady { message }) => format!("it answers `ready: false`: {message}"),
                Err(CallError::OtherService) => {
                    return Err(NotReady::OtherService {
                        logs: self.logs().await,
                    });
                }
                Err(error @ CallError::Unreachable { .. }) => {
                    format!("{error}; does it listen on 0.0.0.0:50051, and not on localhost only?")
                }
                Err(error) => super::chain(&error),
            };
            let said = self.redactor.clean(&said);
            tracing::debug!(instance = %self.instance, "not ready: {said}");
            *last.lock().unwrap_or_else(PoisonError::into_inner) = said;
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn check(&self) -> Result<Health, CallError> {
        let attempt = async {
            let network = &self.container.network.name;
            let client = Client::connect(self.engine, self.gateway, network).await?;
            client.health(ONE_CHECK).await
        };
        let limit = ONE_CHECK * 2;
        timeout(limit, attempt)
            .await
            .unwrap_or(Err(CallError::Deadline { deadline: limit }))
    }

    async fn ended(&self) -> NotReady {
        loop {
            sleep(PAUSE).await;
            match self.look().await {
                Ok(None) => {}
                Ok(Some(ended)) => return ended,
                Err(error) => return error.into(),
            }
        }
    }

    async fn look(&self) -> Result<Option<NotReady>, EngineError> {
        let Some(found) = self.engine.container(&self.container.name).await? else {
            return Ok(Some(NotReady::Gone));
        };
        Ok(match found.state {
            ContainerState::Created | ContainerState::Running | ContainerState::Restarting => None,
            ContainerState::Paused => Some(NotReady::Ended {
                how: "somebody paused it".to_owned(),
                logs: String::new(),
            }),
            ContainerState::Dead => Some(NotReady::Ended {
                how: "the engine reports it as dead".to_owned(),
                logs: self.logs().await,
            }),
            ContainerState::Exited { code, oom_killed } => Some(NotReady::Ended {
                how: explain_exit(code, oom_killed, self.container.spec.memory_bytes),
                logs: self.logs().await,
            }),
        })
    }

    async fn logs(&self) -> String {
        last_words(self.engine, &self.container.name, self.redactor).await
    }
}

/// The last lines of a container's log, ready to be appended to an error; secrets removed.
pub(super) async fn last_words(engine: &dyn Engine, name: &str, redactor: &Redactor) -> String {
    match engine.logs(name, LOG_LINES).await {
        Ok(text) if text.trim().is_empty() => "\nit logged nothing".to_owned(),
        Ok(text) => quoted(&redactor.clean(&text)),
        Err(error) => format!("\nits log is unavailable: {error}"),
    }
}

/// Line by line, and no line so long that it hides the others.
fn quoted(text: &str) -> String {
    let mut quoted = "\nits last log lines:".to_owned();
    for line in text.lines() {
        quoted.push_str("\n  | ");
        match line.char_indices().nth(LINE_CHARS) {
            Some((end, _)) => {
                quoted.push_str(&line[..end]);
                quoted.push_str(&format!("… ({} more bytes)", line.len() - end));
            }
            None => quoted.push_str(line),
        }
    }
    quoted
}

/// An exit code in words; a kill for memory in three grades (R3).
pub fn explain_exit(code: i64, oom_killed: bool, memory_bytes: u64) -> String {
    let limit = format!("{} MiB", memory_bytes / (1024 * 1024));
    match code {
        _ if oom_killed => format!(
            "exit code {code}, killed for memory: its limit of {limit} (resources.max_memory_mb) is too small for it"
        ),
        137 => format!(
            "exit code 137, killed by signal 9 without the engine's out-of-memory flag: likely for memory if it was near \
             its limit of {limit}, else by somebody"
        ),
        139 => "exit code 139, a crash (signal 11, segmentation fault)".to_owned(),
        129..=165 => format!("exit code {code}, ended by signal {}", code - 128),
        126 => "exit code 126: its command exists but can't be executed".to_owned(),
        127 => "exit code 127: its command was not found in the image".to_owned(),
        0 => "exit code 0: its command ended, where a server goes on running".to_owned(),
        _ => format!("exit code {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_in_the_log_does_not_flood_the_error() {
        let text = quoted(&format!("short\n{}\nlast\n", "é".repeat(16 << 10)));
        assert!(text.len() < 2000, "{}", text.len());
        assert!(text.contains("| short\n") && text.ends_with("| last"));
        assert!(text.contains("… (31968 more bytes)\n"), "{text}");
    }

    #[test]
    fn c10_a_kill_is_told_from_a_kill_for_memory() {
        let explain = |code, flag| explain_exit(code, flag, 128 << 20);
        let flagged = explain(137, true);
        assert!(flagged.contains("killed for memory") && flagged.contains("128 MiB"));
        let likely = explain(137, false);
        assert!(
            likely.contains("without the engine's out-of-memory flag"),
            "{likely}"
        );
        assert!(likely.contains("likely for memory") && likely.contains("128 MiB"));
        let other = explain(143, false);
        assert!(
            other.contains("exit code 143") && !other.contains("memory"),
            "{other}"
        );
    }

    #[test]
    fn f07_exit_codes_are_explained_and_memory_has_its_grades() {
        let explain = |code, flag| explain_exit(code, flag, 128 << 20);
        assert!(explain(137, true).contains("killed for memory: its limit of 128 MiB"));
        assert!(explain(137, false).contains("likely for memory"));
        assert!(
            explain(1, true).contains("killed for memory"),
            "a child was killed"
        );
        assert!(explain(139, false).contains("segmentation fault"));
        assert!(explain(143, false).contains("signal 15"));
        assert_eq!(explain(3, false), "exit code 3");
    }
}
