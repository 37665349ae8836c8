use std::collections::BTreeSet;

use serde_json::json;

use super::super::*;
use super::{dynamic_instance, hash, key, plan, planned_tool, static_instance};
use crate::model::{OnChange, Origin, Settings, Tool};
use crate::plan::PlannedInstance;

pub(super) const FILES: &str = "home/files";

pub(super) fn tool(name: &str, recommended: Option<Policy>) -> Tool {
    Tool {
        name: name.to_owned(),
        description: format!("Does {name}"),
        input_schema: json!({"type": "object"}).into(),
        recommended,
        terminal_on_success: false,
        origin: None,
    }
}

pub(super) fn found(tools: impl IntoIterator<Item = Tool>) -> DiscoveryOutcome {
    DiscoveryOutcome::Found {
        tools: tools
            .into_iter()
            .map(|tool| (tool.name.clone(), tool))
            .collect(),
        credentials_present: BTreeSet::new(),
    }
}

pub(super) fn overrides(list: &[(&str, &str, Policy)]) -> Settings {
    let origin = Origin {
        file: "selu.toml".into(),
        line: 1,
        column: 1,
    };
    Settings {
        policies: list
            .iter()
            .map(|(instance, tool, policy)| {
                (
                    (key(instance), (*tool).to_owned()),
                    (*policy, origin.clone()),
                )
            })
            .collect(),
        ..Settings::default()
    }
}

pub(super) fn merge_with(
    previous: Option<&Lock>,
    outcome: Option<DiscoveryOutcome>,
    settings: &Settings,
) -> Merged {
    let plan = plan([(FILES, dynamic_instance())]);
    let discoveries = outcome
        .map(|outcome| (key(FILES), outcome))
        .into_iter()
        .collect();
    Lock::merge(previous, &plan, &discoveries, settings)
}

fn merge(previous: Option<&Lock>, outcome: DiscoveryOutcome) -> Merged {
    merge_with(previous, Some(outcome), &Settings::default())
}

/// Tool, policy and its origin.
fn policies(merged: &Merged) -> Vec<(String, Policy, PolicyOrigin)> {
    merged
        .lock
        .instances
        .values()
        .flat_map(|instance| &instance.tools)
        .map(|(name, tool)| (name.clone(), tool.policy, tool.policy_origin))
        .collect()
}

fn shown(merged: &Merged) -> Vec<String> {
    merged.changes.iter().map(ToString::to_string).collect()
}

#[test]
fn static_tools_have_the_plans_policy_at_every_compile_or_an_override() {
    let mut instance = static_instance();
    instance.tools.insert(
        "other".to_owned(),
        planned_tool(Policy::Block, PolicyOrigin::Default),
    );
    let plan = plan([("weather/api", instance)]);
    let settings = overrides(&[("weather/api", "other", Policy::Allow)]);
    let merged = Lock::merge(None, &plan, &BTreeMap::new(), &settings);
    assert_eq!(
        policies(&merged),
        [
            ("forecast".to_owned(), Policy::Ask, PolicyOrigin::Manifest),
            ("other".to_owned(), Policy::Allow, PolicyOrigin::Override)
        ]
    );
    let again = Lock::merge(
        Some(&merged.lock),
        &plan,
        &BTreeMap::new(),
        &Settings::default(),
    );
    assert_eq!(policies(&again)[1].1, Policy::Block);
    assert_eq!(again.changes, []);
}

#[test]
fn an_added_tool_has_what_is_recommended_else_block_d3() {
    let merged = merge(
        None,
        found([tool("a", Some(Policy::Allow)), tool("b", None)]),
    );
    assert_eq!(
        policies(&merged),
        [
            ("a".to_owned(), Policy::Allow, PolicyOrigin::Discovered),
            ("b".to_owned(), Policy::Block, PolicyOrigin::Default)
        ]
    );
    assert_eq!(
        shown(&merged),
        ["home/files: + a (allow)", "home/files: + b (block)"]
    );
}

#[test]
fn a_changed_tool_keeps_its_policy_and_gets_its_definition_d3() {
    let first = merge(None, found([tool("a", Some(Policy::Ask))]));
    let mut changed = tool("a", Some(Policy::Allow));
    changed.description = "Does more".to_owned();
    changed.input_schema = json!({"type": "object", "properties": {"x": {}}}).into();
    let merged = merge(Some(&first.lock), found([changed]));
    assert_eq!(
        policies(&merged),
        [("a".to_owned(), Policy::Ask, PolicyOrigin::Discovered)]
    );
    let locked = &merged.lock.instances[&key(FILES)].tools["a"];
    assert_eq!(locked.description, "Does more");
    assert_eq!(locked.recommended, Some(Policy::Allow));
    assert_eq!(
        shown(&merged),
        [
            "home/files: ~ a; description: `Does a` → `Does more`; input_schema: /properties: added {\"x\":{}}; \
             recommended_policy: ask → allow (not applied)"
        ]
    );
}

#[test]
fn a_removed_tool_is_gone_and_one_that_returns_inherits_nothing_d3() {
    let first = merge(None, found([tool("a", Some(Policy::Allow))]));
    let without = merge(Some(&first.lock), found([]));
    assert_eq!(policies(&without), []);
    assert_eq!(shown(&without), ["home/files: - a (allow)"]);
    let again = merge(Some(&without.lock), found([tool("a", None)]));
    assert_eq!(
        policies(&again),
        [("a".to_owned(), Policy::Block, PolicyOrigin::Default)]
    );
}

#[test]
fn i17_a_rename_is_one_removed_and_one_added() {
    let first = merge(None, found([tool("a", Some(Policy::Allow))]));
    let merged = merge(Some(&first.lock), found([tool("b", None)]));
    assert_eq!(
        shown(&merged),
        ["home/files: - a (allow)", "home/files: + b (block)"]
    );
}

#[test]
fn an_override_wins_and_its_end_brings_back_what_was_locked() {
    let settings = overrides(&[(FILES, "a", Policy::Block)]);
    let first = merge_with(None, Some(found([tool("a", Some(Policy::Ask))])), &settings);
    assert_eq!(
        policies(&first),
        [("a".to_owned(), Policy::Block, PolicyOrigin::Override)]
    );
    // The recommendation that is loosened in the same breath is not the one that counts.
    let ended = merge(Some(&first.lock), found([tool("a", Some(Policy::Allow))]));
    assert_eq!(
        policies(&ended),
        [("a".to_owned(), Policy::Ask, PolicyOrigin::Discovered)]
    );
}

#[test]
fn an_override_also_applies_where_nothing_was_discovered() {
    let first = merge(None, found([tool("a", Some(Policy::Ask))]));
    let settings = overrides(&[(FILES, "a", Policy::Allow)]);
    let merged = merge_with(Some(&first.lock), None, &settings);
    assert_eq!(
        policies(&merged),
        [("a".to_owned(), Policy::Allow, PolicyOrigin::Override)]
    );
    assert_eq!(shown(&merged), ["home/files: ~ a; policy: ask → allow"]);
}

#[test]
fn a_failed_discovery_keeps_what_is_locked_d4() {
    let outcome = DiscoveryOutcome::Found {
        tools: BTreeMap::from([("a".to_owned(), tool("a", Some(Policy::Ask)))]),
        credentials_present: BTreeSet::from(["B".to_owned(), "A".to_owned()]),
    };
    let first = merge(None, outcome);
    for outcome in [Some(DiscoveryOutcome::Failed), None] {
        let merged = merge_with(Some(&first.lock), outcome, &Settings::default());
        assert_eq!(merged.lock, first.lock);
        assert_eq!(merged.changes, []);
    }
    let discovery = first.lock.instances[&key(FILES)]
        .discovery
        .as_ref()
        .unwrap();
    assert_eq!(
        discovery.credentials_present,
        Some(vec!["A".to_owned(), "B".to_owned()])
    );
    let never = merge(None, DiscoveryOutcome::Failed);
    let discovery = never.lock.instances[&key(FILES)]
        .discovery
        .as_ref()
        .unwrap();
    assert_eq!(discovery.credentials_present, None);
}

#[test]
fn tools_of_a_manifest_leave_nothing_to_discovered_ones() {
    let mut before: PlannedInstance = static_instance();
    before.tools = BTreeMap::from([(
        "a".to_owned(),
        planned_tool(Policy::Allow, PolicyOrigin::Manifest),
    )]);
    let first = Lock::merge(
        None,
        &plan([(FILES, before)]),
        &BTreeMap::new(),
        &Settings::default(),
    );
    let merged = merge(Some(&first.lock), found([tool("a", None)]));
    assert_eq!(
        policies(&merged),
        [("a".to_owned(), Policy::Block, PolicyOrigin::Default)]
    );
    let failed = merge(Some(&first.lock), DiscoveryOutcome::Failed);
    assert_eq!(policies(&failed), []);
}

#[test]
fn hold_keeps_new_definitions_out_of_use() {
    let hold = |mut settings: Settings| {
        settings.on_change = OnChange::Hold;
        settings
    };
    let first = merge(
        None,
        found([tool("a", Some(Policy::Ask)), tool("gone", None)]),
    );
    let mut changed = tool("a", Some(Policy::Ask));
    changed.description = "Does more".to_owned();
    let settings = hold(overrides(&[(FILES, "a", Policy::Block)]));
    let merged = merge_with(
        Some(&first.lock),
        Some(found([changed, tool("new", Some(Policy::Allow))])),
        &settings,
    );
    let tools = &merged.lock.instances[&key(FILES)].tools;
    assert_eq!(tools.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(tools["a"].description, "Does a");
    // A person's own stricter policy is not held back.
    assert_eq!(tools["a"].policy, Policy::Block);
    let held: Vec<(&str, bool)> = merged
        .changes
        .iter()
        .map(|c| (c.tool.as_str(), c.held))
        .collect();
    assert_eq!(held, [("a", true), ("gone", false), ("new", true)]);
}

#[test]
fn local_images_are_locked_by_their_source_i3() {
    let merged = merge(None, found([]));
    let image = &merged.lock.instances[&key(FILES)].image;
    assert_eq!(
        (image.digest.as_ref(), image.source.as_ref()),
        (None, Some(&hash('d')))
    );

    let mut without_folder = dynamic_instance();
    without_folder.image.source = None;
    let plan = plan([(FILES, without_folder)]);
    let merged = Lock::merge(None, &plan, &BTreeMap::new(), &Settings::default());
    assert_eq!(
        merged.lock.instances[&key(FILES)].image.digest,
        Some(hash('c'))
    );
}

#[test]
fn an_instance_with_an_unknown_image_keeps_its_entry() {
    let first = Lock::merge(
        None,
        &plan([("weather/api", static_instance())]),
        &BTreeMap::new(),
        &Settings::default(),
    );
    let mut unknown = static_instance();
    unknown.image.kind = ImageKind::Unknown;
    unknown.image.digest = None;
    unknown.image.written = "ghcr.io/acme/weather:2".to_owned();
    let plan = plan([("weather/api", unknown)]);
    let kept = Lock::merge(
        Some(&first.lock),
        &plan,
        &BTreeMap::new(),
        &Settings::default(),
    );
    assert_eq!(kept.lock, first.lock);
    let out = Lock::merge(None, &plan, &BTreeMap::new(), &Settings::default());
    assert_eq!(out.lock, Lock::default());
}

#[test]
fn an_instance_that_left_the_directory_leaves_the_lock() {
    let first = merge(None, found([tool("a", None)]));
    let merged = Lock::merge(
        Some(&first.lock),
        &plan([]),
        &BTreeMap::new(),
        &Settings::default(),
    );
    assert_eq!(merged.lock, Lock::default());
}

#[test]
fn what_was_not_applied_keeps_its_old_entry_14() {
    let first = merge(None, found([tool("a", None)]));
    let mut merged = merge(Some(&first.lock), found([tool("b", None)]));
    merged.keep_previous(Some(&first.lock), [&key(FILES)]);
    assert_eq!(merged.lock, first.lock);
    assert_eq!(merged.changes, []);
    let mut fresh = merge(None, found([tool("b", None)]));
    fresh.keep_previous(None, [&key(FILES)]);
    assert_eq!(fresh.lock, Lock::default());
}
