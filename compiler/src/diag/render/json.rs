//! Findings as JSON: the wire types, from which schemas/diagnostics.schema.json is made.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use super::{Counts, FORMAT_VERSION, count};
use crate::diag::{Diagnostic, Place, Severity};

/// What `selu check --format json` prints, and every other command whose project does not compile. Fields may be added
/// under the same major version.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Findings of selu")]
struct Report<'a> {
    /// A reader refuses a major version that it does not know, and ignores fields that it does not know.
    #[schemars(regex(pattern = r"^1\.[0-9]+$"))]
    format_version: &'a str,
    /// All findings of all files, by file, line and column.
    diagnostics: Vec<Finding<'a>>,
    /// How many are errors.
    errors: usize,
    /// How many are warnings.
    warnings: usize,
    /// How many are notes.
    notes: usize,
    /// What the command exited with.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
}

/// One finding, at its place.
#[derive(Serialize, JsonSchema)]
struct Finding<'a> {
    /// `SELU` and four digits; never used for anything else. `selu explain` tells more.
    #[schemars(regex(pattern = "^SELU[0-9]{4}$"))]
    code: &'a str,
    /// The code in words.
    name: &'a str,
    /// After the levels of selu.toml and the command line.
    severity: Severity,
    /// What was found and what is allowed. Not escaped: it may hold control characters from a file.
    message: &'a str,
    /// Relative to the directory that was checked; empty for the directory itself.
    file: &'a str,
    /// From 1; 0 is the file or folder as a whole.
    line: u32,
    /// In Unicode characters, from 1; 0 is the file or folder as a whole.
    column: u32,
    /// How many Unicode characters of the line are meant.
    length: u32,
    /// Path of the field, such as `tools[2].input_schema.type`; empty where there is none.
    path: &'a str,
    /// The way out, where the message does not say it.
    help: Option<&'a str>,
    /// Text to be written over the place.
    suggestion: Option<&'a str>,
    /// Other places that matter.
    related: Vec<Elsewhere<'a>>,
}

/// Another place that matters, such as the first of two duplicates.
#[derive(Serialize, JsonSchema)]
struct Elsewhere<'a> {
    /// What is there.
    message: &'a str,
    /// As of the finding.
    file: &'a str,
    /// As of the finding.
    line: u32,
    /// As of the finding.
    column: u32,
    /// As of the finding.
    length: u32,
    /// As of the finding.
    path: &'a str,
}

/// Findings as data; schemas/diagnostics.schema.json describes it.
pub fn json(diagnostics: &[Diagnostic]) -> Value {
    let Counts {
        errors,
        warnings,
        notes,
    } = count(diagnostics);
    let report = Report {
        format_version: FORMAT_VERSION,
        diagnostics: diagnostics.iter().map(finding).collect(),
        errors,
        warnings,
        notes,
        exit_code: None,
    };
    // Texts and numbers under fixed names have a JSON form.
    serde_json::to_value(report).unwrap_or_default()
}

/// The JSON Schema (draft-07) of [`json`].
pub fn json_schema() -> Value {
    let mut settings = SchemaSettings::draft07().for_serialize();
    settings.inline_subschemas = true;
    settings
        .into_generator()
        .into_root_schema_for::<Report<'_>>()
        .to_value()
}

fn finding(diagnostic: &Diagnostic) -> Finding<'_> {
    let Diagnostic {
        code,
        severity,
        message,
        place,
        help,
        suggestion,
        related,
    } = diagnostic;
    let Place {
        origin,
        length,
        path,
    } = place;
    Finding {
        code: code.id,
        name: code.name,
        severity: *severity,
        message,
        file: origin.file.as_str(),
        line: origin.line,
        column: origin.column,
        length: *length,
        path,
        help: help.as_deref(),
        suggestion: suggestion.as_deref(),
        related: related
            .iter()
            .map(|related| Elsewhere {
                message: &related.message,
                file: related.place.origin.file.as_str(),
                line: related.place.origin.line,
                column: related.place.origin.column,
                length: related.place.length,
                path: &related.place.path,
            })
            .collect(),
    }
}
