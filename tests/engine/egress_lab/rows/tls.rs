//! Another server name inside an allowed connection (N10). The lab's servers answer whatever name they are asked for, as
//! a shared front of many sites does.

use serde_json::json;

use super::super::lab::{WILD, WWW};
use super::super::table::Refusal::{Closed, Cut};
use super::super::table::Row;
use super::{hello, reached, talk};

const FOREIGN: &str = "denied.selu-other.net";

pub(super) fn rows() -> Vec<Row> {
    let allowed = "www.selu-lab.net";
    let row = |name: &str, arguments, place: &str| {
        Row::new(name, "talk", arguments, reached(place))
            .meets(&[Cut, Closed])
            .without("\"kind\":\"sni\"")
    };
    vec![
        row("another name in TLS", hello(allowed, 443, &[FOREIGN]), WWW),
        row("no name in TLS", hello(allowed, 443, &[]), WWW),
        row(
            "an address as the name in TLS",
            hello(allowed, 443, &[WWW]),
            WWW,
        ),
        row(
            "a name below the allowed one in TLS",
            hello(allowed, 443, &["x.www.selu-lab.net"]),
            WWW,
        ),
        row(
            "another name in TLS, a byte a record",
            talk(allowed, 443, json!([{"hello": [FOREIGN], "fragment": 1}])),
            WWW,
        ),
        row(
            "another name in TLS below a wildcard",
            hello("a.wild.selu-lab.net", 443, &["b.wild.selu-lab.net"]),
            WILD,
        ),
        row(
            "another name in TLS at a port of its own",
            hello("api.selu-lab.net", 8443, &[FOREIGN]),
            WILD,
        ),
        row(
            "another name in TLS where plain HTTP is expected",
            hello("api.selu-lab.net", 443, &[FOREIGN]),
            WILD,
        ),
    ]
}
