//! Every right of an instance and of a tool, changed one by one.

mod live;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::Grade::{Narrowing, Neutral, Widening};
use super::{Finding, Grade, Kind, Review, Snapshot};
use crate::lock::{
    LockedCredential, LockedDiscovery, LockedImage, LockedInstance, LockedTool, ToolOrigin,
};
use crate::model::{
    Class, CredentialScope, Filesystem, InstanceKey, Limits, Network, NetworkMode, Policy, Sharing,
    SharingMode,
};
use crate::plan::{ImageKind, PolicyOrigin};

fn tool(policy: Policy) -> LockedTool {
    LockedTool {
        source: ToolOrigin::Discovered,
        policy,
        policy_origin: PolicyOrigin::Discovered,
        recommended: Some(policy),
        description: "Sends a message.".to_owned(),
        input_schema: json!({"type": "object", "properties": {"to": {"type": "string"}}, "additionalProperties": false}),
        terminal_on_success: false,
    }
}

fn instance() -> LockedInstance {
    LockedInstance {
        image: LockedImage {
            written: "mail:1".to_owned(),
            kind: ImageKind::Registry,
            digest: Some("sha256:1".to_owned()),
            source: None,
        },
        class: Class::Tool,
        filesystem: Filesystem::Temp,
        cache: false,
        sharing: Sharing {
            mode: SharingMode::Exclusive,
            max_concurrent: 2,
            idle_timeout_seconds: 300,
        },
        limits: Limits {
            memory_mb: 128,
            nano_cpus: 500_000_000,
            cpu_seconds: 30,
            pids: 64,
        },
        network: Network {
            mode: NetworkMode::Allowlist,
            hosts: vec![
                "*.example.com:443".to_owned(),
                "api.mail.net:443".to_owned(),
            ],
        },
        credentials: BTreeMap::from([(
            "PASSWORD".to_owned(),
            LockedCredential {
                scope: CredentialScope::User,
                required: true,
            },
        )]),
        prompts: BTreeMap::from([("prompt.md".to_owned(), "sha256:2".to_owned())]),
        discovery: Some(LockedDiscovery {
            tool: "list_tools".to_owned(),
            credentials_present: Some(Vec::new()),
        }),
        tools: BTreeMap::from([("send".to_owned(), tool(Policy::Ask))]),
    }
}

fn key() -> InstanceKey {
    InstanceKey::new("post", "mail")
}

fn snapshot(instance: LockedInstance) -> Snapshot {
    Snapshot {
        instances: BTreeMap::from([(key(), instance)]),
        ..Snapshot::default()
    }
}

fn findings(edit: impl FnOnce(&mut LockedInstance)) -> Vec<Finding> {
    let mut new = instance();
    edit(&mut new);
    Review::new(&snapshot(instance()), &snapshot(new)).findings
}

type Edit = fn(&mut LockedInstance);

#[test]
fn each_right_that_changes_is_one_finding_with_its_path_and_grade() {
    let table: &[(Edit, Kind, &str, Grade)] = &[
        (
            |new| new.image.digest = Some("sha256:9".to_owned()),
            Kind::Image,
            "image.digest",
            Widening,
        ),
        (
            |new| new.image.written = "mail:2".to_owned(),
            Kind::Image,
            "image.written",
            Neutral,
        ),
        (
            |new| new.image.digest = None,
            Kind::Image,
            "image.digest",
            Widening,
        ),
        (
            |new| new.class = Class::Environment,
            Kind::Class,
            "class",
            Widening,
        ),
        (
            |new| new.filesystem = Filesystem::Workspace,
            Kind::Filesystem,
            "filesystem",
            Widening,
        ),
        (
            |new| new.filesystem = Filesystem::None,
            Kind::Filesystem,
            "filesystem",
            Narrowing,
        ),
        (|new| new.cache = true, Kind::Cache, "cache", Widening),
        (
            |new| new.sharing.mode = SharingMode::Shared,
            Kind::Sharing,
            "sharing.mode",
            Widening,
        ),
        (
            |new| new.sharing.max_concurrent = 3,
            Kind::Sharing,
            "sharing.max_concurrent",
            Widening,
        ),
        (
            |new| new.sharing.idle_timeout_seconds = 200,
            Kind::Sharing,
            "sharing.idle_timeout_seconds",
            Narrowing,
        ),
        (
            |new| new.limits.memory_mb = 256,
            Kind::Limit,
            "limits.memory_mb",
            Widening,
        ),
        (
            |new| new.limits.memory_mb = 64,
            Kind::Limit,
            "limits.memory_mb",
            Narrowing,
        ),
        (
            |new| new.limits.nano_cpus = 1,
            Kind::Limit,
            "limits.nano_cpus",
            Narrowing,
        ),
        (
            |new| new.limits.cpu_seconds = 31,
            Kind::Limit,
            "limits.cpu_seconds",
            Widening,
        ),
        (
            |new| new.limits.pids = 65,
            Kind::Limit,
            "limits.pids",
            Widening,
        ),
        (
            |new| new.network.hosts.push("evil.net:443".to_owned()),
            Kind::Network,
            "network.hosts",
            Widening,
        ),
        (
            |new| new.network.hosts.push("www.example.com:443".to_owned()),
            Kind::Network,
            "network.hosts",
            Neutral,
        ),
        (
            |new| new.network.hosts.push("www.example.com".to_owned()),
            Kind::Network,
            "network.hosts",
            Widening,
        ),
        (
            |new| new.network.hosts.push("example.com:443".to_owned()),
            Kind::Network,
            "network.hosts",
            Widening,
        ),
        (
            |new| drop(new.network.hosts.pop()),
            Kind::Network,
            "network.hosts",
            Narrowing,
        ),
        (
            |new| {
                let key = LockedCredential {
                    scope: CredentialScope::System,
                    required: false,
                };
                new.credentials.insert("KEY".to_owned(), key);
            },
            Kind::Credential,
            "credential.KEY",
            Widening,
        ),
        (
            |new| new.credentials.clear(),
            Kind::Credential,
            "credential.PASSWORD",
            Narrowing,
        ),
        (
            |new| new.credentials.get_mut("PASSWORD").unwrap().scope = CredentialScope::System,
            Kind::Credential,
            "credential.PASSWORD.scope",
            Widening,
        ),
        (
            |new| new.credentials.get_mut("PASSWORD").unwrap().required = false,
            Kind::Credential,
            "credential.PASSWORD.required",
            Narrowing,
        ),
        (
            |new| {
                drop(
                    new.prompts
                        .insert("prompt.md".to_owned(), "sha256:3".to_owned()),
                )
            },
            Kind::Prompt,
            "prompt.prompt.md",
            Neutral,
        ),
        (
            |new| new.discovery = None,
            Kind::Discovery,
            "discovery.tool",
            Narrowing,
        ),
        (
            |new| new.discovery.as_mut().unwrap().tool = "other".to_owned(),
            Kind::Discovery,
            "discovery.tool",
            Neutral,
        ),
        (
            |new| {
                new.discovery.as_mut().unwrap().credentials_present =
                    Some(vec!["PASSWORD".to_owned()])
            },
            Kind::Discovery,
            "discovery.credentials_present",
            Neutral,
        ),
        (
            |new| {
                drop(
                    new.tools
                        .insert("other".to_owned(), tool_named("Other.", Policy::Allow)),
                )
            },
            Kind::Tool,
            "",
            Widening,
        ),
        (
            |new| {
                drop(
                    new.tools
                        .insert("other".to_owned(), tool_named("Other.", Policy::Block)),
                )
            },
            Kind::Tool,
            "",
            Neutral,
        ),
        (|new| new.tools.clear(), Kind::Tool, "", Narrowing),
        (
            |new| send(new).policy = Policy::Allow,
            Kind::Policy,
            "policy",
            Widening,
        ),
        (
            |new| send(new).policy = Policy::Block,
            Kind::Policy,
            "policy",
            Narrowing,
        ),
        (
            |new| send(new).recommended = Some(Policy::Allow),
            Kind::Recommendation,
            "recommended",
            Widening,
        ),
        (
            |new| send(new).recommended = None,
            Kind::Recommendation,
            "recommended",
            Narrowing,
        ),
        (
            |new| send(new).source = ToolOrigin::Manifest,
            Kind::Tool,
            "source",
            Narrowing,
        ),
        (
            |new| send(new).description = "Sends a mail.".to_owned(),
            Kind::Description,
            "description",
            Neutral,
        ),
        (
            |new| send(new).description = "Sends a mess\u{200b}age.".to_owned(),
            Kind::Description,
            "description",
            Widening,
        ),
        (
            |new| send(new).input_schema["properties"]["bcc"] = json!({}),
            Kind::Schema,
            "input_schema/properties/bcc",
            Widening,
        ),
        (
            |new| send(new).input_schema["title"] = json!("T\u{202e}x"),
            Kind::Schema,
            "input_schema/title",
            Widening,
        ),
        (
            |new| send(new).input_schema["title"] = json!("Title"),
            Kind::Schema,
            "input_schema/title",
            Neutral,
        ),
        (
            |new| send(new).terminal_on_success = true,
            Kind::Loop,
            "terminal_on_success",
            Neutral,
        ),
    ];
    for (edit, kind, path, grade) in table {
        let found = findings(edit);
        let [one] = found.as_slice() else {
            panic!("{path}: {found:#?}");
        };
        assert_eq!(
            (one.kind, one.path.as_str(), one.grade),
            (*kind, *path, *grade),
            "{one:#?}"
        );
    }
    assert_eq!(findings(|_| {}), []);
    // With those of agents and of selu.toml, which have tables of their own, no kind is left without a grade.
    let told: BTreeSet<Kind> = table.iter().map(|(_, kind, ..)| *kind).collect();
    let elsewhere = [Kind::Instance, Kind::Agent, Kind::Schedule, Kind::Setting];
    let left: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| !told.contains(kind) && !elsewhere.contains(kind))
        .collect();
    assert_eq!(left, []);
}

fn tool_named(description: &str, policy: Policy) -> LockedTool {
    LockedTool {
        description: description.to_owned(),
        input_schema: json!({"type": "object"}),
        ..tool(policy)
    }
}

fn send(instance: &mut LockedInstance) -> &mut LockedTool {
    instance.tools.get_mut("send").unwrap()
}

#[test]
fn a_mode_that_opens_is_said_once_and_a_list_under_any_grants_nothing_more() {
    let opened = findings(|new| {
        new.network = Network {
            mode: NetworkMode::Any,
            hosts: Vec::new(),
        };
    });
    let grades: Vec<Grade> = opened.iter().map(|finding| finding.grade).collect();
    // What was listed is still reachable, and not listed any more.
    assert_eq!(grades, [Widening, Neutral, Neutral], "{opened:#?}");
    assert_eq!(opened[0].path, "network.mode");
}

#[test]
fn a_private_destination_that_is_permitted_is_widening_n8() {
    let old = snapshot(instance());
    let mut new = old.clone();
    new.private
        .insert(key(), vec!["api.mail.net:443".to_owned()]);
    let grade = |review: Review| (review.findings[0].grade, review.findings.len());
    assert_eq!(grade(Review::new(&old, &new)), (Widening, 1));
    assert_eq!(grade(Review::new(&new, &old)), (Narrowing, 1));
}

#[test]
fn a_new_instance_lists_its_rights_and_a_removed_one_is_one_line() {
    let full = snapshot(instance());
    let added = Review::new(&Snapshot::default(), &full);
    let kinds: Vec<(Kind, Grade)> = added.findings.iter().map(|f| (f.kind, f.grade)).collect();
    assert_eq!(
        kinds,
        [
            (Kind::Instance, Widening),
            (Kind::Filesystem, Widening),
            (Kind::Network, Widening),
            (Kind::Network, Widening),
            (Kind::Network, Widening),
            (Kind::Credential, Widening),
            (Kind::Tool, Widening),
        ]
    );
    let removed = Review::new(&full, &Snapshot::default());
    assert_eq!(removed.findings.len(), 1);
    assert_eq!(removed.count(Grade::Narrowing), 1);
}

#[test]
fn a_rename_is_removed_and_added_with_a_hint() {
    let found = findings(|new| {
        let tool = new.tools.remove("send").unwrap();
        new.tools.insert("deliver".to_owned(), tool);
    });
    let says: Vec<&str> = found.iter().map(|finding| finding.says.as_str()).collect();
    assert_eq!(
        says,
        [
            "a new tool: a model may call it after a person agrees; perhaps `send` under another name",
            "the tool is gone; perhaps it is `deliver` now",
        ]
    );
}

#[test]
fn widening_comes_first_whatever_its_place() {
    let found = findings(|new| {
        new.image.written = "mail:2".to_owned();
        new.limits.pids = 1;
        send(new).policy = Policy::Allow;
    });
    let grades: Vec<Grade> = found.iter().map(|finding| finding.grade).collect();
    assert_eq!(grades, [Widening, Narrowing, Neutral]);
}
