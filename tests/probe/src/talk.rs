//! A conversation over one connection, step by step, with bytes that no library would send.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::hello;

/// How long to wait for a connection, and for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_millis(2000);
/// More of an answer is not read.
const FULL: usize = 1 << 16;

/// Connects to `to` (a name or an address) at `port` and follows `steps`:
///
/// `{"send": text}` · `{"hex": digits}` · `{"hello": [names], "fragment": bytes}` sends a TLS client hello ·
/// `{"repeat": text, "times": n}` · `{"read": text}` reads until that text has come · `{"pause": milliseconds}` ·
/// `{"shut": null}` ends our side.
///
/// After the last step it reads until the other side ends, is silent for a while, has said enough, or has said `until`.
/// The outcome says how
/// far it came (`resolve`, `connect`, `talk`), with whom, what was received and how that ended.
pub(crate) fn talk(arguments: &Value) -> Result<Value, String> {
    let to = arguments["to"].as_str().ok_or("missing argument to")?;
    let port = arguments["port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok())
        .ok_or("missing argument port")?;
    let patience = arguments["patience"]
        .as_u64()
        .map_or(PATIENCE, Duration::from_millis);
    let found = match (to, port).to_socket_addrs() {
        Ok(mut found) => found.next(),
        Err(error) => return Ok(failed("resolve", None, &error)),
    };
    let Some(address) = found else {
        return Ok(json!({"ok": false, "stage": "resolve", "error": "no address"}));
    };
    let stream = match TcpStream::connect_timeout(&address, patience) {
        Ok(stream) => stream,
        Err(error) => return Ok(failed("connect", Some(address), &error)),
    };
    let mut talk = Talk {
        stream,
        received: Vec::new(),
        patience,
    };
    let steps = arguments["steps"].as_array().cloned().unwrap_or_default();
    let mut end = None;
    for step in &steps {
        match talk.step(step)? {
            None => {}
            over => {
                end = over;
                break;
            }
        }
    }
    let until = arguments["until"].as_str().map(str::as_bytes);
    let end = end.unwrap_or_else(|| talk.read_until(until));
    Ok(json!({
        "ok": true,
        "stage": "talk",
        "to": address.to_string(),
        "received": String::from_utf8_lossy(&talk.received),
        "end": end,
    }))
}

fn failed(stage: &str, to: Option<SocketAddr>, error: &std::io::Error) -> Value {
    json!({"ok": false, "stage": stage, "to": to.map(|to| to.to_string()), "error": error.to_string()})
}

struct Talk {
    stream: TcpStream,
    received: Vec<u8>,
    patience: Duration,
}

impl Talk {
    /// Carries out one step; `Some` when the conversation is over, and how.
    fn step(&mut self, step: &Value) -> Result<Option<String>, String> {
        let text = |name: &str| step[name].as_str();
        if let Some(text) = text("send") {
            return Ok(self.send(text.as_bytes()));
        }
        if let Some(digits) = text("hex") {
            return Ok(self.send(&bytes(digits)?));
        }
        if let Some(text) = text("repeat") {
            let times = step["times"].as_u64().ok_or("repeat without times")?;
            return Ok((0..times).find_map(|_| self.send(text.as_bytes())));
        }
        if let Some(names) = step["hello"].as_array() {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            let fragment = step["fragment"]
                .as_u64()
                .and_then(|size| usize::try_from(size).ok());
            return Ok(self.send(&hello::records(&names, fragment)));
        }
        if let Some(text) = text("read") {
            let end = self.read_until(Some(text.as_bytes()));
            return Ok((end != "found").then_some(end));
        }
        if let Some(pause) = step["pause"].as_u64() {
            std::thread::sleep(Duration::from_millis(pause));
            return Ok(None);
        }
        if step.get("shut").is_some() {
            let _ = self.stream.shutdown(Shutdown::Write);
            return Ok(None);
        }
        Err(format!("unknown step: {step}"))
    }

    fn send(&mut self, data: &[u8]) -> Option<String> {
        let error = self.stream.write_all(data).err()?;
        // What came before the end tells why it ended.
        let end = self.read_until(None);
        Some(if end == "eof" { word(&error) } else { end })
    }

    fn read_until(&mut self, mark: Option<&[u8]>) -> String {
        let deadline = Instant::now() + self.patience;
        let mut buffer = [0; 4096];
        loop {
            if mark.is_some_and(|mark| self.received.windows(mark.len()).any(|part| part == mark)) {
                return "found".to_owned();
            }
            if self.received.len() > FULL {
                return "full".to_owned();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return "idle".to_owned();
            }
            let read = self
                .stream
                .set_read_timeout(Some(left))
                .and_then(|()| self.stream.read(&mut buffer));
            match read {
                Ok(0) => return "eof".to_owned(),
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) => return word(&error),
            }
        }
    }
}

fn word(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "idle".to_owned(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => "reset".to_owned(),
        _ => error.to_string(),
    }
}

/// Bytes from hexadecimal digits.
pub(crate) fn bytes(digits: &str) -> Result<Vec<u8>, String> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return Err("hex: pairs of digits are wanted".to_owned());
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|error| error.to_string()))
        .collect()
}
