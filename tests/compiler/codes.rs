//! Every code: unique, documented, and caused by its own example.

use std::collections::HashSet;

use selu_compiler::diag::codes;

use crate::fixture::{Fixture, PROJECT, assert_fresh, manifest, tree};

#[test]
fn ids_and_names_are_unique_and_everything_is_documented() {
    let mut ids = HashSet::new();
    let mut names = HashSet::new();
    for code in codes::all() {
        assert!(ids.insert(code.id), "{} is used twice", code.id);
        assert!(names.insert(code.name), "{} is used twice", code.name);
        let digits = code.id.strip_prefix("SELU").unwrap();
        assert!(digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit()));
        assert!(
            code.name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "{}",
            code.name
        );
        assert!(!code.cause.is_empty(), "{} has no cause", code.id);
        assert!(!code.cure.is_empty(), "{} has no cure", code.id);
        assert!(!code.example.is_empty(), "{} has no example", code.id);
    }
}

#[test]
fn the_documentation_is_what_the_source_says() {
    assert_fresh("docs/diagnostics.md", &codes::document());
}

/// Codes whose example is told in words, because it is too long or no text; other tests cause them.
const TOLD: [&str; 4] = [
    "unreadable",
    "not-utf-8",
    "file-too-large",
    "schema-too-large",
];

#[test]
fn every_example_of_a_file_causes_its_code() {
    let families = [
        codes::layout::ALL,
        codes::yaml::ALL,
        codes::manifest::ALL,
        codes::tools::ALL,
        codes::network::ALL,
        codes::credentials::ALL,
        codes::image::ALL,
        codes::agent::ALL,
        codes::settings::ALL,
    ];
    for code in families.concat() {
        if TOLD.contains(&code.name) {
            continue;
        }
        let example = code.example;
        let is_tree = codes::layout::ALL.contains(&code) || example.starts_with("agents/");
        let fixture = if is_tree {
            tree(example)
        } else if codes::agent::ALL.contains(&code) {
            Fixture::new([("agent.yaml", example)])
        } else if codes::settings::ALL.contains(&code) {
            let mut files = Vec::from(PROJECT);
            files.push(("selu.toml", example));
            Fixture::new(files)
        } else {
            manifest(example)
        };
        let checked = fixture.check();
        assert!(
            checked
                .diagnostics
                .iter()
                .any(|finding| finding.code == code),
            "{} {} is not caused by its example, but {:?}",
            code.id,
            code.name,
            fixture.lines()
        );
    }
}
