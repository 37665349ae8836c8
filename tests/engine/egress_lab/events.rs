//! The walls while something happens to them: restarts, deaths, outages, changes of the rules.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use selu_runtime::egress::policy::{Policy, Sealed};
use selu_runtime::gateway::push_policy;
use serde_json::json;

use super::inside::{Inside, echoes, is_cut, says_something};
use super::lab::{Lab, OTHER, WILD, WWW};
use super::scene::Scene;
use crate::call::call_with;
use crate::daemon::{self, wait};
use crate::world::{docker, docker_text};

/// Two servers that echo, by name.
const RULES: &str = r#"
network:
  mode: allowlist
  hosts: ["api.selu-lab.net:7", "www.selu-lab.net:7"]
"#;

struct Stage {
    scene: Scene,
    inside: Inside,
    /// Virtual addresses of the two.
    api: String,
    www: String,
}

impl Stage {
    /// Deployed, and shown to work: both names echo.
    fn new(topic: &str) -> Self {
        let scene = Scene::with_rules(topic, RULES);
        let inside = Inside::of(&scene.resident("open"));
        let address = |name| scene.virtual_address("open", name);
        let (api, www) = (address("api.selu-lab.net"), address("www.selu-lab.net"));
        assert!(inside.echoes(&api, 7) && inside.echoes(&www, 7));
        // What is tried below without success succeeds from where nothing is closed.
        for target in [OTHER, WILD] {
            let said = scene
                .free
                .probe("talk", &json!({"to": target, "port": 9999}));
            assert!(said.to_string().contains("reached"), "{said}");
        }
        Self {
            scene,
            inside,
            api,
            www,
        }
    }

    fn gateway(&self) -> String {
        self.scene.project.gateway()
    }

    /// Tries what is not allowed again and again while something happens; how often, for the record. Whether anything
    /// came of it the lab says.
    fn while_trying<T>(&self, lab: &Lab, happens: impl FnOnce() -> T) -> T {
        let mark = lab.mark();
        let over = AtomicBool::new(false);
        let tries = AtomicU32::new(0);
        let result = std::thread::scope(|scope| {
            let attacker = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    for (address, port) in [
                        (OTHER, 9999),
                        (self.api.as_str(), 9999),
                        (self.www.as_str(), 22),
                    ] {
                        let mut reached = self.inside.connect(address, port);
                        let said = reached.as_mut().is_ok_and(says_something);
                        assert!(!said, "{address}:{port} was reached");
                        tries.fetch_add(1, Ordering::Relaxed);
                    }
                    let asked = self.inside.datagrams();
                    let _ = asked.send_to(b"out", (OTHER, 7));
                }
            });
            let result = happens();
            over.store(true, Ordering::Relaxed);
            attacker.join().unwrap();
            result
        });
        assert!(tries.load(Ordering::Relaxed) > 0, "nothing was tried");
        lab.fence();
        let leaked: Vec<_> = lab
            .since(mark)
            .into_iter()
            .filter(|line| {
                [
                    format!("{OTHER}:"),
                    format!("{WILD}:9999"),
                    format!("{WWW}:22"),
                ]
                .iter()
                .any(|place| line["at"].as_str().is_some_and(|at| at.starts_with(place)))
            })
            .collect();
        assert!(leaked.is_empty(), "{leaked:?}");
        result
    }

    /// The process of the gateway's worker, as the host sees it: a child of the container's first process.
    fn worker(&self) -> Option<u32> {
        let parent = daemon::inspect(&self.gateway())["State"]["Pid"].to_string();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        children
            .ok()?
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .find(|pid: &u32| {
                let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
                words.is_ok_and(|words| words.contains("gateway\0worker"))
            })
    }

    /// The policy that the gateway has on its volume.
    fn policy(&self) -> Policy {
        let file = format!("{}:/policy/policy.json", self.gateway());
        let copied = docker(&["cp", &file, "-"]);
        assert!(copied.status.success(), "{copied:?}");
        let mut archive = tar::Archive::new(copied.stdout.as_slice());
        let entry = archive.entries().unwrap().next().unwrap().unwrap();
        let sealed: Sealed = serde_json::from_reader(entry).unwrap();
        sealed.policy
    }

    /// Delivers a policy with other hosts for the capability; returns once it is acknowledged.
    fn deliver(&self, hosts: &[&str]) {
        let mut policy = self.policy();
        policy.generation += 1;
        let rule = policy.networks.get_mut(&self.scene.resident("open"));
        rule.unwrap().rules.hosts = hosts.iter().map(ToString::to_string).collect();
        wait(async {
            let engine = selu_runtime::engine::docker::connect(None).await.unwrap();
            push_policy(&engine, &self.gateway(), &policy)
                .await
                .unwrap();
        });
    }
}

#[test]
fn a_restart_of_the_gateway_restores_everything_and_opens_nothing_meanwhile() {
    let Some(lab) = Lab::take() else { return };
    let stage = Stage::new("restart");
    stage.while_trying(&lab, || {
        docker_text(&["restart", "-t", "10", &stage.gateway()]);
        stage.inside.expect_echo(&stage.api, 7, "after the restart");
    });
    for (name, before) in [
        ("api.selu-lab.net", &stage.api),
        ("www.selu-lab.net", &stage.www),
    ] {
        let after = stage.scene.virtual_address("open", name);
        assert_eq!(&after, before, "{name} keeps its address (S9)");
    }
    assert!(stage.inside.echoes(&stage.www, 7));
    stage.scene.project.selu(&["status"]).expect(0);
    stage
        .scene
        .project
        .selu(&["plan", "--detailed-exitcode"])
        .expect(0);
}

#[test]
fn a_killed_worker_comes_back_and_nothing_opens_meanwhile() {
    let Some(lab) = Lab::take() else { return };
    let stage = Stage::new("worker");
    let before = stage.worker().expect("a worker");
    stage.while_trying(&lab, || {
        for _ in 0..3 {
            if let Some(worker) = stage.worker() {
                let pid = Pid::from_raw(worker.try_into().unwrap()).unwrap();
                // It may be gone already.
                let _ = kill_process(pid, Signal::KILL);
            }
            stage
                .inside
                .expect_echo(&stage.api, 7, "after the worker's death");
        }
    });
    assert_ne!(stage.worker(), Some(before));
    assert_eq!(
        stage.scene.virtual_address("open", "api.selu-lab.net"),
        stage.api
    );
    let seen = daemon::inspect(&stage.gateway());
    assert_eq!(seen["RestartCount"], 0, "the parent lived on");
    stage.scene.project.selu(&["status"]).expect(0);
}

#[test]
fn a_worker_that_hangs_is_noticed_and_replaced() {
    let Some(lab) = Lab::take() else { return };
    let stage = Stage::new("hung");
    let worker = stage.worker().expect("a worker");
    let pid = Pid::from_raw(worker.try_into().unwrap()).unwrap();
    stage.while_trying(&lab, || {
        kill_process(pid, Signal::STOP).unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        // The parent has no right to end it, so it ends itself, and the engine starts both anew.
        while stage.worker().is_none_or(|now| now == worker) {
            assert!(Instant::now() < deadline, "nobody notices");
            std::thread::sleep(Duration::from_millis(200));
        }
        stage
            .inside
            .expect_echo(&stage.api, 7, "after the worker hung");
    });
    let seen = daemon::inspect(&stage.gateway());
    assert_eq!(seen["RestartCount"], 1);
    stage.scene.project.selu(&["status"]).expect(0);
}

#[test]
fn without_the_gateway_nothing_leaves_calls_say_so_and_apply_heals() {
    let Some(lab) = Lab::take() else { return };
    let stage = Stage::new("outage");
    let network = stage.scene.resident("open");
    stage.while_trying(&lab, || {
        docker_text(&["stop", "-t", "10", &stage.gateway()]);
        assert!(!stage.inside.echoes(&stage.api, 7), "what was allowed");
        let answer = stage.scene.inside_by_engine(
            "open",
            "talk",
            &json!({"to": "api.selu-lab.net", "port": 7}),
        );
        assert_eq!(answer["stage"], "resolve", "no name either: {answer}");
    });
    let call = call_with(
        &stage.gateway(),
        &network,
        "resolve",
        &json!({"name": "x"}),
        &json!({}),
    );
    let error = call.unwrap_err();
    assert!(
        error.contains(&stage.gateway()) || error.contains("gateway"),
        "{error}"
    );
    stage.scene.project.selu(&["status"]).expect(2);
    stage.scene.project.selu(&["apply", "-y"]).expect(0);
    stage.inside.expect_echo(&stage.api, 7, "after apply");
    stage.scene.project.selu(&["status"]).expect(0);
}

#[test]
fn a_change_of_the_rules_cuts_what_it_revokes_before_it_is_acknowledged_and_nothing_else() {
    let Some(lab) = Lab::take() else { return };
    let stage = Stage::new("change");
    let mut kept = stage.inside.connect(&stage.api, 7).unwrap();
    let mut revoked = stage.inside.connect(&stage.www, 7).unwrap();
    assert!(echoes(&mut kept, "one") && echoes(&mut revoked, "one"));
    stage.while_trying(&lab, || {
        stage.deliver(&["api.selu-lab.net:7"]);
        assert!(is_cut(&mut revoked), "the revoked connection lives");
        assert!(!stage.inside.echoes(&stage.www, 7), "it can be made anew");
        assert!(
            echoes(&mut kept, "two"),
            "the one that stays allowed was cut"
        );
        // Back and forth: the one stays through all of it.
        for turn in 0..5 {
            stage.deliver(&["api.selu-lab.net:7", "www.selu-lab.net:7"]);
            assert!(stage.inside.echoes(&stage.www, 7), "turn {turn}");
            stage.deliver(&["api.selu-lab.net:7"]);
            assert!(!stage.inside.echoes(&stage.www, 7), "turn {turn}");
            assert!(echoes(&mut kept, "again"), "turn {turn}");
        }
        stage.deliver(&[]);
        assert!(is_cut(&mut kept), "no rule is left");
        stage.deliver(&["api.selu-lab.net:7"]);
        assert!(stage.inside.echoes(&stage.api, 7), "rules after none");
        stage.deliver(&[]);
    });
    // `status` sees that the gateway goes by something else than the plan, and its hint is right.
    let status = stage.scene.project.selu(&["status"]).expect(2);
    assert!(
        status.stdout.contains("is not what is planned"),
        "{}",
        status.stdout
    );
    docker_text(&["rm", "-f", &stage.gateway()]);
    stage.scene.project.selu(&["apply", "-y"]).expect(0);
    stage.scene.project.selu(&["status"]).expect(0);
    stage.inside.expect_echo(&stage.www, 7, "after apply");
}

#[test]
fn a_change_of_another_instance_leaves_connections_alone() {
    let Some(_lab) = Lab::take() else { return };
    let stage = Stage::new("beside");
    let mut kept = stage.inside.connect(&stage.api, 7).unwrap();
    assert!(echoes(&mut kept, "one"));
    let project = &stage.scene.project;
    project.probe(
        "web",
        "other",
        &["serve"],
        "network: {mode: allowlist, hosts: [\"api.selu-lab.net:7\"]}\n",
    );
    project.up();
    assert!(echoes(&mut kept, "two"), "cut by a new instance");
    let other = Inside::of(&stage.scene.resident("other"));
    let address = stage.scene.virtual_address("other", "api.selu-lab.net");
    let mut going = other.connect(&address, 7).unwrap();
    assert!(echoes(&mut going, "one"));
    std::fs::remove_dir_all(project.path().join("agents/web/capabilities/other")).unwrap();
    let settings = project.read("selu.toml");
    let rest = settings.split("\n[build.\"web/other\"]").next().unwrap();
    project.write("selu.toml", rest);
    project.selu(&["apply", "-y"]).expect(0);
    // Its network is gone as well, so that nothing can tell this side; what counts is that nothing is carried.
    assert!(!echoes(&mut going, "two"), "its instance is gone");
    assert!(echoes(&mut kept, "three"), "cut by another's removal");
}

/// Restarts the engine, and with it everything that others run on it: by hand, best on one of its own
/// (`scripts/second-engine`).
#[test]
#[ignore = "restarts the engine of this machine"]
fn a_restart_of_the_engine_restores_everything() {
    let Some(lab) = Lab::take() else { return };
    let mut stage = Stage::new("engine");
    let started = Instant::now();
    daemon::restart();
    let inside = Inside::of(&stage.scene.resident("open"));
    inside.expect_echo(&stage.api, 7, "after the engine's restart");
    eprintln!(
        "the engine was back and everything worked after {:?}",
        started.elapsed()
    );
    let mark = lab.mark();
    for (address, port) in [(OTHER, 9999), (stage.api.as_str(), 9999)] {
        let mut reached = inside.connect(address, port);
        let said = reached.as_mut().is_ok_and(says_something);
        assert!(!said, "{address}:{port} was reached");
    }
    stage.scene.free.restart();
    lab.fence();
    assert!(
        !lab.since(mark)
            .iter()
            .any(|line| line["at"].as_str().is_some_and(|at| at.starts_with(OTHER)))
    );
    stage.scene.project.selu(&["status"]).expect(0);
}
