//! Names that are not the allowed ones, and the name server as a way out.

use serde_json::json;

use super::super::lab::{DNS, OTHER, WILD, WWW};
use super::super::scene::Scene;
use super::super::table::Refusal::{DnsRefused, NoData, NoName};
use super::super::table::{Place, Proof, Row};
use super::{get, reached};

pub(super) fn rows(scene: &Scene) -> Vec<Row> {
    let mut rows = Vec::new();
    let gateway = scene.gateway_in("open");
    for (what, name, place) in [
        ("a name that is not listed", "denied.selu-other.net", OTHER),
        ("a sibling of an allowed name", "denied.selu-lab.net", OTHER),
        ("a name below an allowed one", "x.www.selu-lab.net", OTHER),
        ("the parent of an allowed name", "selu-lab.net", OTHER),
        (
            "an allowed name as a label of another",
            "www.selu-lab.net.selu-other.net",
            OTHER,
        ),
        (
            "an allowed name as another's end, without a dot",
            "xwww.selu-lab.net",
            OTHER,
        ),
        ("an allowed name without its dot", "wwwselu-lab.net", OTHER),
        (
            "an allowed name with a hyphen for its dot",
            "www-selu-lab.net",
            OTHER,
        ),
        (
            "an allowed name, one letter short",
            "www.selu-lab.ne",
            OTHER,
        ),
        (
            "an allowed name, one letter long",
            "www.selu-lab.network",
            OTHER,
        ),
        // A Cyrillic first letter of `selu`.
        (
            "an allowed name with a letter that only looks the same",
            "www.xn--elu-lab-iog.net",
            OTHER,
        ),
        (
            "the name of an allowed one in punycode, without its letters",
            "bucher.selu-lab.net",
            OTHER,
        ),
        ("the apex of a wildcard", "wild.selu-lab.net", WILD),
        (
            "a wildcard's apex as another's end, without a dot",
            "xwild.selu-lab.net",
            OTHER,
        ),
        (
            "a wildcard's apex as a label of another",
            "a.wild.selu-lab.net.selu-other.net",
            OTHER,
        ),
        (
            "the cloud's own name for metadata",
            "metadata.google.internal",
            OTHER,
        ),
    ] {
        rows.push(Row::new(what, "talk", get(name, 80), reached(place)).meets(&[NoName]));
    }

    // Questions of other types would carry data of the answerer's choice; none is ever passed on.
    for (what, name, kind) in [
        ("TXT of an allowed name", "www.selu-lab.net", 16),
        (
            "TXT below an allowed wildcard",
            "c2VjcmV0.wild.selu-lab.net",
            16,
        ),
        (
            "NULL below an allowed wildcard",
            "c2VjcmV0.wild.selu-lab.net",
            10,
        ),
        ("HTTPS record of an allowed name", "www.selu-lab.net", 65),
    ] {
        for (tcp, way) in [(false, ""), (true, ", over TCP")] {
            let ask = |server: &str| json!({"server": format!("{server}:53"), "name": name, "type": kind, "tcp": tcp});
            rows.push(
                Row::new(format!("{what}{way}"), "dns", ask(&gateway), "reached")
                    .proved(Proof::FreeWith(ask(DNS)))
                    .meets(&[NoData])
                    .without("\"kind\":\"dns\""),
            );
        }
    }
    rows.push(
        Row::new(
            "AAAA of an allowed name",
            "dns",
            json!({"name": "six-2a000000000000000000000000000001.at.selu-lab.net", "type": 28}),
            "\"type\":28",
        )
        .meets(&[NoData])
        .without("\"kind\":\"dns\""),
    );
    rows.push(
        Row::new(
            "TXT of a name that is not listed",
            "dns",
            json!({"name": "c2VjcmV0.selu-other.net", "type": 16}),
            "reached",
        )
        .meets(&[NoName, DnsRefused])
        .without("\"kind\":\"dns\""),
    );
    rows.push(
        Row::new(
            "an address of a name that is not listed",
            "dns",
            json!({"name": "c2VjcmV0.selu-other.net"}),
            OTHER,
        )
        .meets(&[NoName])
        .without("\"kind\":\"dns\""),
    );
    rows.push(
        Row::new(
            "the engine's own resolver, for a name that is not listed",
            "dns",
            json!({"server": "127.0.0.11:53", "name": "c2VjcmV0.selu-other.net"}),
            OTHER,
        )
        .meets(&[NoName, DnsRefused])
        .without("\"kind\":\"dns\""),
    );
    rows.push(
        Row::new(
            "a label below a wildcard with more than letters, digits and hyphens",
            "dns",
            json!({"name": "a_b.wild.selu-lab.net"}),
            WILD,
        )
        .meets(&[NoName, DnsRefused])
        .without("\"kind\":\"dns\""),
    );
    let long = format!("{}.wild.selu-lab.net", vec!["a".repeat(56); 4].join("."));
    rows.push(
        Row::new(
            "a name below a wildcard that is as long as names can be",
            "dns",
            json!({"name": long}),
            WILD,
        )
        .meets(&[NoName, DnsRefused])
        .without("\"kind\":\"dns\""),
    );
    // Without any rule there is no name at all, not even that of a proxy.
    for (what, name) in [
        ("a name, with no rule at all", "www.selu-lab.net"),
        (
            "the engine's name for the host, with no rule at all",
            "host.docker.internal",
        ),
    ] {
        rows.push(
            Row::new(what, "talk", get(name, 80), "reached")
                .proved(Proof::FreeWith(get("www.selu-lab.net", 80)))
                .tried(Place::In("none"))
                .meets(&[NoName])
                .without(format!("\"at\":\"{WWW}")),
        );
    }
    rows
}
