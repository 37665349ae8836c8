//! Plans as people and programs read them.

use super::{plan_json, plan_text, summary};
use crate::model::{Credential, CredentialScope, NetworkMode, Policy, ToolSource};
use crate::plan::saved::PlanDocument;
use crate::resolve::testing::{World, tool};

fn text(world: &World) -> String {
    plan_text(&world.plan(), Some(&world.changes()), None).unwrap()
}

#[test]
fn a_first_plan_says_everything_that_will_be() {
    let mut world = World::new();
    let api = world.capability("weather/api");
    api.network.mode = NetworkMode::Allowlist;
    api.network.hosts = [
        "*.example.com:443",
        "192.0.2.1:443",
        "[2001:db8::1]",
        "b.example",
    ]
    .map(str::to_owned)
    .to_vec();
    api.credentials = vec![
        Credential {
            name: "API_KEY".to_owned(),
            scope: CredentialScope::System,
            required: true,
            description: String::new(),
        },
        Credential {
            name: "TOKEN".to_owned(),
            scope: CredentialScope::User,
            required: false,
            description: String::new(),
        },
    ];
    api.tools = ToolSource::Static(vec![
        tool("get_weather", Some(Policy::Allow)),
        tool("report", None),
    ]);
    world.add("weather", "maps").tools = ToolSource::Dynamic {
        discovery_tool: "list_tools".to_owned(),
    };
    insta::assert_snapshot!(text(&world));
}

#[test]
fn changes_show_old_and_new_and_drift_apart_from_intent() {
    let mut world = World::new();
    world.add("weather", "maps");
    world.add("weather", "old");
    world.add("weather", "same");
    world.apply();
    let limits = &mut world.capability("weather/api").limits;
    (limits.memory_mb, limits.cpu_seconds) = (256, 10);
    world.container("selu_p_weather_maps_1").spec.pids = 9;
    let agent = world.project.agents.get_mut("weather").unwrap();
    agent.capabilities.remove("old");
    insta::assert_snapshot!(text(&world));
}

#[test]
fn an_applied_world_has_nothing_to_do() {
    let mut world = World::new();
    world.apply();
    assert!(text(&world).ends_with("\nPlan: nothing to do.\n"));
    assert_eq!(summary(&world.changes()), "Plan: nothing to do.");
}

#[test]
fn without_an_engine_it_says_that_nothing_was_compared() {
    let world = World::new();
    let plan = crate::resolve::resolve(&world.project, None, None)
        .plan
        .unwrap();
    let text = plan_text(&plan, None, None).unwrap();
    assert!(text.contains("not known without an engine"), "{text}");
    assert!(text.ends_with("Offline: nothing was compared with an engine.\n"));
}

#[test]
fn what_others_wrote_cannot_move_the_cursor() {
    let mut world = World::new();
    let evil = "x\u{1b}[2J\u{202e}\n";
    world.project.agents.get_mut("weather").unwrap().name = evil.to_owned();
    world.capability("weather/api").tools = ToolSource::Static(vec![tool(evil, None)]);
    world.apply();
    world
        .container("selu_p_weather_api_1")
        .violations
        .push(evil.to_owned());
    let text = text(&world);
    let escaped = r"x\u{1b}[2J\u{202e}\n";
    assert_eq!(text.matches(escaped).count(), 3, "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
}

#[test]
fn json_holds_plan_and_changes_and_reads_back() {
    let world = World::new();
    let document = PlanDocument {
        format_version: crate::plan::FORMAT_VERSION.to_owned(),
        plan: world.plan(),
        changes: Some(world.changes()),
        targets: None,
        review: None,
    };
    let value = plan_json(&document).unwrap();
    assert_eq!(value["format_version"], "1.0");
    let plan: crate::plan::Plan = serde_json::from_value(value["plan"].clone()).unwrap();
    assert_eq!(plan, world.plan());
    let changes: crate::diff::ChangeSet = serde_json::from_value(value["changes"].clone()).unwrap();
    assert_eq!(changes, world.changes());
}
