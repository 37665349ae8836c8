//! Scenarios of credentials and calls from bug reports of other projects: each test named by the scenario's id. Those that
//! need no engine are beside the parts that they are of.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::invoke::tools;
use crate::project::TestProject;

fn hex(value: &[u8]) -> String {
    let digest = Sha256::digest(value);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A multi-line key with every trap: CRLF, `=` at the ends, blanks, an empty line, no line end at its end.
const PEM: &str = "-----BEGIN KEY-----\r\nYWJj+/==\n  padded =\t\r\n\n\"quoted\" \\n $HOME `x`\r\n-----END KEY-----";

#[test]
fn e04_e06_a_value_of_many_lines_arrives_byte_by_byte_and_no_line_of_it_is_shown() {
    let project = TestProject::new("field-e04");
    let names = tools(&["digests", "echo_secret"]);
    let manifest = format!("credentials:\n  - {{name: KEY, scope: system}}\n{names}");
    project.probe("a", "probe", &["serve"], &manifest);
    let keys = tempfile::tempdir().unwrap();
    let key_file = keys.path().join("store.key");
    let key_file = [("SELU_STORE_KEY_FILE", key_file.to_str().unwrap())];
    let selu = |arguments: &[&str]| project.selu_with(&key_file, arguments);
    selu(&["build"]).expect(0);
    selu(&["apply", "-y"]).expect(0);
    let values = tempfile::tempdir().unwrap();
    let file = values.path().join("value");
    let file = file.to_str().unwrap();
    let received = || -> Value {
        let ran = selu(&["invoke", "a/probe", "digests", "--format", "json"]);
        ran.expect(0).json()["result"]["KEY"].clone()
    };
    // One line end at the very end is the file's; everything else is the value's.
    for (written, value) in [
        (format!("{PEM}\n"), PEM.to_owned()),
        (format!("{PEM}\r\n"), PEM.to_owned()),
        (PEM.to_owned(), PEM.to_owned()),
        (format!("{PEM}\n\n"), format!("{PEM}\n")),
        (" tok ".to_owned(), " tok ".to_owned()),
    ] {
        std::fs::write(file, &written).unwrap();
        let set = selu(&["credentials", "set", "a/probe", "KEY", "--file", file]).expect(0);
        assert_eq!(
            set.stderr.contains("begins or ends with blanks"),
            value.trim() != value,
            "{}",
            set.stderr
        );
        assert_eq!(received(), hex(value.as_bytes()), "{written:?}");
    }
    std::fs::write(file, PEM).unwrap();
    selu(&["credentials", "set", "a/probe", "KEY", "--file", file]).expect(0);
    let failed = selu(&["invoke", "a/probe", "echo_secret"]).expect(1);
    for line in ["YWJj+/==", "padded", "quoted", "BEGIN KEY"] {
        assert!(!failed.stderr.contains(line), "{line}: {}", failed.stderr);
    }
    // The environment carries it as well.
    let variable = [("SELU_CRED__A__PROBE__KEY", PEM), key_file[0]];
    let ran = project.selu_with(
        &variable,
        &["invoke", "a/probe", "digests", "--format", "json"],
    );
    assert_eq!(
        ran.expect(0).json()["result"],
        json!({"KEY": hex(PEM.as_bytes())})
    );
}

#[test]
fn e08_a_lock_without_credentials_says_which_are_missing_and_keeps_what_it_knew() {
    let project = TestProject::new("field-e08");
    let needed = "tool_source: dynamic\ncredentials:\n  - {name: KEY, scope: system}\n";
    project.probe("a", "live", &["serve"], needed);
    project.selu(&["build"]).expect(0);
    let key = [("SELU_CRED__A__LIVE__KEY", "key-of-e08")];
    // Nothing is known yet, and it says why: a failed operation, for which 1 is the code.
    let refused = project.selu(&["lock"]).expect(1);
    assert!(
        refused.stderr.contains("KEY (set SELU_CRED__A__LIVE__KEY)"),
        "{}",
        refused.stderr
    );
    project.selu_with(&key, &["lock"]).expect(0);
    let lock = project.read("selu.lock");
    assert!(
        lock.contains(".tool.\"received\"]"),
        "what the key opens: {lock}"
    );
    let refused = project.selu(&["lock"]).expect(1);
    assert!(refused.stderr.contains("KEY"), "{}", refused.stderr);
    assert_eq!(project.read("selu.lock"), lock, "the old one stays");

    // Optional ones are not waited for: the lock notes which were present, and more of them show as a difference.
    let optional = needed.replace("scope: system", "scope: system, required: false");
    let file = "agents/a/capabilities/live/manifest.yaml";
    project.write(file, &project.read(file).replace(needed, &optional));
    project.selu(&["lock"]).expect(0);
    let lock = project.read("selu.lock");
    assert!(lock.contains("credentials_present = []\n"), "{lock}");
    assert!(!lock.contains(".tool.\"received\"]"), "{lock}");
    let later = project.selu_with(&key, &["lock"]).expect(0);
    assert!(later.stderr.contains("received"), "{}", later.stderr);
    assert!(
        project
            .read("selu.lock")
            .contains("credentials_present = [\n  \"KEY\",\n]")
    );
}

#[test]
fn j12_a_capability_that_floods_its_standard_error_while_it_lists_is_neither_stopped_nor_kept_whole()
 {
    let project = TestProject::new("field-j12");
    project.probe("a", "live", &["lists", "noisy"], "tool_source: dynamic\n");
    project.up();
    assert!(project.read("selu.lock").contains(".tool.\"a\"]"));
    let log = project.selu(&["logs", "a/live"]).expect(0);
    let bytes = log.stdout.len();
    assert!(
        (1..10_000_000).contains(&bytes),
        "{bytes} of 10 MB are kept"
    );
    assert!(log.stdout.contains("probe: listing"), "the last ones are");
}

#[test]
fn c11_processes_are_counted_by_container_and_not_by_user() {
    let project = TestProject::new("field-c11");
    let manifest = format!(
        "resources: {{max_memory_mb: 64, max_cpu_fraction: 1.0, pids_limit: 24}}\n{}",
        tools(&["fork", "echo"])
    );
    // Each starts as many as the other: together more than either may have.
    for agent in ["a", "b"] {
        project.probe(agent, "probe", &["serve"], &manifest);
    }
    project.up();
    for agent in ["a/probe", "b/probe"] {
        let ran = project.selu(&["invoke", agent, "fork", "processes=14", "--format", "json"]);
        assert_eq!(ran.expect(0).json()["result"], 14);
    }
}
