//! Mutants: one fault at a time in real manifests. Each is caught with the right code at the right line, or is listed as
//! harmless with the reason.

mod catalogue;
mod edit;
mod outline;

use std::collections::BTreeSet;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::check;
use selu_compiler::diag::Diagnostic;

use crate::fixture::lone;
use catalogue::{FAULTS, Fault, Outcome};
use outline::Spot;

/// Most mutants of one kind.
const EACH: usize = 15;

/// A manifest of the corpus with what is found in it as it is.
struct Original {
    name: String,
    text: String,
    spots: Vec<Spot>,
    findings: Vec<Diagnostic>,
}

#[test]
fn every_kind_of_fault_has_a_name_of_its_own_and_harmless_ones_a_reason() {
    let names: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.name).collect();
    assert_eq!(names.len(), FAULTS.len());
    assert!(FAULTS.len() >= 60);
    for fault in FAULTS {
        if let Outcome::Harmless(reason) = fault.outcome {
            assert!(!reason.is_empty(), "{}", fault.name);
        }
    }
}

#[test]
fn every_mutant_of_the_corpus_is_caught_where_its_fault_is() {
    let Some(corpus) = std::env::var_os("SELU_CORPUS") else {
        println!("skipped: SELU_CORPUS is not set");
        return;
    };
    let originals = originals(&Utf8PathBuf::from_os_string(corpus).unwrap());
    let (mut caught, mut harmless) = (0, 0);
    let mut missed: Vec<String> = Vec::new();
    println!(
        "{:<44} {:>7} {:>6} {:>8}",
        "fault", "mutants", "caught", "harmless"
    );
    for (number, fault) in FAULTS.iter().enumerate() {
        let mut sites: Vec<(&Original, &Spot)> = originals
            .iter()
            .flat_map(|original| original.spots.iter().map(move |spot| (original, spot)))
            .filter(|(original, spot)| spot.matches(fault.at) && is_sound(fault, original, spot))
            .collect();
        shuffle(&mut sites, number as u64);
        let before = (caught, harmless, missed.len());
        let mut mutants = 0;
        for (original, spot) in sites {
            let Some(mutant) = edit::apply(&original.text, &original.spots, spot, &fault.edit)
            else {
                continue;
            };
            mutants += 1;
            match judge(fault, original, &mutant) {
                Ok(()) if matches!(fault.outcome, Outcome::Harmless(_)) => harmless += 1,
                Ok(()) => caught += 1,
                Err(found) => missed.push(format!(
                    "{} in {}, line {}: {found}",
                    fault.name, original.name, mutant.line
                )),
            }
            if mutants == EACH {
                break;
            }
        }
        println!(
            "{:<44} {mutants:>7} {:>6} {:>8}{}",
            fault.name,
            caught - before.0,
            harmless - before.1,
            match fault.outcome {
                Outcome::Harmless(reason) => format!("  {reason}"),
                Outcome::Caught(_) => String::new(),
            }
        );
        assert!(mutants > 0, "no manifest has a place for `{}`", fault.name);
    }
    println!(
        "{:<44} {:>7} {caught:>6} {harmless:>8}",
        "all",
        caught + harmless + missed.len()
    );
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
    assert!(caught >= 2_000, "only {caught} mutants");
}

/// Whether nothing is found yet where the fault is put, that is of its kind or, where nothing may be found, at all.
fn is_sound(fault: &Fault, original: &Original, spot: &Spot) -> bool {
    original.findings.iter().all(|finding| {
        let line = finding.place.origin.line as usize;
        let same = match fault.outcome {
            Outcome::Caught(code) => finding.code.name == code,
            Outcome::Harmless(_) => true,
        };
        !(same && line > spot.line && line <= spot.end)
    })
}

/// What was found instead, if it is not what the fault's kind says.
fn judge(fault: &Fault, original: &Original, mutant: &edit::Mutant) -> Result<(), String> {
    let found = findings(&mutant.text);
    let list = || {
        let lines: Vec<String> = found
            .iter()
            .map(|finding| format!("{}:{}", finding.place.origin.line, finding.code.name))
            .collect();
        lines.join(" ")
    };
    match fault.outcome {
        Outcome::Caught(code) => {
            let count = |findings: &[Diagnostic]| {
                findings
                    .iter()
                    .filter(|finding| finding.code.name == code)
                    .count()
            };
            let there = found.iter().any(|finding| {
                finding.code.name == code
                    && finding.place.origin.line as usize == mutant.line
                    && finding.place.origin.column > 0
            });
            let more = count(&found) > count(&original.findings);
            (there && more).then_some(()).ok_or_else(list)
        }
        Outcome::Harmless(_) => {
            let codes = |findings: &[Diagnostic]| {
                let mut codes: Vec<&str> =
                    findings.iter().map(|finding| finding.code.name).collect();
                codes.sort_unstable();
                codes.join(" ")
            };
            (codes(&found) == codes(&original.findings))
                .then_some(())
                .ok_or_else(list)
        }
    }
}

/// What is found in a manifest that is compiled alone.
fn findings(text: &str) -> Vec<Diagnostic> {
    check::check(&lone(text)).diagnostics
}

fn originals(corpus: &Utf8Path) -> Vec<Original> {
    let mut originals = Vec::new();
    let mut folders = vec![corpus.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = Utf8PathBuf::from_path_buf(entry.unwrap().path()).unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name() == Some("manifest.yaml") {
                let text = fs::read_to_string(&path).unwrap();
                originals.push(Original {
                    name: path.strip_prefix(corpus).unwrap().to_string(),
                    spots: outline::outline(&text),
                    findings: findings(&text),
                    text,
                });
            }
        }
    }
    originals.sort_by(|a, b| a.name.cmp(&b.name));
    originals
}

/// The same order in every run.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5EED;
    for index in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        items.swap(index, (state % (index as u64 + 1)) as usize);
    }
}
