//! What a person sees who wrote it wrong: one finding, at its place, with a cure that cures.

use crate::fixture::{Fixture, PROJECT, check_manifest, manifest};

/// Line, column, code and help of all findings.
fn found(fixture: &Fixture) -> Vec<String> {
    let checked = fixture.check();
    checked
        .diagnostics
        .iter()
        .map(|finding| {
            let origin = &finding.place.origin;
            format!(
                "{}:{} {}: {}",
                origin.line,
                origin.column,
                finding.code.name,
                finding.help.as_deref().unwrap_or_default()
            )
        })
        .collect()
}

/// Below `id` and `image`.
#[track_caller]
fn one(more: &str, expected: &str) {
    let text = format!("id: weather\nimage: a/b:1\n{more}");
    let found = found(&manifest(&text));
    assert!(
        found.len() == 1 && found[0].contains(expected),
        "{more:?}: {found:#?}"
    );
}

#[test]
fn what_is_not_yaml_says_what_to_write() {
    for (more, expected) in [
        ("x-a: @b/c # d\n", "3:6 yaml-syntax: quote it: \"@b/c\""),
        ("x-a: `b`\n", "3:6 yaml-syntax: quote it: \"`b`\""),
        ("x-a: [%b]\n", "3:7 yaml-syntax: put the text into quotes"),
        (
            "x-a: b: c\n",
            "3:7 yaml-syntax: a text with a colon and a blank",
        ),
        (
            "x-a: b\n  c: d\n",
            "4:4 yaml-syntax: begin the line in the same column",
        ),
        (
            "x-a: \"b\n",
            "3:6 yaml-syntax: end the text with the same quote",
        ),
        ("x-a: \"\\q\"\n", "3:6 yaml-syntax: double the backslash"),
        (
            "x-a: \"b\" c\n",
            "yaml-syntax: put all of it into the quotes",
        ),
        ("x-a:\tb\n", "3:5 tab-indentation: "),
        ("[a]: 1\n", "3:1 key-not-string: quote it if it is a key"),
        (
            "{{ a }}: 1\n",
            "3:1 key-not-string: a `{{ placeholder }}` needs quotes",
        ),
    ] {
        one(more, expected);
    }
    let suggested = manifest("id: weather\nimage: @a/b # c\n").check();
    let suggestion = suggested.diagnostics[0].suggestion.as_deref();
    assert_eq!(suggestion, Some("\"@a/b\""));
}

#[test]
fn of_what_has_no_value_nothing_more_is_said() {
    one("class: !!binary dG9vbA==\n", "3:8 yaml-tag");
    one("~: 1\n", "3:1 key-not-string: quote it: \"~\"");
    let schema = "tools:\n  - name: a\n    description: b\n    input_schema: {type: object, maxProperties: .inf}\n";
    one(schema, "6:49 number-without-json-form");
}

#[test]
fn a_misspelt_required_field_is_not_missing_besides() {
    assert_eq!(
        check_manifest("ID: weather\nimgae: a/b:1\n"),
        ["1:1 error misspelt-field", "2:1 error misspelt-field"]
    );
}

#[test]
fn blanks_and_what_cannot_be_seen_do_not_hide_a_field() {
    one("\u{a0}\u{a0}mode: none\n", "3:1 misplaced-field");
    one(
        "clas\u{200b}s: tool\n",
        "3:1 misspelt-field: did you mean `class`?",
    );
    one(
        "resources: {'<<': {max_memory_mb: 64}}\n",
        "3:13 bad-merge-key: leave the quotes away: <<",
    );
}

#[test]
fn a_text_over_several_lines_gets_words_and_no_paste() {
    for id in [">\n  weather\n", "|\n  weather\n", "weather\n  station\n"] {
        let checked = manifest(&format!("id: {id}image: a/b:1\n")).check();
        let [finding] = checked.diagnostics.as_slice() else {
            panic!("{id}: {:#?}", checked.diagnostics);
        };
        assert_eq!(finding.suggestion, None, "{id}");
        let help = finding.help.as_deref().unwrap_or_default();
        assert!(
            help.starts_with("write it behind the colon, in one line: weather"),
            "{help}"
        );
    }
}

#[test]
fn a_letter_that_only_looks_like_one_is_named() {
    let help = |id: &str| found(&manifest(&format!("id: {id}\nimage: a/b:1\n"))).join("\n");
    assert_eq!(
        help("w\u{435}ather"),
        "1:5 bad-id: `\u{435}` (U+0435) is none of the letters from a to z"
    );
    assert!(help("wea\u{200b}ther").contains("`\\u{200b}` (U+200B)"));
    assert_eq!(help("My_Cap"), "1:5 bad-id: write my-cap");
}

#[test]
fn folders_of_an_agent_that_are_read_for_nothing_are_told() {
    for (folder, expected) in [
        (
            "capability",
            "agents/helper/capability:0:0 error file-name-misspelt",
        ),
        (
            "Capabilities",
            "agents/helper/Capabilities:0:0 error file-name-misspelt",
        ),
        (
            "capabilites",
            "agents/helper/capabilites:0:0 error file-name-misspelt",
        ),
        ("l18n", "agents/helper/l18n:0:0 error file-name-misspelt"),
    ] {
        let path = format!("agents/helper/{folder}/maps/manifest.yaml");
        let mut files = Vec::from(PROJECT);
        files.push((&path, "id: maps\nimage: a/b:1\n"));
        assert_eq!(Fixture::new(files).lines(), [expected]);
    }
    let mut files = Vec::from(PROJECT);
    files.extend([
        ("agents/helper/maps/manifest.yaml", "id: maps\n"),
        (
            "agents/helper/capabilities-old/maps/manifest.yaml",
            "id: maps\n",
        ),
        ("agents/helper/notes/a.md", "Mine.\n"),
    ]);
    let told = ["agents/helper/maps/manifest.yaml:0:0 warning unread-file"];
    assert_eq!(Fixture::new(files).lines(), told);
}

#[test]
fn folders_of_a_project_that_hold_what_is_read_under_another_name_are_told() {
    let lines = |path: &str, text: &str| {
        let mut files = Vec::from(PROJECT);
        files.push((path, text));
        Fixture::new(files).lines()
    };
    for (path, told) in [
        ("Agents/maps/agent.yaml", "Agents"),
        ("agent/maps/agent.yaml", "agent"),
        ("agnets/maps/agent.yaml", "agnets"),
        ("capabilites/maps/manifest.yaml", "capabilites"),
    ] {
        let expected = format!("{told}:0:0 error file-name-misspelt");
        assert_eq!(lines(path, "id: maps\n"), [expected]);
    }
    // What holds something else is none of ours, and what is put away neither.
    for path in [
        "agent/main.py",
        "agent/maps/notes.md",
        "agents-old/maps/agent.yaml",
    ] {
        assert_eq!(lines(path, "x\n"), [""; 0], "{path}");
    }
}

#[test]
fn what_is_pasted_over_an_address_is_an_address() {
    let agent = "id: helper\nname: Helper\ninstall_steps:\n  - {id: token, type: input, label: a}\n  - {id: b, type: test, label: b, request: {url: \"https://a.example/{{tokn}}\"}}\n";
    let checked = Fixture::new([("agent.yaml", agent)]).check();
    let suggestions: Vec<&str> = checked
        .diagnostics
        .iter()
        .filter_map(|finding| finding.suggestion.as_deref())
        .collect();
    assert_eq!(suggestions, ["\"https://a.example/{{token}}\""]);
}

#[test]
fn a_bare_name_in_a_list_of_objects_gets_its_field() {
    let checked = Fixture::new([(
        "agent.yaml",
        "id: helper\nname: Helper\ncapabilities: [weather]\n",
    )])
    .check();
    let suggestion = checked.diagnostics[0].suggestion.as_deref();
    assert_eq!(suggestion, Some("{id: weather}"));
}

#[test]
fn one_fault_is_told_once() {
    let settings = format!("a = {}\n", "[".repeat(5_000));
    let mut files = Vec::from(PROJECT);
    files.push(("selu.toml", &settings));
    let found = Fixture::new(files).check().diagnostics;
    let mut distinct = found.clone();
    distinct.dedup();
    assert_eq!(found, distinct);
    assert!(found.len() < 10, "{}", found.len());
}
