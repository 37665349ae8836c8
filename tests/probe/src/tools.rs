//! The probe's tools. Each tries one thing and says what happened; a refusal is a result, not an error.

use std::io::Read;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{dns, packet, talk};

const PATIENCE: Duration = Duration::from_millis(1500);

/// Calls a tool by name.
pub(crate) fn call(tool: &str, arguments: &Value, config: &Value) -> Result<Value, String> {
    if let Some(outcome) = crate::limits::call(tool, arguments) {
        return outcome;
    }
    match tool {
        "echo" => Ok(arguments.clone()),
        "list_tools" => Ok(list(config)),
        "tcp" => Ok(tcp(address(arguments)?)),
        "udp" => Ok(udp(address(arguments)?)),
        "resolve" => Ok(resolve(text(arguments, "name")?)),
        "write" => Ok(outcome(
            std::fs::write(text(arguments, "path")?, text(arguments, "content")?)
                .map(|()| json!(null)),
        )),
        "read" => Ok(outcome(
            std::fs::read_to_string(text(arguments, "path")?).map(Value::from),
        )),
        "directory" => Ok(outcome(directory(text(arguments, "path")?))),
        "device" => Ok(outcome(
            rustix::fs::open(
                text(arguments, "path")?,
                rustix::fs::OFlags::RDWR,
                rustix::fs::Mode::empty(),
            )
            .map(|_| json!(null))
            .map_err(Into::into),
        )),
        "talk" => talk::talk(arguments),
        "dns" => dns::ask(arguments),
        "icmp" => packet::icmp(arguments),
        "half_open" => packet::half_open(arguments),
        "dns_flood" => dns::flood(arguments),
        "spoof" => packet::spoof(arguments),
        "scan" => packet::scan(arguments),
        "flood" => packet::flood(arguments),
        "unix" => packet::unix(arguments),
        "family" => Ok(packet::family(arguments)),
        "environment" => Ok(std::env::vars()
            .map(|(name, value)| (name, Value::from(value)))
            .collect()),
        "digests" => Ok(digests(config)),
        "echo_secret" => Err(format!("upstream said: {config}")),
        "exit" => std::process::exit(
            arguments["code"]
                .as_i64()
                .and_then(|code| code.try_into().ok())
                .unwrap_or(1),
        ),
        "large" => Ok(Value::from("x".repeat(
            usize::try_from(arguments["bytes"].as_u64().unwrap_or(0)).unwrap_or(0),
        ))),
        other => Err(format!("unknown tool: {other}")),
    }
}

/// The list; with credentials it holds one more tool, whose description proves by digests what arrived.
fn list(config: &Value) -> Value {
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let endpoint = object(
        json!({"address": {"type": "string"}, "port": {"type": "integer"}}),
        json!(["address", "port"]),
    );
    let file = object(json!({"path": {"type": "string"}}), json!(["path"]));
    let code = object(json!({"code": {"type": "integer"}}), json!([]));
    let tool = |name: &str, description: &str, schema: Value, policy: &str| json!({"name": name, "description": description, "input_schema": schema, "recommended_policy": policy});
    let mut tools = vec![
        tool(
            "udp",
            "Sends a datagram and waits for its echo.",
            endpoint.clone(),
            "ask",
        ),
        tool("tcp", "Connects and reads a greeting.", endpoint, "ask"),
        tool("read", "Reads a file.", file, "allow"),
        json!({"name": "exit", "description": "Ends the server.", "input_schema": code}),
    ];
    if config.as_object().is_some_and(|config| !config.is_empty()) {
        tools.push(tool(
            "received",
            &format!("Received {}", digests(config)),
            object(json!({}), json!([])),
            "allow",
        ));
    }
    Value::from(tools)
}

/// A list of tools that is wrong in one chosen way, never of an item that could be used; or `of HOST`, of one tool that
/// says what that server said.
pub(crate) fn wrong_list(kind: &str) -> Vec<u8> {
    let item = |name: &str, description: &str, schema: Value| json!({"name": name, "description": description, "input_schema": schema, "recommended_policy": "allow"});
    let plain = || json!({"type": "object"});
    let list = match kind {
        "twice" => json!([item("a", "A.", plain()), item("a", "B.", plain())]),
        "schema" => json!([item("a", "A.", json!({"type": "objekt"}))]),
        "many" => (0..1001)
            .map(|number| item(&format!("t{number}"), "A.", plain()))
            .collect(),
        "large" => json!([item("a", &"x".repeat(17 << 20), plain())]),
        "itself" => json!([item("list_tools", "A.", plain())]),
        "object" => json!({"tools": []}),
        // Only this one can be used: what it would do to a terminal is for whoever shows it to prevent.
        "control" => json!([item(
            "a",
            "\u{1b}[2J\u{1b}]0;owned\u{7} \u{202e}gnp\u{200b}\r\nselu: all is well\u{0}",
            plain()
        )]),
        "deep" => {
            let mut schema = plain();
            for _ in 0..100 {
                schema = json!({"type": "object", "properties": {"a": schema}});
            }
            json!([item("a", "A.", schema)])
        }
        kind if kind.starts_with("of ") => match fetched(&kind[3..]) {
            Ok(said) => json!([item("fetched", &said, plain())]),
            Err(why) => json!({"error": why}),
        },
        "dies" => std::process::exit(9),
        // So much that nobody who reads no log may be stopped by it (J12).
        "noisy" => {
            let line = "probe: listing, and saying so at length ".repeat(25);
            for _ in 0..10_000 {
                eprintln!("{line}");
            }
            json!([item("a", "A.", plain())])
        }
        "never" => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        "text" => return b"no JSON at all".to_vec(),
        _ => return b"[{\"name\": \"a\"".to_vec(),
    };
    list.to_string().into_bytes()
}

/// The first line of what a web server's answer holds.
fn fetched(host: &str) -> Result<String, String> {
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = talk::talk(&json!({"to": host, "port": 80, "steps": [{"send": request}]}))?;
    let received = answer["received"].as_str().unwrap_or_default();
    let body = received.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    match body.lines().next() {
        Some(line) if received.contains(" 200 ") => Ok(line.to_owned()),
        _ => Err(answer.to_string()),
    }
}

fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, String> {
    arguments[name]
        .as_str()
        .ok_or_else(|| format!("missing argument {name}"))
}

/// `address`, which may be a name, and `port`.
pub(crate) fn address(arguments: &Value) -> Result<SocketAddr, String> {
    let host = text(arguments, "address")?;
    let port = arguments["port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok())
        .ok_or("missing argument port")?;
    let found = (host, port).to_socket_addrs();
    found
        .map_err(|error| format!("address: {error}"))?
        .next()
        .ok_or_else(|| format!("address: {host} has none"))
}

fn outcome(result: std::io::Result<Value>) -> Value {
    match result {
        Ok(value) => json!({"ok": true, "value": value}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    }
}

fn tcp(target: SocketAddr) -> Value {
    outcome(
        TcpStream::connect_timeout(&target, PATIENCE).and_then(|mut stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            let mut greeting = [0; 64];
            let length = stream.read(&mut greeting).unwrap_or(0);
            Ok(Value::from(String::from_utf8_lossy(&greeting[..length])))
        }),
    )
}

fn udp(target: SocketAddr) -> Value {
    let exchange = || {
        let any: SocketAddr = if target.is_ipv4() {
            ([0, 0, 0, 0], 0).into()
        } else {
            ([0u16; 8], 0).into()
        };
        let socket = UdpSocket::bind(any)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.send_to(b"probe", target)?;
        let mut buffer = [0; 64];
        let (length, _) = socket.recv_from(&mut buffer)?;
        Ok(Value::from(String::from_utf8_lossy(&buffer[..length])))
    };
    outcome(exchange())
}

fn resolve(name: &str) -> Value {
    outcome(
        (name, 0)
            .to_socket_addrs()
            .map(|found| found.map(|address| address.ip().to_string()).collect()),
    )
}

fn directory(path: &str) -> std::io::Result<Value> {
    let mut names: Vec<String> = std::fs::read_dir(path)?
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(Value::from(names))
}

/// What arrived in `config_json`: name → SHA-256 of its value, so that a test can prove arrival without showing it.
fn digests(config: &Value) -> Value {
    let hex = |value: &Value| {
        let digest = Sha256::digest(value.as_str().unwrap_or_default());
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    config
        .as_object()
        .map(|object| {
            object
                .iter()
                .map(|(name, value)| (name.clone(), Value::from(hex(value))))
                .collect()
        })
        .unwrap_or_default()
}
