//! Lists.

use serde_json::Value;

use super::document::ANY;
use super::place::Place;
use super::{Comparison, Grade, Pair};

pub(super) const KEYWORDS: &[&str] = &[
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
];

/// Which schema holds for which item is told by these together.
const POSITIONS: [&str; 3] = ["items", "prefixItems", "additionalItems"];
const CONTAINS: [&str; 3] = ["contains", "minContains", "maxContains"];

impl<'a> Comparison<'a> {
    pub(super) fn arrays(&mut self, place: &Place, pair: Pair<'a>) {
        self.items(place, pair);
        let unique = |value: Option<&Value>| value == Some(&Value::Bool(true));
        let (old, new) = pair.both("uniqueItems");
        let at = place.keyword("uniqueItems");
        match (unique(old), unique(new)) {
            (true, false) => {
                let says = format!("{} may have the same item twice now", place.value());
                self.add(&at, Grade::Widening, says, old, new);
            }
            (false, true) => {
                let says = format!(
                    "{} may not have the same item twice any more",
                    place.value()
                );
                self.add(&at, Grade::Narrowing, says, old, new);
            }
            _ => {}
        }
        self.all_or_nothing(
            place,
            pair,
            &CONTAINS,
            "what a list must contain is another thing",
        );
        self.all_or_nothing(
            place,
            pair,
            &["unevaluatedItems"],
            "items that are left over",
        );
    }

    fn items(&mut self, place: &Place, pair: Pair<'a>) {
        let plain = |map: &serde_json::Map<String, Value>| {
            !map.contains_key("prefixItems")
                && !map.contains_key("additionalItems")
                && !map.get("items").is_some_and(Value::is_array)
        };
        if !plain(pair.old) || !plain(pair.new) {
            self.all_or_nothing(
                place,
                pair,
                &POSITIONS,
                "items are told apart by their position",
            );
            return;
        }
        let (old, new) = pair.both("items");
        if old.is_some() || new.is_some() {
            let at = place.items("items");
            self.schemas(&at, old.unwrap_or(ANY), new.unwrap_or(ANY));
        }
    }
}
