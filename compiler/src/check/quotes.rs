//! Suggestions as they can be pasted: over a quoted text comes a quoted one, and what YAML would read as something
//! else is quoted.

use std::collections::{HashMap, HashSet};

use crate::diag::Diagnostic;
use crate::source::SourceSet;

/// Gives suggestions the quotes that they need at their place.
pub(super) fn keep(diagnostics: &mut [Diagnostic], sources: &SourceSet) {
    let wanted: HashSet<String> = diagnostics
        .iter()
        .filter(|found| found.suggestion.is_some())
        .map(|found| found.place.origin.file.to_string())
        .collect();
    if wanted.is_empty() {
        return;
    }
    let lines: HashMap<&str, Vec<&str>> = sources
        .files()
        .filter(|file| wanted.contains(file.path.as_str()))
        .map(|file| (file.path.as_str(), file.text.lines().collect()))
        .collect();
    for found in diagnostics {
        let origin = &found.place.origin;
        let (Some(suggestion), Some(lines)) = (&found.suggestion, lines.get(origin.file.as_str()))
        else {
            continue;
        };
        let first = (origin.line as usize).checked_sub(1).and_then(|line| {
            lines
                .get(line)?
                .chars()
                .nth((origin.column as usize).checked_sub(1)?)
        });
        if needs_quotes(first, suggestion) {
            found.suggestion = serde_json::to_string(suggestion).ok();
        }
    }
}

/// `first` is the character that the suggestion is pasted over.
fn needs_quotes(first: Option<char>, suggestion: &str) -> bool {
    let quoted = |c: char| matches!(c, '"' | '\'');
    // A flow mapping, a list or a number replaces a text as a whole.
    let is_value = suggestion.parse::<f64>().is_ok() || matches!(suggestion, "true" | "false");
    if is_value || suggestion.starts_with(['"', '\'', '[', '{']) {
        return false;
    }
    first.is_some_and(quoted) || suggestion.starts_with(['*', '&', '!', '%', '@', '`'])
}

#[cfg(test)]
mod tests {
    use super::needs_quotes;

    #[test]
    fn a_quoted_text_stays_quoted_and_indicators_are_quoted() {
        for (first, suggestion, needs) in [
            ('a', "b", false),
            ('"', "b", true),
            ('\'', "b", true),
            ('"', "\"b\"", false),
            ('a', "*.example.com:443", true),
            ('"', "{type: string}", false),
            ('a', "[city]", false),
            ('"', "128", false),
        ] {
            assert_eq!(
                needs_quotes(Some(first), suggestion),
                needs,
                "{first} {suggestion}"
            );
        }
    }
}
