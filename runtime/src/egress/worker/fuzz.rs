//! Fuzzing without instrumentation, as tests/compiler/fuzz.rs does it and with the same seeds' folder and variables: what
//! a container may send to the gateway's DNS and proxy, and what may lie on the gateway's volume as its policy.
//!
//! A few thousand runs by default; `SELU_FUZZ_RUNS` is how many runs each target gets, `SELU_FUZZ_SEED` where they begin.

#[path = "../../../../tests/compiler/fuzz/mutate.rs"]
mod mutate;
#[path = "../../../../tests/compiler/fuzz/run.rs"]
mod run;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_proto::op::Message;
use hickory_proto::rr::RData;
use ipnet::Ipv4Net;
use selu_compiler::plan::GatewayRule;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::reach::Reach;
use super::rules::Rules;
use super::testing::{Lab, Mutator, nameless_pair};
use super::{dns, proxy};
use crate::egress::policy::{PROTOCOL, Policy, Sealed};
use run::{first_seed, run};

/// What the process may hold in the end.
const MEMORY_MAX_KB: u64 = 1024 * 1024;
/// Largest question that is read.
const QUESTION_MAX: usize = 1232;

/// What lies in a file of tests/fuzz.
fn kept(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

#[tokio::test]
async fn any_bytes_pass_as_a_question_and_only_an_allowed_name_has_an_address() {
    let seeds: Vec<Vec<u8>> = kept("dns.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(bytes_of)
        .collect();
    let lab = Lab::allowlist(&["*.wild.example:443", "api.example.com:443"]);
    let virtual_range: Ipv4Net = "10.231.7.128/25".parse().unwrap();
    let mut mutator = Mutator::new(first_seed());
    let mut now = Instant::now();
    let mut names = BTreeMap::<Ipv4Addr, String>::new();
    let next = |seeds: &[Vec<u8>]| mutator.mutate(seeds);
    run("dns", 20_000, MEMORY_MAX_KB, &seeds, next, |bytes| {
        now += Duration::from_millis(100);
        let question = &bytes[..bytes.len().min(QUESTION_MAX)];
        let Some(answer) = dns::answer(&lab.context, question, now) else {
            return;
        };
        let answer = Message::from_vec(&answer).unwrap();
        assert!(answer.authorities.is_empty());
        for record in &answer.answers {
            let RData::A(address) = &record.data else {
                panic!("{record:?}");
            };
            let name = record.name.to_ascii().to_ascii_lowercase();
            let name = name.trim_end_matches('.').to_owned();
            if name == "gateway.selu.internal" {
                assert_eq!(address.0, lab.context.gateway);
                continue;
            }
            assert!(
                name == "api.example.com" || name.ends_with(".wild.example"),
                "{name}"
            );
            assert!(virtual_range.contains(&address.0), "{}", address.0);
            // An address stays its name's (S9).
            let first = names.entry(address.0).or_insert_with(|| name.clone());
            assert_eq!(*first, name);
        }
    });
    let asked = lab.world.asked.lock().unwrap();
    assert!(asked.is_empty(), "S15: {asked:?}");
}

/// Two hexadecimal digits a byte.
fn bytes_of(line: &str) -> Vec<u8> {
    let digits: Vec<char> = line.chars().filter(|digit| *digit != ' ').collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).unwrap())
        .collect()
}

const REQUESTS: &[&str] = &[
    "GET ",
    "POST ",
    "CONNECT ",
    "OPTIONS * ",
    "http://",
    "https://",
    "api.example.com",
    "other.example.com",
    "api.example.com:80",
    "other.example.com:80",
    "/",
    "/path",
    " HTTP/1.1\r\n",
    " HTTP/1.0\r\n",
    " HTTP/2.0\r\n",
    "Host: api.example.com\r\n",
    "Host: other.example.com\r\n",
    "host:api.example.com\r\n",
    "Host : other.example.com\r\n",
    "Host: api.example.com, other.example.com\r\n",
    "Content-Length: 4\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding:\tchunked\r\n",
    "Connection: close\r\n",
    "Connection: Host\r\n",
    "Upgrade: websocket\r\n",
    "Connection: Upgrade\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    "\0",
    "0\r\n\r\n",
    "4\r\nbody\r\n",
    "body",
    "@",
    "..",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\u{16}\u{3}\u{1}",
];

#[test]
fn any_bytes_pass_as_requests_to_the_proxy_and_only_the_listed_host_is_dialled_or_named() {
    let seeds: Vec<Vec<u8>> = kept("proxy.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.replace("\\r", "\r").replace("\\n", "\n").into_bytes())
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (lab, mut heads) = runtime.block_on(async {
        let lab = Lab::allowlist(&["api.example.com:80"]);
        lab.world.name("api.example.com", &["93.184.216.34"]);
        let arriving = lab.world.pairs("93.184.216.34:80");
        let (sender, heads) = unbounded_channel();
        tokio::spawn(mirror(arriving, sender));
        (lab, heads)
    });
    let mut mutator = mutate::Mutator::new(first_seed(), REQUESTS);
    let mut answered = 0_u64;
    let mut carried = 0_u64;
    let next = |seeds: &[Vec<u8>]| mutator.mutate(seeds);
    run("proxy", 3_000, MEMORY_MAX_KB, &seeds, next, |bytes| {
        let (answer, seen) = runtime.block_on(async {
            let (mut client, gateway) = nameless_pair();
            let serving = tokio::spawn(proxy::converse(Arc::clone(&lab.context), gateway));
            // A proxy that has cut already takes no more.
            let _ = client.write_all(bytes).await;
            let _ = client.shutdown().await;
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer).await;
            serving.await.unwrap();
            // What was dialled ends with the proxy, and is told when it has.
            let mut seen = Vec::new();
            for _ in 0..lab.world.take_dialled() {
                seen.push(heads.recv().await.unwrap());
            }
            (String::from_utf8_lossy(&answer).into_owned(), seen)
        });
        answered += u64::from(answer.contains("HTTP/1."));
        let asked = std::mem::take(&mut *lab.world.asked.lock().unwrap());
        assert!(
            asked.iter().all(|name| name == "api.example.com"),
            "{asked:?}"
        );
        for head in seen {
            carried += 1;
            only_names_the_listed_host(&head);
        }
    });
    assert!(answered > 1_000 && carried > 100, "{answered}, {carried}");
}

/// As a server would read it that takes much for right.
fn only_names_the_listed_host(seen: &str) {
    let read = seen.to_lowercase();
    // Bodies may hold anything; what a server reads as a head may not.
    let head = read.split("\r\n\r\n").next().unwrap_or_default();
    let mut lines = head.lines();
    // In a tunnel something else than HTTP may be said. A method is letters, or the line has nothing after the version.
    let (method, rest) = lines
        .next()
        .unwrap_or_default()
        .split_once(' ')
        .unwrap_or_default();
    let letters = !method.is_empty() && method.bytes().all(|b| b.is_ascii_alphabetic());
    let last = rest.split_whitespace().next_back().unwrap_or_default();
    if !(letters && rest.contains("http/") || last.starts_with("http/")) {
        return;
    }
    let hosts: Vec<_> = lines.filter(|line| line.starts_with("host:")).collect();
    assert!(hosts.len() <= 1, "{seen:?}");
    assert!(
        hosts.iter().all(|host| matches!(
            host.trim_start_matches("host:").trim(),
            "api.example.com" | "api.example.com:80"
        )),
        "{seen:?}"
    );
}

/// A server that answers whatever it gets, and tells what it got once the connection has ended.
async fn mirror(mut arriving: UnboundedReceiver<TcpStream>, heads: UnboundedSender<String>) {
    while let Some(mut stream) = arriving.recv().await {
        let heads = heads.clone();
        tokio::spawn(async move {
            let mut seen = Vec::new();
            let mut part = [0; 4096];
            while let Ok(read) = stream.read(&mut part).await
                && read > 0
            {
                seen.extend_from_slice(&part[..read]);
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    .await;
            }
            let _ = heads.send(String::from_utf8_lossy(&seen).into_owned());
        });
    }
}

const POLICIES: &[&str] = &[
    "\"mode\"",
    "\"hosts\"",
    "\"private\"",
    "\"subnet\"",
    "\"capability\"",
    "\"instance\"",
    "\"networks\"",
    "\"ranges\"",
    "\"refused\"",
    "\"generation\"",
    "none",
    "any",
    "allowlist",
    "demo",
    "weather/api",
    "selu_demo_weather_api_1",
    "10.90.1.0/24",
    "10.90.1.2",
    "10.90.0.0/16",
    "0.0.0.0/0",
    "::1",
    "198.41.0.4",
    "api.example.com:443",
    "*.example.com:443",
    "*.com",
    "10.0.0.5:5432",
    "xn--bcher-kva.example",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "-1",
    "1e999",
    "\"\\ud800\"",
];

#[test]
fn any_bytes_pass_as_a_policy_and_what_is_accepted_is_stable_and_can_be_gone_by() {
    let seeds: Vec<Vec<u8>> = ["closed.json", "open.json"]
        .map(|file| kept(&format!("policies/{file}")).into_bytes())
        .to_vec();
    let mut mutator = mutate::Mutator::new(first_seed(), POLICIES);
    let next = |seeds: &[Vec<u8>]| mutator.mutate_json(seeds);
    let mut accepted = 0_u64;
    run("policies", 10_000, MEMORY_MAX_KB, &seeds, next, |bytes| {
        let Ok(sealed) = Sealed::read(bytes).or_else(|_| Sealed::read(&sealed(bytes))) else {
            return;
        };
        accepted += 1;
        let written = serde_json::to_vec(&sealed).unwrap();
        assert_eq!(Sealed::read(&written).as_ref(), Ok(&sealed));
        let Policy {
            networks,
            refused,
            ranges,
            ..
        } = &sealed.policy;
        Reach::new(refused, ranges);
        for (network, rule) in networks {
            Rules::new(rule).unwrap();
            // Whatever it says, the virtual addresses are the network's own, and neither container has one.
            let planned = rule.network(network);
            let range = planned.virtual_range();
            assert!(rule.subnet.contains(&range));
            assert!(!range.contains(&planned.capability) && !range.contains(&planned.gateway));
            let GatewayRule { rules, .. } = rule;
            assert!(rule.is_open() || rules.hosts.is_empty());
        }
    });
    assert!(accepted > 50, "{accepted}");
}

/// The same with a hash that fits: its reader must not rely on the sender.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let Ok(policy) = serde_json::from_slice::<Policy>(bytes) else {
        return Vec::new();
    };
    let hash = policy.hash().unwrap();
    let sealed = serde_json::json!({"protocol": PROTOCOL, "hash": hash, "policy": policy});
    sealed.to_string().into_bytes()
}
