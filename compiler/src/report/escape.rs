//! Text from files, images and containers, made safe for a terminal (D7).

use std::fmt::Write;

/// Shows control characters, and those that are invisible or change the direction of text, as `\u{…}`. Everything else
/// stays, also other alphabets.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            _ if hidden(character) => {
                // Writing to a String cannot fail.
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
            }
            _ => safe.push(character),
        }
    }
    safe
}

/// Indented JSON in which such characters are `\uXXXX`: the same value for a program, and nothing that a terminal would
/// obey or a person would not see.
pub fn json_text(value: &serde_json::Value) -> String {
    let written = format!("{value:#}");
    // Such characters stand in texts only, but for the line breaks between the lines.
    let is_hidden = |character: char| character != '\n' && hidden(character);
    if !written.contains(is_hidden) {
        return written;
    }
    let mut safe = String::with_capacity(written.len());
    let mut units = [0; 2];
    for character in written.chars() {
        if is_hidden(character) {
            for unit in character.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Control characters, and those that are invisible or change the direction of text.
pub(crate) fn hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'                    // soft hyphen
            | '\u{34f}'                 // combining grapheme joiner
            | '\u{61c}'                 // Arabic letter mark
            | '\u{115f}'..='\u{1160}'   // Hangul fillers
            | '\u{17b4}'..='\u{17b5}'   // Khmer inherent vowels
            | '\u{180b}'..='\u{180f}'   // Mongolian selectors
            | '\u{200b}'..='\u{200f}'   // zero width, marks of direction
            | '\u{2028}'..='\u{202e}'   // line separators, embeddings, overrides
            | '\u{2060}'..='\u{206f}'   // word joiner, isolates, deprecated controls
            | '\u{3164}'                // Hangul filler
            | '\u{fe00}'..='\u{fe0f}'   // variation selectors
            | '\u{feff}'                // byte order mark
            | '\u{ffa0}'                // half-width Hangul filler
            | '\u{fff0}'..='\u{fffb}'   // interlinear annotation
            | '\u{1bca0}'..='\u{1bca3}' // shorthand controls
            | '\u{1d173}'..='\u{1d17a}' // musical controls
            | '\u{e0000}'..='\u{e0fff}' // tags, more variation selectors
        )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{escape, hidden, json_text};

    #[test]
    fn what_moves_the_cursor_or_hides_is_shown() {
        for (raw, shown) in [
            ("plain, ünïcödé, 日本語", "plain, ünïcödé, 日本語"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("a\nb\r\tc\u{7f}\u{9b}", "a\\nb\\r\\tc\\u{7f}\\u{9b}"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("\u{202e}gnp.exe", "\\u{202e}gnp.exe"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
            ("\u{feff}bom", "\\u{feff}bom"),
        ] {
            assert_eq!(escape(raw), shown);
        }
    }

    #[test]
    fn json_is_the_same_value_and_shows_what_would_hide() {
        let text = "a\u{202e}b\u{200b}\u{7f}\u{9b}\u{e0041}\n\u{1}\\\"ü日";
        let value = json!({ "\u{2066}key": [text, 1, { "inner": "\u{feff}" }] });
        let written = json_text(&value);
        assert!(
            !written.contains(|c: char| c != '\n' && hidden(c)),
            "{written}"
        );
        assert!(
            written.contains(r"a\u202eb\u200b\u007f\u009b\udb40\udc41\n"),
            "{written}"
        );
        assert!(written.contains("ü日"), "{written}");
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
    }
}
