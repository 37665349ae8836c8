//! The jobs of `docs/ci` that need an engine, step by step as a runner takes them.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_yaml::Value;

use crate::project::{Run, TestProject, probe_binary, run};
use crate::registry::Registry;
use crate::world::docker;

/// Runs the steps of a job; those after a failure only where they are meant to be (`if: always()`).
fn job(project: &TestProject, name: &str) -> Vec<(String, Run)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ci/github.yml");
    let workflow: Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let programs = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_selu"), programs.path().join("selu")).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", programs.path().display());
    let mut ran: Vec<(String, Run)> = Vec::new();
    for step in workflow["jobs"][name]["steps"].as_sequence().unwrap() {
        let Some(script) = step["run"].as_str() else {
            continue;
        };
        let failed = ran.iter().any(|(_, run)| run.code != 0);
        if failed && step["if"].as_str() != Some("always()") {
            continue;
        }
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(project.path())
            .env("PATH", &path);
        ran.push((step["name"].as_str().unwrap().to_owned(), run(&mut command)));
    }
    ran
}

fn codes(ran: &[(String, Run)]) -> Vec<i32> {
    ran.iter().map(|(_, run)| run.code).collect()
}

#[test]
fn what_was_merged_is_applied_as_locked_and_each_night_tells_what_differs() {
    let registry = Registry::new();
    let mut program = std::fs::read(probe_binary()).unwrap();
    // Content of its own: what an engine has from another registry it pulls from nobody.
    program.extend(registry.address.as_bytes());
    registry.push_program("1", &program, &["serve"]);
    let project = TestProject::new("git6-ci");
    project.write("agents/a/agent.yaml", "id: a\nname: a\n");
    project.write("agents/a/agent.md", "Does.\n");
    let manifest = |memory: u32| {
        format!(
            "id: c\nimage: {}/x:1\ntools:\n  - name: read\n    description: Reads a file.\n    recommended_policy: allow\n    \
             input_schema: {{type: object}}\nresources: {{max_memory_mb: {memory}}}\n",
            registry.address
        )
    };
    project.write("agents/a/capabilities/c/manifest.yaml", &manifest(64));
    project.selu(&["lock"]).expect(0);

    // What was not locked is not applied.
    project.write("agents/a/capabilities/c/manifest.yaml", &manifest(96));
    let ran = job(&project, "apply");
    assert_eq!(codes(&ran), [2], "{}", ran[0].1.stdout);
    assert!(!project.is_deployed());
    project.write("agents/a/capabilities/c/manifest.yaml", &manifest(64));

    let ran = job(&project, "apply");
    assert_eq!(codes(&ran), [0], "{}{}", ran[0].1.stdout, ran[0].1.stderr);
    let ran = job(&project, "nightly");
    assert_eq!(
        codes(&ran),
        [0, 0],
        "{}{}",
        ran[1].1.stdout,
        ran[1].1.stderr
    );

    // Somebody stops it.
    docker(&["stop", "--time", "0", &project.resident("a", "c", 1)]);
    let ran = job(&project, "nightly");
    assert_eq!(
        codes(&ran),
        [2, 0],
        "{}{}",
        ran[0].1.stdout,
        ran[0].1.stderr
    );
    project.selu(&["destroy", "-y"]).expect(0);
}
