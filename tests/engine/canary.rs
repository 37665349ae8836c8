//! A credential's value through every command: it reaches the capability, and nothing else that anybody could read
//! (product.md 29, C2).

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use std::os::unix::process::ExitStatusExt as _;

use crate::invoke::tools;
use crate::project::{Run, TestProject};
use crate::world::{docker, docker_text};

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

/// A project with a stored value, and what has been driven in it.
struct Canary {
    project: TestProject,
    /// The key's folder: it holds no value, and is not the project's.
    keys: tempfile::TempDir,
    /// Commands that were run, with their subcommands.
    driven: std::cell::RefCell<BTreeSet<String>>,
}

impl Canary {
    fn new() -> Self {
        let project = TestProject::new("canary");
        let names = tools(&["digests", "echo_secret", "exit", "never"]);
        let manifest = format!("credentials:\n  - {{name: KEY, scope: system}}\n{names}");
        project.probe("a", "probe", &["serve"], &manifest);
        Self {
            project,
            keys: tempfile::tempdir().unwrap(),
            driven: std::cell::RefCell::default(),
        }
    }

    fn key_file(&self) -> std::path::PathBuf {
        self.keys.path().join("store.key")
    }

    /// Runs a command with something on standard input; neither its output nor its talk may hold the value.
    fn selu_with(&self, arguments: &[&str], input: &str) -> Run {
        let words = arguments.iter().filter(|word| !word.starts_with('-'));
        let words: Vec<&str> = words.copied().take(2).collect();
        let mut driven = self.driven.borrow_mut();
        driven.insert(words[0].to_owned());
        driven.insert(words.join(" "));
        let mut child = Command::new(env!("CARGO_BIN_EXE_selu"))
            .current_dir(self.project.path())
            .env("SELU_STORE_KEY_FILE", self.key_file())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads nothing may have ended.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let run = Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        assert_clean(&run.stdout, &format!("the output of {arguments:?}"));
        assert_clean(&run.stderr, &format!("the talk of {arguments:?}"));
        run
    }

    fn selu(&self, arguments: &[&str]) -> Run {
        self.selu_with(arguments, "")
    }

    /// The words that a help text lists as commands, behind `before`.
    fn commands(&self, before: &str) -> Vec<String> {
        let mut arguments: Vec<&str> = before.split_whitespace().collect();
        arguments.push("--help");
        let help = self.project.selu(&arguments).expect(0).stdout;
        let list = help.split("Commands:\n").nth(1).unwrap();
        let list = list.split("\n\n").next().unwrap();
        // A description goes on in lines that are indented further.
        let first = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
        let names = list
            .lines()
            .filter(first)
            .filter_map(|line| line.split_whitespace().next());
        names
            .filter(|name| *name != "help")
            .map(|name| format!("{before} {name}").trim().to_owned())
            .collect()
    }

    /// What the engine says of everything of the project, and what its containers wrote.
    fn engine(&self) -> String {
        let label = format!("label=dev.selu.project={}", self.project.name);
        let mut said = String::new();
        for list in [
            &["ps", "-aq"][..],
            &["network", "ls", "-q"],
            &["volume", "ls", "-q"],
            &["image", "ls", "-q"],
        ] {
            let ids = docker_text(&[list, &["--filter", &label]].concat());
            let ids: Vec<&str> = ids.split_whitespace().collect();
            assert!(!ids.is_empty(), "{list:?} finds nothing");
            said += &docker_text(&[&["inspect"], ids.as_slice()].concat());
            if list[0] == "ps" {
                for id in ids {
                    let log = docker(&["logs", id]);
                    said += &String::from_utf8_lossy(&log.stdout);
                    said += &String::from_utf8_lossy(&log.stderr);
                }
            }
        }
        said
    }

    /// A call that is under way, killed so that a core file would be written.
    fn crash(&self) {
        let crash = |script: &str, folder: &Path| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("ulimit -c unlimited; {script}")]);
            let command = command.current_dir(folder).stdin(Stdio::null());
            command.env("SELU_STORE_KEY_FILE", self.key_file());
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        let elsewhere = tempfile::tempdir().unwrap();
        let mut shell = crash("kill -ABRT $$", elsewhere.path()).unwrap();
        if !shell.wait().unwrap().core_dumped() {
            eprintln!(
                "skipped: this machine writes no core files, so that none holds a value proves nothing"
            );
            return;
        }
        let selu = env!("CARGO_BIN_EXE_selu");
        let script = format!("exec '{selu}' invoke a/probe never --deadline 600");
        let mut child = crash(&script, &self.project.path()).unwrap();
        let resident = self.project.resident("a", "probe", 1);
        crate::daemon::wait_for_log(&resident, "probe: never ends", 1);
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
        let ended = child.wait().unwrap();
        assert_eq!(ended.signal(), Some(6), "{ended:?}");
        assert!(
            !ended.core_dumped(),
            "a core file holds what the process knew"
        );
    }
}

#[test]
fn a_value_reaches_the_capability_and_no_output_file_label_core_file_or_setting_whatever_is_run() {
    let canary = Canary::new();
    canary.selu(&["build"]).expect(0);
    canary.selu(&["apply", "-y"]).expect(0);
    let set = ["credentials", "set", "a/probe", "KEY"];
    canary.selu_with(&set, CANARY).expect(0);

    let digest: String = Sha256::digest(CANARY.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let invoke = |tool: &str, more: &[&str]| {
        canary.selu(&[&["invoke", "a/probe", tool, "--format", "json"], more].concat())
    };
    for session in [&[][..], &["--session", "s"]] {
        let received = invoke("digests", session).expect(0).json();
        assert_eq!(received["result"], json!({"KEY": digest}), "byte by byte");
    }
    let failed = invoke("echo_secret", &[]).expect(1);
    assert!(failed.stdout.contains("[secret]"), "{}", failed.stdout);
    invoke("exit", &["code=3"]).expect(1);
    canary.crash();
    // An env file holds values by its nature, so it is elsewhere.
    let values = canary.keys.path().join("values.env");
    std::fs::write(&values, "SELU_CRED__A__PROBE__KEY=canary/of-a-file\n").unwrap();
    let values = values.to_str().unwrap();
    // What is written for others holds no value either.
    let client = canary.keys.path().join("client.json");
    let server = json!({"command": "npx", "args": ["-y", "a@1.0.0"], "env": {"KEY": CANARY}});
    std::fs::write(&client, json!({"mcpServers": {"x": server}}).to_string()).unwrap();
    let client = client.to_str().unwrap();
    let written = canary.keys.path().join("written");
    let written = written.to_str().unwrap();
    for arguments in [
        &["check"][..],
        &["explain", "SELU0101"],
        &["plan"],
        &["plan", "--format", "json"],
        &["plan", "--out", "plan.json"],
        &["plan", "--format", "html"],
        &["show", "plan.json"],
        &["diff", "selu.lock", "selu.lock"],
        &["apply", "-y", "--format", "json"],
        &["lock", "--check"],
        &["lock"],
        &["sync"],
        &["status", "--format", "json"],
        &["tools"],
        &["graph"],
        &["why", "KEY"],
        // An image that is only here is refused.
        &["package", "a"],
        // There is no repository.
        &["git", "install"],
        &["egress"],
        &["logs", "a/probe"],
        &["schema", "manifest"],
        &["sessions", "list", "--format", "json"],
        &["policy", "list"],
        &["policy", "explain", "a/probe/digests"],
        &["policy", "set", "a/probe/digests", "ask"],
        &["policy", "rm", "a/probe/digests"],
        &["policy", "prune"],
        &["credentials", "list", "--format", "json"],
        &["credentials", "check"],
        &["credentials", "grant", "a/probe", "-y"],
        &["credentials", "rotate"],
        &["credentials", "import", values],
        &["import", "mcp-json", client, "--dir", written],
        &[
            "new",
            "mcp",
            "y",
            "--image",
            "example.com/y:1",
            "--dir",
            written,
            "--",
            "y",
        ],
        // What it does inside an image tests/bridge drives.
        &["mcp-bridge", "--policy-file", "missing", "--", "true"],
        &["credentials", "rm", "a/probe", "KEY"],
    ] {
        let run = canary.selu(arguments);
        assert_ne!(run.code, 64, "{arguments:?}: {}", run.stderr);
    }
    canary.selu_with(&set, CANARY).expect(0);
    canary
        .selu(&["invoke", "-v", "a/probe", "digests"])
        .expect(0);
    assert_clean(&canary.engine(), "what the engine says");
    canary.selu(&["sessions", "close", "--all"]).expect(0);
    for folder in [&canary.project.path(), Path::new(written)] {
        files(folder, &mut |path| {
            let bytes = std::fs::read(path).unwrap();
            assert_clean(
                &String::from_utf8_lossy(&bytes),
                &path.display().to_string(),
            );
        });
    }
    let all = canary.project.everything().join("\n");
    assert_clean(&all, "names on the engine");
    canary.selu(&["destroy", "-y", "--volumes"]).expect(0);

    // A command that is new is driven here, too.
    let driven = canary.driven.borrow();
    for command in ["", "credentials", "git", "new", "policy", "sessions"]
        .iter()
        .flat_map(|before| canary.commands(before))
    {
        assert!(driven.contains(&command), "`selu {command}` was not run");
    }
}
