//! Two schemas of arguments, compared by what they accept (product.md 28).
//!
//! Every keyword of the old schema must be implied by the new one, keyword by keyword and place by place. What can't be
//! proven to be implied counts as widening, and says so. So a comparison without a widening means: whatever the new
//! schema accepts, the old one accepted. That is the property that the tests hold against generated schemas.

mod arrays;
mod combined;
mod document;
mod limits;
mod objects;
mod place;

use std::collections::HashSet;

use serde_json::{Map, Value};

use self::document::Document;
use self::place::Place;
use super::Grade;
use crate::check::schema::draft;

/// What a part of a schema means for what is accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaChange {
    /// JSON pointer to the keyword or subschema, in the schema that has it.
    pub pointer: String,
    /// Whether more is accepted, less, or the same.
    pub grade: Grade,
    /// A sentence for a reviewer.
    pub says: String,
    /// The keyword's value before.
    pub old: Option<Value>,
    /// The keyword's value now.
    pub new: Option<Value>,
}

/// Everything that differs, in the order of the places.
pub fn compare(old: &Value, new: &Value) -> Vec<SchemaChange> {
    if old == new {
        return Vec::new();
    }
    let mut comparison = Comparison {
        old: Document::new(old),
        new: Document::new(new),
        seen: HashSet::new(),
        changes: Vec::new(),
    };
    comparison.whole();
    let mut changes = comparison.changes;
    if changes.is_empty() {
        changes.push(SchemaChange {
            pointer: String::new(),
            grade: Grade::Neutral,
            says: "the schema is written differently and accepts the same".to_owned(),
            old: None,
            new: None,
        });
    }
    changes
}

/// Keywords that say nothing about what is accepted.
const ANNOTATIONS: &[&str] = &[
    "$comment",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "deprecated",
    "description",
    "example",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// Keywords that hold what references lead to.
const DEFINITIONS: &[&str] = &["$defs", "definitions", "$schema"];

/// A comparison under way.
struct Comparison<'a> {
    old: Document<'a>,
    new: Document<'a>,
    /// Pairs that are compared, or being compared: a reference leads back to them.
    seen: HashSet<(*const Value, *const Value)>,
    changes: Vec<SchemaChange>,
}

/// The same place in both.
#[derive(Clone, Copy)]
struct Pair<'a> {
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    /// The same two, as they are pointed to.
    values: (&'a Value, &'a Value),
}

impl<'a> Pair<'a> {
    /// A keyword on both sides.
    fn both(&self, keyword: &str) -> (Option<&'a Value>, Option<&'a Value>) {
        (self.old.get(keyword), self.new.get(keyword))
    }
}

impl<'a> Comparison<'a> {
    fn whole(&mut self) {
        let place = Place::root();
        let (old, new) = (self.old.root, self.new.root);
        let drafts = (draft::of(old).ok(), draft::of(new).ok());
        if drafts.0 != drafts.1 {
            self.undecided(&place, "$schema", "the schema is read in another draft");
        }
        if self.old.is_opaque() || self.new.is_opaque() {
            self.undecided(&place, "", "the schema has names of its own for its parts");
            return;
        }
        self.schemas(&place, old, new);
    }

    /// Whatever `new` accepts `old` must accept, or it is said.
    fn schemas(&mut self, place: &Place, old: &'a Value, new: &'a Value) {
        let pair = (std::ptr::from_ref(old), std::ptr::from_ref(new));
        if !self.seen.insert(pair) {
            return;
        }
        match (old, new) {
            (Value::Bool(false), Value::Bool(false)) => {}
            (_, Value::Bool(false)) => {
                let says = format!("{} is not accepted any more", place.value());
                self.add(place, Grade::Narrowing, says, Some(old), Some(new));
            }
            (Value::Bool(false), _) => {
                let says = format!("{} was refused and is accepted now", place.value());
                self.add(place, Grade::Widening, says, Some(old), Some(new));
            }
            (old, new) => {
                let values = (old, new);
                if let (Some(old), Some(new)) = (document::map(old), document::map(new)) {
                    self.maps(place, Pair { old, new, values });
                } else {
                    self.undecided(place, "", "this is no schema");
                }
            }
        }
    }

    fn maps(&mut self, place: &Place, pair: Pair<'a>) {
        self.annotations(place, pair);
        // Which members are left over depends on everything else that stands here.
        let left_over = ["unevaluatedItems", "unevaluatedProperties"];
        if left_over
            .iter()
            .any(|keyword| pair.old.contains_key(*keyword))
        {
            if !self.same(Some(pair.values.0), Some(pair.values.1)) {
                self.undecided(place, "", "what is left over depends on all of it");
            }
            return;
        }
        if !self.references(place, pair) {
            return;
        }
        self.types(place, pair);
        self.values(place, pair);
        self.limits(place, pair);
        self.arrays(place, pair);
        self.objects(place, pair);
        self.combined(place, pair);
        self.unknown(place, pair);
    }

    fn annotations(&mut self, place: &Place, pair: Pair<'a>) {
        for keyword in ANNOTATIONS {
            let (old, new) = pair.both(keyword);
            if old != new {
                let says = format!("`{keyword}` of {} is another one", place.value());
                self.add(&place.keyword(keyword), Grade::Neutral, says, old, new);
            }
        }
    }

    /// References on either side. Whether the keywords beside them are still to be compared.
    fn references(&mut self, place: &Place, pair: Pair<'a>) -> bool {
        let (old, new) = pair.both("$ref");
        if old.is_none() && new.is_none() {
            return true;
        }
        let beside = |map: &Map<String, Value>| {
            map.keys().any(|key| {
                key != "$ref"
                    && !ANNOTATIONS.contains(&key.as_str())
                    && !DEFINITIONS.contains(&key.as_str())
            })
        };
        let crowded = beside(pair.old) && old.is_some() || beside(pair.new) && new.is_some();
        if crowded && (self.old.ignores_siblings() || self.new.ignores_siblings()) {
            self.undecided(place, "$ref", "what stands beside a reference is ignored");
            return false;
        }
        let old_target = old.map(|old| self.old.resolve(old));
        let new_target = new.map(|new| self.new.resolve(new));
        match (old_target, new_target) {
            (Some(Some(old)), Some(Some(new))) => {
                self.schemas(place, old, new);
                true
            }
            // All of the old one stands at its target; the new one is what stands here.
            (Some(Some(target)), None) if !beside(pair.old) => {
                self.schemas(place, target, pair.values.1);
                false
            }
            (None, Some(Some(target))) if !beside(pair.new) => {
                self.schemas(place, pair.values.0, target);
                false
            }
            _ => {
                self.undecided(place, "$ref", "a reference came or went");
                false
            }
        }
    }

    /// Keywords that no rule here knows.
    fn unknown(&mut self, place: &Place, pair: Pair<'a>) {
        let keys: std::collections::BTreeSet<&String> =
            pair.old.keys().chain(pair.new.keys()).collect();
        for key in keys {
            let known = ANNOTATIONS.contains(&key.as_str())
                || DEFINITIONS.contains(&key.as_str())
                || key == "$ref"
                || limits::KEYWORDS.contains(&key.as_str())
                || arrays::KEYWORDS.contains(&key.as_str())
                || objects::KEYWORDS.contains(&key.as_str())
                || combined::KEYWORDS.contains(&key.as_str());
            let (old, new) = pair.both(key);
            if !known && old != new {
                self.undecided(place, key, "nothing is known about this keyword");
            }
        }
    }

    fn add(
        &mut self,
        place: &Place,
        grade: Grade,
        says: String,
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        self.changes.push(SchemaChange {
            pointer: place.pointer().to_owned(),
            grade,
            says,
            old: old.cloned(),
            new: new.cloned(),
        });
    }

    /// What can't be decided counts as widening.
    fn undecided(&mut self, place: &Place, keyword: &str, why: &str) {
        let at = if keyword.is_empty() {
            place.clone()
        } else {
            place.keyword(keyword)
        };
        let says = format!(
            "whether {} accepts more can't be decided: {why}",
            place.value()
        );
        let old = self.old.at(at.pointer()).cloned();
        let new = self.new.at(at.pointer()).cloned();
        self.add(&at, Grade::Widening, says, old.as_ref(), new.as_ref());
    }

    /// Keywords that only make sense together and that nothing finer is known about. Where the old schema has none of
    /// them, whatever the new one says is stricter.
    fn all_or_nothing(
        &mut self,
        place: &Place,
        pair: Pair<'a>,
        keywords: &[&'static str],
        why: &str,
    ) {
        let differs = |keyword: &&&'static str| {
            let (old, new) = pair.both(keyword);
            !self.same(old, new)
        };
        let Some(first) = keywords.iter().find(differs) else {
            return;
        };
        if keywords
            .iter()
            .any(|keyword| pair.old.contains_key(*keyword))
        {
            self.undecided(place, first, why);
        } else {
            let (old, new) = pair.both(first);
            let says = format!("`{first}` is demanded of {} now", place.value());
            self.add(&place.keyword(first), Grade::Narrowing, says, old, new);
        }
    }

    /// Whether two parts are the same, also where their references lead.
    fn same(&self, old: Option<&'a Value>, new: Option<&'a Value>) -> bool {
        match (old, new) {
            (None, None) => true,
            (Some(old), Some(new)) => old == new && self.old.leads_to_the_same(&self.new, old),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
