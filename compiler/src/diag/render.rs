//! Findings as text for people and as JSON for programs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use camino::Utf8Path;
use serde_json::{Value, json};

use super::{Diagnostic, Place, Severity};
use crate::source::SourceSet;

/// Version of the JSON form.
pub const FORMAT_VERSION: &str = "1.0";

/// How many findings there are of each severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Any of these means that nothing compiles.
    pub errors: usize,
    /// Most likely not meant.
    pub warnings: usize,
    /// Good to know.
    pub notes: usize,
}

/// Counts findings; exit codes and the last line that people read both come from here.
pub fn count(diagnostics: &[Diagnostic]) -> Counts {
    let of = |severity| {
        diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == severity)
            .count()
    };
    Counts {
        errors: of(Severity::Error),
        warnings: of(Severity::Warning),
        notes: of(Severity::Note),
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (self.errors, "error"),
            (self.warnings, "warning"),
            (self.notes, "note"),
        ];
        let parts: Vec<String> = words
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| {
                let plural = if *number == 1 { "" } else { "s" };
                format!("{number} {word}{plural}")
            })
            .collect();
        if parts.is_empty() {
            f.write_str("no findings")
        } else {
            f.write_str(&parts.join(", "))
        }
    }
}

/// Findings with their source lines underlined, and a last line that counts them.
pub fn text(diagnostics: &[Diagnostic], sources: &SourceSet, color: bool) -> String {
    let lines = Lines::new(diagnostics, sources);
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&renderer.render(&[report(diagnostic, &lines)]));
        out.push_str("\n\n");
    }
    out.push_str(&count(diagnostics).to_string());
    out.push('\n');
    out
}

/// Findings as data: `{"format_version": "1.0", "diagnostics": […], "errors": 0, "warnings": 0, "notes": 0}`.
pub fn json(diagnostics: &[Diagnostic]) -> Value {
    let Counts {
        errors,
        warnings,
        notes,
    } = count(diagnostics);
    let findings: Vec<Value> = diagnostics.iter().map(finding).collect();
    json!({
        "format_version": FORMAT_VERSION,
        "diagnostics": findings,
        "errors": errors,
        "warnings": warnings,
        "notes": notes,
    })
}

fn finding(diagnostic: &Diagnostic) -> Value {
    let Diagnostic {
        code,
        severity,
        message,
        place,
        help,
        suggestion,
        related,
    } = diagnostic;
    let mut value = place_json(place);
    value["code"] = json!(code.id);
    value["name"] = json!(code.name);
    value["severity"] = json!(severity);
    value["message"] = json!(message);
    value["help"] = json!(help);
    value["suggestion"] = json!(suggestion);
    value["related"] = related
        .iter()
        .map(|related| {
            let mut value = place_json(&related.place);
            value["message"] = json!(related.message);
            value
        })
        .collect();
    value
}

fn place_json(place: &Place) -> Value {
    json!({
        "file": place.origin.file,
        "line": place.origin.line,
        "column": place.origin.column,
        "length": place.length,
        "path": place.path,
    })
}

fn report<'a>(diagnostic: &'a Diagnostic, lines: &Lines<'a>) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level
        .primary_title(escaped(&diagnostic.message))
        .id(diagnostic.code.id);
    let path = (!diagnostic.place.path.is_empty()).then(|| escaped(&diagnostic.place.path));
    let mut group = lines.show(Group::with_title(title), &diagnostic.place, path, true);
    for related in &diagnostic.related {
        let message = escaped(&related.message);
        group = lines.show(group, &related.place, Some(message), false);
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(escaped(help)));
    }
    group
}

/// The lines of the files that findings are about.
struct Lines<'a> {
    files: HashMap<&'a Utf8Path, Vec<&'a str>>,
}

impl<'a> Lines<'a> {
    fn new(diagnostics: &[Diagnostic], sources: &'a SourceSet) -> Self {
        let wanted: std::collections::HashSet<&Utf8Path> = diagnostics
            .iter()
            .flat_map(|diagnostic| {
                let related = diagnostic.related.iter().map(|related| &related.place);
                std::iter::once(&diagnostic.place).chain(related)
            })
            .map(|place| place.origin.file.as_path())
            .collect();
        let files = sources
            .files()
            .filter(|file| wanted.contains(file.path.as_path()))
            .map(|file| (file.path.as_path(), file.text.lines().collect()))
            .collect();
        Self { files }
    }

    /// Adds a place: its line underlined where there is one, else its name alone.
    fn show(
        &self,
        group: Group<'a>,
        place: &'a Place,
        label: Option<Cow<'a, str>>,
        primary: bool,
    ) -> Group<'a> {
        let line = place.origin.line as usize;
        let file = if place.origin.file.as_str().is_empty() {
            Cow::Borrowed(".")
        } else {
            escaped(place.origin.file.as_str())
        };
        let source = self
            .files
            .get(place.origin.file.as_path())
            .and_then(|lines| lines.get(line.checked_sub(1)?));
        let Some(source) = source else {
            let mut origin = Origin::path(file);
            if line > 0 {
                origin = origin.line(line).char_column(place.origin.column as usize);
            }
            let group = group.element(origin);
            return match label.filter(|_| !primary) {
                Some(label) => group.element(Level::NOTE.message(label)),
                None => group,
            };
        };
        let source = visible(source);
        let start = byte_at(&source, place.origin.column.saturating_sub(1));
        let end = byte_at(
            &source,
            place
                .origin
                .column
                .saturating_sub(1)
                .saturating_add(place.length),
        );
        let kind = if primary {
            AnnotationKind::Primary
        } else {
            AnnotationKind::Context
        };
        let annotation = kind.span(start..end.max(start)).label(label);
        group.element(
            Snippet::source(source)
                .line_start(line)
                .path(file)
                .annotation(annotation),
        )
    }
}

/// A source line with each invisible character replaced by one that is seen, so that columns stay right.
fn visible(line: &str) -> Cow<'_, str> {
    let hidden = |c: char| c != '\t' && is_invisible(c);
    if line.chars().any(hidden) {
        Cow::Owned(
            line.chars()
                .map(|c| if hidden(c) { '\u{fffd}' } else { c })
                .collect(),
        )
    } else {
        Cow::Borrowed(line)
    }
}

/// The byte offset of a character, or the line's end.
fn byte_at(line: &str, character: u32) -> usize {
    line.char_indices()
        .nth(character as usize)
        .map_or(line.len(), |(at, _)| at)
}

/// Text from files or containers, with what a terminal would obey or hide made visible.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_invisible(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Control characters, zero-width characters, and those that turn the direction of what follows.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}
