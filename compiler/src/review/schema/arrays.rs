//! Lists.

use serde_json::Value;

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
        const ANY: &Value = &Value::Bool(true);
        let (old, new) = pair.both("items");
        if old.is_some() || new.is_some() {
            let at = place.items("items");
            self.schemas(&at, old.unwrap_or(ANY), new.unwrap_or(ANY));
        }
    }

    /// Keywords that only make sense together and that nothing finer is known about. Where the old schema has none of
    /// them, whatever the new one says is stricter.
    pub(super) fn all_or_nothing(
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
}
