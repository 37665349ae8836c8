//! Questions to a name server of one's choice, of any type, over UDP and TCP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};

use serde_json::{Value, json};

use crate::talk::PATIENCE;

/// Asks `server` (`address:port`, or `resolver` for the one in /etc/resolv.conf) for `name` with `type` and says what
/// came back: code, and each record's type and data.
pub(crate) fn ask(arguments: &Value) -> Result<Value, String> {
    let name = arguments["name"].as_str().ok_or("missing argument name")?;
    let kind = arguments["type"].as_u64().map_or(Ok(1), u16::try_from);
    let kind = kind.map_err(|error| error.to_string())?;
    let server: SocketAddr = match arguments["server"].as_str() {
        None | Some("resolver") => resolver()?,
        Some(server) => server.parse().map_err(|error| format!("server: {error}"))?,
    };
    let question = question(name, kind)?;
    let answer = if arguments["tcp"].as_bool() == Some(true) {
        over_tcp(server, &question)
    } else {
        over_udp(server, &question)
    };
    Ok(match answer {
        Ok(answer) => read(&answer).unwrap_or_else(
            || json!({"ok": false, "error": "no sense in the answer", "length": answer.len()}),
        ),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    })
}

/// Asks the resolver for `count` new names below `name`, as fast as it goes, and counts what comes back: by code, and how
/// much did not.
pub(crate) fn flood(arguments: &Value) -> Result<Value, String> {
    let name = arguments["name"].as_str().ok_or("missing argument name")?;
    let count = arguments["count"]
        .as_u64()
        .ok_or("missing argument count")?;
    let server: SocketAddr = match arguments["server"].as_str() {
        None => resolver()?,
        Some(server) => server.parse().map_err(|error| format!("server: {error}"))?,
    };
    let socket = UdpSocket::bind(("0.0.0.0", 0)).map_err(|error| error.to_string())?;
    let exchange = || {
        socket.connect(server)?;
        let receiver = socket.try_clone()?;
        receiver.set_read_timeout(Some(PATIENCE))?;
        let counting = std::thread::spawn(move || {
            let (mut codes, mut answered) = (std::collections::BTreeMap::new(), 0u64);
            let mut buffer = [0; 4096];
            while answered < count
                && let Ok(length) = receiver.recv(&mut buffer)
            {
                answered += 1;
                let code =
                    read(&buffer[..length]).map_or(Value::Null, |answer| answer["code"].clone());
                *codes.entry(code.to_string()).or_insert(0u64) += 1;
            }
            (codes, count - answered)
        });
        for number in 0..count {
            if let Ok(question) = question(&format!("f{number}.{name}"), 1) {
                socket.send(&question)?;
            }
        }
        counting
            .join()
            .map_err(|_| std::io::Error::other("the counter failed"))
    };
    Ok(match exchange() {
        Ok((codes, unanswered)) => json!({"ok": true, "codes": codes, "unanswered": unanswered}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    })
}

fn resolver() -> Result<SocketAddr, String> {
    let settings =
        std::fs::read_to_string("/etc/resolv.conf").map_err(|error| error.to_string())?;
    let address = settings
        .lines()
        .find_map(|line| line.strip_prefix("nameserver "))
        .ok_or("no nameserver in /etc/resolv.conf")?;
    let address = address
        .trim()
        .parse()
        .map_err(|error| format!("nameserver: {error}"))?;
    Ok(SocketAddr::new(address, 53))
}

/// A query that asks for recursion. Labels are taken as they are, up to the sizes that the format can express.
fn question(name: &str, kind: u16) -> Result<Vec<u8>, String> {
    let mut packet = vec![0x5e, 0x1f, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).map_err(|error| error.to_string())?;
        packet.push(length);
        packet.extend(label.as_bytes());
    }
    packet.push(0);
    packet.extend(kind.to_be_bytes());
    packet.extend([0, 1]);
    Ok(packet)
}

fn over_udp(server: SocketAddr, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let any: SocketAddr = if server.is_ipv4() {
        ([0; 4], 0).into()
    } else {
        ([0u16; 8], 0).into()
    };
    let socket = UdpSocket::bind(any)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(server)?;
    socket.send(question)?;
    let mut buffer = [0; 4096];
    let length = socket.recv(&mut buffer)?;
    Ok(buffer[..length].to_vec())
}

fn over_tcp(server: SocketAddr, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = u16::try_from(question.len()).map_err(std::io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// Code and records of an answer; `None` where it is cut short.
fn read(packet: &[u8]) -> Option<Value> {
    let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let code = word(2)? & 15;
    let (questions, records) = (word(4)?, word(6)?);
    let mut at = 12;
    for _ in 0..questions {
        at = after_name(packet, at)? + 4;
    }
    let mut answers = Vec::new();
    for _ in 0..records {
        at = after_name(packet, at)?;
        let kind = word(at)?;
        let length = usize::from(word(at + 8)?);
        let data = packet.get(at + 10..at + 10 + length)?;
        at += 10 + length;
        let data = match <[u8; 4]>::try_from(data) {
            Ok(bytes) if kind == 1 => std::net::Ipv4Addr::from(bytes).to_string(),
            _ => String::from_utf8_lossy(data).into_owned(),
        };
        answers.push(json!({"type": kind, "data": data}));
    }
    Some(json!({"ok": true, "code": code, "answers": answers}))
}

fn after_name(packet: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *packet.get(at)? {
            0 => return Some(at + 1),
            length if length & 0xc0 == 0xc0 => return Some(at + 2),
            length => at += 1 + usize::from(length),
        }
    }
}
