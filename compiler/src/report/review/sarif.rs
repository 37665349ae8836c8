//! A review as SARIF 2.1.0, for code scanning: what needs a person is an error, other widening a warning, the rest notes.

use std::collections::BTreeSet;

use camino::Utf8Path;
use serde_json::{Value, json};

use super::word;
use crate::diag::render::{artifact, run};
use crate::model::Origin;
use crate::plan::hash::sha256;
use crate::report::escape;
use crate::review::{Finding, Grade, Kind, Review, Snapshot};

/// A log with one run. `base` leads from the top of the repository to the project, `new` is the state after the change.
pub fn review_sarif(review: &Review, new: &Snapshot, base: &Utf8Path) -> Value {
    let kinds: BTreeSet<Kind> = review.findings.iter().map(|one| one.kind).collect();
    let rules: Vec<Value> = kinds
        .iter()
        .map(|kind| {
            json!({
                "id": rule(*kind),
                "name": kind.word(),
                "shortDescription": { "text": kind.says() },
            })
        })
        .collect();
    let results: Vec<Value> = review
        .findings
        .iter()
        .map(|finding| result(finding, new, base, &kinds))
        .collect();
    run(rules, results)
}

fn rule(kind: Kind) -> String {
    format!("review/{}", kind.word())
}

fn result(finding: &Finding, new: &Snapshot, base: &Utf8Path, kinds: &BTreeSet<Kind>) -> Value {
    let Finding {
        instance,
        tool,
        kind,
        path,
        grade,
        says,
        old,
        new: now,
        hidden,
        person,
        accepted,
    } = finding;
    let subject = finding.subject();
    let mut text = format!("{}: {subject}", word(*grade));
    if !path.is_empty() {
        text.push_str(&format!(" {path}"));
    }
    text.push_str(&format!(": {says}"));
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
    if old.is_some() || now.is_some() {
        text.push_str(&format!(" ({} → {})", value(old), value(now)));
    }
    if !hidden.is_empty() {
        text.push_str(" Something hides in the new text.");
    }
    if let Some(reason) = accepted {
        text.push_str(&format!(" Accepted: {reason}"));
    }
    let level = match grade {
        Grade::Widening | Grade::Neutral if *person && accepted.is_none() => "error",
        Grade::Widening => "warning",
        Grade::Narrowing | Grade::Neutral => "note",
    };
    let mut location = json!({ "physicalLocation": physical(finding, new, base) });
    let name = format!("{subject} {path}");
    location["logicalLocations"] = json!([{ "fullyQualifiedName": escape(name.trim_end()) }]);
    // The same change keeps its number wherever lines move.
    let identity = json!([instance, tool, kind, path, old, now]).to_string();
    json!({
        "ruleId": rule(*kind),
        "ruleIndex": kinds.iter().position(|one| one == kind),
        "level": level,
        "message": { "text": plain(&text) },
        "locations": [location],
        "partialFingerprints": { "seluReview/v1": sha256(identity.as_bytes()) },
    })
}

/// Where it is written: the tool, else the manifest; selu.toml for the project; the lock for what is gone.
fn physical(finding: &Finding, new: &Snapshot, base: &Utf8Path) -> Value {
    let places = finding
        .instance
        .as_ref()
        .and_then(|key| new.places.get(key));
    let tool = finding.tool.as_ref();
    let written = places.map(|places| {
        let tool = tool.and_then(|tool| places.tools.get(tool));
        tool.unwrap_or(&places.manifest).clone()
    });
    let file = match (&finding.instance, finding.kind) {
        (None, Kind::Setting) => "selu.toml",
        _ => "selu.lock",
    };
    let agents = new.agents.as_ref();
    let id = finding.path.split('/').next();
    let agent = agents.and_then(|agents| agents.get(id?));
    let agent = agent.filter(|_| file != "selu.toml" && finding.instance.is_none());
    let written = written.or_else(|| agent.map(|agent| agent.origin.clone()));
    let origin = written.unwrap_or_else(|| Origin {
        file: file.into(),
        line: 1,
        column: 1,
    });
    json!({
        "artifactLocation": artifact(&origin.file, base),
        "region": { "startLine": origin.line.max(1), "startColumn": origin.column.max(1) },
    })
}

/// Text that is no link in a message, and steers no terminal.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in escape(text).chars() {
        if matches!(character, '[' | ']' | '\\') {
            plain.push('\\');
        }
        plain.push(character);
    }
    plain
}
