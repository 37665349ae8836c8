//! Pages.

use super::escape;

/// Text that stays text in HTML and SVG, in an element and in a quoted attribute; what would hide is shown.
pub(crate) fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in escape(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(character),
        }
    }
    safe
}
