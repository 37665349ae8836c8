//! `[review]` in selu.toml: which changes need a person, and which a person has accepted beforehand.
//!
//! A change never judges itself: the rules that count are those of the state that it is compared with (S14).

use std::collections::BTreeSet;

use super::{Finding, Grade, Kind};
use crate::model::InstanceKey;

/// `[review]` with nothing left to doubt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// The kinds of changes that need a person unless they narrow; `None` for whatever widens.
    pub person: Option<BTreeSet<Kind>>,
    /// A capability that has more tools that may be called than this needs a person.
    pub max_tools: Option<u64>,
    /// Whether other content of an image needs a person where the image does not say its source.
    pub image_source: bool,
    /// What a person has accepted.
    pub accepted: BTreeSet<Accepted>,
}

/// One change that a person has accepted: this value at this place, and no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Accepted {
    /// Whose; `None` for the project as a whole.
    pub instance: Option<InstanceKey>,
    /// Of which tool.
    pub tool: Option<String>,
    /// Where.
    pub path: String,
    /// What it becomes; `None` where nothing is there then.
    pub new: Option<String>,
    /// Why that is right.
    pub reason: String,
}

impl Rules {
    /// Says of a finding whether it needs a person, and whether one has accepted it.
    pub(super) fn judge(&self, finding: &mut Finding) {
        finding.person |= self.need_a_person(finding);
        let fits = |accepted: &&Accepted| {
            accepted.instance == finding.instance
                && accepted.tool == finding.tool
                && accepted.path == finding.path
                && accepted.new == finding.new
        };
        let accepted = self.accepted.iter().find(fits);
        finding.accepted = accepted.map(|accepted| accepted.reason.clone());
    }

    fn need_a_person(&self, finding: &Finding) -> bool {
        let Finding {
            kind,
            grade,
            hidden,
            ..
        } = finding;
        match (grade, &self.person) {
            (Grade::Narrowing, _) => false,
            (Grade::Widening, None) => true,
            (Grade::Neutral, None) => false,
            // No list makes the project's own guards or hidden text a matter of course.
            (Grade::Widening, Some(_)) if *kind == Kind::Setting || !hidden.is_empty() => true,
            (_, Some(kinds)) => kinds.contains(kind),
        }
    }
}
