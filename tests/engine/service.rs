//! `sync`, `logs` and what `destroy` does when the world moves.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

use selu_compiler::plan::spec::gateway_image;
use selu_runtime::engine::docker::connect;
use selu_runtime::hold::{Info, take};

use crate::daemon;
use crate::project::TestProject;
use crate::world::docker_text;

const DYNAMIC: &str = "tool_source: dynamic\n";

fn live(topic: &str) -> TestProject {
    let project = TestProject::new(&format!("plan4-{topic}"));
    project.probe("a", "live", &["serve"], DYNAMIC);
    project.up();
    project
}

#[test]
fn sync_asks_again_what_runs_and_mends_only_the_lock() {
    let project = live("sync");
    let lock = project.read("selu.lock");
    project.write(
        "selu.lock",
        &lock.replacen("description = \"", "description = \"Once it was ", 1),
    );
    let before = daemon::inspect(&project.resident("a", "live", 1))["Id"].clone();
    let run = project.selu(&["sync", "--metrics", "selu.prom"]).expect(0);
    assert!(run.stderr.contains("description:"), "{}", run.stderr);
    assert_eq!(project.read("selu.lock"), lock);
    assert_eq!(
        daemon::inspect(&project.resident("a", "live", 1))["Id"],
        before
    );
    let metrics = project.read("selu.prom");
    let sample = format!(
        "selu_sync_discovered{{project=\"{}\",instance=\"a/live\"}} 1",
        project.name
    );
    assert!(metrics.contains(&sample), "{metrics}");

    docker_text(&["stop", "-t", "0", &project.resident("a", "live", 1)]);
    let run = project.selu(&["sync"]).expect(1);
    assert!(
        run.stderr.contains("does not run as planned"),
        "{}",
        run.stderr
    );
    assert_eq!(
        project.read("selu.lock"),
        lock,
        "what is not asked keeps its entry (D4)"
    );
    let state = daemon::inspect(&project.resident("a", "live", 1))["State"]["Running"].clone();
    assert_eq!(state, false, "sync starts nothing");
}

#[test]
fn logs_are_escaped_and_known_values_are_removed() {
    let project = live("logs");
    let name = project.resident("a", "live", 1);
    let id = docker_text(&["inspect", "-f", "{{.LogPath}}", &name]);
    let line = |stream: &str, text: &str| serde_json::json!({"log": text, "stream": stream, "time": "2026-01-31T00:00:00Z"});
    let text = format!(
        "{}\n{}\n",
        line("stdout", "\u{1b}[2Jwith c4n4ry-in-a-log\n"),
        line("stderr", "the last line\n"),
    );
    std::fs::write(&id, text).expect("these tests run where the engine's files are");
    let secret = [("SELU_CRED__X__Y__Z", "c4n4ry-in-a-log")];
    let run = project.selu_with(&secret, &["logs", "a/live"]).expect(0);
    assert!(!run.stdout.contains('\u{1b}'), "{:?}", run.stdout);
    assert!(!run.stdout.contains("c4n4ry"), "{}", run.stdout);
    assert!(run.stdout.contains("[2Jwith [secret]"), "{}", run.stdout);
    let run = project.selu(&["logs", "live", "--tail", "1"]).expect(0);
    assert_eq!(run.stdout, "the last line\n");
    let run = project.selu(&["logs", "live", "--since", "1m"]).expect(0);
    assert_eq!(run.stdout, "", "it was written long ago");
    let run = project
        .selu(&["logs", "live", "--format", "json"])
        .expect(0);
    assert_eq!(run.json()["lines"].as_array().unwrap().len(), 2);
    let run = project.selu(&["logs", "lvie"]).expect(1);
    assert!(run.stderr.contains("a/live, gateway"), "{}", run.stderr);
    project.selu(&["logs", "gateway"]).expect(0);

    // A container that has ended ends the following.
    docker_text(&["stop", "-t", "0", &name]);
    project.selu(&["logs", "a/live", "--follow"]).expect(0);
}

#[test]
fn destroy_works_from_a_directory_with_errors() {
    let project = live("destroy");
    project.write("agents/a/capabilities/live/manifest.yaml", "id: [\n");
    project.write("selu.lock", "<<<<<<< ours\n");
    assert!(project.is_deployed());
    let run = project.selu(&["destroy", "-y"]).expect(0);
    assert!(
        run.stderr.contains("only its name is used"),
        "{}",
        run.stderr
    );
    assert!(!project.is_deployed());
}

#[test]
fn destroy_leaves_everything_when_something_appeared_since_the_question() {
    let project = live("appeared");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let info = Info {
        host: "desk".to_owned(),
        user: None,
        pid: 1,
        operation: "apply".to_owned(),
        since: "now".to_owned(),
    };
    let image = gateway_image(&project.name);
    let (engine, hold) = runtime.block_on(async {
        let engine = connect(None).await.unwrap();
        let hold = take(&engine, &project.name, &image, &info, Duration::ZERO).await;
        (engine, hold.unwrap())
    });
    let mut child = Command::new(env!("CARGO_BIN_EXE_selu"))
        .current_dir(project.path())
        .args(["destroy", "-y", "--lock-timeout", "300"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains("To be removed:") {
        assert!(said.read_line(&mut text).unwrap() > 0, "{text}");
    }
    // A network: a container with our labels alone is not ours (S12).
    let name = project.resident("a", "live", 7);
    let owner = format!("dev.selu.project={}", project.name);
    let instance = "dev.selu.instance=a/live";
    docker_text(&[
        "network",
        "create",
        "--internal",
        "--label",
        &owner,
        "--label",
        instance,
        &name,
    ]);
    runtime.block_on(hold.release(&engine)).unwrap();
    said.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4), "{text}");
    assert!(text.contains(&format!("network {name}")), "{text}");
    project.selu(&["status"]).expect(2);
    let resident = project.resident("a", "live", 1);
    assert_eq!(daemon::inspect(&resident)["State"]["Running"], true);
}
