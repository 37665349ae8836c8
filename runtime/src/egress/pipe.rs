//! `selu gateway pipe NETWORK`: one container's port 50051 on this process's standard streams (S1).

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use ipnet::Ipv4Net;
use selu_proto::PORT;
use tokio::net::TcpSocket;

use super::devices::Routes;
use super::policy::PolicyError;
use super::store::{Store, StoreError};

/// The first line on standard output, once the container answered. What follows is the container's.
pub const OPENED: &[u8] = b"selu-pipe 1\n";

/// How long a container that was never reached may take to accept.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long the container may go on after the desk has ended its side. A container that never closes must not keep the
/// pipe's process alive.
const LINGER: Duration = Duration::from_secs(10);

/// Why a pipe did not open.
#[derive(Debug, thiserror::Error)]
pub(super) enum PipeError {
    /// Not by the policy.
    #[error(transparent)]
    Refused(#[from] StoreError),
    /// The gateway is not attached to that network.
    #[error("the gateway is not attached to network {network} ({subnet})")]
    NotAttached {
        /// The network.
        network: String,
        /// Its subnet.
        subnet: Ipv4Net,
    },
    /// Nothing accepts.
    #[error("cannot reach {address} in network {network} through {device}")]
    Connect {
        /// The container.
        address: SocketAddr,
        /// The network.
        network: String,
        /// The gateway's device in it.
        device: String,
        /// Why.
        source: io::Error,
    },
    /// The streams failed.
    #[error("cannot {what}")]
    Streams {
        /// Such as `open the standard streams`.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl From<PolicyError> for PipeError {
    fn from(error: PolicyError) -> Self {
        Self::Refused(error.into())
    }
}

/// Opens the pipe and carries bytes until the container ends the connection.
pub(super) fn run(store: &Store, network: &str) -> Result<(), PipeError> {
    let sealed = store.load()?;
    let rule = sealed.policy.rule(network)?;
    let routes = Routes::read().map_err(|source| PipeError::Streams {
        what: "read the gateway's routes",
        source,
    })?;
    let device = routes
        .device_in(rule.subnet)
        .ok_or_else(|| PipeError::NotAttached {
            network: network.to_owned(),
            subnet: rule.subnet,
        })?;
    let address = SocketAddr::from((rule.capability, PORT));
    let stream = connect(address, device).map_err(|source| PipeError::Connect {
        address,
        network: network.to_owned(),
        device: device.to_owned(),
        source,
    })?;
    splice(&stream).map_err(|source| PipeError::Streams {
        what: "carry the streams",
        source,
    })
}

/// Connects through this device and no other: another container's network is not reachable from this socket (S5).
fn connect(address: SocketAddr, device: &str) -> io::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.bind_device(Some(device.as_bytes()))?;
        tokio::time::timeout(CONNECT_LIMIT, socket.connect(address))
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no answer within 5 s"))??
            .into_std()
    })?;
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
    Ok(stream)
}

/// Both directions, each ended by its own side. Returns when the container has ended its side.
fn splice(stream: &TcpStream) -> io::Result<()> {
    // Files, not the standard library's buffered handles: nothing waits for a line end.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    output.write_all(OPENED)?;

    let mut towards = stream.try_clone()?;
    thread::spawn(move || {
        // Whether the desk or the container broke off makes no difference here: this direction is over.
        let _ = carry(&mut input, &mut towards);
        let _ = towards.shutdown(Shutdown::Write);
        thread::sleep(LINGER);
        let _ = towards.shutdown(Shutdown::Both);
    });
    let mut from = stream;
    carry(&mut from, &mut output)
}

fn carry(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&buffer[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
