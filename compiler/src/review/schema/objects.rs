//! Members of objects: the arguments themselves.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::document::{self, ANY};
use super::place::Place;
use super::{Comparison, Grade, Pair};

pub(super) const KEYWORDS: &[&str] = &[
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "required",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
];

impl<'a> Comparison<'a> {
    pub(super) fn objects(&mut self, place: &Place, pair: Pair<'a>) {
        self.required(place, pair);
        self.members(place, pair);
        let (old, new) = pair.both("propertyNames");
        if old.is_some() || new.is_some() {
            let at = place.members("propertyNames", None);
            self.schemas(&at, old.unwrap_or(ANY), new.unwrap_or(ANY));
        }
        let dependencies = ["dependentRequired", "dependentSchemas", "dependencies"];
        for keyword in dependencies {
            self.all_or_nothing(
                place,
                pair,
                &[keyword],
                "what follows from an argument is another thing",
            );
        }
        self.all_or_nothing(
            place,
            pair,
            &["unevaluatedProperties"],
            "arguments are left over",
        );
    }

    fn required(&mut self, place: &Place, pair: Pair<'a>) {
        let (old, new) = pair.both("required");
        let at = place.keyword("required");
        let (Some(before), Some(now)) = (names(old), names(new)) else {
            if old != new {
                self.undecided(place, "required", "this is no list of names");
            }
            return;
        };
        for name in before.difference(&now) {
            let says = format!("{} is not required any more", place.property(name).value());
            self.add(&at, Grade::Widening, says, old, new);
        }
        for name in now.difference(&before) {
            let says = format!("{} is required now", place.property(name).value());
            self.add(&at, Grade::Narrowing, says, old, new);
        }
    }

    /// `properties`, `patternProperties` and `additionalProperties` together.
    fn members(&mut self, place: &Place, pair: Pair<'a>) {
        let (Some(old), Some(new)) = (Members::of(pair.old), Members::of(pair.new)) else {
            let members = ["properties", "patternProperties", "additionalProperties"];
            self.all_or_nothing(place, pair, &members, "the members can't be read");
            return;
        };
        let named: BTreeSet<&String> = old.named.keys().chain(new.named.keys()).collect();
        for name in named {
            let at = place.property(name);
            match (old.named.get(name), new.named.get(name)) {
                (Some(before), Some(now)) => self.schemas(&at, before, now),
                (None, Some(now)) => {
                    // Also where anything was accepted before: the tool now takes it for something.
                    let says = format!("there is a new argument {}", at.value());
                    self.add(&at, Grade::Widening, says, None, Some(now));
                }
                (Some(before), None) => self.removed(place, &at, before, &new),
                (None, None) => {}
            }
        }
        for (pattern, before) in old.patterns {
            let at = place.members("patternProperties", Some(pattern));
            match new.patterns.get(pattern) {
                Some(now) => self.schemas(&at, before, now),
                None => {
                    let says = format!("{} need not be what they were", at.value());
                    self.add(&at, Grade::Widening, says, Some(before), None);
                }
            }
        }
        for (pattern, now) in new.patterns {
            if !old.patterns.contains_key(pattern) {
                // Names of this pattern were held to what holds for all others.
                let at = place.members("patternProperties", Some(pattern));
                self.schemas(&at, old.others, now);
            }
        }
        let at = place.members("additionalProperties", None);
        self.schemas(&at, old.others, new.others);
    }

    /// An argument is not named any more: what holds for it now?
    fn removed(&mut self, place: &Place, at: &Place, before: &'a Value, new: &Members<'a>) {
        if *new.others == Value::Bool(false) && new.patterns.is_empty() {
            let says = format!("{} is not an argument any more", at.value());
            self.add(at, Grade::Narrowing, says, Some(before), None);
            return;
        }
        let says = format!(
            "{} is not described any more, and still accepted",
            at.value()
        );
        self.add(at, Grade::Neutral, says, Some(before), None);
        let others = place.members("additionalProperties", None);
        self.schemas(&others, before, new.others);
        for (pattern, now) in new.patterns {
            let at = place.members("patternProperties", Some(pattern));
            self.schemas(&at, before, now);
        }
    }
}

/// What an object's members are held to.
struct Members<'a> {
    named: &'a Map<String, Value>,
    patterns: &'a Map<String, Value>,
    /// Whatever is not named and matches no pattern.
    others: &'a Value,
}

impl<'a> Members<'a> {
    fn of(map: &'a Map<String, Value>) -> Option<Self> {
        let object = |keyword: &str| match map.get(keyword) {
            None => document::map(ANY),
            Some(Value::Object(object)) => Some(object),
            Some(_) => None,
        };
        Some(Self {
            named: object("properties")?,
            patterns: object("patternProperties")?,
            others: map.get("additionalProperties").unwrap_or(ANY),
        })
    }
}

/// Required names. Draft-03's `required: true` is none.
fn names(value: Option<&Value>) -> Option<BTreeSet<&str>> {
    match value {
        None => Some(BTreeSet::new()),
        Some(Value::Array(names)) => names.iter().map(Value::as_str).collect(),
        Some(_) => None,
    }
}
