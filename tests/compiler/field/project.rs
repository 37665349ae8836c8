//! Section K: a whole directory.

use crate::fixture::{Fixture, WEATHER};

#[test]
fn k06_a_directory_without_a_project_is_an_error_and_never_an_empty_plan() {
    for files in [
        vec![("notes.txt", "")],
        vec![("src/agent.yaml.txt", "id: a\n")],
    ] {
        let checked = Fixture::new(files).check();
        assert!(checked.project.is_none());
        assert_eq!(checked.diagnostics[0].code.name, "no-project");
        assert!(
            checked.diagnostics[0]
                .message
                .contains("looked for agents/")
        );
    }
}

#[test]
fn k09_a_broken_capability_fails_the_compile_and_none_is_skipped_in_silence() {
    let fixture = Fixture::new([
        ("agent.yaml", "id: helper\nname: Helper\n"),
        ("agent.md", "You help.\n"),
        ("capabilities/weather/manifest.yaml", WEATHER),
        (
            "capabilities/broken/manifest.yaml",
            "id: broken\nimage: [\n",
        ),
        ("capabilities/without/prompt.md", "Ask.\n"),
        ("capabilities/old.bak/manifest.yaml", "["),
    ]);
    assert_eq!(
        fixture.lines(),
        [
            "capabilities/broken/manifest.yaml:2:8 error yaml-syntax",
            "capabilities/without:0:0 error capability-without-manifest",
        ]
    );
    assert!(fixture.check().project.is_none());
}

#[test]
fn k10_all_faults_of_all_files_come_in_one_run_sorted() {
    let fixture = Fixture::new([
        ("agent.yaml", "id: Helper\nname: 12\nrouting: quick\n"),
        ("agent.md", "You help.\n"),
        (
            "capabilities/a/manifest.yaml",
            "id: a\nimage: Bad\nclas: tool\n",
        ),
        (
            "capabilities/b/manifest.yaml",
            "id: b\nimage: a/b:1\nresources: {pids_limit: 0}\nnetwork: {mode: allowlist, hosts: [\"http://x\"]}\n",
        ),
    ]);
    assert_eq!(
        fixture.lines(),
        [
            "agent.yaml:1:5 error bad-id",
            "agent.yaml:2:7 error unquoted-string",
            "agent.yaml:3:10 error not-one-of",
            "capabilities/a/manifest.yaml:2:8 error image-invalid",
            "capabilities/a/manifest.yaml:3:1 error misspelt-field",
            "capabilities/b/manifest.yaml:3:25 error out-of-range",
            "capabilities/b/manifest.yaml:4:36 error host-invalid",
        ]
    );
    assert!(fixture.text().ends_with("7 errors\n"));
}
