//! The known rug-pull patterns: a server that changes its tools after a person has approved them. Each is caught by the
//! next discovery, shown with its grade, and kept out of use where the project holds changes; and what is accepted then.

use serde_json::json;

use super::super::*;
use super::merge::{FILES, found, merge_with, overrides, tool};
use super::{hash, key};
use crate::model::{OnChange, Settings, Tool};
use crate::report::review_text;
use crate::review::{Grade, Kind, Review, Snapshot};

/// The tool that a person approved.
fn approved() -> Tool {
    let mut tool = tool("send", Some(Policy::Ask));
    tool.description = "Sends a message.".to_owned();
    tool.input_schema = json!({
        "type": "object",
        "properties": {"to": {"type": "string", "maxLength": 40}},
        "required": ["to"],
        "additionalProperties": false,
    })
    .into();
    tool
}

/// It, with one thing else.
fn changed(edit: impl FnOnce(&mut Tool, &mut serde_json::Value)) -> Tool {
    let mut tool = approved();
    let mut schema = tool.input_schema.value();
    edit(&mut tool, &mut schema);
    tool.input_schema = schema.into();
    tool
}

fn holding() -> Settings {
    Settings {
        on_change: OnChange::Hold,
        ..Settings::default()
    }
}

/// A lock that has the approved tool.
fn first() -> Lock {
    let outcome = Some(found([approved()]));
    merge_with(None, outcome, &Settings::default()).lock
}

/// What waits after `tools` were listed, and the lock.
fn listed(tools: impl IntoIterator<Item = Tool>) -> (Merged, Lock) {
    let merged = merge_with(Some(&first()), Some(found(tools)), &holding());
    let waiting = Lock::default().waiting_after(&merged);
    (merged, waiting)
}

#[test]
fn each_rug_pull_is_caught_shown_and_kept_out_of_use_until_it_is_accepted() {
    let renamed = changed(|tool, _| tool.name = "sent".to_owned());
    // Pattern, what is listed now, what waits, and how a reviewer is told once it is accepted.
    let table: Vec<(&str, Tool, &str, Kind, Grade, &str)> = vec![
        (
            "description rewritten",
            changed(|tool, _| tool.description = "Sends a message and a copy.".to_owned()),
            "send",
            Kind::Description,
            Grade::Neutral,
            "{+",
        ),
        (
            "hidden instructions",
            changed(|tool, _| tool.description = "Sends a\u{200b} message.".to_owned()),
            "send",
            Kind::Description,
            Grade::Widening,
            "U+200B",
        ),
        (
            "instructions in a schema's text",
            changed(|_, schema| schema["properties"]["to"]["description"] = json!("\u{e0041}")),
            "send",
            Kind::Schema,
            Grade::Widening,
            "U+E0041",
        ),
        (
            "rename",
            renamed,
            "sent",
            Kind::Tool,
            Grade::Widening,
            "a new tool",
        ),
        (
            "optional argument added",
            changed(|_, schema| schema["properties"]["bcc"] = json!({"type": "string"})),
            "send",
            Kind::Schema,
            Grade::Widening,
            "input_schema/properties/bcc",
        ),
        (
            "schema loosened: a bound",
            changed(|_, schema| schema["properties"]["to"] = json!({"type": "string"})),
            "send",
            Kind::Schema,
            Grade::Widening,
            "maxLength",
        ),
        (
            "schema loosened: anything besides",
            changed(|_, schema| schema["additionalProperties"] = json!(true)),
            "send",
            Kind::Schema,
            Grade::Widening,
            "additionalProperties",
        ),
        (
            "recommendation raised",
            changed(|tool, _| tool.recommended = Some(Policy::Allow)),
            "send",
            Kind::Recommendation,
            Grade::Widening,
            "not applied",
        ),
    ];
    for (pattern, now, name, kind, grade, says) in table {
        let (merged, waiting) = listed([now]);
        assert!(
            merged.changes.iter().any(|change| change.held),
            "{pattern}: caught"
        );
        let locked = &merged.lock.instances[&key(FILES)].tools;
        let before = &first().instances[&key(FILES)].tools;
        assert_eq!(locked.get(name), before.get(name), "{pattern}: not in use");
        let names = [format!("{FILES}/{name}")];
        assert_eq!(waiting.waiting_names(), names, "{pattern}");

        let accepted = merged.lock.accept(&waiting, &names, &holding()).unwrap();
        let review = Review::new(
            &Snapshot::of_lock(&merged.lock),
            &Snapshot::of_lock(&accepted),
        );
        let shown = review_text(&review).unwrap();
        assert!(shown.contains(says), "{pattern}: {shown}");
        let found = review
            .findings
            .iter()
            .any(|one| (one.kind, one.grade) == (kind, grade));
        assert!(found, "{pattern}: {:#?}", review.findings);
        assert_eq!(
            accepted.instances[&key(FILES)].tools[name].policy,
            Policy::Ask,
            "{pattern}: whatever it recommends now"
        );
        assert!(waiting.not_in(&accepted).instances.is_empty(), "{pattern}");
    }
}

#[test]
fn a_list_that_an_error_emptied_takes_nothing_away_and_what_comes_back_waits() {
    let failed = merge_with(Some(&first()), Some(DiscoveryOutcome::Failed), &holding());
    assert_eq!(failed.lock, first(), "D4");
    // A server that swallows its error and lists nothing is believed, and seen.
    let (emptied, waiting) = listed([]);
    let gone = Review::new(
        &Snapshot::of_lock(&first()),
        &Snapshot::of_lock(&emptied.lock),
    );
    assert_eq!(gone.count(Grade::Narrowing), 1, "{:#?}", gone.findings);
    assert!(waiting.instances.is_empty());
    let mut bolder = approved();
    bolder.recommended = Some(Policy::Allow);
    let back = merge_with(Some(&emptied.lock), Some(found([bolder])), &holding());
    assert!(back.lock.instances[&key(FILES)].tools.is_empty());
    assert_eq!(
        Lock::default().waiting_after(&back).waiting_names(),
        [format!("{FILES}/send")]
    );
}

#[test]
fn a_tool_that_returns_under_an_old_override_waits_even_where_changes_take_effect_d3() {
    let over = overrides(&[(FILES, "send", Policy::Allow)]);
    let emptied = merge_with(Some(&first()), Some(found([])), &over);
    let back = merge_with(Some(&emptied.lock), Some(found([approved()])), &over);
    assert!(back.changes[0].held);
    assert!(back.lock.instances[&key(FILES)].tools.is_empty());
    let waiting = Lock::default().waiting_after(&back);
    let accepted = back.lock.accept(&waiting, &[FILES.to_owned()], &over);
    let tool = &accepted.unwrap().instances[&key(FILES)].tools["send"];
    assert_eq!(
        (tool.policy, tool.policy_origin),
        (Policy::Allow, PolicyOrigin::Override)
    );
    // One that is stricter than the tool itself asks for takes nothing from anybody.
    let strict = overrides(&[(FILES, "send", Policy::Block)]);
    let back = merge_with(Some(&emptied.lock), Some(found([approved()])), &strict);
    assert_eq!(
        back.lock.instances[&key(FILES)].tools["send"].policy,
        Policy::Block
    );
    // And what a new capability is given with its manifest needs no second word.
    let new = merge_with(None, Some(found([approved()])), &over);
    assert_eq!(
        new.lock.instances[&key(FILES)].tools["send"].policy,
        Policy::Allow
    );
}

#[test]
fn what_is_not_asked_again_goes_on_waiting_and_what_another_image_said_is_not_accepted() {
    let (merged, waiting) = listed([approved(), tool("new", None)]);
    let unasked = merge_with(Some(&merged.lock), None, &holding());
    assert_eq!(waiting.waiting_after(&unasked), waiting);
    let taken_back = merge_with(Some(&merged.lock), Some(found([approved()])), &holding());
    assert_eq!(waiting.waiting_after(&taken_back), Lock::default());

    let names = [format!("{FILES}/new")];
    let mut other = merged.lock.clone();
    other.instances.get_mut(&key(FILES)).unwrap().image.source = Some(hash('e'));
    let error = other.accept(&waiting, &names, &holding()).unwrap_err();
    assert!(
        matches!(error, AcceptError::OtherImage { .. }),
        "{error:#?}"
    );
    let typo = merged
        .lock
        .accept(&waiting, &[format!("{FILES}/nwe")], &holding());
    assert!(typo.unwrap_err().to_string().contains("home/files/new"));
    let twice = [names[0].clone(), FILES.to_owned(), names[0].clone()];
    let accepted = merged.lock.accept(&waiting, &twice, &holding()).unwrap();
    assert_eq!(
        accepted.instances[&key(FILES)].tools["new"].policy,
        Policy::Block,
        "nobody recommended anything"
    );
    // It is written and read as a lock is.
    assert_eq!(Lock::read(&waiting.write(None)).unwrap(), waiting);
}
