//! `selu invoke` on what runs: results, refusals, files, the older dialect.

use selu_compiler::model::schemas;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::project::{Run, TestProject};

const CANARY: &str = "canary-3b9d \"with\" \\ all/of+it";

/// A manifest's rest: tools that are allowed and take any object.
pub(crate) fn tools(names: &[&str]) -> String {
    let each: String = names
        .iter()
        .map(|name| {
            format!(
                "  - {{name: {name}, description: Does {name}, recommended_policy: allow, input_schema: {{type: object, properties: {{bytes: &int {{type: integer}}, to: *int, seconds: *int, mb: *int, processes: *int, code: *int}}}}}}\n"
            )
        })
        .collect();
    format!("tools:\n{each}")
}

const KEY: &str = "credentials:\n  - {name: KEY, scope: system, required: false}\n";

/// Runs with the credential set, and searches the output for it in every form.
fn invoke(project: &TestProject, arguments: &[&str]) -> Run {
    let variable = ("SELU_CRED__A__PROBE__KEY", CANARY);
    let run = project.selu_with(&[variable], &[&["invoke", "a/probe"], arguments].concat());
    let json = serde_json::Value::from(CANARY).to_string();
    for form in [CANARY, json.trim_matches('"')] {
        assert!(!run.stdout.contains(form), "{}", run.stdout);
        assert!(!run.stderr.contains(form), "{}", run.stderr);
    }
    run
}

#[track_caller]
fn result(run: Run) -> serde_json::Value {
    run.expect(0).json()["result"].clone()
}

#[test]
fn a_call_gives_its_result_and_no_value_of_a_credential() {
    let project = TestProject::new("invoke-basic");
    let names = [
        "echo",
        "digests",
        "echo_secret",
        "large",
        "never",
        "context",
        "exit",
        "nonsense",
    ];
    let manifest = format!("{KEY}{}", tools(&names));
    project.probe("a", "probe", &["serve"], &manifest);
    project.selu(&["invoke", "a/probe", "echo"]).expect(1);
    project.up();

    // C3: it arrived, byte by byte, and only its hash is shown.
    let digest = Sha256::digest(CANARY.as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let ran = invoke(&project, &["digests", "--format", "json"]);
    assert_eq!(result(ran), json!({"KEY": digest}));

    // The form of the output is the committed one.
    let said = r#"{"say": "\u001b[2Jhi\u202e", "n": 12345678901234567}"#;
    let ran = invoke(&project, &["echo", "--args", said, "--format", "json"]).expect(0);
    let schema = schemas::schema("invoke").unwrap();
    let problems: Vec<String> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&ran.json())
        .map(|error| error.to_string())
        .collect();
    assert_eq!(problems, [""; 0]);
    assert_eq!(ran.json()["result"]["n"], 12_345_678_901_234_567_u64);

    let ran = invoke(&project, &["echo", "--args", said]).expect(0);
    assert!(
        !ran.stdout.contains(['\u{1b}', '\u{202e}']),
        "{:?}",
        ran.stdout
    );
    assert!(ran.stdout.contains("hi"), "{}", ran.stdout);

    // A value that comes back is removed, in texts and in what fails.
    let ran = invoke(
        &project,
        &["echo", "--args", &json!({"back": CANARY}).to_string()],
    );
    assert!(ran.expect(0).stdout.contains("[secret]"));
    let ran = invoke(&project, &["echo_secret"]).expect(1);
    assert!(
        ran.stderr.contains("upstream said: {\"KEY\":\"[secret]\"}"),
        "{}",
        ran.stderr
    );

    let ran = invoke(
        &project,
        &["context", "--thread", "t-1", "--format", "json"],
    );
    let context = json!({"session": "default", "thread": "t-1", "capability": "probe"});
    assert_eq!(result(ran), context);

    let ran = invoke(&project, &["large", "bytes=17825792"]).expect(1);
    assert!(
        ran.stderr.contains("the limit is 16777216"),
        "{}",
        ran.stderr
    );
    let ran = invoke(&project, &["large", "bytes=5242880", "--format", "json"]);
    assert_eq!(result(ran).as_str().unwrap().len(), 5 << 20);
    let ran = invoke(&project, &["never", "--deadline", "1"]).expect(1);
    assert!(
        ran.stderr.contains("no answer within 1 s"),
        "{}",
        ran.stderr
    );
    let ran = invoke(&project, &["nonsense"]).expect(1);
    assert!(
        ran.stderr.contains("unknown tool: nonsense"),
        "{}",
        ran.stderr
    );

    // What does not run as planned is not called.
    let name = project.resident("a", "probe", 1);
    crate::daemon::stop(&name);
    let ran = invoke(&project, &["echo"]).expect(1);
    assert!(ran.stderr.contains("a/probe is stopped"), "{}", ran.stderr);
}

#[test]
fn pieces_and_files_are_carried_both_ways() {
    let project = TestProject::new("invoke-carry");
    let manifest = format!("{KEY}{}", tools(&["count", "fail", "shout", "other"]));
    project.probe("a", "probe", &["serve"], &manifest);
    project.up();

    // A value that is torn between two pieces is removed all the same.
    let ran = invoke(&project, &["count", "to=3", "--stream"]).expect(0);
    assert_eq!(ran.stdout, "1 {\"KEY\":\"[secret]\"}\n2\n3\n");
    let ran = invoke(&project, &["count", "to=3", "--stream", "--format", "json"]);
    assert_eq!(result(ran), "1 {\"KEY\":\"[secret]\"}\n2\n3\n");
    let ran = invoke(&project, &["fail", "--stream"]).expect(1);
    assert_eq!(ran.stdout, "1\n");
    assert!(ran.stderr.contains("out of ink"), "{}", ran.stderr);
    let ran = invoke(&project, &["other", "--stream"]).expect(1);
    assert!(ran.stderr.contains("not implemented"), "{}", ran.stderr);

    project.write("in.txt", &"some text\n".repeat(100_000));
    let files = [
        "shout",
        "--upload",
        "file=in.txt",
        "--download",
        "/loud=out.txt",
    ];
    let ran = invoke(&project, &files).expect(0);
    assert_eq!(project.read("out.txt"), "SOME TEXT\n".repeat(100_000));
    assert!(
        ran.stderr.contains("out.txt: 1000000 bytes"),
        "{}",
        ran.stderr
    );
    let ran = invoke(&project, &files).expect(1);
    assert!(
        ran.stderr.contains("out.txt exists"),
        "nothing is overwritten"
    );
    let lost = [
        "shout",
        "--upload",
        "file=in.txt",
        "--download",
        "/quiet=new.txt",
    ];
    let ran = invoke(&project, &lost).expect(1);
    assert!(ran.stderr.contains("no text at /quiet"), "{}", ran.stderr);
    assert!(!project.path().join("new.txt").exists());
}

#[test]
fn a_capability_in_the_older_dialect_is_deployed_discovered_and_called_w4() {
    let project = TestProject::new("invoke-older");
    let manifest = format!("{KEY}{}", tools(&["context", "digests", "echo"]));
    project.probe("a", "probe", &["serve-older"], &manifest);
    project.up();
    project.selu(&["status"]).expect(0);
    let ran = invoke(
        &project,
        &["context", "--thread", "t-2", "--format", "json"],
    );
    let context = json!({
        "session_id": "default", "thread_id": "t-2", "capability_id": "probe", "user_id": "", "KEY": "[secret]",
    });
    assert_eq!(result(ran), context);
    let ran = invoke(&project, &["echo", "a=b", "--stream"]).expect(1);
    assert!(ran.stderr.contains("older dialect"), "{}", ran.stderr);
}
