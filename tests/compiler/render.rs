//! How findings are shown.

use selu_compiler::check;
use selu_compiler::diag::render;

use crate::fixture::{Fixture, manifest};

#[test]
fn text_underlines_the_place_and_counts() {
    let text = manifest("id: weather\nimage: ghcr.io/Acme/cap:1\nlicence: MIT\n").text();
    insta::assert_snapshot!(text, @r"
    error[SELU0701]: `ghcr.io/Acme/cap:1` has the capital letter `A` in its path: paths are in lower case
     --> manifest.yaml:2:8
      |
    2 | image: ghcr.io/Acme/cap:1
      |        ^^^^^^^^^^^^^^^^^^
      |
    help: write `ghcr.io/acme/cap:1`
      |
    2 - image: ghcr.io/Acme/cap:1
    2 + image: ghcr.io/acme/cap:1
      |

    warning[SELU0307]: `licence` is not a field here and has no effect
     --> manifest.yaml:3:1
      |
    3 | licence: MIT
      | ^^^^^^^
      |
      = help: known are `cache`, `class`, `credentials`, `discovery_tool_name`, `filesystem`, `id`, `image`, `network`, `resources`, `sharing`, `tool_source` or `tools`

    1 error, 1 warning
    ");
}

#[test]
fn what_a_terminal_would_obey_is_shown_escaped() {
    let fixture =
        manifest("id: weather\nimage: a/b:1\nclass: \"\\e[2Jto\\u202eol\u{200b}\"\n\"x\\ey\": 1\n");
    let text = fixture.text();
    assert!(
        !text
            .chars()
            .any(|c| (c.is_control() && c != '\n') || ('\u{200b}'..='\u{202e}').contains(&c)),
        "{text:?}"
    );
    assert!(text.contains("\\u{1b}"), "{text}");
}

#[test]
fn colours_are_only_where_they_are_wanted() {
    let fixture = manifest("id: weather\n");
    let sources = fixture.read();
    let checked = check::check(&sources);
    assert!(!render::text(&checked.diagnostics, &sources, false).contains('\x1b'));
    assert!(render::text(&checked.diagnostics, &sources, true).contains('\x1b'));
}

#[test]
fn json_has_every_part() {
    let fixture = manifest("id: weather\nimage: a/b:1\nid: other\nclass: Tool\n");
    let json = render::json(&fixture.check().diagnostics);
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap(), @r#"
    {
      "diagnostics": [
        {
          "code": "SELU0202",
          "column": 1,
          "file": "manifest.yaml",
          "help": null,
          "length": 2,
          "line": 3,
          "message": "the key `id` is written twice in the same mapping",
          "name": "duplicate-key",
          "path": "id",
          "related": [
            {
              "column": 1,
              "file": "manifest.yaml",
              "length": 2,
              "line": 1,
              "message": "first written here",
              "path": ""
            }
          ],
          "severity": "error",
          "suggestion": null
        },
        {
          "code": "SELU0304",
          "column": 8,
          "file": "manifest.yaml",
          "help": "did you mean `tool`?",
          "length": 4,
          "line": 4,
          "message": "the string \"Tool\" is not allowed here; it takes `tool` or `environment`",
          "name": "not-one-of",
          "path": "class",
          "related": [],
          "severity": "error",
          "suggestion": "tool"
        }
      ],
      "errors": 2,
      "format_version": "1.0",
      "notes": 0,
      "warnings": 0
    }
    "#);
}

#[test]
fn seven_faults_in_three_files_come_in_one_run_in_order() {
    let fixture = Fixture::new([
        ("selu.toml", "[projct]\nname = \"demo\"\n"),
        ("agents/a/agent.yaml", "id: a\nname: 1\nrouting: car\n"),
        ("agents/a/agent.md", "You help.\n"),
        (
            "agents/a/capabilities/b/manifest.yaml",
            "id: b\nimage: A\nclass: x\nclass: y\nfilesystem: tmp\n",
        ),
    ]);
    assert_eq!(
        fixture.lines(),
        [
            "agents/a/agent.yaml:2:7 error unquoted-string",
            "agents/a/agent.yaml:3:10 error not-one-of",
            "agents/a/capabilities/b/manifest.yaml:2:8 error image-invalid",
            "agents/a/capabilities/b/manifest.yaml:3:8 error not-one-of",
            "agents/a/capabilities/b/manifest.yaml:4:1 error duplicate-key",
            "agents/a/capabilities/b/manifest.yaml:5:13 error not-one-of",
            "selu.toml:1:2 error unknown-setting",
        ]
    );
    assert!(fixture.text().ends_with("\n7 errors\n"));
}

#[test]
fn a_line_that_is_too_long_to_show_has_its_place_named() {
    let hosts = ", \":443\"".repeat(1_000);
    let fixture = manifest(&format!(
        "id: weather\nimage: a/b:1\nnetwork:\n  mode: allowlist\n  hosts: [\"a.example:443\"{hosts}]\n"
    ));
    let text = fixture.text();
    assert!(text.contains("manifest.yaml:5:29"), "{text}");
    assert!(text.ends_with("1000 errors\n"));
    // The length of the text is that of the findings, not of the line for each of them.
    assert!(text.len() < 400_000, "{}", text.len());
}
