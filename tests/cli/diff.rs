//! `selu diff`: any two states, and what CI is told.

use std::process::Command;

use super::Desk;

/// Runs git in the project.
fn git(desk: &Desk, arguments: &[&str]) {
    let ran = Command::new("git")
        .current_dir(desk.path())
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(["-c", "commit.gpgSign=false"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
}

/// A committed project on the branch `main`.
fn committed() -> Desk {
    let desk = Desk::with_project();
    git(&desk, &["init", "--quiet", "--initial-branch", "main"]);
    git(&desk, &["add", "--all"]);
    git(&desk, &["commit", "--quiet", "--message", "first"]);
    desk
}

const WIDER: &str = "network: {mode: allowlist, hosts: [\"api.example.com:443\"]}\nresources: {max_memory_mb: 64}\n";

#[test]
fn a_change_is_told_with_its_grade_between_any_two_states() {
    let desk = committed();
    desk.run(&["diff"]).exits(0);
    assert_eq!(desk.run(&["diff"]).out, "No difference.\n");

    desk.manifest(WIDER);
    let expected = "\
2 widening, 1 narrowing, 0 neutral.

2 widening
  weather/api  network.mode
      it may reach what is listed, and nothing else
      none → allowlist
  weather/api  network.hosts
      it may reach `api.example.com:443` now
      (absent) → api.example.com:443

1 narrowing
  weather/api  limits.memory_mb
      it may have fewer MiB of memory
      128 → 64
";
    for arguments in [&["diff"][..], &["diff", "main"], &["diff", "HEAD", "."]] {
        assert_eq!(desk.run(arguments).exits(0).out, expected, "{arguments:?}");
    }
    assert_eq!(desk.run(&["diff", "--staged"]).out, "No difference.\n");
    git(&desk, &["add", "--all"]);
    assert_eq!(desk.run(&["diff", "--staged"]).exits(0).out, expected);
    git(&desk, &["commit", "--quiet", "--message", "second"]);
    assert_eq!(desk.run(&["diff"]).out, "No difference.\n");
    for range in [
        &["diff", "HEAD~1..HEAD"][..],
        &["diff", "HEAD~1..main"],
        &["diff", "HEAD~1", "HEAD"],
    ] {
        assert_eq!(desk.run(range).exits(0).out, expected, "{range:?}");
    }
    // From the other side it is the other way round.
    let back = desk.run(&["diff", "HEAD..HEAD~1"]).exits(0).out;
    assert!(
        back.starts_with("1 widening, 2 narrowing, 0 neutral.\n"),
        "{back}"
    );
}

#[test]
fn ci_stops_at_what_widens_and_at_nothing_else() {
    let desk = committed();
    desk.manifest("resources: {max_memory_mb: 64}\n");
    desk.run(&["diff", "--fail-on", "widening"]).exits(0);
    desk.run(&["diff", "--fail-on", "any"]).exits(2);
    desk.manifest(WIDER);
    let ran = desk
        .run(&["diff", "--fail-on", "widening", "--format", "json"])
        .exits(2);
    let schema = desk.run(&["schema", "review"]).exits(0).json();
    let review = ran.json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&review), "{review:#}");
    assert_eq!(review["findings"][0]["grade"], "widening");
    desk.run(&["diff", "--fail-on", "widenings"]).exits(64);
}

#[test]
fn a_comment_is_the_same_each_time_and_hostile_text_stays_text() {
    let desk = committed();
    let description = "Tells <img src=x onerror=alert(1)> @everyone [a](http://x) | `b` \\u202e";
    let manifest = "agents/weather/capabilities/api/manifest.yaml";
    let text = std::fs::read_to_string(desk.path().join(manifest)).unwrap();
    desk.write(
        manifest,
        &text.replace("Tells it", &format!("\"{description}\"")),
    );
    let comment = desk.run(&["diff", "--markdown"]).exits(0).out;
    assert_eq!(desk.run(&["diff", "--markdown"]).out, comment);
    assert!(
        comment.starts_with("<!-- selu review -->\n**1 widening"),
        "{comment}"
    );
    for raw in ["<img", "@everyone", "](", "http://", "\u{202e}"] {
        assert!(!comment.contains(raw), "{raw}: {comment}");
    }
    assert!(comment.contains("U+202E"), "{comment}");
}

#[test]
fn what_is_no_state_is_named_with_its_cure() {
    let desk = committed();
    desk.run(&["diff", "nothing"])
        .exits(1)
        .says("neither a file or directory nor a revision");
    desk.run(&["diff", "nothing..main"])
        .exits(1)
        .says("no revision");
    desk.run(&["diff", "main...HEAD"])
        .exits(64)
        .says("git merge-base");
    desk.run(&["diff", "a", "b", "c"]).exits(64);
    git(&desk, &["branch", "agents"]);
    desk.run(&["diff", "agents"]).exits(1).says("./agents");
    desk.run(&["diff", "refs/heads/agents"]).exits(0);
    desk.write("selu.lock", "version = 1\nnonsense = 2\n");
    desk.run(&["diff", "selu.lock", "selu.lock"])
        .exits(1)
        .says("selu.lock:2");
}

#[test]
fn a_state_that_does_not_compile_is_an_error_and_no_empty_one() {
    let desk = committed();
    desk.manifest("netwrok: {mode: none}\n");
    git(
        &desk,
        &["commit", "--quiet", "--all", "--message", "broken"],
    );
    desk.manifest("");
    desk.run(&["diff", "HEAD"])
        .exits(1)
        .says("HEAD does not compile");
}

#[test]
fn a_plan_and_a_directory_of_the_same_state_do_not_differ() {
    let desk = committed();
    let plan = desk
        .run(&["plan", "--offline", "--format", "json"])
        .exits(0)
        .out;
    desk.write("plan.json", &plan);
    assert_eq!(
        desk.run(&["diff", "plan.json", "."]).exits(0).out,
        "No difference.\n"
    );
    desk.manifest(WIDER);
    let found = desk.run(&["diff", "plan.json", "."]).exits(0).out;
    assert!(found.starts_with("2 widening"), "{found}");
}
