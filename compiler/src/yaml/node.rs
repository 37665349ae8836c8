//! The tree that the guard builds.

use super::scalar::Scalar;

/// A value and where it is written.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it is.
    pub data: Data,
    /// Where it starts.
    pub span: Span,
}

/// What a node is.
#[derive(Debug, Clone)]
pub enum Data {
    /// Anything without parts.
    Scalar(Scalar),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping.
    Map(Map),
}

/// The entries of a mapping, in the order they are written; keys are unique. Large ones keep an index: places are looked
/// up once per finding, and a file may be made of findings.
#[derive(Debug, Clone)]
pub struct Map {
    entries: Vec<Entry>,
    /// Positions by key; empty for a small mapping.
    by_key: Vec<usize>,
}

/// Up to this many entries are looked through one by one.
const SMALL: usize = 16;

impl Map {
    /// Takes entries whose keys are unique.
    pub fn new(entries: Vec<Entry>) -> Self {
        let mut by_key = Vec::new();
        if entries.len() > SMALL {
            by_key.extend(0..entries.len());
            by_key.sort_by(|a: &usize, b: &usize| entries[*a].key.cmp(&entries[*b].key));
        }
        Self { entries, by_key }
    }

    /// In the order they are written.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The same, to keep.
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// The entry with this key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        if self.by_key.is_empty() {
            return self.entries.iter().find(|entry| entry.key == key);
        }
        let at = self
            .by_key
            .binary_search_by(|at| self.entries[*at].key.as_str().cmp(key))
            .ok()?;
        self.entries.get(self.by_key[at])
    }
}

/// A key with its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// Where the key is written.
    pub key_span: Span,
    /// Its value.
    pub value: Node,
}

/// Where something starts, and how much of that line it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// In characters, at least 1.
    pub length: u32,
}

impl Node {
    /// The scalar, if it is one.
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.data {
            Data::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// Whether nothing is written, or a null.
    pub fn is_null(&self) -> bool {
        self.scalar()
            .is_some_and(|scalar| scalar.kind == super::scalar::Kind::Null)
    }
}
