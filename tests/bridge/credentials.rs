//! Credentials through the bridge (P1, P3, C4, C5).

use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Bridge, powerless, runs, server, wait_gone};

const LIMIT: Duration = Duration::from_secs(60);
const CANARY: &str = "canary-1f9ae3";

fn of(mail: &str) -> Value {
    json!({"MAIL": mail, "PW": CANARY})
}

#[tokio::test]
async fn credentials_become_the_environment_of_the_server_and_nothing_of_them_is_fixed_elsewhere() {
    let bridge = Bridge::with("plain", &[], &[("FROM_IMAGE", "kept")]).await;
    let names = json!({"names": ["MAIL", "PW", "TZ", "FROM_IMAGE", "OTHER"]});
    let result = bridge
        .call_with("environment", names, of("ada@example.com"), LIMIT)
        .await
        .unwrap();
    assert_eq!(
        result,
        json!({"MAIL": "ada@example.com", "PW": CANARY, "TZ": "UTC", "FROM_IMAGE": "kept", "OTHER": null})
    );
}

#[tokio::test]
async fn two_users_calls_side_by_side_never_meet_in_one_subprocess() {
    let bridge = Bridge::of("plain").await;
    let ask = |mail: &'static str| {
        let bridge = &bridge;
        async move {
            let names = json!({"names": ["MAIL"]});
            for _ in 0..5 {
                let seen = bridge
                    .call_with("environment", names.clone(), of(mail), LIMIT)
                    .await
                    .unwrap();
                assert_eq!(seen["MAIL"], mail);
            }
            let look = bridge
                .call_with("look", json!({}), of(mail), LIMIT)
                .await
                .unwrap();
            look["pid"].as_i64().unwrap()
        }
    };
    let (ada, bob) = tokio::join!(ask("ada@example.com"), ask("bob@example.com"));
    assert_ne!(ada, bob);
    assert_eq!(ask("ada@example.com").await, ada);
    assert!(runs(ada) && runs(bob));
}

#[tokio::test]
async fn a_server_cannot_read_the_environment_of_another_where_the_kernel_has_landlock() {
    let mut command = powerless(&[]);
    command.arg("--").args(server("plain"));
    let bridge = Bridge::start(command).await;
    let look = bridge
        .call_with("look", json!({}), of("ada@example.com"), LIMIT)
        .await;
    let ada = look.unwrap()["pid"].clone();
    let read =
        |user: &'static str| bridge.call_with("neighbour", json!({"pid": ada}), of(user), LIMIT);
    // The same file is there for the server's own process.
    let own = read("ada@example.com").await.unwrap();
    assert!(own.as_str().unwrap().contains(CANARY));
    let other = read("bob@example.com").await;
    if bridge.log.text().contains("this kernel has no Landlock") {
        eprintln!(
            "skipped: this kernel has no Landlock; unwalled it was {}",
            other.is_ok()
        );
        return;
    }
    assert_eq!(other, Err("PermissionError".to_owned()));
}

#[tokio::test]
async fn a_servers_domain_lets_it_move_files_between_folders() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("a.txt");
    let to = folder.path().join("b/c/a.txt");
    std::fs::write(&from, "kept").unwrap();
    let bridge = Bridge::of("plain").await;
    let moved = bridge.call("move", json!({"from": from, "to": to})).await;
    assert_eq!(moved, Ok(json!("moved")));
    assert_eq!(std::fs::read_to_string(to).unwrap(), "kept");
}

#[tokio::test]
async fn a_fifth_set_of_values_takes_the_place_of_the_one_not_used_for_longest() {
    let bridge = Bridge::of("plain").await;
    let mut pids = Vec::new();
    for mail in ["a@x", "b@x", "c@x", "d@x", "e@x"] {
        let look = bridge
            .call_with("look", json!({}), of(mail), LIMIT)
            .await
            .unwrap();
        pids.push(look["pid"].as_i64().unwrap());
    }
    wait_gone(pids[0]);
    assert!(pids[1..].iter().all(|pid| runs(*pid)));
}

#[tokio::test]
async fn a_server_that_needs_a_value_to_start_is_listed_with_a_placeholder_and_not_called_with_one()
{
    let without = Bridge::of("needs-pw").await;
    let error = without.list().await.unwrap_err();
    assert!(
        error.contains("exit code 2") && error.contains("PW is not set, good bye"),
        "{error}"
    );
    let bridge = Bridge::with("needs-pw", &["--placeholder", "PW"], &[]).await;
    assert_eq!(bridge.list().await.unwrap().as_array().unwrap().len(), 4);
    let error = bridge.error("look").await;
    assert!(error.contains("the credential PW is missing"), "{error}");
    let credentials = json!({"PW": CANARY});
    let names = json!({"names": ["PW"]});
    let seen = bridge
        .call_with("environment", names, credentials, LIMIT)
        .await
        .unwrap();
    assert_eq!(seen["PW"], CANARY);
}

#[tokio::test]
async fn errors_keep_the_servers_words_without_credential_values_and_so_does_the_log_p3() {
    let bridge = Bridge::of("plain").await;
    for (tool, words) in [
        ("failing", "login of [secret] with [secret] refused"),
        ("refused", "refused, password [secret] (MCP error -32000"),
        ("crash", "going down with [secret]"),
    ] {
        let credentials = of("ada@example.com");
        let error = bridge
            .call_with(tool, json!({}), credentials, LIMIT)
            .await
            .unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(!error.contains(CANARY), "{error}");
    }
    let (code, log) = bridge.end();
    assert_eq!(code, Some(0));
    assert!(log.contains("going down with [secret]"), "{log}");
    assert!(!log.contains(CANARY), "{log}");
    let dying = Bridge::of("dies").await;
    let error = dying
        .call_with("look", json!({}), of("a@x"), LIMIT)
        .await
        .unwrap_err();
    assert!(
        error.contains("exit code 7") && error.contains("the database of [secret]"),
        "{error}"
    );
}

#[tokio::test]
async fn what_would_steer_the_server_is_refused_without_its_value() {
    let bridge = Bridge::of("plain").await;
    for name in [
        "LD_PRELOAD",
        "PATH",
        "PYTHONPATH",
        "TZ",
        "SELU_SESSION_ID",
        "A B",
    ] {
        let error = bridge
            .call_with("look", json!({}), json!({name: CANARY}), LIMIT)
            .await
            .unwrap_err();
        assert!(
            error.starts_with("credential: ") && !error.contains(CANARY),
            "{error}"
        );
    }
    let error = bridge
        .call_with("look", json!({}), json!({"KEY": {"a": CANARY}}), LIMIT)
        .await
        .unwrap_err();
    assert_eq!(error, "credential: KEY must be a string");
}

#[tokio::test]
async fn a_server_without_calls_is_stopped_and_started_again_by_the_next_one() {
    let bridge = Bridge::with("plain", &["--idle", "1s"], &[]).await;
    let first = bridge.pid().await;
    wait_gone(first);
    assert_ne!(bridge.pid().await, first);
}

#[tokio::test]
async fn a_signal_ends_the_bridge_and_every_server_of_it() {
    let bridge = Bridge::of("plain").await;
    let pid = bridge.pid().await;
    let (code, _) = bridge.end();
    assert_eq!(code, Some(0));
    assert!(!runs(pid));
}
