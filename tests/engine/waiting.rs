//! `[discovery] on_change = "hold"` from the container's list to the call (D3, product.md 27).

use serde_json::{Value, json};

use crate::project::{Run, TestProject};

const MANIFEST: &str =
    "tool_source: dynamic\ncredentials:\n  - {name: TOKEN, scope: system, required: false}\n";

/// The probe lists one tool more with a value, and its description follows from the value.
fn with(token: &str) -> [(&str, &str); 1] {
    [("SELU_CRED__A__LIVE__TOKEN", token)]
}

fn offered(project: &TestProject) -> Vec<String> {
    let tools = project
        .selu(&["tools", "--format", "json"])
        .expect(0)
        .json();
    let tools = tools["agents"]["a"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
    tools.iter().map(name).collect()
}

fn received(project: &TestProject) -> String {
    let lock = project.read("selu.lock");
    let (_, entry) = lock.split_once(".tool.\"received\"]").unwrap_or_default();
    let line = entry.lines().find(|line| line.starts_with("description"));
    line.unwrap_or_default().to_owned()
}

fn held(run: &Run) -> Vec<String> {
    let json = run.json();
    let changes = json["tool_changes"].as_array().cloned().unwrap_or_default();
    let held = changes
        .iter()
        .filter(|change| change["held"] == json!(true));
    held.map(|change| change["tool"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_definition_is_used_once_a_person_has_accepted_it_and_not_before() {
    let project = TestProject::new("waiting");
    project.probe("a", "live", &["serve"], MANIFEST);
    let settings = project.read("selu.toml");
    project.write(
        "selu.toml",
        &format!("{settings}\n[discovery]\non_change = \"hold\"\n[policy]\n\"a/live/received\" = \"allow\"\n"),
    );
    project.selu(&["build"]).expect(0);
    let first = project.selu_with(&with("one"), &["apply", "-y"]).expect(0);
    assert!(
        first.stderr.contains("selu lock --accept a/live/tcp"),
        "{}",
        first.stderr
    );
    assert_eq!(offered(&project), Vec::<String>::new(), "nothing is in use");
    let refused = project.selu(&["invoke", "a/live", "received"]).expect(1);
    assert!(
        refused.stderr.contains("not in use yet"),
        "{}",
        refused.stderr
    );
    // It is told again and asked of nobody.
    let again = project.selu_with(&with("one"), &["plan"]).expect(0);
    assert!(again.stderr.contains("a/live/received"), "{}", again.stderr);

    project.selu(&["lock", "--accept", "a/live"]).expect(0);
    assert_eq!(offered(&project).len(), 4, "`exit` is blocked");
    let said = received(&project);
    assert!(said.contains("Received"), "{said}");
    project
        .selu_with(&with("one"), &["apply", "-y", "--locked", "--allow-local"])
        .expect(0);

    // The description is rewritten: the old one stays in use, and CI stops.
    let sync = project
        .selu_with(&with("two"), &["sync", "--format", "json"])
        .expect(0);
    assert_eq!(held(&sync), ["received"]);
    assert_eq!(received(&project), said);
    let check = ["lock", "--check", "--live"];
    project.selu_with(&with("one"), &check).expect(0);
    project.selu_with(&with("two"), &check).expect(2);
    assert_eq!(received(&project), said);
    project
        .selu(&["lock", "--accept", "a/live/received"])
        .expect(0);
    assert_ne!(received(&project), said);
    project.selu_with(&with("two"), &check).expect(0);
}
