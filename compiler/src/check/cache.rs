//! What was found about each capability, for the next check of a directory that hardly changed.

use std::collections::HashMap;

use camino::Utf8PathBuf;

use super::capability::{self, Outcome};
use crate::parallel;
use crate::source::CapabilityFolder;

/// Outcomes of the last check, each with the folder that it came from. A folder is compared as a whole, text by text:
/// whatever a rule looks at is part of it.
#[derive(Debug, Default)]
pub struct Cache {
    known: HashMap<Utf8PathBuf, (CapabilityFolder, Outcome)>,
    fresh: usize,
}

impl Cache {
    /// How many capabilities the last check had to look at.
    pub fn fresh(&self) -> usize {
        self.fresh
    }

    /// How many capabilities there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is no capability.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// An outcome for each folder, in their order. What is no longer there is forgotten.
    pub(super) fn outcomes(&mut self, folders: &[&CapabilityFolder]) -> Vec<Outcome> {
        let mut last = std::mem::take(&mut self.known);
        let (same, other): (Vec<_>, Vec<_>) = folders.iter().copied().partition(|folder| {
            last.get(&folder.path)
                .is_some_and(|(old, _)| old == *folder)
        });
        for folder in same {
            if let Some(entry) = last.remove_entry(&folder.path) {
                self.known.insert(entry.0, entry.1);
            }
        }
        self.fresh = other.len();
        let fresh = parallel::map(parallel::cores(), &other, |folder| {
            capability::check(folder)
        });
        for (folder, outcome) in other.into_iter().zip(fresh) {
            self.known
                .insert(folder.path.clone(), (folder.clone(), outcome));
        }
        folders
            .iter()
            .filter_map(|folder| self.known.get(&folder.path))
            .map(|(_, outcome)| outcome.clone())
            .collect()
    }
}
