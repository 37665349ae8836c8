use serde_json::json;

use super::super::*;
use super::{dynamic_instance, hash, key, plan, planned_tool, static_instance};
use crate::model::{NetworkMode, Settings, SharingMode};
use crate::plan::{Plan, PlannedInstance};

const API: &str = "weather/api";

fn locked(plan: &Plan) -> Lock {
    Lock::merge(None, plan, &BTreeMap::new(), &Settings::default()).lock
}

fn reasons(lock: &Lock, plan: &Plan) -> Vec<String> {
    stale(Some(lock), plan)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_lock_that_was_just_made_is_not_stale_24() {
    let plan = plan([(API, static_instance()), ("home/files", dynamic_instance())]);
    let lock = locked(&plan);
    assert_eq!(reasons(&lock, &plan), [""; 0]);
    assert_eq!(
        reasons(&Lock::read(&lock.write(None)).unwrap(), &plan),
        [""; 0]
    );
}

#[test]
fn no_lock_is_a_reason() {
    assert_eq!(stale(None, &plan([])), [Stale::NoLock]);
}

#[test]
fn missing_and_extra_instances_are_named_h05() {
    let lock = locked(&plan([(API, static_instance())]));
    let plan = plan([("home/files", static_instance())]);
    assert_eq!(
        stale(Some(&lock), &plan),
        [Stale::Missing(key("home/files")), Stale::Extra(key(API))]
    );
}

/// Path, old and new of the one reason after a change.
fn after(change: impl FnOnce(&mut PlannedInstance)) -> (String, Option<String>, Option<String>) {
    let lock = locked(&plan([(API, static_instance())]));
    let mut instance = static_instance();
    change(&mut instance);
    let mut reasons = stale(Some(&lock), &plan([(API, instance)]));
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    match reasons.remove(0) {
        Stale::Field { path, old, new, .. } => (path, old, new),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_field_has_its_own_reason_with_old_and_new() {
    type Change = fn(&mut PlannedInstance);
    let changes: &[(&str, &str, &str, Change)] = &[
        ("image.written", "ghcr.io/acme/weather:1", "x:2", |i| {
            i.image.written = "x:2".to_owned()
        }),
        ("class", "tool", "environment", |i| {
            i.class = Class::Environment
        }),
        ("filesystem", "temp", "workspace", |i| {
            i.filesystem = Filesystem::Workspace
        }),
        ("cache", "false", "true", |i| i.cache = true),
        ("sharing.mode", "exclusive", "shared", |i| {
            i.sharing.mode = SharingMode::Shared
        }),
        ("sharing.max_concurrent", "1", "2", |i| {
            i.sharing.max_concurrent = 2
        }),
        ("sharing.idle_timeout_seconds", "300", "5", |i| {
            i.sharing.idle_timeout_seconds = 5
        }),
        ("limits.memory_mb", "128", "256", |i| {
            i.limits.memory_mb = 256
        }),
        ("limits.nano_cpus", "500000000", "1", |i| {
            i.limits.nano_cpus = 1
        }),
        ("limits.cpu_seconds", "30", "31", |i| {
            i.limits.cpu_seconds = 31
        }),
        ("limits.pids", "64", "65", |i| i.limits.pids = 65),
        ("network.mode", "allowlist", "any", |i| {
            i.network_rules.mode = NetworkMode::Any
        }),
        ("network.hosts", "", "b.example", |i| {
            i.network_rules.hosts.push("b.example".to_owned())
        }),
        ("network.hosts", "api.example.org", "", |i| {
            drop(i.network_rules.hosts.pop())
        }),
        ("credential.API_KEY.scope", "system", "user", |i| {
            i.credentials[0].scope = CredentialScope::User
        }),
        ("credential.API_KEY.required", "true", "false", |i| {
            i.credentials[0].required = false
        }),
        ("credential.API_KEY", "system", "", |i| {
            i.credentials.clear()
        }),
        ("tool.forecast", "manifest", "", |i| i.tools.clear()),
        ("tool.forecast.policy", "ask", "allow", |i| {
            i.tools.get_mut("forecast").unwrap().policy = Policy::Allow
        }),
        ("tool.forecast.policy_origin", "manifest", "override", |i| {
            i.tools.get_mut("forecast").unwrap().policy_origin = PolicyOrigin::Override;
        }),
        (
            "tool.forecast.description",
            "Tomorrow's weather",
            "D",
            |i| {
                i.tools.get_mut("forecast").unwrap().description = "D".to_owned();
            },
        ),
        (
            "tool.forecast.input_schema/properties/city/type",
            "\"string\"",
            "\"integer\"",
            |i| {
                i.tools.get_mut("forecast").unwrap().input_schema["properties"]["city"]["type"] =
                    json!("integer");
            },
        ),
        ("tool.forecast.terminal_on_success", "false", "true", |i| {
            i.tools.get_mut("forecast").unwrap().terminal_on_success = true;
        }),
    ];
    for (path, old, new, change) in changes {
        let side = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        assert_eq!(after(change), ((*path).to_owned(), side(old), side(new)));
    }
    assert_eq!(
        after(|i| drop(i.prompts.insert("prompt.md".to_owned(), hash('f')))).0,
        "prompt.prompt.md"
    );
    assert_eq!(
        after(|i| i.image.digest = Some(hash('f'))).0,
        "image.digest"
    );
    assert_eq!(
        after(|i| drop(i.tools.insert(
            "new".to_owned(),
            planned_tool(Policy::Ask, PolicyOrigin::Manifest)
        )))
        .0,
        "tool.new"
    );
}

#[test]
fn reasons_read_as_sentences() {
    let lock = locked(&plan([(API, static_instance())]));
    let mut instance = static_instance();
    instance.limits.memory_mb = 256;
    instance.network_rules.hosts.pop();
    assert_eq!(
        reasons(&lock, &plan([(API, instance)])),
        [
            "`weather/api`: limits.memory_mb is `128` in the lock but `256` in the directory",
            "`weather/api`: network.hosts is `api.example.org` in the lock but not in the directory",
        ]
    );
}

#[test]
fn what_nobody_was_asked_for_is_not_compared() {
    let lock = locked(&plan([(API, static_instance())]));
    let mut offline = static_instance();
    offline.image.digest = None;
    assert_eq!(reasons(&lock, &plan([(API, offline.clone())])), [""; 0]);
    offline.image.kind = ImageKind::Unknown;
    assert_eq!(reasons(&lock, &plan([(API, offline)])), [""; 0]);
}

#[test]
fn a_folder_that_changed_is_a_reason_19() {
    let lock = locked(&plan([("home/files", dynamic_instance())]));
    let mut instance = dynamic_instance();
    instance.image.source = Some(hash('e'));
    // The id differs from build to build and is no reason.
    instance.image.digest = Some(hash('f'));
    let found = reasons(&lock, &plan([("home/files", instance)]));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("image.source"), "{found:?}");
}

#[test]
fn a_discovery_tool_that_changed_is_a_reason() {
    let lock = locked(&plan([("home/files", dynamic_instance())]));
    let mut instance = dynamic_instance();
    instance.discovery_tool = Some("tools".to_owned());
    let found = reasons(&lock, &plan([("home/files", instance)]));
    assert_eq!(
        found,
        ["`home/files`: discovery.tool is `list_tools` in the lock but `tools` in the directory"]
    );
}
