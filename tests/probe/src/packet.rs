//! What goes below and beside TCP: echo requests, whole IP packets with any source, sockets of the file system.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketType, ipproto, recvfrom, sendto, socket,
};
use serde_json::{Value, json};

use crate::talk::PATIENCE;

fn ipv4(arguments: &Value, name: &str) -> Result<Ipv4Addr, String> {
    arguments[name]
        .as_str()
        .ok_or_else(|| format!("missing argument {name}"))?
        .parse()
        .map_err(|error| format!("{name}: {error}"))
}

fn port(arguments: &Value) -> Result<u16, String> {
    arguments["port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok())
        .ok_or_else(|| "missing argument port".to_owned())
}

fn outcome(result: rustix::io::Result<Value>) -> Value {
    match result {
        Ok(value) => json!({"ok": true, "value": value}),
        Err(error) => json!({"ok": false, "error": std::io::Error::from(error).to_string()}),
    }
}

/// Sends an echo request to `address` (a name too) by a raw socket, or by the kind that needs no right where `raw` is false, and
/// waits for the reply.
pub(crate) fn icmp(arguments: &Value) -> Result<Value, String> {
    // The port means nothing here.
    let mut target = arguments.clone();
    target["port"] = Value::from(0);
    let address = crate::tools::address(&target)?;
    let raw = arguments["raw"].as_bool().unwrap_or(true);
    let exchange = || {
        let kind = if raw {
            SocketType::RAW
        } else {
            SocketType::DGRAM
        };
        let ping = socket(AddressFamily::INET, kind, Some(ipproto::ICMP))?;
        set_socket_timeout(&ping, Timeout::Recv, Some(PATIENCE))?;
        let mut request = [8, 0, 0, 0, 0x5e, 0x1f, 0, 1];
        let sum = checksum(&request);
        request[2..4].copy_from_slice(&sum.to_be_bytes());
        sendto(&ping, &request, SendFlags::empty(), &address)?;
        let mut buffer = [0; 2048];
        loop {
            let (_, length, _) = recvfrom(&ping, &mut buffer[..], RecvFlags::empty())?;
            // A raw socket shows the IP header too.
            let header = if raw {
                usize::from(buffer[0] & 15) * 4
            } else {
                0
            };
            if length > header && buffer[header] == 0 {
                return Ok(Value::from(format!("echo from {}", address.ip())));
            }
        }
    };
    Ok(outcome(exchange()))
}

/// Sends a datagram to `address` and `port` inside an IP packet of our own making, whose source is `source`. Whether it
/// arrived only the receiver can tell.
pub(crate) fn spoof(arguments: &Value) -> Result<Value, String> {
    let (source, address, port) = (
        ipv4(arguments, "source")?,
        ipv4(arguments, "address")?,
        port(arguments)?,
    );
    let payload = b"spoofed";
    let udp = u16::try_from(8 + payload.len()).map_err(|error| error.to_string())?;
    let mut datagram = Vec::new();
    datagram.extend(40000u16.to_be_bytes());
    datagram.extend(port.to_be_bytes());
    datagram.extend(udp.to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    Ok(outcome(send_packets(
        SocketAddr::from((address, port)),
        [ip_packet(17, source, address, &datagram)],
    )))
}

/// Sends `count` beginnings of TCP connections to `address` and `port`, from every port of `source` in turn, and answers
/// nothing that comes back.
pub(crate) fn half_open(arguments: &Value) -> Result<Value, String> {
    let (source, address, port) = (
        ipv4(arguments, "source")?,
        ipv4(arguments, "address")?,
        port(arguments)?,
    );
    let count = arguments["count"]
        .as_u64()
        .ok_or("missing argument count")?;
    let packets = (0..count).map(|number| {
        let from = u16::try_from(1024 + number % 60000).unwrap_or(1024);
        let mut segment = Vec::new();
        segment.extend(from.to_be_bytes());
        segment.extend(port.to_be_bytes());
        segment.extend(u32::try_from(number).unwrap_or(0).to_be_bytes());
        segment.extend([0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
        let mut summed = [source.octets(), address.octets()].concat();
        summed.extend([0, 6, 0, 20]);
        summed.extend(&segment);
        segment[16..18].copy_from_slice(&checksum(&summed).to_be_bytes());
        ip_packet(6, source, address, &segment)
    });
    Ok(outcome(send_packets(
        SocketAddr::from((address, port)),
        packets,
    )))
}

/// An IP packet; the kernel fills in its checksum.
fn ip_packet(protocol: u8, source: Ipv4Addr, to: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).unwrap_or(u16::MAX);
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend(source.octets());
    packet.extend(to.octets());
    packet.extend(payload);
    packet
}

/// How many were sent.
fn send_packets(
    to: SocketAddr,
    packets: impl IntoIterator<Item = Vec<u8>>,
) -> rustix::io::Result<Value> {
    let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW))?;
    let mut sent = 0u64;
    for packet in packets {
        sendto(&raw, &packet, SendFlags::empty(), &to)?;
        sent += 1;
    }
    Ok(Value::from(sent))
}

/// Opens a socket of a raw address `family`, `kind` (3 is raw) and `protocol`.
pub(crate) fn family(arguments: &Value) -> Value {
    let number = |name: &str| arguments[name].as_u64();
    let family = number("family").and_then(|number| u16::try_from(number).ok());
    let kind = number("kind").and_then(|number| u32::try_from(number).ok());
    let protocol = number("protocol").and_then(|number| u32::try_from(number).ok());
    let opened = socket(
        AddressFamily::from_raw(family.unwrap_or(0)),
        kind.map_or(SocketType::DGRAM, SocketType::from_raw),
        protocol
            .and_then(std::num::NonZeroU32::new)
            .map(Protocol::from_raw),
    );
    outcome(opened.map(|_| Value::Null))
}

/// Connects to a socket of the file system and asks the engine that may be behind it for its version.
pub(crate) fn unix(arguments: &Value) -> Result<Value, String> {
    let path = arguments["path"].as_str().ok_or("missing argument path")?;
    let exchange = || {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        std::io::Write::write_all(
            &mut stream,
            b"GET /version HTTP/1.0\r\nHost: engine\r\n\r\n",
        )?;
        let mut answer = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    Ok(match exchange() {
        Ok(answer) => json!({"ok": true, "value": answer}),
        Err::<String, std::io::Error>(error) => json!({"ok": false, "error": error.to_string()}),
    })
}

/// Which of the TCP ports `from..=to` of `address` accept a connection.
pub(crate) fn scan(arguments: &Value) -> Result<Value, String> {
    let address = ipv4(arguments, "address")?;
    let bound = |name: &str| {
        arguments[name]
            .as_u64()
            .and_then(|port| u16::try_from(port).ok())
            .ok_or_else(|| format!("missing argument {name}"))
    };
    let targets: Vec<SocketAddr> = (bound("from")?..=bound("to")?)
        .map(|port| SocketAddr::from((address, port)))
        .collect();
    let open = connections(&targets, Duration::from_millis(400), Duration::ZERO)?;
    let open: Vec<u16> = open.iter().map(SocketAddr::port).collect();
    Ok(json!({"ok": true, "open": open}))
}

/// Opens `count` connections to `address` (a name too) and `port` without saying anything, and keeps them for `milliseconds`.
pub(crate) fn flood(arguments: &Value) -> Result<Value, String> {
    let target = crate::tools::address(arguments)?;
    let count = arguments["count"]
        .as_u64()
        .and_then(|count| usize::try_from(count).ok())
        .ok_or("missing argument count")?;
    let keep = Duration::from_millis(arguments["milliseconds"].as_u64().unwrap_or(0));
    let open = connections(&vec![target; count], PATIENCE, keep)?.len();
    Ok(json!({"ok": true, "opened": open}))
}

/// Connects to every target, at most 256 attempts at once; those that were accepted and still are after `keep`.
fn connections(
    targets: &[SocketAddr],
    patience: Duration,
    keep: Duration,
) -> Result<Vec<SocketAddr>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut open = Vec::new();
        for some in targets.chunks(256) {
            let mut attempts = tokio::task::JoinSet::new();
            for &target in some {
                attempts.spawn(async move {
                    let stream =
                        tokio::time::timeout(patience, tokio::net::TcpStream::connect(target));
                    (target, stream.await.ok().and_then(Result::ok))
                });
            }
            while let Some(done) = attempts.join_next().await {
                if let Ok((target, Some(stream))) = done {
                    open.push((target, stream));
                }
            }
        }
        tokio::time::sleep(keep).await;
        let mut kept: Vec<SocketAddr> = open
            .into_iter()
            .filter(|(_, stream)| !ended(stream))
            .map(|(target, _)| target)
            .collect();
        kept.sort_unstable();
        Ok(kept)
    })
}

/// Whether the other side has closed.
fn ended(stream: &tokio::net::TcpStream) -> bool {
    let mut byte = [0];
    match stream.try_read(&mut byte) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// The internet checksum.
fn checksum(data: &[u8]) -> u16 {
    let sum: u32 = data
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !u16::try_from(folded & 0xffff).unwrap_or(0)
}
