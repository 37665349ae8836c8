//! Agents from public catalogues: what is found in each is what an independent list expects.

mod leaves;
mod reports;

use std::collections::BTreeMap;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::diag::Severity;
use selu_compiler::{check, source};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    code: String,
    severity: String,
}

/// The catalogues.
const TREES: [&str; 5] = [
    "docker-mcp",
    "livemcp",
    "mcp-registry",
    "snapshots",
    "toolhive",
];

/// What the list does not have: entries that another one covers (N6), and schemas that are valid and that providers of
/// models refuse, in four agents arrays without `items` (T3).
const BEYOND: [&str; 2] = ["host-covered", "schema-for-models"];

#[test]
fn every_agent_of_the_corpus_has_the_expected_findings() {
    let Some(corpus) = std::env::var_os("SELU_CORPUS") else {
        println!("skipped: SELU_CORPUS is not set");
        return;
    };
    let corpus = Utf8PathBuf::from_os_string(corpus).unwrap();
    let expected: BTreeMap<String, Vec<Expected>> =
        serde_json::from_str(&fs::read_to_string(corpus.join("expect.json")).unwrap()).unwrap();
    let mut seen = 0;
    for tree in TREES {
        for entry in fs::read_dir(corpus.join(tree).join("agents")).unwrap() {
            let folder = Utf8PathBuf::from_path_buf(entry.unwrap().path()).unwrap();
            let key = format!("{tree}/{}", folder.file_name().unwrap());
            let mut wanted: Vec<(String, String)> = expected[&key]
                .iter()
                .filter(|finding| finding.severity != "accept")
                .map(|finding| (finding.code.clone(), finding.severity.clone()))
                .collect();
            wanted.sort();
            assert_eq!(found(&folder), wanted, "{key}");
            seen += 1;
        }
    }
    assert_eq!(seen, expected.len());
}

/// Code and severity of each error and warning.
fn found(folder: &Utf8Path) -> Vec<(String, String)> {
    let checked = check::check(&source::read(folder));
    let mut found: Vec<(String, String)> = checked
        .diagnostics
        .iter()
        .filter(|finding| !BEYOND.contains(&finding.code.name))
        .filter_map(|finding| {
            let severity = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => return None,
            };
            Some((finding.code.name.to_owned(), severity.to_owned()))
        })
        .collect();
    found.sort();
    found
}
