//! Discovery through the bridge: `tools/list`, every page, as a discovery array (P2, J09, J10).

use selu_compiler::check::discovered;
use serde_json::{Value, json};

use crate::desk::{Bridge, command, server};

fn policies(list: &Value) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let text = |field: &str| tool[field].as_str().unwrap().to_owned();
            (text("name"), text("recommended_policy"))
        })
        .collect();
    all.sort();
    all
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter()
        .map(|(tool, policy)| ((*tool).to_owned(), (*policy).to_owned()))
        .collect()
}

#[tokio::test]
async fn a_list_is_a_discovery_array_with_policies_from_annotations() {
    let bridge = Bridge::of("plain").await;
    let list = bridge.list().await.unwrap();
    assert_eq!(
        list[0],
        json!({
            "name": "look", "description": "Looks", "recommended_policy": "allow",
            "input_schema": {"type": "object", "properties": {"zone": {"type": "string", "default": "UTC"}}},
        })
    );
    assert_eq!(
        policies(&list),
        pairs(&[
            ("add_item", "ask"),
            ("look", "allow"),
            ("quiet", "ask"),
            ("wipe", "ask")
        ])
    );
    assert_eq!(
        list[3]["description"],
        "The MCP server's tool quiet, which it does not describe."
    );
    let checked =
        discovered::discovered("bridge", "list_tools", list.to_string().as_bytes()).unwrap();
    assert!(checked.notes.is_empty(), "{:?}", checked.notes);
    assert_eq!(checked.tools.len(), 4);
}

#[tokio::test]
async fn the_author_overrides_policies_on_the_command_line_and_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policies");
    std::fs::write(
        &file,
        "# what changes things\nwipe = block\n\nadd_item = allow\n",
    )
    .unwrap();
    let arguments = [
        "--policy",
        "look=ask",
        "--policy-file",
        file.to_str().unwrap(),
    ];
    let bridge = Bridge::with("plain", &arguments, &[]).await;
    assert_eq!(
        policies(&bridge.list().await.unwrap()),
        pairs(&[
            ("add_item", "allow"),
            ("look", "ask"),
            ("quiet", "ask"),
            ("wipe", "block")
        ])
    );
}

#[tokio::test]
async fn an_override_for_a_tool_that_is_not_there_fails_discovery_and_says_what_there_is() {
    let bridge = Bridge::with("plain", &["--policy", "wype=block"], &[]).await;
    let error = bridge.list().await.unwrap_err();
    assert!(
        error.contains("names wype") && error.contains("wipe"),
        "{error}"
    );
}

#[tokio::test]
async fn every_page_is_read_j09() {
    let list = Bridge::of("pages").await.list().await.unwrap();
    assert_eq!(list.as_array().unwrap().len(), 8);
    assert_eq!(list[7]["name"], "page3_1");
}

#[tokio::test]
async fn a_list_that_does_not_end_is_an_error_and_the_server_answers_on_j10() {
    for (kind, words) in [
        ("circle", "its cursor `the-same` came twice"),
        ("endless", "more than 1001 pages"),
        ("many", "more than 1000 tools"),
    ] {
        let bridge = Bridge::of(kind).await;
        let error = bridge.list().await.unwrap_err();
        assert!(error.contains(words), "{kind}: {error}");
        bridge.pid().await;
    }
}

#[tokio::test]
async fn a_list_that_lies_about_its_shape_names_the_tool_i06() {
    for (kind, words) in [
        (
            "lies-schema",
            "the `inputSchema` of liar is a string, it must be an object",
        ),
        ("lies-shape", "`tools` is an object"),
    ] {
        let error = Bridge::of(kind).await.list().await.unwrap_err();
        assert!(error.contains(words), "{kind}: {error}");
    }
}

#[tokio::test]
async fn a_list_that_changes_is_told_and_asked_for_anew_i17() {
    let bridge = Bridge::of("plain").await;
    let before = bridge.list().await.unwrap();
    bridge.call("grow", json!({})).await.unwrap();
    bridge.log.wait_for("its list of tools changed").await;
    let after = bridge.list().await.unwrap();
    assert_eq!(before.as_array().unwrap().len(), 4);
    assert_eq!(after[4]["name"], "grown");
}

#[tokio::test]
async fn a_list_is_the_same_bytes_in_another_time_zone_and_on_a_second_run() {
    let mut lists = Vec::new();
    for zone in ["UTC", "Asia/Tokyo", "America/New_York"] {
        let bridge = Bridge::with("plain", &[], &[("TZ", zone)]).await;
        for _ in 0..2 {
            lists.push(bridge.list().await.unwrap().to_string());
        }
    }
    // The zone does reach a server that is started without the bridge.
    lists.dedup();
    assert_eq!(lists.len(), 1);
    let output = std::process::Command::new("python3")
        .args(["-c", "import time; print(time.tzname[0])"])
        .env("TZ", "Asia/Tokyo")
        .output()
        .unwrap();
    assert_ne!(output.stdout, b"UTC\n");
}

#[tokio::test]
async fn the_bridge_tells_every_server_the_same_of_itself() {
    let client = Bridge::of("plain")
        .await
        .call("client", json!({}))
        .await
        .unwrap();
    assert_eq!(
        client,
        json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "selu-mcp-bridge", "version": "1"},
        })
    );
}

#[tokio::test]
async fn a_manifest_may_name_another_discovery_tool() {
    let bridge = Bridge::with("plain", &["--discovery-tool", "catalogue"], &[]).await;
    let list = bridge.call("catalogue", json!({})).await.unwrap();
    assert_eq!(list.as_array().unwrap().len(), 4);
    let error = bridge.error("list_tools").await;
    assert!(error.contains("Unknown tool: list_tools"), "{error}");
}

#[tokio::test]
async fn an_older_version_is_spoken_and_an_unknown_one_is_named_j15() {
    assert!(Bridge::of("old").await.list().await.is_ok());
    let error = Bridge::of("future").await.list().await.unwrap_err();
    assert!(
        error.contains("speaks protocol version 2099-01-01") && error.contains("2025-11-25"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_served_ends_at_the_start_with_its_reason() {
    for (arguments, program, code, words) in [
        (
            &[][..],
            "no-such-program",
            1,
            "`no-such-program` is in no folder of PATH",
        ),
        (&[], "/etc/hostname-of-nobody", 1, "not readable"),
        (
            &["--policy", "wipe"],
            "true",
            64,
            "`wipe` is not TOOL=POLICY",
        ),
        (
            &["--policy", "wipe=blok"],
            "true",
            64,
            "`blok` is no policy",
        ),
        (
            &["--placeholder", "LD_PRELOAD"],
            "true",
            1,
            "`LD_PRELOAD` is reserved",
        ),
        (
            &["--policy-file", "/nowhere"],
            "true",
            1,
            "cannot read /nowhere",
        ),
    ] {
        let output = command(arguments).args(["--", program]).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(words), "{text}");
    }
    let output = command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(server("plain").len() == 4);
}
