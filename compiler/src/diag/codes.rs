//! Every code there is, a family a file.

use super::{Code, Severity};

pub mod agent;
pub mod credentials;
pub mod discovery;
pub mod image;
pub mod layout;
pub mod lock;
pub mod manifest;
pub mod network;
pub mod plan;
pub mod settings;
pub mod tools;
pub mod yaml;

/// All codes, sorted by id.
pub fn all() -> Vec<&'static Code> {
    let mut codes: Vec<&'static Code> = [
        layout::ALL,
        yaml::ALL,
        manifest::ALL,
        tools::ALL,
        network::ALL,
        credentials::ALL,
        image::ALL,
        agent::ALL,
        settings::ALL,
        lock::ALL,
        plan::ALL,
        discovery::ALL,
    ]
    .concat();
    codes.sort_by_key(|code| code.id);
    codes
}

/// docs/diagnostics.md: every code with its rules, cause, cure and example.
pub fn document() -> String {
    let mut text = String::from(
        "# Diagnostics\n\n\
         Every finding has a code that is never used for anything else. This page is generated from the compiler's \
         source; `UPDATE=1 cargo test -p selu-compiler` writes it.\n",
    );
    for code in all() {
        let Code {
            id,
            name,
            severity,
            rules,
            cause,
            cure,
            example,
        } = code;
        let severity = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        text.push_str(&format!("\n## {id} {name}\n\n{severity}"));
        if !rules.is_empty() {
            text.push_str(&format!(" · rules {}", rules.join(", ")));
        }
        text.push_str(&format!("\n\n{cause}\n\n**Cure:** {cure}\n"));
        if !example.is_empty() {
            text.push_str(&format!("\n```\n{}\n```\n", example.trim_end()));
        }
    }
    text
}
