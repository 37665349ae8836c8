//! Findings as GitHub's workflow commands: annotations on the lines of a pull request.

use camino::Utf8Path;

use super::escaped;
use crate::diag::{Diagnostic, Severity};

/// One line per finding. `base` leads from the top of the repository to the directory that was checked.
pub fn github(diagnostics: &[Diagnostic], base: &Utf8Path) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let Diagnostic {
            code,
            severity,
            message,
            place,
            help,
            suggestion: _,
            related,
        } = diagnostic;
        let command = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let file = super::below(base, &place.origin.file);
        out.push_str(&format!("::{command} file={}", property(file.as_str())));
        let (line, column) = (place.origin.line, place.origin.column);
        if line > 0 {
            let end = column.saturating_add(place.length);
            out.push_str(&format!(
                ",line={line},endLine={line},col={column},endColumn={end}"
            ));
        }
        let title = format!("{} {}", code.id, code.name);
        out.push_str(&format!(",title={}::", property(&title)));
        let mut lines = Vec::new();
        if place.path.is_empty() {
            lines.push(escaped(message).into_owned());
        } else {
            lines.push(format!("{}: {}", escaped(&place.path), escaped(message)));
        }
        for related in related {
            let origin = &related.place.origin;
            lines.push(format!(
                "{}: {}:{}",
                escaped(&related.message),
                escaped(super::below(base, &origin.file).as_str()),
                origin.line
            ));
        }
        lines.extend(help.iter().map(|help| format!("help: {}", escaped(help))));
        out.push_str(&data(&lines.join("\n")));
        out.push('\n');
    }
    out
}

/// The text of a command: what would end it is written as percent and hex.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property of a command, where `:` and `,` part it from the next.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
