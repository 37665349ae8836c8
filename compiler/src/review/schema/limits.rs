//! Types, listed values, bounds, patterns: keywords that stand for themselves.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::place::Place;
use super::{Comparison, Grade, Pair};

pub(super) const KEYWORDS: &[&str] = &[
    "type",
    "nullable",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
];

const TYPES: [&str; 6] = ["null", "boolean", "object", "array", "string", "number"];

/// Counts that have to be at least so much, and those that may be at most so much, in words.
const COUNTS: [(&str, bool, &str); 6] = [
    ("minLength", true, "characters"),
    ("maxLength", false, "characters"),
    ("minItems", true, "items"),
    ("maxItems", false, "items"),
    ("minProperties", true, "members"),
    ("maxProperties", false, "members"),
];

impl<'a> Comparison<'a> {
    pub(super) fn types(&mut self, place: &Place, pair: Pair<'a>) {
        let at = place.keyword("type");
        let (old, new) = pair.both("type");
        // Where values are listed, their types say nothing more.
        let listed = pair.new.contains_key("enum") || pair.new.contains_key("const");
        match (types(pair.old), types(pair.new)) {
            (Some(before), Some(now)) => {
                let more = now.iter().filter(|kind| !covered(&before, kind));
                let more: Vec<&str> = more.copied().collect();
                let less = before.iter().any(|kind| !covered(&now, kind));
                if !more.is_empty() {
                    let says = format!("{} may be {} now", place.value(), either(&more));
                    self.add(&at, Grade::Widening, says, old, new);
                } else if less {
                    let now: Vec<&str> = now.iter().copied().collect();
                    let says = format!("{} may only be {} now", place.value(), either(&now));
                    self.add(&at, Grade::Narrowing, says, old, new);
                }
            }
            (Some(before), None) => {
                let only_these = listed
                    && values(pair.new).is_some_and(|values| {
                        values.iter().all(|value| covered(&before, kind_of(value)))
                    });
                if only_these {
                    let says = format!("the type of {} follows from its values", place.value());
                    self.add(&at, Grade::Neutral, says, old, new);
                } else {
                    let says = format!("{} may be of any type now", place.value());
                    self.add(&at, Grade::Widening, says, old, new);
                }
            }
            (None, Some(now)) => {
                let now: Vec<&str> = now.iter().copied().collect();
                let says = format!("{} may only be {} now", place.value(), either(&now));
                self.add(&at, Grade::Narrowing, says, old, new);
            }
            (None, None) if old != new => {
                self.undecided(place, "type", "this is no type");
            }
            (None, None) => {}
        }
        // OpenAPI's keyword, which validators of JSON Schema ignore and others obey.
        let (old, new) = pair.both("nullable");
        if old != new {
            let at = place.keyword("nullable");
            let (grade, may) = match new {
                Some(Value::Bool(true)) => (Grade::Widening, "may"),
                _ => (Grade::Narrowing, "may not"),
            };
            let says = format!(
                "{} {may} be null, for those who heed `nullable`",
                place.value()
            );
            self.add(&at, grade, says, old, new);
        }
    }

    pub(super) fn values(&mut self, place: &Place, pair: Pair<'a>) {
        let keyword = |map: &Map<String, Value>| {
            if map.contains_key("const") {
                "const"
            } else {
                "enum"
            }
        };
        let (in_old, in_new) = (keyword(pair.old), keyword(pair.new));
        let (old, new) = (pair.old.get(in_old), pair.new.get(in_new));
        match (values(pair.old), values(pair.new)) {
            (Some(before), Some(now)) => {
                let at = place.keyword(in_new);
                let more: Vec<&Value> = now.iter().filter(|value| !has(&before, value)).collect();
                if !more.is_empty() {
                    let says = format!("{} may be {} now", place.value(), listed(&more));
                    self.add(&at, Grade::Widening, says, old, new);
                } else if before.iter().any(|value| !has(&now, value)) {
                    let says = format!("{} has fewer possible values", place.value());
                    self.add(&at, Grade::Narrowing, says, old, new);
                }
            }
            (Some(before), None) => {
                let says = format!(
                    "{} may be something else than {} now",
                    place.value(),
                    listed(&before.iter().collect::<Vec<_>>())
                );
                self.add(&place.keyword(in_old), Grade::Widening, says, old, None);
            }
            (None, Some(now)) => {
                let says = format!(
                    "{} may only be {} now",
                    place.value(),
                    listed(&now.iter().collect::<Vec<_>>())
                );
                self.add(&place.keyword(in_new), Grade::Narrowing, says, None, new);
            }
            (None, None) => {
                for keyword in ["enum", "const"] {
                    let (old, new) = pair.both(keyword);
                    if old != new {
                        self.undecided(place, keyword, "this is no list of values");
                    }
                }
            }
        }
    }

    pub(super) fn limits(&mut self, place: &Place, pair: Pair<'a>) {
        self.range(place, pair, &Side::LOWER);
        self.range(place, pair, &Side::UPPER);
        for (keyword, at_least, unit) in COUNTS {
            self.count(place, pair, keyword, at_least, unit);
        }
        let (old, new) = pair.both("multipleOf");
        self.stricter(place, "multipleOf", old, new, |old, new| {
            divides(old.as_i64()?, new.as_i64()?).then_some(())
        });
        for keyword in ["pattern", "format"] {
            let (old, new) = pair.both(keyword);
            self.stricter(place, keyword, old, new, |_, _| None);
        }
    }

    /// A keyword that only the same or a stricter value implies.
    fn stricter(
        &mut self,
        place: &Place,
        keyword: &str,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
        implies: impl Fn(&Value, &Value) -> Option<()>,
    ) {
        let at = place.keyword(keyword);
        match (old, new) {
            (None, None) => {}
            (Some(old), Some(new)) if old == new => {}
            (None, Some(_)) => {
                let says = format!("{} must match its `{keyword}` now", place.value());
                self.add(&at, Grade::Narrowing, says, old, new);
            }
            (Some(_), None) => {
                let says = format!("{} need not match its `{keyword}` any more", place.value());
                self.add(&at, Grade::Widening, says, old, new);
            }
            (Some(before), Some(now)) => {
                if implies(before, now).is_some() {
                    let says = format!("the `{keyword}` of {} is stricter", place.value());
                    self.add(&at, Grade::Narrowing, says, old, new);
                } else {
                    let why = format!("`{keyword}` is another one");
                    self.undecided(place, keyword, &why);
                }
            }
        }
    }

    fn count(&mut self, place: &Place, pair: Pair<'a>, keyword: &str, at_least: bool, unit: &str) {
        let (old, new) = pair.both(keyword);
        if old == new {
            return;
        }
        let at = place.keyword(keyword);
        let number = |value: Option<&Value>| match value {
            None => Some(if at_least { 0.0 } else { f64::INFINITY }),
            Some(value) => value.as_f64().filter(|number| number.abs() < EXACT),
        };
        let (Some(before), Some(now)) = (number(old), number(new)) else {
            self.undecided(place, keyword, "the numbers can't be compared");
            return;
        };
        let how = if at_least { "at least" } else { "at most" };
        let (grade, says) = match (before.partial_cmp(&now), at_least) {
            (Some(Ordering::Equal), _) => (
                Grade::Neutral,
                format!("`{keyword}` of {} is written differently", place.value()),
            ),
            (Some(Ordering::Less), true) | (Some(Ordering::Greater), false) => (
                Grade::Narrowing,
                format!("{} must have {how} {now} {unit} now", place.value()),
            ),
            _ => {
                let says = if new.is_none() || at_least && now == 0.0 {
                    format!("{} may have any number of {unit} now", place.value())
                } else {
                    format!(
                        "{} must have {how} {now} {unit} now, not {before}",
                        place.value()
                    )
                };
                (Grade::Widening, says)
            }
        };
        self.add(&at, grade, says, old, new);
    }

    fn range(&mut self, place: &Place, pair: Pair<'a>, side: &Side) {
        let changed = [side.inclusive, side.exclusive].map(|keyword| {
            let (old, new) = pair.both(keyword);
            old != new
        });
        let keyword = match changed {
            [false, false] => return,
            [false, true] => side.exclusive,
            _ => side.inclusive,
        };
        let (Some(before), Some(now)) = (side.of(pair.old), side.of(pair.new)) else {
            self.undecided(place, keyword, "the numbers can't be compared");
            return;
        };
        let (old, new) = pair.both(keyword);
        let (grade, says) = match side.compare(&before, &now) {
            Some(Ordering::Equal) => (
                Grade::Neutral,
                format!(
                    "the {} bound of {} is written differently",
                    side.name,
                    place.value()
                ),
            ),
            Some(Ordering::Less) => (
                Grade::Narrowing,
                format!("the {} bound of {} is stricter", side.name, place.value()),
            ),
            Some(Ordering::Greater) => (
                Grade::Widening,
                match now {
                    None => format!("{} has no {} bound any more", place.value(), side.name),
                    Some(_) => format!("the {} bound of {} is looser", side.name, place.value()),
                },
            ),
            None => {
                self.undecided(place, keyword, "the numbers can't be compared");
                return;
            }
        };
        self.add(&place.keyword(keyword), grade, says, old, new);
    }
}

/// Whole numbers below are exact in a float.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Lower or upper bounds.
struct Side {
    inclusive: &'static str,
    exclusive: &'static str,
    name: &'static str,
    /// How a stricter bound compares to a looser one.
    stricter: Ordering,
}

/// A bound: where, and whether that itself is out.
type Bound = Option<(Number, bool)>;

impl Side {
    const LOWER: Self = Self {
        inclusive: "minimum",
        exclusive: "exclusiveMinimum",
        name: "lower",
        stricter: Ordering::Greater,
    };
    const UPPER: Self = Self {
        inclusive: "maximum",
        exclusive: "exclusiveMaximum",
        name: "upper",
        stricter: Ordering::Less,
    };

    /// The stricter one of the two keywords; draft-04 says `exclusive…: true` beside the other one. `None` where that is
    /// not to be told.
    fn of(&self, map: &Map<String, Value>) -> Option<Bound> {
        let inclusive = match map.get(self.inclusive) {
            None => None,
            Some(Value::Number(number)) => Some(number.clone()),
            Some(_) => return None,
        };
        match (inclusive, map.get(self.exclusive)) {
            (inclusive, None | Some(Value::Bool(false))) => {
                Some(inclusive.map(|number| (number, false)))
            }
            (inclusive, Some(Value::Bool(true))) => Some(inclusive.map(|number| (number, true))),
            (None, Some(Value::Number(exclusive))) => Some(Some((exclusive.clone(), true))),
            (Some(inclusive), Some(Value::Number(exclusive))) => {
                let exclusive = (exclusive.clone(), true);
                let inclusive = (inclusive, false);
                let order = self.compare(&Some(inclusive.clone()), &Some(exclusive.clone()))?;
                // `Less` says that the second one is stricter.
                Some(Some(if order == Ordering::Less {
                    exclusive
                } else {
                    inclusive
                }))
            }
            (_, Some(_)) => None,
        }
    }

    /// `Less`: the new one is stricter. `Greater`: it is looser.
    fn compare(&self, old: &Bound, new: &Bound) -> Option<Ordering> {
        match (old, new) {
            (None, None) => Some(Ordering::Equal),
            (None, Some(_)) => Some(Ordering::Less),
            (Some(_), None) => Some(Ordering::Greater),
            (Some((old, old_out)), Some((new, new_out))) => {
                let order = compared(new, old)?;
                Some(if order == Ordering::Equal {
                    // Out is stricter than in.
                    old_out.cmp(new_out)
                } else if order == self.stricter {
                    Ordering::Less
                } else {
                    Ordering::Greater
                })
            }
        }
    }
}

/// Two numbers, exactly; `None` where floats might round.
fn compared(a: &Number, b: &Number) -> Option<Ordering> {
    let whole = |number: &Number| {
        let signed = number.as_i64().map(i128::from);
        signed.or_else(|| number.as_u64().map(i128::from))
    };
    if let (Some(a), Some(b)) = (whole(a), whole(b)) {
        return Some(a.cmp(&b));
    }
    let exact = |number: &Number| {
        let float = number.as_f64()?;
        (whole(number).is_none() || float.abs() < EXACT).then_some(float)
    };
    exact(a)?.partial_cmp(&exact(b)?)
}

fn divides(divisor: i64, number: i64) -> bool {
    divisor > 0 && number % divisor == 0
}

/// The types that are allowed; `None` where nothing is said, or nothing that can be read.
fn types(map: &Map<String, Value>) -> Option<BTreeSet<&str>> {
    match map.get("type")? {
        Value::String(one) => Some(BTreeSet::from([known_type(one)?])),
        Value::Array(many) => many.iter().map(|one| known_type(one.as_str()?)).collect(),
        _ => None,
    }
}

fn known_type(name: &str) -> Option<&str> {
    (name == "integer" || TYPES.contains(&name)).then_some(name)
}

/// Whether a type is among these; an integer is a number.
fn covered(types: &BTreeSet<&str>, kind: &str) -> bool {
    types.contains(kind) || kind == "integer" && types.contains("number")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The values that `const` and `enum` leave; `None` where they leave all, or can't be read.
fn values(map: &Map<String, Value>) -> Option<Vec<Value>> {
    let listed = match map.get("enum") {
        None => None,
        Some(Value::Array(values)) => Some(values.clone()),
        Some(_) => return None,
    };
    match (map.get("const"), listed) {
        (None, listed) => listed,
        (Some(one), None) => Some(vec![one.clone()]),
        (Some(one), Some(listed)) => Some(
            listed
                .into_iter()
                .filter(|value| equal(value, one))
                .collect(),
        ),
    }
}

fn has(values: &[Value], value: &Value) -> bool {
    values.iter().any(|other| equal(other, value))
}

/// Equal as JSON Schema sees it: 1 and 1.0 are one number.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compared(a, b) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

fn either(names: &[&str]) -> String {
    match names {
        [] => "of no type".to_owned(),
        [one] => format!("of type {one}"),
        [rest @ .., last] => format!("of type {} or {last}", rest.join(", ")),
    }
}

/// The first few values.
fn listed(values: &[&Value]) -> String {
    const FEW: usize = 4;
    let shown: Vec<String> = values
        .iter()
        .take(FEW)
        .map(|value| format!("`{}`", crate::diag::shown(&value.to_string())))
        .collect();
    match values.len() {
        0 => "nothing".to_owned(),
        many if many > FEW => format!("{} or one of {} more", shown.join(", "), many - FEW),
        _ => shown.join(" or "),
    }
}
