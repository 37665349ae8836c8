//! Every test changes a world that was applied, and reads what there is to do. Each then applies, and applies again:
//! nothing is left to do.

use std::collections::BTreeSet;

use crate::diff::{self, Action, Subject};
use crate::model::{Capability, Credential, CredentialScope, Filesystem, NetworkMode, SharingMode};
use crate::observed::{ContainerState, ObservedContainer};
use crate::plan::hash::sha256;
use crate::plan::spec::{PARENT_SECCOMP_PROFILE, seccomp_hash};
use crate::plan::{ImageKind, label};
use crate::resolve::testing::{DIGEST, OTHER_DIGEST, World, key_of};

const API: &str = "selu_p_weather_api_1";
const GATEWAY: &str = "selu_p_gateway";

type Edit = fn(&mut Capability);

/// What a change of an applied world asks for; afterwards the world has converged.
fn after(change: impl FnOnce(&mut World)) -> String {
    let mut world = World::new();
    world.apply();
    assert_eq!(world.says(), "", "an unchanged world");
    change(&mut world);
    let says = world.says();
    world.apply();
    assert_eq!(world.says(), "", "after apply");
    assert!(world.changes().is_empty());
    says
}

fn live(change: impl FnOnce(&mut ObservedContainer)) -> String {
    after(|world| change(world.container(API)))
}

#[test]
fn an_empty_engine_gets_the_gateway_first() {
    let world = World::new();
    assert_eq!(world.says(), "create gateway\ncreate weather/api\n");
}

#[test]
fn intent_in_limits_is_an_update_in_place_field_by_field() {
    let limits: [(&str, Edit, &str); 3] = [
        (
            "memory, raised",
            |api| api.limits.memory_mb = 256,
            "intent spec.memory_bytes: 134217728 -> 268435456\n  \
             intent spec.memory_swap_bytes: 134217728 -> 268435456\n",
        ),
        (
            "cpu",
            |api| api.limits.nano_cpus = 250_000_000,
            "intent spec.nano_cpus: 500000000 -> 250000000\n",
        ),
        (
            "pids",
            |api| api.limits.pids = 32,
            "intent spec.pids: 64 -> 32\n",
        ),
    ];
    for (what, change, reasons) in limits {
        let says = after(|world| change(world.capability("weather/api")));
        assert_eq!(says, format!("update weather/api\n  {reasons}"), "{what}");
    }
}

#[test]
fn every_other_field_of_a_capability_forces_a_replacement_by_itself() {
    let fields: [(&str, Edit); 10] = [
        ("rules.cpu_seconds", |api| api.limits.cpu_seconds = 10),
        ("rules.network.mode", |api| {
            api.network.mode = NetworkMode::Any;
        }),
        ("rules.filesystem", |api| api.filesystem = Filesystem::Temp),
        ("spec.tmpfs./tmp", |api| api.filesystem = Filesystem::Temp),
        ("spec.shm_bytes", |api| api.filesystem = Filesystem::Temp),
        ("spec.volumes./cache", |api| api.cache = true),
        ("rules.sharing.max_concurrent", |api| {
            api.sharing.max_concurrent = 2;
        }),
        ("rules.sharing.mode", |api| {
            api.sharing.mode = SharingMode::Shared;
        }),
        ("rules.sharing.idle_timeout_seconds", |api| {
            api.sharing.idle_timeout_seconds = 60;
        }),
        ("rules.credentials", |api| {
            api.credentials = vec![Credential {
                name: "API_KEY".to_owned(),
                scope: CredentialScope::System,
                required: true,
                description: String::new(),
            }];
        }),
    ];
    for (path, change) in fields {
        let says = after(|world| {
            let api = world.capability("weather/api");
            change(api);
            // What could be changed in place does not force, but goes along.
            api.limits.pids = 32;
        });
        assert!(says.contains("replace weather/api\n"), "{says}");
        assert!(
            says.contains(&format!("  intent! {path}")),
            "{path}: {says}"
        );
        assert!(says.contains("  intent spec.pids: 64 -> 32\n"), "{says}");
    }
}

#[test]
fn after_an_update_in_place_drift_is_still_told_from_intent() {
    let mut world = World::new();
    world.apply();
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    world.capability("weather/api").limits.memory_mb = 256;
    assert!(world.says().contains("intent spec.memory_bytes"));
    world.apply();
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    assert_eq!(world.says(), "", "applied twice");
    let made = world.container(API).spec.labels[label::SPEC].clone();
    assert_ne!(
        world.plan().instances[&key_of("weather/api")]
            .resident
            .as_ref()
            .unwrap()
            .spec_hash,
        made,
        "no label follows an update"
    );
    world.container(API).spec.memory_bytes = 1 << 30;
    world.container(API).spec.user = "0:0".to_owned();
    assert_eq!(
        world.says(),
        "replace weather/api\n  \
         drift! spec.user: 0:0 -> 1000:1000\n  \
         drift spec.memory_bytes: 1073741824 -> 268435456\n"
    );
    // And back again: the label says what was made, the lock what was applied.
    let api = world.container(API);
    (api.spec.memory_bytes, api.spec.user) = (256 << 20, "1000:1000".to_owned());
    world.capability("weather/api").limits.memory_mb = 128;
    assert_eq!(
        world.says(),
        "update weather/api\n  \
         intent spec.memory_bytes: 268435456 -> 134217728\n  \
         intent spec.memory_swap_bytes: 268435456 -> 134217728\n"
    );
}

#[test]
fn a_container_from_before_limits_were_labelled_is_kept_and_replaced_for_limits() {
    let mut world = World::new();
    world.apply();
    world.container(API).spec.labels.remove(label::LIMITS);
    assert_eq!(world.says(), "");
    world.capability("weather/api").limits.pids = 32;
    assert_eq!(
        world.says(),
        "replace weather/api\n  intent! spec.pids: 64 -> 32\n"
    );
}

#[test]
fn a_forged_label_of_limits_is_drift() {
    let says = live(|container| {
        let forged = r#"{"memory_bytes":1,"memory_swap_bytes":1,"nano_cpus":1,"pids":1}"#;
        container
            .spec
            .labels
            .insert(label::LIMITS.to_owned(), forged.to_owned());
    });
    assert!(
        says.starts_with("replace weather/api\n  drift! spec.labels.dev.selu.limits: "),
        "{says}"
    );
}

#[test]
fn intent_in_rules_that_no_container_setting_shows_names_its_path() {
    assert_eq!(
        after(|world| {
            let api = world.capability("weather/api");
            api.limits.cpu_seconds = 10;
            api.sharing.idle_timeout_seconds = 60;
            api.credentials = vec![Credential {
                name: "API_KEY".to_owned(),
                scope: CredentialScope::System,
                required: true,
                description: String::new(),
            }];
        }),
        "replace weather/api\n  \
         intent! rules.cpu_seconds: 30 -> 10\n  \
         intent! rules.credentials: - -> {\"API_KEY\":\"system\"}\n  \
         intent! rules.sharing.idle_timeout_seconds: 300 -> 60\n"
    );
}

#[test]
fn rules_that_open_something_move_to_a_larger_network_and_give_the_gateway_what_it_carries_with() {
    let said = after(|world| {
        let api = world.capability("weather/api");
        api.network.mode = NetworkMode::Allowlist;
        api.network.hosts = vec!["a.example:443".to_owned()];
    });
    let (closed, open) = (seccomp_hash(), sha256(PARENT_SECCOMP_PROFILE.as_bytes()));
    let gateway = format!(
        "replace gateway\n  \
         intent! spec.user: 65532:65532 -> 0:0\n  \
         intent! spec.cap_add: - -> NET_ADMIN SETGID SETUID\n  \
         intent! spec.seccomp: {closed} -> {open}\n  \
         intent! spec.memory_bytes: 67108864 -> 268435456\n  \
         intent! spec.memory_swap_bytes: 67108864 -> 268435456\n  \
         intent! spec.nano_cpus: 500000000 -> 2000000000\n  \
         intent! spec.tmpfs./run: - -> rw,noexec,nosuid,nodev,size=65536,mode=0755\n  \
         intent! spec.volumes./egress: - -> selu_p_egress\n  \
         intent! spec.sysctls.net.ipv4.ip_unprivileged_port_start: - -> 0\n  \
         intent! network.outside: none -> only\n"
    );
    let proxy = "http://gateway.selu.internal:3128";
    let weather = format!(
        "replace weather/api\n  \
         intent! spec.env.HTTPS_PROXY: - -> {proxy}\n  \
         intent! spec.env.HTTP_PROXY: - -> {proxy}\n  \
         intent! spec.env.NO_PROXY: - -> localhost,127.0.0.1,::1\n  \
         intent! spec.env.http_proxy: - -> {proxy}\n  \
         intent! spec.env.https_proxy: - -> {proxy}\n  \
         intent! spec.env.no_proxy: - -> localhost,127.0.0.1,::1\n  \
         intent! rules.network.hosts: - -> a.example:443\n  \
         intent! rules.network.mode: none -> allowlist\n  \
         intent! network.size: /28 -> /27\n"
    );
    assert_eq!(said, gateway + &weather);
}

#[test]
fn the_last_rule_that_opened_something_takes_the_gateways_privilege_along() {
    let mut world = World::new();
    world.capability("weather/api").network.mode = NetworkMode::Any;
    world.apply();
    assert!(world.plan().gateway.unwrap().carries());
    world.capability("weather/api").network.mode = NetworkMode::None;
    let said = world.says();
    assert!(
        said.contains("intent! spec.user: 0:0 -> 65532:65532\n"),
        "{said}"
    );
    assert!(
        said.contains("intent! network.closed: false -> true\n"),
        "{said}"
    );
    world.apply();
    assert_eq!(world.says(), "");
    assert!(!world.plan().gateway.unwrap().carries());
}

#[test]
fn a_permission_for_private_addresses_replaces_and_names_itself() {
    let said = after(|world| {
        world.capability("weather/api").network.mode = NetworkMode::Any;
        world.apply();
        let private = vec!["db.corp.example:5432".to_owned()];
        let settings = &mut world.project.settings;
        settings.private.insert(key_of("weather/api"), private);
        let policy = world.plan().gateway.unwrap().policy;
        let rules: Vec<_> = policy.into_values().map(|rule| rule.private).collect();
        assert_eq!(rules, [["db.corp.example:5432"]]);
    });
    assert_eq!(
        said,
        "replace weather/api\n  intent! rules.private: - -> db.corp.example:5432\n"
    );
}

#[test]
fn another_image_replaces_without_noise_about_its_labels() {
    let says = after(|world| {
        world.image().digest = Some(OTHER_DIGEST.to_owned());
        world
            .image()
            .labels
            .insert("maintainer".to_owned(), "acme".to_owned());
    });
    assert_eq!(
        says,
        format!(
            "replace weather/api\n  intent! spec.image: ghcr.io/acme/api@{DIGEST} -> ghcr.io/acme/api@{OTHER_DIGEST}\n"
        )
    );
}

#[test]
fn drift_in_limits_is_mended_in_place() {
    assert_eq!(
        live(|container| {
            container.spec.memory_bytes = 1 << 30;
            container.spec.restart = false;
        }),
        "update weather/api\n  \
         drift spec.memory_bytes: 1073741824 -> 134217728\n  \
         drift spec.restart: false -> true\n"
    );
}

#[test]
fn drift_that_the_engine_cannot_mend_replaces() {
    assert_eq!(
        live(|container| {
            container.spec.user = "0:0".to_owned();
            container.spec.pids = 1000;
            container
                .spec
                .env
                .insert("LD_PRELOAD".to_owned(), "/x".to_owned());
        }),
        "replace weather/api\n  \
         drift! spec.user: 0:0 -> 1000:1000\n  \
         drift! spec.env.LD_PRELOAD: /x -> -\n  \
         drift spec.pids: 1000 -> 64\n"
    );
}

#[test]
fn a_violation_a_foreign_network_and_a_lost_one_replace() {
    assert_eq!(
        live(|container| container.violations.push("a device /dev/kvm".to_owned())),
        "replace weather/api\n  drift! violations: a device /dev/kvm -> -\n"
    );
    assert_eq!(
        live(|container| {
            container
                .networks
                .insert("bridge".to_owned(), "172.17.0.2".to_owned());
        }),
        "replace weather/api\n  drift! networks.bridge: 172.17.0.2 -> -\n"
    );
    assert_eq!(
        after(|world| {
            // An engine removes a network only after its containers have left it.
            world.observed.networks.remove(API);
            world.container(API).networks.clear();
            world.container(GATEWAY).networks.remove(API);
        }),
        "replace weather/api\n  drift! network: - -> its own network\n"
    );
}

#[test]
fn a_lost_network_hides_no_intent() {
    assert_eq!(
        after(|world| {
            world.observed.networks.remove(API);
            world.container(API).networks.clear();
            world.container(GATEWAY).networks.remove(API);
            world.capability("weather/api").limits.pids = 32;
        }),
        "replace weather/api\n  \
         intent spec.pids: 64 -> 32\n  \
         drift! network: - -> its own network\n"
    );
}

#[test]
fn a_network_that_was_opened_or_entered_replaces() {
    assert_eq!(
        after(|world| {
            let network = world.observed.networks.get_mut(API).unwrap();
            network.closed = false;
            network.attached.push("stranger".to_owned());
        }),
        "replace weather/api\n  \
         drift! network.closed: false -> true\n  \
         drift! network.attached: stranger -> -\n"
    );
}

#[test]
fn what_stopped_is_started_and_its_missing_address_is_no_drift() {
    for (state, says) in [
        (ContainerState::Created, "never started"),
        (ContainerState::Paused, "paused"),
        (
            ContainerState::Exited {
                code: 137,
                oom_killed: true,
            },
            "stopped, out of memory",
        ),
        (
            ContainerState::Exited {
                code: 3,
                oom_killed: false,
            },
            "stopped, exit code 3",
        ),
    ] {
        assert_eq!(
            live(|container| {
                container.state = state;
                container
                    .networks
                    .values_mut()
                    .for_each(std::string::String::clear);
            }),
            format!("start weather/api\n  drift state: {says} -> running\n")
        );
    }
}

#[test]
fn what_only_stopped_may_sleep_and_nothing_else_may_x4() {
    let exited = |oom_killed| ContainerState::Exited {
        code: 143,
        oom_killed,
    };
    let asked = BTreeSet::from([key_of("weather/api")]);
    let nobody = BTreeSet::new();
    for (state, asked, action) in [
        (exited(false), &nobody, Action::NoOp),
        (exited(false), &asked, Action::Start),
        (exited(true), &nobody, Action::Start),
        (ContainerState::Paused, &nobody, Action::Start),
        (ContainerState::Created, &nobody, Action::Start),
    ] {
        let mut world = World::new();
        world.apply();
        world.container(API).state = state.clone();
        let changes = world
            .changes()
            .asleep(&world.plan(), &world.observed, asked);
        let of_api = |subject: &Subject| *subject == Subject::Instance(key_of("weather/api"));
        let found = changes
            .changes
            .iter()
            .find(|change| of_api(&change.subject));
        assert_eq!(found.unwrap().action, action, "{state:?}");
    }
    // One that differs otherwise is changed, stopped or not.
    let mut world = World::new();
    world.apply();
    world.container(API).state = exited(false);
    world.capability("weather/api").limits.pids = 32;
    let before = world.changes();
    let after = before
        .clone()
        .asleep(&world.plan(), &world.observed, &nobody);
    assert_eq!(after, before);
}

#[test]
fn a_dead_container_is_replaced() {
    assert_eq!(
        live(|container| container.state = ContainerState::Dead),
        "replace weather/api\n  drift! state: dead -> running\n"
    );
}

#[test]
fn g09_a_hash_of_another_version_alone_changes_nothing() {
    let relabel = |container: &mut ObservedContainer, hash: &str| {
        container
            .spec
            .labels
            .insert(label::SPEC.to_owned(), hash.to_owned());
    };
    assert_eq!(live(|container| relabel(container, "v0:sha256:00")), "");
    assert_eq!(
        live(|container| {
            relabel(container, "v2:sha256:00");
            container.spec.pids = 12;
        }),
        "update weather/api\n  intent spec.pids: 12 -> 64\n"
    );
}

#[test]
fn a_forged_or_lost_hash_replaces_with_a_path() {
    for hash in ["v1:sha256:00", "", "version"] {
        let says = live(|container| {
            container
                .spec
                .labels
                .insert(label::SPEC.to_owned(), hash.to_owned());
        });
        assert!(
            says.starts_with(&format!(
                "replace weather/api\n  drift! spec.labels.dev.selu.spec: {hash} -> v1:sha256:"
            )),
            "{says}"
        );
    }
}

#[test]
fn a_missing_gateway_comes_back_and_the_instance_stays() {
    assert_eq!(
        after(|world| {
            world.observed.containers.remove(GATEWAY);
        }),
        "create gateway\n"
    );
}

#[test]
fn a_gateway_that_was_detached_is_attached_again_in_place() {
    let mut world = World::new();
    world.apply();
    let network = world.plan().instances[&key_of("weather/api")]
        .resident
        .clone()
        .unwrap()
        .network;
    world.container(GATEWAY).networks.remove(API);
    assert_eq!(
        world.says(),
        format!(
            "update gateway\n  drift networks.{API}: - -> {}\n",
            network.gateway
        )
    );
}

#[test]
fn a_gateway_in_a_foreign_network_or_with_other_settings_is_replaced() {
    assert_eq!(
        after(|world| {
            let gateway = world.container(GATEWAY);
            gateway.spec.cap_add = vec!["NET_ADMIN".to_owned()];
            gateway
                .networks
                .insert("bridge".to_owned(), "172.17.0.2".to_owned());
        }),
        "replace gateway\n  \
         drift! spec.cap_add: NET_ADMIN -> -\n  \
         drift! networks.bridge: 172.17.0.2 -> -\n"
    );
}

#[test]
fn a_gateway_made_for_another_policy_protocol_is_replaced_by_intent() {
    let says = after(|world| {
        let gateway = world.container(GATEWAY);
        gateway.spec.image = "selu.local/p/gateway:0".to_owned();
        let hash = "v1:sha256:0".to_owned();
        gateway.spec.labels.insert(label::SPEC.to_owned(), hash);
    });
    assert_eq!(
        says,
        "replace gateway\n  intent! spec.image: selu.local/p/gateway:0 -> selu.local/p/gateway:2\n"
    );
}

#[test]
fn a_new_instances_network_is_no_drift_of_the_gateway() {
    assert_eq!(
        after(|world| {
            world.add("weather", "maps");
        }),
        "create weather/maps\n"
    );
}

#[test]
fn an_instance_that_left_the_directory_is_deleted_container_first() {
    assert_eq!(
        after(|world| {
            world.add("weather", "maps");
            world.apply();
            let agent = world.project.agents.get_mut("weather").unwrap();
            agent.capabilities.remove("maps");
        }),
        "delete container selu_p_weather_maps_1\n  \
         intent container: resident of weather/maps -> -\n\
         delete network selu_p_weather_maps_1\n  \
         intent network: resident of weather/maps -> -\n"
    );
}

#[test]
fn without_instances_the_gateway_goes_too() {
    let says = after(|world| world.project.agents.clear());
    assert!(says.contains("delete container selu_p_gateway\n"), "{says}");
    assert!(says.contains("delete network selu_p_gateway\n"), "{says}");
}

#[test]
fn a_half_done_replacement_starts_the_new_one_before_the_old_one_goes() {
    let mut world = World::new();
    world.apply();
    world.capability("weather/api").limits.cpu_seconds = 10;
    let plan = world.plan();
    let resident = plan.instances[&key_of("weather/api")]
        .resident
        .clone()
        .unwrap();
    assert_eq!(resident.name, "selu_p_weather_api_2");
    assert_eq!(
        diff::predecessors(&plan, &key_of("weather/api"), &world.observed),
        [API]
    );
    // Killed between create and start.
    world.run(&resident.name, &resident.spec, &resident.network);
    world.container(&resident.name).state = ContainerState::Created;
    world.container(GATEWAY).networks.insert(
        resident.network.name.clone(),
        resident.network.gateway.to_string(),
    );
    assert_eq!(
        world.says(),
        "start weather/api\n  \
         drift state: never started -> running\n\
         delete container selu_p_weather_api_1\n  \
         intent container: resident of weather/api -> -\n\
         delete network selu_p_weather_api_1\n  \
         intent network: resident of weather/api -> -\n"
    );
    let plan = world.plan();
    let changes = diff::changes(&plan, &world.observed);
    let dependencies = diff::dependencies(&plan, &changes);
    let at = |subject: &Subject| {
        changes
            .changes
            .iter()
            .position(|change| change.subject == *subject)
            .unwrap()
    };
    let container = at(&Subject::Container(API.to_owned()));
    let network = at(&Subject::Network(API.to_owned()));
    let instance = at(&Subject::Instance(key_of("weather/api")));
    assert!(dependencies[container].contains(&instance));
    assert_eq!(dependencies[network], [instance, container]);
    world.apply();
    assert_eq!(world.says(), "");
}

#[test]
fn going_back_keeps_the_old_resident_and_drops_the_failed_new_one() {
    let mut world = World::new();
    world.apply();
    world.capability("weather/api").limits.cpu_seconds = 10;
    let resident = world.plan().instances[&key_of("weather/api")]
        .resident
        .clone()
        .unwrap();
    world.run(&resident.name, &resident.spec, &resident.network);
    world.capability("weather/api").limits.cpu_seconds = 30;
    let says = world.says();
    assert!(
        says.starts_with("delete container selu_p_weather_api_2\n"),
        "{says}"
    );
}

#[test]
fn a_hold_and_a_running_discovery_are_somebodys_and_a_stopped_discovery_is_not() {
    let mut world = World::new();
    world.apply();
    let mut spec = world.container(API).spec.clone();
    let mut network = world.plan().gateway.unwrap().network;
    for (role, state) in [
        ("hold", ContainerState::Created),
        ("discovery", ContainerState::Running),
    ] {
        spec.labels.insert(label::ROLE.to_owned(), role.to_owned());
        network.name = format!("selu_p_{role}");
        world.run(&format!("selu_p_{role}"), &spec, &network);
        world.container(&format!("selu_p_{role}")).state = state;
    }
    assert_eq!(world.says(), "");
    world.container("selu_p_discovery").state = ContainerState::Exited {
        code: 0,
        oom_killed: false,
    };
    assert_eq!(
        world.says(),
        "delete container selu_p_discovery\n  \
         intent container: discovery of weather/api -> -\n\
         delete network selu_p_discovery\n  \
         intent network: discovery of weather/api -> -\n"
    );
}

#[test]
fn what_ends_again_and_again_is_the_same_work_at_each_moment() {
    let mut world = World::new();
    world.apply();
    let at_both_moments = |world: &mut World| {
        [ContainerState::Running, ContainerState::Restarting].map(|state| {
            world.container(API).state = state;
            world.changes()
        })
    };
    let [running, restarting] = at_both_moments(&mut world);
    assert_ne!(running, restarting);
    assert_eq!(running.settled(), restarting.settled());
    // Also where it is to be replaced, and not as if nothing were to be done.
    world.container(API).violations.push("a bind".to_owned());
    let [running, restarting] = at_both_moments(&mut world);
    assert_ne!(running, restarting);
    assert_eq!(running.settled(), restarting.settled());
    assert!(!running.settled().is_empty());
}

#[test]
fn volumes_are_in_no_change() {
    let says = after(|world| {
        world.capability("weather/api").filesystem = Filesystem::Workspace;
        world.apply();
        assert_eq!(world.observed.volumes.len(), 1);
        world.project.agents.clear();
    });
    assert!(!says.contains("volume"), "{says}");
}

#[test]
fn a_plan_made_without_an_engine_deletes_nothing() {
    let mut world = World::new();
    world.apply();
    let offline = crate::resolve::resolve(&world.project, None, None);
    let changes = diff::changes(&offline.plan.unwrap(), &world.observed);
    assert!(
        changes
            .changes
            .iter()
            .all(|change| change.action != Action::Delete),
        "{changes:?}"
    );
}
