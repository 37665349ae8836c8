//! A project in a temporary folder, driven through the `selu` binary, and gone from the engine when the test ends.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// What a run of `selu` left behind.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Panics with everything that was printed unless the exit code is the expected one.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "exit code\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// Standard output as JSON, from the first byte to the last.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.stdout))
    }
}

/// A project of the test's own.
pub(crate) struct TestProject {
    folder: tempfile::TempDir,
    pub(crate) name: String,
}

impl TestProject {
    /// An empty project with a name that no other test has.
    pub(crate) fn new(topic: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("t-{topic}-{}-{number}", std::process::id());
        let folder = tempfile::tempdir().unwrap();
        let project = Self { folder, name };
        project.write(
            "selu.toml",
            &format!("[project]\nname = \"{}\"\n", project.name),
        );
        project
    }

    /// Its folder.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Writes a file below the project's folder.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let file = self.folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// Reads a file below the project's folder.
    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(path)).unwrap()
    }

    /// Adds a capability whose image is the probe with the given entry point; `more` is the rest of its manifest.
    /// The image is not built yet: `selu build` does that.
    pub(crate) fn probe(&self, agent: &str, capability: &str, role: &[&str], more: &str) {
        self.write(
            &format!("agents/{agent}/agent.yaml"),
            &format!("id: {agent}\nname: {agent}\n"),
        );
        self.write(
            &format!("agents/{agent}/agent.md"),
            "Answers what the probe says.\n",
        );
        let folder = format!("agents/{agent}/capabilities/{capability}");
        let image = self.image(agent, capability);
        self.write(
            &format!("{folder}/manifest.yaml"),
            &format!("id: {capability}\nimage: {image}\n{more}"),
        );
        let entry: Vec<&str> = [&["/probe"], role].concat();
        let entry = serde_json::to_string(&entry).unwrap();
        self.write(
            &format!("{folder}/container/Dockerfile"),
            &format!("FROM scratch\nCOPY probe /probe\nENTRYPOINT {entry}\n"),
        );
        let settings = self.read("selu.toml");
        let prepare = format!(
            "cp '{}' \"$SELU_BUILD_OUT/probe\"",
            probe_binary().display()
        );
        self.write(
            "selu.toml",
            &format!("{settings}\n[build.\"{agent}/{capability}\"]\nprepare = [\"sh\", \"-c\", {prepare:?}]\n"),
        );
    }

    /// The image of a capability made with [`Self::probe`].
    pub(crate) fn image(&self, agent: &str, capability: &str) -> String {
        format!("selu-test/{}-{agent}-{capability}:1", self.name)
    }

    /// Runs `selu` in the project's folder.
    pub(crate) fn selu(&self, arguments: &[&str]) -> Run {
        run(Command::new(env!("CARGO_BIN_EXE_selu"))
            .current_dir(self.folder.path())
            .args(arguments))
    }

    /// Starts `selu` and leaves it under way.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_selu"))
            .current_dir(self.folder.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs `selu` with variables besides.
    pub(crate) fn selu_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
        run(Command::new(env!("CARGO_BIN_EXE_selu"))
            .current_dir(self.folder.path())
            .envs(variables.iter().copied())
            .args(arguments))
    }

    /// Builds every image and applies; both must succeed.
    #[track_caller]
    pub(crate) fn up(&self) -> Run {
        self.selu(&["build"]).expect(0);
        self.selu(&["apply", "-y"]).expect(0)
    }

    /// The name of an instance's resident and of its network, in the given generation.
    pub(crate) fn resident(&self, agent: &str, capability: &str, generation: u64) -> String {
        format!("selu_{}_{agent}_{capability}_{generation}", self.name)
    }

    /// What is on the engine, other tests' things left out.
    pub(crate) fn everything(&self) -> Vec<String> {
        crate::daemon::everything(&[&self.name])
    }

    /// Whether the engine has anything of this project but its images.
    pub(crate) fn is_deployed(&self) -> bool {
        self.everything()
            .iter()
            .any(|thing| thing.contains(&format!("selu_{}_", self.name)))
    }

    /// The name of the gateway.
    pub(crate) fn gateway(&self) -> String {
        format!("selu_{}_gateway", self.name)
    }
}

impl Drop for TestProject {
    fn drop(&mut self) {
        let destroyed = self.selu(&["destroy", "-y", "--volumes"]);
        if destroyed.code != 0 && !std::thread::panicking() {
            panic!("destroy failed: {}{}", destroyed.stdout, destroyed.stderr);
        }
        crate::daemon::remove_images(&format!("selu-test/{}-", self.name));
    }
}

/// Runs a command to its end without a terminal.
pub(crate) fn run(command: &mut Command) -> Run {
    let output = command
        .env_remove("SELU_LOG")
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The probe's executable, built once.
pub(crate) fn probe_binary() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            let built = run(Command::new(env!("CARGO"))
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .args([
                    "build",
                    "--locked",
                    "--quiet",
                    "--workspace",
                    "--bin",
                    "selu-probe",
                    "--message-format",
                    "json",
                ]))
            .expect(0);
            let executable = built
                .stdout
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .find_map(|message| message["executable"].as_str().map(PathBuf::from));
            executable.expect("cargo named the probe's executable")
        })
        .clone()
}
