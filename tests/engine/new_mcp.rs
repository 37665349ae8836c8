//! `selu new mcp` with an engine: the server is built, asked for its tools without a network, and what it says is written
//! down (P6). Servers from the registries, and one that says what it lacks.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::project::{Run, TestProject, run};

/// An image with a server in it and nothing else, made from a registry's package. Gone at the end.
struct Base(String);

impl Base {
    /// `None` where the registry does not answer.
    fn of(topic: &str, registry: &str, package: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/mcp-rootfs");
        let made = run(Command::new(script)
            .args([registry, package])
            .env("SELU", env!("CARGO_BIN_EXE_selu"))
            .env("SELU_BUILD_OUT", folder.path()));
        if made.code == 75 {
            eprintln!("skipped {package}: {}", made.stderr.trim());
            return None;
        }
        made.expect(0);
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/bridge/server.py");
        std::fs::copy(server, folder.path().join("server.py")).unwrap();
        std::fs::write(
            folder.path().join("Dockerfile"),
            "FROM scratch\nADD rootfs.tar /\nCOPY server.py /server.py\nENV PATH=/usr/bin\n",
        )
        .unwrap();
        let tag = format!("selu-test/base-{topic}-{}:1", std::process::id());
        run(Command::new("docker")
            .args(["build", "-q", "-t", &tag, "."])
            .current_dir(folder.path()))
        .expect(0);
        Some(Self(tag))
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rmi", "-f", &self.0]).output();
    }
}

/// Where programs are, `selu` among them, as it is on a desk.
fn path() -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_selu")).parent().unwrap();
    format!("{}:{}", own.display(), std::env::var("PATH").unwrap())
}

fn selu(project: &TestProject, arguments: &[&str]) -> Run {
    project.selu_with(&[("PATH", &path())], arguments)
}

/// Wraps, and gives what was said.
fn wrap(project: &TestProject, id: &str, base: &Base, command: &[&str]) -> Value {
    let head = [
        "new", "mcp", id, "--image", &base.0, "--format", "json", "--",
    ];
    selu(project, &[&head[..], command].concat())
        .expect(0)
        .json()
}

fn no_helper_is_left(project: &TestProject, id: &str) {
    let left = project.everything();
    assert!(left.iter().all(|name| !name.contains("asked")), "{left:?}");
    let _ = Command::new("docker")
        .args(["rmi", "-f", &format!("selu-cap-{id}:1")])
        .output();
}

fn named(said: &Value) -> Vec<(&str, bool)> {
    let tools = said["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| {
            (
                tool["name"].as_str().unwrap(),
                tool["reads"].as_bool().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_server_of_npm_and_one_of_pypi_are_asked_locked_and_called() {
    for (topic, registry, package, command, count, reading, call) in [
        (
            "new-npm",
            "npm",
            "@modelcontextprotocol/server-filesystem@2026.8.31",
            &["node", "/server", "/tmp"][..],
            14,
            ("list_directory", true),
            ["list_allowed_directories", "{}"],
        ),
        (
            "new-pypi",
            "pypi",
            "mcp-server-time==2026.10.19",
            &["python3", "/server"],
            2,
            ("convert_time", true),
            ["get_current_time", r#"{"timezone": "Europe/Berlin"}"#],
        ),
    ] {
        let project = TestProject::new(topic);
        let Some(base) = Base::of(topic, registry, package) else {
            continue;
        };
        let said = wrap(&project, topic, &base, command);
        assert_eq!(said["not_asked"], Value::Null, "{said}");
        let named = named(&said);
        assert_eq!(named.len(), count, "{named:?}");
        assert!(named.contains(&reading), "{named:?}");
        let prompt = project.read(&format!("agents/{topic}/capabilities/{topic}/prompt.md"));
        assert!(
            prompt.contains(&format!(
                "these tools only read: `{}`",
                named.iter().find(|one| one.1).unwrap().0
            )),
            "{prompt}"
        );
        selu(&project, &["apply", "-y"]).expect(0);
        let [tool, arguments] = call;
        selu(
            &project,
            &[
                "invoke",
                &format!("{topic}/{topic}"),
                tool,
                "--args",
                arguments,
                "--yes-to",
                &format!("{topic}/{topic}/{tool}"),
            ],
        )
        .expect(0);
        selu(&project, &["destroy", "-y"]).expect(0);
        no_helper_is_left(&project, topic);
    }
}

#[test]
fn a_server_that_says_what_it_lacks_gets_it_proposed_and_is_asked_again() {
    let topic = "new-wishes";
    let project = TestProject::new(topic);
    let Some(base) = Base::of(topic, "pypi", "mcp-server-time==2026.10.19") else {
        return;
    };
    let said = wrap(
        &project,
        topic,
        &base,
        &["python3", "/server.py", "needs-token"],
    );
    assert_eq!(said["not_asked"], Value::Null, "{said}");
    assert_eq!(
        said["proposed_credentials"],
        serde_json::json!(["DEMO_API_TOKEN"])
    );
    assert_eq!(
        said["proposed_hosts"],
        serde_json::json!(["api.example.com:443"])
    );
    assert_eq!(named(&said).len(), 4);
    let manifest = project.read(&format!(
        "agents/{topic}/capabilities/{topic}/manifest.yaml"
    ));
    assert!(
        manifest.contains("  - name: DEMO_API_TOKEN\n")
            && manifest.contains("  # - \"api.example.com:443\"\n"),
        "{manifest}"
    );
    let dockerfile = project.read(&format!(
        "agents/{topic}/capabilities/{topic}/container/Dockerfile"
    ));
    assert!(
        dockerfile.contains(r#""--placeholder","DEMO_API_TOKEN""#),
        "{dockerfile}"
    );
    // The image is that of the Dockerfile as it is now.
    selu(&project, &["check", "--deny", "warnings"]).expect(0);
    let planned = selu(&project, &["plan"]);
    assert!(!planned.stdout.contains("selu build"), "{}", planned.stdout);
    no_helper_is_left(&project, topic);
}

#[test]
fn a_server_that_cannot_be_asked_is_wrapped_all_the_same_and_the_reason_is_told() {
    let topic = "new-mute";
    let project = TestProject::new(topic);
    let Some(base) = Base::of(topic, "pypi", "mcp-server-time==2026.10.19") else {
        return;
    };
    let said = wrap(&project, topic, &base, &["python3", "/server.py", "dies"]);
    let reason = said["not_asked"].as_str().unwrap();
    assert!(
        reason.contains("exit code 7") && reason.contains("cannot reach the database"),
        "{reason}"
    );
    selu(&project, &["check"]).expect(0);
    no_helper_is_left(&project, topic);
}

#[test]
fn who_gives_up_waiting_leaves_no_container_behind() {
    let topic = "new-hung";
    let project = TestProject::new(topic);
    let Some(base) = Base::of(topic, "pypi", "mcp-server-time==2026.10.19") else {
        return;
    };
    let head = ["new", "mcp", topic, "--image", &base.0, "--"];
    let child = Command::new(env!("CARGO_BIN_EXE_selu"))
        .current_dir(project.path())
        .env("PATH", path())
        .args([&head[..], &["python3", "/server.py", "deaf"]].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let asked = || {
        project
            .everything()
            .iter()
            .any(|name| name.contains("asked"))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !asked() {
        assert!(Instant::now() < deadline, "nothing is asked");
        std::thread::sleep(Duration::from_millis(100));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("it was stopped"), "{said}");
    no_helper_is_left(&project, topic);
}
