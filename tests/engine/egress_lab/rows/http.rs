//! Another host inside an allowed plain connection (N10), and requests that two readers understand differently.

use serde_json::json;

use super::super::lab::WILD;
use super::super::table::Refusal::{Closed, Cut, Http};
use super::super::table::Row;
use super::{raw, talk};

pub(super) fn rows() -> Vec<Row> {
    let allowed = "www.selu-lab.net";
    let mut rows = Vec::new();
    // The target says what it was asked; `/foreign` is asked of another host, in one way or another.
    let first = "GET / HTTP/1.1\r\nHost: www.selu-lab.net\r\n\r\n";
    let foreign = "GET /foreign HTTP/1.1\r\nHost: denied.selu-other.net\r\n\r\n";
    for (name, text) in [
        ("another Host", foreign.to_owned()),
        ("another Host in the second request", format!("{first}{foreign}")),
        ("two Hosts, the allowed one first", "GET /foreign HTTP/1.1\r\nHost: www.selu-lab.net\r\nHost: denied.selu-other.net\r\n\r\n".to_owned()),
        ("two Hosts, the allowed one last", "GET /foreign HTTP/1.1\r\nHost: denied.selu-other.net\r\nHost: www.selu-lab.net\r\n\r\n".to_owned()),
        ("no Host", "GET /foreign HTTP/1.1\r\n\r\n".to_owned()),
        ("no Host, HTTP/1.0", "GET /foreign HTTP/1.0\r\n\r\n".to_owned()),
        ("two names in one Host", "GET /foreign HTTP/1.1\r\nHost: www.selu-lab.net, denied.selu-other.net\r\n\r\n".to_owned()),
        ("the allowed name as user of another Host", "GET /foreign HTTP/1.1\r\nHost: www.selu-lab.net@denied.selu-other.net\r\n\r\n".to_owned()),
        ("another port in Host", "GET /foreign HTTP/1.1\r\nHost: www.selu-lab.net:8080\r\n\r\n".to_owned()),
        ("a space before Host's colon", "GET /foreign HTTP/1.1\r\nHost : denied.selu-other.net\r\nHost: www.selu-lab.net\r\n\r\n".to_owned()),
        ("Host folded over two lines", "GET /foreign HTTP/1.1\r\nHost: www.selu-lab.net\r\n .denied.selu-other.net\r\n\r\n".to_owned()),
        ("a zero byte in Host", "GET /foreign HTTP/1.1\r\nHost: www.selu-lab.net\0.selu-other.net\r\n\r\n".to_owned()),
        ("absolute form with another host", "GET http://denied.selu-other.net/foreign HTTP/1.1\r\nHost: www.selu-lab.net\r\n\r\n".to_owned()),
        ("absolute form with the allowed host, another Host", "GET http://www.selu-lab.net/foreign HTTP/1.1\r\nHost: denied.selu-other.net\r\n\r\n".to_owned()),
        (
            "a request hidden by both lengths",
            format!("POST / HTTP/1.1\r\nHost: www.selu-lab.net\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{foreign}"),
        ),
        (
            "a request hidden by an encoding that only looks chunked",
            format!("POST / HTTP/1.1\r\nHost: www.selu-lab.net\r\nTransfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n{foreign}"),
        ),
        (
            "another Host behind a chunked body",
            format!("POST / HTTP/1.1\r\nHost: www.selu-lab.net\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n{foreign}"),
        ),
        (
            "a websocket of another Host",
            "GET /foreign HTTP/1.1\r\nHost: denied.selu-other.net\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".to_owned(),
        ),
    ] {
        let answer = if name.contains("websocket") { "reached 1" } else { "/foreign" };
        rows.push(
            Row::new(name, "talk", raw(allowed, 80, &text), answer)
                .meets(&[Http, Cut, Closed])
                .without("/foreign"),
        );
    }
    rows.push(
        Row::new(
            "a header of a megabyte",
            "talk",
            talk(
                allowed,
                80,
                json!([
                    {"send": "GET /foreign HTTP/1.1\r\nHost: www.selu-lab.net\r\nX: "},
                    {"repeat": "x".repeat(1 << 10), "times": 1 << 10},
                    {"send": "\r\n\r\n"},
                ]),
            ),
            "/foreign",
        )
        .meets(&[Http, Cut, Closed])
        .without("/foreign"),
    );
    rows.push(
        Row::new(
            "another Host at a port of its own",
            "talk",
            raw("api.selu-lab.net", 8080, foreign),
            format!("reached {WILD}"),
        )
        .meets(&[Http, Cut, Closed])
        .without("/foreign"),
    );
    rows.push(
        Row::new(
            "another authority in HTTP/2",
            "talk",
            http2("denied.selu-other.net"),
            "over HTTP/2",
        )
        .meets(&[Http, Cut, Closed])
        .without("\"kind\":\"http2\""),
    );
    rows
}

/// A request of HTTP/2 without TLS, as a client makes it that knows that the server understands.
pub(super) fn http2(authority: &str) -> serde_json::Value {
    let mut headers = vec![
        0x82,
        0x86,
        0x84,
        0x41,
        u8::try_from(authority.len()).unwrap(),
    ];
    headers.extend(authority.bytes());
    let mut frames = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    frames.extend([0, 0, u8::try_from(headers.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    frames.extend(headers);
    talk(
        "www.selu-lab.net",
        80,
        json!([
            {"send": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
            {"hex": crate::world::hex(&frames)},
            {"read": "over HTTP/2"},
        ]),
    )
}
