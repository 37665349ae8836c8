//! A JSON value as compact text.

use std::fmt;

use serde_json::Value;

/// A JSON value, kept as the text that it has in the plan: large projects hold tens of thousands of schemas, and each as a
/// tree takes several times the room.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Box<str>);

impl Json {
    /// As a tree, to look into or to pass on.
    #[expect(
        clippy::expect_used,
        reason = "the text was written from a value, and schemas are far from the reader's bound on depth (T3)"
    )]
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).expect("the text is JSON")
    }
}

impl From<&Value> for Json {
    #[expect(
        clippy::expect_used,
        reason = "keys are texts and a String takes whatever is written to it"
    )]
    fn from(value: &Value) -> Self {
        // Not `to_string`, which goes through a formatter and takes twice the time.
        let text = serde_json::to_string(value).expect("a value can be written");
        Self(text.into())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Json;

    #[test]
    fn a_value_comes_back_as_it_was() {
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        for value in [
            Value::Null,
            json!({ "b": [1, -1, 1.0, -0.0, 0.1, 1e300, u64::MAX, i64::MIN], "a": "\u{0}\u{2028}\"ü" }),
            deep,
        ] {
            let back = Json::from(&value).value();
            assert_eq!(back, value);
            assert_eq!(back.to_string(), value.to_string());
        }
    }
}
