//! Findings as SARIF 2.1.0, which code scanning services take.

use std::collections::BTreeMap;

use camino::Utf8Path;
use serde_json::{Value, json};

use crate::diag::{Code, Diagnostic, Place, Severity};

/// Which files are meant by relative addresses.
const ROOT: &str = "%SRCROOT%";

/// A log with one run. `base` leads from the top of the repository to the directory that was checked.
pub fn sarif(diagnostics: &[Diagnostic], base: &Utf8Path) -> Value {
    let mut codes: BTreeMap<&str, &'static Code> = BTreeMap::new();
    for diagnostic in diagnostics {
        codes.insert(diagnostic.code.id, diagnostic.code);
    }
    let rules: Vec<Value> = codes.values().map(|code| rule(code)).collect();
    let index = |code: &Code| codes.keys().position(|id| *id == code.id);
    let results: Vec<Value> = diagnostics
        .iter()
        .map(|diagnostic| {
            let mut result = result(diagnostic, base);
            result["ruleIndex"] = json!(index(diagnostic.code));
            result
        })
        .collect();
    run(rules, results)
}

/// A log with one run of `selu`.
pub(crate) fn run(rules: Vec<Value>, results: Vec<Value>) -> Value {
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "selu",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(code: &Code) -> Value {
    let Code {
        id,
        name,
        severity,
        rules,
        cause,
        cure,
        example,
    } = code;
    let mut help = format!("{cause}\n\nCure: {cure}");
    if !example.is_empty() {
        help.push_str(&format!("\n\nExample:\n{}", example.trim_end()));
    }
    json!({
        "id": id,
        "name": name,
        "shortDescription": { "text": name },
        "fullDescription": { "text": cause },
        "help": { "text": help },
        "defaultConfiguration": { "level": level(*severity) },
        "properties": { "rules": rules },
    })
}

fn result(diagnostic: &Diagnostic, base: &Utf8Path) -> Value {
    let Diagnostic {
        code,
        severity,
        message,
        place,
        help,
        suggestion,
        related,
    } = diagnostic;
    let text = match help {
        Some(help) => format!("{message}\n{help}"),
        None => message.clone(),
    };
    let mut location = json!({ "physicalLocation": physical(place, base) });
    if !place.path.is_empty() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": place.path }]);
    }
    let mut result = json!({
        "ruleId": code.id,
        "level": level(*severity),
        "message": { "text": text },
        "locations": [location],
    });
    if !related.is_empty() {
        result["relatedLocations"] = related
            .iter()
            .enumerate()
            .map(|(id, related)| {
                json!({
                    "id": id,
                    "physicalLocation": physical(&related.place, base),
                    "message": { "text": related.message },
                })
            })
            .collect();
    }
    if let (Some(suggestion), Some(region)) = (suggestion, region(place)) {
        result["fixes"] = json!([{
            "description": { "text": help.as_deref().unwrap_or(code.cure) },
            "artifactChanges": [{
                "artifactLocation": artifact(&place.origin.file, base),
                "replacements": [{
                    "deletedRegion": region,
                    "insertedContent": { "text": suggestion },
                }],
            }],
        }]);
    }
    result
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn physical(place: &Place, base: &Utf8Path) -> Value {
    let mut location = json!({ "artifactLocation": artifact(&place.origin.file, base) });
    if let Some(region) = region(place) {
        location["region"] = region;
    }
    location
}

/// `None` for a file or folder as a whole.
fn region(place: &Place) -> Option<Value> {
    let (line, column) = (place.origin.line, place.origin.column);
    (line > 0).then(|| {
        json!({
            "startLine": line,
            "startColumn": column,
            "endColumn": column.saturating_add(place.length),
        })
    })
}

/// A file below `base`, as an address.
pub(crate) fn artifact(file: &Utf8Path, base: &Utf8Path) -> Value {
    let path = super::below(base, file);
    if path.is_absolute() {
        json!({ "uri": format!("file://{}", uri(path.as_str())) })
    } else {
        json!({ "uri": uri(path.as_str()), "uriBaseId": ROOT })
    }
}

/// A path as a relative reference: everything but letters, digits, `-._~` and slashes as percent and hex.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
