//! Servers that crash, hang, flood and babble: the call fails with its reason, and the next one works (P4, J01, J12).

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use crate::desk::{Bridge, command, runs, wait_gone};

const LIMIT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_crash_fails_its_call_with_exit_code_and_last_lines_and_the_next_one_works() {
    let bridge = Bridge::of("plain").await;
    let first = bridge.pid().await;
    let error = bridge.error("crash").await;
    assert!(
        error.contains("ended with exit code 3") && error.contains("going down with None"),
        "{error}"
    );
    assert_ne!(bridge.pid().await, first);
}

#[tokio::test]
async fn a_server_that_closes_its_output_is_ended_and_replaced() {
    let bridge = Bridge::of("plain").await;
    let first = bridge.pid().await;
    let error = bridge.error("close").await;
    assert!(error.contains("closed its output"), "{error}");
    wait_gone(first);
    assert_ne!(bridge.pid().await, first);
}

#[tokio::test]
async fn a_hang_ends_at_the_deadline_and_the_next_call_gets_another_server() {
    let bridge = Bridge::of("plain").await;
    let first = bridge.pid().await;
    let error = bridge
        .call_with("hang", json!({}), json!({}), SHORT)
        .await
        .unwrap_err();
    assert!(error.contains("did not answer within 2 s"), "{error}");
    assert_ne!(bridge.pid().await, first);
    assert!(!runs(first));
}

#[tokio::test]
async fn a_deadline_reaches_the_server_and_one_that_answers_is_kept() {
    let bridge = Bridge::of("plain").await;
    let first = bridge.pid().await;
    let waiting = bridge.call_with("wait", json!({"word": "long"}), json!({}), SHORT);
    assert!(waiting.await.is_err());
    bridge.log.wait_for("told to stop waiting long").await;
    assert_eq!(bridge.pid().await, first);
}

#[tokio::test]
async fn a_caller_that_goes_away_is_told_to_the_server_and_other_calls_go_on() {
    let bridge = Bridge::of("plain").await;
    let first = bridge.pid().await;
    {
        let waiting = bridge.call_with("wait", json!({"word": "alone"}), json!({}), LIMIT);
        tokio::pin!(waiting);
        // Once it waits, another call passes it by; then nobody waits any more.
        let started = async {
            while !bridge.log.text().contains("waiting alone") {
                assert_eq!(bridge.pid().await, first);
            }
        };
        tokio::select! {
            result = &mut waiting => panic!("{result:?}"),
            () = started => {}
        }
    }
    bridge.log.wait_for("told to stop waiting alone").await;
    assert_eq!(bridge.pid().await, first);
}

#[tokio::test]
async fn ten_mebibytes_on_standard_error_stop_nothing_and_do_not_fill_the_log_j12() {
    let bridge = Bridge::of("plain").await;
    assert_eq!(bridge.call("flood", json!({})).await.unwrap(), "flooded");
    bridge.pid().await;
    let (_, log) = bridge.end();
    assert!(log.contains("the MCP server says too much"));
    assert!(log.len() < 200_000, "{}", log.len());
}

#[tokio::test]
async fn noise_on_standard_output_is_shown_and_ends_nothing() {
    let banner = Bridge::of("banner").await;
    assert!(banner.list().await.is_ok());
    let bridge = Bridge::of("plain").await;
    assert_eq!(bridge.call("noise", json!({})).await.unwrap(), "quiet now");
    bridge.pid().await;
    let (_, log) = bridge.end();
    assert!(
        log.contains("stdout, not JSON: Debugger listening"),
        "{log}"
    );
    assert!(log.contains("binary \\u{1b}[31m"), "{log}");
    assert!(log.contains("structured logging"), "{log}");
}

#[tokio::test]
async fn a_server_that_asks_without_an_end_gets_some_answers_and_gives_its_own() {
    let bridge = Bridge::of("plain").await;
    let first = bridge.pid().await;
    assert_eq!(bridge.call("demand", json!({})).await.unwrap(), "demanded");
    assert_eq!(bridge.pid().await, first);
}

#[tokio::test]
async fn an_answer_of_17_mebibytes_is_an_error_with_both_numbers_and_one_of_15_passes_j01() {
    let bridge = Bridge::of("plain").await;
    let first = bridge.pid().await;
    let error = bridge.error("huge").await;
    assert!(
        error.contains("wrote a message of 17825") && error.contains("the limit is 16842752"),
        "{error}"
    );
    let large = bridge.call("large", json!({})).await.unwrap();
    assert_eq!(large.as_str().unwrap().len(), 15 * 1024 * 1024);
    assert_eq!(bridge.pid().await, first);
}

#[tokio::test]
async fn an_answer_that_is_no_json_or_no_result_fails_its_call_and_no_other() {
    let bridge = Bridge::of("plain").await;
    let first = bridge.pid().await;
    let error = bridge.error("broken").await;
    assert!(error.contains("is not valid JSON"), "{error}");
    let error = bridge.error("no-result").await;
    assert!(error.contains("answer to tools/call is not MCP"), "{error}");
    assert_eq!(bridge.pid().await, first);
}

#[tokio::test]
async fn a_program_that_is_no_mcp_server_is_called_that() {
    let mut ends = command(&[]);
    ends.args(["--", "true"]);
    let error = Bridge::start(ends).await.list().await.unwrap_err();
    assert!(
        error.contains("could not be initialised: it ended with exit code 0"),
        "{error}"
    );
    // `cat` sends every request back.
    for program in ["cat", "yes"] {
        let mut command = command(&[]);
        command.args(["--", program]);
        let bridge = Bridge::start(command).await;
        let list = bridge.call_with("list_tools", json!({}), json!({}), SHORT);
        let error = timeout(LIMIT, list).await.unwrap().unwrap_err();
        assert!(
            error.contains("did not answer within 2 s"),
            "{program}: {error}"
        );
    }
}

#[tokio::test]
async fn a_server_that_reads_nothing_ends_at_the_deadline() {
    let bridge = Bridge::of("deaf").await;
    let error = bridge
        .call_with("look", json!({"x": "y".repeat(1 << 20)}), json!({}), SHORT)
        .await
        .unwrap_err();
    assert!(error.contains("did not answer within 2 s"), "{error}");
}
