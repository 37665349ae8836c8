//! `selu gateway worker`: everything that touches bytes of a container or of the outside (S7).
//!
//! It runs without a capability, in a jail of its own, and carries nothing but what its parent ordered last. Each network
//! has its own DNS, listener and proxy, bound to its device (S5); a [`NetworkContext`] is what they share.

mod addresses;
mod carry;
mod context;
mod dial;
mod dns;
#[cfg(test)]
mod fuzz;
mod http;
mod jail;
mod limits;
mod listen;
mod live;
mod metered;
mod networks;
mod proxy;
mod reach;
mod rules;
mod sniff;
mod splice;
#[cfg(test)]
mod testing;

use std::path::Path;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

pub(crate) use self::context::{GoingBy, NetworkContext};
use self::networks::Networks;
pub use self::reach::{Kind as AddressKind, kind as address_kind};
use super::control::{Order, Report};
use super::policy::MAX_BYTES;
use super::record::{LOG_FOLDER, Recorder};
use crate::chain;

/// Where the engine says which resolvers the gateway has.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Threads that carry: one flood leaves the other one free.
const THREADS: usize = 2;

/// Why the worker ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerError {
    /// It could not be confined.
    #[error(transparent)]
    Jail(#[from] jail::JailError),
    /// What it needs of its surroundings failed.
    #[error("cannot {what}")]
    System {
        /// Such as `read an order`.
        what: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The parent says what this worker does not understand.
    #[error("the parent's order cannot be read")]
    Order(#[source] serde_json::Error),
}

impl WorkerError {
    fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

/// Runs until the parent closes standard input.
pub(crate) fn main() -> Result<(), WorkerError> {
    // Before the first byte of anybody else, and before there is a second thread.
    jail::enter()?;
    let recorder = Recorder::start(Path::new(LOG_FOLDER))
        .map_err(WorkerError::system("open the log of connections"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_io()
        .enable_time()
        .build()
        .map_err(WorkerError::system("start"))?;
    let networks = Networks::new(LOG_FOLDER, RESOLV_CONF, recorder);
    let ended = runtime.block_on(obey(networks, tokio::io::stdin(), tokio::io::stdout()));
    // A blocked read of standard input must not keep the process.
    runtime.shutdown_background();
    ended
}

/// Carries out orders and reports.
async fn obey(
    mut networks: Networks,
    orders: impl AsyncRead + Unpin,
    mut reports: impl AsyncWrite + Unpin,
) -> Result<(), WorkerError> {
    let mut orders = BufReader::new(orders);
    loop {
        let mut line = Vec::new();
        // An order holds a policy, and devices besides.
        (&mut orders)
            .take(2 * MAX_BYTES)
            .read_until(b'\n', &mut line)
            .await
            .map_err(WorkerError::system("read an order"))?;
        if line.is_empty() {
            return Ok(());
        }
        let report = match serde_json::from_slice(&line).map_err(WorkerError::Order)? {
            Order::Apply(apply) => match networks.apply(&apply).await {
                Ok(()) => Report::Applied {
                    generation: apply.policy.generation,
                    hash: apply.hash,
                },
                Err(error) => {
                    networks.stop_all().await;
                    Report::Failed(chain(&error))
                }
            },
            Order::Ping => match tokio::spawn(async {}).await {
                // A thread that carries has come to it.
                Ok(()) => Report::Alive,
                Err(error) => Report::Failed(error.to_string()),
            },
        };
        let mut line = serde_json::to_vec(&report).map_err(WorkerError::Order)?;
        line.push(b'\n');
        reports
            .write_all(&line)
            .await
            .map_err(WorkerError::system("report"))?;
        reports
            .flush()
            .await
            .map_err(WorkerError::system("report"))?;
    }
}

#[cfg(test)]
mod tests;
