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
                needles.push(form.to_owned());
                let json = serde_json::Value::from(form).to_string();
                let inner = json.trim_start_matches('"').trim_end_matches('"');
                if inner != form && inner.chars().count() >= SHORTEST {
                    needles.push(inner.to_owned());
                }
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
