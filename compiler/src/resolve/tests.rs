//! What is decided, and what is said about it.

use std::collections::BTreeMap;

use serde_json::json;

use super::testing::{DIGEST, IMAGE_ID, OTHER_DIGEST, SOURCE, World, key_of, origin, tool};
use super::{image_references, pinned_references, resolve, wanted_names};
use crate::diag::Place;
use crate::lock::{LockedTool, ToolOrigin};
use crate::model::{
    Filesystem, LimitOverrides, NetworkMode, Origin, Policy, Prompt, Routing, SharingMode,
    ToolSource,
};
use crate::observed::{ImageFacts, ObservedVolume, RegistryAnswer};
use crate::plan::{ImageKind, PlannedContainer, PlannedImage, PolicyOrigin, label};

fn resident(world: &World) -> PlannedContainer {
    world.plan().instances[&key_of("weather/api")]
        .resident
        .clone()
        .unwrap()
}

fn image(world: &World) -> PlannedImage {
    world.plan().instances[&key_of("weather/api")].image.clone()
}

// Names, generations, addresses.

#[test]
fn names_and_labels_say_whose_everything_is() {
    let mut world = World::new();
    world.capability("weather/api").filesystem = Filesystem::Workspace;
    world
        .image()
        .labels
        .insert("org.example.note".to_owned(), "x".to_owned());
    let resident = resident(&world);
    assert_eq!(resident.name, "selu_p_weather_api_1");
    assert_eq!(resident.network.name, resident.name);
    let labels = &resident.spec.labels;
    assert_eq!(labels[label::PROJECT], "p");
    assert_eq!(labels[label::INSTANCE], "weather/api");
    assert_eq!(labels[label::GENERATION], "1");
    assert_eq!(labels[label::SPEC], resident.spec_hash);
    assert_eq!(labels["org.example.note"], "");
    let volume = &resident.volumes["/workspace"];
    assert_eq!(resident.spec.volumes["/workspace"], volume.name);
    let gateway = world.plan().gateway.unwrap();
    assert_eq!(gateway.name, "selu_p_gateway");
    let rule = &gateway.policy["selu_p_weather_api_1"];
    assert_eq!(rule.subnet, resident.network.subnet);
    assert_eq!(rule.capability, resident.network.capability);
}

#[test]
fn addresses_are_static_and_outside_what_the_engine_may_hand_out() {
    for (mode, hosts) in [
        (NetworkMode::None, vec![]),
        (NetworkMode::Allowlist, vec!["a.example".to_owned()]),
        (NetworkMode::Any, vec![]),
    ] {
        let mut world = World::new();
        let api = world.capability("weather/api");
        api.network.mode = mode;
        api.network.hosts = hosts;
        let network = resident(&world).network;
        assert!(
            "10.231.0.0/16"
                .parse::<ipnet::Ipv4Net>()
                .unwrap()
                .contains(&network.subnet)
        );
        let dynamic = network.dynamic_range();
        let virtual_half = network
            .subnet
            .subnets(network.subnet.prefix_len() + 1)
            .unwrap()
            .last()
            .unwrap();
        assert!(network.subnet.contains(&dynamic));
        assert!(!virtual_half.contains(&dynamic));
        for address in [network.bridge, network.capability, network.gateway] {
            assert!(network.subnet.contains(&address));
            assert_ne!(address, network.subnet.network());
            assert!(!dynamic.contains(&address), "{address} in {dynamic}");
            assert!(
                !virtual_half.contains(&address),
                "{address} in {virtual_half}"
            );
        }
        assert_eq!(resident(&world).spec.dns, [network.gateway]);
    }
}

#[test]
fn networks_avoid_each_other_and_everyone_elses_and_stay_where_they_are() {
    let mut world = World::new();
    world.project.settings.subnets = Some("10.9.0.0/26".parse().unwrap());
    world.observed.foreign_subnets = vec!["10.9.0.16/28".parse().unwrap()];
    world.apply();
    let before = resident(&world).network;
    world.add("aaa", "first");
    let plan = world.plan();
    let mut subnets: Vec<String> = plan
        .instances
        .values()
        .filter_map(|instance| instance.resident.as_ref())
        .map(|resident| resident.network.subnet.to_string())
        .chain([plan.gateway.unwrap().network.subnet.to_string()])
        .collect();
    subnets.sort();
    assert_eq!(subnets, ["10.9.0.0/28", "10.9.0.32/28", "10.9.0.48/28"]);
    assert_eq!(resident(&world).network, before);
    world.add("aaa", "second");
    assert_eq!(
        world.findings(),
        ["subnets-exhausted: aaa/second: no free /28 is left in 10.9.0.0/26"]
    );
    assert_eq!(world.resolve().plan, None);
}

#[test]
fn another_projects_networks_move_ours_and_change_nothing_else_of_the_plan() {
    let mut world = World::new();
    let alone = world.plan();
    let taken = resident(&world).network.subnet;
    world.observed.foreign_subnets = vec![taken];
    let beside = world.plan();
    assert_ne!(alone, beside, "the range is another");
    let alone = alone.without_addresses();
    assert_eq!(alone, beside.without_addresses());
    let api = world.capability("weather/api");
    api.network.mode = NetworkMode::Allowlist;
    api.network.hosts = vec!["a.example".to_owned()];
    assert_ne!(alone, world.plan().without_addresses());
}

#[test]
fn a_network_left_without_its_container_counts_as_a_generation() {
    let mut world = World::new();
    world.apply();
    world.observed.containers.remove("selu_p_weather_api_1");
    assert_eq!(resident(&world).generation, 2);
}

#[test]
fn only_what_bears_our_labels_is_taken_for_a_resident() {
    let mut world = World::new();
    world.apply();
    world
        .container("selu_p_weather_api_1")
        .spec
        .labels
        .insert(label::INSTANCE.to_owned(), "other/api".to_owned());
    assert_eq!(resident(&world).generation, 2);
}

#[test]
fn a_taken_name_is_an_error_that_names_the_owner() {
    for name in ["selu_p_weather_api_1", "selu_p_gateway"] {
        let mut world = World::new();
        assert!(wanted_names(&world.project).contains(&name.to_owned()));
        world
            .observed
            .foreign_names
            .insert(name.to_owned(), "container of project q".to_owned());
        assert_eq!(world.codes(), ["name-taken"]);
        assert!(world.findings()[0].ends_with("is taken: container of project q"));
        assert_eq!(world.resolve().plan, None);
    }
}

#[test]
fn a_volume_labelled_for_another_instance_is_not_mounted() {
    let mut world = World::new();
    world.capability("weather/api").filesystem = Filesystem::Workspace;
    let name = resident(&world).volumes["/workspace"].name.clone();
    assert!(wanted_names(&world.project).contains(&name));
    let labels = BTreeMap::from([
        (label::INSTANCE.to_owned(), "other/api".to_owned()),
        (label::ROLE.to_owned(), "workspace".to_owned()),
    ]);
    world.observed.volumes.insert(
        name,
        ObservedVolume {
            labels,
            violations: Vec::new(),
        },
    );
    assert_eq!(world.codes(), ["name-taken"]);
}

#[test]
fn a_project_needs_a_valid_name() {
    for name in [None, Some("A b"), Some("x_y")] {
        let mut world = World::new();
        world.project.name = name.map(str::to_owned);
        assert_eq!(world.codes(), ["project-without-name"]);
        assert_eq!(world.resolve().plan, None);
        assert!(wanted_names(&world.project).is_empty());
    }
}

#[test]
fn the_same_facts_give_the_same_bytes() {
    let mut world = World::new();
    world.add("weather", "maps");
    world.add("mail", "api");
    let text = |world: &World| serde_json::to_string(&world.plan()).unwrap();
    assert_eq!(text(&world), text(&world));
}

// Images.

#[test]
fn an_unlocked_tag_is_pinned_to_what_the_registry_says() {
    let world = World::new();
    let image = image(&world);
    assert_eq!(image.kind, ImageKind::Registry);
    assert_eq!(image.digest.as_deref(), Some(DIGEST));
    assert_eq!(image.reference, Some(format!("ghcr.io/acme/api@{DIGEST}")));
    assert!(!image.pull);
    assert_eq!(world.codes(), [""; 0]);
}

#[test]
fn a_moved_tag_is_reported_and_the_lock_followed() {
    let mut world = World::new();
    world.lock_image(ImageKind::Registry, Some(OTHER_DIGEST), None);
    assert_eq!(world.codes(), ["tag-moved"]);
    let image = image(&world);
    assert_eq!(image.digest.as_deref(), Some(OTHER_DIGEST));
    assert!(image.pull, "the engine has the image of the moved tag only");
    let mut facts = world.image().clone();
    facts.id = Some(SOURCE.to_owned());
    let pinned = format!("ghcr.io/acme/api@{OTHER_DIGEST}");
    assert!(pinned_references(&world.project, world.lock.as_ref()).contains(&pinned));
    world.observed.images.insert(pinned, facts);
    assert!(!self::image(&world).pull);
}

#[test]
fn what_cannot_be_pulled_is_found_at_the_plan_and_what_the_engine_has_needs_no_registry() {
    let has = |platforms: &[&str]| RegistryAnswer::Has {
        platforms: platforms.iter().map(|&one| one.to_owned()).collect(),
    };
    let cases: [(RegistryAnswer, &[&str]); 8] = [
        (has(&["linux/s390x", "linux/amd64"]), &[]),
        (has(&["linux/386"]), &[]),
        (has(&[]), &[]),
        (has(&["linux/arm64"]), &["platform-missing"]),
        (has(&["windows/amd64"]), &["platform-missing"]),
        (RegistryAnswer::Gone { tag_now: None }, &["digest-gone"]),
        (
            RegistryAnswer::Gone {
                tag_now: Some(OTHER_DIGEST.to_owned()),
            },
            &["digest-gone"],
        ),
        (
            RegistryAnswer::Silent {
                why: "it is down".to_owned(),
            },
            &["registry-silent"],
        ),
    ];
    for (answer, codes) in cases {
        let mut world = World::new();
        world.lock_image(ImageKind::Registry, Some(DIGEST), None);
        let pinned = format!("ghcr.io/acme/api@{DIGEST}");
        world.observed.registries.insert(pinned, answer.clone());
        assert!(world.codes().is_empty(), "the engine has it: {answer:?}");
        world.observed.images.clear();
        assert_eq!(world.codes(), codes, "{answer:?}");
    }
}

#[test]
fn another_digest_of_the_very_image_is_no_moved_tag() {
    let mut world = World::new();
    world.lock_image(ImageKind::Registry, Some(OTHER_DIGEST), None);
    let facts = world.image().clone();
    let pinned = format!("ghcr.io/acme/api@{OTHER_DIGEST}");
    world.observed.images.insert(pinned, facts);
    assert_eq!(world.codes(), [""; 0]);
}

#[test]
fn a_local_build_does_not_take_the_place_of_a_locked_digest() {
    let mut world = World::new();
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    world.image().digest = None;
    assert_eq!(world.codes(), ["tag-moved"]);
    assert_eq!(image(&world).digest.as_deref(), Some(DIGEST));
}

#[test]
fn a_written_digest_wins_over_the_lock() {
    let mut world = World::new();
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    world.capability("weather/api").image.digest = Some(OTHER_DIGEST.to_owned());
    assert_eq!(image(&world).digest.as_deref(), Some(OTHER_DIGEST));
}

#[test]
fn a_lock_of_another_reference_pins_nothing() {
    let mut world = World::new();
    world.lock_image(ImageKind::Registry, Some(OTHER_DIGEST), None);
    if let Some(locked) = world
        .lock
        .as_mut()
        .unwrap()
        .instances
        .get_mut(&key_of("weather/api"))
    {
        locked.image.written = "ghcr.io/acme/api:0".to_owned();
    }
    assert_eq!(image(&world).digest.as_deref(), Some(DIGEST));
}

#[test]
fn a_local_image_is_run_by_id_and_compared_with_its_source() {
    let mut world = World::new();
    world.make_local();
    let planned = image(&world);
    assert_eq!(planned.kind, ImageKind::Local);
    assert_eq!(planned.reference.as_deref(), Some(IMAGE_ID));
    assert_eq!(planned.source.as_deref(), Some(SOURCE));
    assert_eq!(planned.built_from_source, Some(true));
    assert_eq!(world.codes(), [""; 0]);

    world.image().labels.clear();
    assert_eq!(world.codes(), ["not-built-from-source"]);
    assert_eq!(image(&world).built_from_source, Some(false));
}

#[test]
fn a_locked_local_image_stays_local_when_a_registry_knows_it_too() {
    let mut world = World::new();
    world.make_local();
    world.lock_image(ImageKind::Local, None, Some(SOURCE));
    world.image().digest = Some(DIGEST.to_owned());
    assert_eq!(image(&world).kind, ImageKind::Local);
}

#[test]
fn a_local_image_without_a_folder_is_unreproducible_and_bound_to_its_id() {
    let mut world = World::new();
    world.image().digest = None;
    assert_eq!(world.codes(), ["unreproducible-image"]);
    world.lock_image(ImageKind::Local, Some(IMAGE_ID), None);
    assert_eq!(image(&world).digest.as_deref(), Some(IMAGE_ID));
    world.lock_image(ImageKind::Local, Some(OTHER_DIGEST), None);
    assert_eq!(world.codes(), ["locked-image-gone"]);
    assert!(pinned_references(&world.project, world.lock.as_ref()).contains(OTHER_DIGEST));
}

#[test]
fn a_local_image_whose_folder_is_gone_is_bound_to_nothing() {
    let mut world = World::new();
    world.image().digest = None;
    world.lock_image(ImageKind::Local, None, Some(SOURCE));
    assert_eq!(world.codes(), ["unreproducible-image"]);
    assert_eq!(image(&world).reference.as_deref(), Some(IMAGE_ID));
}

#[test]
fn b07_an_image_that_only_this_engine_has_is_local_and_no_digest_is_invented() {
    let mut world = World::new();
    world.image().digest = None;
    assert_eq!(world.codes(), ["unreproducible-image"]);
    let local = image(&world);
    assert_eq!(local.kind, ImageKind::Local);
    // What it is known by is the engine's own id, which is no digest that a registry would know.
    assert_eq!(local.digest.as_deref(), Some(IMAGE_ID));
    assert_eq!(local.reference.as_deref(), Some(IMAGE_ID));
    // Another machine with the same lock has no such image, and takes none in its place.
    world.lock_image(ImageKind::Local, Some(IMAGE_ID), None);
    world.observed.images.clear();
    assert!(world.resolve().plan.is_none());
    assert_eq!(world.codes(), ["locked-image-gone"]);
}

#[test]
fn c08_swap_is_not_extra_to_the_memory_limit() {
    let spec = resident(&World::new()).spec;
    assert_eq!(spec.memory_bytes, 128 << 20);
    assert_eq!(spec.memory_swap_bytes, spec.memory_bytes);
}

#[test]
fn what_the_registry_says_of_an_absent_digest_is_told_before_the_pull() {
    let mut world = World::new();
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    world.observed.images.clear();
    world.observed.engine.architecture = "amd64".to_owned();
    let reference = format!("ghcr.io/acme/api@{DIGEST}");
    let has = |platform: &str| RegistryAnswer::Has {
        platforms: vec![platform.to_owned()],
    };
    let gone = |tag_now: Option<&str>| RegistryAnswer::Gone {
        tag_now: tag_now.map(str::to_owned),
    };
    let silent = RegistryAnswer::Silent {
        why: "nobody answers".to_owned(),
    };
    for (answer, code) in [
        (has("linux/amd64"), None),
        (has("linux/386"), None),
        (has("linux/arm64"), Some("platform-missing")),
        (gone(Some(OTHER_DIGEST)), Some("digest-gone")),
        (gone(None), Some("digest-gone")),
        (silent, Some("registry-silent")),
    ] {
        let shown = format!("{answer:?}");
        world.observed.registries = BTreeMap::from([(reference.clone(), answer)]);
        assert_eq!(world.codes(), Vec::from_iter(code), "{shown}");
    }
}

#[test]
fn a_missing_image_names_its_cure() {
    let mut world = World::new();
    world.observed.images.clear();
    assert_eq!(
        world.findings(),
        [
            "image-missing: weather/api: neither the engine nor registry ghcr.io has ghcr.io/acme/api:1; check the name and the registry's login"
        ]
    );
    let mut world = World::new();
    world.make_local();
    world.image().id = None;
    assert_eq!(
        world.findings(),
        [
            "image-missing: weather/api: the engine has no image ghcr.io/acme/api:1; build it from agents/weather/capabilities/api/container with `selu build weather/api`"
        ]
    );
}

#[test]
fn an_image_may_bear_no_label_of_ours_but_its_source() {
    let mut world = World::new();
    world.image().labels = BTreeMap::from([
        (label::SOURCE.to_owned(), SOURCE.to_owned()),
        (label::PROJECT.to_owned(), "q".to_owned()),
    ]);
    assert_eq!(world.codes(), ["reserved-image-label"]);
}

#[test]
fn an_image_is_asked_for_once() {
    let mut world = World::new();
    let image = world.capability("weather/api").image.clone();
    world.add("mail", "api").image = image;
    assert_eq!(image_references(&world.project).len(), 1);
}

#[test]
fn offline_the_lock_is_what_is_known() {
    let mut world = World::new();
    let offline = |world: &World| {
        let resolved = resolve(&world.project, world.lock.as_ref(), None);
        assert_eq!(resolved.diagnostics, []);
        let plan = resolved.plan.unwrap();
        assert_eq!(plan.gateway, None);
        let instance = plan.instances[&key_of("weather/api")].clone();
        assert_eq!(instance.resident, None);
        instance.image
    };
    assert_eq!(offline(&world).kind, ImageKind::Unknown);
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    assert_eq!(offline(&world).digest.as_deref(), Some(DIGEST));
    assert!(!offline(&world).pull);
}

// Settings of the container.

#[test]
fn the_container_is_hardened_whatever_the_manifest_says() {
    let spec = resident(&World::new()).spec;
    assert!(spec.read_only_root && spec.no_new_privileges);
    assert_eq!(
        (spec.cap_drop, spec.cap_add),
        (vec!["ALL".to_owned()], vec![])
    );
    assert_eq!(spec.user, "1000:1000");
    assert_eq!(spec.memory_swap_bytes, spec.memory_bytes);
    assert_eq!(spec.sysctls["net.ipv6.conf.all.disable_ipv6"], "1");
    assert_eq!((spec.shm_bytes, spec.tmpfs.len()), (None, 0));
    assert_eq!(spec.command, None);
}

#[test]
fn filesystem_opens_exactly_what_it_says() {
    let mut world = World::new();
    world.image().volumes = vec!["/data".to_owned(), "/tmp/".to_owned()];
    let closed = "ro,noexec,nosuid,nodev,size=65536,mode=0555";
    let spec = resident(&world).spec;
    assert_eq!(spec.tmpfs["/data"], closed);
    assert_eq!(spec.tmpfs["/tmp"], closed);

    world.capability("weather/api").filesystem = Filesystem::Temp;
    let spec = resident(&world).spec;
    assert_eq!(spec.tmpfs["/data"], closed);
    assert_eq!(
        spec.tmpfs["/tmp"],
        "rw,noexec,nosuid,nodev,size=67108864,mode=1777"
    );
    assert!(spec.shm_bytes.is_some());

    world.capability("weather/api").filesystem = Filesystem::Workspace;
    world.capability("weather/api").cache = true;
    world.image().volumes = vec!["/workspace".to_owned()];
    let spec = resident(&world).spec;
    assert_eq!(spec.tmpfs, BTreeMap::new());
    assert_eq!(
        spec.volumes.keys().collect::<Vec<_>>(),
        ["/cache", "/workspace"]
    );
}

#[test]
fn the_container_learns_its_session_or_that_it_is_shared() {
    let mut world = World::new();
    let env = |world: &World| {
        let spec = resident(world).spec;
        let pairs: Vec<String> = spec.env.iter().map(|(k, v)| format!("{k}={v}")).collect();
        pairs.join(" ")
    };
    assert_eq!(
        env(&world),
        "SELU_CAPABILITY_ID=api SELU_SESSION_ID=default"
    );
    world.capability("weather/api").sharing.mode = SharingMode::Shared;
    assert_eq!(env(&world), "SELU_CAPABILITY_ID=api SELU_SHARED=true");
}

#[test]
fn c03_more_cores_than_the_engine_has_is_an_error_and_as_many_is_not() {
    let mut world = World::new();
    world.capability("weather/api").limits.nano_cpus = 2_000_000_000;
    assert_eq!(world.codes(), [""; 0]);
    world.capability("weather/api").limits.nano_cpus = 2_500_000_000;
    assert_eq!(
        world.findings(),
        [
            "cpu-limit-above-engine: weather/api: a limit of 2.5 cores is above the 2 of the engine's host"
        ]
    );
}

#[test]
fn findings_about_image_and_cores_point_at_the_line_that_says_them() {
    const FILE: &str = "agents/weather/capabilities/api/manifest.yaml";
    let places = |world: &World| -> Vec<(&str, String)> {
        let found = world.resolve().diagnostics;
        let places = found.iter().map(|finding| {
            let Place {
                origin,
                length,
                path,
            } = &finding.place;
            let at = format!(
                "{}:{}:{}+{length} {path}",
                origin.file, origin.line, origin.column
            );
            (finding.code.name, at)
        });
        places.collect()
    };
    let mut world = World::new();
    world.observed.images.clear();
    assert_eq!(
        places(&world),
        [("image-missing", format!("{FILE}:2:8+19 image"))]
    );
    let mut world = World::new();
    world.capability("weather/api").limits.nano_cpus = 2_500_000_000;
    let own = format!("{FILE}:7:21+3 resources.max_cpu_fraction");
    assert_eq!(places(&world), [("cpu-limit-above-engine", own)]);
    let limits = LimitOverrides {
        nano_cpus: Some((
            2_500_000_000,
            Origin {
                file: "selu.toml".into(),
                line: 9,
                column: 20,
            },
        )),
        ..LimitOverrides::default()
    };
    world
        .project
        .settings
        .limits
        .insert(key_of("weather/api"), limits);
    let overridden = "selu.toml:9:20+1 limits[\"weather/api\"].max_cpu_fraction".to_owned();
    assert_eq!(places(&world), [("cpu-limit-above-engine", overridden)]);
}

#[test]
fn c08_a_missing_swap_limit_that_the_engine_warns_about_is_passed_on() {
    let mut world = World::new();
    world.observed.engine.warnings = vec!["No swap limit support".to_owned()];
    assert_eq!(
        world.findings(),
        ["engine-warning: the engine says: No swap limit support"]
    );
}

// Tools and routing.

fn policies(world: &World) -> String {
    let plan = world.plan();
    let tools = &plan.instances[&key_of("weather/api")].tools;
    tools
        .iter()
        .map(|(name, tool)| format!("{name} {} {:?}; ", tool.policy, tool.policy_origin))
        .collect()
}

fn overrule(world: &mut World, key: &str, tool: &str, policy: Policy) {
    let place = (policy, origin("selu.toml"));
    let key = (key_of(key), tool.to_owned());
    world.project.settings.policies.insert(key, place);
}

#[test]
fn a_static_tools_policy_is_override_then_manifest_then_block() {
    let mut world = World::new();
    world.capability("weather/api").tools = ToolSource::Static(vec![
        tool("a", Some(Policy::Allow)),
        tool("b", None),
        tool("c", Some(Policy::Allow)),
    ]);
    overrule(&mut world, "weather/api", "c", Policy::Ask);
    assert_eq!(
        policies(&world),
        "a allow Manifest; b block Default; c ask Override; "
    );
}

fn make_dynamic(world: &mut World) {
    world.capability("weather/api").tools = ToolSource::Dynamic {
        discovery_tool: "list_tools".to_owned(),
    };
}

fn locked(
    policy: Policy,
    policy_origin: PolicyOrigin,
    recommended: Option<Policy>,
    source: ToolOrigin,
) -> LockedTool {
    LockedTool {
        source,
        policy,
        policy_origin,
        recommended,
        description: String::new(),
        input_schema: json!({"type": "object"}),
        terminal_on_success: false,
    }
}

#[test]
fn a_discovered_tools_policy_is_the_locks_unless_overruled() {
    let mut world = World::new();
    make_dynamic(&mut world);
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    use PolicyOrigin::{Default, Discovered, Override};
    let found = ToolOrigin::Discovered;
    let tools = [
        // A changed recommendation is shown, not applied.
        (
            "kept",
            locked(Policy::Ask, Discovered, Some(Policy::Allow), found),
        ),
        ("new", locked(Policy::Block, Default, None, found)),
        ("ruled", locked(Policy::Block, Default, None, found)),
        // Its override is gone.
        (
            "was-ruled",
            locked(Policy::Allow, Override, Some(Policy::Ask), found),
        ),
        ("was-mute", locked(Policy::Allow, Override, None, found)),
        // None of a dynamic capability's.
        ("list_tools", locked(Policy::Allow, Discovered, None, found)),
        (
            "old",
            locked(Policy::Allow, Default, None, ToolOrigin::Manifest),
        ),
    ];
    let lock = world.lock.as_mut().unwrap();
    let instance = lock.instances.get_mut(&key_of("weather/api")).unwrap();
    instance.tools = tools.map(|(name, tool)| (name.to_owned(), tool)).into();
    overrule(&mut world, "weather/api", "ruled", Policy::Allow);
    assert_eq!(
        policies(&world),
        "kept ask Discovered; new block Default; ruled allow Override; was-mute block Default; was-ruled ask Discovered; "
    );
}

#[test]
fn a_policy_for_a_tool_that_was_not_discovered_is_reported_with_a_close_name() {
    let mut world = World::new();
    make_dynamic(&mut world);
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    let get = locked(
        Policy::Block,
        PolicyOrigin::Default,
        None,
        ToolOrigin::Discovered,
    );
    let lock = world.lock.as_mut().unwrap();
    let instance = lock.instances.get_mut(&key_of("weather/api")).unwrap();
    instance.tools.insert("get".to_owned(), get);
    overrule(&mut world, "weather/api", "gte", Policy::Ask);
    let resolved = world.resolve();
    let said: Vec<_> = resolved
        .diagnostics
        .iter()
        .map(|finding| (finding.code.name, finding.help.as_deref()))
        .collect();
    assert_eq!(said, [("policy-without-tool", Some("did you mean `get`?"))]);
}

#[test]
fn a_policy_for_tools_that_were_never_listed_is_not_judged() {
    let mut world = World::new();
    make_dynamic(&mut world);
    overrule(&mut world, "weather/api", "anything", Policy::Ask);
    assert_eq!(world.codes(), [""; 0]);
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    assert_eq!(world.codes(), ["policy-without-tool"]);
}

#[test]
fn auto_routing_is_inline_up_to_each_bound_and_not_beyond() {
    let routing = |change: &dyn Fn(&mut World)| {
        let mut world = World::new();
        change(&mut world);
        world.plan().agents["weather"].routing
    };
    let tools = |count: usize| {
        let tools = (0..count).map(|n| tool(&format!("t{n}"), None)).collect();
        ToolSource::Static(tools)
    };
    let prompt = |characters: usize| Prompt {
        file: "prompt.md".into(),
        hash: "sha256:0".to_owned(),
        characters,
    };
    use Routing::{Delegate, Inline};
    assert_eq!(
        routing(&|w| w.capability("weather/api").tools = tools(3)),
        Inline
    );
    assert_eq!(
        routing(&|w| w.capability("weather/api").tools = tools(4)),
        Delegate
    );
    for (characters, expected) in [(1_999, Inline), (2_000, Delegate)] {
        let found = routing(&|world| {
            let prompts = &mut world.capability("weather/api").prompts;
            prompts.insert("prompt.md".to_owned(), prompt(characters));
            prompts.insert("prompt.de.md".to_owned(), prompt(characters));
        });
        assert_eq!(
            found, expected,
            "{characters}: translations are not added up"
        );
    }
    let own_model = |world: &mut World| {
        world.project.agents.get_mut("weather").unwrap().own_model = true;
    };
    assert_eq!(routing(&own_model), Delegate);
    let written = |world: &mut World| {
        world.project.agents.get_mut("weather").unwrap().routing = Routing::Delegate;
    };
    assert_eq!(routing(&written), Delegate);
}

#[test]
fn an_image_that_is_yet_to_be_pulled_leaves_its_volumes_open() {
    let mut world = World::new();
    *world.image() = ImageFacts {
        id: None,
        digest: Some(DIGEST.to_owned()),
        volumes: Vec::new(),
        labels: BTreeMap::new(),
    };
    assert!(image(&world).pull);
    let before = resident(&world).spec_hash;
    world.image().id = Some(IMAGE_ID.to_owned());
    world.image().volumes = vec!["/data".to_owned()];
    assert_ne!(resident(&world).spec_hash, before);
}
