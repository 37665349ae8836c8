//! The layout of a project, an agent, a capability (section 1).

use std::num::NonZero;

use camino::{Utf8Path, Utf8PathBuf};

use super::context::{self, ContextError, ContextFile};
use super::reader::{Item, Reader, Root, whole};
use super::{AgentFolder, CapabilityFolder, RootKind, SourceFile, SourceSet};
use crate::diag::Diagnostic;
use crate::diag::codes::layout as codes;
use crate::model::ContainerFolder;
use crate::parallel;

const AGENTS: &str = "agents";
const CAPABILITIES: &str = "capabilities";
const CONTAINER: &str = "container";
const AGENT: &str = "agent.yaml";
const MANIFEST: &str = "manifest.yaml";
const SETTINGS: &str = "selu.toml";
const DOCKERFILE: &str = "Dockerfile";
const I18N: &str = "i18n";

pub(super) fn read(threads: NonZero<usize>, root: &Utf8Path) -> SourceSet {
    let mut set = SourceSet {
        root: root.to_owned(),
        ..SourceSet::default()
    };
    let Some(at) = Root::new(root) else {
        set.findings.push(Diagnostic::new(
            &codes::NO_PROJECT,
            whole(Utf8Path::new("")),
            format!("there is no directory {root}, or it cannot be read"),
        ));
        return set;
    };
    let mut reader = Reader::new(&at);
    set.kind = root_kind(&mut reader);
    let top = Utf8Path::new("");
    if set.kind.is_some()
        && reader.exists(SETTINGS)
        && reader.is_folder(Utf8Path::new(SETTINGS)).is_some()
    {
        set.settings = reader.text(Utf8Path::new(SETTINGS));
    }
    match set.kind {
        None => {}
        Some(RootKind::Project) => {
            let agents = folders(&mut reader, AGENTS);
            let own = many(threads, &mut reader, &agents, agent);
            let shared = folders(&mut reader, CAPABILITIES);
            (set.agents, set.capabilities) = capabilities(threads, &mut reader, own, shared);
            unread_at_the_top(&mut reader);
            if set.agents.is_empty() && reader.findings.is_empty() {
                reader.finding(
                    &codes::NO_AGENTS,
                    Utf8Path::new(AGENTS),
                    "the project has no agent",
                );
            }
        }
        Some(RootKind::Agent) => {
            let own = vec![agent(&mut reader, top)];
            (set.agents, _) = capabilities(threads, &mut reader, own, Vec::new());
        }
        Some(RootKind::Capability) => {
            set.capabilities.push(capability(&mut reader, top));
        }
    }
    set.findings = reader.findings;
    set
}

/// L1. A directory that is several things at once is a finding, and is read as the first of them.
fn root_kind(reader: &mut Reader<'_>) -> Option<RootKind> {
    let (agents, settings) = (reader.exists(AGENTS), reader.exists(SETTINGS));
    let (agent, manifest) = (reader.exists(AGENT), reader.exists(MANIFEST));
    let kind = match (agents, agent, manifest) {
        (true, false, false) => RootKind::Project,
        (false, true, false) => RootKind::Agent,
        (false, false, true) => RootKind::Capability,
        (false, false, false) if settings => RootKind::Project,
        (false, false, false) => {
            let message = format!(
                "there is no project here: looked for {AGENTS}/, {SETTINGS}, {AGENT} and {MANIFEST} in {}",
                reader.root()
            );
            let mut finding =
                Diagnostic::new(&codes::NO_PROJECT, whole(Utf8Path::new("")), message);
            if let Some(project) = reader.project_above() {
                finding = finding.help(format!("there is a project above it, in {project}"));
            }
            reader.findings.push(finding);
            return None;
        }
        _ => {
            let found: Vec<&str> = [(agents, "agents/"), (agent, AGENT), (manifest, MANIFEST)]
                .iter()
                .filter(|(there, _)| *there)
                .map(|(_, name)| *name)
                .collect();
            reader.finding(
                &codes::AMBIGUOUS_ROOT,
                Utf8Path::new(""),
                format!("this directory holds {} at once", found.join(" and ")),
            );
            if agents {
                RootKind::Project
            } else {
                RootKind::Agent
            }
        }
    };
    Some(kind)
}

/// The folders of `agents/` or of a `capabilities/`. YAML files that lie there are not read, which is said.
fn folders(reader: &mut Reader<'_>, parent: impl AsRef<Utf8Path>) -> Vec<Utf8PathBuf> {
    let parent = parent.as_ref();
    if !reader.exists(parent.as_str()) {
        return Vec::new();
    }
    match reader.is_folder(parent) {
        Some(true) => {}
        Some(false) => {
            let message = "a file stands where a folder is expected";
            reader.finding(&codes::NOT_A_FILE, parent, message);
            return Vec::new();
        }
        None => return Vec::new(),
    }
    let mut folders = Vec::new();
    for item in reader.list(parent) {
        let path = parent.join(&item.name);
        if item.is_folder {
            folders.push(path);
        } else if matches!(path.extension(), Some("yaml" | "yml")) {
            reader.finding(
                &codes::UNREAD_FILE,
                &path,
                "this file is not read: each agent and each capability has a folder of its own",
            );
        }
    }
    folders
}

/// The same for many folders, on several threads; findings in the order of the folders.
fn many<R: Send>(
    threads: NonZero<usize>,
    reader: &mut Reader<'_>,
    paths: &[Utf8PathBuf],
    read: impl Fn(&mut Reader<'_>, &Utf8Path) -> R + Sync,
) -> Vec<R> {
    let at = reader.at();
    let read = parallel::map(threads, paths, |path| {
        let mut reader = Reader::new(at);
        let read = read(&mut reader, path);
        (read, reader.findings)
    });
    read.into_iter()
        .map(|(read, findings)| {
            reader.findings.extend(findings);
            read
        })
        .collect()
}

/// An agent without its own capabilities, and where those are.
fn agent(reader: &mut Reader<'_>, path: &Utf8Path) -> (AgentFolder, Vec<Utf8PathBuf>) {
    let items = reader.list(path);
    let agent = required(reader, path, &items, AGENT);
    let prompts = prompts(reader, path, &items, "agent");
    let locales = if items.iter().any(|item| item.name == I18N) {
        locales(reader, &path.join(I18N))
    } else {
        Vec::new()
    };
    // A link that leads astray is not among the items, and was reported with them.
    let own = if items.iter().any(|item| item.name == CAPABILITIES) {
        folders(reader, path.join(CAPABILITIES))
    } else {
        Vec::new()
    };
    unread_folders(reader, path, &items);
    let agent = AgentFolder {
        path: path.to_owned(),
        agent,
        prompts,
        locales,
        capabilities: Vec::new(),
    };
    (agent, own)
}

/// Folders of an agent that are meant for something and read for nothing.
fn unread_folders(reader: &mut Reader<'_>, path: &Utf8Path, items: &[Item]) {
    let known = [CAPABILITIES, I18N];
    for item in items.iter().filter(|item| item.is_folder) {
        let (name, folder) = (item.name.as_str(), path.join(&item.name));
        if known.contains(&name) {
            continue;
        }
        let capability = folder.join(MANIFEST);
        if let Some(near) = close(name, known) {
            let message = format!("this folder is not read; the name is `{near}`");
            reader.finding(&codes::FILE_NAME, &folder, message);
        } else if reader.exists(capability.as_str()) {
            let message =
                "this file is not read: an agent's capabilities are in its `capabilities/`";
            reader.finding(&codes::UNREAD_FILE, &capability, message);
        }
    }
}

/// Folders of a project that hold what is read, under a name that is not. Whatever else lies there is none of ours.
fn unread_at_the_top(reader: &mut Reader<'_>) {
    let below = |folder: &Utf8Path| -> Vec<String> {
        let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_owned()).collect()
    };
    let mut names = below(reader.root());
    names.sort_unstable();
    let known = [AGENTS, CAPABILITIES];
    for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
        let Some(near) = close(name, known) else {
            continue;
        };
        let file = if near == AGENTS { AGENT } else { MANIFEST };
        let folder = reader.root().join(name);
        let mut inside = below(&folder).into_iter();
        if inside.any(|inner| folder.join(inner).join(file).exists()) {
            let message = format!("this folder is not read; the name is `{near}`");
            reader.finding(&codes::FILE_NAME, Utf8Path::new(name), message);
        }
    }
}

/// The name that is meant; one with something behind it, such as `capabilities-old`, was put away.
fn close(name: &str, known: [&'static str; 2]) -> Option<&'static str> {
    if name.eq_ignore_ascii_case("capability") {
        return Some(CAPABILITIES);
    }
    crate::check::nearest(name, known).filter(|near| !name.starts_with(near))
}

/// `i18n/<locale>.yaml`.
fn locales(reader: &mut Reader<'_>, folder: &Utf8Path) -> Vec<SourceFile> {
    if reader.is_folder(folder) != Some(true) {
        let message = "a file stands where a folder is expected";
        reader.finding(&codes::NOT_A_FILE, folder, message);
        return Vec::new();
    }
    let mut files = Vec::new();
    for item in reader.list(folder) {
        let path = folder.join(&item.name);
        if path.extension() == Some("yaml") {
            files.extend(reader.text(&path));
        } else {
            let message = "this is not read: a locale has a file `<locale>.yaml`";
            reader.finding(&codes::UNREAD_FILE, &path, message);
        }
    }
    files
}

/// Reads all capabilities at once, so that threads have work whether there are many agents or one: the agents' own, which
/// they get, and shared ones.
fn capabilities(
    threads: NonZero<usize>,
    reader: &mut Reader<'_>,
    own: Vec<(AgentFolder, Vec<Utf8PathBuf>)>,
    shared: Vec<Utf8PathBuf>,
) -> (Vec<AgentFolder>, Vec<CapabilityFolder>) {
    let mut paths = Vec::new();
    let mut agents = Vec::with_capacity(own.len());
    for (agent, own) in own {
        agents.push((agent, own.len()));
        paths.extend(own);
    }
    paths.extend(shared);
    let mut read = many(threads, reader, &paths, capability).into_iter();
    let agents = agents
        .into_iter()
        .map(|(mut agent, count)| {
            agent.capabilities = read.by_ref().take(count).collect();
            agent
        })
        .collect();
    (agents, read.collect())
}

fn capability(reader: &mut Reader<'_>, path: &Utf8Path) -> CapabilityFolder {
    let items = reader.list(path);
    let manifest = required(reader, path, &items, MANIFEST);
    let prompts = prompts(reader, path, &items, "prompt");
    let (container, builds) = container(reader, path, &items).unzip();
    CapabilityFolder {
        path: path.to_owned(),
        manifest,
        prompts,
        container,
        builds: builds.unwrap_or_default(),
    }
}

/// The file that makes a folder an agent or a capability.
fn required(
    reader: &mut Reader<'_>,
    folder: &Utf8Path,
    items: &[Item],
    name: &'static str,
) -> Option<SourceFile> {
    let mut misspelt = false;
    for item in items.iter().filter(|item| item.name != name) {
        let lower = item.name.to_lowercase();
        if lower == name || lower.strip_suffix(".yml") == name.strip_suffix(".yaml") {
            misspelt = true;
            let message = format!("this file is not read; the name is `{name}`");
            reader.finding(&codes::FILE_NAME, &folder.join(&item.name), message);
        }
    }
    if items.iter().any(|item| item.name == name) {
        return reader.text(&folder.join(name));
    }
    if !misspelt {
        let code = if name == AGENT {
            &codes::NO_AGENT_FILE
        } else {
            &codes::NO_MANIFEST
        };
        reader.finding(code, folder, format!("this folder has no `{name}`"));
    }
    None
}

/// `stem.md` and `stem.<locale>.md`.
fn prompts(
    reader: &mut Reader<'_>,
    folder: &Utf8Path,
    items: &[Item],
    stem: &str,
) -> Vec<SourceFile> {
    items
        .iter()
        .filter(|item| context::is_prompt(&item.name, stem))
        .filter_map(|item| reader.text(&folder.join(&item.name)))
        .collect()
}

/// What builds the image: `container/`, else the capability's own folder if a Dockerfile lies in it.
fn container(
    reader: &mut Reader<'_>,
    folder: &Utf8Path,
    items: &[Item],
) -> Option<(ContainerFolder, Vec<SourceFile>)> {
    let has = |name: &str| items.iter().any(|item| item.name == name);
    let path = match (has(CONTAINER), has(DOCKERFILE)) {
        (true, true) => {
            reader.finding(
                &codes::BAD_CONTEXT,
                folder,
                "there are both container/ and a Dockerfile beside manifest.yaml; keep one",
            );
            return None;
        }
        (true, false) => folder.join(CONTAINER),
        (false, true) => folder.to_owned(),
        (false, false) => return None,
    };
    match super::container_files(reader.root(), &path) {
        Ok(files) => {
            let builds = builds(reader, &path, &files);
            let folder = ContainerFolder {
                path,
                hash: super::folder_hash(&files),
            };
            Some((folder, builds))
        }
        Err(error) => {
            let at = error.path().to_owned();
            match error {
                ContextError::Unreadable { source, .. } => reader.unreadable(&at, &source),
                other => reader.finding(&codes::BAD_CONTEXT, &at, other.to_string()),
            }
            None
        }
    }
}

/// Those files of a build context that say which packages go into the image.
pub(super) fn builds(
    reader: &mut Reader<'_>,
    folder: &Utf8Path,
    files: &[ContextFile],
) -> Vec<SourceFile> {
    files
        .iter()
        .filter(|file| file.path.file_name().is_some_and(names_packages))
        .filter_map(|file| reader.text(&folder.join(&file.path)))
        .collect()
}

/// Whether a file of a build context says which packages go into the image.
fn names_packages(name: &str) -> bool {
    name == DOCKERFILE
        || name.starts_with("Dockerfile.")
        || name.ends_with(".Dockerfile")
        || (name.starts_with("requirements") && name.ends_with(".txt"))
}
