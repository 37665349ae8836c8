//! Which policy the bridge recommends for a tool (P2).

use std::collections::BTreeMap;

use selu_compiler::diag::shown;
use selu_compiler::model::Policy;
use serde_json::Value;

/// What the capability's author says of tools, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies(BTreeMap<String, Policy>);

/// Why an override is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PolicyError {
    /// It is no assignment.
    #[error("`{text}` is not TOOL=POLICY, such as delete_file=block")]
    Form {
        /// As given.
        text: String,
    },
    /// There is no such policy.
    #[error("{tool}: `{policy}` is no policy: allow, ask or block")]
    Policy {
        /// The tool.
        tool: String,
        /// As given.
        policy: String,
    },
    /// One tool has two.
    #[error("{tool} has two policies: {first} and {second}")]
    Twice {
        /// The tool.
        tool: String,
        /// The earlier one.
        first: Policy,
        /// The later one.
        second: Policy,
    },
}

impl Policies {
    /// Takes one `TOOL=POLICY`.
    pub fn add(&mut self, text: &str) -> Result<(), PolicyError> {
        let (tool, policy) = text
            .rsplit_once('=')
            .map(|(tool, policy)| (tool.trim(), policy.trim()))
            .filter(|(tool, _)| !tool.is_empty())
            .ok_or_else(|| PolicyError::Form { text: shown(text) })?;
        let second = match policy {
            "allow" => Policy::Allow,
            "ask" => Policy::Ask,
            "block" => Policy::Block,
            other => {
                return Err(PolicyError::Policy {
                    tool: shown(tool),
                    policy: shown(other),
                });
            }
        };
        match self.0.insert(tool.to_owned(), second) {
            Some(first) if first != second => Err(PolicyError::Twice {
                tool: shown(tool),
                first,
                second,
            }),
            _ => Ok(()),
        }
    }

    /// Takes a file of such lines; empty ones and those that begin with `#` are skipped.
    pub fn add_lines(&mut self, text: &str) -> Result<(), PolicyError> {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .try_for_each(|line| self.add(line))
    }

    /// The tools that are named.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The author's word, else the annotations': `allow` takes an explicit `readOnlyHint: true` that nothing contradicts.
    pub(super) fn recommend(&self, tool: &str, annotations: Option<&Value>) -> Policy {
        if let Some(policy) = self.0.get(tool) {
            return *policy;
        }
        let hint = |name| annotations.and_then(|all| all.get(name)).cloned();
        let reads = hint("readOnlyHint") == Some(Value::Bool(true));
        let destroys = hint("destructiveHint").is_some_and(|hint| hint != Value::Bool(false));
        if reads && !destroys {
            Policy::Allow
        } else {
            Policy::Ask
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_explicit_and_uncontradicted_reading_tool_is_allowed() {
        let policies = Policies::default();
        let of = |annotations: Value| policies.recommend("t", Some(&annotations));
        assert_eq!(of(json!({"readOnlyHint": true})), Policy::Allow);
        assert_eq!(
            of(json!({"readOnlyHint": true, "destructiveHint": false})),
            Policy::Allow
        );
        for careful in [
            json!({}),
            json!({"readOnlyHint": false}),
            json!({"readOnlyHint": "true"}),
            json!({"readOnlyHint": 1}),
            json!({"readOnlyHint": true, "destructiveHint": true}),
            json!({"destructiveHint": false}),
            json!({"idempotentHint": true}),
            json!([true]),
            json!(null),
        ] {
            assert_eq!(of(careful.clone()), Policy::Ask, "{careful}");
        }
        assert_eq!(policies.recommend("t", None), Policy::Ask);
    }

    #[test]
    fn the_author_has_the_last_word_in_either_direction() {
        let mut policies = Policies::default();
        policies.add("wipe = block").unwrap();
        policies.add_lines("# reads only\n\n a=b=allow\n").unwrap();
        let reading = json!({"readOnlyHint": true});
        assert_eq!(policies.recommend("wipe", Some(&reading)), Policy::Block);
        assert_eq!(policies.recommend("a=b", None), Policy::Allow);
    }

    #[test]
    fn a_misspelt_or_contradictory_override_is_an_error() {
        for wrong in ["wipe", "=ask", "wipe=blok", "wipe=", "wipe:block"] {
            assert!(Policies::default().add(wrong).is_err(), "{wrong}");
        }
        let twice = Policies::default()
            .add_lines("wipe=block\nwipe=block\nwipe=allow")
            .unwrap_err();
        assert_eq!(twice.to_string(), "wipe has two policies: block and allow");
    }
}
