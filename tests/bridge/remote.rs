//! MCP servers that are reached by a URL (Streamable HTTP): the same rules, and credentials stay with their host.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Bridge, command};

const LIMIT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(2);
const CANARY: &str = "canary-7be210";

/// A server that runs elsewhere, which is this machine.
struct Far {
    process: Child,
    port: u16,
}

impl Far {
    fn start(arguments: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/bridge/far.py");
        let mut process = Command::new("python3")
            .arg(script)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = process.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        Self { process, port }
    }

    async fn bridge_at(&self, path: &str, arguments: &[&str]) -> Bridge {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let all = [&["--url", &url], arguments].concat();
        Bridge::start(command(&all)).await
    }

    async fn bridge(&self, arguments: &[&str]) -> Bridge {
        self.bridge_at("/mcp", arguments).await
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the server noted, until something is among it.
async fn seen(bridge: &Bridge, words: &str) -> String {
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let all = bridge.call("seen", json!({})).await.unwrap().to_string();
        if all.contains(words) {
            return all;
        }
        assert!(std::time::Instant::now() < end, "no {words:?}: {all}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn every_page_is_listed_and_calls_go_through_as_json_and_as_a_stream() {
    let far = Far::start(&[]);
    let bridge = far.bridge(&[]).await;
    let list = bridge.list().await.unwrap();
    assert_eq!(list.as_array().unwrap().len(), 3);
    assert_eq!(list[2]["recommended_policy"], "ask");
    let arguments = json!({"city": "Köln", "n": [1, 2.5, null]});
    let look = bridge.call("look", arguments.clone()).await.unwrap();
    assert_eq!(look["arguments"], arguments);
    assert_eq!(bridge.call("stream", json!({})).await.unwrap(), "streamed");
    // What the server asked of us got the protocol's answer.
    seen(&bridge, "answered mine: {'roots': []}").await;
    bridge.log.wait_for("half way").await;
    assert_eq!(
        bridge.error("no_such").await,
        "Unknown tool: no_such (MCP error -32602)"
    );
    let large = bridge.call("large", json!({})).await.unwrap();
    assert_eq!(large.as_str().unwrap().len(), 15 * 1024 * 1024);
}

#[tokio::test]
async fn credentials_become_headers_and_each_set_of_them_has_a_session_of_its_own_p1() {
    let far = Far::start(&[]);
    let headers = [
        "--header",
        "Authorization: Bearer ${KEY}",
        "--header",
        "X-Org: ${ORG}",
    ];
    let bridge = far.bridge(&headers).await;
    let ask = |key: &'static str| {
        let bridge = &bridge;
        async move {
            let look = bridge
                .call_with("look", json!({}), json!({"KEY": key}), LIMIT)
                .await;
            let look = look.unwrap();
            assert_eq!(look["authorization"], format!("Bearer {key}"));
            assert_eq!(look["org"], Value::Null);
            look["session"].as_str().unwrap().to_owned()
        }
    };
    let (ada, bob) = tokio::join!(ask("ada-key"), ask("bob-key"));
    assert_ne!(ada, bob);
    assert_eq!(ask("ada-key").await, ada);
    let other = bridge
        .call_with("look", json!({}), json!({"OTHER": CANARY}), LIMIT)
        .await
        .unwrap_err();
    assert_eq!(other, "credential: no --header of the bridge sends OTHER");
}

#[tokio::test]
async fn a_refusal_names_the_credential_without_a_value_and_a_placeholder_serves_for_the_list_only()
{
    let far = Far::start(&["locked"]);
    let header = ["--header", "Authorization: Bearer ${KEY}"];
    let bridge = far.bridge(&header).await;
    let error = bridge.list().await.unwrap_err();
    assert!(
        error.contains("401 Unauthorized; without a value is KEY: who is that?"),
        "{error}"
    );
    let right = json!({"KEY": "right-key-1"});
    let look = bridge.call_with("look", json!({}), right, LIMIT).await;
    assert!(look.is_ok(), "{look:?}");
    let with = far
        .bridge(&[&header[..], &["--placeholder", "KEY"]].concat())
        .await;
    let error = with.error("look").await;
    assert!(error.contains("the credential KEY is missing"), "{error}");
}

#[tokio::test]
async fn a_redirect_to_another_host_is_refused_and_that_host_hears_nothing() {
    let far = Far::start(&[]);
    let bridge = far.bridge(&["--header", "Authorization: ${KEY}"]).await;
    let call =
        |tool: &'static str| bridge.call_with(tool, json!({}), json!({"KEY": CANARY}), LIMIT);
    for (tool, words) in [
        ("elsewhere", "redirects (307) to http://127.0.0.1:"),
        ("found", "redirects (302) to /mcp"),
        ("circle", "redirects without an end"),
    ] {
        let error = call(tool).await.unwrap_err();
        assert!(error.contains(words) && !error.contains("key=1"), "{error}");
    }
    let seen = call("seen").await.unwrap().to_string();
    assert!(!seen.contains("elsewhere"), "{seen}");
    // Within the host it is followed, with the message as it was.
    let moved = far.bridge_at("/old", &[]).await;
    assert_eq!(moved.list().await.unwrap().as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn what_is_no_answer_fails_its_call_with_a_reason_and_the_next_one_works_p4() {
    let far = Far::start(&[]);
    let bridge = far.bridge(&[]).await;
    for (tool, words) in [
        ("huge", "a message of more than 16842752 bytes"),
        ("huge-event", "a message of more than 16842752 bytes"),
        ("cut", "ended its stream before it answered"),
        ("html", "with status 200 OK and text/html"),
        ("nothing", "with status 202 Accepted and no content"),
        ("stranger", "is none to what it was asked"),
        ("no-json", "is not valid JSON"),
        ("broken", "broke off"),
        (
            "failing",
            "HTTP status 500 Internal Server Error: None is not welcome",
        ),
    ] {
        let error = bridge.error(tool).await;
        assert!(error.contains(words), "{tool}: {error}");
        bridge.call("look", json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_taken_up_again_where_the_server_said_how() {
    let far = Far::start(&[]);
    let bridge = far.bridge(&[]).await;
    assert_eq!(bridge.call("resume", json!({})).await.unwrap(), "resumed");
    seen(&bridge, "resumed after again-").await;
}

#[tokio::test]
async fn a_session_that_the_server_forgot_fails_one_call_and_the_next_one_opens_another() {
    let far = Far::start(&[]);
    let bridge = far.bridge(&[]).await;
    let first = bridge.call("look", json!({})).await.unwrap()["session"].clone();
    bridge.call("forget", json!({})).await.unwrap();
    let error = bridge.error("look").await;
    assert!(
        error.contains("does not know the session any more"),
        "{error}"
    );
    let second = bridge.call("look", json!({})).await.unwrap()["session"].clone();
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_deadline_reaches_the_server_and_its_session_is_kept() {
    let far = Far::start(&[]);
    let bridge = far.bridge(&[]).await;
    let first = bridge.call("look", json!({})).await.unwrap()["session"].clone();
    for tool in ["wait", "endless"] {
        let error = bridge
            .call_with(tool, json!({}), json!({}), SHORT)
            .await
            .unwrap_err();
        assert!(error.contains("did not answer within 2 s"), "{error}");
        if tool == "wait" {
            seen(&bridge, "cancelled").await;
        }
    }
    assert_eq!(
        bridge.call("look", json!({})).await.unwrap()["session"],
        first
    );
}

#[tokio::test]
async fn errors_and_the_log_keep_the_servers_words_without_credential_values_p3() {
    let far = Far::start(&[]);
    let bridge = far
        .bridge(&["--header", "Authorization: Bearer ${KEY}"])
        .await;
    let error = bridge
        .call_with("failing", json!({}), json!({"KEY": CANARY}), LIMIT)
        .await
        .unwrap_err();
    assert!(error.contains("Bearer [secret] is not welcome"), "{error}");
    let (code, log) = bridge.end();
    assert_eq!(code, Some(0));
    assert!(!log.contains(CANARY), "{log}");
    assert!(log.contains("Bearer [secret] is not welcome"), "{log}");
}

#[tokio::test]
async fn a_session_is_left_when_it_was_not_used_and_at_the_end() {
    let far = Far::start(&[]);
    let watching = far.bridge(&[]).await;
    let bridge = far.bridge(&["--idle", "1s"]).await;
    bridge.call("look", json!({})).await.unwrap();
    seen(&watching, "deleted True").await;
    bridge.call("look", json!({})).await.unwrap();
    assert_eq!(bridge.end().0, Some(0));
    let all = seen(&watching, "deleted True").await;
    assert_eq!(all.matches("deleted True").count(), 2, "{all}");
}

#[tokio::test]
async fn a_server_that_is_not_there_or_has_no_tls_is_named_with_the_cure() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let url = format!("http://127.0.0.1:{port}/mcp?key={CANARY}");
    let bridge = Bridge::start(command(&["--url", &url])).await;
    let error = bridge.list().await.unwrap_err();
    assert!(
        error.contains(&format!("at 127.0.0.1:{port} cannot be reached"))
            && error.contains("manifest's network rules"),
        "{error}"
    );
    assert!(!error.contains(CANARY) && !bridge.log.text().contains(CANARY));
    let far = Far::start(&[]);
    let url = format!("https://127.0.0.1:{}/mcp", far.port);
    let error = Bridge::start(command(&["--url", &url]))
        .await
        .list()
        .await
        .unwrap_err();
    assert!(error.contains("no TLS that is trusted here"), "{error}");
}

#[test]
fn a_url_or_a_header_that_cannot_be_is_wrong_usage() {
    for (arguments, words) in [
        (
            &["--url", "example.com"][..],
            "begins with neither https:// nor http://",
        ),
        (
            &["--url", "http://example.com", "--header", "A: ${KEY}"],
            "is not https",
        ),
        (
            &["--url", "https://example.com", "--header", "A"],
            "NAME: VALUE",
        ),
        (
            &["--url", "https://example.com", "--", "true"],
            "cannot be used with",
        ),
        (&["--header", "A: b", "--", "true"], "cannot be used with"),
    ] {
        let output = command(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{text}");
        assert!(text.contains(words), "{text}");
    }
}

/// `server-everything`, unpacked from the tree that the engine's tests make of it.
fn everything() -> Option<PathBuf> {
    const PACKAGE: &str = "@modelcontextprotocol/server-everything@2026.8.31";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("everything");
    let entry =
        folder.join("app/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    if entry.exists() {
        return Some(entry);
    }
    let out = tempfile::tempdir().unwrap();
    let made = Command::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../scripts/mcp-rootfs"
    ))
    .args(["npm", PACKAGE])
    .env("SELU_BUILD_OUT", out.path())
    .env("SELU", env!("CARGO_BIN_EXE_selu"))
    .output()
    .unwrap();
    if made.status.code() == Some(75) {
        eprintln!("skipped: {}", String::from_utf8_lossy(&made.stderr).trim());
        return None;
    }
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    std::fs::create_dir_all(&folder).unwrap();
    let unpacked = Command::new("tar")
        .arg("-xf")
        .arg(out.path().join("rootfs.tar"))
        .arg("-C")
        .arg(&folder)
        .arg("./app")
        .status()
        .unwrap();
    assert!(unpacked.success());
    Some(entry)
}

#[tokio::test]
async fn npm_everything_is_bridged_over_streamable_http() {
    let Some(entry) = everything() else { return };
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let process = Command::new("node")
        .arg(entry)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut far = Far { process, port };
    let mut stderr = BufReader::new(far.process.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("listening on port") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    std::thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
    let bridge = far.bridge(&[]).await;
    assert_eq!(bridge.list().await.unwrap().as_array().unwrap().len(), 13);
    for (tool, arguments, words) in [
        ("echo", json!({"message": "hällo"}), "hällo"),
        ("get-sum", json!({"a": 2, "b": 3}), "5"),
        (
            "get-structured-content",
            json!({"location": "Chicago"}),
            "temperature",
        ),
        ("get-tiny-image", json!({}), "capability_artifact_id"),
        (
            "trigger-long-running-operation",
            json!({"duration": 1, "steps": 2}),
            "completed",
        ),
    ] {
        let result = bridge.call(tool, arguments).await.unwrap();
        assert!(result.to_string().contains(words), "{tool}: {result}");
    }
    let error = bridge.call("get-sum", json!({"a": "x"})).await.unwrap_err();
    assert!(error.contains("nvalid"), "{error}");
}
