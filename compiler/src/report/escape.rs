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
    use super::escape;

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
}
