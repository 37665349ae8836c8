//! Definitions that wait for a person, and `selu lock --accept`.

use crate::{Desk, locked_instance};

/// The lock of a dynamic capability with these tools.
fn lock(tools: &[(&str, &str)]) -> String {
    let mut text = locked_instance("weather/live", "live:1");
    text.push_str("discovery.tool = \"list_tools\"\ndiscovery.credentials_present = []\n");
    for (name, description) in tools {
        text.push_str(&format!(
            "\n[instance.\"weather/live\".tool.\"{name}\"]\nsource = \"discovered\"\npolicy = \"ask\"\npolicy_origin = \
             \"discovered\"\nrecommended = \"ask\"\nterminal_on_success = false\ndescription = \"{description}\"\n\
             input_schema = '{{\"type\": \"object\"}}'\n"
        ));
    }
    text
}

/// `send` is in use; another description of it and `wipe` wait.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.write(
        "selu.toml",
        "[project]\nname = \"demo\"\n[discovery]\non_change = \"hold\"\n",
    );
    desk.write("agents/weather/agent.yaml", "id: weather\nname: Weather\n");
    desk.write("agents/weather/agent.md", "You know the weather.\n");
    desk.write(
        "agents/weather/capabilities/live/manifest.yaml",
        "id: live\nimage: live:1\ntool_source: dynamic\n",
    );
    desk.write("selu.lock", &lock(&[("send", "Sends it.")]));
    desk.write(
        ".selu/waiting.lock",
        &lock(&[
            ("send", "Sends it, and a copy to us."),
            ("wipe", "Wipes it."),
        ]),
    );
    desk
}

#[test]
fn what_waits_is_neither_offered_nor_callable_and_is_named_with_the_way_to_it() {
    let desk = desk();
    let tools = desk
        .run(&["tools", "--format", "json"])
        .exits(0)
        .says("selu lock --accept");
    let tools = tools.json();
    let offered = tools["agents"]["weather"].as_array().unwrap();
    assert_eq!(offered.len(), 1, "{tools:#}");
    assert_eq!(offered[0]["description"], "Sends it.");
    assert_eq!(
        tools["waiting"],
        serde_json::json!(["weather/live/send", "weather/live/wipe"])
    );
    desk.run(&["invoke", "weather/live", "wipe"])
        .exits(1)
        .says("not in use yet")
        .says("selu lock --accept weather/live/wipe");
    // What nobody ever listed is another thing.
    desk.run(&["invoke", "weather/live", "wiep"])
        .exits(1)
        .says("has no tool `wiep`");
}

#[test]
fn what_was_listed_and_waits_is_not_said_to_be_unknown() {
    let desk = desk();
    desk.write("selu.lock", &lock(&[]));
    let ran = desk.run(&["tools"]).exits(0).says("selu lock --accept");
    assert!(!ran.err.contains("not known yet"), "{}", ran.err);
    std::fs::remove_file(desk.path().join(".selu/waiting.lock")).unwrap();
    desk.run(&["tools"]).exits(0).says("not known yet");
}

#[test]
fn accepting_shows_what_changes_and_writes_the_lock_and_nothing_else_waits_then() {
    let desk = desk();
    let before = std::fs::read_to_string(desk.path().join("selu.lock")).unwrap();
    let accept = ["lock", "--accept", "weather/live/send"];
    let seen = desk.run(&[&accept[..], &["--dry-run"]].concat()).exits(0);
    assert!(seen.out.contains("{+"), "{}", seen.out);
    assert_eq!(
        std::fs::read_to_string(desk.path().join("selu.lock")).unwrap(),
        before
    );
    let ran = desk
        .run(&accept)
        .exits(0)
        .says("still waiting: weather/live/wipe");
    assert_eq!(ran.out, seen.out);
    desk.run(&accept).exits(1).says("weather/live/wipe");
    desk.run(&["lock", "--check"]).exits(0);

    let all = ["lock", "--accept", "weather/live", "--format", "json"];
    let json = desk.run(&all).exits(0).json();
    assert_eq!(json["waiting"], serde_json::json!([]));
    assert_eq!(json["review"]["findings"][0]["tool"], "wipe");
    assert!(!desk.path().join(".selu/waiting.lock").exists());
    let tools = desk.run(&["tools"]).exits(0);
    assert!(
        tools.out.contains("and a copy to us") && tools.out.contains("live__wipe"),
        "{}",
        tools.out
    );
}

#[test]
fn what_cannot_be_accepted_says_why_and_what_to_do() {
    let desk = desk();
    desk.run(&["lock", "--accept", "weather/live/sned"])
        .exits(1)
        .says("did you mean `weather/live/send`?");
    desk.run(&["lock", "--accept", "weather/live", "--check"])
        .exits(64);
    let other = lock(&[("send", "Sends it.")]).replace("1111", "2222");
    desk.write("selu.lock", &other);
    desk.run(&["lock", "--accept", "weather/live/wipe"])
        .exits(1)
        .says("another image")
        .says("selu sync");
    // What another commit accepted waits no more.
    desk.write(
        "selu.lock",
        &lock(&[
            ("send", "Sends it, and a copy to us."),
            ("wipe", "Wipes it."),
        ]),
    );
    desk.run(&["lock", "--accept", "weather/live"])
        .exits(1)
        .says("nothing waits here");
    desk.write(".selu/waiting.lock", "version = 1\nx = 1\n");
    desk.run(&["tools"]).exits(1).says("remove it");
}

#[test]
fn a_policy_is_explained_for_what_a_container_lists_and_set_for_what_waits() {
    let desk = desk();
    let list = desk
        .run(&["policy", "list"])
        .exits(0)
        .says("weather/live/wipe");
    assert_eq!(
        list.out,
        "weather/live/send: ask by its own recommendation when it was added\n"
    );
    let explain = ["policy", "explain", "weather/live/send"];
    let ran = desk
        .run(&explain)
        .exits(0)
        .says("another definition of it waits");
    assert_eq!(
        ran.out,
        "weather/live/send: ask, it is called after a person agrees\n  \
         1. [policy] in selu.toml: says nothing\n  \
         2. kept in selu.lock since the tool was added: ask  ← decides\n  \
         3. what the capability recommends now (shown, not applied): ask\n  \
         4. otherwise: block\n"
    );
    desk.run(&["policy", "explain", "weather/live/wipe"])
        .exits(1)
        .says("selu lock --accept weather/live/wipe");
    // What waits may be judged before it is accepted, and nobody takes that judgement for a leftover.
    desk.run(&["policy", "set", "weather/live/wipe", "block"])
        .exits(0);
    desk.run(&["policy", "prune"]).exits(0).says("is there");
    desk.run(&["lock", "--accept", "weather/live/wipe"])
        .exits(0);
    let tools = desk.run(&["tools", "--format", "json"]).exits(0).json();
    assert_eq!(tools["blocked"], serde_json::json!(["weather/live wipe"]));
    // An override that ended leaves what was recommended when the tool was locked.
    desk.run(&["policy", "rm", "weather/live/wipe"]).exits(0);
    let ended = desk
        .run(&["policy", "explain", "weather/live/wipe"])
        .exits(0);
    assert!(
        ended
            .out
            .contains("recommended when it was locked: ask  ← decides"),
        "{}",
        ended.out
    );
}
