//! Schemas made of schemas.

use serde_json::Value;

use super::place::Place;
use super::{Comparison, Grade, Pair};

pub(super) const KEYWORDS: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

const CONDITION: [&str; 3] = ["if", "then", "else"];

impl<'a> Comparison<'a> {
    pub(super) fn combined(&mut self, place: &Place, pair: Pair<'a>) {
        self.all_of(place, pair);
        self.any_of(place, pair);
        self.all_or_nothing(
            place,
            pair,
            &["oneOf"],
            "exactly one of several is accepted",
        );
        self.all_or_nothing(place, pair, &["not"], "what is refused is another thing");
        self.all_or_nothing(place, pair, &CONDITION, "the condition is another one");
    }

    /// Each one of the old must be implied by one of the new, at the same position or the very same.
    fn all_of(&mut self, place: &Place, pair: Pair<'a>) {
        let (old, new) = pair.both("allOf");
        if self.same(old, new) {
            return;
        }
        let (Some(before), Some(now)) = (list(old), list(new)) else {
            self.undecided(place, "allOf", "this is no list of schemas");
            return;
        };
        for (index, part) in before.iter().enumerate() {
            let is_there = now.iter().any(|other| self.same(Some(part), Some(other)));
            if is_there {
                continue;
            }
            let at = place.part("allOf", &index.to_string());
            match now.get(index) {
                Some(other) => self.schemas(&at, part, other),
                None => {
                    let says = format!("{} need not match a part of it any more", place.value());
                    self.add(&at, Grade::Widening, says, Some(part), None);
                }
            }
        }
        if now.len() > before.len() {
            let says = format!("{} has to match more at once", place.value());
            self.add(&place.keyword("allOf"), Grade::Narrowing, says, old, new);
        }
    }

    /// Each one of the new must be accepted by one of the old, at the same position or the very same.
    fn any_of(&mut self, place: &Place, pair: Pair<'a>) {
        let (old, new) = pair.both("anyOf");
        if self.same(old, new) {
            return;
        }
        let at = place.keyword("anyOf");
        if old.is_none() {
            let says = format!("{} has to match one of several now", place.value());
            self.add(&at, Grade::Narrowing, says, old, new);
            return;
        }
        let (Some(before), Some(now), true) = (list(old), list(new), new.is_some()) else {
            let says = format!("{} need not match one of several any more", place.value());
            self.add(&at, Grade::Widening, says, old, new);
            return;
        };
        for (index, part) in now.iter().enumerate() {
            let was_there = before
                .iter()
                .any(|other| self.same(Some(other), Some(part)));
            if was_there {
                continue;
            }
            let at = place.part("anyOf", &index.to_string());
            match before.get(index) {
                Some(other) => self.schemas(&at, other, part),
                None => {
                    let says = format!("{} may be one thing more", place.value());
                    self.add(&at, Grade::Widening, says, None, Some(part));
                }
            }
        }
        if now.len() < before.len() {
            let says = format!("{} may be fewer things", place.value());
            self.add(&at, Grade::Narrowing, says, old, new);
        }
    }
}

fn list(value: Option<&Value>) -> Option<&Vec<Value>> {
    static NONE: Vec<Value> = Vec::new();
    match value {
        None => Some(&NONE),
        Some(Value::Array(list)) => Some(list),
        Some(_) => None,
    }
}
