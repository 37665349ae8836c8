//! The proxy: the same rules for those who want it, and no others.

use serde_json::{Value, json};

use super::super::lab::{HOST_PORTS, METADATA, OTHER, PRIVATE, PRIVATE_OTHER, WWW};
use super::super::scene::{Scene, address_in};
use super::super::table::Refusal::{Closed, Cut, Forbidden, Http, NoName, Silence};
use super::super::table::{Place, Proof, Row};
use super::{
    GRPC_ANSWER, PROXY, PROXY_PORT, UNROUTED, at, get, grpc, grpc_steps, hello, raw, reached, talk,
};

/// A tunnel to `target`, and a plain request in it.
fn tunnel(target: &str) -> Value {
    tunnel_with(
        target,
        json!([{"send": format!("GET / HTTP/1.1\r\nHost: {target}\r\n\r\n")}]),
    )
}

fn tunnel_with(target: &str, steps: Value) -> Value {
    let mut all = vec![
        json!({"send": format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")}),
        json!({"read": "\r\n\r\n"}),
    ];
    all.extend(steps.as_array().cloned().unwrap_or_default());
    talk(PROXY, PROXY_PORT, Value::from(all))
}

pub(super) fn rows(scene: &Scene) -> Vec<Row> {
    let mut rows = Vec::new();
    let ordinary = scene.free.host_address(4);
    let host_port = HOST_PORTS[0];
    let greeting = |to: &str, port: u16| talk(to, port, json!([]));
    for (name, target, direct, answer) in [
        (
            "a tunnel to a name that is not listed",
            "denied.selu-other.net:80".to_owned(),
            get("denied.selu-other.net", 80),
            reached(OTHER),
        ),
        (
            "a tunnel to another port of an allowed name",
            "www.selu-lab.net:8080".to_owned(),
            get("www.selu-lab.net", 8080),
            reached(WWW),
        ),
        (
            "a tunnel to an address that is not listed",
            format!("{OTHER}:80"),
            get(OTHER, 80),
            reached(OTHER),
        ),
        (
            "a tunnel to the address of an allowed name",
            format!("{WWW}:80"),
            get(WWW, 80),
            reached(WWW),
        ),
        (
            "a tunnel to an address as one number",
            "185867787:80".to_owned(),
            get("185867787", 80),
            reached(OTHER),
        ),
        (
            "a tunnel to an address in hexadecimal",
            "0x0b.0x14.0x1e.0x0b:80".to_owned(),
            get("0x0b.0x14.0x1e.0x0b", 80),
            reached(OTHER),
        ),
        (
            "a tunnel to an address in octal",
            "013.024.036.013:80".to_owned(),
            get("013.024.036.013", 80),
            reached(OTHER),
        ),
        (
            "a tunnel to an address mapped into IPv6",
            format!("[::ffff:{OTHER}]:80"),
            get(&format!("::ffff:{OTHER}"), 80),
            reached(OTHER),
        ),
        (
            "a tunnel to a private address",
            format!("{PRIVATE}:80"),
            get(PRIVATE, 80),
            reached(PRIVATE),
        ),
        (
            "a tunnel to the host",
            format!("{ordinary}:{host_port}"),
            greeting(&ordinary, host_port),
            "reached the host".to_owned(),
        ),
        (
            "a tunnel to the host by its well-known name",
            format!("host.docker.internal:{host_port}"),
            greeting("host.docker.internal", host_port),
            "reached the host".to_owned(),
        ),
        (
            "a tunnel to the engine's port",
            format!("{ordinary}:{}", HOST_PORTS[1]),
            greeting(&ordinary, HOST_PORTS[1]),
            "reached the host".to_owned(),
        ),
        (
            "a tunnel to a metadata service",
            format!("{}:80", METADATA[0]),
            get(METADATA[0], 80),
            reached(METADATA[0]),
        ),
        (
            "a tunnel to a metadata service that is global by the registry",
            format!("{}:80", METADATA[1]),
            get(METADATA[1], 80),
            reached(METADATA[1]),
        ),
    ] {
        let mut row = Row::new(name, "talk", tunnel(&target), answer)
            .proved(Proof::FreeWith(direct))
            .meets(&[Http, Cut]);
        if row.answer == "reached the host" {
            row = row.without("\"at\":\"host:");
        }
        rows.push(row);
    }

    let near = scene.address("near");
    rows.push(
        Row::new(
            "a tunnel to a neighbour's tools",
            "talk",
            tunnel_with(&format!("{near}:50051"), grpc_steps()),
            GRPC_ANSWER,
        )
        .proved(Proof::Beside(scene.resident("near"), grpc(&near)))
        .meets(&[Http, Cut]),
    );
    let connect = "CONNECT www.selu-lab.net:80 HTTP/1.1\r\nHost: www.selu-lab.net:80\r\n\r\n";
    for (name, address) in [
        (
            "a tunnel to the gateway's side towards the internet",
            address_in(&scene.project.gateway(), &scene.outside_network()),
        ),
        (
            "a tunnel to the proxy itself by address",
            scene.gateway_in("open"),
        ),
        ("a tunnel to the proxy itself by name", PROXY.to_owned()),
        ("a tunnel to the gateway's loopback", "127.0.0.1".to_owned()),
    ] {
        let again = tunnel_with(
            &format!("{address}:{PROXY_PORT}"),
            json!([{"send": connect}, {"read": "200"}]),
        );
        rows.push(
            Row::new(name, "talk", again, "HTTP/1.1 200")
                .proved(Proof::Of("open", raw(PROXY, PROXY_PORT, connect)))
                .meets(&[Http, Cut]),
        );
    }

    rows.push(
        Row::new(
            "another name in TLS inside a tunnel",
            "talk",
            tunnel_with(
                "www.selu-lab.net:443",
                json!([{"hello": ["denied.selu-other.net"]}]),
            ),
            reached(WWW),
        )
        .proved(Proof::FreeWith(hello(
            "www.selu-lab.net",
            443,
            &["denied.selu-other.net"],
        )))
        .meets(&[Cut, Http])
        .without("\"kind\":\"sni\""),
    );
    let foreign = "GET /foreign HTTP/1.1\r\nHost: denied.selu-other.net\r\n\r\n";
    rows.push(
        Row::new(
            "another Host inside a tunnel",
            "talk",
            tunnel_with("www.selu-lab.net:80", json!([{"send": foreign}])),
            "/foreign",
        )
        .proved(Proof::FreeWith(raw("www.selu-lab.net", 80, foreign)))
        .meets(&[Cut, Http])
        .without("/foreign"),
    );
    for (name, text, direct) in [
        (
            "absolute form to a name that is not listed",
            "GET http://denied.selu-other.net/foreign HTTP/1.1\r\nHost: denied.selu-other.net\r\n\r\n",
            "denied.selu-other.net",
        ),
        (
            "absolute form to a name that is not listed, an allowed Host",
            "GET http://denied.selu-other.net/foreign HTTP/1.1\r\nHost: www.selu-lab.net\r\n\r\n",
            "denied.selu-other.net",
        ),
        (
            "absolute form to an allowed name, another Host",
            "GET http://www.selu-lab.net/foreign HTTP/1.1\r\nHost: denied.selu-other.net\r\n\r\n",
            "www.selu-lab.net",
        ),
        (
            "absolute form with the allowed name as user",
            "GET http://www.selu-lab.net@denied.selu-other.net/foreign HTTP/1.1\r\nHost: denied.selu-other.net\r\n\r\n",
            "denied.selu-other.net",
        ),
        (
            "absolute form to a private address",
            "GET http://10.123.0.10/foreign HTTP/1.1\r\nHost: 10.123.0.10\r\n\r\n",
            "10.123.0.10",
        ),
        (
            "absolute form, a second one to another host",
            "GET http://www.selu-lab.net/ HTTP/1.1\r\nHost: www.selu-lab.net\r\n\r\nGET http://denied.selu-other.net/foreign HTTP/1.1\r\nHost: denied.selu-other.net\r\n\r\n",
            "denied.selu-other.net",
        ),
        (
            "the proxy as if it were the server",
            "GET /foreign HTTP/1.1\r\nHost: denied.selu-other.net\r\n\r\n",
            "denied.selu-other.net",
        ),
    ] {
        rows.push(
            Row::new(name, "talk", raw(PROXY, PROXY_PORT, text), "/foreign")
                .proved(Proof::FreeWith(raw(direct, 80, text)))
                .meets(&[Http, Cut, Closed])
                .without("/foreign"),
        );
    }
    // Without any rule there is no proxy.
    rows.push(
        Row::new(
            "the proxy, with no rule at all",
            "talk",
            raw(&scene.gateway_in("none"), PROXY_PORT, connect),
            "HTTP/1.1 200",
        )
        .proved(Proof::Of("open", raw(PROXY, PROXY_PORT, connect)))
        .tried(Place::In("none"))
        .meets(&[Closed, Silence]),
    );
    rows.extend(any(scene));
    rows.extend(private());
    rows
}

/// `mode: any` is any public name, and not any address (N9).
fn any(scene: &Scene) -> Vec<Row> {
    let ordinary = scene.free.host_address(4);
    let near = scene.address("near");
    let row = |name: &str, arguments: Value, answer: String| {
        Row::new(format!("mode any: {name}"), "talk", arguments, answer).tried(Place::In("any"))
    };
    let host = |row: Row| row.without("\"at\":\"host:");
    vec![
        row("a raw address", get(OTHER, 80), reached(OTHER)).meets(&UNROUTED),
        row(
            "a tunnel to an address",
            tunnel(&format!("{OTHER}:80")),
            reached(OTHER),
        )
        .proved(Proof::FreeWith(get(OTHER, 80)))
        .meets(&[Http, Cut]),
        row(
            "a private address by a name",
            get(&at(PRIVATE), 80),
            reached(PRIVATE),
        )
        .meets(&[Cut, Closed]),
        row(
            "a name with a private address",
            get("private.selu-lab.net", 80),
            reached(PRIVATE),
        )
        .meets(&[Cut, Closed]),
        row(
            "a metadata service by a name",
            get(&at(METADATA[0]), 80),
            reached(METADATA[0]),
        )
        .meets(&[Cut, Closed]),
        host(
            row(
                "the host by its well-known name",
                talk("host.docker.internal", HOST_PORTS[0], json!([])),
                "reached the host".to_owned(),
            )
            .meets(&[NoName]),
        ),
        host(
            row(
                "the host by a name",
                talk(&at(&ordinary), HOST_PORTS[0], json!([])),
                "reached the host".to_owned(),
            )
            .meets(&[Cut, Closed]),
        ),
        row(
            "a neighbour by a name",
            grpc(&at(&near)),
            GRPC_ANSWER.to_owned(),
        )
        .proved(Proof::Beside(scene.resident("near"), grpc(&near)))
        .meets(&[Cut, Closed]),
        Row::new(
            "mode any: UDP",
            "udp",
            json!({"address": "denied.selu-other.net", "port": 7}),
            reached(OTHER),
        )
        .tried(Place::In("any"))
        .meets(&[Silence, Closed]),
        row(
            "another name in TLS",
            hello("www.selu-lab.net", 443, &["denied.selu-other.net"]),
            reached(WWW),
        )
        .meets(&[Cut, Closed])
        .without("\"kind\":\"sni\""),
        Row::new(
            "mode any: a raw socket",
            "icmp",
            json!({"address": OTHER}),
            format!("echo from {OTHER}"),
        )
        .tried(Place::In("any"))
        .meets(&[Forbidden]),
    ]
}

/// A permission for a private destination is for that one alone (N8).
fn private() -> Vec<Row> {
    let row = |name: &str, arguments: Value, answer: String| {
        Row::new(
            format!("private by permission: {name}"),
            "talk",
            arguments,
            answer,
        )
        .tried(Place::In("private"))
    };
    vec![
        row(
            "another port of it",
            get("private.selu-lab.net", 8080),
            reached(PRIVATE),
        )
        .meets(&[Closed]),
        row(
            "its address without the proxy",
            talk(PRIVATE, 5000, json!([])),
            reached(PRIVATE),
        )
        .meets(&UNROUTED),
        row(
            "another port of its address",
            tunnel(&format!("{PRIVATE}:80")),
            reached(PRIVATE),
        )
        .proved(Proof::FreeWith(get(PRIVATE, 80)))
        .meets(&[Http, Cut]),
        row(
            "a listed address without a permission",
            tunnel_with(&format!("{PRIVATE_OTHER}:5000"), json!([])),
            reached(PRIVATE_OTHER),
        )
        .proved(Proof::FreeWith(talk(PRIVATE_OTHER, 5000, json!([]))))
        .meets(&[Http, Cut]),
    ]
}
