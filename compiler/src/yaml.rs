//! YAML text → [`Document`]: values whose kind is decided, with the place of every key and value (L5, house rule 13).
//!
//! The text is read by `saphyr-parser` and by nothing else. The guard bounds it (bytes, nodes, depth, aliases), expands
//! merge keys, refuses tags, further documents, duplicate and non-string keys, and decides each scalar by the YAML 1.2
//! core schema while it keeps the written text. Only then does `serde_yaml` get values, not text
//! (`check/shape.rs`): what it does with text alone (last duplicate wins, `~` for a string, merge keys ignored,
//! 1.10 turned into 1.1) cannot happen.

mod guard;
pub mod node;
pub mod scalar;

use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};

pub use guard::{MAX_BYTES, MAX_DEPTH, MAX_NODES};

use crate::diag::{Diagnostic, Place};
use crate::model::Origin;
use node::{Data, Node, Span};

/// A file's values with their places.
#[derive(Debug, Clone)]
pub struct Document {
    /// Relative to the root.
    pub file: Utf8PathBuf,
    /// The top of the tree.
    pub root: Node,
    /// Line and column of texts that take more than one line.
    pub folded: Vec<(u32, u32)>,
}

/// Reads a file's text. Without a document there is at least one error among the findings; with one there may be.
pub fn read(file: &Utf8Path, text: &str) -> (Option<Document>, Vec<Diagnostic>) {
    let (root, folded, findings) = guard::read(file, text);
    let document = root.map(|root| Document {
        file: file.to_owned(),
        root,
        folded,
    });
    (document, findings)
}

impl Document {
    /// The node at a JSON pointer.
    pub fn at(&self, pointer: &str) -> Option<&Node> {
        let found = self.locate(pointer);
        found.exact.then_some(found.node)
    }

    /// Where the value at a JSON pointer is written. What does not exist is placed at what would hold it.
    pub fn place(&self, pointer: &str) -> Place {
        self.at_span(self.span(pointer), pointer)
    }

    /// The same without the path.
    pub fn origin(&self, pointer: &str) -> Origin {
        let Span { line, column, .. } = self.span(pointer);
        Origin {
            file: self.file.clone(),
            line,
            column,
        }
    }

    /// The same without the file.
    pub fn span(&self, pointer: &str) -> Span {
        let found = self.locate(pointer);
        // A block of many lines is best shown by the key that opens it, or by its own first key.
        match (&found.node.data, found.key) {
            (Data::Scalar(_), _) => found.node.span,
            (_, Some(key)) => key,
            (Data::Map(map), None) => map
                .entries()
                .first()
                .map_or(found.node.span, |entry| entry.key_span),
            (Data::List(_), None) => found.node.span,
        }
    }

    /// Where the key at a JSON pointer is written; of a list's item, where the item starts.
    pub fn key_place(&self, pointer: &str) -> Place {
        let span = match self.locate(pointer) {
            Found { key: Some(key), .. } => key,
            Found { node, .. } => node.span,
        };
        self.at_span(span, pointer)
    }

    /// The place of a span in this file.
    pub fn at_span(&self, span: Span, pointer: &str) -> Place {
        Place {
            origin: Origin {
                file: self.file.clone(),
                line: span.line,
                column: span.column,
            },
            length: span.length,
            path: field_path(&self.root, pointer),
        }
    }

    /// A suggestion is pasted over one line: for a text that takes several it is words alone.
    pub(crate) fn keep_pasteable(&self, findings: &mut [Diagnostic]) {
        for finding in findings {
            let Origin { file, line, column } = &finding.place.origin;
            if *file == self.file
                && self.folded.contains(&(*line, *column))
                && let Some(suggestion) = finding.suggestion.take()
            {
                finding.help = Some(format!(
                    "write it behind the colon, in one line: {suggestion}"
                ));
            }
        }
    }

    fn locate(&self, pointer: &str) -> Found<'_> {
        let mut found = Found {
            node: &self.root,
            key: None,
            exact: true,
        };
        for token in tokens(pointer) {
            let next = match &found.node.data {
                Data::Map(map) => map
                    .get(&token)
                    .map(|entry| (&entry.value, Some(entry.key_span))),
                Data::List(items) => token
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get(index))
                    .map(|item| (item, None)),
                Data::Scalar(_) => None,
            };
            let Some((node, key)) = next else {
                found.exact = false;
                break;
            };
            found.node = node;
            found.key = key;
        }
        found
    }
}

struct Found<'a> {
    node: &'a Node,
    key: Option<Span>,
    /// Whether the whole pointer was followed.
    exact: bool,
}

/// The reference tokens of a JSON pointer, unescaped.
fn tokens(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(|token| {
        if token.contains('~') {
            Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
        } else {
            Cow::Borrowed(token)
        }
    })
}

/// A key as a JSON pointer's reference token.
pub fn escape(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) {
        Cow::Owned(key.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(key)
    }
}

/// Adds a key to a path as people write it.
fn push_key(path: &mut String, key: &str) {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
    if key.is_empty() || !key.chars().all(plain) {
        path.push_str(&format!("[{key:?}]"));
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// A JSON pointer as people write it, such as `tools[2].input_schema.type`.
fn field_path(root: &Node, pointer: &str) -> String {
    let mut path = String::new();
    let mut node = Some(root);
    for token in tokens(pointer) {
        match node.map(|node| &node.data) {
            Some(Data::List(items)) => {
                path.push_str(&format!("[{token}]"));
                node = token
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get(index));
            }
            data => {
                push_key(&mut path, &token);
                node = match data {
                    Some(Data::Map(map)) => map.get(&token).map(|entry| &entry.value),
                    _ => None,
                };
            }
        }
    }
    path
}
