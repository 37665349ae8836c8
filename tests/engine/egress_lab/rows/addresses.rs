//! Without any name: by address, over other protocols, at other ports.

use serde_json::json;

use super::super::lab::{DNS, OTHER, WILD, WWW};
use super::super::table::Refusal::{Closed, Cut, Forbidden, NoRoute, Silence};
use super::super::table::Row;
use super::{UNROUTED, get, hello, reached, talk};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new(
            "raw address, no proxy, no name",
            "talk",
            get(OTHER, 80),
            reached(OTHER),
        )
        .meets(&UNROUTED),
        Row::new(
            "raw address of an allowed host",
            "talk",
            hello(WWW, 443, &["www.selu-lab.net"]),
            reached(WWW),
        )
        .meets(&UNROUTED),
        Row::new(
            "raw address that is listed, without the proxy",
            "talk",
            talk(WWW, 5000, json!([])),
            reached(WWW),
        )
        .meets(&UNROUTED),
        Row::new(
            "another port of an allowed name",
            "talk",
            get("www.selu-lab.net", 8080),
            reached(WWW),
        )
        .meets(&[Closed]),
        Row::new(
            "ssh of an allowed name",
            "talk",
            talk("www.selu-lab.net", 22, json!([])),
            "SSH-2.0-reached",
        )
        .meets(&[Closed])
        .without(format!("\"at\":\"{WWW}:22")),
        Row::new(
            "another port of an allowed wildcard",
            "talk",
            talk("a.wild.selu-lab.net", 5000, json!([])),
            reached(WILD),
        )
        .meets(&[Closed]),
        Row::new(
            "UDP to an address",
            "udp",
            json!({"address": OTHER, "port": 7}),
            reached(OTHER),
        )
        .meets(&UNROUTED),
        Row::new(
            "UDP to an allowed name, any port of which is allowed",
            "udp",
            json!({"address": "api.selu-lab.net", "port": 5000}),
            reached(WILD),
        )
        .meets(&[Silence, Closed, NoRoute]),
        Row::new(
            "QUIC's port of an allowed name",
            "udp",
            json!({"address": "www.selu-lab.net", "port": 443}),
            reached(WWW),
        )
        .meets(&[Silence, Closed, NoRoute]),
        Row::new(
            "ICMP by a raw socket",
            "icmp",
            json!({"address": OTHER}),
            format!("echo from {OTHER}"),
        )
        .meets(&[Forbidden])
        .without(format!("\"at\":\"{OTHER}")),
        Row::new(
            "ICMP by a datagram socket",
            "icmp",
            json!({"address": OTHER, "raw": false}),
            format!("echo from {OTHER}"),
        )
        .meets(&[Forbidden, NoRoute, Silence])
        .without(format!("\"at\":\"{OTHER}")),
        Row::new(
            "ICMP to an allowed name",
            "icmp",
            json!({"address": "api.selu-lab.net", "raw": false}),
            format!("echo from {WILD}"),
        )
        .meets(&[
            Forbidden,
            NoRoute,
            Silence,
            super::super::table::Refusal::Other,
        ])
        .without(format!("\"at\":\"{WILD}")),
        Row::new(
            "DNS straight to a resolver, UDP",
            "dns",
            json!({"server": format!("{DNS}:53"), "name": "www.selu-lab.net"}),
            WWW,
        )
        .meets(&UNROUTED)
        .without("\"kind\":\"dns\""),
        Row::new(
            "DNS straight to a resolver, TCP",
            "dns",
            json!({"server": format!("{DNS}:53"), "name": "www.selu-lab.net", "tcp": true}),
            WWW,
        )
        .meets(&UNROUTED)
        .without("\"kind\":\"dns\""),
        Row::new(
            "DNS straight to a resolver of one's own",
            "dns",
            json!({"server": format!("{OTHER}:53"), "name": "secret.selu-other.net"}),
            OTHER,
        )
        .meets(&UNROUTED)
        .without("\"kind\":\"dns\""),
        Row::new(
            "a listed port that answers nothing of what is asked",
            "talk",
            get("mail.selu-lab.net", 8080),
            reached(WWW),
        )
        .meets(&[Closed, Cut]),
    ]
}
