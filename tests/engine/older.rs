//! A capability that nobody wrote with our library: Python, in the older dialect (W4), from its folder to calls.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::project::TestProject;

const MANIFEST: &str = "tool_source: dynamic
credentials:
  - {name: KEY, scope: system}
resources: {max_memory_mb: 128, max_cpu_fraction: 1.0}
";

/// Its base image is made by `scripts/python-rootfs`, which the example in Python needs too.
fn python(topic: &str) -> TestProject {
    let project = TestProject::new(topic);
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let folder = "agents/a/capabilities/older";
    for file in ["server.py", "Dockerfile"] {
        let text = std::fs::read_to_string(format!("{here}/tests/older/{file}")).unwrap();
        project.write(&format!("{folder}/container/{file}"), &text);
    }
    project.write("agents/a/agent.yaml", "id: a\nname: a\n");
    project.write("agents/a/agent.md", "Joins words.\n");
    let image = project.image("a", "older");
    project.write(
        &format!("{folder}/manifest.yaml"),
        &format!("id: older\nimage: {image}\n{MANIFEST}"),
    );
    let settings = project.read("selu.toml");
    project.write(
        "selu.toml",
        &format!("{settings}\n[build.\"a/older\"]\nprepare = [\"{here}/scripts/python-rootfs\"]\n"),
    );
    project
}

#[test]
fn a_python_capability_in_the_older_dialect_is_deployed_discovered_and_called_w4() {
    let project = python("older-python");
    let key = ("SELU_CRED__A__OLDER__KEY", "key-of-the-older");
    let selu = |arguments: &[&str]| project.selu_with(&[key], arguments);
    let result = |arguments: &[&str]| -> Value {
        let all = [&["invoke", "a/older"], arguments, &["--format", "json"]].concat();
        selu(&all).expect(0).json()["result"].clone()
    };
    selu(&["build"]).expect(0);
    selu(&["apply", "-y"]).expect(0);
    let lock = project.read("selu.lock");
    assert!(lock.contains("Joins words."), "{lock}");
    assert_eq!(
        result(&["join", "--args", r#"{"words": ["two", "words"]}"#]),
        "two words",
        "a result that is no JSON is a text"
    );
    let digest = Sha256::digest(key.1);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let context = json!({
        "session_id": "default", "user_id": "", "capability_id": "older", "thread_id": "t", "KEY": digest,
    });
    assert_eq!(result(&["context", "--thread", "t"]), context);
    let failed = selu(&["invoke", "a/older", "join", "--args", r#"{"words": []}"#]).expect(1);
    assert!(
        failed.stderr.contains("there are no words"),
        "{}",
        failed.stderr
    );
    let session = result(&["context", "--session", "s", "--user", "anna"]);
    assert_eq!(session["session_id"], "s");
    assert_eq!(session["user_id"], "anna");
    selu(&["sync"]).expect(0);
    assert_eq!(
        project.read("selu.lock"),
        lock,
        "asked again, it says the same"
    );
}
