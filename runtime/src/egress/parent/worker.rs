//! The worker as its parent sees it: a process of another user, orders in, reports out.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::super::WORKER_UID;
use super::super::control::{Apply, Order, Report};

/// How long a worker may take to go by a policy.
const ORDER_LIMIT: Duration = Duration::from_secs(30);

/// One that has said nothing for so long is asked whether it is alive, and how long that answer may take: longer than any
/// load holds it up.
const CHECKED: Duration = Duration::from_secs(10);
const PING_LIMIT: Duration = Duration::from_secs(20);

/// How long it may take to end once its orders have ended.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Longest report that is read.
const LONGEST_REPORT: u64 = 64 * 1024;

/// Why the worker does not go by a policy.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkerError {
    /// It could not be started.
    #[error("cannot start the worker")]
    Start(#[source] io::Error),
    /// It could not be told.
    #[error("the worker does not take orders")]
    Order(#[source] io::Error),
    /// It did not answer.
    #[error("the worker did not answer within {0} s")]
    Silent(u64),
    /// It ended, or talks nonsense.
    #[error("the worker broke off before it went by the policy")]
    BrokeOff,
    /// It said why.
    #[error("the worker cannot go by the policy: {0}")]
    Failed(String),
    /// It goes by something else.
    #[error("the worker answered for {answered}, not for {ordered}")]
    Other {
        /// The hash that it named.
        answered: String,
        /// The hash that was ordered.
        ordered: String,
    },
}

/// A running worker.
pub(super) struct Worker {
    pid: Pid,
    started: Instant,
    /// When it last answered, or should have.
    heard: Instant,
    orders: pipe::Sender,
    /// Lines of its output; closed once that is.
    reports: mpsc::Receiver<String>,
}

impl Worker {
    /// Starts it: the same executable, without a right, without an environment.
    pub(super) fn start() -> Result<Self, WorkerError> {
        let spawn = || {
            let mut child = Command::new(std::env::current_exe()?)
                .args(["gateway", "worker"])
                .env_clear()
                .current_dir("/")
                .uid(WORKER_UID)
                .gid(WORKER_UID)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let (pid, stdin, stdout) = match (pid, child.stdin.take(), child.stdout.take()) {
                (Some(pid), Some(stdin), Some(stdout)) => (pid, stdin, stdout),
                _ => return Err(io::Error::other("it has no streams")),
            };
            let orders = pipe::Sender::from_owned_fd(OwnedFd::from(stdin))?;
            let output = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?;
            Ok((pid, orders, output))
        };
        let (pid, orders, output) = spawn().map_err(WorkerError::Start)?;
        let (sender, reports) = mpsc::channel(4);
        tokio::spawn(listen(output, sender));
        Ok(Self {
            pid,
            started: Instant::now(),
            heard: Instant::now(),
            orders,
            reports,
        })
    }

    /// Has it go by a policy.
    pub(super) async fn order(&mut self, apply: Apply) -> Result<(), WorkerError> {
        let ordered = apply.hash.clone();
        match self
            .talk(Order::Apply(Box::new(apply)), ORDER_LIMIT)
            .await?
        {
            Report::Applied { hash, .. } if hash == ordered => Ok(()),
            Report::Applied { hash, .. } => Err(WorkerError::Other {
                answered: hash,
                ordered,
            }),
            Report::Failed(message) => Err(WorkerError::Failed(message)),
            Report::Alive => Err(WorkerError::BrokeOff),
        }
    }

    /// Makes sure that it still does anything, if that is due.
    pub(super) async fn check(&mut self) -> Result<(), WorkerError> {
        if self.heard.elapsed() < CHECKED {
            return Ok(());
        }
        match self.talk(Order::Ping, PING_LIMIT).await? {
            Report::Alive => Ok(()),
            Report::Failed(message) => Err(WorkerError::Failed(message)),
            Report::Applied { .. } => Err(WorkerError::BrokeOff),
        }
    }

    async fn talk(&mut self, order: Order, limit: Duration) -> Result<Report, WorkerError> {
        let talk = async {
            let mut line =
                serde_json::to_vec(&order).map_err(|error| WorkerError::Order(error.into()))?;
            line.push(b'\n');
            self.orders
                .write_all(&line)
                .await
                .map_err(WorkerError::Order)?;
            let line = self.reports.recv().await.ok_or(WorkerError::BrokeOff)?;
            serde_json::from_str(&line).map_err(|_| WorkerError::BrokeOff)
        };
        let report = timeout(limit, talk).await;
        self.heard = Instant::now();
        report.unwrap_or(Err(WorkerError::Silent(limit.as_secs())))
    }

    /// What it says without having been asked; `None` once it has closed its output.
    pub(super) async fn unasked(&mut self) -> Option<String> {
        self.reports.recv().await
    }

    pub(super) fn is(&self, pid: Pid) -> bool {
        self.pid == pid
    }

    pub(super) fn lived(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends its orders and waits until it has closed its output; says whether it has. The parent has no right to signal
    /// another user's process.
    pub(super) async fn end(self) -> bool {
        let Self {
            orders,
            mut reports,
            ..
        } = self;
        drop(orders);
        timeout(END_LIMIT, async { while reports.recv().await.is_some() {} })
            .await
            .is_ok()
    }
}

async fn listen(output: pipe::Receiver, reports: mpsc::Sender<String>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut output).take(LONGEST_REPORT);
        match limited.read_until(b'\n', &mut line).await {
            Ok(_) if line.ends_with(b"\n") => {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                if reports.send(text).await.is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}
