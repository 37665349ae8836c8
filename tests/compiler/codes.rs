//! Every code: unique, documented, and caused by its own example.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use selu_compiler::diag::codes;

use crate::fixture::{Fixture, PROJECT, assert_fresh, manifest, repository, tree};

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

/// codes.txt has every code that there ever was: what is no longer found keeps its line, and nothing else gets its number.
#[test]
fn a_code_is_never_used_for_anything_else() {
    let path = repository().join("tests/compiler/codes.txt");
    let text = fs::read_to_string(&path).unwrap();
    let given = text.lines().map(|line| line.split_once(' ').unwrap());
    let mut names: BTreeMap<&str, &str> = given.clone().collect();
    let mut ids: BTreeMap<&str, &str> = given.map(|(id, name)| (name, id)).collect();
    for code in codes::all() {
        let name = *names.entry(code.id).or_insert(code.name);
        assert_eq!(
            name, code.name,
            "{} was given: take another number",
            code.id
        );
        let id = *ids.entry(code.name).or_insert(code.id);
        assert_eq!(id, code.id, "{} was given: take another name", code.name);
    }
    let lines: Vec<String> = names
        .iter()
        .map(|(id, name)| format!("{id} {name}\n"))
        .collect();
    assert_fresh("tests/compiler/codes.txt", &lines.concat());
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
