use std::collections::BTreeMap;

use selu_compiler::model::NetworkMode;
use tokio::io::{AsyncReadExt, duplex};

use super::*;
use crate::egress::control::Apply;
use crate::egress::policy::Policy;
use crate::egress::worker::testing::rule;

const NETWORK: &str = "selu_demo_weather_api_1";

fn apply(hosts: &[&str]) -> Apply {
    let policy = Policy::new(
        "demo",
        7,
        "10.231.0.0/16".parse().unwrap(),
        BTreeMap::from([(NETWORK.to_owned(), rule(NetworkMode::Allowlist, hosts, &[]))]),
        Vec::new(),
    );
    Apply {
        hash: policy.hash().unwrap(),
        policy,
        // A device that nobody has: nothing can be served, and nothing fails.
        networks: BTreeMap::new(),
        outside: None,
    }
}

/// What the worker answers to these lines, and how it ends.
async fn answers(lines: &str) -> (String, Result<(), WorkerError>) {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("selu_demo_weather_api_0.addresses");
    std::fs::write(&gone, "").unwrap();
    let recorder = Recorder::start(folder.path()).unwrap();
    let networks = Networks::new(folder.path(), RESOLV_CONF, recorder);
    let (mut ours, theirs) = duplex(1 << 20);
    let ended = obey(networks, lines.as_bytes(), theirs).await;
    let mut answers = String::new();
    ours.read_to_string(&mut answers).await.unwrap();
    assert_eq!(
        gone.exists(),
        answers.is_empty(),
        "an applied policy forgets what is gone"
    );
    (answers, ended)
}

fn line(apply: Apply) -> String {
    serde_json::to_string(&Order::Apply(Box::new(apply))).unwrap() + "\n"
}

#[tokio::test]
async fn an_order_is_answered_once_it_is_gone_by() {
    let apply = apply(&["api.example.com:443"]);
    let hash = apply.hash.clone();
    let (answers, ended) = answers(&line(apply)).await;
    assert_eq!(
        answers,
        format!("{{\"applied\":{{\"generation\":7,\"hash\":\"{hash}\"}}}}\n")
    );
    assert!(ended.is_ok(), "the end of orders is the end of the worker");
}

#[tokio::test]
async fn a_worker_says_that_it_is_alive() {
    let order = serde_json::to_string(&Order::Ping).unwrap() + "\n";
    let apply = line(apply(&["api.example.com:443"]));
    let (answers, ended) = answers(&(order + &apply)).await;
    let first = answers.lines().next().unwrap();
    assert_eq!(
        serde_json::from_str::<Report>(first).unwrap(),
        Report::Alive
    );
    assert!(ended.is_ok());
}

#[tokio::test]
async fn what_is_no_order_ends_the_worker_and_is_not_acknowledged() {
    for nonsense in ["{}\n", "{\"apply\":\n", "nonsense\n", "\n"] {
        let (answers, ended) = answers(nonsense).await;
        assert_eq!(answers, "");
        assert!(matches!(ended, Err(WorkerError::Order(_))), "{nonsense:?}");
    }
}
