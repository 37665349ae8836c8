//! Tool names (T2).

use crate::diag::codes::tools as codes;
use crate::diag::{Problem, shown};

/// The longest name that model providers take.
const MODEL_NAME_MAX: usize = 64;

/// Everything that is wrong with a tool's name in that capability. That names are unique is the list's affair.
pub fn name(capability: &str, tool: &str) -> Vec<Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if tool.is_empty() {
        return vec![Problem::new(
            &codes::NAME_INVALID,
            "the tool's name is empty",
        )];
    }
    if let Some(wrong) = tool.chars().find(|c| !plain(*c)) {
        let better: String = tool
            .trim()
            .chars()
            .map(|c| if plain(c) { c } else { '_' })
            .collect();
        let mut problem = Problem::new(
            &codes::NAME_INVALID,
            format!(
                "`{}` holds {}: a tool's name has letters, digits, `_`, `-` and `.`",
                shown(tool),
                described(wrong)
            ),
        );
        if better.chars().any(|c| c.is_ascii_alphanumeric()) {
            problem = problem
                .help(format!("write `{}`", shown(&better)))
                .suggest(better);
        }
        return vec![problem];
    }
    let seen = format!("{capability}__{tool}");
    let mut problems = Vec::new();
    if seen.contains('.') {
        problems.push(
            Problem::new(
                &codes::NAME_FOR_MODELS,
                format!(
                    "the model would see `{}`, and model providers take no `.`",
                    shown(&seen)
                ),
            )
            .suggest(tool.replace('.', "_")),
        );
    }
    if seen.len() > MODEL_NAME_MAX {
        problems.push(Problem::new(
            &codes::NAME_FOR_MODELS,
            format!(
                "the model would see `{}`, which has {} characters; model providers take {MODEL_NAME_MAX}",
                shown(&seen),
                seen.len()
            ),
        ));
    }
    problems
}

/// A character in words, for those that cannot be seen.
fn described(c: char) -> String {
    match c {
        ' ' => "a space".to_owned(),
        '\t' => "a tab".to_owned(),
        '\n' | '\r' => "a line break".to_owned(),
        c => format!("`{}`", c.escape_debug()),
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    fn codes(capability: &str, tool: &str) -> Vec<&'static str> {
        name(capability, tool)
            .iter()
            .map(|problem| problem.code.name)
            .collect()
    }

    #[test]
    fn plain_names_pass() {
        for tool in ["a", "get_weather", "Get-Weather2", "_"] {
            assert_eq!(codes("weather", tool), [""; 0], "{tool}");
        }
    }

    #[test]
    fn other_characters_are_errors() {
        for tool in [
            "",
            "get weather",
            "get/weather",
            "wetter_für",
            "a\nb",
            "a\u{200b}b",
        ] {
            assert_eq!(codes("weather", tool), ["tool-name-invalid"], "{tool:?}");
        }
        assert_eq!(
            name("weather", "get weather")[0].suggestion.as_deref(),
            Some("get_weather")
        );
    }

    #[test]
    fn characters_that_cannot_be_seen_are_shown_escaped() {
        let message = &name("weather", "a\u{200b}b")[0].message;
        assert!(message.contains("a\\u{200b}b"), "{message}");
    }

    #[test]
    fn what_providers_refuse_is_a_warning() {
        assert_eq!(codes("weather", "get.forecast"), ["tool-name-for-models"]);
        let longest = "t".repeat(64 - "weather__".len());
        assert_eq!(codes("weather", &longest), [""; 0]);
        let longer = name("weather", &format!("{longest}t"));
        assert_eq!(longer[0].code.name, "tool-name-for-models");
        assert!(
            longer[0].message.contains("65 characters"),
            "{}",
            longer[0].message
        );
    }
}
