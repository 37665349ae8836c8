//! Fuzzing without instrumentation: kept seeds (tests/fuzz), changed at random from a fixed start, through every reader
//! of text that others write. Nothing may panic, hang or grow, and what is accepted must keep its meaning when it is
//! written and read again.
//!
//! A few thousand runs by default; `SELU_FUZZ_RUNS` is how many runs each target gets, `SELU_FUZZ_SEED` where they begin.

mod mutate;
mod run;

use std::fs;

use camino::Utf8Path;
use selu_compiler::check::{self, credential, discovered, image, network, schema, tool};
use selu_compiler::lock::Lock;
use selu_compiler::model::NetworkMode;
use selu_compiler::yaml;

use crate::fixture::{lone, repository};
use mutate::Mutator;
use run::{first_seed, run};

/// What the process may hold in the end.
const MEMORY_MAX_KB: u64 = 2 * 1024 * 1024;

/// Runs a target over changed seeds.
fn fuzz(name: &str, share: u64, seeds: &[Vec<u8>], dictionary: &[&str], target: impl Fn(&[u8])) {
    let mut mutator = Mutator::new(first_seed(), dictionary);
    let next = |seeds: &[Vec<u8>]| {
        if dictionary == JSON {
            mutator.mutate_json(seeds)
        } else {
            mutator.mutate(seeds)
        }
    };
    run(name, share, MEMORY_MAX_KB, seeds, next, target);
}

/// Every file of a folder.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = repository().join("tests/fuzz").join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Every line of a file.
fn lines(file: &str) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(repository().join("tests/fuzz").join(file)).unwrap();
    text.lines().map(|line| line.as_bytes().to_vec()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const YAML: &[&str] = &[
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "!x ",
    "---\n",
    "...\n",
    "- ",
    "? ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "\t",
    "|\n",
    ">-\n",
    "~",
    "0o7",
    "1e3",
    ".nan",
    "%TAG ! x\n",
    "\u{FEFF}",
    "\u{2028}",
    "\u{85}",
    "\0",
    "#",
    "'",
    "\"",
    "\\x41",
    "input_schema:",
    "tools:\n- ",
    "hosts: ",
];
const HOSTS: &[&str] = &[
    "*.",
    "*",
    ".",
    ":",
    "[",
    "]",
    "::",
    "xn--",
    "@",
    "/",
    "https://",
    "0",
    "65536",
    "%",
    "ß",
    "\u{200D}",
    "。",
    "-",
    "_",
    " ",
    "co.uk",
    "localhost",
    "0x",
    "..",
];
const IMAGES: &[&str] = &[
    ":",
    "/",
    "@",
    "@sha256:",
    "sha512:",
    "localhost",
    ":5000/",
    "latest",
    "__",
    "--",
    ".",
    "A",
    "[",
    "]",
    "docker.io/",
    " ",
    "é",
];
const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"$ref\":\"#\"",
    "\"#/$defs/node\"",
    "\"type\"",
    "\"object\"",
    "\"properties\"",
    "\"items\"",
    "\"default\"",
    "\"pattern\":\"(a+)+$\"",
    "\"anyOf\"",
    "null",
    "true",
    "-1",
    "1e999",
    "\"\\ud800\"",
    "\"$id\":\"x\"",
    "\"$schema\"",
    "\"$dynamicRef\":\"#a\"",
    "\"$anchor\":\"a\"",
    "\"required\"",
    "\"enum\"",
    "\"const\"",
    "\"allOf\"",
    "\"not\"",
    "\"if\"",
    "\"$defs\"",
    "\"definitions\"",
    "\"additionalProperties\"",
    "\"patternProperties\"",
    "\"minLength\"",
    "\"multipleOf\"",
    "\"name\"",
    "\"description\"",
    "\"input_schema\"",
    "\"recommended_policy\"",
    "\"list_tools\"",
    "\"(?=a)+|[\"",
];
const TOML: &[&str] = &[
    "version = 1",
    "[[",
    "]]",
    "[",
    "]",
    "'''",
    "\"\"\"",
    "=",
    "\n",
    ".",
    "\"",
    "1e3",
    "0x",
    "inf",
    "<<<<<<< a\n",
    "=======\n",
    "\\u0000",
    "\u{FEFF}",
    "\r\n",
    "kind = \"local\"",
    "policy = \"ask\"",
];

#[test]
fn any_text_passes_the_yaml_guard_and_the_check_of_a_manifest() {
    fuzz("yaml", 3_000, &files("yaml"), YAML, |bytes| {
        // Line ends as the reader of files leaves them.
        let text = text(bytes).replace("\r\n", "\n").replace('\r', "\n");
        let (document, findings) = yaml::read(Utf8Path::new("manifest.yaml"), &text);
        assert!(document.is_some() || !findings.is_empty());
        let sources = lone(&text);
        let checked = check::check(&sources);
        let last = u32::try_from(text.lines().count()).unwrap() + 1;
        for finding in &checked.diagnostics {
            assert!(finding.place.origin.line <= last, "{finding:?}");
        }
        selu_compiler::diag::render::text(&checked.diagnostics, &sources, false);
    });
}

#[test]
fn any_text_passes_the_grammar_of_hosts_and_what_is_accepted_is_stable() {
    fuzz("hosts", 20_000, &lines("hosts.txt"), HOSTS, |bytes| {
        let (found, problems) = network::network(NetworkMode::Allowlist, &[text(bytes)]);
        let Some(found) = found else {
            assert!(problems.iter().any(|problem| problem.is_error()));
            return;
        };
        let (again, _) = network::network(NetworkMode::Allowlist, &found.hosts);
        assert_eq!(again.as_ref(), Some(&found));
    });
}

#[test]
fn any_text_passes_the_grammar_of_images() {
    fuzz("images", 20_000, &lines("images.txt"), IMAGES, |bytes| {
        let (found, problems) = image::image(&text(bytes));
        assert_eq!(
            found.is_none(),
            problems.iter().any(|problem| problem.is_error())
        );
    });
}

#[test]
fn any_text_passes_as_a_name() {
    fuzz("names", 20_000, &lines("hosts.txt"), HOSTS, |bytes| {
        let text = text(bytes);
        credential::name(&text);
        tool::name("weather", &text);
    });
}

#[test]
fn any_value_passes_the_check_of_schemas() {
    fuzz("schemas", 2_000, &files("schemas"), JSON, |bytes| {
        if let Ok(value) = serde_json::from_slice(bytes) {
            schema::schema(&value);
        }
    });
}

#[test]
fn any_text_passes_the_reader_of_locks_and_what_is_accepted_is_stable() {
    fuzz("locks", 1_000, &files("locks"), TOML, |bytes| {
        let Ok(lock) = Lock::read(&text(bytes)) else {
            return;
        };
        let written = lock.write(None);
        let again = Lock::read(&written).unwrap();
        assert_eq!(again, lock);
        assert_eq!(again.write(None), written);
    });
}

#[test]
fn any_bytes_pass_as_a_discovery_result() {
    fuzz("discovered", 2_000, &files("discovered"), JSON, |bytes| {
        if let Err(problems) = discovered::discovered("weather", "list_tools", bytes) {
            assert!(problems.iter().any(|problem| problem.is_error()));
        }
    });
}
