//! Every subschema with its place, and what references lead to.

use std::collections::{BTreeMap, HashMap, HashSet};

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::keyword::{self, Holds};
use super::{draft, pointer};
use crate::diag::codes::tools as codes;
use crate::diag::{Problem, shown};

/// Keywords whose value is a reference.
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Subschemas that one value is checked against, counted each time that a path leads to them: references that fan out
/// over a few levels would make one check take for ever.
const CHECKS_MAX: usize = 100_000;

/// Subschemas in a row that stay at the same value: following them takes stack, at every level of that value.
const CHAIN_MAX: usize = 32;

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
    index: HashMap<*const Value, usize>,
    by_pointer: HashMap<String, usize>,
    /// Resource and plain name → subschema.
    anchors: HashMap<(*const Value, &'a str), &'a Value>,
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
            by_pointer: HashMap::new(),
            anchors: HashMap::new(),
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
            for target in walk.resolve(resolved) {
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
            self.by_pointer.insert(pending.pointer.clone(), at);
            for anchor in anchors(map) {
                self.anchors
                    .entry((std::ptr::from_ref(resource), anchor))
                    .or_insert(pending.value);
            }
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
    fn resolve(&mut self, at: usize) -> Vec<Pending<'a>> {
        let Some(location) = self.locations.get(at) else {
            return Vec::new();
        };
        let (value, resource) = (location.value, location.resource);
        let resource_place = self
            .position(resource)
            .and_then(|at| self.locations.get(at))
            .map_or("", |location| location.pointer.as_str());
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
                Some(target @ (Value::Object(_) | Value::Bool(_))) => {
                    // Only a pointer leads to a place that was not visited.
                    let inside = pointer::decode(fragment).unwrap_or_default();
                    found.push((place, target, format!("{resource_place}{inside}")));
                }
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
        for (place, target, target_place) in found {
            if target.is_object() && !self.index.contains_key(&std::ptr::from_ref(target)) {
                pending.push(Pending {
                    pointer: target_place,
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
        self.anchors
            .get(&(std::ptr::from_ref(resource), fragment.as_str()))
            .copied()
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

    /// The location at a place.
    pub(super) fn at(&self, pointer: &str) -> Option<&Location<'a>> {
        self.locations.get(*self.by_pointer.get(pointer)?)
    }

    /// References that lead out, nowhere, or back to where they began without going into the value.
    pub(super) fn references(&self) -> Vec<Problem> {
        let mut problems = self.problems.clone();
        let loops = self.loops();
        if loops.is_empty() {
            problems.extend(self.fan_out());
        }
        problems.extend(loops);
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

    /// The first place from which one value meets too many subschemas. Only for schemas without loops.
    fn fan_out(&self) -> Option<Problem> {
        let steps = self.steps();
        // Checks from a location, itself included, and the longest way.
        let mut known: Vec<Option<(usize, usize)>> = vec![None; steps.len()];
        for start in 0..steps.len() {
            let mut open = vec![(start, false)];
            while let Some((at, ready)) = open.pop() {
                let (Some(own), Some(None)) = (steps.get(at), known.get(at)) else {
                    continue;
                };
                if !ready {
                    open.push((at, true));
                    open.extend(own.iter().map(|(next, _)| (*next, false)));
                    continue;
                }
                let (mut checks, mut way) = (1_usize, 1_usize);
                for (next, _) in own {
                    if let Some(Some((more, further))) = known.get(*next) {
                        checks = checks.saturating_add(*more);
                        way = way.max(further + 1);
                    }
                }
                let what = if checks > CHECKS_MAX {
                    format!("checks one value against more than {CHECKS_MAX} subschemas")
                } else if way > CHAIN_MAX {
                    format!("checks one value through more than {CHAIN_MAX} subschemas in a row")
                } else {
                    if let Some(known) = known.get_mut(at) {
                        *known = Some((checks, way));
                    }
                    continue;
                };
                let place = self.locations.get(at).map_or("", |l| l.pointer.as_str());
                return Some(
                    Problem::new(
                        &codes::SCHEMA_TOO_LARGE,
                        format!("this place {what}, which takes too long"),
                    )
                    .at(place),
                );
            }
        }
        None
    }
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
