//! `selu check` and `selu explain`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::Desk;

/// A project with one warning.
fn warned() -> Desk {
    let desk = Desk::with_project();
    desk.manifest("licence: MIT\n");
    desk
}

#[test]
fn warnings_fail_only_where_they_are_denied() {
    let desk = warned();
    let ran = desk
        .run(&["check"])
        .exits(0)
        .says("hint: `selu explain SELU0307`");
    assert!(ran.out.ends_with("\n1 warning\n"), "{}", ran.out);
    let ran = desk.run(&["check", "--deny", "warnings"]).exits(1);
    assert!(ran.out.ends_with("\n1 error\n"), "{}", ran.out);
    let json = desk
        .run(&["check", "--deny", "warnings", "--format", "json"])
        .exits(1)
        .json();
    assert_eq!(
        (&json["errors"], &json["exit_code"]),
        (&1.into(), &1.into())
    );
    desk.run(&["check", "--deny", "notes"]).exits(64);
}

#[test]
fn levels_of_the_project_hold_for_every_command() {
    let desk = warned();
    desk.run(&["plan", "--offline"])
        .exits(0)
        .says("warning[SELU0307]");
    let settings = |level: &str| {
        let text =
            format!("[project]\nname = \"demo\"\n[diagnostics]\nunknown-field = \"{level}\"\n");
        desk.write("selu.toml", &text);
    };
    settings("error");
    desk.run(&["check"]).exits(1);
    desk.run(&["plan", "--offline"])
        .exits(1)
        .says("error[SELU0307]");
    settings("allow");
    let ran = desk.run(&["check", "--deny", "warnings"]).exits(0);
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("no findings\n", "checked 1 agent and 1 capability\n")
    );
}

#[test]
fn what_was_checked_is_counted() {
    let desk = Desk::with_project();
    desk.write("agents/other/agent.yaml", "id: other\nname: Other\n");
    desk.write(
        "capabilities/idle/manifest.yaml",
        "id: idle\nimage: a/b:1\n",
    );
    desk.run(&["check"])
        .exits(0)
        .says("checked 2 agents and 2 capabilities");
    let lone = Desk::new();
    lone.write("manifest.yaml", "id: idle\nimage: a/b:1\n");
    lone.run(&["check"]).exits(0).says("checked 1 capability");
}

#[test]
fn json_shows_characters_that_hide_or_reorder() {
    let desk = Desk::with_project();
    desk.manifest("class: \"too\u{202e}l\u{200b}\"\n");
    for format in ["json", "sarif"] {
        let ran = desk.run(&["check", "--format", format]).exits(1);
        assert!(!ran.out.contains(['\u{202e}', '\u{200b}']), "{}", ran.out);
        serde_json::from_str::<serde_json::Value>(&ran.out).unwrap();
    }
    desk.manifest("licence\u{200b}: MIT\n");
    let ran = desk.run(&["check", "--format", "json"]).exits(0);
    assert!(ran.out.contains(r"licence\u200b"), "{}", ran.out);
    let message = ran.json()["diagnostics"][0]["message"].clone();
    assert!(message.as_str().unwrap().contains('\u{200b}'), "{message}");
}

#[test]
fn sarif_and_annotations_name_files_from_where_the_command_runs() {
    let desk = warned();
    std::fs::create_dir(desk.path().join("sub")).unwrap();
    std::fs::rename(desk.path().join("agents"), desk.path().join("sub/agents")).unwrap();
    let absolute = desk.path().canonicalize().unwrap().join("sub");
    let manifest = "sub/agents/weather/capabilities/api/manifest.yaml";
    for dir in ["sub", "./sub/", absolute.to_str().unwrap()] {
        let ran = desk
            .run(&["check", dir, "--format", "github"])
            .exits(0)
            .says("1 warning");
        let start = format!("::warning file={manifest},line=8,endLine=8,col=1,");
        assert!(ran.out.starts_with(&start), "{}", ran.out);
        assert_eq!(ran.out.lines().count(), 1);
        let log = desk
            .run(&["check", dir, "--format", "sarif"])
            .exits(0)
            .json();
        let location = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], manifest);
    }
}

#[test]
fn formats_of_findings_are_for_commands_that_find() {
    let desk = warned();
    for (format, takers) in [
        ("sarif", "for `selu check` and `selu diff` only"),
        ("github", "for `selu check` only"),
    ] {
        desk.run(&["plan", "--offline", "--format", format])
            .exits(64)
            .says(takers);
    }
}

#[test]
fn a_code_is_explained_by_id_and_by_name() {
    let desk = Desk::new();
    let text = desk.run(&["explain", "SELU0305"]).exits(0).out;
    assert!(text.starts_with("SELU0305 misspelt-field\nerror"), "{text}");
    for part in ["rules: M6", "Cure: ", "Example:\n    id: weather\n"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(desk.run(&["explain", "misspelt-field"]).exits(0).out, text);
    let json = desk
        .run(&["explain", "selu0305", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(json["name"], "misspelt-field");
    assert_eq!(json["rules"], serde_json::json!(["M6"]));
    desk.run(&["explain", "mispelt-field"])
        .exits(64)
        .says("did you mean `misspelt-field`?");
}

#[test]
fn a_watched_project_is_checked_again_when_a_file_changes() {
    let desk = Desk::with_project();
    let mut child = desk
        .command(&["check", "--watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = BufReader::new(child.stdout.take().unwrap()).lines();
    // The last line of each report counts.
    let mut report = || -> String {
        talk.by_ref()
            .map(Result::unwrap)
            .find(|line| line.ends_with("findings") || line.ends_with("error"))
            .unwrap()
    };
    assert_eq!(report(), "no findings");
    desk.manifest("class: toool\n");
    assert_eq!(report(), "1 error");
    desk.manifest("");
    assert_eq!(report(), "no findings");
    desk.write("agents/weather/capabilities/new/prompt.md", "Hello.\n");
    assert_eq!(report(), "1 error");
    std::fs::remove_dir_all(desk.path().join("agents/weather/capabilities/new")).unwrap();
    assert_eq!(report(), "no findings");
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_directory_without_a_project_and_a_format_for_programs_are_not_watched() {
    let desk = Desk::new();
    desk.run(&["check", "--watch"])
        .exits(1)
        .says("no project in .");
    warned()
        .run(&["check", "--watch", "--format", "json"])
        .exits(64)
        .json();
}
