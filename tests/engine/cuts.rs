//! Each engine call of an operation is cut off in each way, and `selu` is killed at it: the next run converges
//! (product.md 13).
//!
//! A test run spoils every *kind* of call that changes something once an operation, and every kind that only looks in
//! one of the operations, each in the way whose turn it is. With `SELU_CUTS=1/1` every single call is spoilt in every
//! way with six instances, and a table of what came of it is printed: that takes hours. `SELU_CUTS=2/9` takes the second
//! of nine parts: each call in one way, other calls in other ways.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::cutting::{Call, Door, How};
use crate::project::{Run, TestProject};
use crate::world::docker_text;

const WAYS: [How; 9] = [
    How::After,
    How::Before,
    How::KilledAfter,
    How::Within,
    How::KilledBefore,
    How::Interrupted,
    How::Status(500),
    How::Status(409),
    How::Silence,
];

const LIVE: &str = "tool_source: dynamic\n";
const SPACE: &str = "class: environment\nfilesystem: workspace\n";
const LARGER: &str = "class: environment\nfilesystem: workspace\nresources: {max_memory_mb: 96}\n";
const TEMP: &str = "filesystem: temp\n";

/// More instances, for when every call is spoilt.
const MORE: [(&str, &str, &str); 4] = [
    ("a", "also", SPACE),
    (
        "b",
        "shared",
        "sharing: {mode: shared, max_concurrent: 2}\n",
    ),
    (
        "c",
        "out",
        "network: {mode: allowlist, hosts: [\"example.com:443\"]}\n",
    ),
    ("c", "live", LIVE),
];

/// The part of all calls and ways that is asked for: which, and of how many.
fn part() -> Option<(usize, usize)> {
    let value = std::env::var("SELU_CUTS").ok()?;
    let read = |(part, of): (&str, &str)| Some((part.parse().ok()?, of.parse().ok()?));
    let part = value.split_once('/').and_then(read);
    Some(part.unwrap_or_else(|| panic!("SELU_CUTS is not such as 2/9: {value}")))
}

/// A dynamic capability and one with a volume, their images built.
fn scene(topic: &str) -> TestProject {
    let project = TestProject::new(topic);
    project.probe("a", "live", &["serve"], LIVE);
    project.probe("b", "space", &["serve"], SPACE);
    for (agent, capability, more) in MORE.iter().filter(|_| part().is_some()) {
        project.probe(agent, capability, &["serve"], more);
    }
    project.selu(&["build"]).expect(0);
    project
}

fn manifest(project: &TestProject, agent: &str, capability: &str, more: &str) {
    let image = project.image(agent, capability);
    project.write(
        &format!("agents/{agent}/capabilities/{capability}/manifest.yaml"),
        &format!("id: {capability}\nimage: {image}\n{more}"),
    );
}

/// Runs `selu` through the door.
fn through(project: &TestProject, door: &Door, arguments: &[&str]) -> Run {
    let child = Command::new(env!("CARGO_BIN_EXE_selu"))
        .current_dir(project.path())
        .args(arguments)
        .args(["--host", &door.address()])
        .env_remove("SELU_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    door.client_is(child.id());
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What the project has on the engine by its label, whatever its generations.
fn objects(project: &TestProject) -> Vec<String> {
    let label = format!("label=dev.selu.project={}", project.name);
    let mut found = Vec::new();
    for (kind, list) in [
        (
            "container",
            ["ps", "-a", "--format", "{{.Names}}"].as_slice(),
        ),
        ("network", &["network", "ls", "--format", "{{.Name}}"]),
        ("volume", &["volume", "ls", "--format", "{{.Name}}"]),
    ] {
        let names = docker_text(&[list, &["--filter", &label]].concat());
        found.extend(names.lines().map(|name| {
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
            format!("{kind} {name}")
        }));
    }
    found.sort();
    found
}

/// One operation: what is there before it, and the command.
struct Operation<'a> {
    project: &'a TestProject,
    /// Brings engine and directory to where the operation begins.
    prepare: &'a dyn Fn(&TestProject),
    command: &'a [&'a str],
    /// What is run afterwards, directly, until everything is as it should be.
    again: &'a [&'a str],
}

impl Operation<'_> {
    /// Spoils the calls that are to be spoilt, and after each has the next run converge. The first run is not spoilt:
    /// it tells the calls and what comes out.
    fn check(&self) {
        let Self {
            project,
            prepare,
            command,
            again,
        } = self;
        prepare(project);
        let door = Door::open(None);
        through(project, &door, command).expect(0);
        let calls = door.calls();
        let objects_after = objects(project);
        let lock_after = lock(project);

        let mut came: BTreeMap<String, usize> = BTreeMap::new();
        for (call, how) in choose(&calls) {
            let context = format!("{}: {call:?}, {how:?}", command.join(" "));
            prepare(project);
            let lock_before = lock(project);
            let door = Door::open(Some((call.clone(), how)));
            let spoilt = through(project, &door, command);
            let calls_came = door.calls();
            let of_its_kind = calls_came.iter().filter(|kind| **kind == call.kind);
            assert!(
                of_its_kind.count() > call.before,
                "{context}: the call did not come; {}",
                spoilt.stderr
            );
            assert_ne!(spoilt.code, 101, "{context}: panicked: {}", spoilt.stderr);
            if how == How::Interrupted {
                // It may have been the last thing to do.
                let ended = matches!(spoilt.code, 0 | 130);
                assert!(
                    ended,
                    "{context}: exit code {}: {}",
                    spoilt.code, spoilt.stderr
                );
            }
            let lock_between = lock(project);
            let known: BTreeSet<&str> = lock_before.lines().chain(lock_after.lines()).collect();
            let strange: Vec<&str> = lock_between
                .lines()
                .filter(|line| !known.contains(line))
                .collect();
            assert!(
                strange.is_empty(),
                "{context}: the lock is neither the old nor the new one: {strange:?}"
            );
            drop(door);

            let next = project.selu(again);
            assert_eq!(
                next.code, 0,
                "{context}: the next run does not converge\n--- the spoilt one, exit code {}\n{}\n--- the next\n{}{}",
                spoilt.code, spoilt.stderr, next.stdout, next.stderr
            );
            assert_eq!(objects(project), objects_after, "{context}");
            assert_eq!(lock(project), lock_after, "{context}");
            if again[0] == "apply" {
                let run = project.selu(&["plan", "--detailed-exitcode"]);
                assert_eq!(run.code, 0, "{context}: {}{}", run.stdout, run.stderr);
            }
            if part().is_some() {
                println!("{context}: exit code {}, then converged", spoilt.code);
            }
            *came
                .entry(format!("{how:?}, exit code {}", spoilt.code))
                .or_default() += 1;
        }
        println!("{}: {} calls; {came:#?}", command.join(" "), calls.len());
    }
}

fn lock(project: &TestProject) -> String {
    std::fs::read_to_string(project.path().join("selu.lock")).unwrap_or_default()
}

/// Which calls are spoilt how. Each kind of call gets the next way, so that all ways come.
fn choose(calls: &[String]) -> Vec<(Call, How)> {
    let every = calls.iter().enumerate().map(|(number, kind)| Call {
        kind: kind.clone(),
        before: calls[..number].iter().filter(|one| *one == kind).count(),
    });
    if let Some((part, of)) = part() {
        let pairs = every.enumerate().flat_map(|(number, call)| {
            let ways = WAYS.into_iter().enumerate();
            ways.filter(move |(way, _)| (number + way) % of == part % of)
                .map(move |(_, how)| (call.clone(), how))
        });
        return pairs.collect();
    }
    static LOOKED_AT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut looked_at = LOOKED_AT.lock().unwrap();
    let mut seen = BTreeSet::new();
    let mut ways = WAYS.iter().filter(|how| **how != How::Silence).cycle();
    every
        .filter(|call| match call.kind.starts_with("GET") {
            true => looked_at.insert(call.kind.clone()),
            false => seen.insert(call.kind.clone()),
        })
        .filter_map(|call| Some((call, *ways.next()?)))
        .collect()
}

const APPLY: [&str; 4] = ["apply", "-y", "--lock-timeout", "60"];
const DESTROY: [&str; 5] = ["destroy", "-y", "--volumes", "--lock-timeout", "60"];

#[test]
fn a_first_apply_that_is_cut_off_anywhere_is_completed_by_the_next() {
    let project = scene("cut-first");
    let prepare = |project: &TestProject| {
        project.selu(&DESTROY).expect(0);
        let _ = std::fs::remove_file(project.path().join("selu.lock"));
    };
    Operation {
        project: &project,
        prepare: &prepare,
        command: &APPLY,
        again: &APPLY,
    }
    .check();
}

#[test]
fn a_replacement_that_is_cut_off_anywhere_is_completed_by_the_next() {
    let project = scene("cut-replace");
    // From one state to the other and back: both are a replacement of the one with the volume.
    let prepare = |project: &TestProject| {
        manifest(project, "b", "space", SPACE);
        project.selu(&APPLY).expect(0);
        manifest(project, "b", "space", TEMP);
    };
    Operation {
        project: &project,
        prepare: &prepare,
        command: &APPLY,
        again: &APPLY,
    }
    .check();
}

#[test]
fn an_update_that_is_cut_off_anywhere_is_completed_by_the_next() {
    let project = scene("cut-update");
    let prepare = |project: &TestProject| {
        manifest(project, "b", "space", SPACE);
        project.selu(&APPLY).expect(0);
        manifest(project, "b", "space", LARGER);
    };
    Operation {
        project: &project,
        prepare: &prepare,
        command: &APPLY,
        again: &APPLY,
    }
    .check();
}

#[test]
fn an_orphans_removal_that_is_cut_off_anywhere_is_completed_by_the_next() {
    let project = scene("cut-orphan");
    let agent = project.path().join("agents/a");
    let aside = project.path().join("aside");
    let prepare = |project: &TestProject| {
        if aside.exists() {
            std::fs::rename(&aside, &agent).unwrap();
        }
        project.selu(&APPLY).expect(0);
        std::fs::rename(&agent, &aside).unwrap();
    };
    Operation {
        project: &project,
        prepare: &prepare,
        command: &APPLY,
        again: &APPLY,
    }
    .check();
}

#[test]
fn a_removal_of_everything_that_is_cut_off_anywhere_is_completed_by_the_next() {
    let project = scene("cut-destroy");
    let prepare = |project: &TestProject| {
        project.selu(&APPLY).expect(0);
    };
    Operation {
        project: &project,
        prepare: &prepare,
        command: &DESTROY,
        again: &DESTROY,
    }
    .check();
}
