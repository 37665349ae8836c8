//! `selu diff`: any two states, and what CI is told.

use std::process::Command;

use super::{Desk, project_lock};

/// A committed project on the branch `main`.
fn committed() -> Desk {
    let desk = Desk::with_project();
    desk.git(&["init", "--quiet", "--initial-branch", "main"]);
    desk.git(&["add", "--all"]);
    desk.git(&["commit", "--quiet", "--message", "first"]);
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
    desk.git(&["add", "--all"]);
    assert_eq!(desk.run(&["diff", "--staged"]).exits(0).out, expected);
    desk.git(&["commit", "--quiet", "--message", "second"]);
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
fn a_schedule_in_agent_yaml_widens_and_a_new_name_does_not() {
    let desk = committed();
    let stops_at_widening = ["diff", "--fail-on", "widening"];
    let agent = |text: &str| desk.write("agents/weather/agent.yaml", text);
    agent("id: weather\nname: Weather report\n");
    let told = desk.run(&stops_at_widening).exits(0).out;
    assert!(
        told.contains("0 widening, 0 narrowing, 1 neutral."),
        "{told}"
    );
    assert!(told.contains("      Weather → Weather report\n"), "{told}");
    agent(
        "id: weather\nname: Weather\nautomation:\n  schedules:\n    - id: morning\n      name: Morning\n      \
         cron_expression: \"0 0 7 * * *\"\n      prompt: Say how it will be.\n",
    );
    let told = desk.run(&stops_at_widening).exits(2).out;
    assert!(told.contains("it acts by itself now"), "{told}");
    assert!(told.contains("(absent) → 0 0 7 * * *"), "{told}");
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
    let comment = desk.run(&["diff", "--format", "markdown"]).exits(0).out;
    assert_eq!(desk.run(&["diff", "--format", "markdown"]).out, comment);
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
    desk.git(&["branch", "agents"]);
    desk.run(&["diff", "agents"]).exits(1).says("./agents");
    desk.run(&["diff", "refs/heads/agents"]).exits(0);
    desk.write("selu.lock", "version = 1\nnonsense = 2\n");
    desk.run(&["diff", "selu.lock", "selu.lock"])
        .exits(1)
        .says("selu.lock:2");
    desk.write("notes", "version = 1\n<<<<<<< ours\n");
    let json = desk
        .run(&["diff", "notes", ".", "--format", "json"])
        .exits(1)
        .json();
    assert_eq!(json["diagnostics"][0]["file"], "notes", "{json}");
    assert_eq!(json["diagnostics"][0]["code"], "SELU1002");
}

#[test]
fn an_index_with_an_unsettled_merge_is_named_with_its_files() {
    let desk = committed();
    desk.git(&["checkout", "--quiet", "-b", "other"]);
    desk.manifest("resources: {max_memory_mb: 64}\n");
    desk.git(&["commit", "--quiet", "--all", "--message", "other"]);
    desk.git(&["checkout", "--quiet", "main"]);
    desk.manifest("resources: {max_memory_mb: 32}\n");
    desk.git(&["commit", "--quiet", "--all", "--message", "ours"]);
    let merge = Command::new("git")
        .current_dir(desk.path())
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(["merge", "--quiet", "other"])
        .output()
        .unwrap();
    assert!(!merge.status.success(), "it conflicts");
    desk.run(&["diff", "--staged"])
        .exits(1)
        .says("a merge is not settled yet: agents/weather/capabilities/api/manifest.yaml")
        .says("git add");
}

#[test]
fn a_state_that_does_not_compile_is_an_error_and_no_empty_one() {
    let desk = committed();
    desk.manifest("netwrok: {mode: none}\n");
    desk.git(&["commit", "--quiet", "--all", "--message", "broken"]);
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

/// The settings and what a change of them adds.
fn settings(desk: &Desk, more: &str) {
    desk.write("selu.toml", &format!("[project]\nname = \"demo\"\n{more}"));
}

#[test]
fn the_base_says_what_needs_a_person_and_the_change_cannot_excuse_itself_s14() {
    let desk = committed();
    let review = ["diff", "--fail-on", "review"];
    let excuse = "[review]\nperson = []\n[[review.accepted]]\ninstance = \"weather/api\"\npath = \"network.hosts\"\nnew = \"api.example.com:443\"\nreason = \"ours\"\n[[review.accepted]]\ninstance = \"weather/api\"\npath = \"network.mode\"\nnew = \"allowlist\"\nreason = \"ours\"\n";
    desk.manifest(WIDER);
    settings(&desk, excuse);
    let ran = desk.run(&review).exits(2);
    assert!(ran.out.contains("review.accepted"), "{}", ran.out);
    desk.run(&["diff", "--fail-on", "widening"]).exits(2);

    // The acceptance goes through review by itself first; then the change passes.
    desk.manifest("");
    desk.run(&review).exits(2);
    desk.git(&["commit", "--quiet", "--all", "--message", "accepted"]);
    desk.manifest(WIDER);
    let ran = desk.run(&review).exits(0);
    assert!(ran.out.contains("accepted beforehand: ours"), "{}", ran.out);
    desk.run(&["diff", "--fail-on", "widening"]).exits(0);
    desk.run(&["diff", "--fail-on", "any"]).exits(2);
    // What is not a kind that needs a person passes `review` and not `widening`.
    desk.manifest("resources: {max_memory_mb: 256}\n");
    desk.run(&review).exits(0);
    desk.run(&["diff", "--fail-on", "widening"]).exits(2);
    // Where there is no older selu.toml everything that widens needs a person.
    desk.write("old.lock", "version = 1\n");
    let lock = ["diff", "old.lock", ".", "--fail-on", "review"];
    desk.run(&lock).exits(2).says("no selu.toml");
    // A misspelt rule is no rule that is passed over, on either side.
    settings(&desk, "[review]\npersn = []\n");
    desk.run(&review).exits(1).says("did you mean `person`?");
}

#[test]
fn a_project_without_a_name_is_compared_as_well() {
    let desk = committed();
    std::fs::remove_file(desk.path().join("selu.toml")).unwrap();
    assert_eq!(desk.run(&["diff"]).exits(0).out, "No difference.\n");
}

#[test]
fn code_scanning_gets_the_findings_at_their_places() {
    let desk = committed();
    desk.manifest(WIDER);
    let log = desk.run(&["diff", "--format", "sarif"]).exits(0).json();
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 3, "{log:#}");
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(
        place["artifactLocation"]["uri"],
        "agents/weather/capabilities/api/manifest.yaml"
    );
    desk.run(&["tools", "--format", "sarif"])
        .exits(64)
        .says("selu diff");
    desk.run(&["check", "--format", "markdown"])
        .exits(64)
        .says("selu plan");
}

#[test]
fn a_plan_says_what_it_means_for_rights_and_stops_at_what_widens() {
    let desk = committed();
    // Nothing is locked yet, so all of it is new.
    let offline = ["plan", "--offline"];
    let stop = ["plan", "--offline", "--fail-on", "widening"];
    let first = desk.run(&offline).exits(0);
    assert!(
        first.out.contains("For rights this means: 2 widening")
            && first.out.contains("▲ weather/api: a new instance"),
        "{}",
        first.out
    );
    desk.run(&stop).exits(2);
    desk.write("selu.lock", &project_lock("1"));
    let same = desk.run(&stop).exits(0);
    assert!(!same.out.contains("For rights"), "{}", same.out);
    desk.manifest("network: {mode: allowlist, hosts: [\"api.example.com:443\"]}\n");
    let wider = desk.run(&stop).exits(2);
    assert!(
        wider
            .out
            .contains("  ▲ weather/api network.hosts: it may reach `api.example.com:443` now\n"),
        "{}",
        wider.out
    );
    let json = desk
        .run(&[&stop[..], &["--format", "json"]].concat())
        .exits(2)
        .json();
    assert_eq!(json["review"]["findings"][0]["grade"], "widening");
    let schema = desk.run(&["schema", "plan"]).exits(0).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&json), "{json:#}");
    let comment = desk
        .run(&[&stop[..], &["--format", "markdown"]].concat())
        .exits(2)
        .out;
    assert!(
        comment.starts_with("<!-- selu plan -->\n**Offline")
            && comment.contains("<pre>\nProject demo"),
        "{comment}"
    );
    // The other way round nothing stops.
    desk.manifest("resources: {max_memory_mb: 64}\n");
    desk.run(&stop).exits(0);
    desk.run(&["plan", "--fail-on", "review"]).exits(64);
}
