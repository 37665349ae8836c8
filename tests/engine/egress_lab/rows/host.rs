//! What is near: the engine's host, the engine, metadata services, the gateway, neighbours.

use serde_json::json;

use super::super::lab::{HOST, HOST_PORTS, METADATA, PRIVATE};
use super::super::scene::{FREE_PORT, Scene, address_in};
use super::super::table::Refusal::{Closed, Cut, Forbidden, NoName};
use super::super::table::{Proof, Row};
use super::{GRPC_ANSWER, UNROUTED, at, get, grpc, reached, talk};
use crate::daemon;

const GREETING: &str = "reached the host";

pub(super) fn rows(scene: &Scene) -> Vec<Row> {
    let mut rows = Vec::new();
    let own_bridge =
        daemon::inspect_network(&scene.resident("open"))["IPAM"]["Config"][0]["Gateway"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
    let ordinary = scene.free.host_address(4);
    let uplink = uplink();
    let greet = |to: &str, port: u16| talk(to, port, json!([]));
    let direct = |rows: &mut Vec<Row>, name: &str, address: &str| {
        rows.push(
            Row::new(
                format!("the host by {name}"),
                "talk",
                greet(address, HOST_PORTS[0]),
                GREETING,
            )
            .meets(&UNROUTED)
            .without("\"at\":\"host:"),
        );
        rows.push(
            Row::new(
                format!("the host by a name for {name}"),
                "talk",
                greet(&at(address), HOST_PORTS[0]),
                GREETING,
            )
            .meets(&[Cut, Closed])
            .without("\"at\":\"host:"),
        );
    };
    direct(&mut rows, "a bridge's address", &ordinary);
    direct(&mut rows, "its own address", &uplink);
    direct(&mut rows, "a global address towards the internet", HOST[0]);
    direct(&mut rows, "a global address on another device", HOST[1]);
    rows.push(
        Row::new(
            "the host by its bridge in the capability's own network",
            "talk",
            greet(&own_bridge, HOST_PORTS[0]),
            GREETING,
        )
        .proved(Proof::FreeWith(greet(&ordinary, HOST_PORTS[0])))
        .meets(&UNROUTED)
        .without("\"at\":\"host:"),
    );
    rows.push(
        Row::new(
            "the host over UDP",
            "udp",
            json!({"address": ordinary, "port": HOST_PORTS[0]}),
            GREETING,
        )
        .meets(&UNROUTED)
        .without("\"at\":\"host:"),
    );
    let six = scene.free.host_address(6);
    rows.push(
        Row::new(
            "the host over IPv6",
            "talk",
            greet(&six, HOST_PORTS[0]),
            GREETING,
        )
        .meets(&UNROUTED)
        .without("\"at\":\"host:"),
    );
    rows.push(
        Row::new(
            "the host by its well-known name",
            "talk",
            greet("host.docker.internal", HOST_PORTS[0]),
            GREETING,
        )
        .meets(&[NoName])
        .without("\"at\":\"host:"),
    );

    rows.push(
        Row::new(
            "the engine's socket",
            "unix",
            json!({"path": "/var/run/docker.sock"}),
            "ApiVersion",
        )
        .meets(&[Forbidden]),
    );
    rows.push(
        Row::new(
            "the engine's port on the host",
            "talk",
            greet(&ordinary, HOST_PORTS[1]),
            GREETING,
        )
        .meets(&UNROUTED)
        .without("\"at\":\"host:"),
    );
    rows.push(
        Row::new(
            "the engine's port by a name for it",
            "talk",
            greet(&at(&ordinary), HOST_PORTS[1]),
            GREETING,
        )
        .meets(&[Cut, Closed])
        .without("\"at\":\"host:"),
    );

    for address in METADATA {
        rows.push(
            Row::new(
                format!("metadata service {address}"),
                "talk",
                get(address, 80),
                reached(address),
            )
            .meets(&UNROUTED),
        );
        rows.push(
            Row::new(
                format!("metadata service {address} by a name"),
                "talk",
                get(&at(address), 80),
                reached(address),
            )
            .meets(&[Cut, Closed]),
        );
    }

    // The gateway's own loopback, where only it can be: the same name reaches a listener of the asker's.
    for (name, labels) in [
        ("loopback", "127.0.0.1"),
        ("the unspecified address", "0.0.0.0"),
    ] {
        rows.push(
            Row::new(
                format!("{name} by a name"),
                "talk",
                greet(&at(labels), FREE_PORT),
                "hello from the probe's target",
            )
            .meets(&[Cut, Closed]),
        );
    }
    for (name, labels) in [
        ("a private address by a name", PRIVATE.to_owned()),
        (
            "public and private answers mixed",
            format!("11.20.30.10 {PRIVATE}"),
        ),
        (
            "private and public answers mixed",
            format!("{PRIVATE} 11.20.30.10"),
        ),
        ("an alias of a private name", format!("cname {PRIVATE}")),
        (
            "a private address mapped into IPv6",
            "six-00000000000000000000ffff0a7b000a".to_owned(),
        ),
    ] {
        rows.push(
            Row::new(name, "talk", get(&at(&labels), 80), "reached 1")
                .meets(&[Cut, Closed])
                .without("\"kind\":\"tcp\""),
        );
    }
    rows.push(
        Row::new(
            "a listed name with a private address and no permission",
            "talk",
            get("private.selu-lab.net", 80),
            reached(PRIVATE),
        )
        .meets(&[Cut, Closed]),
    );
    // Asked twice by each: the first answer is public, the second private.
    let rebinding = |who: &str| get(&at(&format!("n-{who} 11.20.30.10 then {PRIVATE}")), 80);
    let mut row = Row::new(
        "rebinding between two connections",
        "talk",
        rebinding("here"),
        reached(PRIVATE),
    )
    .after(rebinding("here"))
    .meets(&[Cut, Closed]);
    row.proof = Proof::FreeWith(rebinding("free"));
    row.free_before = Some(rebinding("free"));
    rows.push(row);
    rows.extend(neighbours(scene));
    rows
}

fn neighbours(scene: &Scene) -> Vec<Row> {
    let mut rows = Vec::new();
    let near = scene.resident("near");
    let address = scene.address("near");
    rows.push(
        Row::new(
            "a neighbour's tools by address",
            "talk",
            grpc(&address),
            GRPC_ANSWER,
        )
        .proved(Proof::Beside(near.clone(), grpc(&address)))
        .meets(&UNROUTED),
    );
    rows.push(
        Row::new(
            "a neighbour's tools by its container's name",
            "talk",
            grpc(&near),
            GRPC_ANSWER,
        )
        .proved(Proof::Beside(near.clone(), grpc(&near)))
        .meets(&[NoName]),
    );
    rows.push(
        Row::new(
            "a neighbour's tools by a public name for its address",
            "talk",
            grpc(&at(&address)),
            GRPC_ANSWER,
        )
        .proved(Proof::Beside(near.clone(), grpc(&address)))
        .meets(&[Cut, Closed]),
    );
    rows.push(
        Row::new(
            "its own tools through the gateway, by a public name",
            "talk",
            grpc(&at(&scene.address("open"))),
            GRPC_ANSWER,
        )
        .proved(Proof::Beside(
            scene.resident("open"),
            grpc(&scene.address("open")),
        ))
        .meets(&[Cut, Closed]),
    );
    let virtual_address = scene.virtual_address("near", "api.selu-lab.net");
    let nines = |to: &str| talk(to, 9999, json!([]));
    rows.push(
        Row::new(
            "the virtual address of another instance",
            "talk",
            nines(&virtual_address),
            reached("11.20.30.12:9999"),
        )
        .proved(Proof::Of("near", nines(&virtual_address)))
        .meets(&UNROUTED),
    );
    let gateway_near = scene.gateway_in("near");
    let through = |gateway: &str| {
        talk(
            gateway,
            super::PROXY_PORT,
            json!([
                {"send": "CONNECT api.selu-lab.net:9999 HTTP/1.1\r\nHost: api.selu-lab.net:9999\r\n\r\n"},
            ]),
        )
    };
    rows.push(
        Row::new(
            "another instance's proxy",
            "talk",
            through(&gateway_near),
            reached("11.20.30.12:9999"),
        )
        .proved(Proof::Of("near", through(&gateway_near)))
        .meets(&UNROUTED),
    );
    // The gateway from behind: the network where it dials.
    let behind = address_in(&scene.project.gateway(), &scene.outside_network());
    let own = through(&scene.gateway_in("open"));
    for (name, address) in [
        ("the gateway's side towards the internet", behind),
        ("the gateway's own proxy", scene.gateway_in("open")),
    ] {
        let by_name = through(&at(&address));
        rows.push(
            Row::new(
                format!("{name}, by a public name"),
                "talk",
                by_name,
                "HTTP/1",
            )
            .proved(Proof::Of("open", own.clone()))
            .meets(&[Cut, Closed]),
        );
    }
    rows
}

/// The address by which this machine reaches what is far away.
fn uplink() -> String {
    let socket = std::net::UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    // Connecting a datagram socket sends nothing: it only chooses the way.
    socket.connect(("192.88.99.1", 9)).unwrap();
    socket.local_addr().unwrap().ip().to_string()
}
