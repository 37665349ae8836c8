//! The leaf checks against a corpus of real agents, found through `SELU_CORPUS`.
//!
//! `oracle.json` holds verdicts of other implementations on schemas, `expect.json` the findings that each agent must
//! have. Here the leaf checks are called on values that `serde_yaml` reads; the compiler as a whole has its own test.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a corpus that is not as expected should stop it at the place"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use selu_compiler::check::{credential, image, network, schema, tool};
use selu_compiler::diag::{Problem, Severity};
use selu_compiler::model::NetworkMode;
use serde_json::Value;

/// `code severity where detail`, as far as `expect.json` has them.
type Finding = (String, String, String, String);

fn corpus() -> Option<PathBuf> {
    let path = std::env::var_os("SELU_CORPUS").map(PathBuf::from);
    if path.is_none() {
        #[expect(clippy::print_stderr, reason = "a test that did not run must say so")]
        {
            eprintln!("skipped: SELU_CORPUS is not set");
        }
    }
    path
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Every manifest: `tree/agent`, `tree/agent/capability` and what it holds.
fn manifests(corpus: &Path) -> Vec<(String, String, Value)> {
    let sorted = |path: &Path| -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(path)
            .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
            .unwrap_or_default();
        paths.sort();
        paths
    };
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut found = Vec::new();
    for tree in sorted(corpus)
        .iter()
        .filter(|path| path.join("agents").is_dir())
    {
        for agent in sorted(&tree.join("agents")) {
            for capability in sorted(&agent.join("capabilities")) {
                let text = std::fs::read_to_string(capability.join("manifest.yaml")).unwrap();
                let owner = format!("{}/{}", name(tree), name(&agent));
                let place = format!("{owner}/{}", name(&capability));
                found.push((owner, place, serde_yaml::from_str(&text).unwrap()));
            }
        }
    }
    found
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> Vec<&'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect()
}

/// What the leaf checks find in a manifest, in the words of `expect.json`.
fn findings(place: &str, manifest: &Value) -> BTreeSet<Finding> {
    let mut found = BTreeSet::new();
    let mut add = |problem: &Problem, place: &str, detail: &str| {
        let severity = match problem.code.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            // Notes are not in the file.
            Severity::Note => return,
        };
        // Neither are names and schemas that providers refuse and entries that others cover.
        let beyond = ["tool-name-for-models", "schema-for-models", "host-covered"];
        if !beyond.contains(&problem.code.name) {
            found.insert((
                problem.code.name.to_owned(),
                severity.to_owned(),
                place.to_owned(),
                detail.to_owned(),
            ));
        }
    };
    let written = text(manifest, "image");
    for problem in image::image(written).1 {
        add(&problem, place, written);
    }
    for credential in list(manifest, "credentials") {
        for problem in credential::name(text(credential, "name")) {
            add(&problem, place, text(credential, "name"));
        }
    }
    if let Some(rules) = manifest.get("network") {
        let hosts: Vec<String> = list(rules, "hosts")
            .into_iter()
            .map(|host| host.as_str().unwrap().to_owned())
            .collect();
        let mode = match text(rules, "mode") {
            "any" => NetworkMode::Any,
            "allowlist" => NetworkMode::Allowlist,
            _ => NetworkMode::None,
        };
        let (_, problems) = network::network(mode, &hosts);
        for problem in problems {
            let entry = problem
                .pointer
                .strip_prefix("/hosts/")
                .map_or("", |index| hosts[index.parse::<usize>().unwrap()].as_str());
            add(&problem, place, entry);
        }
    }
    let capability = text(manifest, "id");
    for item in list(manifest, "tools") {
        let place = format!("{place}/{}", text(item, "name"));
        for problem in tool::name(capability, text(item, "name")) {
            add(&problem, &place, "");
        }
        for problem in schema::schema(&item["input_schema"]) {
            let pointer = problem.pointer.trim_end_matches("/default");
            add(&problem, &place, pointer);
        }
    }
    found
}

/// What `expect.json` says, as far as it is a leaf check's to find.
fn expected(expect: &Value, owner: &str) -> BTreeSet<Finding> {
    list(expect, owner)
        .into_iter()
        // Empty descriptions are seen where tools are read.
        .filter(|finding| {
            finding["code"] != "tool-description-empty" && finding["severity"] != "accept"
        })
        .map(|finding| {
            // Findings about the mode have a sentence of their own for a detail.
            let detail = match text(finding, "code") {
                "network-any" | "network-any-with-hosts" => "",
                _ => text(finding, "detail"),
            };
            (
                text(finding, "code").to_owned(),
                text(finding, "severity").to_owned(),
                text(finding, "where").to_owned(),
                detail.to_owned(),
            )
        })
        .collect()
}

#[test]
fn real_manifests_have_the_expected_findings_and_no_others() {
    let Some(corpus) = corpus() else { return };
    let expect = json(&corpus.join("expect.json"));
    let mut by_agent: BTreeMap<String, BTreeSet<Finding>> = BTreeMap::new();
    for (owner, place, manifest) in manifests(&corpus) {
        let found = findings(&place, &manifest);
        by_agent.entry(owner).or_default().extend(found);
    }
    let seen = by_agent.len();
    let mut wrong = Vec::new();
    for (owner, found) in by_agent {
        let expected = expected(&expect, &owner);
        wrong.extend(
            found
                .difference(&expected)
                .map(|finding| format!("unexpected {finding:?}")),
        );
        wrong.extend(
            expected
                .difference(&found)
                .map(|finding| format!("missing {finding:?}")),
        );
    }
    assert!(seen > 200, "only {seen} agents: is this the corpus?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_verdict_on_real_schemas_is_that_of_other_implementations() {
    let Some(corpus) = corpus() else { return };
    let oracle = json(&corpus.join("oracle.json"));
    let mut compared = 0;
    for (_, place, manifest) in manifests(&corpus) {
        for item in list(&manifest, "tools") {
            let key = format!("tool:{place}/{}", text(item, "name"));
            let Some(verdict) = oracle.get(&key) else {
                continue;
            };
            let errors: Vec<Problem> = schema::schema(&item["input_schema"])
                .into_iter()
                .filter(Problem::is_error)
                .collect();
            assert_eq!(
                verdict["ok"] == true,
                errors.is_empty(),
                "{key}: {errors:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 500, "only {compared} schemas were compared");
}
