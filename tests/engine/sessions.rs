//! Sessions and users (X1–X4, C5): containers of their own on demand, with their own workspaces and values, and nothing
//! left of them when they are closed.

use std::process::Child;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::invoke::tools;
use crate::project::{Run, TestProject};

const ENVIRONMENT: &str = "class: environment\nfilesystem: workspace\n";

fn environment(topic: &str, more: &str) -> TestProject {
    let project = TestProject::new(topic);
    let tools = tools(&[
        "write",
        "read",
        "never",
        "digests",
        "context",
        "environment",
    ]);
    project.probe(
        "a",
        "probe",
        &["serve"],
        &format!("{ENVIRONMENT}{more}{tools}"),
    );
    project.up();
    project
}

fn invoke(project: &TestProject, arguments: &[&str]) -> Run {
    let all = [&["invoke", "a/probe"], arguments, &["--format", "json"]].concat();
    project.selu(&all)
}

#[track_caller]
fn result(run: Run) -> Value {
    run.expect(0).json()["result"].clone()
}

#[track_caller]
fn write(project: &TestProject, content: &str, of: &[&str]) {
    let text = format!("content={content}");
    let call = ["write", "path=/workspace/note", &text];
    assert_eq!(
        result(invoke(project, &[&call[..], of].concat()))["ok"],
        true
    );
}

#[track_caller]
fn note(project: &TestProject, of: &[&str]) -> Value {
    result(invoke(
        project,
        &[&["read", "path=/workspace/note"], of].concat(),
    ))["value"]
        .clone()
}

fn sessions(project: &TestProject) -> Vec<(String, Value)> {
    let listed = project
        .selu(&["sessions", "list", "--format", "json"])
        .expect(0)
        .json();
    let listed = listed["sessions"].as_array().unwrap().clone();
    let name = |one: &Value| one["session"].as_str().unwrap().to_owned();
    listed
        .iter()
        .map(|one| (name(one), one["user"].clone()))
        .collect()
}

#[test]
fn each_session_has_its_own_workspace_until_it_is_closed() {
    let project = environment("sessions", "");
    let before = project.everything();
    write(&project, "one", &["--session", "one"]);
    write(&project, "two", &["--session", "two"]);
    assert_eq!(
        note(&project, &["--session", "one"]),
        "one",
        "kept between calls"
    );
    assert_eq!(note(&project, &["--session", "two"]), "two");
    assert_eq!(
        note(&project, &["--session", "one", "--user", "anna"]),
        Value::Null
    );
    assert_eq!(
        note(&project, &[]),
        Value::Null,
        "the resident is nobody's session"
    );
    let told = result(invoke(&project, &["environment", "--session", "one"]));
    assert_eq!(told["SELU_SESSION_ID"], "one");
    let expected = [
        ("one".to_owned(), Value::Null),
        ("two".to_owned(), Value::Null),
        ("one".to_owned(), json!("anna")),
    ];
    assert_eq!(sessions(&project), expected);
    // Sessions are no drift, and an apply with nothing to do leaves them alone.
    project.selu(&["status"]).expect(0);
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(note(&project, &["--session", "two"]), "two");

    project
        .selu(&["sessions", "close", "a/probe", "--session", "one"])
        .expect(0);
    assert_eq!(
        note(&project, &["--session", "one"]),
        Value::Null,
        "gone with its workspace"
    );
    assert_eq!(note(&project, &["--session", "two"]), "two");
    project.selu(&["sessions", "close", "--all"]).expect(0);
    assert_eq!(project.everything(), before, "nothing is left");
    project.selu(&["status"]).expect(0);
    project
        .selu(&["sessions", "close", "a/probe", "--session", "default"])
        .expect(64);
}

#[test]
fn a_session_follows_the_plan_and_keeps_its_workspace() {
    let project = environment("sessions-change", "");
    write(&project, "kept", &["--session", "s"]);
    let file = "agents/a/capabilities/probe/manifest.yaml";
    let manifest = format!("{}cache: {{enabled: true}}\n", project.read(file));
    project.write(file, &manifest);
    let refused = invoke(&project, &["context", "--session", "s"]).expect(1);
    assert!(
        refused.stderr.contains("cache is `false` in the lock"),
        "{}",
        refused.stderr
    );
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(
        sessions(&project),
        [],
        "its container was made from another plan"
    );
    assert_eq!(note(&project, &["--session", "s"]), "kept");
}

#[test]
fn an_idle_session_is_closed_by_the_next_command_and_one_in_a_call_is_not() {
    let project = environment("sessions-idle", "");
    write(&project, "x", &["--session", "idle"]);
    let busy = project.start(&["invoke", "a/probe", "never", "--session", "busy"]);
    wait_for_session(&project, "busy");
    call_long_ago(&project);
    let next = invoke(&project, &["context"]).expect(0);
    assert!(
        next.stderr.contains("`idle` was idle and is closed"),
        "{}",
        next.stderr
    );
    assert_eq!(sessions(&project), [("busy".to_owned(), Value::Null)]);
    end(busy);
}

#[test]
fn with_idle_stop_a_resident_that_nobody_calls_is_stopped_is_healthy_and_is_started_by_a_call_x4() {
    let project = TestProject::new("sessions-asleep");
    project.probe("a", "probe", &["serve"], "tool_source: dynamic\n");
    let settings = project.read("selu.toml");
    project.write(
        "selu.toml",
        &format!("{settings}\n[runtime]\nidle_stop = true\n"),
    );
    project.up();
    let resident = project.resident("a", "probe", 1);
    let runs = || crate::daemon::inspect(&resident)["State"]["Running"].clone();
    let read = ["read", "path=/proc/self/comm"];
    assert_eq!(result(invoke(&project, &read))["value"], "probe\n");
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(runs(), true, "it was called just now");

    call_long_ago(&project);
    let lock = project.read("selu.lock");
    let next = project.selu(&["sync"]).expect(0);
    assert!(next.stderr.contains("is stopped"), "{}", next.stderr);
    assert_eq!(runs(), false);
    let status = project.selu(&["status"]).expect(0);
    assert!(
        status.stdout.contains("nobody called it"),
        "{}",
        status.stdout
    );
    let nothing = project.selu(&["apply", "-y"]).expect(0);
    assert!(
        nothing.stderr.contains("Nothing to do"),
        "{}",
        nothing.stderr
    );
    project.selu(&["sync"]).expect(0);
    assert_eq!(runs(), false, "nobody called it");
    assert_eq!(project.read("selu.lock"), lock);

    assert_eq!(result(invoke(&project, &read))["value"], "probe\n");
    assert_eq!(runs(), true);
    // Without the setting, one that is stopped is not as planned.
    crate::daemon::stop(&resident);
    project.write("selu.toml", &settings);
    project.selu(&["status"]).expect(2);
    let refused = invoke(&project, &read).expect(1);
    assert!(refused.stderr.contains("is stopped"), "{}", refused.stderr);
}

/// All calls so far were made a day ago.
fn call_long_ago(project: &TestProject) {
    let day = std::time::SystemTime::now() - std::time::Duration::from_secs(24 * 3600);
    for entry in std::fs::read_dir(project.path().join(".selu/calls")).unwrap() {
        let file = std::fs::File::options()
            .write(true)
            .open(entry.unwrap().path());
        file.unwrap().set_modified(day).unwrap();
    }
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Waits until a session is in a call.
#[track_caller]
fn wait_for_session(project: &TestProject, name: &str) {
    for _ in 0..200 {
        let listed = project.selu(&["sessions", "list"]);
        if listed.stdout.contains(&format!("`{name}`: in a call")) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{name} was never opened");
}

#[test]
fn one_call_at_a_time_and_a_killed_opening_leaves_nothing_in_the_way() {
    let project = environment("sessions-crash", "");
    let before = project.everything();
    // Killed as soon as something of it exists.
    let opening = project.start(&["invoke", "a/probe", "context", "--session", "s"]);
    while project.everything().len() <= before.len() + 1 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    end(opening);
    project
        .selu(&["apply", "-y", "--lock-timeout", "60"])
        .expect(0);
    let left: Vec<String> = project.everything();
    let left = left.iter().filter(|thing| thing.contains("_session_"));
    assert_eq!(left.count(), 0, "{:?}", project.everything());

    let context = result(invoke(&project, &["context", "--session", "s"]));
    assert_eq!(context["session"], "s");
    let busy = project.start(&["invoke", "a/probe", "never", "--session", "s"]);
    wait_for_session(&project, "s");
    let refused = invoke(&project, &["context", "--session", "s"]).expect(1);
    assert!(refused.stderr.contains("all 1 calls"), "{}", refused.stderr);
    end(busy);
    invoke(&project, &["context", "--session", "s"]).expect(0);
}

const SCOPES: &str =
    "credentials:\n  - {name: KEY, scope: system}\n  - {name: TOKEN, scope: user}\n";

#[test]
fn one_users_values_never_meet_anothers_c5() {
    let project = environment("sessions-users", SCOPES);
    let hex = |value: &str| -> String {
        let digest = Sha256::digest(value.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let call = |user: &str, token: &str| {
        let variables = [
            ("SELU_CRED__A__PROBE__KEY", "system-value"),
            ("SELU_CRED__A__PROBE__TOKEN", token),
        ];
        let arguments = [
            "invoke", "a/probe", "digests", "--user", user, "--format", "json",
        ];
        result(project.selu_with(&variables, &arguments))
    };
    for (user, token) in [("anna", "annas-token"), ("ben", "bens-token")] {
        let expected = json!({"KEY": hex("system-value"), "TOKEN": hex(token)});
        assert_eq!(call(user, token), expected);
    }
    let users: Vec<Value> = sessions(&project)
        .into_iter()
        .map(|(_, user)| user)
        .collect();
    assert_eq!(users, [json!("anna"), json!("ben")], "a container each");
    let variables = [("SELU_CRED__A__PROBE__KEY", "system-value")];
    let refused = project.selu_with(
        &variables,
        &["invoke", "a/probe", "digests", "--user", "anna"],
    );
    let refused = refused.expect(1);
    assert!(
        refused.stderr.contains("TOKEN of user anna"),
        "{}",
        refused.stderr
    );
}
