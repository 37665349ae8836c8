use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::super::*;
use super::{dynamic_instance, hash, key, plan};
use crate::lock::value_changes;
use crate::model::Settings;

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |number| Number::from_f64(number)
            .map(Value::Number)),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Any text, with what is dangerous in TOML and JSON more often than by chance.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "['\"\\\\\r\n\t\u{200b}\u{202e}\u{feff}\u{e0041}\u{7f}a=#\\[\\]]{0,12}",
    ]
}

fn tool() -> impl Strategy<Value = LockedTool> {
    let policy = || prop_oneof![Just(Policy::Block), Just(Policy::Ask), Just(Policy::Allow)];
    (
        policy(),
        prop::option::of(policy()),
        text(),
        json(),
        any::<bool>(),
    )
        .prop_map(
            |(policy, recommended, description, input_schema, terminal_on_success)| LockedTool {
                source: ToolOrigin::Discovered,
                policy,
                policy_origin: PolicyOrigin::Discovered,
                recommended,
                description,
                input_schema,
                terminal_on_success,
            },
        )
}

fn lock() -> impl Strategy<Value = Lock> {
    let number = || 0..=i64::MAX as u64;
    (
        prop::collection::btree_map(text(), tool(), 0..3),
        prop::collection::vec(text(), 0..3),
        prop::collection::btree_map(text(), Just(hash('b')), 0..3),
        prop::option::of(prop::collection::vec(text(), 0..3)),
        (number(), number(), text()),
    )
        .prop_map(
            |(tools, hosts, prompts, present, (memory_mb, nano_cpus, written))| {
                let plan = plan([("a/b", dynamic_instance())]);
                let mut lock =
                    Lock::merge(None, &plan, &BTreeMap::new(), &Settings::default()).lock;
                let instance = lock.instances.get_mut(&key("a/b")).unwrap();
                instance.tools = tools;
                instance.network.hosts = hosts;
                instance.prompts = prompts;
                instance.discovery.as_mut().unwrap().credentials_present = present;
                instance.limits.memory_mb = memory_mb;
                instance.limits.nano_cpus = nano_cpus;
                instance.image.written = written;
                lock
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(lock in lock()) {
        let text = lock.write(None);
        prop_assert_eq!(&Lock::read(&text), &Ok(lock.clone()), "{}", text);
        let windows = lock.write(Some("\r\n"));
        prop_assert_eq!(&Lock::read(&windows), &Ok(lock));
        prop_assert_eq!(Lock::read(&text).unwrap().write(Some(&text)), text);
    }

    #[test]
    fn values_differ_somewhere_exactly_if_they_differ(old in json(), new in json()) {
        prop_assert_eq!(value_changes(&old, &new).is_empty(), old == new);
        prop_assert_eq!(value_changes(&old, &old), vec![]);
    }

    #[test]
    fn no_text_brings_the_reader_down(text in text()) {
        let _ = Lock::read(&text);
        let _ = Lock::read(&format!("version = 1\n{text}"));
    }
}
