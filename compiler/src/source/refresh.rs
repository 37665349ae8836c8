//! One file read again, where the rest of the directory is known to be as it was.

use camino::Utf8Path;

use super::reader::{Reader, Root};
use super::{CapabilityFolder, SourceFile, SourceSet, container_files, folder, folder_hash};

/// What came of reading one file again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshed {
    /// What is read of it is as it was, and so is the set.
    Same,
    /// The set holds what is there now.
    Changed,
    /// The directory must be read as a whole: what is there is no file of the set, it cannot be read, or reading it was a
    /// finding before. The set is as it was.
    Unknown,
}

impl Refreshed {
    fn of(changed: bool) -> Self {
        if changed { Self::Changed } else { Self::Same }
    }
}

/// Reads again what is at `path` (relative to the root), a file that only changed its content.
pub fn refresh(set: &mut SourceSet, path: &Utf8Path) -> Refreshed {
    if set
        .findings
        .iter()
        .any(|finding| finding.place.origin.file.starts_with(path))
    {
        return Refreshed::Unknown;
    }
    let root = set.root.clone();
    if let Some(file) = file(set, path) {
        let Some(at) = Root::new(&root) else {
            return Refreshed::Unknown;
        };
        let mut reader = Reader::new(&at);
        return match reader.text(path) {
            Some(read) if reader.findings.is_empty() => {
                let changed = *file != read;
                *file = read;
                Refreshed::of(changed)
            }
            _ => Refreshed::Unknown,
        };
    }
    capabilities(set)
        .find(|capability| {
            let container = capability.container.as_ref();
            container.is_some_and(|container| path.starts_with(&container.path))
        })
        .and_then(|capability| context(&root, capability))
        .map_or(Refreshed::Unknown, Refreshed::of)
}

/// What builds a capability's image, and whether it is another now.
fn context(root: &Utf8Path, capability: &mut CapabilityFolder) -> Option<bool> {
    let container = capability.container.as_mut()?;
    let files = container_files(root, &container.path).ok()?;
    let at = Root::new(root)?;
    let mut reader = Reader::new(&at);
    let builds = folder::builds(&mut reader, &container.path, &files);
    if !reader.findings.is_empty() {
        return None;
    }
    let hash = folder_hash(&files);
    let changed = container.hash != hash || capability.builds != builds;
    container.hash = hash;
    capability.builds = builds;
    Some(changed)
}

fn file<'a>(set: &'a mut SourceSet, path: &Utf8Path) -> Option<&'a mut SourceFile> {
    let of_agents = set.agents.iter_mut().flat_map(|agent| {
        let own = agent.capabilities.iter_mut().flat_map(texts);
        agent
            .agent
            .iter_mut()
            .chain(&mut agent.prompts)
            .chain(&mut agent.locales)
            .chain(own)
    });
    set.settings
        .iter_mut()
        .chain(of_agents)
        .chain(set.capabilities.iter_mut().flat_map(texts))
        .find(|file| file.path == path)
}

fn texts(capability: &mut CapabilityFolder) -> impl Iterator<Item = &mut SourceFile> {
    capability
        .manifest
        .iter_mut()
        .chain(&mut capability.prompts)
}

fn capabilities(set: &mut SourceSet) -> impl Iterator<Item = &mut CapabilityFolder> {
    let of_agents = set
        .agents
        .iter_mut()
        .flat_map(|agent| &mut agent.capabilities);
    of_agents.chain(&mut set.capabilities)
}
