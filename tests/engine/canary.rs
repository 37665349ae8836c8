//! A credential's value through every command: it reaches the capability, and nothing else that anybody could read
//! (product.md 29, C2).

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::invoke::tools;
use crate::project::{Run, TestProject};

const CANARY: &str = "canary/ü \"x\"\r\nsecond=line\\of it==";

/// How the value looks in texts of different kinds; each is in none of them.
fn forms() -> Vec<String> {
    let json = Value::from(CANARY).to_string();
    vec![
        CANARY.to_owned(),
        json.trim_matches('"').to_owned(),
        "second=line\\of it==".to_owned(),
        "canary%2F".to_owned(),
        "canary/".to_owned(),
    ]
}

#[track_caller]
fn assert_clean(text: &str, place: &str) {
    for form in forms() {
        assert!(!text.contains(&form), "{form:?} is in {place}:\n{text}");
    }
}

fn files(folder: &Path, each: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, each);
        } else {
            each(&path);
        }
    }
}

#[test]
fn a_value_reaches_the_capability_and_no_output_file_label_or_setting() {
    let project = TestProject::new("canary");
    let names = tools(&["digests", "echo_secret", "exit"]);
    let manifest = format!("credentials:\n  - {{name: KEY, scope: system}}\n{names}");
    project.probe("a", "probe", &["serve"], &manifest);
    let keys = tempfile::tempdir().unwrap();
    let key_file = keys.path().join("store.key");
    let selu = |arguments: &[&str], input: &str| -> Run {
        let mut child = Command::new(env!("CARGO_BIN_EXE_selu"))
            .current_dir(project.path())
            .env("SELU_STORE_KEY_FILE", &key_file)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let written = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
        drop(written);
        let output = child.wait_with_output().unwrap();
        let run = Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        assert_clean(&run.stdout, &format!("the output of {arguments:?}"));
        assert_clean(&run.stderr, &format!("the talk of {arguments:?}"));
        run
    };
    selu(&["build"], "").expect(0);
    selu(&["apply", "-y"], "").expect(0);
    selu(&["credentials", "set", "a/probe", "KEY"], CANARY).expect(0);

    let digest: String = Sha256::digest(CANARY.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let invoke = |tool: &str, more: &[&str]| {
        let all = [&["invoke", "a/probe", tool, "--format", "json"], more].concat();
        selu(&all, "")
    };
    for session in [&[][..], &["--session", "s"]] {
        let received = invoke("digests", session).expect(0).json();
        assert_eq!(received["result"], json!({"KEY": digest}), "byte by byte");
    }
    let failed = invoke("echo_secret", &[]).expect(1);
    assert!(failed.stdout.contains("[secret]"), "{}", failed.stdout);
    invoke("exit", &["code=3"]).expect(1);
    for arguments in [
        &["check"][..],
        &["plan"],
        &["plan", "--format", "json"],
        &["apply", "-y", "--format", "json"],
        &["lock", "--check"],
        &["status", "--format", "json"],
        &["tools"],
        &["logs", "a/probe"],
        &["sessions", "list", "--format", "json"],
        &["credentials", "list", "--format", "json"],
        &["credentials", "check"],
        &["credentials", "grant", "a/probe", "-y"],
        &["credentials", "rotate"],
        &["-v", "invoke", "a/probe", "digests"],
    ] {
        selu(arguments, "");
    }
    files(&project.path(), &mut |path| {
        let bytes = std::fs::read(path).unwrap();
        assert_clean(
            &String::from_utf8_lossy(&bytes),
            &path.display().to_string(),
        );
    });
    for thing in [project.resident("a", "probe", 1), project.gateway()] {
        assert_clean(&crate::daemon::inspect(&thing).to_string(), &thing);
    }
    let all = project.everything().join("\n");
    assert_clean(&all, "names on the engine");
    selu(&["sessions", "close", "--all"], "").expect(0);
    selu(&["destroy", "-y", "--volumes"], "").expect(0);
}
