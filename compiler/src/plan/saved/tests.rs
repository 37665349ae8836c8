//! Each test saves the plan of a small world, changes the world, and reads what has moved.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::*;
use crate::model::Policy;
use crate::observed::ContainerState;
use crate::plan::ImageKind;
use crate::resolve::testing::{DIGEST, World, key_of, origin};

const API: &str = "selu_p_weather_api_1";

fn save(world: &World) -> SavedPlan {
    SavedPlan {
        format_version: FORMAT_VERSION.to_owned(),
        plan_id: "00ff".to_owned(),
        plan: world.plan(),
        changes: world.changes(),
        targets: None,
        review: None,
        due: BTreeSet::new(),
        settings: SavedSettings::of(&world.project.settings),
        basis: Basis::of(world.lock.as_ref(), &world.observed),
    }
}

/// What has moved after a change of an applied and locked world.
fn after(change: impl FnOnce(&mut World)) -> Vec<String> {
    let mut world = World::new();
    world.apply();
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    know_own_references(&mut world);
    let saved = save(&world);
    let read = SavedPlan::read(&serde_json::to_string(&saved).unwrap()).unwrap();
    assert_eq!(read, saved, "what is written is what is read");
    let moved = saved.moved(world.lock.as_ref(), &world.observed);
    assert_eq!(moved, Vec::new(), "nothing has moved yet");
    change(&mut world);
    let moved = saved.moved(world.lock.as_ref(), &world.observed);
    moved.iter().map(ToString::to_string).collect()
}

/// The runtime asks for the plan's references, not for those of the directory.
fn know_own_references(world: &mut World) {
    let facts = world.image().clone();
    let pinned = format!("ghcr.io/acme/api@{DIGEST}");
    world.observed.images.insert(pinned, facts);
}

#[test]
fn a_container_that_ends_again_and_again_makes_no_plan_stale() {
    let flips = |world: &mut World| {
        world.container(API).state = ContainerState::Restarting;
        for address in world.container(API).networks.values_mut() {
            address.clear();
        }
        for network in world.observed.networks.values_mut() {
            network.attached.retain(|name| name != API);
        }
    };
    assert_eq!(after(flips), Vec::<String>::new());
}

#[test]
fn a_stale_plan_names_exactly_what_has_moved() {
    assert_eq!(
        after(|world| world.container(API).spec.memory_bytes = 1),
        [format!("container {API} has changed")]
    );
    assert_eq!(
        after(|world| world.container(API).state = ContainerState::Paused),
        [format!("container {API} has changed")]
    );
    assert_eq!(
        after(|world| world.container(API).id = "another".to_owned()),
        [format!("container {API} was made anew")]
    );
    assert_eq!(
        after(|world| {
            world.observed.containers.remove(API);
            for network in world.observed.networks.values_mut() {
                network.attached.retain(|name| name != API);
            }
            world.observed.networks.remove("selu_p_gateway");
        }),
        [
            format!("container {API} is gone"),
            "network selu_p_gateway is gone".to_owned()
        ]
    );
    assert_eq!(
        after(|world| {
            let lock = world.lock.as_mut().unwrap();
            let entry = lock.instances.get_mut(&key_of("weather/api")).unwrap();
            entry.limits.pids = 1;
            let other = entry.clone();
            lock.instances.insert(key_of("weather/maps"), other);
        }),
        [
            "selu.lock: the entry of weather/api has changed",
            "selu.lock: the entry of weather/maps is new"
        ]
    );
    assert_eq!(after(|world| world.lock = None), ["selu.lock is gone"]);
    assert_eq!(
        after(|world| world.observed.engine.id = "other".to_owned()),
        ["the engine is another one"]
    );
    assert_eq!(
        after(|world| world.observed.images.clear()),
        [format!(
            "weather/api: the engine has no image ghcr.io/acme/api@{DIGEST} any more"
        )]
    );
}

#[test]
fn somebodys_hold_is_no_part_of_what_a_plan_was_made_from() {
    let moved = after(|world| {
        let mut hold = world.container(API).clone();
        hold.spec
            .labels
            .insert(label::ROLE.to_owned(), "hold".to_owned());
        world
            .observed
            .containers
            .insert("selu_p_hold".to_owned(), hold);
        let network = world.observed.networks.get_mut(API).unwrap();
        network.attached.reverse();
        network.attached.push("selu_p_hold".to_owned());
    });
    assert_eq!(moved, Vec::<String>::new());
}

#[test]
fn names_and_subnets_that_others_took_make_a_first_plan_stale() {
    let mut world = World::new();
    know_own_references(&mut world);
    let saved = save(&world);
    let network = saved.plan.instances[&key_of("weather/api")]
        .resident
        .clone()
        .unwrap()
        .network;
    assert!(saved.plan.wanted_names().contains(&network.name));
    world.observed.foreign_subnets.push(network.subnet);
    world
        .observed
        .foreign_names
        .insert(network.name.clone(), "a network of nobody".to_owned());
    let moved = saved.moved(None, &world.observed);
    let said: Vec<String> = moved.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            format!("the name {} is taken by a network of nobody", network.name),
            format!("the subnet of network {} is in use", network.name)
        ]
    );
}

#[test]
fn what_is_not_written_by_this_version_is_not_applied() {
    let world = World::new();
    let good = serde_json::to_value(save(&world)).unwrap();
    let refusal = |value: &Value| SavedPlan::read(&value.to_string()).unwrap_err().to_string();

    let mut value = good.clone();
    value["plan"]["instances"]["weather/api"]["guard"] = json!(true);
    assert!(refusal(&value).contains("/plan/instances/weather/api/guard"));

    let mut value = good.clone();
    value["format_version"] = json!("1.1");
    assert!(refusal(&value).contains("format 1.1"));

    let printed = json!({ "format_version": "1.0", "plan": good["plan"], "changes": null });
    assert!(refusal(&printed).contains("plan --out"));
    assert!(refusal(&json!({})).contains("no saved plan"));
}

#[test]
fn both_forms_are_valid_by_their_committed_schemas() {
    let mut world = World::new();
    world.apply();
    world.lock_image(ImageKind::Registry, Some(DIGEST), None);
    world.capability("weather/api").limits.pids = 1;
    let mut saved = save(&world);
    saved.targets = Some(BTreeSet::from([key_of("weather/api")]));
    for (name, value) in [
        ("saved-plan", serde_json::to_value(&saved).unwrap()),
        ("plan", serde_json::to_value(saved.document()).unwrap()),
    ] {
        let schema = crate::model::schemas::schema(name).unwrap();
        let validator = jsonschema::draft7::new(&schema).unwrap();
        assert!(validator.is_valid(&value), "{name}");
        let mut without = value;
        without["plan"]["instances"]["weather/api"]["image"]["kind"] = json!("floppy");
        assert!(!validator.is_valid(&without), "{name}");
    }
}

#[test]
fn settings_come_back_as_they_were_but_for_their_places() {
    let mut settings = Settings {
        engine_host: Some("unix:///e.sock".to_owned()),
        on_change: OnChange::Hold,
        ..Settings::default()
    };
    let place = |line| Origin {
        line,
        ..origin("selu.toml")
    };
    let tool = (key_of("a/b"), "t".to_owned());
    settings
        .policies
        .insert(tool.clone(), (Policy::Ask, place(3)));
    let back = SavedSettings::of(&settings).settings();
    assert_eq!(back.engine_host, settings.engine_host);
    assert_eq!(back.on_change, OnChange::Hold);
    assert_eq!(back.policies.keys().collect::<Vec<_>>(), [&tool]);
    assert_eq!(back.policies[&tool].0, Policy::Ask);
}

#[test]
fn a_saved_plan_holds_no_value_that_somebody_set_on_an_object() {
    let mut world = World::new();
    world.apply();
    world.container("selu_p_gateway").spec.labels = BTreeMap::from([
        ("theirs".to_owned(), "s3cr3t".to_owned()),
        (label::PROJECT.to_owned(), "p".to_owned()),
    ]);
    let text = serde_json::to_string(&save(&world)).unwrap();
    assert!(!text.contains("s3cr3t"));
}
