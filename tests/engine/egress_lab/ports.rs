//! The gateway's own ports, from both sides.

use serde_json::json;

use super::scene::{Scene, address_in};
use super::table::Outcome;

/// What a capability may find open on its gateway: names, the proxy, and where redirected connections arrive.
const EXPECTED: [u64; 3] = [53, 3128, 61443];
/// Where anything of the gateway could listen.
const RANGES: [(u16, u16); 4] = [(1, 4200), (8000, 8500), (50000, 50100), (61400, 61500)];

pub(crate) fn outcomes(scene: &Scene) -> Vec<Outcome> {
    let inside = |address: &str| {
        found(|from, to| {
            scene.inside(
                "open",
                "scan",
                &json!({"address": address, "from": from, "to": to}),
            )
        })
    };
    let gateway = scene.gateway_in("open");
    let own = inside(&gateway);
    let sees = own.contains(&53) && own.contains(&3128);
    let network = scene.outside_network();
    let behind = address_in(&scene.project.gateway(), &network);
    let from_behind = found(|from, to| {
        scene.free.probe_beside(
            &network,
            "scan",
            &json!({"address": behind, "from": from, "to": to}),
        )
    });
    let elsewhere = inside(&scene.gateway_in("near"));
    [
        (
            "ports of the gateway, from its container",
            own,
            &EXPECTED[..],
        ),
        (
            "ports of the gateway, from the network where it dials",
            from_behind,
            &[],
        ),
        (
            "ports of the gateway at another instance's address",
            elsewhere,
            &[],
        ),
    ]
    .into_iter()
    .map(|(name, open, expected)| {
        let surplus: Vec<u64> = open
            .iter()
            .filter(|port| !expected.contains(port))
            .copied()
            .collect();
        let failure = (!surplus.is_empty() || !sees).then(|| format!("open: {open:?}"));
        Outcome::of(name.to_owned(), sees, &format!("{open:?}"), failure)
    })
    .collect()
}

fn found(scan: impl Fn(u16, u16) -> serde_json::Value) -> Vec<u64> {
    RANGES
        .iter()
        .flat_map(|&(from, to)| {
            let answer = scan(from, to);
            let open = answer["open"].as_array().cloned();
            open.unwrap_or_else(|| panic!("{answer}"))
        })
        .filter_map(|port| port.as_u64())
        .collect()
}
