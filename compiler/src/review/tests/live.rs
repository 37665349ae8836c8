//! What a plan means for rights, compared with what runs.

use crate::lock::Lock;
use crate::model::{Credential, CredentialScope, InstanceKey, NetworkMode};
use crate::resolve::testing::World;
use crate::review::{Grade, Review, Snapshot};

fn review(world: &World, lock: Option<&Lock>) -> Review {
    let plan = world.plan();
    let live = Snapshot::of_live(&plan, &world.observed, lock);
    let planned = Snapshot::of_plan(&plan, lock).with_images(&plan, &world.observed);
    Review::new(&live, &planned)
}

/// The lock of what is applied.
fn locked(world: &World) -> Lock {
    let none = std::collections::BTreeMap::new();
    Lock::merge(None, &world.plan(), &none, &world.project.settings).lock
}

fn told(review: &Review) -> Vec<(Grade, &str)> {
    let findings = review.findings.iter();
    findings.map(|one| (one.grade, one.path.as_str())).collect()
}

#[test]
fn what_runs_as_planned_means_nothing_for_rights() {
    let mut world = World::new();
    world.apply();
    let lock = locked(&world);
    assert_eq!(told(&review(&world, Some(&lock))), []);
}

#[test]
fn what_runs_is_what_counts_also_where_the_lock_says_the_new_state_already() {
    let mut world = World::new();
    world.apply();
    let api = world.capability("weather/api");
    api.limits.memory_mb = 512;
    api.limits.cpu_seconds = 10;
    api.network.mode = NetworkMode::Allowlist;
    api.network.hosts = vec!["a.example:443".to_owned()];
    api.credentials = vec![Credential {
        name: "KEY".to_owned(),
        scope: CredentialScope::System,
        required: true,
        description: String::new(),
    }];
    // A merge brings lock and directory along together.
    let lock = locked(&world);
    assert_eq!(
        told(&review(&world, Some(&lock))),
        [
            (Grade::Widening, "limits.memory_mb"),
            (Grade::Widening, "network.mode"),
            (Grade::Widening, "network.hosts"),
            (Grade::Widening, "credential.KEY"),
            (Grade::Narrowing, "limits.cpu_seconds"),
        ]
    );
}

#[test]
fn what_somebody_raised_on_the_engine_is_lowered_again() {
    let mut world = World::new();
    world.apply();
    let lock = locked(&world);
    world.container("selu_p_weather_api_1").spec.pids = 9_999;
    assert_eq!(
        told(&review(&world, Some(&lock))),
        [(Grade::Narrowing, "limits.pids")]
    );
    world.container("selu_p_weather_api_1").spec.image = "example.com/x@sha256:9".to_owned();
    let found = review(&world, Some(&lock));
    assert_eq!(found.findings[0].old.as_deref(), Some("sha256:9"));
    assert_eq!(found.count(Grade::Widening), 1, "{found:#?}");
}

#[test]
fn what_neither_runs_nor_is_locked_is_new_and_what_is_locked_was_reviewed() {
    let world = World::new();
    let found = review(&world, None);
    let says = &found.findings[0].says;
    assert!(
        says.starts_with("a new instance: 128 MiB memory, 0.5 CPU,"),
        "{says}"
    );
    let lock = locked(&world);
    assert_eq!(told(&review(&world, Some(&lock))), []);
    let gone = Lock {
        instances: [(InstanceKey::new("weather", "old"), {
            let key = InstanceKey::new("weather", "api");
            lock.instances[&key].clone()
        })]
        .into(),
    };
    let found = review(&world, Some(&gone));
    assert!(told(&found).contains(&(Grade::Narrowing, "")), "{found:#?}");
}
