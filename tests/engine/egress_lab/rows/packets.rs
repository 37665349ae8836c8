//! Below TCP: raw sockets, and what root with every right in the capability's own network could do. A capability has no
//! such right; the walls must not rest on that alone.

use std::process::Command;

use serde_json::json;

use super::super::lab::{DNS, HOST_PORTS, OTHER};
use super::super::scene::Scene;
use super::super::table::Refusal::{Closed, Forbidden, NoName, NoRoute, Other, Silence};
use super::super::table::{Place, Proof, Row};
use super::{GRPC_ANSWER, get, grpc, reached, talk};
use crate::daemon;
use crate::project::run;

const LAB: &str = "11.20.30.0/24";

pub(super) fn rows(scene: &Scene) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, arguments) in [
        (
            "a raw IP socket",
            json!({"family": 2, "kind": 3, "protocol": 255}),
        ),
        (
            "a packet socket",
            json!({"family": 17, "kind": 3, "protocol": 768}),
        ),
    ] {
        rows.push(Row::new(name, "family", arguments, "\"ok\":true").meets(&[Forbidden]));
    }
    let gateway = scene.gateway_in("open");
    let bridge = bridge(&scene.resident("open"));
    let routed = |to: &str, via: &str| {
        Place::Root(
            "open",
            vec![format!("route add {to} via {via}")],
            vec![format!("route del {to} via {via}")],
        )
    };
    let refused = [NoRoute, Silence, Closed];
    // Through the gateway as a router, which it must not be.
    rows.push(
        Row::new(
            "root: TCP with the gateway as router",
            "talk",
            get(OTHER, 80),
            reached(OTHER),
        )
        .tried(routed(LAB, &gateway))
        .meets(&refused),
    );
    rows.push(
        Row::new(
            "root: UDP with the gateway as router",
            "udp",
            json!({"address": OTHER, "port": 7}),
            reached(OTHER),
        )
        .tried(routed(LAB, &gateway))
        .meets(&refused),
    );
    rows.push(
        Row::new(
            "root: ICMP with the gateway as router",
            "icmp",
            json!({"address": OTHER}),
            format!("echo from {OTHER}"),
        )
        .tried(routed(LAB, &gateway))
        .meets(&refused)
        .without(format!("\"at\":\"{OTHER}")),
    );
    rows.push(
        Row::new(
            "root: DNS with the gateway as router",
            "dns",
            json!({"server": format!("{DNS}:53"), "name": "www.selu-lab.net"}),
            "11.20.30.10",
        )
        .tried(routed(LAB, &gateway))
        .meets(&refused)
        .without("\"kind\":\"dns\""),
    );
    let near_subnet = scene.subnet("near");
    let nines = |to: &str| talk(to, 9999, json!([]));
    let virtual_address = scene.virtual_address("near", "api.selu-lab.net");
    rows.push(
        Row::new(
            "root: another instance's virtual address through the gateway",
            "talk",
            nines(&virtual_address),
            reached("11.20.30.12:9999"),
        )
        .proved(Proof::Of("near", nines(&virtual_address)))
        .tried(routed(&near_subnet, &gateway))
        .meets(&refused),
    );
    let near = scene.address("near");
    rows.push(
        Row::new(
            "root: a neighbour's tools through the gateway",
            "talk",
            grpc(&near),
            GRPC_ANSWER,
        )
        .proved(Proof::Beside(scene.resident("near"), grpc(&near)))
        .tried(routed(&near_subnet, &gateway))
        .meets(&refused),
    );
    let near_gateway = scene.gateway_in("near");
    let proxy = |to: &str| {
        talk(
            to,
            super::PROXY_PORT,
            json!([{"send": "CONNECT api.selu-lab.net:9999 HTTP/1.1\r\nHost: api.selu-lab.net:9999\r\n\r\n"}]),
        )
    };
    rows.push(
        Row::new(
            "root: another instance's proxy through the gateway",
            "talk",
            proxy(&near_gateway),
            "HTTP/1.1 200",
        )
        .proved(Proof::Of("near", proxy(&near_gateway)))
        .tried(routed(&near_subnet, &gateway))
        .meets(&refused),
    );
    let ask = |to: &str| json!({"server": format!("{to}:53"), "name": "api.selu-lab.net"});
    rows.push(
        Row::new(
            "root: another instance's name server through the gateway",
            "dns",
            ask(&near_gateway),
            "\"type\":1",
        )
        .proved(Proof::Of("near", ask(&near_gateway)))
        .tried(routed(&near_subnet, &gateway))
        .meets(&refused),
    );
    // Another's address as one's own: who asks is known by the device.
    let only = json!({"server": format!("{gateway}:53"), "name": "near-only.selu-lab.net"});
    rows.push(
        Row::new(
            "root: a neighbour's address as one's own",
            "dns",
            only,
            "\"type\":1",
        )
        .proved(Proof::Of("near", json!({"name": "near-only.selu-lab.net"})))
        .tried(Place::Root(
            "open",
            vec![
                format!("address add {near}/32 dev eth0"),
                format!("route add {gateway}/32 dev eth0 src {near}"),
            ],
            vec![
                format!("route del {gateway}/32"),
                format!("address del {near}/32 dev eth0"),
            ],
        ))
        .meets(&[Silence, NoName]),
    );

    // Straight to a machine on the same wire, by its hardware address, without asking for it.
    let gateway_mac = mac(&scene.project.gateway(), &scene.resident("open"));
    let wired = |to: &str, mac: &str| {
        Place::Root(
            "open",
            vec![
                format!("route add {to}/32 dev eth0"),
                format!("neigh replace {to} lladdr {mac} dev eth0 nud permanent"),
            ],
            vec![
                format!("route del {to}/32 dev eth0"),
                format!("neigh del {to} dev eth0"),
            ],
        )
    };
    let ordinary = scene.free.host_address(4);
    for (what, mac) in [("the gateway", &gateway_mac), ("the host", &bridge.1)] {
        rows.push(
            Row::new(
                format!("root: TCP outside by the hardware address of {what}"),
                "talk",
                get(OTHER, 80),
                reached(OTHER),
            )
            .tried(wired(OTHER, mac))
            .meets(&refused),
        );
        rows.push(
            Row::new(
                format!("root: UDP outside by the hardware address of {what}"),
                "udp",
                json!({"address": OTHER, "port": 7}),
                reached(OTHER),
            )
            .tried(wired(OTHER, mac))
            .meets(&refused),
        );
        rows.push(
            Row::new(
                format!("root: a neighbour by the hardware address of {what}"),
                "talk",
                grpc(&near),
                GRPC_ANSWER,
            )
            .proved(Proof::Beside(scene.resident("near"), grpc(&near)))
            .tried(wired(&near, mac))
            .meets(&refused),
        );
        rows.push(
            Row::new(
                format!("root: a host service by the hardware address of {what}"),
                "talk",
                talk(&ordinary, HOST_PORTS[0], json!([])),
                "reached the host",
            )
            .tried(wired(&ordinary, mac))
            .meets(&refused)
            .without("\"at\":\"host:"),
        );
        let mut row = Row::new(
            format!("root: a host service over UDP by the hardware address of {what}"),
            "udp",
            json!({"address": ordinary, "port": HOST_PORTS[0]}),
            "reached the host",
        )
        .tried(wired(&ordinary, mac))
        .meets(&refused)
        .without("\"at\":\"host:");
        if mac == &bridge.1 {
            // A kernel takes in what is for it on any device, unless its rp_filter says no: a datagram gets there, and no
            // answer back. Only CAP_NET_ADMIN or CAP_NET_RAW sends one to that hardware address, and no capability has
            // either (docs/security.md).
            row.quiet = None;
        }
        rows.push(row);
    }
    // A datagram in a packet of one's own making: only its arrival tells.
    let own = scene.address("open");
    let spoof = |source: &str| json!({"source": source, "address": OTHER, "port": 5000});
    let free = Proof::FreeWith(spoof(&scene.free.neighbouring_address()));
    rows.push(spoofed("a packet of one's own making", &own, free).meets(&[Forbidden]));
    for (what, via) in [("the gateway", &gateway), ("the bridge", &bridge.0)] {
        for (whose, source) in [
            ("the capability's", own.as_str()),
            ("the gateway's", gateway.as_str()),
            ("a neighbour's", near.as_str()),
            ("an outsider's", "11.20.30.99"),
        ] {
            let mut make = vec![format!("route add {LAB} via {via}")];
            let mut undo = vec![format!("route del {LAB} via {via}")];
            if what == "the bridge" {
                make.insert(
                    0,
                    format!(
                        "neigh replace {via} lladdr {} dev eth0 nud permanent",
                        bridge.1
                    ),
                );
                undo.push(format!("neigh del {via} dev eth0"));
            }
            let free = Proof::FreeWith(spoof(&scene.free.neighbouring_address()));
            rows.push(
                spoofed(
                    &format!("root: a packet from {whose} address by way of {what}"),
                    source,
                    free,
                )
                .tried(Place::Root("open", make, undo))
                .meets(&[Other]),
            );
        }
    }
    rows
}

/// Sends a datagram whose packet says that it is from `source`.
fn spoofed(name: &str, source: &str, proof: Proof) -> Row {
    let arguments = json!({"source": source, "address": OTHER, "port": 5000});
    Row::new(name, "spoof", arguments, format!("\"at\":\"{OTHER}:5000\""))
        .proved(proof)
        .judged_by_arrival()
}

/// The address of a network's bridge, which is not set on the host, and its hardware address.
fn bridge(network: &str) -> (String, String) {
    let seen = daemon::inspect_network(network);
    let name = seen["Options"]["com.docker.network.bridge.name"]
        .as_str()
        .map_or_else(
            || format!("br-{}", &seen["Id"].as_str().unwrap()[..12]),
            str::to_owned,
        );
    let shown = run(Command::new("ip").args(["-o", "link", "show", &name])).expect(0);
    let words: Vec<&str> = shown.stdout.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "link/ether").unwrap();
    let mac = words[at + 1];
    let address = seen["IPAM"]["Config"][0]["Gateway"].as_str().unwrap();
    (address.to_owned(), mac.to_owned())
}

/// A container's hardware address in a network.
fn mac(container: &str, network: &str) -> String {
    daemon::inspect(container)["NetworkSettings"]["Networks"][network]["MacAddress"]
        .as_str()
        .unwrap()
        .to_owned()
}
