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

/// The code with this id or name, however its letters are written.
pub fn find(text: &str) -> Option<&'static Code> {
    let wanted = |name: &str| name.eq_ignore_ascii_case(text.trim());
    all()
        .into_iter()
        .find(|code| wanted(code.id) || wanted(code.name))
}

/// The id or name that is closest to a text, if any is close.
pub fn nearest(text: &str) -> Option<&'static str> {
    let text = text.trim().to_lowercase();
    let allowed = (text.chars().count() / 4).max(2);
    let ids = text.starts_with("selu");
    all()
        .into_iter()
        .map(|code| if ids { code.id } else { code.name })
        .map(|known| (strsim::osa_distance(&known.to_lowercase(), &text), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, known)| known)
}

/// One code as text for a terminal: its rules, cause, cure and example.
pub fn explain(code: &Code) -> String {
    let Code {
        id,
        name,
        severity,
        rules,
        cause,
        cure,
        example,
    } = code;
    let level = match severity {
        Severity::Error => "error; errors cannot be lowered".to_owned(),
        Severity::Warning | Severity::Note => {
            let level = if *severity == Severity::Warning {
                "warning"
            } else {
                "note"
            };
            format!("{level}; in selu.toml: [diagnostics] {name} = \"allow|note|warning|error\"")
        }
    };
    let mut text = format!("{id} {name}\n{level}\n");
    if !rules.is_empty() {
        text.push_str(&format!("rules: {}\n", rules.join(", ")));
    }
    text.push_str(&format!("\n{cause}\n\nCure: {cure}\n"));
    if !example.is_empty() {
        text.push_str("\nExample:\n");
        for line in example.trim_end().lines() {
            text.push_str(format!("    {line}").trim_end());
            text.push('\n');
        }
    }
    text
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
