//! Listeners where a probe should arrive. Each prints `listening` once it can be reached, and `seen …` for what arrives.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::ExitCode;
use std::thread;

/// What every TCP listener answers, so that a probe can tell a listener of ours from an accident.
pub(crate) const GREETING: &str = "hello from the probe's target\n";

/// Accepts on every address and greets.
pub(crate) fn tcp(addresses: &[&str]) -> ExitCode {
    on_each(addresses, TcpListener::bind, |listener| {
        for mut stream in listener.incoming().flatten() {
            if let Ok(peer) = stream.peer_addr() {
                println!("seen tcp {peer}");
            }
            let _ = stream.write_all(GREETING.as_bytes());
        }
    })
}

/// Echoes datagrams on every address.
pub(crate) fn udp(addresses: &[&str]) -> ExitCode {
    on_each(addresses, UdpSocket::bind, |socket| {
        let mut buffer = [0; 2048];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            println!("seen udp {peer} {length}");
            let _ = socket.send_to(&buffer[..length], peer);
        }
    })
}

/// Speaks anything but gRPC on the capability's port.
pub(crate) fn banner(text: &str) -> ExitCode {
    let text = text.to_owned();
    on_each(&["0.0.0.0:50051"], TcpListener::bind, move |listener| {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(text.as_bytes());
        }
    })
}

fn on_each<S: Send + 'static>(
    addresses: &[&str],
    bind: fn(SocketAddr) -> std::io::Result<S>,
    serve: impl Fn(S) + Send + Clone + 'static,
) -> ExitCode {
    let mut threads = Vec::new();
    for address in addresses {
        let bound = address
            .parse()
            .map_err(std::io::Error::other)
            .and_then(bind);
        match bound {
            Ok(socket) => {
                let serve = serve.clone();
                threads.push(thread::spawn(move || serve(socket)));
            }
            Err(error) => {
                eprintln!("{address}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("listening");
    for thread in threads {
        let _ = thread.join();
    }
    ExitCode::SUCCESS
}
