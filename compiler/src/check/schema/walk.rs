//! Every subschema with its place, and what references lead to.

use std::collections::{BTreeMap, HashMap, HashSet};

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::keyword::{self, Holds};
use super::{draft, options, pointer};
use crate::diag::codes::tools as codes;
use crate::diag::{Problem, shown};

/// Keywords whose value is a reference.
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// A subschema that is an object.
pub(super) struct Location<'a> {
    /// From the root.
    pub(super) pointer: String,
    /// The subschema.
    pub(super) value: &'a Value,
    /// The same, as an object.
    pub(super) map: &'a Map<String, Value>,
    /// The location around it that applies to the same value, such as the owner of an `allOf`.
    pub(super) same_value: Option<usize>,
    /// The resource that it belongs to: the root, or the nearest subschema with an `$id`.
    resource: &'a Value,
}

/// A reference from one subschema to another.
struct Reference<'a> {
    pointer: String,
    target: &'a Value,
}

/// All of a schema.
pub(super) struct Walk<'a> {
    /// The draft that it is read in.
    pub(super) draft: Draft,
    /// Every reachable subschema that is an object, the root first.
    pub(super) locations: Vec<Location<'a>>,
    /// Places that must hold a schema and hold something else.
    pub(super) not_schemas: BTreeMap<String, &'a Value>,
    /// Places that only a reference leads to, below unknown keywords: the metaschema does not see them.
    pub(super) hidden: Vec<usize>,
    /// Whether any reference does not resolve.
    index: HashMap<*const Value, usize>,
    references: HashMap<*const Value, Vec<Reference<'a>>>,
    problems: Vec<Problem>,
}

/// A subschema that is still to be visited.
struct Pending<'a> {
    pointer: String,
    value: &'a Value,
    resource: &'a Value,
    same_value: Option<usize>,
    hidden: bool,
}

impl<'a> Walk<'a> {
    /// Visits every subschema.
    pub(super) fn over(root: &'a Value, draft: Draft) -> Self {
        let mut walk = Self {
            draft,
            locations: Vec::new(),
            not_schemas: BTreeMap::new(),
            hidden: Vec::new(),
            index: HashMap::new(),
            references: HashMap::new(),
            problems: Vec::new(),
        };
        walk.visit(Pending {
            pointer: String::new(),
            value: root,
            resource: root,
            same_value: None,
            hidden: false,
        });
        // References may lead to places that the walk from the root does not reach; those have references in turn.
        let mut resolved = 0;
        while resolved < walk.locations.len() {
            for target in walk.resolve(resolved, root) {
                walk.visit(target);
            }
            resolved += 1;
        }
        walk
    }

    /// Visits a subschema and all below it.
    fn visit(&mut self, first: Pending<'a>) {
        let mut open = vec![first];
        while let Some(pending) = open.pop() {
            if self.index.contains_key(&std::ptr::from_ref(pending.value)) {
                continue;
            }
            let map = match pending.value {
                Value::Object(map) => map,
                Value::Bool(_) if self.draft != Draft::Draft4 => continue,
                Value::Bool(_) if pending.pointer.ends_with("/additionalProperties") => continue,
                Value::Bool(_) if pending.pointer.ends_with("/additionalItems") => continue,
                other => {
                    self.not_schemas.insert(pending.pointer, other);
                    continue;
                }
            };
            let resource = if begins_resource(map, self.draft) {
                pending.value
            } else {
                pending.resource
            };
            let at = self.locations.len();
            self.index.insert(std::ptr::from_ref(pending.value), at);
            if pending.hidden {
                self.hidden.push(at);
            }
            let mut below = Vec::new();
            for (key, value) in map {
                let Some((holds, same_value)) = keyword::holds(key) else {
                    continue;
                };
                let place = pointer::push(&pending.pointer, key);
                let mut add = |pointer: String, value: &'a Value| {
                    below.push(Pending {
                        pointer,
                        value,
                        resource,
                        same_value: same_value.then_some(at),
                        hidden: false,
                    });
                };
                match (holds, value) {
                    (Holds::One, _) => add(place, value),
                    (Holds::List | Holds::OneOrList, Value::Array(items)) => {
                        for (index, item) in items.iter().enumerate() {
                            add(format!("{place}/{index}"), item);
                        }
                    }
                    (Holds::OneOrList, _) => add(place, value),
                    (Holds::MapOrNames | Holds::Map, Value::Object(entries)) => {
                        for (name, item) in entries {
                            if holds == Holds::Map || !item.is_array() {
                                add(pointer::push(&place, name), item);
                            }
                        }
                    }
                    // The metaschema's finding.
                    _ => {}
                }
            }
            below.reverse();
            open.extend(below);
            self.locations.push(Location {
                pointer: pending.pointer,
                value: pending.value,
                map,
                same_value: pending.same_value,
                resource,
            });
        }
    }

    /// Resolves the references of a location; gives those targets that were not visited yet.
    fn resolve(&mut self, at: usize, root: &'a Value) -> Vec<Pending<'a>> {
        let Some(location) = self.locations.get(at) else {
            return Vec::new();
        };
        let (value, resource) = (location.value, location.resource);
        let mut problems = Vec::new();
        let mut found = Vec::new();
        if !location.pointer.is_empty()
            && let Some(dialect) = location.map.get("$schema")
        {
            let place = format!("{}/$schema", location.pointer);
            match draft::read(dialect) {
                None => problems.push(draft::unknown(dialect).at(place)),
                Some(other) if other != self.draft => problems.push(
                    Problem::new(
                        &codes::SCHEMA_OTHER_DRAFT,
                        format!(
                            "the schema is read as {} and cannot change to {} inside",
                            draft::name(self.draft),
                            draft::name(other)
                        ),
                    )
                    .at(place),
                ),
                Some(_) => {}
            }
        }
        for key in REFERENCES {
            // Anything but a string is the metaschema's finding.
            let Some(text) = location.map.get(*key).and_then(Value::as_str) else {
                continue;
            };
            let place = format!("{}/{key}", location.pointer);
            let Some(fragment) = text.strip_prefix('#') else {
                problems.push(
                    Problem::new(
                        &codes::SCHEMA_REF_REMOTE,
                        format!(
                            "only local #/… references: `{}` is never fetched",
                            shown(text)
                        ),
                    )
                    .help("copy the definition into `$defs` and refer to `#/$defs/…`")
                    .at(place),
                );
                continue;
            };
            match self.target(resource, fragment) {
                Some(target @ (Value::Object(_) | Value::Bool(_))) => found.push((place, target)),
                Some(other) => problems.push(
                    Problem::new(
                        &codes::SCHEMA_REF_DANGLING,
                        format!(
                            "`{}` leads to `{}`, which is not a schema",
                            shown(text),
                            shown(&other.to_string())
                        ),
                    )
                    .at(place),
                ),
                None => problems.push(
                    Problem::new(
                        &codes::SCHEMA_REF_DANGLING,
                        format!("`{}` leads nowhere in this schema", shown(text)),
                    )
                    .at(place),
                ),
            }
        }
        self.problems.extend(problems);
        let mut pending = Vec::new();
        for (place, target) in found {
            if target.is_object() && !self.index.contains_key(&std::ptr::from_ref(target)) {
                pending.push(Pending {
                    pointer: place_of(root, target).unwrap_or_else(|| place.clone()),
                    value: target,
                    resource,
                    same_value: None,
                    hidden: true,
                });
            }
            self.references
                .entry(std::ptr::from_ref(value))
                .or_default()
                .push(Reference {
                    pointer: place,
                    target,
                });
        }
        pending
    }

    /// What a fragment leads to in its resource.
    fn target(&self, resource: &'a Value, fragment: &str) -> Option<&'a Value> {
        let fragment = pointer::decode(fragment)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return pointer::resolve(resource, &fragment);
        }
        self.locations
            .iter()
            .filter(|location| std::ptr::eq(location.resource, resource))
            .find(|location| anchors(location.map).any(|anchor| anchor == fragment))
            .map(|location| location.value)
    }

    /// What the references of a subschema lead to.
    pub(super) fn targets_of(&self, schema: &Value) -> Vec<&'a Value> {
        self.references
            .get(&std::ptr::from_ref(schema))
            .into_iter()
            .flatten()
            .map(|reference| reference.target)
            .collect()
    }

    /// The number of a location.
    pub(super) fn position(&self, schema: &Value) -> Option<usize> {
        self.index.get(&std::ptr::from_ref(schema)).copied()
    }

    /// References that lead out, nowhere, or back to where they began without going into the value.
    pub(super) fn references(&self) -> Vec<Problem> {
        let mut problems = self.problems.clone();
        problems.extend(self.loops());
        problems
    }

    /// Steps from a location that stay at the same value: to parts, and along references.
    fn steps(&self) -> Vec<Vec<(usize, Option<&str>)>> {
        let mut steps: Vec<Vec<(usize, Option<&str>)>> = vec![Vec::new(); self.locations.len()];
        for (at, location) in self.locations.iter().enumerate() {
            if let Some(owner) = location.same_value.and_then(|owner| steps.get_mut(owner)) {
                owner.push((at, None));
            }
            let references = self.references.get(&std::ptr::from_ref(location.value));
            for reference in references.into_iter().flatten() {
                if let Some(target) = self.position(reference.target)
                    && let Some(own) = steps.get_mut(at)
                {
                    own.push((target, Some(reference.pointer.as_str())));
                }
            }
        }
        steps
    }

    /// Depth-first search with an explicit stack: chains of references may be long.
    fn loops(&self) -> Vec<Problem> {
        let steps = self.steps();
        let mut done = vec![false; steps.len()];
        let mut reported = HashSet::new();
        let mut problems = Vec::new();
        for start in 0..steps.len() {
            // The path: location, the reference that led to it, and how many of its steps were taken.
            let mut path: Vec<(usize, Option<&str>, usize)> = vec![(start, None, 0)];
            let mut on_path = HashMap::from([(start, 0_usize)]);
            while let Some((at, _, taken)) = path.last_mut() {
                let at = *at;
                let step = match (done.get(at), steps.get(at).and_then(|s| s.get(*taken))) {
                    (Some(false), Some(step)) => *step,
                    _ => {
                        if let Some(done) = done.get_mut(at) {
                            *done = true;
                        }
                        on_path.remove(&at);
                        path.pop();
                        continue;
                    }
                };
                *taken += 1;
                let (next, by) = step;
                match on_path.get(&next) {
                    None => {
                        on_path.insert(next, path.len());
                        path.push((next, by, 0));
                    }
                    Some(first) => {
                        let inside = path.iter().skip(first + 1).map(|(_, by, _)| *by);
                        let place = inside.chain([by]).flatten().next();
                        if let Some(place) = place
                            && reported.insert(place)
                        {
                            problems.push(
                                Problem::new(
                                    &codes::SCHEMA_LOOP,
                                    "the reference leads back to itself without going into the value",
                                )
                                .at(place),
                            );
                        }
                    }
                }
            }
        }
        problems
    }

    /// Regular expressions that do not compile, with the engine that checks calls.
    pub(super) fn regexes(&self) -> Vec<Problem> {
        let mut known: HashMap<&str, Option<String>> = HashMap::new();
        let mut problems = Vec::new();
        for location in &self.locations {
            let pattern = location.map.get("pattern").and_then(Value::as_str);
            let keys = location
                .map
                .get("patternProperties")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::keys);
            let all = pattern
                .map(|text| (text, format!("{}/pattern", location.pointer), false))
                .into_iter()
                .chain(keys.map(|key| {
                    let place = format!("{}/patternProperties", location.pointer);
                    (key.as_str(), pointer::push(&place, key), true)
                }));
            for (text, place, at_key) in all {
                let error = known
                    .entry(text)
                    .or_insert_with(|| compile(text, self.draft));
                if let Some(error) = error {
                    let problem = Problem::new(
                        &codes::SCHEMA_REGEX,
                        format!("`{}` is not a regular expression: {error}", shown(text)),
                    );
                    problems.push(if at_key {
                        problem.at_key(place)
                    } else {
                        problem.at(place)
                    });
                }
            }
        }
        problems
    }
}

/// Why an expression does not compile.
fn compile(text: &str, draft: Draft) -> Option<String> {
    let probe = serde_json::json!({ "pattern": text });
    options(draft).build(&probe).err().map(|error| {
        let message = error.to_string();
        shown(message.lines().last().unwrap_or_default().trim())
    })
}

/// Whether references below it count from here.
fn begins_resource(map: &Map<String, Value>, draft: Draft) -> bool {
    // Up to draft-07, a reference hides everything beside it.
    let hidden = draft < Draft::Draft201909 && map.contains_key("$ref");
    !hidden
        && map
            .get(draft.id_keyword())
            .and_then(Value::as_str)
            .is_some_and(|id| !id.starts_with('#'))
}

/// The plain names that a fragment may have for a subschema, in any draft.
fn anchors(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let named = ["$anchor", "$dynamicAnchor"]
        .into_iter()
        .filter_map(|key| map.get(key).and_then(Value::as_str));
    let by_id = ["$id", "id"]
        .into_iter()
        .filter_map(|key| map.get(key)?.as_str()?.strip_prefix('#'));
    named.chain(by_id)
}

/// The pointer of a value inside another, found by identity.
fn place_of(root: &Value, wanted: &Value) -> Option<String> {
    let mut open = vec![(String::new(), root)];
    while let Some((place, value)) = open.pop() {
        if std::ptr::eq(value, wanted) {
            return Some(place);
        }
        match value {
            Value::Object(map) => open.extend(
                map.iter()
                    .map(|(key, value)| (pointer::push(&place, key), value)),
            ),
            Value::Array(items) => open.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, value)| (format!("{place}/{index}"), value)),
            ),
            _ => {}
        }
    }
    None
}
