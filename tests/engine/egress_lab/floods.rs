//! Limits against abuse: one capability cannot take the gateway from the others, nor make it grow.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::inside::{Inside, is_cut, says_something};
use super::lab::{DNS, Lab, WILD, WWW};
use super::scene::{Scene, in_network_of, outcome};
use crate::daemon;
use crate::project::probe_binary;

/// The gateway carries at most this many connections of one container at once.
const CONNECTIONS: u64 = 256;

/// Deployed as for the techniques; `web/near` is who must not notice.
struct Crowd {
    scene: Scene,
    open: Inside,
    near: Inside,
    near_target: String,
}

impl Crowd {
    fn new(topic: &str) -> Self {
        let scene = Scene::of(topic, &["open", "near"]);
        let open = Inside::of(&scene.resident("open"));
        let near = Inside::of(&scene.resident("near"));
        let near_target = scene.virtual_address("near", "api.selu-lab.net");
        let crowd = Self {
            scene,
            open,
            near,
            near_target,
        };
        crowd.near_is_served("before");
        crowd
    }

    /// A neighbour's connection works: name, address, and a word from the server. It asks for the name up to three times,
    /// as every resolver's client does: a busy machine may lose a datagram.
    #[track_caller]
    fn near_is_served(&self, when: &str) {
        let question = json!({"name": "api.selu-lab.net"});
        let mut answers = (0..3).map(|_| self.scene.inside("near", "dns", &question));
        let answer = answers.find(|answer| answer["ok"] == true);
        let answer = answer.unwrap_or_else(|| panic!("{when}: no answer"));
        let address = &answer["answers"][0]["data"];
        assert_eq!(address, self.near_target.as_str(), "{when}: {answer}");
        let greeted = self
            .near
            .connect(&self.near_target, 9999)
            .map(|mut stream| says_something(&mut stream));
        assert!(matches!(greeted, Ok(true)), "{when}: {greeted:?}");
    }

    /// The gateway came through all of it in one piece.
    #[track_caller]
    fn gateway_is_whole(&self) {
        let seen = daemon::inspect(&self.scene.project.gateway());
        assert_eq!(seen["RestartCount"], 0);
        assert_eq!(seen["State"]["OOMKilled"], false);
        self.scene.project.selu(&["status"]).expect(0);
    }
}

#[test]
fn a_container_has_so_many_connections_and_its_neighbour_does_not_notice() {
    let Some(_lab) = Lab::take() else { return };
    let crowd = Crowd::new("flood");
    let flood = |to: &str, milliseconds: u64| json!({"address": to, "port": 4000, "count": 600, "milliseconds": milliseconds});
    let free = crowd.scene.free.probe("flood", &flood(WILD, 500));
    assert!(
        free["opened"].as_u64().unwrap_or(0) > 2 * CONNECTIONS,
        "the target takes more: {free}"
    );
    let (here, ()) = std::thread::scope(|scope| {
        let flooding = scope.spawn(|| {
            crowd
                .scene
                .inside("open", "flood", &flood("api.selu-lab.net", 3000))
        });
        while !flooding.is_finished() {
            crowd.near_is_served("during the flood");
            // Below the rate at which the gateway refuses the neighbour itself: 50 questions a second.
            std::thread::sleep(Duration::from_millis(50));
        }
        (flooding.join().unwrap(), ())
    });
    let opened = here["opened"].as_u64().unwrap_or_else(|| panic!("{here}"));
    assert!((1..=CONNECTIONS).contains(&opened), "{here}");
    // And once they are gone, it may again.
    let target = crowd.scene.virtual_address("open", "api.selu-lab.net");
    crowd.open.expect_echo(&target, 7, "after the flood");
    crowd.gateway_is_whole();
}

#[test]
fn half_open_connections_keep_nobody_out() {
    let Some(_lab) = Lab::take() else { return };
    let crowd = Crowd::new("half");
    let target = crowd.scene.virtual_address("open", "api.selu-lab.net");
    let probe = probe_binary();
    let container = crowd.scene.resident("open");
    for source in [
        crowd.scene.address("open"),
        crowd.scene.free.neighbouring_address(),
    ] {
        let arguments =
            json!({"source": source, "address": target, "port": 7, "count": 20_000}).to_string();
        let command = [probe.to_str().unwrap(), "call", "half_open", &arguments];
        let sent = outcome(&in_network_of(&container, &[], &command));
        assert_eq!(sent["value"], 20_000, "{sent}");
        crowd.near_is_served("during half-open connections");
        crowd
            .open
            .expect_echo(&target, 7, "after half-open connections");
    }
    crowd.gateway_is_whole();
}

#[test]
fn who_says_half_of_what_must_come_first_is_cut() {
    let Some(_lab) = Lab::take() else { return };
    let crowd = Crowd::new("loris");
    let free = Inside::of(&crowd.scene.free.name);
    let target = crowd.scene.virtual_address("open", "www.selu-lab.net");
    let patience = Some(Duration::from_secs(90));
    for (what, port, half) in [
        ("a request", 80, &b"GET / HTTP/1.1\r\nHost: www.se"[..]),
        (
            "a client hello",
            443,
            &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        ),
    ] {
        let mut direct = free.connect(WWW, port).unwrap();
        direct.write_all(half).unwrap();
        let mut stream = crowd.open.connect(&target, port).unwrap();
        stream.write_all(half).unwrap();
        stream.set_read_timeout(patience).unwrap();
        let begun = Instant::now();
        assert!(
            is_cut(&mut stream),
            "half of {what} is waited on for {patience:?}"
        );
        eprintln!("half of {what} is cut after {:?}", begun.elapsed());
        // The server itself still waits: it was not its doing.
        direct
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        assert!(
            !is_cut(&mut direct),
            "the server itself cuts half of {what}"
        );
    }
    crowd.gateway_is_whole();
}

#[test]
fn new_names_below_a_wildcard_are_rationed_and_never_leave() {
    let Some(lab) = Lab::take() else { return };
    let crowd = Crowd::new("names");
    let flood =
        |server: Value| json!({"server": server, "name": "wild.selu-lab.net", "count": 3000});
    let answered = |result: &Value| result["codes"]["0"].as_u64().unwrap_or(0);
    let free = crowd
        .scene
        .free
        .probe("dns_flood", &flood(json!(format!("{DNS}:53"))));
    assert!(
        answered(&free) > 1500,
        "the resolver itself keeps up: {free}"
    );
    let mark = lab.mark();
    let gateway = format!("{}:53", crowd.scene.gateway_in("open"));
    let here = crowd
        .scene
        .inside("open", "dns_flood", &flood(json!(gateway)));
    crowd.near_is_served("during a flood of names");
    assert!(answered(&here) > 0, "{here}");
    assert!(answered(&here) < 1500, "{here}");
    lab.fence();
    let asked: Vec<Value> = lab
        .since(mark)
        .into_iter()
        .filter(|line| {
            line["kind"] == "dns"
                && line["name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with('f'))
        })
        .collect();
    assert!(asked.is_empty(), "S15: {} questions left", asked.len());
    crowd.gateway_is_whole();
}

#[test]
fn noise_at_the_gateways_ports_harms_nothing() {
    let Some(_lab) = Lab::take() else { return };
    let crowd = Crowd::new("noise");
    let gateway = crowd.scene.gateway_in("open");
    let socket = crowd.open.datagrams();
    let mut state = 0x5e1u32;
    let mut noise = |length: usize| -> Vec<u8> {
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            })
            .collect()
    };
    for length in (0..2000).map(|number| number % 600) {
        // A full queue is no failure of the test.
        let _ = socket.send_to(&noise(length), (gateway.as_str(), 53));
    }
    for port in [53, 3128, 61443] {
        for length in [1, 100, 70_000] {
            if let Ok(mut stream) = crowd.open.connect(&gateway, port) {
                let _ = stream.write_all(&noise(length));
            }
        }
    }
    crowd.near_is_served("after noise");
    let target = crowd.scene.virtual_address("open", "api.selu-lab.net");
    crowd.open.expect_echo(&target, 7, "after noise");
    crowd.gateway_is_whole();
}
