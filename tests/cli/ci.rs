//! The templates of `docs/ci`: their steps are run here as a runner would, without an engine, credentials or containers.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use selu_compiler::lock::Lock;
use selu_compiler::{check, resolve, source};
use serde_yaml::Value;

use super::{Desk, Ran};

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const MANIFEST: &str = "agents/weather/capabilities/api/manifest.yaml";

fn template(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A repository with a base and a change on top of it, and the programs that a runner has.
struct Runner {
    desk: Desk,
    programs: tempfile::TempDir,
    base: String,
}

/// Writes the manifest with more fields, and the lock that fits it.
fn state(desk: &Desk, more: &str) {
    desk.write(
        MANIFEST,
        &format!(
            "id: api\nimage: ghcr.io/acme/weather:1@{DIGEST}\ntools:\n  - name: forecast\n    description: Tells it\n    \
             recommended_policy: allow\n    input_schema: {{type: object}}\n{more}"
        ),
    );
    let root = camino::Utf8Path::from_path(desk.path()).unwrap();
    let project = check::check(&source::read(root)).project.unwrap();
    let plan = resolve::resolve(&project, None, None).plan.unwrap();
    let lock = Lock::merge(None, &plan, &BTreeMap::new(), &project.settings).lock;
    desk.write("selu.lock", &lock.write(None));
}

impl Runner {
    fn new(base: &str, change: &str) -> Self {
        let desk = Desk::with_project();
        desk.git(&["init", "--quiet", "--initial-branch", "main"]);
        let commit = || {
            desk.git(&["add", "--all"]);
            desk.git(&["commit", "--quiet", "--allow-empty", "--message", "x"]);
        };
        state(&desk, base);
        commit();
        let base = desk.git(&["rev-parse", "HEAD"]);
        state(&desk, change);
        commit();
        let programs = tempfile::tempdir().unwrap();
        symlink(env!("CARGO_BIN_EXE_selu"), programs.path().join("selu")).unwrap();
        Self {
            desk,
            programs,
            base,
        }
    }

    /// A program that notes how it was called, and prints something.
    fn program(&self, name: &str, prints: &str) {
        let path = self.programs.path().join(name);
        let noted = self.noted(name);
        let script = format!(
            "#!/bin/sh\ncat >/dev/null\nprintf '%s\\n' \"$*\" >> '{}'\nprintf '%s' '{prints}'\n",
            noted.display()
        );
        crate::program::write(&path, &script);
    }

    fn noted(&self, name: &str) -> PathBuf {
        self.programs.path().join(format!("{name}.called"))
    }

    fn calls(&self, name: &str) -> String {
        std::fs::read_to_string(self.noted(name)).unwrap_or_default()
    }

    /// Runs a script as runners do: with bash, stopping at the first failure.
    fn script(&self, script: &str, variables: &[(&str, &str)]) -> Ran {
        let path = format!(
            "{}:{}",
            self.programs.path().display(),
            std::env::var("PATH").unwrap()
        );
        let output = self
            .desk
            .command(&[])
            .get_envs()
            .fold(Command::new("bash"), |mut command, (name, value)| {
                if let Some(value) = value {
                    command.env(name, value);
                }
                command
            })
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(self.desk.path())
            .env("PATH", path)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        Ran::from(output)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.desk.path().join(name)).unwrap()
    }
}

/// Name and script of each step of a job that runs one.
fn steps(workflow: &Value, job: &str) -> Vec<(String, String)> {
    let steps = workflow["jobs"][job]["steps"].as_sequence().unwrap();
    let steps = steps.iter().filter_map(|step| {
        let script = step["run"].as_str()?;
        assert!(
            !script.contains("${{"),
            "what others wrote gets into a script as a variable only: {script}"
        );
        Some((step["name"].as_str()?.to_owned(), script.to_owned()))
    });
    let steps: Vec<_> = steps.collect();
    assert!(!steps.is_empty());
    steps
}

const NARROWER: &str = "resources: {max_memory_mb: 64}\n";
const WIDER: &str = "network: {mode: allowlist, hosts: [\"api.example.com:443\"]}\n";

/// Runs the steps of a job one after the other; how the first one that failed ended.
fn github(runner: &Runner, job: &str) -> Option<(String, Ran)> {
    let workflow = template("docs/ci/github.yml");
    let summary = runner.desk.path().join("summary.md");
    for (name, script) in steps(&workflow, job) {
        let ran = runner.script(
            &script,
            &[
                ("BASE", &runner.base),
                ("PULL_REQUEST", "7"),
                ("GH_TOKEN", "t"),
                ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
            ],
        );
        if ran.code != Some(0) {
            return Some((name, ran));
        }
    }
    None
}

#[test]
fn githubs_steps_pass_a_change_that_only_takes_rights_away_and_comment_on_it() {
    let runner = Runner::new("", NARROWER);
    runner.program("gh", "");
    if let Some((name, ran)) = github(&runner, "review") {
        panic!("{name}: {}{}", ran.out, ran.err);
    }
    let comment = runner.read("comment.md");
    assert!(
        comment.starts_with("<!-- selu review -->\n**0 widening, 1 narrowing"),
        "{comment}"
    );
    assert!(comment.contains("<!-- selu plan -->"), "{comment}");
    assert!(comment.len() < 60_000);
    assert_eq!(runner.read("summary.md"), comment);
    assert!(runner.read("review.html").starts_with("<!DOCTYPE html>"));
    assert_eq!(
        runner.calls("gh"),
        "pr comment 7 --edit-last --create-if-none --body-file comment.md\n"
    );
}

#[test]
fn githubs_steps_stop_at_what_widens_once_everybody_can_read_why() {
    let runner = Runner::new("", WIDER);
    runner.program("gh", "");
    let (name, ran) = github(&runner, "review").unwrap();
    assert_eq!(name, "Stop at what needs a person");
    ran.exits(2);
    assert!(runner.read("comment.md").contains("api.example.com"));
    assert!(!runner.calls("gh").is_empty());
}

#[test]
fn githubs_steps_stop_where_the_lock_was_forgotten() {
    let runner = Runner::new("", NARROWER);
    runner.program("gh", "");
    let manifest = runner.read(MANIFEST).replace(": 64", ": 32");
    runner.desk.write(MANIFEST, &manifest);
    let (name, ran) = github(&runner, "review").unwrap();
    assert_eq!(name, "The lock fits the directory");
    ran.exits(2);
    assert!(
        !runner.calls("gh").is_empty(),
        "the change is told all the same"
    );
}

#[test]
fn what_runs_after_the_merge_needs_an_engine_and_says_so() {
    let runner = Runner::new("", "");
    for (job, step) in [
        ("apply", "Apply what was reviewed, or nothing"),
        ("nightly", "Everything runs as planned"),
    ] {
        let (name, ran) = github(&runner, job).unwrap();
        assert_eq!(name, step);
        ran.exits(1).says("no container engine answered");
    }
}

#[test]
fn a_pull_requests_job_has_no_credential_and_no_runner_of_ones_own() {
    let github = template("docs/ci/github.yml");
    let review = serde_yaml::to_string(&github["jobs"]["review"]).unwrap();
    let gitlab = template("docs/ci/gitlab.yml");
    let also = serde_yaml::to_string(&gitlab["review"]).unwrap();
    for job in [review, also] {
        for word in [
            "SELU_CRED",
            "secrets.",
            "self-hosted",
            "docker",
            "selu apply",
            "tags:",
        ] {
            assert!(!job.contains(word), "{word}: {job}");
        }
    }
    assert!(
        github["on"].get("pull_request_target").is_none(),
        "it would have secrets"
    );
}

fn gitlab(runner: &Runner, job: &str, token: &str) -> Ran {
    let template = template("docs/ci/gitlab.yml");
    let lines = template[job]["script"].as_sequence().unwrap().iter();
    let lines: Vec<&str> = lines.map(|line| line.as_str().unwrap()).collect();
    runner.script(
        &lines.join("\n"),
        &[
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &runner.base),
            ("CI_API_V4_URL", "https://gitlab.example.org/api/v4"),
            ("CI_PROJECT_ID", "5"),
            ("CI_MERGE_REQUEST_IID", "7"),
            ("SELU_NOTES_TOKEN", token),
        ],
    )
}

#[test]
fn gitlabs_steps_write_one_note_and_write_it_again_in_its_place() {
    let notes = "https://gitlab.example.org/api/v4/projects/5/merge_requests/7/notes";
    for (mine, call) in [
        (
            "",
            format!(
                "--request POST --header PRIVATE-TOKEN: t --data-urlencode body@comment.md {notes}\n"
            ),
        ),
        (
            "17",
            format!(
                "--request PUT --header PRIVATE-TOKEN: t --data-urlencode body@comment.md {notes}/17\n"
            ),
        ),
    ] {
        let runner = Runner::new("", NARROWER);
        runner.program("curl", "[]");
        runner.program("jq", mine);
        gitlab(&runner, "review", "t").exits(0);
        assert!(
            runner.calls("curl").ends_with(&call),
            "{}",
            runner.calls("curl")
        );
        assert!(
            runner
                .read("comment.md")
                .starts_with("<!-- selu review -->")
        );
    }
    let runner = Runner::new("", NARROWER);
    runner.program("curl", "[]");
    gitlab(&runner, "review", "").exits(0);
    assert_eq!(runner.calls("curl"), "", "without a token nobody is asked");
}

#[test]
fn gitlabs_steps_stop_at_what_widens_and_tell_both_nightly_failures() {
    let runner = Runner::new("", WIDER);
    gitlab(&runner, "review", "").exits(2);
    assert!(runner.read("review.html").contains("api.example.com"));
    gitlab(&runner, "apply", "")
        .exits(1)
        .says("no container engine");
    let nightly = gitlab(&runner, "nightly", "").exits(1);
    assert_eq!(
        nightly.err.matches("no container engine").count(),
        2,
        "{}",
        nightly.err
    );
}

#[test]
fn each_hook_runs_before_a_commit_and_is_started_by_what_it_looks_at() {
    let runner = Runner::new("", "");
    let hooks = template(".pre-commit-hooks.yaml");
    let hooks = hooks.as_sequence().unwrap();
    let entry = |at: usize| hooks[at]["entry"].as_str().unwrap();
    for at in 0..hooks.len() {
        runner.script(entry(at), &[]).exits(0);
    }
    state(&runner.desk, WIDER);
    runner.desk.git(&["add", "--all"]);
    runner.script(entry(0), &[]).exits(0);
    runner.script(entry(1), &[]).exits(0);
    assert_eq!(entry(2), "selu diff --staged --fail-on review");
    runner.script(entry(2), &[]).exits(2);
    runner.desk.write(MANIFEST, "id: api\n");
    runner.script(entry(0), &[]).exits(1);
    runner.script(entry(1), &[]).exits(1);

    for hook in hooks {
        let files = hook["files"].as_str().unwrap();
        let matches = |path: &str| {
            let found = Command::new("grep")
                .args(["-E", "-q", files])
                .stdin(std::process::Stdio::piped())
                .spawn()
                .and_then(|mut child| {
                    use std::io::Write;
                    child.stdin.take().unwrap().write_all(path.as_bytes())?;
                    child.wait()
                });
            found.unwrap().success()
        };
        for path in [
            MANIFEST,
            "selu.toml",
            "selu.lock",
            "agents/a/agent.de.md",
            "agents/a/i18n/de.yaml",
        ] {
            assert!(matches(path), "{path}");
        }
        for path in ["README.md", "src/main.rs", "other.yaml"] {
            assert!(!matches(path), "{path}");
        }
    }
}
