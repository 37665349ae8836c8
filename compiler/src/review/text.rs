//! Text that a model obeys and a person reads: what changed in it, and what hides in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};
use unicode_security::MixedScript;

use crate::report::hidden;

/// A piece of a changed text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "is", content = "text")]
pub enum Piece {
    /// On both sides.
    Same(String),
    /// Only in the old text.
    Removed(String),
    /// Only in the new text.
    Added(String),
}

/// What changed, word by word. The pieces give the old text without the added ones, and the new one without the removed.
pub fn words(old: &str, new: &str) -> Vec<Piece> {
    let diff = TextDiff::from_words(old, new);
    let mut pieces: Vec<Piece> = Vec::new();
    for change in diff.iter_all_changes() {
        let text = change.value();
        match (change.tag(), pieces.last_mut()) {
            (ChangeTag::Equal, Some(Piece::Same(last)))
            | (ChangeTag::Delete, Some(Piece::Removed(last)))
            | (ChangeTag::Insert, Some(Piece::Added(last))) => last.push_str(text),
            (ChangeTag::Equal, _) => pieces.push(Piece::Same(text.to_owned())),
            (ChangeTag::Delete, _) => pieces.push(Piece::Removed(text.to_owned())),
            (ChangeTag::Insert, _) => pieces.push(Piece::Added(text.to_owned())),
        }
    }
    pieces
}

/// Something in a text that a person would not see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "text")]
pub enum Suspicion {
    /// A control character, an invisible one, or one that turns the direction of text; as `U+202E`.
    Character(String),
    /// A word that mixes alphabets whose letters look alike, with its foreign letters as code points.
    LookAlike(String),
}

/// What hides in a text, each thing once, sorted.
pub fn suspicions(text: &str) -> Vec<Suspicion> {
    let mut found: Vec<Suspicion> = text
        .chars()
        .filter(|character| !matches!(character, '\n' | '\r' | '\t') && hidden(*character))
        .map(|character| Suspicion::Character(code_point(character)))
        .collect();
    let words = text.split(|c: char| !c.is_alphanumeric());
    let mixed = words.filter(|word| !word.is_single_script());
    found.extend(mixed.map(|word| {
        let foreign: Vec<String> = word
            .chars()
            .filter(|character| !character.is_ascii())
            .map(code_point)
            .collect();
        Suspicion::LookAlike(format!("{word} ({})", foreign.join(" ")))
    }));
    found.sort();
    found.dedup();
    found
}

/// What hides in `new` and not in `old`.
pub fn new_suspicions(old: &str, new: &str) -> Vec<Suspicion> {
    let known = suspicions(old);
    let mut found = suspicions(new);
    found.retain(|suspicion| !known.contains(suspicion));
    found
}

fn code_point(character: char) -> String {
    format!("U+{:04X}", u32::from(character))
}

#[cfg(test)]
mod tests {
    use super::{Piece, Suspicion, new_suspicions, suspicions, words};

    #[test]
    fn pieces_make_both_texts_again() {
        let (old, new) = ("Reads a file. Fast.", "Reads a file, and sends it. Fast.");
        let pieces = words(old, new);
        let side = |without: fn(&Piece) -> bool| {
            let kept = pieces.iter().filter(|piece| !without(piece));
            kept.map(|piece| match piece {
                Piece::Same(text) | Piece::Removed(text) | Piece::Added(text) => text.as_str(),
            })
            .collect::<String>()
        };
        assert_eq!(side(|piece| matches!(piece, Piece::Added(_))), old);
        assert_eq!(side(|piece| matches!(piece, Piece::Removed(_))), new);
        assert!(
            pieces.contains(&Piece::Same(" Fast.".to_owned())),
            "{pieces:?}"
        );
    }

    #[test]
    fn what_hides_is_named_and_what_is_plain_is_not() {
        for plain in [
            "Reads a file.",
            "ünïcödé",
            "日本語とカタカナ",
            "привет мир",
            "a\nb\tc",
            "α and β",
        ] {
            assert_eq!(suspicions(plain), [], "{plain}");
        }
        for (text, kind) in [
            ("zero\u{200b}width", "U+200B"),
            ("\u{202e}gnp", "U+202E"),
            ("tag\u{e0041}", "U+E0041"),
            ("\u{1b}[2J", "U+001B"),
        ] {
            let expected = Suspicion::Character(kind.to_owned());
            assert_eq!(suspicions(text), [expected], "{text:?}");
        }
        let expected = Suspicion::LookAlike("p\u{430}ypal (U+0430)".to_owned());
        assert_eq!(suspicions("at p\u{430}ypal"), [expected]);
    }

    #[test]
    fn what_hid_before_is_no_news() {
        assert_eq!(new_suspicions("a\u{200b}b", "a\u{200b}b c"), []);
        assert_eq!(new_suspicions("ab", "a\u{200b}b").len(), 1);
    }
}
