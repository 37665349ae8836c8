//! What was found about each capability and each agent.yaml, for the next check of a directory that hardly changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use super::agent::{self, Draft};
use super::capability::{self, Outcome};
use crate::parallel;
use crate::source::{AgentFolder, CapabilityFolder, SourceFile};

/// Outcomes of the last check, each with what it came from: of a capability the folder as a whole, text by text, of an
/// agent its agent.yaml. Whatever a rule of theirs looks at is part of that.
#[derive(Debug, Default)]
pub struct Cache {
    known: HashMap<Utf8PathBuf, (CapabilityFolder, Arc<Outcome>)>,
    agents: HashMap<Utf8PathBuf, (Option<SourceFile>, Arc<Draft>)>,
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
    pub(super) fn outcomes(&mut self, folders: &[&CapabilityFolder]) -> Vec<Arc<Outcome>> {
        let mut last = std::mem::take(&mut self.known);
        let mut outcomes: Vec<Option<Arc<Outcome>>> = Vec::with_capacity(folders.len());
        let mut other = Vec::new();
        for folder in folders.iter().copied() {
            let kept = last
                .remove_entry(&folder.path)
                .filter(|(_, (old, _))| old == folder);
            outcomes.push(kept.as_ref().map(|(_, (_, outcome))| Arc::clone(outcome)));
            match kept {
                Some((path, entry)) => {
                    self.known.insert(path, entry);
                }
                None => other.push(folder),
            }
        }
        self.fresh = other.len();
        let mut fresh = parallel::map(parallel::cores(), &other, |folder| {
            Arc::new(capability::check(folder))
        })
        .into_iter();
        for (folder, outcome) in other.into_iter().zip(fresh.as_slice()) {
            let entry = (folder.clone(), Arc::clone(outcome));
            self.known.insert(folder.path.clone(), entry);
        }
        outcomes
            .into_iter()
            .filter_map(|kept| kept.or_else(|| fresh.next()))
            .collect()
    }

    /// The same for agents, a part of them at a time.
    pub(super) fn drafts(&mut self, folders: &[AgentFolder]) -> Vec<Arc<Draft>> {
        folders
            .iter()
            .map(|folder| match self.agents.get(&folder.path) {
                Some((file, draft)) if *file == folder.agent => Arc::clone(draft),
                _ => {
                    let draft = Arc::new(agent::read(folder));
                    let entry = (folder.agent.clone(), Arc::clone(&draft));
                    self.agents.insert(folder.path.clone(), entry);
                    draft
                }
            })
            .collect()
    }

    /// Forgets agents that are no longer there.
    pub(super) fn forget_other_agents(&mut self, folders: &[AgentFolder]) {
        if self.agents.len() > folders.len() {
            let there: HashSet<&Utf8Path> = folders.iter().map(|folder| &*folder.path).collect();
            self.agents.retain(|path, _| there.contains(&**path));
        }
    }
}
