//! Scenarios of engines, plans and locks from bug reports of other projects: each test named by the scenario's id. Those of
//! F06, F07, F13, F14, F16 and G05 that need an engine which misbehaves are beside the adapter and the fake.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::daemon;
use crate::project::TestProject;
use crate::world::{docker, docker_text};

const STATIC: &str = "tools:\n  - name: read\n    description: Reads a file.\n    recommended_policy: allow\n    input_schema: {type: object}\n";

fn one(topic: &str, more: &str) -> TestProject {
    let project = TestProject::new(&format!("plan4-{topic}"));
    project.probe("a", "live", &["serve"], &format!("{STATIC}{more}"));
    project.selu(&["build"]).expect(0);
    project
}

#[test]
fn f08_a_stale_container_of_ours_is_taken_over_and_somebody_elses_is_named_and_never_removed() {
    let project = one("f08", "");
    project.selu(&["apply", "-y"]).expect(0);
    let name = project.resident("a", "live", 1);
    docker_text(&["kill", &name]);
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(daemon::inspect(&name)["State"]["Running"], true);
    project.selu(&["destroy", "-y"]).expect(0);

    let image = project.image("a", "live");
    docker_text(&["create", "--name", &name, &image]);
    for arguments in [&["plan"][..], &["apply", "-y"]] {
        let run = project.selu(arguments).expect(1);
        let owner = format!("`{name}` is taken: a container of image {image}");
        assert!(run.stderr.contains(&owner), "{}", run.stderr);
    }
    project.selu(&["destroy", "-y", "--volumes"]).expect(0);
    let there = docker(&["inspect", &name]).status.success();
    assert!(there, "never removed by name alone");
    docker_text(&["rm", &name]);
}

#[test]
fn f09_a_stranger_in_a_network_is_named_and_the_rest_goes_all_the_same() {
    let project = one("f09", "");
    project.selu(&["apply", "-y"]).expect(0);
    let network = project.resident("a", "live", 1);
    let stranger = format!("plan4-f09-{}", std::process::id());
    let image = project.image("a", "live");
    docker_text(&[
        "run",
        "-d",
        "--name",
        &stranger,
        "--network",
        &network,
        &image,
    ]);
    let run = project.selu(&["destroy", "-y"]).expect(3);
    assert!(run.stderr.contains(&stranger), "{}", run.stderr);
    let left: Vec<String> = project.everything();
    let ours = |name: &String| name.contains(&format!("selu_{}_", project.name));
    let left: Vec<&String> = left.iter().filter(|name| ours(name)).collect();
    assert_eq!(
        left.len(),
        1,
        "all but the network in use is gone: {left:?}"
    );
    docker_text(&["rm", "-f", &stranger]);
    project.selu(&["destroy", "-y"]).expect(0);
}

#[test]
fn f12_two_capabilities_on_one_port_do_not_meet_because_nothing_is_published() {
    let project = TestProject::new("plan4-f12");
    project.probe("a", "one", &["serve"], STATIC);
    project.probe("a", "two", &["serve"], STATIC);
    project.up();
    for capability in ["one", "two"] {
        let found = daemon::inspect(&project.resident("a", capability, 1));
        let bindings = &found["HostConfig"]["PortBindings"];
        assert!(
            bindings.as_object().is_none_or(serde_json::Map::is_empty),
            "{bindings}"
        );
    }
    project.selu(&["status"]).expect(0);
}

#[test]
fn f17_what_was_created_and_never_started_is_found_started_and_the_only_one() {
    let project = one("f17", "");
    project.selu(&["apply", "-y"]).expect(0);
    let name = project.resident("a", "live", 1);
    // As a kill between the two calls leaves it: created, and not to be kept running yet (W2).
    let found = daemon::inspect(&name);
    let mut body = found["Config"].clone();
    body["HostConfig"] = found["HostConfig"].clone();
    body["HostConfig"]["RestartPolicy"] = serde_json::json!({"Name": "no"});
    let address = &found["NetworkSettings"]["Networks"][&name]["IPAMConfig"];
    body["NetworkingConfig"] =
        serde_json::json!({"EndpointsConfig": {&name: {"IPAMConfig": address}}});
    docker_text(&["rm", "-f", &name]);
    daemon::wait(async {
        let named = bollard::query_parameters::CreateContainerOptions {
            name: Some(name.clone()),
            ..Default::default()
        };
        let body: bollard::models::ContainerCreateBody = serde_json::from_value(body).unwrap();
        let docker = daemon::connect();
        docker.create_container(Some(named), body).await.unwrap();
    });
    let planned = project.selu(&["plan"]).expect(0).stdout;
    assert!(
        planned.contains("state: never started → running"),
        "{planned}"
    );
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(daemon::inspect(&name)["State"]["Running"], true);
    let prefix = format!("selu_{}_a_live_", project.name);
    let found = docker_text(&["ps", "-aq", "--filter", &format!("name={prefix}")]);
    assert_eq!(found.lines().count(), 1);
    project.selu(&["plan", "--detailed-exitcode"]).expect(0);
}

/// Signals an apply as soon as it says so, and returns its exit code with what it said.
fn interrupted_at(project: &TestProject, word: &str, times: u32) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_selu"))
        .current_dir(project.path())
        .args(["apply", "-y"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let mut said = String::new();
    let mut sent = false;
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if !sent && line.contains(word) {
            for _ in 0..times {
                // It may have ended by now.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
            }
            sent = true;
        }
        said.push_str(&line);
        said.push('\n');
    }
    (child.wait().unwrap().code().unwrap(), said)
}

#[test]
fn g01_g02_an_interrupt_at_any_step_leaves_what_the_next_plan_shows_and_the_next_apply_completes() {
    let project = one("g01", "class: environment\nfilesystem: workspace\n");
    for (word, times) in [
        ("preparing the gateway", 1),
        ("creating network", 1),
        ("attaching the gateway", 2),
        ("delivering the gateway's policy", 1),
        ("preparing the workspace volume", 1),
        ("creating container", 1),
        ("waiting for the health answer", 2),
    ] {
        let clean = || {
            project.selu(&["destroy", "-y", "--volumes"]).expect(0);
            assert!(!project.is_deployed(), "{word}: no orphan");
            std::fs::remove_file(project.path().join("selu.lock")).unwrap();
        };
        // On a busy machine the signals may come when the last step is done already, or two of them as one; and another
        // test's project may have taken the addresses since this one chose them.
        let in_time = (0..10).find_map(|_| match interrupted_at(&project, word, times) {
            (code, said) if code == 0 || said.contains("Pool overlaps with other one") => {
                clean();
                None
            }
            other => Some(other),
        });
        let (code, said) = in_time.unwrap_or_else(|| panic!("{word}: never in time"));
        assert!(said.contains(word), "never said {word:?}: {said}");
        assert_eq!(code, 130, "{word}: {said}");
        let lock = std::fs::read_to_string(project.path().join("selu.lock")).unwrap_or_default();
        assert!(
            !lock.contains("a/live"),
            "{word}: nothing is locked that is not done"
        );
        project.selu(&["plan", "--detailed-exitcode"]).expect(2);
        project.selu(&["apply", "-y"]).expect(0);
        project.selu(&["plan", "--detailed-exitcode"]).expect(0);
        clean();
    }
}

#[test]
fn g03_ownership_is_neither_the_folders_name_nor_a_prefix_of_names() {
    // Each has the name of the other as its beginning.
    let (long, short) = (one("g03-home-2", ""), one("g03-home", ""));
    long.selu(&["apply", "-y"]).expect(0);
    short.selu(&["apply", "-y"]).expect(0);
    let foreign = format!("selu-cap-plan4-{}", std::process::id());
    docker_text(&["run", "-d", "--name", &foreign, &short.image("a", "live")]);
    short.selu(&["destroy", "-y", "--volumes"]).expect(0);
    assert!(!short.is_deployed());
    assert_eq!(daemon::inspect(&foreign)["State"]["Running"], true);
    docker_text(&["rm", "-f", &foreign]);
    long.selu(&["status"]).expect(0);
    long.selu(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn g12_edits_by_hand_are_listed_with_old_and_new_and_mended() {
    let project = one("g12", "");
    project.selu(&["apply", "-y"]).expect(0);
    let mut generation = 1;
    let edits: [(&[&str], &str, bool); 4] = [
        (
            &["update", "--memory", "1g", "--memory-swap", "1g"],
            "spec.memory_bytes: 1024 MiB → 128 MiB",
            false,
        ),
        (&["stop", "-t", "0"], "state: stopped", false),
        (&["pause"], "state: paused → running", false),
        (&["network", "connect", "bridge"], "networks.bridge: ", true),
    ];
    for (words, said, replaces) in edits {
        let name = project.resident("a", "live", generation);
        docker_text(&[words, &[name.as_str()]].concat());
        let planned = project.selu(&["plan", "--detailed-exitcode"]).expect(2);
        assert!(planned.stdout.contains(said), "{said}: {}", planned.stdout);
        assert!(planned.stdout.contains("(drift)"), "{}", planned.stdout);
        project.selu(&["apply", "-y"]).expect(0);
        generation += u64::from(replaces);
        project.selu(&["plan", "--detailed-exitcode"]).expect(0);
    }
    // A renamed one is not the one that we made: another is made, and who stands in its way is named.
    let (name, other) = (
        project.resident("a", "live", generation),
        format!("plan4-g12-{}", std::process::id()),
    );
    docker_text(&["rename", &name, &other]);
    let applied = project.selu(&["apply", "-y"]).expect(3);
    assert!(applied.stderr.contains(&other), "{}", applied.stderr);
    docker_text(&["rm", "-f", &other]);
    project.selu(&["apply", "-y"]).expect(0);
    project.selu(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn h07_the_lock_is_the_same_from_another_place_time_zone_and_language() {
    let project = TestProject::new("plan4-h07");
    project.probe("a", "live", &["serve"], "tool_source: dynamic\n");
    project.selu(&["build"]).expect(0);
    project.selu(&["lock"]).expect(0);
    let first = project.read("selu.lock");
    std::fs::remove_file(project.path().join("selu.lock")).unwrap();
    let elsewhere = [
        ("TZ", "Pacific/Kiritimati"),
        ("LC_ALL", "de_DE.UTF-8"),
        ("USER", "somebody"),
        ("HOSTNAME", "elsewhere"),
    ];
    let whole = project.path().display().to_string();
    project.selu_with(&elsewhere, &["lock", &whole]).expect(0);
    assert_eq!(project.read("selu.lock"), first);
    for trace in [&whole, "somebody", "elsewhere", "/tmp"] {
        assert!(!first.contains(trace), "{trace}");
    }
}

#[test]
fn i17_a_list_of_tools_that_is_not_the_locks_is_told_tool_by_tool_and_refused_under_locked() {
    let project = TestProject::new("checks5-i17");
    project.probe("a", "live", &["serve"], "tool_source: dynamic\n");
    project.selu(&["build"]).expect(0);
    project.selu(&["lock"]).expect(0);
    let lock = project.read("selu.lock");
    let table = |name: &str| format!("[instance.\"a/live\".tool.\"{name}\"]\n");
    let part = |name: &str| {
        let from = lock.find(&table(name)).unwrap();
        let rest = &lock[from + 1..];
        let end = rest.find("\n[").map_or(lock.len(), |at| from + 2 + at);
        lock[from..end].to_owned()
    };

    // What was approved is what the lock says: to it, the container's list has changed in every way.
    let (read, tcp) = (part("read"), part("tcp"));
    let approved = read
        .replace("description = \"", "description = \"Once more: ")
        .replace(
            "\"type\": \"string\"",
            "\"maxLength\": 9,\n      \"type\": \"string\"",
        )
        .replace("recommended = \"allow\"", "recommended = \"ask\"")
        .replace("policy = \"allow\"", "policy = \"ask\"");
    let renamed = tcp.replace(&table("tcp"), &table("tcp_once"));
    assert!(approved != read && renamed != tcp);
    let old = lock.replace(&read, &approved).replace(&tcp, &renamed);
    project.write("selu.lock", &old);

    let checked = project.selu(&["lock", "--check", "--live"]).expect(2);
    let applied = project
        .selu(&["apply", "-y", "--locked", "--allow-local"])
        .expect(2);
    for (run, lines) in [
        (
            checked,
            &[
                "tool.read.description: Once more: Reads a file. → Reads a file.",
                "tool.read.input_schema/properties/path/maxLength: 9 → nothing",
                "tool.tcp: nothing → discovered",
                "tool.tcp_once: discovered → nothing",
            ][..],
        ),
        (
            applied,
            &[
                "description: Once more: Reads a file. → Reads a file.",
                "input_schema/properties/path/maxLength: 9 → nothing",
                "recommended_policy (shown, not applied): ask → allow",
                "a/live tcp: new tool, policy `ask`",
                "a/live tcp_once: the tool is gone",
            ],
        ),
    ] {
        let said = format!("{}{}", run.stdout, run.stderr);
        for line in lines {
            assert!(said.contains(line), "{line}: {said}");
        }
        assert!(
            !said.contains("policy: ask → allow"),
            "never loosened: {said}"
        );
    }
    assert_eq!(project.read("selu.lock"), old, "neither writes");
}
