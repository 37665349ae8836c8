//! What the pure leaf checks find, put where it is written.

use crate::diag::{Diagnostic, Problem};
use crate::yaml::Document;

/// A leaf's problem below the value at `base`.
pub(super) fn lift(document: &Document, base: &str, problem: Problem) -> Diagnostic {
    let Problem {
        code,
        pointer,
        at_key,
        message,
        help,
        suggestion,
    } = problem;
    let pointer = format!("{base}{pointer}");
    let place = if at_key {
        document.key_place(&pointer)
    } else {
        document.place(&pointer)
    };
    Diagnostic {
        help,
        suggestion,
        ..Diagnostic::new(code, place, message)
    }
}

/// Adds what was probably meant.
pub(super) trait Nearest {
    /// The known name that is closest to the written one, if any is close and another.
    fn nearest<'a>(self, written: &str, known: impl IntoIterator<Item = &'a str>) -> Self;
}

impl Nearest for Diagnostic {
    fn nearest<'a>(self, written: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match super::shape::nearest(written, known).filter(|near| *near != written) {
            Some(near) => self.help(format!("did you mean `{near}`?")).suggest(near),
            None => self,
        }
    }
}

/// The id is as section 2 wants it, and the folder is named like it (L4).
pub(super) fn id(
    document: &Document,
    folder: &camino::Utf8Path,
    id: Option<&str>,
    findings: &mut Vec<Diagnostic>,
) {
    use crate::diag::codes::{layout, manifest};
    let Some(id) = id else { return };
    let place = document.place("/id");
    if !crate::model::is_id(id) {
        let mut finding = Diagnostic::new(
            &manifest::BAD_ID,
            place,
            format!(
                "{id:?} is not an id: lower-case letters, digits and inner hyphens, at most 63 characters"
            ),
        );
        // Letters that only look like others, or that nobody sees, are better named than guessed at.
        let foreign =
            |c: &char| !c.is_ascii() && (c.is_alphanumeric() || crate::report::hidden(*c));
        if let Some(letter) = id.chars().find(foreign) {
            let number = u32::from(letter);
            let letter = letter.escape_debug();
            finding = finding.help(format!(
                "`{letter}` (U+{number:04X}) is none of the letters from a to z"
            ));
        } else if let Some(close) = as_id(id) {
            finding = finding.help(format!("write {close}")).suggest(close);
        }
        findings.push(finding);
    } else if let Some(name) = folder.file_name()
        && name != id
    {
        findings.push(Diagnostic::new(
            &layout::FOLDER_NAME,
            place,
            format!("the id is `{id}`, and its folder is named `{name}`"),
        ));
    }
}

/// The id that a name most likely stands for.
fn as_id(name: &str) -> Option<String> {
    let dashed: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let parts: Vec<&str> = dashed.split('-').filter(|part| !part.is_empty()).collect();
    let id = parts.join("-");
    crate::model::is_id(&id).then_some(id)
}
