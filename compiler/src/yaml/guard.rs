//! Events → tree, within bounds.

mod problem;

use std::cell::OnceCell;
use std::collections::HashMap;

use camino::Utf8Path;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span as EventSpan, Tag};

use super::node::{Data, Entry, Map, Node, Span};
use super::scalar::{Kind, Scalar};
use crate::diag::codes::{layout, yaml as codes};
use crate::diag::{Diagnostic, Place};
use crate::model::Origin;
use problem::key_not_string;

/// Most bytes of one YAML file.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Most values of one file once aliases and merge keys are expanded; long texts count for more than one.
pub const MAX_NODES: usize = 250_000;
/// Deepest nesting once aliases are expanded.
pub const MAX_DEPTH: usize = 128;
/// Bytes of text that weigh as much as one more node, so that aliases to a long text are bounded too.
const BYTES_PER_NODE: usize = 256;

/// Reads one document. Gives line and column of texts over several lines, too.
pub(super) fn read(
    file: &Utf8Path,
    text: &str,
) -> (Option<Node>, Vec<(u32, u32)>, Vec<Diagnostic>) {
    let mut guard = Guard {
        file,
        text,
        lines: OnceCell::new(),
        findings: Vec::new(),
        anchors: HashMap::new(),
        stack: Vec::new(),
        root: None,
        nodes: 0,
        documents: 0,
        folded: Vec::new(),
    };
    let root = match guard.run(text) {
        Ok(()) => guard.root.map(|built| built.node),
        Err(finding) => {
            guard.findings.push(*finding);
            None
        }
    };
    (root, guard.folded, guard.findings)
}

/// A finding after which nothing more can be read.
type Fatal = Box<Diagnostic>;

struct Guard<'a> {
    file: &'a Utf8Path,
    text: &'a str,
    /// Of `text`; split where one is asked for, which is seldom.
    lines: OnceCell<Vec<&'a str>>,
    findings: Vec<Diagnostic>,
    anchors: HashMap<usize, Built>,
    stack: Vec<Frame>,
    root: Option<Built>,
    nodes: usize,
    documents: usize,
    folded: Vec<(u32, u32)>,
}

/// A finished node with what it costs to repeat it.
#[derive(Clone)]
struct Built {
    node: Node,
    weight: usize,
    height: usize,
}

/// A collection that is being read.
struct Frame {
    span: Span,
    anchor: usize,
    weight: usize,
    height: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        seen: Seen,
        key: Option<Key>,
        /// Values of `<<`, in order.
        merges: Vec<Node>,
    },
}

struct Key {
    text: String,
    kind: Kind,
    span: Span,
    merge: bool,
}

impl<'a> Guard<'a> {
    fn run(&mut self, text: &'a str) -> Result<(), Fatal> {
        if text.len() > MAX_BYTES {
            return Err(self.fatal(
                &layout::FILE_TOO_LARGE,
                Span::START,
                format!(
                    "the file has {} bytes; at most {MAX_BYTES} are read",
                    text.len()
                ),
            ));
        }
        let mut parser = Parser::new_from_str(text);
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|error| self.syntax(&error))?;
            self.event(event, span)?;
        }
        if self.root.is_none() {
            return Err(self.fatal(&codes::EMPTY, Span::FILE, "the file is empty"));
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'a>, at: EventSpan) -> Result<(), Fatal> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let span = self.span(at);
                    return Err(self.fatal(
                        &codes::SEVERAL_DOCUMENTS,
                        span,
                        "a second document starts here; the file holds one",
                    ));
                }
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::Scalar(text, style, anchor, tag) => {
                let span = self.span(at);
                if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
                    || !same_line(at.start, at.end)
                {
                    self.folded.push((span.line, span.column));
                }
                let scalar = self.scalar(text.into_owned(), style, tag.as_deref(), span);
                let weight = 1 + scalar.text.len() / BYTES_PER_NODE;
                self.finish(
                    Built {
                        node: Node {
                            data: Data::Scalar(scalar),
                            span,
                        },
                        weight,
                        height: 0,
                    },
                    anchor,
                )
            }
            Event::SequenceStart(anchor, tag) => {
                let span = self.span(at);
                self.collection_tag(tag.as_deref(), "seq", span);
                self.open(span, anchor, Content::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let span = self.span(at);
                self.collection_tag(tag.as_deref(), "map", span);
                self.open(
                    span,
                    anchor,
                    Content::Map {
                        entries: Vec::new(),
                        seen: Seen::default(),
                        key: None,
                        merges: Vec::new(),
                    },
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
        }
    }

    fn open(&mut self, span: Span, anchor: usize, content: Content) -> Result<(), Fatal> {
        self.no_collection_as_key(span)?;
        if self.stack.len() >= MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        self.stack.push(Frame {
            span,
            anchor,
            weight: 1,
            height: 0,
            content,
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fatal> {
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        let data = match frame.content {
            Content::List(items) => Data::List(items),
            Content::Map {
                entries,
                seen,
                merges,
                ..
            } => Data::Map(Map::new(merge(entries, seen, merges))),
        };
        self.finish(
            Built {
                node: Node {
                    data,
                    span: frame.span,
                },
                weight: frame.weight,
                height: frame.height + 1,
            },
            frame.anchor,
        )
    }

    /// Puts a finished node where it belongs.
    fn finish(&mut self, built: Built, anchor: usize) -> Result<(), Fatal> {
        // Collections were counted through their parts.
        if matches!(built.node.data, Data::Scalar(_)) {
            self.count(built.weight, built.node.span)?;
        } else {
            self.count(1, built.node.span)?;
        }
        if anchor != 0 {
            self.count(built.weight, built.node.span)?;
            self.anchors.insert(anchor, built.clone());
        }
        self.place(built)
    }

    fn place(&mut self, built: Built) -> Result<(), Fatal> {
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(built);
            return Ok(());
        };
        frame.weight += built.weight;
        frame.height = frame.height.max(built.height);
        match &mut frame.content {
            Content::List(items) => {
                items.push(built.node);
                Ok(())
            }
            Content::Map {
                key: key @ None, ..
            } => {
                let span = built.node.span;
                match built.node.data {
                    Data::Scalar(scalar) => {
                        *key = Some(Key {
                            merge: scalar.plain && scalar.text == "<<",
                            kind: scalar.kind,
                            text: scalar.text,
                            span,
                        });
                        Ok(())
                    }
                    _ => Err(self.complex_key(span)),
                }
            }
            Content::Map { key, .. } => {
                let key = key.take();
                if let Some(key) = key {
                    self.entry(key, built.node);
                }
                Ok(())
            }
        }
    }

    /// Adds a key with its value to the innermost map.
    fn entry(&mut self, key: Key, value: Node) {
        let Some(Frame {
            content:
                Content::Map {
                    entries,
                    seen,
                    merges,
                    ..
                },
            ..
        }) = self.stack.last_mut()
        else {
            return;
        };
        let mut finding: Option<(Diagnostic, String)> = None;
        let first = seen.get(entries, &key.text);
        if let Some(first) = first {
            let duplicate = Diagnostic::new(
                &codes::DUPLICATE_KEY,
                place(self.file, key.span),
                format!(
                    "the key `{}` is written twice in the same mapping",
                    key.text
                ),
            )
            .related(place(self.file, first), "first written here");
            finding = Some((duplicate, key.text));
        } else if key.merge {
            seen.merge = Some(key.span);
            match value.data {
                Data::Map(_) => merges.push(value),
                Data::List(items) if items.iter().all(|item| matches!(item.data, Data::Map(_))) => {
                    merges.extend(items);
                }
                _ => {
                    let bad = Diagnostic::new(
                        &codes::BAD_MERGE,
                        place(self.file, value.span),
                        "a merge key `<<` takes a mapping or a list of mappings",
                    )
                    .help("name an anchor of a mapping: `<<: *defaults`");
                    finding = Some((bad, key.text));
                }
            }
        } else {
            if key.kind != Kind::String {
                let bad = key_not_string(self.file, &key, &value, entries.last());
                finding = Some((bad, key.text.clone()));
            }
            seen.push(
                entries,
                Entry {
                    key: key.text,
                    key_span: key.span,
                    value,
                },
            );
        }
        if let Some((mut finding, key)) = finding {
            finding.place.path = self.path(Some(&key));
            self.findings.push(finding);
        }
    }

    fn alias(&mut self, anchor: usize, at: EventSpan) -> Result<(), Fatal> {
        let span = self.span(at);
        let part_of_itself = "this alias is part of what it repeats";
        let Some((weight, height)) = self.anchors.get(&anchor).map(|b| (b.weight, b.height)) else {
            return Err(self.fatal(&codes::BAD_ALIAS, span, part_of_itself));
        };
        if self.stack.len() + height > MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        // Counted before it is copied: that is what bounds an alias bomb.
        self.count(weight, span)?;
        let Some(mut built) = self.anchors.get(&anchor).cloned() else {
            return Err(self.fatal(&codes::BAD_ALIAS, span, part_of_itself));
        };
        // A scalar is at fault where it is used; the parts of a collection where they are written.
        if matches!(built.node.data, Data::Scalar(_)) {
            built.node.span = span;
        }
        self.place(built)
    }

    fn count(&mut self, weight: usize, span: Span) -> Result<(), Fatal> {
        self.nodes += weight;
        if self.nodes > MAX_NODES {
            return Err(self.fatal(
                &codes::TOO_MANY_VALUES,
                span,
                format!(
                    "the file holds more than {MAX_NODES} values once its aliases are expanded"
                ),
            ));
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: String,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Scalar {
        let Some(tag) = tag else {
            return Scalar::new(text, style);
        };
        let plain = super::scalar::resolve(&text);
        let kind = match tag.suffix.as_str() {
            "str" => Some(Kind::String),
            "int" if plain == Kind::Int => Some(Kind::Int),
            "float" if matches!(plain, Kind::Int | Kind::Float) => Some(plain),
            "bool" if plain == Kind::Bool => Some(Kind::Bool),
            "null" if plain == Kind::Null => Some(Kind::Null),
            _ => None,
        }
        .filter(|_| tag.is_yaml_core_schema());
        if kind.is_none() {
            self.bad_tag(tag, span);
        }
        Scalar {
            text,
            kind: kind.unwrap_or(Kind::String),
            plain: false,
        }
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, expected: &str, span: Span) {
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == expected)
        {
            self.bad_tag(tag, span);
        }
    }

    /// The path of what is being read, or of a key of the innermost mapping.
    fn path(&self, key: Option<&str>) -> String {
        let mut path = String::new();
        for frame in &self.stack {
            match &frame.content {
                Content::List(items) => path.push_str(&format!("[{}]", items.len())),
                Content::Map { key: Some(key), .. } => super::push_key(&mut path, &key.text),
                Content::Map { key: None, .. } => {}
            }
        }
        if let Some(key) = key {
            super::push_key(&mut path, key);
        }
        path
    }

    fn no_collection_as_key(&self, span: Span) -> Result<(), Fatal> {
        match self.stack.last() {
            Some(Frame {
                content: Content::Map { key: None, .. },
                ..
            }) => Err(self.complex_key(span)),
            _ => Ok(()),
        }
    }

    fn line(&self, line: u32) -> &'a str {
        self.lines
            .get_or_init(|| self.text.lines().collect())
            .get((line as usize).saturating_sub(1))
            .copied()
            .unwrap_or_default()
    }

    /// An event's span, cut at the end of its first line.
    fn span(&self, at: EventSpan) -> Span {
        let line = u32::try_from(at.start.line()).unwrap_or(u32::MAX).max(1);
        let column = u32::try_from(at.start.col())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        let length = if same_line(at.start, at.end) {
            at.end.col().saturating_sub(at.start.col())
        } else {
            self.line(line)
                .trim_end()
                .chars()
                .count()
                .saturating_sub(at.start.col())
        };
        Span {
            line,
            column,
            length: u32::try_from(length).unwrap_or(u32::MAX).max(1),
        }
    }
}

impl Span {
    const FILE: Self = Self {
        line: 0,
        column: 0,
        length: 0,
    };
    const START: Self = Self {
        line: 1,
        column: 1,
        length: 1,
    };
}

fn same_line(start: Marker, end: Marker) -> bool {
    start.line() == end.line()
}

fn place(file: &Utf8Path, span: Span) -> Place {
    Place {
        origin: Origin {
            file: file.to_owned(),
            line: span.line,
            column: span.column,
        },
        length: span.length,
        path: String::new(),
    }
}

/// The keys that a mapping has so far. Those of a small one are looked through, which is faster than hashing them.
#[derive(Default)]
struct Seen {
    /// Key → its position among the entries; of a mapping with more than [`SMALL`] of them.
    index: HashMap<String, usize>,
    /// Where `<<` is written, which is no entry.
    merge: Option<Span>,
}

/// Up to this many entries are looked through one by one.
const SMALL: usize = 16;

impl Seen {
    /// Where a key was first written.
    fn get(&self, entries: &[Entry], key: &str) -> Option<Span> {
        let entry = if self.index.is_empty() {
            entries.iter().find(|entry| entry.key == key)
        } else {
            self.index.get(key).and_then(|at| entries.get(*at))
        };
        entry
            .map(|entry| entry.key_span)
            .or(self.merge.filter(|_| key == "<<"))
    }

    /// Adds an entry whose key is new.
    fn push(&mut self, entries: &mut Vec<Entry>, entry: Entry) {
        if entries.len() >= SMALL {
            if self.index.is_empty() {
                let keys = entries.iter().map(|entry| entry.key.clone());
                self.index.extend(keys.zip(0..));
            }
            self.index.insert(entry.key.clone(), entries.len());
        }
        entries.push(entry);
    }
}

/// Own keys win over merged ones, earlier sources over later ones.
fn merge(mut entries: Vec<Entry>, mut seen: Seen, merges: Vec<Node>) -> Vec<Entry> {
    for source in merges {
        let Data::Map(merged) = source.data else {
            continue;
        };
        for entry in merged.into_entries() {
            if seen.get(&entries, &entry.key).is_none() {
                seen.push(&mut entries, entry);
            }
        }
    }
    entries
}
