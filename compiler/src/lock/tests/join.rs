use std::collections::BTreeSet;

use super::super::*;
use super::{dynamic_instance, key, plan, static_instance};
use crate::model::{NetworkMode, Settings};

type Edit = fn(&mut Lock);

fn base() -> Lock {
    let plan = plan([
        ("home/files", dynamic_instance()),
        ("weather/api", static_instance()),
    ]);
    Lock::merge(None, &plan, &BTreeMap::new(), &Settings::default()).lock
}

fn api(lock: &mut Lock) -> Option<&mut LockedInstance> {
    lock.instances.get_mut(&key("weather/api"))
}

fn added(lock: &mut Lock, memory_mb: u64) {
    let mut instance = base().instances[&key("weather/api")].clone();
    instance.limits.memory_mb = memory_mb;
    lock.instances.insert(key("weather/other"), instance);
}

/// Changes of each kind, some of them at the same place.
const EDITS: [Edit; 12] = [
    |_| {},
    |lock| added(lock, 1),
    |lock| added(lock, 2),
    |lock| {
        lock.instances.remove(&key("weather/api"));
    },
    |lock| {
        if let Some(api) = api(lock) {
            api.limits.pids = 1;
        }
    },
    |lock| {
        if let Some(api) = api(lock) {
            api.limits.pids = 2;
        }
    },
    |lock| {
        if let Some(api) = api(lock) {
            api.network.hosts.push("z.example.com".to_owned());
        }
    },
    |lock| {
        if let Some(api) = api(lock) {
            api.network.hosts.remove(0);
        }
    },
    |lock| {
        if let Some(api) = api(lock) {
            api.network.mode = NetworkMode::Any;
            api.network.hosts.clear();
        }
    },
    |lock| {
        if let Some(api) = api(lock) {
            api.tools.clear();
        }
    },
    |lock| {
        if let Some(tool) = api(lock).and_then(|api| api.tools.get_mut("forecast")) {
            tool.policy = Policy::Allow;
        }
    },
    |lock| {
        if let Some(api) = api(lock) {
            api.credentials.clear();
        }
    },
];

fn edited(edit: Edit) -> Lock {
    let mut lock = base();
    edit(&mut lock);
    lock
}

#[test]
fn every_pair_of_changes_is_the_same_from_either_side_and_never_loses_one() {
    let base = base();
    for (a, ours) in EDITS.into_iter().enumerate() {
        let ours = edited(ours);
        assert_eq!(
            Lock::join(&base, &ours, &base, Side::Ours).lock,
            ours,
            "{a}"
        );
        assert_eq!(
            Lock::join(&base, &base, &ours, Side::Ours).lock,
            ours,
            "{a}"
        );
        assert_eq!(
            Lock::join(&base, &ours, &ours, Side::Base).lock,
            ours,
            "{a}"
        );
        for (b, theirs) in EDITS.into_iter().enumerate() {
            let theirs = edited(theirs);
            let joined = Lock::join(&base, &ours, &theirs, Side::Ours);
            let other = Lock::join(&base, &theirs, &ours, Side::Theirs);
            assert_eq!(joined.lock, other.lock, "{a} {b}");
            assert_eq!(joined.clashes, other.clashes, "{a} {b}");
            if joined.clashes.is_empty() {
                // Merged once more with either side, nothing is new.
                let again = Lock::join(&ours, &joined.lock, &ours, Side::Base);
                assert_eq!(
                    (again.lock, again.clashes),
                    (joined.lock, Vec::new()),
                    "{a} {b}"
                );
            } else {
                assert!(ours != theirs && ours != base && theirs != base, "{a} {b}");
            }
        }
    }
}

#[test]
fn the_marked_text_of_every_clash_gives_both_sides_and_what_they_came_from_back() {
    let base = base();
    let mut marked_texts = BTreeSet::new();
    for ours in EDITS {
        for theirs in EDITS {
            let (ours, theirs) = (edited(ours), edited(theirs));
            let of = |side| Lock::join(&base, &ours, &theirs, side);
            if of(Side::Ours).clashes.is_empty() {
                continue;
            }
            let locks = [Side::Base, Side::Ours, Side::Theirs].map(|side| of(side).lock);
            let text = marked([&locks[0], &locks[1], &locks[2]], 7, None);
            assert!(matches!(Lock::read(&text), Err(LockError::Conflict { .. })));
            let sides = sides(&text).unwrap();
            assert_eq!(Lock::read(&sides.base.unwrap()).unwrap(), locks[0]);
            assert_eq!(Lock::read(&sides.ours).unwrap(), locks[1]);
            assert_eq!(Lock::read(&sides.theirs).unwrap(), locks[2]);
            marked_texts.insert(text);
        }
    }
    assert!(marked_texts.len() > 10, "{}", marked_texts.len());
}

#[test]
fn a_flat_lock_names_instance_and_tool_in_each_line_and_shows_what_hides() {
    let mut lock = base();
    if let Some(tool) = api(&mut lock).and_then(|api| api.tools.get_mut("forecast")) {
        tool.description = "One\ntwo \u{202e}three".to_owned();
    }
    let flat = lock.flat();
    assert!(
        flat.lines()
            .all(|line| line.starts_with("home/files ") || line.starts_with("weather/api ")),
        "{flat}"
    );
    for line in [
        "weather/api forecast description = \"One\"\n",
        "weather/api forecast description = \"two \\u202Ethree\"\n",
        "weather/api forecast input_schema/required[] = \"city\"\n",
        "weather/api forecast policy = ask (manifest)\n",
        "weather/api network.hosts has \"api.example.org\"\n",
    ] {
        assert!(flat.contains(line), "{line}: {flat}");
    }
}
