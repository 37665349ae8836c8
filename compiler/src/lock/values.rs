//! Differences between two JSON values, place by place.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::diag::shown;

/// One place where two values differ.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueChange {
    /// JSON pointer; empty for the value as a whole.
    pub pointer: String,
    /// What was there.
    pub old: Option<Value>,
    /// What is there now.
    pub new: Option<Value>,
}

impl fmt::Display for ValueChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Value| shown(&value.to_string());
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => write!(f, "{}: {} → {}", self.pointer, text(old), text(new)),
            (None, Some(new)) => write!(f, "{}: added {}", self.pointer, text(new)),
            (Some(old), None) => write!(f, "{}: removed {}", self.pointer, text(old)),
            (None, None) => f.write_str(&self.pointer),
        }
    }
}

/// Every place where two values differ, as deep as possible. Lists of different length differ as a whole.
pub fn value_changes(old: &Value, new: &Value) -> Vec<ValueChange> {
    let mut changes = Vec::new();
    compare("", old, new, &mut changes);
    changes
}

fn compare(pointer: &str, old: &Value, new: &Value, changes: &mut Vec<ValueChange>) {
    let below = |segment: &str| {
        format!(
            "{pointer}/{}",
            segment.replace('~', "~0").replace('/', "~1")
        )
    };
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                match (old.get(key), new.get(key)) {
                    (Some(old), Some(new)) => compare(&below(key), old, new, changes),
                    (old, new) => changes.push(ValueChange {
                        pointer: below(key),
                        old: old.cloned(),
                        new: new.cloned(),
                    }),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&below(&index.to_string()), old, new, changes);
            }
        }
        (old, new) if old == new => {}
        (old, new) => changes.push(ValueChange {
            pointer: pointer.to_owned(),
            old: Some(old.clone()),
            new: Some(new.clone()),
        }),
    }
}
