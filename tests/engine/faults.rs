//! What goes wrong below an apply: the engine goes away and comes back, the clock is another.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cutting::Door;
use crate::daemon;
use crate::project::{TestProject, run};
use crate::world::docker_text;

const STATIC: &str = "tools:\n  - name: read\n    description: Reads a file.\n    recommended_policy: allow\n    input_schema: {type: object}\n";
const APPLY: [&str; 4] = ["apply", "-y", "--lock-timeout", "60"];

fn scene(topic: &str) -> TestProject {
    let project = TestProject::new(&format!("faults9-{topic}"));
    project.probe("a", "live", &["serve"], "tool_source: dynamic\n");
    let space = "class: environment\nfilesystem: workspace\n";
    project.probe("b", "space", &["serve"], &format!("{space}{STATIC}"));
    project.selu(&["build"]).expect(0);
    project
}

/// Objects of the project by its label, without generations.
fn objects(project: &TestProject) -> Vec<String> {
    let label = format!("label=dev.selu.project={}", project.name);
    let mut found = Vec::new();
    for list in [
        &["ps", "-a", "--format", "{{.Names}}"][..],
        &["network", "ls", "--format", "{{.Name}}"],
        &["volume", "ls", "--format", "{{.Name}}"],
    ] {
        let names = docker_text(&[list, &["--filter", &label]].concat());
        let names = names
            .lines()
            .map(|name| name.trim_end_matches(|c: char| c.is_ascii_digit()));
        found.extend(names.map(str::to_owned));
    }
    found.sort();
    found
}

/// Restarts the engine as soon as an apply says a word, and returns how that apply ended and what it said.
fn restarted_at(project: &TestProject, word: &str) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_selu"))
        .current_dir(project.path())
        .args(APPLY)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut restarting = None;
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if restarting.is_none() && line.contains(word) {
            restarting = Some(std::thread::spawn(daemon::restart));
        }
        said.push_str(&line);
        said.push('\n');
    }
    let code = child.wait().unwrap().code().unwrap();
    let Some(restarting) = restarting else {
        panic!("never said {word:?}: {said}");
    };
    restarting.join().unwrap();
    (code, said)
}

/// Restarts the engine, and with it everything that others run on it: by hand, best on one of its own
/// (`scripts/second-engine`).
#[test]
#[ignore = "restarts the engine of this machine"]
fn a_restart_of_the_engine_in_mid_apply_is_told_and_the_next_apply_completes() {
    let project = scene("restart");
    project.selu(&APPLY).expect(0);
    let (whole, lock) = (objects(&project), project.read("selu.lock"));
    // Nothing is to be done after a restart.
    daemon::restart();
    let events = daemon::events_during(&project.name, || {
        project.selu(&["plan", "--detailed-exitcode"]).expect(0);
        project.selu(&APPLY).expect(0);
    });
    assert_eq!(events, Vec::<String>::new());
    project.selu(&["status"]).expect(0);

    for word in [
        "preparing the gateway",
        "creating network",
        "delivering the gateway's policy",
        "creating container",
        "waiting for the health answer",
    ] {
        project.selu(&["destroy", "-y", "--volumes"]).expect(0);
        std::fs::remove_file(project.path().join("selu.lock")).unwrap();
        let (code, said) = restarted_at(&project, word);
        eprintln!("restarted at {word:?}: exit code {code}");
        assert!(
            matches!(code, 0 | 1 | 3),
            "{word}: exit code {code}: {said}"
        );
        assert_eq!(
            code == 0,
            !said.contains("failed:") && !said.contains("error:"),
            "{word}: {said}"
        );
        project.selu(&APPLY).expect(0);
        assert_eq!(objects(&project), whole, "{word}: {said}");
        assert_eq!(project.read("selu.lock"), lock, "{word}");
        project.selu(&["plan", "--detailed-exitcode"]).expect(0);
        project.selu(&["status"]).expect(0);
    }
}

/// Every moment in an engine's answer becomes one of a year later: what an engine says while this machine's clock was set
/// back.
fn a_year_later(value: &mut Value) {
    match value {
        Value::String(text) => {
            let year = text
                .split_once('-')
                .filter(|(year, _)| year.len() == 4 && text.contains('T'));
            if let Some(next) = year
                .and_then(|(year, rest)| Some(format!("{}-{rest}", year.parse::<u32>().ok()? + 1)))
            {
                *text = next;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(a_year_later),
        Value::Object(members) => {
            members
                .iter_mut()
                .for_each(|(name, member)| match name.as_str() {
                    "Created" if member.is_number() => {
                        *member = json!(member.as_i64().unwrap() + 31_536_000)
                    }
                    _ => a_year_later(member),
                })
        }
        _ => {}
    }
}

#[test]
fn a_clock_that_was_set_back_a_year_changes_nothing_and_keeps_nothing_from_being_done() {
    let project = scene("clock");
    project.selu(&APPLY).expect(0);
    let lock = project.read("selu.lock");
    // What was written and made before is of a year to come: every file, and all that the engine says of its objects.
    run(Command::new("find")
        .arg(project.path())
        .args(["-exec", "touch", "-h", "-d", "+1 year", "{}", "+"]))
    .expect(0);
    let door = Door::answering(|_, answer| a_year_later(answer));
    let address = door.address();
    let selu = |arguments: &[&str]| project.selu(&[arguments, &["--host", &address]].concat());
    let written = |file: &Path| std::fs::metadata(file).unwrap().modified().unwrap();
    let file = project.path().join("selu.lock");
    let before = written(&file);

    selu(&["plan", "--detailed-exitcode"]).expect(0);
    selu(&APPLY).expect(0);
    selu(&["sync"]).expect(0);
    selu(&["lock", "--check"]).expect(0);
    selu(&["lock", "--check", "--live"]).expect(0);
    assert_eq!(
        (project.read("selu.lock"), written(&file)),
        (lock, before),
        "an equal lock is not written"
    );
    let called = selu(&[
        "invoke",
        "b/space",
        "read",
        "--args",
        "{\"path\": \"/etc/hostname\"}",
    ])
    .expect(0);
    assert!(called.stdout.contains("selu"), "{}", called.stdout);

    let image = project.image("b", "space");
    project.write(
        "agents/b/capabilities/space/manifest.yaml",
        &format!("id: space\nimage: {image}\nclass: environment\nfilesystem: temp\n{STATIC}"),
    );
    selu(&["plan", "--detailed-exitcode"]).expect(2);
    selu(&APPLY).expect(0);
    selu(&["plan", "--detailed-exitcode"]).expect(0);
    selu(&["destroy", "-y", "--volumes"]).expect(0);
    assert!(!project.is_deployed());
}
