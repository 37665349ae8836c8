//! One file read again, where the rest of the directory is known to be as it was.

use camino::Utf8Path;

use super::reader::{Reader, Root};
use super::{CapabilityFolder, SourceFile, SourceSet, container_files, folder, folder_hash};

/// Reads again what is at `path` (relative to the root), a file that only changed its content. `false`, with the set as
/// it was, if the directory must be read as a whole: what is there is no file of the set, it cannot be read, or reading
/// it was a finding before.
pub fn refresh(set: &mut SourceSet, path: &Utf8Path) -> bool {
    if set
        .findings
        .iter()
        .any(|finding| finding.place.origin.file.starts_with(path))
    {
        return false;
    }
    let root = set.root.clone();
    if let Some(file) = file(set, path) {
        let Some(at) = Root::new(&root) else {
            return false;
        };
        let mut reader = Reader::new(&at);
        return match reader.text(path) {
            Some(read) if reader.findings.is_empty() => {
                *file = read;
                true
            }
            _ => false,
        };
    }
    capabilities(set)
        .find(|capability| {
            let container = capability.container.as_ref();
            container.is_some_and(|container| path.starts_with(&container.path))
        })
        .and_then(|capability| context(&root, capability))
        .is_some()
}

/// What builds a capability's image.
fn context(root: &Utf8Path, capability: &mut CapabilityFolder) -> Option<()> {
    let container = capability.container.as_mut()?;
    let files = container_files(root, &container.path).ok()?;
    let at = Root::new(root)?;
    let mut reader = Reader::new(&at);
    let builds = folder::builds(&mut reader, &container.path, &files);
    if !reader.findings.is_empty() {
        return None;
    }
    container.hash = folder_hash(&files);
    capability.builds = builds;
    Some(())
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
