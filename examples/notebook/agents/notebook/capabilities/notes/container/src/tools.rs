//! The tools, as manifest.yaml declares them.

use selu_example_support::{Call, ToolError, Tools, reply};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::store::{Store, StoreError};

/// Most notes that one search returns; the answer says when there are more.
const FOUND: usize = 20;

/// The notebook's tools over one folder.
pub(crate) struct Notes {
    store: Store,
}

impl Notes {
    /// Notes in `folder`.
    pub(crate) fn new(folder: impl Into<std::path::PathBuf>) -> Self {
        Self {
            store: Store::new(folder),
        }
    }

    /// Notes whose name or text has the words, in any case, each with the first line that does.
    fn search(&self, query: &str) -> Result<Value, StoreError> {
        let wanted = query.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let mut found = Vec::new();
        for name in self.store.names()? {
            let text = self.store.read(&name)?;
            let line = text.lines().find(|line| has(line));
            if line.is_some() || has(&name) {
                found.push(json!({"name": name, "line": line}));
            }
        }
        let more = found.len().saturating_sub(FOUND);
        found.truncate(FOUND);
        Ok(json!({"notes": found, "not_shown": more}))
    }
}

impl Tools for Notes {
    fn call(&self, call: &Call) -> Result<Value, ToolError> {
        let store = &self.store;
        match call.tool() {
            "save_note" => {
                let Save { name, text } = call.arguments()?;
                let replaced = store.save(&name, &text).map_err(failed)?;
                reply(json!({"name": name, "replaced": replaced}))
            }
            "read_note" => {
                let Named { name } = call.arguments()?;
                let text = store.read(&name).map_err(failed)?;
                reply(json!({"name": name, "text": text}))
            }
            "search_notes" => {
                let Search { query } = call.arguments()?;
                self.search(&query).map_err(failed)
            }
            "delete_note" => {
                let Named { name } = call.arguments()?;
                store.delete(&name).map_err(failed)?;
                reply(json!({"deleted": name}))
            }
            _ => Err(ToolError::unknown(call)),
        }
    }
}

fn failed(error: StoreError) -> ToolError {
    ToolError::failed(error.to_string())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Save {
    name: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn ask(notes: &Notes, tool: &str, arguments: Value) -> Result<Value, String> {
        notes
            .call(&Call::new(tool, arguments, Map::new()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_search_finds_names_and_text_in_any_case_and_shows_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::new(folder.path());
        for (name, text) in [
            ("Trip", "pack\nbook the TRAIN"),
            ("train times", "8:05"),
            ("other", "nothing"),
        ] {
            ask(&notes, "save_note", json!({"name": name, "text": text})).unwrap();
        }
        let found = ask(&notes, "search_notes", json!({"query": "Train"})).unwrap();
        let expected = json!({
            "notes": [{"name": "Trip", "line": "book the TRAIN"}, {"name": "train times", "line": null}],
            "not_shown": 0,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_long_result_is_cut_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::new(folder.path());
        for number in 0..FOUND + 3 {
            let arguments = json!({"name": format!("note {number}"), "text": ""});
            ask(&notes, "save_note", arguments).unwrap();
        }
        let found = ask(&notes, "search_notes", json!({"query": ""})).unwrap();
        assert_eq!(found["not_shown"], 3);
    }

    #[test]
    fn a_refusal_names_the_rule() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::new(folder.path());
        let error = ask(&notes, "read_note", json!({"name": "../x"})).unwrap_err();
        assert!(error.contains("`../x` is no name for a note"), "{error}");
        let error = ask(&notes, "save_note", json!({"name": "x"})).unwrap_err();
        assert!(error.contains("missing field `text`"), "{error}");
    }
}
