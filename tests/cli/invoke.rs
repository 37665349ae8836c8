//! `selu invoke` up to the engine: whatever can be refused without one is, and says why.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;

use camino::Utf8Path;
use selu_compiler::lock::Lock;
use selu_compiler::plan::ImageKind;

use crate::{Desk, Ran};

const CANARY: &str = "canary-77aa01";

/// Asks, allows and blocks; the last is discovered nowhere.
const TOOLS: &str = "id: api
image: weather:1
credentials:
  - {name: KEY, scope: system}
  - {name: TOKEN, scope: user, required: false}
tools:
  - name: forecast
    description: Tells it
    recommended_policy: allow
    input_schema:
      type: object
      properties: {city: {type: string}, days: {type: integer, minimum: 1}}
      required: [city]
      additionalProperties: false
  - name: book
    description: Books it
    recommended_policy: ask
    input_schema: {type: object}
  - name: wipe
    description: Wipes it
    recommended_policy: block
    input_schema: {type: object}
";

/// A project whose tools are locked, as `selu lock` leaves it.
pub(crate) fn locked() -> Desk {
    let desk = Desk::with_project();
    desk.write("agents/weather/capabilities/api/manifest.yaml", TOOLS);
    lock(&desk);
    desk
}

pub(crate) fn lock(desk: &Desk) {
    let root = Utf8Path::from_path(desk.path()).unwrap();
    let sources = selu_compiler::source::read(root);
    let project = selu_compiler::check::check(&sources).project.unwrap();
    let resolved = selu_compiler::resolve::resolve(&project, None, None);
    let mut plan = resolved.plan.unwrap();
    for instance in plan.instances.values_mut() {
        instance.image.kind = ImageKind::Registry;
        instance.image.digest = Some(format!("sha256:{}", "a".repeat(64)));
    }
    let lock = Lock::merge(None, &plan, &BTreeMap::new(), &project.settings).lock;
    desk.write("selu.lock", &lock.write(None));
}

/// Runs with the credential that everything needs.
fn invoke(desk: &Desk, arguments: &[&str]) -> Ran {
    let mut command = desk.command(&[&["invoke"], arguments].concat());
    command.env("SELU_CRED__WEATHER__API__KEY", CANARY);
    let ran = Ran::from(command.output().unwrap());
    assert!(!ran.out.contains(CANARY) && !ran.err.contains(CANARY));
    ran
}

#[test]
fn what_may_be_called_goes_as_far_as_the_engine() {
    let desk = locked();
    for target in ["weather/api", "api"] {
        invoke(&desk, &[target, "forecast", "city=Bern", "days=2"])
            .exits(1)
            .says("none.sock");
    }
}

#[test]
fn arguments_are_judged_by_the_locked_schema_with_pointers_into_them() {
    let desk = locked();
    let wrong = [
        (
            vec!["days=0", "ctiy=Bern"],
            "/days: 0 is less than the minimum of 1",
        ),
        (vec!["days=0", "ctiy=Bern"], "/city: this is required"),
        (
            vec!["days=0", "ctiy=Bern"],
            "/ctiy: the tool takes no such argument; `city`?",
        ),
        (
            vec!["--args", r#"{"city": 5}"#],
            "/city: 5 is not of type \"string\"",
        ),
        (vec!["--args", "[]"], "expected a JSON object"),
        (
            vec!["--args", r#"{"city": "a", "city": "b"}"#],
            "/city: this key stands twice",
        ),
        (vec!["--args", "@nowhere.json"], "nowhere.json"),
        (vec!["city"], "`city` is no KEY=VALUE"),
    ];
    for (arguments, text) in wrong {
        let all = [vec!["api", "forecast"], arguments].concat();
        invoke(&desk, &all).exits(1).says(text);
    }
    invoke(&desk, &["api", "forecast", "city=x", "--args", "{}"]).exits(64);
}

#[test]
fn arguments_come_from_a_file_and_from_standard_input() {
    let desk = locked();
    desk.write("good.json", r#"{"city": "Bern"}"#);
    desk.write("bad.json", r#"{"city": ["Bern"]}"#);
    invoke(&desk, &["api", "forecast", "--args", "@good.json"]).says("none.sock");
    invoke(&desk, &["api", "forecast", "--args", "@bad.json"]).says("/city: [\"Bern\"]");
    let mut command = desk.command(&["invoke", "api", "forecast", "--args", "-"]);
    command
        .env("SELU_CRED__WEATHER__API__KEY", CANARY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(br#"{"city": 1}"#).unwrap();
    drop(input);
    Ran::from(child.wait_with_output().unwrap())
        .exits(1)
        .says("/city: 1 is not of type");
}

#[test]
fn policy_blocks_and_asks_and_without_a_terminal_ask_is_a_refusal() {
    let desk = locked();
    invoke(&desk, &["api", "wipe"])
        .exits(1)
        .says("the policy of weather/api wipe is `block`, by the manifest");
    invoke(&desk, &["api", "wipe", "--yes-to", "weather/api/wipe"])
        .exits(1)
        .says("is `block`");
    invoke(&desk, &["api", "book"])
        .exits(1)
        .says("no terminal to ask on")
        .says("--yes-to weather/api/book");
    invoke(&desk, &["api", "book", "--yes-to", "weather/api/book"])
        .exits(1)
        .says("none.sock");
    invoke(&desk, &["api", "book", "--yes-to", "weather/api/bok"])
        .exits(64)
        .says("is not what is called, which is weather/api/book");
}

#[test]
fn what_is_unknown_unlocked_or_changed_is_refused_with_the_reason() {
    let desk = locked();
    invoke(&desk, &["api", "forcast"])
        .exits(1)
        .says("did you mean `forecast`?");
    invoke(&desk, &["weather/apy", "forecast"])
        .exits(1)
        .says("did you mean `weather/api`?");

    let manifest = TOOLS.replace("minimum: 1", "minimum: 0");
    desk.write("agents/weather/capabilities/api/manifest.yaml", &manifest);
    invoke(&desk, &["api", "forecast", "city=x"])
        .exits(1)
        .says("tool.forecast.input_schema/properties/days/minimum");
    lock(&desk);
    invoke(&desk, &["api", "forecast", "city=x", "days=0"]).says("none.sock");

    std::fs::remove_file(desk.path().join("selu.lock")).unwrap();
    invoke(&desk, &["api", "forecast", "city=x"])
        .exits(1)
        .says("no selu.lock");
}

#[test]
fn a_discovery_tool_is_not_callable_and_nothing_is_before_a_discovery() {
    let desk = Desk::with_project();
    desk.write(
        "agents/weather/capabilities/api/manifest.yaml",
        "id: api\nimage: weather:1\ntool_source: dynamic\n",
    );
    lock(&desk);
    invoke(&desk, &["api", "list_tools"])
        .exits(1)
        .says("`list_tools` is the discovery tool");
    invoke(&desk, &["api", "anything"])
        .exits(1)
        .says("are not known yet");
}

#[test]
fn required_credentials_that_are_missing_are_named_before_anything_else() {
    let desk = locked();
    let text = TOOLS.replace("scope: user, required: false", "scope: user");
    desk.write("agents/weather/capabilities/api/manifest.yaml", &text);
    lock(&desk);
    desk.run(&["invoke", "api", "forecast", "days=0"])
        .exits(1)
        .says("KEY (set SELU_CRED__WEATHER__API__KEY), TOKEN (one per user: say --user)");
}

#[test]
fn one_id_in_two_agents_must_be_told_apart() {
    let desk = locked();
    desk.write("agents/home/agent.yaml", "id: home\nname: Home\n");
    desk.write("agents/home/agent.md", "You are at home.\n");
    desk.write("agents/home/capabilities/api/manifest.yaml", TOOLS);
    lock(&desk);
    invoke(&desk, &["api", "forecast", "city=x"])
        .exits(64)
        .says("home/api and weather/api");
}

#[test]
fn a_refusal_is_json_where_json_is_asked_for() {
    let desk = locked();
    let ran = invoke(&desk, &["api", "wipe", "--format", "json"]).exits(1);
    let json = ran.json();
    assert_eq!(json["format_version"], "1.0");
    assert_eq!(json["exit_code"], 1);
    assert!(
        json["error"]["message"]
            .as_str()
            .unwrap()
            .contains("`block`")
    );
}
