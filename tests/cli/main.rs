//! The binary from outside, without an engine: exit codes, what goes where, and what a person is told.

#![allow(
    clippy::unwrap_used,
    reason = "what helpers of tests cannot do fails the test"
)]
#![allow(
    clippy::print_stdout,
    reason = "counts, and what was skipped, are for whoever runs them"
)]

mod browser;
mod check;
mod ci;
mod credentials;
mod diff;
mod engine_down;
mod field;
mod field_locks;
mod graph;
mod hostile;
mod import;
mod invoke;
mod merge;
mod package;
mod plans;
mod policy;
#[path = "../program.rs"]
mod program;
mod project;
mod same;
mod secrets;
mod usage;
mod waiting;

use std::path::Path;
use std::process::{Command, Output};

/// A directory, and the binary run in it with nothing from outside: no engine answers, no terminal is there.
struct Desk {
    folder: tempfile::TempDir,
}

/// The head of a lock of one instance, up to its network; what it discovered and its tools follow.
fn locked_instance(key: &str, image: &str) -> String {
    format!(
        r#"version = 1

[instance."{key}"]
image.written = "{image}"
image.kind = "registry"
image.digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
class = "tool"
filesystem = "none"
cache = false
sharing.mode = "exclusive"
sharing.max_concurrent = 1
sharing.idle_timeout_seconds = 300
limits.memory_mb = 128
limits.nano_cpus = 500000000
limits.cpu_seconds = 30
limits.pids = 64
network.mode = "none"
network.hosts = []
"#
    )
}

/// What [`Desk::with_project`] locks.
fn project_lock(tag: &str) -> String {
    let head = locked_instance("weather/api", &format!("weather:{tag}"));
    format!(
        r#"# Written by `selu`. Commit it and review its changes; change the directory, not this file.
{head}
[instance."weather/api".tool."forecast"]
source = "manifest"
policy = "allow"
policy_origin = "manifest"
terminal_on_success = false
description = "Tells it"
input_schema = '''
{{
  "type": "object"
}}
'''
"#
    )
}

impl Desk {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A project with one capability that has one static tool.
    fn with_project() -> Self {
        let desk = Self::new();
        desk.write("selu.toml", "[project]\nname = \"demo\"\n");
        desk.write("agents/weather/agent.yaml", "id: weather\nname: Weather\n");
        desk.write("agents/weather/agent.md", "You know the weather.\n");
        desk.manifest("");
        desk
    }

    /// Rewrites its manifest with more fields.
    fn manifest(&self, more: &str) {
        let text = format!(
            "id: api\nimage: weather:1\ntools:\n  - name: forecast\n    description: Tells it\n    recommended_policy: allow\n    input_schema: {{type: object}}\n{more}"
        );
        self.write("agents/weather/capabilities/api/manifest.yaml", &text);
    }

    /// Runs git in the project; what it prints.
    fn git(&self, arguments: &[&str]) -> String {
        let ran = Command::new("git")
            .current_dir(self.path())
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(["-c", "commit.gpgSign=false"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path)).unwrap()
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selu"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .env(
                "DOCKER_HOST",
                format!("unix://{}", self.path().join("none.sock").display()),
            )
            .stdin(std::process::Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }
}

/// How a run ended.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    #[track_caller]
    fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "out: {}\nerr: {}",
            self.out,
            self.err
        );
        self
    }

    #[track_caller]
    fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "{text:?} is not in: {}", self.err);
        self
    }

    /// Standard output, which must be one JSON document from the first byte to the last.
    #[track_caller]
    fn json(&self) -> serde_json::Value {
        let value: serde_json::Value = serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.out));
        assert!(
            self.out.starts_with('{') && self.out.ends_with("}\n"),
            "{:?}",
            self.out
        );
        value
    }
}
