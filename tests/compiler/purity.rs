//! The compiler touches no world: its dependencies and its source say so.

use std::fs;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

use crate::fixture::repository;

/// Async, network, clocks, randomness and processes, by their crates.
const BANNED: [&str; 27] = [
    "async-std",
    "bollard",
    "chrono",
    "fastrand",
    "futures",
    "futures-core",
    "futures-util",
    "getrandom",
    "h2",
    "hyper",
    "hyper-util",
    "jiff",
    "mio",
    "native-tls",
    "prost",
    "rand",
    "rand_core",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "time",
    "tokio",
    "tonic",
    "tower",
    "ureq",
    "uuid",
];

/// Who depends on what, although it is banned. ahash draws seeds for hash tables, as the standard library's own do; no
/// output depends on a table's order.
const EXCEPT: [(&str, &str); 1] = [("ahash", "getrandom")];

#[test]
fn no_dependency_is_async_or_touches_network_clock_or_chance() {
    let edges = dependencies();
    assert!(
        edges.iter().any(|(_, name)| name == "serde_json"),
        "the tree was not read"
    );
    let found: Vec<String> = edges
        .iter()
        .map(|(parent, name)| (parent.as_str(), name.as_str()))
        .filter(|edge| BANNED.contains(&edge.1) && !EXCEPT.contains(edge))
        .map(|(parent, name)| format!("{parent} → {name}"))
        .collect();
    assert!(found.is_empty(), "the compiler depends on {found:?}");
}

/// Every edge of the tree of crates that the compiler links, as (parent, name). Asked of `cargo tree`, which resolves
/// the features of this crate alone; `cargo metadata` would mix in what the runtime asks of shared crates.
fn dependencies() -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package=selu-compiler",
            "--edges=normal",
            "--prefix=depth",
        ])
        .args(["--offline", "--locked", "--format= {p}"])
        .current_dir(repository())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut above: Vec<String> = Vec::new();
    let mut edges = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let depth: usize = words.next().unwrap().parse().unwrap();
        let name = words.next().unwrap().to_owned();
        above.truncate(depth);
        if let Some(parent) = above.last() {
            edges.push((parent.clone(), name.clone()));
        }
        above.push(name);
    }
    edges
}

/// What the source may not say, and the only place where it may.
const WORDS: [(&str, &[&str]); 9] = [
    ("std::time", &[]),
    ("std::env", &[]),
    ("std::process", &[]),
    ("TcpStream", &[]),
    ("UdpSocket", &[]),
    ("ToSocketAddrs", &[]),
    ("UnixStream", &[]),
    ("RandomState", &[]),
    ("std::fs", &["source.rs", "source/"]),
];

#[test]
fn only_source_reads_files_and_nothing_reads_clock_environment_or_network() {
    let source = repository().join("compiler/src");
    let files = rust_files(&source);
    assert!(files.iter().any(|file| file.ends_with("source/reader.rs")));
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let relative = file.strip_prefix(&source).unwrap();
        for (word, allowed) in WORDS {
            let here = allowed
                .iter()
                .any(|prefix| relative.as_str().starts_with(prefix));
            assert!(here || !text.contains(word), "{relative} says {word}");
        }
    }
}

fn rust_files(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut files = Vec::new();
    for entry in folder.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension() == Some("rs") {
            files.push(path);
        }
    }
    files
}
