//! `[diagnostics]` of selu.toml: notes and warnings have levels, errors stay errors.

use selu_compiler::diag::{Severity, levels};

use crate::fixture::{Fixture, PROJECT, check_settings, lines};

/// A project whose only findings are a warning and a note of one manifest.
fn project(settings: &str) -> Fixture {
    let mut files = Vec::from(PROJECT);
    files.extend([
        ("selu.toml", settings),
        (
            "agents/helper/capabilities/maps/manifest.yaml",
            "id: maps\nimage: a/b\nnetwork: {mode: allowlist, hosts: [a.example.com]}\n",
        ),
    ]);
    Fixture::new(files)
}

fn found(settings: &str) -> Vec<String> {
    let checked = project(settings).check();
    let prefix = "agents/helper/capabilities/maps/manifest.yaml:";
    lines(&checked)
        .into_iter()
        .map(|line| line.trim_start_matches(prefix).to_owned())
        .collect()
}

#[test]
fn a_code_gets_its_level_by_id_or_name() {
    assert_eq!(
        found(""),
        ["2:8 warning image-untagged", "3:36 note host-any-port"]
    );
    assert_eq!(
        found("[diagnostics]\nimage-untagged = \"allow\"\nSELU0507 = \"warning\"\n"),
        ["3:36 warning host-any-port"]
    );
    assert_eq!(
        found("[diagnostics]\n\"selu0702\" = \"note\"\n\"host-any-port\" = \"allow\"\n"),
        ["2:8 note image-untagged"]
    );
}

#[test]
fn a_warning_made_an_error_keeps_the_project_from_compiling_and_says_why() {
    let fixture = project("[diagnostics]\nimage-untagged = \"error\"\n");
    assert!(fixture.check().project.is_none());
    assert!(project("").check().project.is_some());
    let text = fixture.text();
    assert!(text.contains("error[SELU0702]"), "{text}");
    assert!(
        text.contains("`image-untagged` is a warning unless"),
        "{text}"
    );
}

#[test]
fn denied_warnings_are_errors_and_notes_stay() {
    let mut findings = project("").check().diagnostics;
    levels::deny_warnings(&mut findings);
    let severities: Vec<Severity> = findings.iter().map(|found| found.severity).collect();
    assert_eq!(severities, [Severity::Error, Severity::Note]);
}

#[test]
fn an_error_cannot_be_lowered() {
    for level in ["allow", "note", "warning"] {
        let settings = format!("[diagnostics]\nmisspelt-field = \"{level}\"\n");
        assert_eq!(check_settings(&settings), ["2:18 error error-lowered"]);
    }
    assert!(check_settings("[diagnostics]\nmisspelt-field = \"error\"\n").is_empty());
}

#[test]
fn an_unknown_code_or_level_is_an_error_with_a_suggestion() {
    let fixture = project("[diagnostics]\nimage-untaged = \"allow\"\nSELU0507 = \"alow\"\n");
    let text = fixture.text();
    assert!(text.contains("did you mean `image-untagged`?"), "{text}");
    assert!(text.contains("did you mean `allow`?"), "{text}");
    assert_eq!(
        check_settings("[diagnostics]\nSELU9999 = \"allow\"\n"),
        ["2:1 error unknown-code"]
    );
    assert_eq!(
        check_settings("[diagnostics]\nSELU0702 = \"allow\"\nimage-untagged = \"note\"\n"),
        ["3:1 error level-given-twice"]
    );
}
