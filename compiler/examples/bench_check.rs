//! What `scripts/bench` runs: one measured piece of work a process, so that runs do not warm each other's caches and the
//! peak of the memory is that of the work alone.
//!
//! `bench_check MODE DIR` prints one JSON object. MODE is `parse` (reads every file and gives the YAML ones to
//! `serde_yaml`, on one thread: the measure), `events` (the same with the events of `saphyr-parser` alone: the floor of one
//! thread), `check` (what `selu check` does until it reports) or `again` (what `selu check --watch` does after one manifest
//! has changed; the directory is written to).
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program of its own

use std::fs;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::{check, source};
use serde_json::json;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, mode, root] = arguments.as_slice() else {
        eprintln!("usage: bench_check parse|events|check|again DIR");
        return ExitCode::from(64);
    };
    let root = Utf8Path::new(root);
    let report = match mode.as_str() {
        "parse" => parse(root, |text| {
            black_box(serde_yaml::from_str::<serde_yaml::Value>(text)).is_ok()
        }),
        "events" => parse(root, |text| {
            saphyr_parser::Parser::new_from_str(text).all(|event| black_box(event).is_ok())
        }),
        "check" => Ok(whole(root)),
        "again" => again(root),
        other => {
            eprintln!("bench_check: there is no mode {other}");
            return ExitCode::from(64);
        }
    };
    match report {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench_check: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads every file below a root, and parses those that hold YAML.
fn parse(root: &Utf8Path, parser: impl Fn(&str) -> bool) -> std::io::Result<serde_json::Value> {
    let start = Instant::now();
    let (mut files, mut bytes, mut refused) = (0, 0, 0);
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in folder.read_dir_utf8()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.into_path());
                continue;
            }
            let path: Utf8PathBuf = entry.into_path();
            let text = fs::read_to_string(&path)?;
            files += 1;
            bytes += text.len();
            if path.extension() == Some("yaml") && !parser(&text) {
                refused += 1;
            }
        }
    }
    Ok(
        json!({ "seconds": seconds(start.elapsed()), "files": files, "bytes": bytes, "refused": refused }),
    )
}

/// Reads and checks a project, and keeps what `selu check` keeps until it reports.
fn whole(root: &Utf8Path) -> serde_json::Value {
    let start = Instant::now();
    let before = peak_kib();
    let sources = source::read(root);
    let read = start.elapsed();
    let checked = check::check(&sources);
    let all = start.elapsed();
    let bytes: usize = sources.files().map(|file| file.text.len()).sum();
    let peak = peak_kib();
    json!({
        "seconds": seconds(all),
        "read_seconds": seconds(read),
        "check_seconds": seconds(all - read),
        "files": sources.files().count(),
        "bytes": bytes,
        "findings": checked.diagnostics.len(),
        "compiles": checked.project.is_some(),
        "peak_kib": peak,
        "start_kib": before,
    })
}

/// Checks a project, then once more after one manifest has changed, as `selu check --watch` does. The manifest is put back.
fn again(root: &Utf8Path) -> std::io::Result<serde_json::Value> {
    let mut sources = source::read(root);
    let mut cache = check::Cache::default();
    let before = check::check_again(&sources, &mut cache).diagnostics;
    let manifests: Vec<_> = sources
        .files()
        .filter(|file| file.path.file_name() == Some("manifest.yaml"))
        .collect();
    let Some(changed) = manifests.get(manifests.len() / 2) else {
        return Err(std::io::Error::other("the project has no manifest"));
    };
    let (path, text) = (changed.path.clone(), changed.text.clone());
    fs::write(root.join(&path), format!("{text}x-changed: true\n"))?;
    let start = Instant::now();
    let alone = source::refresh(&mut sources, &path) == source::Refreshed::Changed;
    let after = check::check_again(&sources, &mut cache).diagnostics;
    let seconds = seconds(start.elapsed());
    fs::write(root.join(&path), text)?;
    if !alone || cache.fresh() != 1 || before != after {
        return Err(std::io::Error::other(
            "more than one file was read or checked again",
        ));
    }
    Ok(json!({ "seconds": seconds }))
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

/// The most memory that this process has had resident so far; 0 where the system does not say.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kib| kib.parse().ok())
        .unwrap_or_default()
}
