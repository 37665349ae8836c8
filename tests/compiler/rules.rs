//! Every rule of the format by its id: what passes and what fails, with code, line and column. A rule that has neither
//! a failing fixture nor a reason, a code that no fixture causes, a test that does not exist: each fails the build.

mod agent;
mod capability;
mod elsewhere;
mod layout;
mod network;
mod tools;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use selu_compiler::check::discovered::discovered;
use selu_compiler::diag::{Code, codes};

use crate::fixture::{Fixture, PROJECT, manifest, repository, tree};

/// A rule, or the part of one that its fixtures are about.
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    /// No finding of the rule, and no error at all.
    pub(crate) passing: &'static [Files],
    pub(crate) failing: &'static [Case],
}

/// What is written, and all that is found: `CODE file:line:column`.
pub(crate) struct Case(pub(crate) Files, pub(crate) &'static [&'static str]);

/// A directory as data.
pub(crate) enum Files {
    /// A lone capability's manifest.yaml below `id` and `image`.
    Capability(&'static str),
    /// A lone capability's whole manifest.yaml.
    Manifest(&'static str),
    /// A lone agent's agent.yaml below `id` and `name`.
    Agent(&'static str),
    /// The selu.toml of a small project.
    Settings(&'static str),
    /// Several files, see [`tree`].
    Tree(&'static str),
    /// What a discovery brings; places are pointers.
    Discovery(&'static str),
    /// The same, where it is long.
    DiscoveryMade(fn() -> String),
    /// What text cannot say.
    Made(fn() -> Fixture),
}

/// The two lines above [`Files::Capability`].
const CAPABILITY: &str = "id: weather\nimage: example.com/weather:1\n";
/// The two lines above [`Files::Agent`].
const AGENT: &str = "id: helper\nname: Helper\n";

/// A rule that no directory can break: its failing side is an engine's, a registry's or a call's.
pub(crate) struct AtRuntime {
    pub(crate) id: &'static str,
    pub(crate) reason: &'static str,
    /// File and function of the test that holds it.
    pub(crate) test: (&'static str, &'static str),
}

/// Sections 1 to 3 of the format, D1 and P5.
const IDS: &[&str] = &[
    "L1", "L2", "L3", "L4", "L5", "M1", "M2", "M3", "M4", "M5", "M6", "M7", "T1", "T2", "T3", "T4",
    "N1", "N2", "N3", "N4", "N5", "N6", "N7", "N8", "N9", "N10", "F1", "F2", "F3", "F4", "F5",
    "C1", "C2", "C3", "C4", "C5", "R1", "R2", "R3", "R4", "R5", "I0", "I1", "I2", "I3", "A1", "A2",
    "A3", "A4", "A5", "D1", "P5",
];

fn rules() -> impl Iterator<Item = &'static Rule> {
    [
        layout::RULES,
        yaml::RULES,
        capability::RULES,
        tools::RULES,
        network::RULES,
        agent::RULES,
    ]
    .into_iter()
    .flatten()
}

/// Code and place of each finding, and the rules that its code enforces.
fn found(files: &Files) -> Vec<(String, &'static Code)> {
    let fixture = match files {
        Files::Capability(rest) => manifest(&format!("{CAPABILITY}{rest}")),
        Files::Manifest(text) => manifest(text),
        Files::Agent(rest) => {
            let text = format!("{AGENT}{rest}");
            Fixture::new([("agent.yaml", text.as_str())])
        }
        Files::Settings(text) => {
            let mut files = Vec::from(PROJECT);
            files.push(("selu.toml", text));
            Fixture::new(files)
        }
        Files::Tree(text) => tree(text),
        Files::Made(make) => make(),
        Files::Discovery(result) => return brought(result),
        Files::DiscoveryMade(make) => return brought(&make()),
    };
    fixture
        .check()
        .diagnostics
        .iter()
        .map(|finding| {
            let origin = &finding.place.origin;
            let line = format!(
                "{} {}:{}:{}",
                finding.code.id, origin.file, origin.line, origin.column
            );
            (line, finding.code)
        })
        .collect()
}

/// Code and pointer of each finding in a discovery's result.
fn brought(result: &str) -> Vec<(String, &'static Code)> {
    let problems = match discovered("weather", "list_tools", result.as_bytes()) {
        Ok(discovered) => discovered.notes,
        Err(problems) => problems,
    };
    problems
        .into_iter()
        .map(|problem| {
            let line = format!("{} {}", problem.code.id, problem.pointer);
            (line, problem.code)
        })
        .collect()
}

#[test]
fn every_rule_has_a_passing_and_a_failing_side_or_a_reason_and_a_runtime_test() {
    let mut sides: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for rule in rules() {
        assert!(IDS.contains(&rule.id), "{} is no rule", rule.id);
        let side = sides.entry(rule.id).or_default();
        side.0 += rule.passing.len();
        side.1 += rule.failing.len();
    }
    let at_runtime: BTreeSet<&str> = elsewhere::AT_RUNTIME.iter().map(|rule| rule.id).collect();
    for id in IDS {
        match sides.get(id) {
            Some((passing, failing)) => assert!(
                *passing > 0 && *failing > 0,
                "{id} lacks a passing or a failing fixture"
            ),
            None => assert!(at_runtime.contains(id), "{id} has no fixture and no reason"),
        }
    }
}

#[test]
fn what_fails_fails_at_its_line_and_column() {
    let mut wrong = Vec::new();
    for rule in rules() {
        for (index, Case(files, expected)) in rule.failing.iter().enumerate() {
            let found = found(files);
            let lines: Vec<&str> = found.iter().map(|(line, _)| line.as_str()).collect();
            if lines != *expected {
                wrong.push(format!("{} failing[{index}]: {lines:?}", rule.id));
            }
            let enforced = found.iter().any(|(_, code)| enforces(code, rule.id));
            if !enforced {
                wrong.push(format!(
                    "{} failing[{index}]: no finding is of that rule",
                    rule.id
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_passes_has_no_error_and_no_finding_of_its_rule() {
    let mut wrong = Vec::new();
    for rule in rules() {
        for (index, files) in rule.passing.iter().enumerate() {
            for (line, code) in found(files) {
                let is_error = code.severity == selu_compiler::diag::Severity::Error;
                if is_error || enforces(code, rule.id) {
                    wrong.push(format!("{} passing[{index}]: {line}", rule.id));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn enforces(code: &Code, rule: &str) -> bool {
    code.rules.contains(&rule)
}

#[test]
fn every_code_of_a_directory_is_caused_by_a_fixture() {
    let caused: BTreeSet<&str> = rules()
        .flat_map(|rule| rule.failing)
        .chain(elsewhere::OTHER_CASES)
        .flat_map(|Case(files, _)| found(files))
        .map(|(_, code)| code.id)
        .collect();
    let not_here: BTreeSet<&str> = [codes::lock::ALL, codes::plan::ALL]
        .concat()
        .iter()
        .map(|code| code.id)
        .collect();
    let missing: Vec<String> = codes::all()
        .iter()
        .filter(|code| !caused.contains(code.id) && !not_here.contains(code.id))
        .filter(|code| {
            !elsewhere::NOT_AS_DATA
                .iter()
                .any(|(name, _)| *name == code.name)
        })
        .map(|code| format!("{} {}", code.id, code.name))
        .collect();
    assert!(missing.is_empty(), "no fixture causes {missing:?}");
}

#[test]
fn other_cases_are_found_at_their_places() {
    let mut wrong = Vec::new();
    for (index, Case(files, expected)) in elsewhere::OTHER_CASES.iter().enumerate() {
        let found = found(files);
        let lines: Vec<&str> = found.iter().map(|(line, _)| line.as_str()).collect();
        if lines != *expected {
            wrong.push(format!("OTHER_CASES[{index}]: {lines:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_of_a_plan_or_a_lock_is_named_by_a_test_of_its_own() {
    let tests = [
        "compiler/src/resolve/tests.rs",
        "compiler/src/lock/tests.rs",
    ]
    .map(|file| fs::read_to_string(repository().join(file)).unwrap())
    .join("\n");
    for code in codes::plan::ALL {
        assert!(
            tests.contains(&format!("\"{}", code.name)),
            "no test of planning names {}",
            code.name
        );
    }
    for code in codes::lock::ALL {
        assert!(
            elsewhere::LOCK_CODES
                .iter()
                .any(|(name, _)| *name == code.name),
            "no test of the lock is named for {}",
            code.name
        );
    }
    for (_, test) in elsewhere::LOCK_CODES {
        assert_exists(*test);
    }
}

#[test]
fn the_tests_that_hold_runtime_rules_exist() {
    for (_, test) in elsewhere::NOT_AS_DATA {
        assert_exists(*test);
    }
    for AtRuntime { id, reason, test } in elsewhere::AT_RUNTIME {
        assert!(IDS.contains(id) && !reason.is_empty(), "{id}");
        assert_exists(*test);
    }
}

fn assert_exists((file, name): (&str, &str)) {
    let text = fs::read_to_string(repository().join(file)).unwrap_or_default();
    assert!(
        text.contains(&format!("fn {name}(")),
        "{file} has no test {name}"
    );
}
