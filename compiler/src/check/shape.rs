//! Document → Raw type: one walk along the JSON Schema that was made from that type, so that files, types and the
//! schemas for editors cannot differ (M6, M7, L5). Every problem is found; what is wrong is left out of the result,
//! which keeps the indices of lists.

mod field;
mod free;
mod number;

pub use field::nearest;

use std::fmt::Write as _;

use serde::de::DeserializeOwned;
use serde_json::Value as Schema;
use serde_yaml::{Mapping, Value};

use crate::diag::codes::{manifest, settings, yaml};
use crate::diag::{Code, Diagnostic, Place};
use crate::model::schemas;
use crate::yaml::node::{Data, Map, Node};
use crate::yaml::scalar::{Kind, Scalar, is_yaml_1_1_bool, shorten};
use crate::yaml::{Document, escape};

/// What an unknown field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// As M6 says: an error where it is close to a known one, else a warning; `x-…` is free.
    Manifest,
    /// An error: selu.toml has no room for others.
    Settings,
}

/// Fills a Raw type and says what kept fields out of it.
pub(crate) fn read<T: DeserializeOwned + Default>(
    document: &Document,
    schema: &Schema,
    unknown: Unknown,
    findings: &mut Vec<Diagnostic>,
) -> T {
    let mut walk = Walk {
        document,
        unknown,
        findings,
        pointer: String::new(),
    };
    let Some(value) = walk.value(&document.root, schema, None) else {
        return T::default();
    };
    match serde_yaml::from_value(value) {
        Ok(raw) => raw,
        Err(error) => {
            // The walk leaves out what does not fit; whatever it missed must not pass in silence.
            findings.push(Diagnostic::new(
                &manifest::WRONG_TYPE,
                document.place(""),
                format!("this does not fit the format: {error}"),
            ));
            T::default()
        }
    }
}

struct Walk<'a> {
    document: &'a Document,
    unknown: Unknown,
    findings: &'a mut Vec<Diagnostic>,
    /// Of the value at hand.
    pointer: String,
}

impl Walk<'_> {
    /// The value as far as it fits; `None` where it does not, which is then a finding.
    fn value(&mut self, node: &Node, schema: &Schema, outer: Option<&Outer<'_>>) -> Option<Value> {
        let kind = schema.get("type").and_then(Schema::as_str);
        if matches!(kind, None | Some("string"))
            && let Some(words) = field::words(schema)
        {
            return self.word(node, &words);
        }
        match kind {
            Some("string") => self.string(node, schema),
            Some("boolean") => self.boolean(node),
            Some("integer") => self.integer(node, schema),
            Some("number") => self.number(node, schema),
            Some("array") => self.list(node, schema, outer),
            Some("object") => match schema.get("additionalProperties") {
                Some(each @ Schema::Object(_)) => self.table(node, each),
                _ => self.object(node, schema, outer),
            },
            _ => self.free(node),
        }
    }

    fn object(&mut self, node: &Node, schema: &Schema, outer: Option<&Outer<'_>>) -> Option<Value> {
        if let Some(only) = only_required(schema)
            && let Data::Scalar(scalar) = &node.data
            && scalar.kind == Kind::String
        {
            let meant = format!("{{{only}: {}}}", scalar.text);
            let finding = self
                .wrong_type_finding(&node.data, "an object")
                .help(format!("write `{meant}`"))
                .suggest(meant);
            self.report(finding);
            return None;
        }
        let map = self.entries(node)?;
        let empty = serde_json::Map::new();
        let properties = schema
            .get("properties")
            .and_then(Schema::as_object)
            .unwrap_or(&empty);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Schema::as_array)
            .map(|names| names.iter().filter_map(Schema::as_str).collect())
            .unwrap_or_default();
        let here = Outer { properties };
        let mut meant = Vec::new();
        let mut filled = Mapping::with_capacity(map.entries().len());
        for entry in map.entries() {
            let length = self.push(&entry.key);
            match properties.get(&entry.key) {
                // An optional list or object with nothing after its colon has its default (L5).
                Some(property)
                    if entry.value.is_null()
                        && !required.contains(&entry.key.as_str())
                        && field::is_collection(property) => {}
                Some(property) => {
                    if let Some(value) = self.value(&entry.value, property, Some(&here)) {
                        filled.insert(Value::String(entry.key.clone()), value);
                    }
                }
                None => meant.extend(self.unknown_field(&entry.key, properties, outer)),
            }
            self.pointer.truncate(length);
        }
        for name in required {
            // What is misspelt is not missing besides.
            if map.get(name).is_none() && !meant.iter().any(|meant| meant == name) {
                let length = self.push(name);
                self.report(Diagnostic::new(
                    &manifest::MISSING_FIELD,
                    self.document.place(&self.pointer),
                    format!("the required field `{name}` is missing"),
                ));
                self.pointer.truncate(length);
            }
        }
        Some(Value::Mapping(filled))
    }

    /// A mapping whose keys are the author's own.
    fn table(&mut self, node: &Node, each: &Schema) -> Option<Value> {
        let mut filled = Mapping::new();
        for entry in self.entries(node)?.entries() {
            let length = self.push(&entry.key);
            let value = self.value(&entry.value, each, None).unwrap_or(Value::Null);
            filled.insert(Value::String(entry.key.clone()), value);
            self.pointer.truncate(length);
        }
        Some(Value::Mapping(filled))
    }

    fn entries<'n>(&mut self, node: &'n Node) -> Option<&'n Map> {
        match &node.data {
            Data::Map(map) => Some(map),
            Data::Scalar(scalar) if scalar.kind == Kind::Null => {
                self.nothing(scalar, "an object");
                None
            }
            other => {
                self.wrong_type(other, "an object, that is lines of `field: value`");
                None
            }
        }
    }

    fn list(&mut self, node: &Node, schema: &Schema, outer: Option<&Outer<'_>>) -> Option<Value> {
        let items = match &node.data {
            Data::Scalar(scalar)
                if scalar.kind != Kind::Null && schema.get(schemas::ONE_OR_MORE).is_some() =>
            {
                std::slice::from_ref(node)
            }
            Data::List(items) => items.as_slice(),
            Data::Scalar(scalar) if scalar.kind == Kind::Null => {
                self.nothing(scalar, "a list");
                return None;
            }
            other => {
                let help = match other {
                    Data::Scalar(scalar) => format!("write a list: [{:?}]", scalar.text),
                    _ => "begin each item with `- `".to_owned(),
                };
                let finding = self.wrong_type_finding(other, "a list").help(help);
                self.report(finding);
                return None;
            }
        };
        let each = schema.get("items").unwrap_or(&Schema::Bool(true));
        let mut filled = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let length = self.push_index(index);
            filled.push(self.value(item, each, outer).unwrap_or(Value::Null));
            self.pointer.truncate(length);
        }
        Some(Value::Sequence(filled))
    }

    fn string(&mut self, node: &Node, schema: &Schema) -> Option<Value> {
        let scalar = self.text(node)?;
        if scalar.text.trim().is_empty() && schema.get("minLength").is_some() {
            self.finding(
                &manifest::OUT_OF_RANGE,
                "this is empty; it needs a text".to_owned(),
            );
            return None;
        }
        Some(Value::String(scalar.text.clone()))
    }

    /// A scalar that is a string beyond doubt.
    fn text<'n>(&mut self, node: &'n Node) -> Option<&'n Scalar> {
        let scalar = match &node.data {
            Data::Scalar(scalar) => scalar,
            other => {
                let mut finding = self.wrong_type_finding(other, "a string");
                if let Data::Map(map) = other
                    && let [entry] = map.entries()
                    && let Some(value) = entry.value.scalar()
                {
                    let joined = format!("{}:{}", entry.key, value.text);
                    finding = finding.help(format!(
                        "a colon and a space make an object; remove the space, `{joined}`, or quote the text"
                    ));
                }
                self.report(finding);
                return None;
            }
        };
        match scalar.kind {
            Kind::String if scalar.plain && is_yaml_1_1_bool(&scalar.text) => {
                let shown = format!(
                    "the plain word `{}`, which some readers take for a boolean",
                    scalar.text
                );
                self.quote_it(&scalar.text, &shown);
                None
            }
            Kind::String => Some(scalar),
            Kind::Null if scalar.text.is_empty() => {
                self.nothing(scalar, "a string");
                None
            }
            _ => {
                self.quote_it(&scalar.text, &scalar.shown());
                None
            }
        }
    }

    fn quote_it(&mut self, text: &str, shown: &str) {
        let finding = Diagnostic::new(
            &yaml::QUOTE_IT,
            self.here(),
            format!("this takes a string, and {shown} is written"),
        )
        .help(format!("quote it: \"{text}\""))
        .suggest(format!("\"{text}\""));
        self.report(finding);
    }

    fn word(&mut self, node: &Node, words: &[&str]) -> Option<Value> {
        if let Data::Scalar(scalar) = &node.data
            && scalar.kind == Kind::String
            && words.contains(&scalar.text.as_str())
        {
            return Some(Value::String(scalar.text.clone()));
        }
        let allowed = field::listed(words);
        let scalar = match &node.data {
            Data::Scalar(scalar) if scalar.kind == Kind::Null && scalar.text.is_empty() => {
                self.nothing(scalar, &allowed);
                return None;
            }
            Data::Scalar(scalar) => scalar,
            other => {
                self.wrong_type(other, &allowed);
                return None;
            }
        };
        let mut finding = Diagnostic::new(
            &manifest::NOT_ONE_OF,
            self.here(),
            format!("{} is not allowed here; it takes {allowed}", scalar.shown()),
        );
        if let Some(near) = field::nearest(&scalar.text, words.iter().copied()) {
            finding = finding
                .help(format!("did you mean `{near}`?"))
                .suggest(near);
        }
        self.report(finding);
        None
    }

    fn boolean(&mut self, node: &Node) -> Option<Value> {
        let Data::Scalar(scalar) = &node.data else {
            self.wrong_type(&node.data, "true or false");
            return None;
        };
        match scalar.kind {
            Kind::Bool => Some(Value::Bool(scalar.text.eq_ignore_ascii_case("true"))),
            Kind::Null if scalar.text.is_empty() => {
                self.nothing(scalar, "true or false");
                None
            }
            _ => {
                let lower = scalar.text.to_ascii_lowercase();
                let meant = match lower.as_str() {
                    "yes" | "on" | "y" | "true" => Some("true"),
                    "no" | "off" | "n" | "false" => Some("false"),
                    _ => None,
                };
                let mut finding = self.wrong_type_finding(&node.data, "true or false");
                if let Some(meant) = meant {
                    finding = finding
                        .help(format!("write {meant}, without quotes"))
                        .suggest(meant);
                }
                self.report(finding);
                None
            }
        }
    }

    /// Says what is wrong with a field that is not known here; gives the one that is probably meant.
    fn unknown_field(
        &mut self,
        name: &str,
        properties: &serde_json::Map<String, Schema>,
        outer: Option<&Outer<'_>>,
    ) -> Option<String> {
        let place = self.document.key_place(&self.pointer);
        if self.unknown == Unknown::Settings {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            let mut finding = Diagnostic::new(
                &settings::UNKNOWN_SETTING,
                place,
                format!(
                    "`{name}` is not a setting here; known are {}",
                    field::listed(&known)
                ),
            );
            if let Some(near) = field::nearest(name, known.iter().copied()) {
                finding = finding
                    .help(format!("did you mean `{near}`?"))
                    .suggest(near);
            }
            self.report(finding);
            return None;
        }
        if name.starts_with("x-") {
            return None;
        }
        let mut meant = None;
        let finding = if name == "<<" {
            Diagnostic::new(
                &yaml::BAD_MERGE,
                place,
                "quotes make `<<` an ordinary key, which merges nothing and is no field here",
            )
            .help("leave the quotes away: <<")
            .suggest("<<")
        } else if let Some(target) =
            field::belongs(name, properties, outer.map(|outer| outer.properties))
        {
            Diagnostic::new(
                &manifest::MISPLACED_FIELD,
                place,
                format!("`{name}` has no effect here; it belongs {target}"),
            )
        } else if let Some(near) = field::nearest(name, properties.keys().map(String::as_str)) {
            meant = Some(near.to_owned());
            Diagnostic::new(
                &manifest::MISSPELT_FIELD,
                place,
                format!("`{name}` is not a field here, but `{near}` is"),
            )
            .help(format!(
                "did you mean `{near}`? A field of your own begins with `x-`"
            ))
            .suggest(near)
        } else {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            Diagnostic::new(
                &manifest::UNKNOWN_FIELD,
                place,
                format!("`{name}` is not a field here and has no effect"),
            )
            .help(format!("known are {}", field::listed(&known)))
        };
        self.report(finding);
        meant
    }

    fn nothing(&mut self, scalar: &Scalar, allowed: &str) {
        let message = if scalar.text.is_empty() {
            format!("nothing is written here; it takes {allowed}")
        } else {
            format!("a null is written here; it takes {allowed}")
        };
        let place = self.document.key_place(&self.pointer);
        self.report(Diagnostic::new(&yaml::NOTHING, place, message));
    }

    fn wrong_type(&mut self, found: &Data, allowed: &str) {
        let finding = self.wrong_type_finding(found, allowed);
        self.report(finding);
    }

    fn wrong_type_finding(&self, found: &Data, allowed: &str) -> Diagnostic {
        let found = match found {
            Data::Scalar(scalar) if scalar.kind == Kind::String => {
                format!("the string {}", shorten(&scalar.text))
            }
            Data::Scalar(scalar) => scalar.shown(),
            Data::List(_) => "a list".to_owned(),
            Data::Map(_) => "an object".to_owned(),
        };
        Diagnostic::new(
            &manifest::WRONG_TYPE,
            self.here(),
            format!("this takes {allowed}, and {found} is written"),
        )
    }

    fn finding(&mut self, code: &'static Code, message: String) {
        let finding = Diagnostic::new(code, self.here(), message);
        self.report(finding);
    }

    fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    fn here(&self) -> Place {
        self.document.place(&self.pointer)
    }

    /// Goes down to a field; gives the length to go back to.
    fn push(&mut self, key: &str) -> usize {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&escape(key));
        length
    }

    /// The same for an item of a list.
    fn push_index(&mut self, index: usize) -> usize {
        let length = self.pointer.len();
        // Writing to a text cannot fail.
        let _ = write!(self.pointer, "/{index}");
        length
    }
}

/// The one field that an object must have, where there is one.
fn only_required(schema: &Schema) -> Option<&str> {
    match schema.get("required")?.as_array()?.as_slice() {
        [only] => only.as_str(),
        _ => None,
    }
}

/// The fields one level up.
struct Outer<'a> {
    properties: &'a serde_json::Map<String, Schema>,
}
