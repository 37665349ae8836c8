//! agent.yaml (A) and which capabilities an agent has (L2, L3).

use crate::fixture::{Fixture, PROJECT, WEATHER, check_agent};

const HEAD: &str = "id: helper\nname: Helper\n";
const SHARED: &str =
    "id: files\nimage: example.com/files:1\ncredentials: [{name: TOKEN, scope: user}]\n";

/// The small project with this agent.yaml and a shared capability `files`.
fn project(rest: &str) -> Fixture {
    let fixture = Fixture::new(PROJECT);
    fixture.write(
        "agents/helper/agent.yaml",
        format!("{HEAD}{rest}").as_bytes(),
    );
    fixture.write("capabilities/files/manifest.yaml", SHARED.as_bytes());
    fixture
}

const NAMED: &str = "capabilities: [{id: files}]\n";

#[test]
fn a_small_project_has_no_findings() {
    let fixture = Fixture::new(PROJECT);
    assert_eq!(fixture.lines(), Vec::<String>::new());
}

#[test]
fn an_agent_has_its_own_capabilities_and_the_shared_ones_it_names() {
    let checked = project(NAMED).check();
    assert_eq!(checked.diagnostics, []);
    let keys: Vec<String> = checked
        .project
        .unwrap()
        .instances()
        .map(|(key, ..)| key.to_string())
        .collect();
    assert_eq!(keys, ["helper/files", "helper/weather"]);
}

#[test]
fn two_agents_may_each_own_a_capability_of_the_same_id() {
    let fixture = Fixture::new(PROJECT);
    fixture.write("agents/other/agent.yaml", b"id: other\nname: Other\n");
    fixture.write("agents/other/agent.md", b"You help.\n");
    fixture.write(
        "agents/other/capabilities/weather/manifest.yaml",
        WEATHER.as_bytes(),
    );
    let keys: Vec<String> = fixture
        .check()
        .project
        .unwrap()
        .instances()
        .map(|(key, ..)| key.to_string())
        .collect();
    assert_eq!(keys, ["helper/weather", "other/weather"]);
}

#[test]
fn a_named_capability_that_exists_nowhere_is_an_error_with_a_close_name() {
    let fixture = project("capabilities: [{id: files}, {id: wether}]\n");
    let checked = fixture.check();
    assert_eq!(
        fixture.lines(),
        ["agents/helper/agent.yaml:3:34 error capability-not-found"]
    );
    assert_eq!(
        checked.diagnostics[0].suggestion.as_deref(),
        Some("weather")
    );
    assert!(checked.project.is_none());
}

#[test]
fn the_same_id_in_both_places_shows_both() {
    let fixture = project("capabilities: [{id: files}]\n");
    fixture.write(
        "agents/helper/capabilities/files/manifest.yaml",
        b"id: files\nimage: example.com/other:1\n",
    );
    let checked = fixture.check();
    let [finding] = checked.diagnostics.as_slice() else {
        panic!("{}", fixture.text());
    };
    assert_eq!(finding.code.name, "capability-in-both-places");
    let related: Vec<&str> = finding
        .related
        .iter()
        .map(|related| related.place.origin.file.as_str())
        .collect();
    assert_eq!(
        related,
        [
            "agents/helper/capabilities/files/manifest.yaml",
            "capabilities/files/manifest.yaml"
        ]
    );
}

#[test]
fn a_shared_capability_that_nobody_names_is_a_warning_and_checked_all_the_same() {
    let fixture = project("");
    fixture.write(
        "capabilities/files/manifest.yaml",
        b"id: files\nimage: Bad\n",
    );
    assert_eq!(
        fixture.lines(),
        [
            "capabilities/files/manifest.yaml:1:5 warning unused-shared-capability",
            "capabilities/files/manifest.yaml:2:8 error image-invalid"
        ]
    );
}

#[test]
fn a_capability_with_errors_is_still_found_by_its_name() {
    let fixture = project(NAMED);
    fixture.write(
        "capabilities/files/manifest.yaml",
        b"id: files\nimage: Bad\n",
    );
    assert_eq!(
        fixture.lines(),
        ["capabilities/files/manifest.yaml:2:8 error image-invalid"]
    );
}

#[test]
fn agent_ids_are_unique() {
    let fixture = Fixture::new(PROJECT);
    fixture.write("agents/other/agent.yaml", b"id: helper\nname: Other\n");
    assert_eq!(
        fixture.lines(),
        [
            "agents/other/agent.yaml:1:5 warning folder-name-differs",
            "agents/other/agent.yaml:1:5 error duplicate-agent"
        ]
    );
}

#[test]
fn fields_of_the_field_are_known_and_checked() {
    let full = "\
i18n: {default_locale: en, supported_locales: [en, de]}
model: {provider: acme, model_id: large, temperature: 0.2}
routing: inline
session: {trigger: mention, idle_timeout_minutes: 10, isolation: per_thread}
memory: {policy: recall, top_k: 5}
automation:
  schedules:
    - {id: morning, label: Morning, prompt: Say hello, cron_expression: 0 0 7 * * *, cron_description: at seven}
";
    assert_eq!(
        check_agent(&format!("{HEAD}{full}")),
        ["3:52 warning locale-incomplete"]
    );
    assert_eq!(
        check_agent(&format!(
            "{HEAD}model: {{temperature: 2.5}}\nrouting: auto_\nsession: {{isolation: threads}}\n"
        )),
        [
            "3:22 error out-of-range",
            "4:10 error not-one-of",
            "5:22 error not-one-of"
        ]
    );
    assert_eq!(
        check_agent("id: helper\nname: \"\"\n"),
        ["2:7 error out-of-range"]
    );
}

#[test]
fn an_agent_with_capabilities_needs_its_prompt() {
    let fixture = Fixture::new(PROJECT);
    std::fs::remove_file(fixture.root().join("agents/helper/agent.md")).unwrap();
    assert_eq!(
        fixture.lines(),
        ["agents/helper/agent.yaml:1:5 warning agent-without-prompt"]
    );
    assert_eq!(check_agent(HEAD), Vec::<String>::new());
}

#[test]
fn prompts_are_hashed_without_bom_and_carriage_returns() {
    let fixture = Fixture::new(PROJECT);
    let hash = |fixture: &Fixture| {
        let project = fixture.check().project.unwrap();
        project.agents["helper"].prompts["agent.md"].clone()
    };
    let plain = hash(&fixture);
    assert_eq!(plain.characters, 10);
    fixture.write("agents/helper/agent.md", "\u{feff}You help.\r\n".as_bytes());
    assert_eq!(hash(&fixture), plain);
    fixture.write("agents/helper/agent.md", b"You help!\n");
    assert_ne!(hash(&fixture).hash, plain.hash);
}

#[test]
fn lengths_of_prompts_are_counted_in_characters_and_not_in_bytes() {
    let fixture = Fixture::new(PROJECT);
    let text = "ü€🌦".repeat(666) + "x";
    fixture.write(
        "agents/helper/capabilities/weather/prompt.md",
        text.as_bytes(),
    );
    let project = fixture.check().project.unwrap();
    let prompt = &project.agents["helper"].capabilities["weather"].prompts["prompt.md"];
    assert_eq!(prompt.characters, 1_999);
}

#[test]
fn steps_name_earlier_steps_and_declared_credentials() {
    let step = |rest: &str| {
        format!(
            "{NAMED}install_steps:\n  - {{id: one, type: input}}\n  - {{id: two, type: input, {rest}}}\n"
        )
    };
    // That the steps serve nothing is another matter.
    let found = |rest: &str| -> Vec<String> {
        let lines = project(&step(rest)).lines();
        let other = |line: &String| !line.ends_with("step-without-effect");
        lines.into_iter().filter(other).collect()
    };
    for rest in [
        "depends_on: thre",
        "depends_on: [thre]",
        "depends_on: [two]",
        "request: {url: \"https://a.example/{{thre}}\"}",
    ] {
        let found = found(rest);
        assert_eq!(found.len(), 1, "{rest}: {found:?}");
        assert!(
            found[0].ends_with("error step-not-found"),
            "{rest}: {found:?}"
        );
    }
    for rest in [
        "store_as: {scope: user_credential, capability_id: file, credential_name: TOKEN}",
        "store_as: {scope: user_credential, capability_id: files, credential_name: TOKE}",
        "store_as: {scope: system_credential, capability_id: files, credential_name: TOKEN}",
    ] {
        let found = found(rest);
        assert_eq!(found.len(), 1, "{rest}: {found:?}");
        assert!(
            found[0].ends_with("error store-as-not-found"),
            "{rest}: {found:?}"
        );
    }
    for rest in [
        "depends_on: one",
        "depends_on: [one]",
        "request: {url: \"https://a.example/{{one}}\"}",
        "store_as: {scope: user_credential, capability_id: files, credential_name: TOKEN}",
    ] {
        assert_eq!(found(rest), Vec::<String>::new(), "{rest}");
    }
    assert_eq!(
        check_agent(&format!(
            "{HEAD}install_steps:\n  - {{id: a, type: input}}\n  - {{id: a, type: test}}\n"
        )),
        [
            "4:10 warning step-without-effect",
            "5:10 error duplicate-entry",
            "5:10 warning step-without-effect"
        ]
    );
}

#[test]
fn the_agent_of_the_format_documents_compiles() {
    let agent = "\
id: bring-shopping
name: Bring Shopping Assistant
routing: inline
session:
  trigger: mention
  idle_timeout_minutes: 30
memory:
  policy: none
  top_k: 0
";
    let manifest = "\
id: bring-shopping
class: tool
image: selu-cap-bring-shopping:latest

tool_source: dynamic
discovery_tool_name: list_tools
tools: []

credentials:
  - name: MAIL
    scope: user
    required: true
    description: \"Bring account email\"
";
    let fixture = Fixture::new([
        ("agent.yaml", agent),
        ("agent.md", "You shop.\n"),
        ("capabilities/bring-shopping/manifest.yaml", manifest),
        (
            "capabilities/bring-shopping/container/Dockerfile",
            "FROM scratch\n",
        ),
    ]);
    assert_eq!(
        fixture.lines(),
        ["capabilities/bring-shopping/manifest.yaml:3:8 warning image-latest"]
    );
    assert!(fixture.check().project.is_some());
}

#[test]
fn an_empty_prompt_counts_as_none() {
    let fixture = Fixture::new(PROJECT);
    fixture.write("agents/helper/agent.md", b" \n");
    assert_eq!(
        fixture.lines(),
        ["agents/helper/agent.yaml:1:5 warning agent-without-prompt"]
    );
}

#[test]
fn schedules_parse() {
    let schedule = |cron: &str| {
        format!("{HEAD}automation:\n  schedules:\n    - {{id: a, cron_expression: \"{cron}\"}}\n")
    };
    for good in [
        "0 0 7 * * *",
        "*/10 * * * * *",
        "0 30 7,19 1-15/2 JAN,mar MON-FRI",
        "0 0 0 1 1 ?",
        "59 59 23 31 12 7",
        "0 0 0 * * 0",
        "0 0 0 L * FRI#2",
    ] {
        assert_eq!(check_agent(&schedule(good)), Vec::<String>::new(), "{good}");
    }
    for bad in [
        "",
        "0 7 * * *",
        "0 0 7 * * * *",
        "60 0 7 * * *",
        "0 0 24 * * *",
        "0 0 7 0 * *",
        "0 0 7 * 13 *",
        "0 0 7 * * 8",
        "0 0 7-3 * * *",
        "0 */0 * * * *",
        "0 0 x * * *",
        "0 0 7 * FOO *",
        "0 0 , * * *",
        "0 0 1,,2 * * *",
        "0 0 1- * * *",
        "0 0 /2 * * *",
        "? 0 7 * * *",
        "@daily",
    ] {
        assert_eq!(
            check_agent(&schedule(bad)),
            ["5:32 error bad-cron-expression"],
            "{bad}"
        );
    }
}

#[test]
fn the_examples_of_this_repository_compile() {
    let examples = crate::fixture::repository().join("examples");
    let mut seen = 0;
    for entry in examples.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.join("selu.toml").is_file() {
            let checked = selu_compiler::check::check(&selu_compiler::source::read(&path));
            let found = crate::fixture::lines(&checked);
            assert!(checked.project.is_some(), "{path}: {found:?}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}
