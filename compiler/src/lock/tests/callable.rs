use super::super::*;
use super::{dynamic_instance, key, plan, planned_tool, static_instance};
use crate::model::Settings;
use crate::plan::Plan;

const API: &str = "weather/api";

fn locked(plan: &Plan) -> Lock {
    Lock::merge(None, plan, &BTreeMap::new(), &Settings::default()).lock
}

#[track_caller]
fn refusal(plan: &Plan, lock: Option<&Lock>, tool: &str) -> String {
    callable(plan, lock, &key(API), tool)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_locked_tool_is_callable_with_its_policy_and_locked_schema() {
    let plan = plan([(API, static_instance())]);
    let lock = locked(&plan);
    let found = callable(&plan, Some(&lock), &key(API), "forecast").unwrap();
    assert_eq!(found.policy, Policy::Ask);
    assert_eq!(found.tool.input_schema["required"][0], "city");
}

#[test]
fn what_was_never_locked_is_refused_with_the_reason() {
    let plan = plan([(API, static_instance())]);
    assert!(refusal(&plan, None, "forecast").contains("no selu.lock"));
    let text = refusal(&plan, Some(&Lock::default()), "forecast");
    assert!(
        text.contains("is in the directory but not in the lock"),
        "{text}"
    );
}

#[test]
fn a_tool_that_has_changed_since_it_was_locked_is_refused_with_the_change() {
    let before = plan([(API, static_instance())]);
    let lock = locked(&before);
    let mut instance = static_instance();
    let mut tool = planned_tool(Policy::Ask, PolicyOrigin::Manifest);
    tool.input_schema["properties"]["city"]["type"] = "integer".into();
    instance.tools.insert("forecast".to_owned(), tool);
    let text = refusal(&plan([(API, instance)]), Some(&lock), "forecast");
    assert!(
        text.contains("tool.forecast.input_schema/properties/city/type"),
        "{text}"
    );
    assert!(text.contains("selu apply"), "{text}");
}

#[test]
fn a_changed_prompt_does_not_stand_in_the_way_of_a_call() {
    let lock = locked(&plan([(API, static_instance())]));
    let mut instance = static_instance();
    instance.prompts.clear();
    assert!(callable(&plan([(API, instance)]), Some(&lock), &key(API), "forecast").is_ok());
}

#[test]
fn another_instances_difference_does_not_stand_in_the_way_of_a_call() {
    let lock = locked(&plan([(API, static_instance())]));
    let plan = plan([(API, static_instance()), ("home/files", dynamic_instance())]);
    assert!(callable(&plan, Some(&lock), &key(API), "forecast").is_ok());
}

#[test]
fn an_unknown_tool_or_capability_is_refused_with_a_close_name() {
    let plan = plan([(API, static_instance())]);
    let lock = locked(&plan);
    let text = refusal(&plan, Some(&lock), "forcast");
    assert!(text.contains("did you mean `forecast`?"), "{text}");
    let text = callable(&plan, Some(&lock), &key("weather/apo"), "forecast").unwrap_err();
    assert!(
        text.to_string().contains("did you mean `weather/api`?"),
        "{text}"
    );
}

#[test]
fn a_blocked_tool_is_refused_and_says_by_whom() {
    let mut instance = static_instance();
    let blocked = planned_tool(Policy::Block, PolicyOrigin::Override);
    instance.tools.insert("forecast".to_owned(), blocked);
    let plan = plan([(API, instance)]);
    let lock = locked(&plan);
    let text = refusal(&plan, Some(&lock), "forecast");
    assert!(text.contains("`block`, by [policy] in selu.toml"), "{text}");
}

#[test]
fn the_discovery_tool_is_not_callable_t4() {
    let plan = plan([(API, dynamic_instance())]);
    let lock = locked(&plan);
    let text = refusal(&plan, Some(&lock), "list_tools");
    assert!(text.contains("discovery tool"), "{text}");
    let text = refusal(&plan, Some(&lock), "anything");
    assert!(text.contains("not known yet"), "{text}");
}
