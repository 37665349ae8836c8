//! Conflict markers: a lock with the clashes of a merge in it, and the sides of such a text.

use std::collections::BTreeSet;

use super::write::{HEAD, head_text, tool_text};
use super::{Lock, VERSION};
use crate::model::InstanceKey;

/// How long a marker is at least.
const LENGTH: usize = 7;

/// The sides of a text with conflict markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    /// The branch that is merged into.
    pub ours: String,
    /// What both came from, where the markers have it.
    pub base: Option<String>,
    /// The branch that is merged.
    pub theirs: String,
}

/// A line that a merge wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Ours,
    Base,
    Middle,
    Theirs,
}

fn marker(line: &str) -> Option<Marker> {
    let first = line.chars().next()?;
    let kind = match first {
        '<' => Marker::Ours,
        '|' => Marker::Base,
        '=' => Marker::Middle,
        '>' => Marker::Theirs,
        _ => return None,
    };
    let rest = line.trim_start_matches(first);
    let long = line.len() - rest.len() >= LENGTH;
    let ends = rest.is_empty() || (rest.starts_with(' ') && kind != Marker::Middle);
    (long && ends).then_some(kind)
}

/// Whether a line is a marker. Schemas are indented or begin with a brace, so that no line of a lock looks like one by
/// itself.
pub(super) fn is_marker(line: &str) -> bool {
    marker(line).is_some()
}

/// Takes a text with conflict markers apart. `None` if it has none, or they do not follow one another as a merge writes
/// them.
pub fn sides(text: &str) -> Option<Sides> {
    let mut sides = Sides {
        ours: String::new(),
        base: Some(String::new()),
        theirs: String::new(),
    };
    let mut at = None;
    let mut found = false;
    let mut has_base = true;
    let mut base_here = false;
    for line in text.split_inclusive('\n') {
        match (marker(line.trim_end_matches(['\n', '\r'])), at) {
            (None, None) => {
                sides.ours.push_str(line);
                sides.theirs.push_str(line);
                if let Some(base) = &mut sides.base {
                    base.push_str(line);
                }
            }
            (None, Some(Marker::Ours)) => sides.ours.push_str(line),
            (None, Some(Marker::Base)) => {
                if let Some(base) = &mut sides.base {
                    base.push_str(line);
                }
            }
            (None, Some(_)) => sides.theirs.push_str(line),
            (Some(Marker::Ours), None) => {
                (at, found, base_here) = (Some(Marker::Ours), true, false);
            }
            (Some(Marker::Base), Some(Marker::Ours)) => {
                (at, base_here) = (Some(Marker::Base), true);
            }
            (Some(Marker::Middle), Some(Marker::Ours | Marker::Base)) => {
                has_base &= base_here;
                at = Some(Marker::Middle);
            }
            (Some(Marker::Theirs), Some(Marker::Middle)) => at = None,
            (Some(_), _) => return None,
        }
    }
    if !found || at.is_some() {
        return None;
    }
    sides.base = sides.base.filter(|_| has_base);
    Some(sides)
}

/// Three locks that differ in the clashes of a merge alone, as one text with markers around those. What a person leaves of
/// it, whichever side it is, is a lock. `previous` as for [`Lock::write`].
pub fn marked([base, ours, theirs]: [&Lock; 3], length: usize, previous: Option<&str>) -> String {
    let length = length.max(LENGTH);
    let line = |sign: &str, label: &str| format!("{}{label}\n", sign.repeat(length));
    let mut out = format!("{HEAD}version = {VERSION}\n");
    let mut open: [String; 3] = Default::default();
    let close = |out: &mut String, open: &mut [String; 3]| {
        if open.iter().all(String::is_empty) {
            return;
        }
        let [base, ours, theirs] = std::mem::take(open);
        out.push_str(&line("<", " ours"));
        out.push_str(&ours);
        out.push_str(&line("|", " base"));
        out.push_str(&base);
        out.push_str(&line("=", ""));
        out.push_str(&theirs);
        out.push_str(&line(">", " theirs"));
    };
    for (key, tool) in sections([base, ours, theirs]) {
        let texts = [base, ours, theirs].map(|lock| section(lock, key, tool));
        if texts[0] == texts[1] && texts[1] == texts[2] {
            close(&mut out, &mut open);
            out.push_str(&texts[1]);
        } else {
            for (open, text) in open.iter_mut().zip(texts) {
                open.push_str(&text);
            }
        }
    }
    close(&mut out, &mut open);
    if previous.is_some_and(|text| text.contains("\r\n")) {
        out.replace('\n', "\r\n")
    } else {
        out
    }
}

/// Every table of any of the locks, in the order of the file.
fn sections(locks: [&Lock; 3]) -> BTreeSet<(&InstanceKey, Option<&str>)> {
    let mut sections = BTreeSet::new();
    for (key, instance) in locks.into_iter().flat_map(|lock| &lock.instances) {
        sections.insert((key, None));
        sections.extend(instance.tools.keys().map(|name| (key, Some(name.as_str()))));
    }
    sections
}

fn section(lock: &Lock, key: &InstanceKey, tool: Option<&str>) -> String {
    let Some(instance) = lock.instances.get(key) else {
        return String::new();
    };
    match tool {
        None => head_text(key, instance),
        Some(name) => match instance.tools.get(name) {
            Some(tool) => tool_text(key, name, tool),
            None => String::new(),
        },
    }
}
