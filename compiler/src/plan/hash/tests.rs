//! One row a field: changed in, and the hash changes; or not in it, and the hash stays (product.md 7).

use std::collections::BTreeMap;

use serde_json::json;

use super::{RunRules, canonical, spec_hash};
use crate::model::{Capability, Credential, CredentialScope, Filesystem, NetworkMode, SharingMode};
use crate::plan::ContainerSpec;
use crate::resolve::testing::{World, key_of};

fn pair(text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(text.to_owned(), text.to_owned())])
}

#[test]
fn every_setting_is_in_the_hash_but_labels_and_resolvers() {
    let world = World::new();
    let plan = world.plan();
    let spec = plan.instances[&key_of("weather/api")]
        .resident
        .clone()
        .unwrap()
        .spec;
    // A new field breaks this line until it has its row.
    let ContainerSpec {
        image: _,
        command: _,
        user: _,
        env: _,
        read_only_root: _,
        cap_drop: _,
        cap_add: _,
        no_new_privileges: _,
        seccomp: _,
        memory_bytes: _,
        memory_swap_bytes: _,
        nano_cpus: _,
        pids: _,
        nofile: _,
        shm_bytes: _,
        tmpfs: _,
        volumes: _,
        sysctls: _,
        dns: _,
        log_bytes: _,
        log_files: _,
        restart: _,
        labels: _,
    } = &spec;
    type Change = fn(&mut ContainerSpec);
    let rows: [(&str, bool, Change); 23] = [
        ("image", true, |s| s.image = "x".to_owned()),
        ("command", true, |s| s.command = Some(vec!["x".to_owned()])),
        ("user", true, |s| s.user = "0:0".to_owned()),
        ("env", true, |s| s.env = pair("x")),
        ("read_only_root", true, |s| s.read_only_root = false),
        ("cap_drop", true, |s| s.cap_drop = vec![]),
        ("cap_add", true, |s| s.cap_add = vec!["CHOWN".to_owned()]),
        ("no_new_privileges", true, |s| s.no_new_privileges = false),
        ("seccomp", true, |s| s.seccomp = "x".to_owned()),
        ("memory_bytes", true, |s| s.memory_bytes = 1),
        ("memory_swap_bytes", true, |s| s.memory_swap_bytes = 1),
        ("nano_cpus", true, |s| s.nano_cpus = 1),
        ("pids", true, |s| s.pids = 1),
        ("nofile", true, |s| s.nofile = 1),
        ("shm_bytes", true, |s| s.shm_bytes = Some(0)),
        ("tmpfs", true, |s| s.tmpfs = pair("/x")),
        ("volumes", true, |s| s.volumes = pair("/x")),
        ("sysctls", true, |s| s.sysctls = pair("x")),
        ("dns", false, |s| s.dns = vec![]),
        ("log_bytes", true, |s| s.log_bytes = 1),
        ("log_files", true, |s| s.log_files = 1),
        ("restart", true, |s| s.restart = false),
        ("labels", false, |s| s.labels = pair("x")),
    ];
    let before = spec_hash(&spec, None);
    assert!(before.starts_with("v1:sha256:"), "{before}");
    for (name, in_hash, change) in rows {
        let mut changed = spec.clone();
        change(&mut changed);
        assert_ne!(changed, spec, "{name}: the row changes nothing");
        assert_eq!(spec_hash(&changed, None) != before, in_hash, "{name}");
    }
}

fn hash_of(world: &World) -> String {
    world.plan().instances[&key_of("weather/api")]
        .resident
        .clone()
        .unwrap()
        .spec_hash
}

#[test]
fn of_a_capability_what_decides_how_it_runs_is_in_the_hash_and_nothing_else() {
    let credential = |name: &str, scope| Credential {
        name: name.to_owned(),
        scope,
        required: true,
        description: "before".to_owned(),
    };
    let start = || {
        let mut world = World::new();
        let api = world.capability("weather/api");
        api.credentials = vec![credential("KEY", CredentialScope::System)];
        api.network.mode = NetworkMode::Allowlist;
        api.network.hosts = vec!["a.example".to_owned(), "b.example".to_owned()];
        world
    };
    type Change = fn(&mut Capability);
    let rows: [(&str, bool, Change); 17] = [
        ("limits.memory_mb", true, |c| c.limits.memory_mb = 129),
        ("limits.nano_cpus", true, |c| c.limits.nano_cpus = 1),
        ("limits.cpu_seconds", true, |c| c.limits.cpu_seconds = 31),
        ("limits.pids", true, |c| c.limits.pids = 65),
        ("network.mode", true, |c| c.network.mode = NetworkMode::Any),
        ("network.hosts", true, |c| c.network.hosts.truncate(1)),
        ("filesystem", true, |c| c.filesystem = Filesystem::Temp),
        ("cache", true, |c| c.cache = true),
        ("sharing.mode", true, |c| {
            c.sharing.mode = SharingMode::Shared
        }),
        ("sharing.max_concurrent", true, |c| {
            c.sharing.max_concurrent = 2
        }),
        ("sharing.idle_timeout_seconds", true, |c| {
            c.sharing.idle_timeout_seconds = 301;
        }),
        ("credentials.name", true, |c| {
            c.credentials[0].name.push('2')
        }),
        ("credentials.scope", true, |c| {
            c.credentials[0].scope = CredentialScope::User;
        }),
        ("credentials.description", false, |c| {
            c.credentials[0].description.push('!');
        }),
        ("order of hosts", false, |c| c.network.hosts.reverse()),
        ("tools", false, |c| {
            c.tools = crate::model::ToolSource::Static(vec![]);
        }),
        ("place", false, |c| c.origin.line = 99),
    ];
    let before = hash_of(&start());
    for (name, in_hash, change) in rows {
        let mut world = start();
        change(world.capability("weather/api"));
        assert_eq!(hash_of(&world) != before, in_hash, "{name}");
    }
}

#[test]
fn a_generation_and_its_addresses_are_not_in_the_hash() {
    let mut world = World::new();
    let before = hash_of(&world);
    world.apply();
    let mut old = world.observed.containers.clone();
    world.observed.containers.clear();
    assert!(old.remove("selu_p_weather_api_1").is_some());
    let resident = world.plan().instances[&key_of("weather/api")]
        .resident
        .clone()
        .unwrap();
    assert_eq!(resident.generation, 2);
    assert_eq!(resident.spec_hash, before);
}

#[test]
fn g09_members_at_their_default_are_as_if_they_were_not_there() {
    let now = json!({"b": 1, "a": {"y": [2, 1], "x": "t"}});
    let later = json!({"a": {"x": "t", "y": [2, 1], "new": false}, "b": 1, "c": null, "d": [], "e": {"f": null}});
    assert_eq!(canonical(&now), r#"{"a":{"x":"t","y":[2,1]},"b":1}"#);
    assert_eq!(canonical(&later), canonical(&now));
    assert_eq!(canonical(&json!({"A": ""})), r#"{"A":""}"#);
}

#[test]
fn the_rules_label_is_json_of_exactly_the_rules() {
    let mut world = World::new();
    let rules = RunRules::of(world.capability("weather/api"), &[]);
    assert_eq!(
        rules.to_label(),
        r#"{"cpu_seconds":30,"filesystem":"none","network":{"mode":"none"},"sharing":{"idle_timeout_seconds":300,"max_concurrent":1,"mode":"exclusive"}}"#
    );
}

#[test]
fn the_rules_of_a_label_read_back() {
    let mut world = World::new();
    let capability = world.capability("weather/api");
    capability.network.mode = NetworkMode::Allowlist;
    capability.network.hosts = vec!["a.example:443".to_owned()];
    let private = ["a.example:443".to_owned()];
    for private in [&private[..], &[]] {
        let rules = RunRules::of(capability, private);
        assert_eq!(RunRules::from_label(&rules.to_label()), Some(rules));
    }
    assert_eq!(RunRules::from_label("{}"), None);
}
