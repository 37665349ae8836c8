//! `selu policy`.

use crate::Desk;

const SETTINGS: &str = "\
[project]
name = \"demo\" # ours

[policy] # what we think
\"weather/api/forecast\" = \"ask\"  # too chatty
\"weather/api/gone\" = \"allow\"
\"weather/old/x\" = \"block\"
";

fn settings(desk: &Desk) -> String {
    std::fs::read_to_string(desk.path().join("selu.toml")).unwrap()
}

#[test]
fn the_policy_is_explained_by_every_source_in_the_order_in_which_they_count() {
    let desk = Desk::with_project();
    let explain = ["policy", "explain", "weather/api/forecast"];
    let ran = desk.run(&explain).exits(0);
    assert_eq!(
        ran.out,
        "weather/api/forecast: allow, a model may call it freely\n  \
         1. [policy] in selu.toml: says nothing\n  \
         2. the manifest's recommendation: allow (agents/weather/capabilities/api/manifest.yaml:4)  ← decides\n  \
         3. otherwise: block\n"
    );
    desk.write("selu.toml", SETTINGS);
    let json = desk
        .run(&[&explain[..], &["--format", "json"]].concat())
        .exits(0)
        .json();
    assert_eq!(json["policy"], "ask");
    assert_eq!(json["sources"][0]["place"], "selu.toml:5");
    let decides: Vec<bool> = json["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|source| source["decides"] == true)
        .collect();
    assert_eq!(decides, [true, false, false]);
    desk.run(&["policy", "explain", "weather/api/forcast"])
        .exits(1)
        .says("did you mean weather/api/forecast?");
    desk.run(&["policy", "explain", "forecast"])
        .exits(1)
        .says("AGENT/CAP/TOOL");
}

#[test]
fn setting_and_removing_changes_one_line_and_a_misspelt_tool_none() {
    let desk = Desk::with_project();
    desk.write("selu.toml", SETTINGS);
    desk.run(&["policy", "set", "weather/api/forecast", "block"])
        .exits(0);
    assert_eq!(
        settings(&desk),
        SETTINGS.replace("= \"ask\"  # too chatty", "= \"block\"  # too chatty")
    );
    desk.run(&["policy", "set", "weather/api/forcast", "block"])
        .exits(1)
        .says("did you mean");
    desk.run(&["policy", "set", "weather/api/forecast", "never"])
        .exits(64);
    let ran = desk.run(&["policy", "rm", "weather/api/forecast"]).exits(0);
    assert_eq!(ran.out, "weather/api/forecast: removed\n");
    assert!(!settings(&desk).contains("forecast"), "{}", settings(&desk));
    desk.run(&["policy", "rm", "weather/api/forecast"])
        .exits(1)
        .says("has no \"weather/api/forecast\"");
    // A project without settings gets them; a lone agent is not made a project in passing (L1).
    std::fs::remove_file(desk.path().join("selu.toml")).unwrap();
    let set = ["policy", "set", "weather/api/forecast", "ask"];
    desk.run(&[&set[..], &["--project", "demo"]].concat())
        .exits(0);
    assert_eq!(
        settings(&desk),
        "[policy]\n\"weather/api/forecast\" = \"ask\"\n"
    );
    desk.run(&[&set[..], &["--dir", "agents/weather"]].concat())
        .exits(1)
        .says("no selu.toml here");
}

#[test]
fn policies_of_tools_that_are_gone_are_named_and_removed_with_one_command() {
    let desk = Desk::with_project();
    desk.write("selu.toml", SETTINGS);
    let list = desk.run(&["policy", "list"]).exits(0).says("policy prune");
    assert!(
        list.out
            .contains("weather/api/gone: allow in selu.toml:6, for a tool that is not there"),
        "{}",
        list.out
    );
    desk.run(&["check", "--deny", "warnings"]).exits(1);
    let json = desk
        .run(&["policy", "prune", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(
        json["removed"],
        serde_json::json!(["weather/api/gone", "weather/old/x"])
    );
    let (kept, _) = SETTINGS.split_once("\"weather/api/gone\"").unwrap();
    assert_eq!(settings(&desk), kept);
    desk.run(&["policy", "prune"])
        .exits(0)
        .says("is for a tool that is there");
    desk.run(&["check", "--deny", "warnings"]).exits(0);
}

#[test]
fn what_a_person_has_still_to_judge_comes_first() {
    let desk = Desk::with_project();
    desk.manifest("  - name: anew\n    description: D\n    input_schema: {type: object}\n  - name: zero\n    description: D\n    input_schema: {type: object}\n");
    let list = desk.run(&["policy", "list"]).exits(0).out;
    let names: Vec<&str> = list
        .lines()
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "weather/api/anew",
            "weather/api/zero",
            "weather/api/forecast"
        ],
        "{list}"
    );
}
