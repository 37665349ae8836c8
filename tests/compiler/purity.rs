//! The compiler touches no world: its dependencies and its source say so.

use std::collections::BTreeSet;
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

#[test]
fn no_dependency_is_async_or_touches_network_clock_or_chance() {
    let names = dependencies();
    assert!(names.contains("serde_json"), "the tree was not read");
    let found: Vec<&str> = BANNED
        .into_iter()
        .filter(|banned| names.contains(*banned))
        .collect();
    assert!(found.is_empty(), "the compiler depends on {found:?}");
}

/// Names of all crates that the compiler links. Asked of `cargo tree`, which resolves the features of this crate alone;
/// `cargo metadata` would mix in what the runtime asks of shared crates.
fn dependencies() -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package=selu-compiler",
            "--edges=normal",
            "--prefix=none",
        ])
        .args(["--offline", "--locked", "--format={p}"])
        .current_dir(repository())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
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
