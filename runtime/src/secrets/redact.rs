//! Removes credential values from texts that come from outside: errors, logs, container output.

use std::fmt;

/// Values shorter than this are not removed: `1` or `no` would tear every text apart.
const SHORTEST: usize = 4;

/// Values of this length are in no text by chance.
const TELLING: usize = 8;

/// What stands in a value's place.
const MARK: &str = "[secret]";

/// Every known value in each form in which it may appear.
#[derive(Default, Clone, PartialEq, Eq)]
pub struct Redactor {
    /// Longest first, so that a value inside another one does not leave the rest of it behind.
    needles: Vec<String>,
}

impl Redactor {
    /// Knows `values`: each as a whole, line by line (a log has a key's lines one by one), and as JSON writes it.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut needles = Vec::new();
        for value in values {
            for form in std::iter::once(value).chain(value.lines().map(str::trim)) {
                if form.chars().count() < SHORTEST {
                    continue;
                }
                let others = [
                    json(form, false),
                    json(form, true),
                    json(form, false).replace('/', "\\/"),
                    json(form, true).replace('/', "\\/"),
                    url(form, false, "%20"),
                    url(form, true, "%20"),
                    url(form, false, "+"),
                    url(form, true, "+"),
                ];
                needles.push(form.to_owned());
                needles.extend(others.into_iter().filter(|other| other != form));
            }
        }
        needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        Self { needles }
    }

    /// Whether a value of some length stands in the text. A shorter one, such as `test` or `admin`, is a word that a text
    /// may hold by itself.
    pub fn finds(&self, text: &str) -> bool {
        self.needles
            .iter()
            .any(|needle| needle.chars().count() >= TELLING && text.contains(needle.as_str()))
    }

    /// The text without any of them.
    pub fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for needle in &self.needles {
            if text.contains(needle.as_str()) {
                text = text.replace(needle.as_str(), MARK);
            }
        }
        text
    }
}

/// As JSON writes it, without the quotes around it; in ASCII alone, as some writers do.
fn json(text: &str, ascii: bool) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let inner = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(&quoted);
    if !ascii {
        return inner.to_owned();
    }
    let mut out = String::new();
    for c in inner.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// As a URL or a form has it.
fn url(text: &str, lower: bool, blank: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            b' ' => out.push_str(blank),
            _ if lower => out.push_str(&format!("%{byte:02x}")),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.needles.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_removed_whole_by_line_and_in_its_json_form() {
        let redactor = Redactor::new(["-----BEGIN-----\nabcdef\n-----END-----", "pa\"ss\\word"]);
        assert_eq!(redactor.clean("log: abcdef!"), "log: [secret]!");
        assert_eq!(
            redactor.clean(r#"{"p":"pa\"ss\\word"}"#),
            r#"{"p":"[secret]"}"#
        );
        assert_eq!(redactor.clean("pa\"ss\\word"), "[secret]");
    }

    #[test]
    fn a_value_is_removed_from_urls_and_from_json_of_other_writers() {
        let redactor = Redactor::new(["pä ss/wörd&+"]);
        for text in [
            "p%C3%A4%20ss%2Fw%C3%B6rd%26%2B",
            "p%c3%a4%20ss%2fw%c3%b6rd%26%2b",
            "p%C3%A4+ss%2Fw%C3%B6rd%26%2B",
            "p\\u00e4 ss/w\\u00f6rd&+",
            "p\\u00e4 ss\\/w\\u00f6rd&+",
            "pä ss\\/wörd&+",
        ] {
            assert_eq!(
                redactor.clean(&format!("x={text};")),
                "x=[secret];",
                "{text}"
            );
        }
    }

    #[test]
    fn a_value_that_contains_another_leaves_nothing_behind() {
        let redactor = Redactor::new(["token", "token-long-tail"]);
        assert_eq!(redactor.clean("x token-long-tail y"), "x [secret] y");
    }

    #[test]
    fn a_value_of_three_characters_stays_and_one_of_four_does_not() {
        let redactor = Redactor::new(["abc", "wxyz"]);
        assert_eq!(redactor.clean("abc wxyz"), "abc [secret]");
    }

    #[test]
    fn a_value_is_found_in_each_form_unless_it_is_a_word() {
        let redactor = Redactor::new(["admin", "pa\"ss\\word"]);
        assert!(redactor.finds("x pa\"ss\\word"));
        assert!(redactor.finds(r#"{"p":"pa\"ss\\word"}"#));
        assert!(!redactor.finds("for the admin"));
    }

    #[test]
    fn debug_shows_no_value() {
        assert!(!format!("{:?}", Redactor::new(["hunter2-hunter2"])).contains("hunter2"));
    }
}
