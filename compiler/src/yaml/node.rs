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
    /// A mapping, in the order it is written; keys are unique.
    Map(Vec<Entry>),
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
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.data {
            Data::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

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
