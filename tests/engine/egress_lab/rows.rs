//! The techniques, by what they try to get around.

mod addresses;
mod carried;
mod host;
mod http;
mod names;
mod packets;
mod proxy;
mod tls;

use serde_json::{Value, json};

use super::scene::Scene;
use super::table::{Refusal, Row};

/// Every technique that must be refused.
pub(crate) fn refused(scene: &Scene) -> Vec<Row> {
    [
        addresses::rows(),
        host::rows(scene),
        names::rows(scene),
        tls::rows(),
        http::rows(),
        proxy::rows(scene),
        packets::rows(scene),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Everything that must be carried.
pub(crate) fn carried() -> Vec<Row> {
    carried::rows()
}

/// Where clients that want a proxy find it.
const PROXY: &str = "gateway.selu.internal";
const PROXY_PORT: u16 = 3128;

/// What an address meets that is in no network of the capability's: nobody on its wire says to be on the way there, which
/// it learns at once or after a while.
const UNROUTED: [Refusal; 2] = [Refusal::NoRoute, Refusal::Silence];

/// A conversation with `to` at `port`.
fn talk(to: &str, port: u16, steps: Value) -> Value {
    json!({"to": to, "port": port, "steps": steps})
}

/// A plain request, as a client would send it.
fn get(to: &str, port: u16) -> Value {
    let host = if port == 80 {
        to.to_owned()
    } else {
        format!("{to}:{port}")
    };
    raw(to, port, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

/// Text as it is.
fn raw(to: &str, port: u16, text: &str) -> Value {
    talk(to, port, json!([{"send": text}]))
}

/// A TLS client hello with these server names.
fn hello(to: &str, port: u16, names: &[&str]) -> Value {
    talk(to, port, json!([{"hello": names}]))
}

/// The name below `at.` whose addresses are given, as serve.py reads it.
fn at(labels: &str) -> String {
    format!(
        "{}.at.selu-lab.net",
        labels.replace(['.', ':'], "-").replace(' ', ".")
    )
}

/// What a server says of itself.
fn reached(address: &str) -> String {
    format!("reached {address}")
}

/// What a gRPC client says first; the server's settings are the answer.
fn grpc(to: &str) -> Value {
    talk(to, GRPC_PORT, grpc_steps())
}

fn grpc_steps() -> Value {
    json!([{"send": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}, {"hex": "000000040000000000"}])
}

const GRPC_PORT: u16 = 50051;
/// A frame of settings, as JSON shows its first bytes.
const GRPC_ANSWER: &str = "\\u0004\\u0000";
