use super::*;
use crate::model::{Credential, Filesystem};
use crate::plan::Plan;
use crate::resolve::testing::World;

fn planned(change: impl FnOnce(&mut World)) -> (Plan, InstanceKey) {
    let mut world = World::new();
    change(&mut world);
    let plan = world.plan();
    (plan, InstanceKey::new("weather", "api"))
}

fn who(user: &str, session: &str) -> Who {
    Who {
        user: user.to_owned(),
        session: session.to_owned(),
    }
}

fn of_user() -> Credential {
    Credential {
        name: "TOKEN".to_owned(),
        scope: CredentialScope::User,
        required: false,
        description: String::new(),
    }
}

#[test]
fn who_gets_a_container_of_his_own_x1_x2() {
    let (plan, key) = planned(|_| {});
    let exclusive = &plan.instances[&key];
    fn of(instance: &PlannedInstance, user: Option<&str>, session: Option<&str>) -> Option<Who> {
        Who::of(instance, user, session).unwrap()
    }
    assert_eq!(of(exclusive, None, None), None, "the resident");
    assert_eq!(
        of(exclusive, None, Some("default")),
        None,
        "the resident by its name"
    );
    assert_eq!(of(exclusive, None, Some("s")), Some(who("", "s")));
    assert_eq!(
        of(exclusive, Some("anna"), None),
        Some(who("anna", "default"))
    );
    assert_eq!(
        of(exclusive, Some("anna"), Some("s")),
        Some(who("anna", "s"))
    );

    let mut shared = exclusive.clone();
    shared.sharing.mode = SharingMode::Shared;
    assert_eq!(
        of(&shared, Some("anna"), Some("s")),
        None,
        "shared has the resident only"
    );
    // C5: but nobody's values meet another's.
    shared.credentials.push(of_user());
    assert_eq!(
        of(&shared, Some("anna"), Some("s")),
        Some(who("anna", "default"))
    );
    assert_eq!(of(&shared, None, Some("s")), None);
}

#[test]
fn a_name_that_could_be_mistaken_for_another_is_refused() {
    let (plan, key) = planned(|_| {});
    for bad in ["", " a", "a\n", "a\u{7}", &"x".repeat(129)] {
        assert!(
            Who::of(&plan.instances[&key], Some(bad), None).is_err(),
            "{bad:?}"
        );
        assert!(
            Who::of(&plan.instances[&key], None, Some(bad)).is_err(),
            "{bad:?}"
        );
    }
    assert!(Who::of(&plan.instances[&key], Some("Zoë@example.com"), None).is_ok());
}

#[test]
fn a_session_differs_from_the_resident_in_place_and_person_only() {
    let (plan, key) = planned(|world| {
        let capability = world.capability("weather/api");
        capability.class = crate::model::Class::Environment;
        capability.filesystem = Filesystem::Workspace;
        capability.cache = true;
    });
    let resident = plan.instances[&key].resident.as_ref().unwrap();
    let subnet = "10.1.2.0/28".parse().unwrap();
    let of =
        |user: &str, session: &str| container("p", &key, resident, &who(user, session), subnet);
    let anna = of("anna", "s");
    assert_eq!(anna.spec.env["SELU_SESSION_ID"], "s");
    assert_eq!(anna.spec.dns, [anna.network.gateway]);
    assert_eq!(anna.spec_hash, resident.spec_hash, "made from this plan");
    assert_eq!(Who::of_labels(&anna.spec.labels), Some(who("anna", "s")));
    assert_eq!(Who::of_labels(&resident.spec.labels), None);

    let mut same = anna.spec.clone();
    same.dns.clone_from(&resident.spec.dns);
    same.env.clone_from(&resident.spec.env);
    same.labels.clone_from(&resident.spec.labels);
    same.volumes.clone_from(&resident.spec.volumes);
    assert_eq!(same, resident.spec);

    // A workspace per session and user, a cache per user (X3).
    let volume = |container: &PlannedContainer, path: &str| container.spec.volumes[path].clone();
    let other = of("anna", "t");
    assert_ne!(volume(&anna, "/workspace"), volume(&other, "/workspace"));
    assert_eq!(volume(&anna, "/cache"), volume(&other, "/cache"));
    let ben = of("ben", "s");
    assert_ne!(volume(&anna, "/workspace"), volume(&ben, "/workspace"));
    assert_ne!(volume(&anna, "/cache"), volume(&ben, "/cache"));
    assert_ne!(anna.name, ben.name);
    assert_ne!(of("a", "bc").name, of("ab", "c").name);
}
