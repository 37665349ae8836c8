//! What a capability's image is built from must be pinned (P5): a build that installs "the latest" is another program
//! next week, under the same lock.

mod dockerfile;
mod packages;
mod shell;

use crate::diag::codes::image as codes;
use crate::diag::{Diagnostic, Place, shown};
use crate::model::Origin;
use crate::source::SourceFile;
use packages::{Finding, Loose};

/// A word of a command, with its variables filled in, and where it is written.
#[derive(Debug, Clone)]
struct Word {
    text: String,
    /// Whether a part of it can only be known when the image is built.
    open: bool,
    at: At,
    length: u32,
}

/// Line and column, from 1.
#[derive(Debug, Clone, Copy)]
struct At {
    line: u32,
    column: u32,
}

fn is_requirements(name: &str) -> bool {
    name.starts_with("requirements") && name.ends_with(".txt")
}

/// Packages of one file whose version is open.
pub(super) fn check(file: &SourceFile, findings: &mut Vec<Diagnostic>) {
    let name = file.path.file_name().unwrap_or_default();
    let found = if is_requirements(name) {
        packages::requirements(&file.text)
    } else {
        dockerfile::commands(&file.text)
            .iter()
            .flat_map(|words| packages::of_command(words))
            .collect()
    };
    for Finding {
        word,
        loose,
        pinned,
    } in found
    {
        let text = shown(&word.text);
        let message = match loose {
            Loose::Unversioned => format!("`{text}` is installed without a version"),
            Loose::Moving => format!("`{text}` is installed in whatever version is the newest"),
            Loose::Range => format!("`{text}` allows more than one version"),
        };
        let place = Place {
            origin: Origin {
                file: file.path.clone(),
                line: word.at.line,
                column: word.at.column,
            },
            length: word.length,
            path: String::new(),
        };
        findings.push(
            Diagnostic::new(&codes::UNPINNED, place, message)
                .help(format!("pin it, such as `{}`", shown(&pinned))),
        );
    }
}

#[cfg(test)]
mod tests;
