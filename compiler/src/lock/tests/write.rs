use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::super::*;
use super::{dynamic_instance, key, plan, static_instance};
use crate::lock::DiscoveryOutcome;
use crate::model::{Settings, Tool};

/// One instance of each kind.
fn sample() -> Lock {
    let tool = Tool {
        name: "read.file".to_owned(),
        description: "Reads a file.\nSays '''so''' \u{202e}\u{200b}\"quoted\" \\ päth \u{7f}"
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "it's '''' ''' \u{200b}\u{1}\u{7f} \u{e0041} ü"},
                "size": {"type": "integer", "maximum": u64::MAX, "minimum": i64::MIN, "default": 1.0, "x": []}
            }
        })
        .into(),
        recommended: Some(Policy::Allow),
        terminal_on_success: false,
        origin: None,
    };
    let discoveries = BTreeMap::from([(
        key("home/files"),
        DiscoveryOutcome::Found {
            tools: BTreeMap::from([(tool.name.clone(), tool)]),
            credentials_present: BTreeSet::from(["TOKEN".to_owned()]),
        },
    )]);
    let plan = plan([
        ("weather/api", static_instance()),
        ("home/files", dynamic_instance()),
    ]);
    Lock::merge(None, &plan, &discoveries, &Settings::default()).lock
}

#[test]
fn version_1_is_as_it_was_promised() {
    assert_eq!(sample().write(None), include_str!("golden-1.lock"));
}

#[test]
fn the_promised_form_is_still_read() {
    assert_eq!(Lock::read(include_str!("golden-1.lock")), Ok(sample()));
}

#[test]
fn the_same_lock_is_the_same_bytes_h07() {
    let lock = sample();
    let text = lock.write(None);
    assert_eq!(Lock::read(&text).unwrap().write(Some(&text)), text);
}

#[test]
fn crlf_stays_crlf_and_reads_the_same() {
    let lock = sample();
    let windows = lock.write(Some("version = 1\r\n"));
    assert_eq!(
        windows.matches('\n').count(),
        windows.matches("\r\n").count()
    );
    assert_eq!(windows.replace("\r\n", "\n"), lock.write(None));
    assert_eq!(Lock::read(&windows).unwrap(), lock);
    assert_eq!(lock.write(Some(&windows)), windows);
}

#[test]
fn a_byte_order_mark_is_skipped_a07() {
    let lock = sample();
    assert_eq!(
        Lock::read(&format!("\u{feff}{}", lock.write(None))).unwrap(),
        lock
    );
}

#[test]
fn nothing_hidden_is_in_the_file_d7() {
    let text = sample().write(None);
    let hidden: Vec<char> = text
        .chars()
        .filter(|c| {
            (c.is_control() && *c != '\n') || matches!(c, '\u{200b}' | '\u{202e}' | '\u{e0041}')
        })
        .collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn one_change_is_one_small_hunk() {
    let old = sample();
    let mut new = old.clone();
    new.instances
        .get_mut(&key("weather/api"))
        .unwrap()
        .network
        .hosts
        .push("b.example:443".to_owned());
    let tools = &mut new.instances.get_mut(&key("home/files")).unwrap().tools;
    tools.get_mut("read.file").unwrap().input_schema["properties"]["size"]["maximum"] = json!(7);
    let (old, new) = (old.write(None), new.write(None));
    let before: Vec<&str> = old.lines().collect();
    let added: Vec<&str> = new.lines().filter(|line| !before.contains(line)).collect();
    assert_eq!(added, ["      \"maximum\": 7,", "  \"b.example:443\","]);
    assert_eq!(new.lines().count(), old.lines().count() + 1);
}
