//! What is listed works, with no help from the client: by name at its ports, in any spelling, over any protocol that has
//! TCP below it; and through the proxy.

use serde_json::{Value, json};

use super::super::lab::{OTHER, PRIVATE, WILD, WWW};
use super::super::table::{Place, Proof, Row};
use super::{PROXY, PROXY_PORT, get, hello, http, raw, reached, talk};

pub(super) fn rows() -> Vec<Row> {
    let row =
        |name: &str, arguments: Value, answer: String| Row::new(name, "talk", arguments, answer);
    let greeting = |to: &str, port: u16| talk(to, port, json!([]));
    let mut rows = vec![
        row("plain HTTP", get("www.selu-lab.net", 80), reached(WWW)),
        row(
            "TLS",
            hello("www.selu-lab.net", 443, &["www.selu-lab.net"]),
            reached(WWW),
        ),
        row(
            "TLS, the name in capitals",
            hello("www.selu-lab.net", 443, &["WWW.Selu-Lab.NET"]),
            reached(WWW),
        ),
        row(
            "TLS, the hello in small records",
            talk(
                "www.selu-lab.net",
                443,
                json!([{"hello": ["www.selu-lab.net"], "fragment": 20}]),
            ),
            reached(WWW),
        ),
        row(
            "a name in capitals",
            get("WWW.SELU-LAB.NET", 80),
            reached(WWW),
        ),
        row(
            "a name with its last dot",
            get("www.selu-lab.net.", 80),
            reached(WWW),
        ),
        row(
            "a name in punycode that is listed in letters",
            get("xn--bcher-kva.selu-lab.net", 80),
            reached(WWW),
        ),
        row(
            "below a wildcard",
            get("a.wild.selu-lab.net", 80),
            reached(WILD),
        ),
        row(
            "far below a wildcard",
            get("a.b.c.wild.selu-lab.net", 80),
            reached(WILD),
        ),
        row(
            "TLS below a wildcard",
            hello("a.wild.selu-lab.net", 443, &["a.wild.selu-lab.net"]),
            reached(WILD),
        ),
        row(
            "any port: a server that speaks first",
            greeting("api.selu-lab.net", 9999),
            reached(WILD),
        ),
        row(
            "any port: TLS where nobody expects it",
            hello("api.selu-lab.net", 8443, &["api.selu-lab.net"]),
            reached(WILD),
        ),
        row(
            "any port: HTTP where nobody expects it",
            get("api.selu-lab.net", 8080),
            reached(WILD),
        ),
        row(
            "any port: bytes of no protocol",
            raw("api.selu-lab.net", 7, "{reached 0, back"),
            "reached 0, back".to_owned(),
        ),
        row(
            "any port: a line without an end, which could become a request",
            talk_patiently("api.selu-lab.net", 7, "reached 0, back"),
            "reached 0, back".to_owned(),
        ),
        row(
            "SSH's banner",
            greeting("mail.selu-lab.net", 22),
            format!("SSH-2.0-reached_{WWW}"),
        ),
        row(
            "SMTP",
            raw("mail.selu-lab.net", 25, "EHLO me\r\n"),
            reached(WWW),
        ),
        row(
            "IMAP",
            raw("mail.selu-lab.net", 143, "a CAPABILITY\r\n"),
            reached(WWW),
        ),
        row(
            "IMAP over TLS",
            hello("mail.selu-lab.net", 993, &["mail.selu-lab.net"]),
            reached(WWW),
        ),
        row(
            "Redis",
            raw("mail.selu-lab.net", 6379, "PLACE\r\n"),
            reached(WWW),
        ),
        row(
            "one connection, many requests",
            raw(
                "www.selu-lab.net",
                80,
                &"GET / HTTP/1.1\r\nHost: www.selu-lab.net\r\n\r\n".repeat(50),
            ),
            reached(WWW),
        ),
        row(
            "a body in chunks",
            raw(
                "www.selu-lab.net",
                80,
                "POST / HTTP/1.1\r\nHost: www.selu-lab.net\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            ),
            reached(WWW),
        ),
        row(
            "Host with its port",
            raw(
                "www.selu-lab.net",
                80,
                "GET / HTTP/1.1\r\nHost: www.selu-lab.net:80\r\n\r\n",
            ),
            reached(WWW),
        ),
        row(
            "Host in capitals with its last dot",
            raw(
                "www.selu-lab.net",
                80,
                "GET / HTTP/1.1\r\nHost: WWW.selu-lab.net.\r\n\r\n",
            ),
            reached(WWW),
        ),
        row(
            "a websocket",
            websocket("www.selu-lab.net", 80, "GET /"),
            reached(WWW),
        ),
        row(
            "HTTP/2",
            http::http2("www.selu-lab.net"),
            "over HTTP/2".to_owned(),
        ),
        row(
            "mode any: any name",
            get("denied.selu-other.net", 80),
            reached(OTHER),
        )
        .tried(Place::In("any")),
        row(
            "mode any: any port",
            greeting("denied.selu-other.net", 9999),
            reached(OTHER),
        )
        .tried(Place::In("any")),
        row(
            "mode any: TLS",
            hello("x.selu-other.net", 443, &["x.selu-other.net"]),
            reached(OTHER),
        )
        .tried(Place::In("any")),
        row(
            "private by permission",
            get("private.selu-lab.net", 80),
            reached(PRIVATE),
        )
        .tried(Place::In("private")),
    ];
    let tunnel = |target: &str, steps: Value| {
        let mut all = vec![
            json!({"send": format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")}),
            json!({"read": "\r\n\r\n"}),
        ];
        all.extend(steps.as_array().cloned().unwrap_or_default());
        talk(PROXY, PROXY_PORT, Value::from(all))
    };
    let request = json!([{"send": "GET / HTTP/1.1\r\nHost: www.selu-lab.net\r\n\r\n"}]);
    for (name, arguments, direct, answer) in [
        ("a tunnel, plain HTTP in it", tunnel("www.selu-lab.net:80", request), get("www.selu-lab.net", 80), reached(WWW)),
        (
            "a tunnel, TLS in it",
            tunnel("www.selu-lab.net:443", json!([{"hello": ["www.selu-lab.net"]}])),
            hello("www.selu-lab.net", 443, &["www.selu-lab.net"]),
            reached(WWW),
        ),
        ("a tunnel to a server that speaks first", tunnel("mail.selu-lab.net:25", json!([])), greeting("mail.selu-lab.net", 25), reached(WWW)),
        ("a tunnel to an address that is listed", tunnel(&format!("{WWW}:5000"), json!([])), greeting(WWW, 5000), reached(WWW)),
        (
            "absolute form",
            raw(PROXY, PROXY_PORT, "GET http://www.selu-lab.net/ HTTP/1.1\r\nHost: www.selu-lab.net\r\n\r\n"),
            get("www.selu-lab.net", 80),
            reached(WWW),
        ),
        (
            "absolute form, many requests to several hosts",
            raw(
                PROXY,
                PROXY_PORT,
                &"GET http://www.selu-lab.net/ HTTP/1.1\r\nHost: www.selu-lab.net\r\n\r\nGET http://a.wild.selu-lab.net/ HTTP/1.1\r\nHost: a.wild.selu-lab.net\r\n\r\n".repeat(5),
            ),
            get("a.wild.selu-lab.net", 80),
            reached(WILD),
        ),
        (
            "a websocket in absolute form",
            websocket(PROXY, PROXY_PORT, "GET http://www.selu-lab.net/"),
            websocket("www.selu-lab.net", 80, "GET /"),
            reached(WWW),
        ),
    ] {
        rows.push(Row::new(format!("proxy: {name}"), "talk", arguments, answer).proved(Proof::FreeWith(direct)));
    }
    rows.push(
        Row::new(
            "proxy: a private address by permission",
            "talk",
            tunnel(&format!("{PRIVATE}:5000"), json!([])),
            reached(PRIVATE),
        )
        .proved(Proof::FreeWith(greeting(PRIVATE, 5000)))
        .tried(Place::In("private")),
    );
    rows
}

/// Waits longer for an answer than the gateway waits for the rest of a line.
fn talk_patiently(to: &str, port: u16, text: &str) -> Value {
    let mut arguments = raw(to, port, text);
    arguments["patience"] = 8000.into();
    arguments
}

/// Shakes hands, and reads what the server then says by itself.
fn websocket(to: &str, port: u16, request: &str) -> Value {
    raw(
        to,
        port,
        &format!(
            "{request} HTTP/1.1\r\nHost: www.selu-lab.net\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ),
    )
}
