//! Connections that a test makes itself from inside a container's network, and can keep through an event.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::daemon;

/// How long a connection that should come about may take, and one that should not is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The network of a running container.
pub(crate) struct Inside {
    namespace: File,
}

impl Inside {
    pub(crate) fn of(container: &str) -> Self {
        let pid = daemon::inspect(container)["State"]["Pid"].to_string();
        let namespace = File::open(format!("/proc/{pid}/ns/net")).unwrap();
        Self { namespace }
    }

    /// Runs something whose sockets belong to that network, on a thread of its own.
    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.namespace.as_fd(), kind).unwrap();
                work()
            });
            inside.join().unwrap()
        })
    }

    /// Connects; the connection lives on as any other.
    pub(crate) fn connect(&self, address: &str, port: u16) -> std::io::Result<TcpStream> {
        let address: IpAddr = address.parse().unwrap();
        self.run(|| {
            let stream = TcpStream::connect_timeout(&SocketAddr::new(address, port), PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        })
    }

    /// A datagram socket.
    pub(crate) fn datagrams(&self) -> UdpSocket {
        self.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap()
    }

    /// Whether a word comes back from the echo at an address.
    pub(crate) fn echoes(&self, address: &str, port: u16) -> bool {
        self.connect(address, port)
            .is_ok_and(|mut stream| echoes(&mut stream, "word"))
    }

    /// Waits until it does: what heals does so within this time, whatever the machine is busy with.
    pub(crate) fn expect_echo(&self, address: &str, port: u16, after: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.echoes(address, port) {
            assert!(Instant::now() < deadline, "no echo {after}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Whether a word comes back on an open connection.
pub(crate) fn echoes(stream: &mut TcpStream, word: &str) -> bool {
    let mut back = vec![0; word.len()];
    stream.write_all(word.as_bytes()).is_ok()
        && stream.read_exact(&mut back).is_ok()
        && back == word.as_bytes()
}

/// Whether the other side has cut the connection, or does now.
pub(crate) fn is_cut(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

/// Whether the other side says anything: a connection that merely waits in a queue of the kernel's reaches nobody.
pub(crate) fn says_something(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0]), Ok(1..))
}
