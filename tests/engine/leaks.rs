//! S13: an engine that ignores an option is found before anything is started, and refused.

use std::process::Command;

use serde_json::Value;

use crate::cutting::{Door, Ignoring};
use crate::daemon;
use crate::project::{Run, TestProject, run};
use crate::world::docker_text;

fn project(topic: &str) -> TestProject {
    let project = TestProject::new(&format!("images5-leaks-{topic}"));
    project.probe("a", "one", &["serve"], "");
    project.selu(&["build"]).expect(0);
    project
}

/// `selu` with a memory of its own of which engines were probed.
fn selu(project: &TestProject, memory: &tempfile::TempDir, arguments: &[&str]) -> Run {
    run(Command::new(env!("CARGO_BIN_EXE_selu"))
        .current_dir(project.path())
        .env("XDG_STATE_HOME", memory.path())
        .args(arguments))
}

fn probes(events: &[String]) -> usize {
    let starts = events
        .iter()
        .filter(|line| line.starts_with("container start "));
    starts.filter(|line| line.contains("_leaks-cut")).count()
}

#[test]
fn the_first_apply_on_an_engine_probes_it_and_leaves_nothing_and_no_later_one_does() {
    let (first, second) = (project("once"), project("again"));
    let memory = tempfile::tempdir().unwrap();
    let events = daemon::events_during(&first.name, || {
        let applied = selu(&first, &memory, &["apply", "-y"]).expect(0);
        assert!(!applied.stderr.contains("can't show"), "{}", applied.stderr);
    });
    assert_eq!(probes(&events), 1, "{events:#?}");
    let left = first.everything().join("\n");
    assert!(!left.contains("_leaks-"), "{left}");
    first.selu(&["plan", "--detailed-exitcode"]).expect(0);

    // Another project of the same user, on the same engine, in the same boot.
    let events = daemon::events_during(&second.name, || {
        selu(&second, &memory, &["apply", "-y"]).expect(0);
    });
    assert_eq!(probes(&events), 0, "{events:#?}");
}

#[test]
fn an_engine_that_ignores_an_option_is_refused_by_what_is_open_and_nothing_is_started() {
    let project = project("ignores");
    let memory = tempfile::tempdir().unwrap();
    let network: Ignoring = ("POST networks/create", |body| {
        body["Internal"] = false.into();
        body["Options"] = serde_json::json!({});
    });
    const CREATE: &str = "POST containers/create";
    let cases: [(Ignoring, &[&str]); 5] = [
        (
            network,
            &["the engine's host at", "by TCP answers", "by UDP answers"],
        ),
        (
            (CREATE, |body| {
                body["HostConfig"]["Memory"] = 0.into();
                body["HostConfig"]["MemorySwap"] = 0.into();
            }),
            &["the memory is limited to"],
        ),
        (
            (CREATE, |body| {
                body["HostConfig"]["PidsLimit"] = Value::Null;
                body["HostConfig"]["NanoCpus"] = 0.into();
                body["HostConfig"]["Ulimits"] = Value::Null;
                body["User"] = "".into();
            }),
            &[
                "the number of processes is limited to",
                "the processor time (billionths) is limited to",
                "the number of open files is limited to",
                "programs run as 65532:65532 instead of 1000:1000",
            ],
        ),
        (
            (CREATE, |body| {
                body["HostConfig"]["SecurityOpt"] = serde_json::json!(["seccomp=unconfined"])
            }),
            &[
                "system calls are not filtered",
                "programs can gain privileges",
            ],
        ),
        (
            (CREATE, |body| {
                body["HostConfig"]["CapDrop"] = Value::Null;
                body["HostConfig"]["ReadonlyRootfs"] = false.into();
            }),
            &[
                "the kernel's capabilities are not dropped",
                "the root file system is writable",
            ],
        ),
    ];
    for (option, said) in cases {
        let door = Door::ignoring(option);
        let refused = selu(
            &project,
            &memory,
            &["apply", "-y", "--host", &door.address()],
        );
        let refused = refused.expect(1);
        for part in said.iter().chain(&["does not keep containers in"]) {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }
        let label = format!("label=dev.selu.project={}", project.name);
        for list in [["container", "ls", "-aq"], ["network", "ls", "-q"]] {
            let found = docker_text(&[&list[..], &["--filter", &label]].concat());
            assert_eq!(found, "", "{list:?}");
        }
    }
    // The same engine as it is.
    selu(&project, &memory, &["apply", "-y"]).expect(0);
}
