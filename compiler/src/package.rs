//! An agent as Selu's own installer takes it: its files without what builds images, each image by its locked digest, and
//! its entry in a catalogue.
//!
//! The result is compiled once more before anyone gets it: what it says is what the project says, but for the images.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use crate::check::{check, nearest, shape};
use crate::diag::{Diagnostic, Severity};
use crate::lock::{Lock, Stale, stale};
use crate::model::agent::RawAgent;
use crate::model::locale::RawLocale;
use crate::model::{Agent, Capability, InstanceKey, Project, ToolSource, schemas};
use crate::plan::{ImageKind, Plan};
use crate::source::{AgentFolder, CapabilityFolder, RootKind, SourceFile, SourceSet};
use crate::yaml::{self, node::Span};

/// An agent's files, ready to be put into an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Path in the agent's folder → content.
    pub files: BTreeMap<Utf8PathBuf, String>,
    /// What a catalogue says about it.
    pub entry: Entry,
    /// What selu.toml sets for this agent, which no archive has.
    pub left_behind: Vec<String>,
}

/// An entry of Selu's catalogue. What is known only once the archive exists is for the caller to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The agent's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it does, from its labels in the default language; empty where they do not say.
    pub description: String,
    /// Names by locale.
    pub name_localizations: BTreeMap<String, String>,
    /// Descriptions by locale.
    pub description_localizations: BTreeMap<String, String>,
    /// Given by whoever releases it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Who releases it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Where the archive will be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_url: Option<String>,
    /// Of the archive, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_sha256: Option<String>,
    /// What an installer pulls; sorted.
    pub capability_images: Vec<String>,
}

/// Why there is no package.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// No such agent.
    #[error("there is no agent `{name}`{}", close(.near))]
    NoAgent {
        /// As it was asked for.
        name: String,
        /// What may have been meant.
        near: Option<String>,
    },
    /// The lock is not what the directory says.
    #[error("selu.lock does not fit the directory: {}", reasons(.0))]
    Stale(Vec<Stale>),
    /// An image that no installer can pull.
    #[error(
        "{}: the image exists only on engines where it was built: {}",
        if .0.len() == 1 { "an image can't be packaged" } else { "images can't be packaged" },
        .0.join(", ")
    )]
    Local(Vec<String>),
    /// The image's place in the manifest can't be rewritten.
    #[error("{file}:{line}: the image can't be rewritten in place")]
    Image {
        /// The manifest.
        file: Utf8PathBuf,
        /// From 1.
        line: u32,
    },
    /// The result is not what the project is.
    #[error("{instance}: packaged, it would be something else: {what}")]
    Differs {
        /// Which capability.
        instance: InstanceKey,
        /// What of it.
        what: &'static str,
    },
    /// The result does not compile.
    #[error("packaged, the agent would not compile: {}", .0.first().map_or("", |one| one.message.as_str()))]
    Broken(Vec<Diagnostic>),
}

fn close(near: &Option<String>) -> String {
    near.as_ref()
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

fn reasons(stale: &[Stale]) -> String {
    let reasons: Vec<String> = stale.iter().map(ToString::to_string).collect();
    reasons.join("; ")
}

/// Packages one agent of a project. `plan` is the offline one, made with `lock`.
///
/// # Errors
/// When the lock does not fit, an image is a local one, or the result would not be the same agent.
pub fn package(
    sources: &SourceSet,
    project: &Project,
    plan: &Plan,
    lock: Option<&Lock>,
    name: &str,
) -> Result<Package, PackageError> {
    let Some(agent) = project.agents.get(name) else {
        let known = project.agents.keys().map(String::as_str);
        return Err(PackageError::NoAgent {
            name: name.to_owned(),
            near: nearest(name, known).map(str::to_owned),
        });
    };
    let of_agent = |key: &InstanceKey| key.agent() == agent.id;
    let mut stale = stale(lock, plan);
    stale.retain(|one| one.instance().is_none_or(of_agent));
    if !stale.is_empty() {
        return Err(PackageError::Stale(stale));
    }
    let images = images(agent, plan)?;
    let folder = packaged(sources, agent, &images)?;
    let files = files(&folder);
    let entry = entry(agent, &folder, &images);
    verify(project, agent, &images, folder)?;
    Ok(Package {
        files,
        entry,
        left_behind: left_behind(project, plan, agent),
    })
}

/// By capability: what an engine is told.
fn images(agent: &Agent, plan: &Plan) -> Result<BTreeMap<String, String>, PackageError> {
    let mut images = BTreeMap::new();
    let mut local = Vec::new();
    for capability in agent.capabilities.values() {
        let key = InstanceKey::new(&agent.id, &capability.id);
        let image = plan.instances.get(&key).map(|instance| &instance.image);
        match image.map(|image| (image.kind, &image.digest)) {
            Some((ImageKind::Registry, Some(digest))) => {
                images.insert(capability.id.clone(), capability.image.at(digest));
            }
            Some((ImageKind::Local, _)) => {
                local.push(format!("{key} ({})", capability.image.written));
            }
            // A lock that fits names every image.
            Some((ImageKind::Registry | ImageKind::Unknown, _)) | None => {
                return Err(PackageError::Stale(vec![Stale::Missing(key)]));
            }
        }
    }
    if local.is_empty() {
        Ok(images)
    } else {
        Err(PackageError::Local(local))
    }
}

/// The agent's folder with all its capabilities, own and shared, in its own `capabilities/`.
fn packaged(
    sources: &SourceSet,
    agent: &Agent,
    images: &BTreeMap<String, String>,
) -> Result<AgentFolder, PackageError> {
    let top = |file: &SourceFile| SourceFile {
        path: Utf8PathBuf::from(file.path.file_name().unwrap_or_default()),
        text: file.text.clone(),
    };
    let parent = |path: &Utf8Path| path.parent().unwrap_or(Utf8Path::new("")).to_owned();
    let folder = sources
        .agents
        .iter()
        .find(|folder| folder.path == parent(&agent.origin.file));
    let own = folder.map(|folder| folder.capabilities.iter());
    let all = || {
        own.clone()
            .into_iter()
            .flatten()
            .chain(&sources.capabilities)
    };
    let mut capabilities = Vec::new();
    for capability in agent.capabilities.values() {
        let at = parent(&capability.origin.file);
        let (Some(found), Some(image)) = (
            all().find(|folder| folder.path == at),
            images.get(&capability.id),
        ) else {
            continue;
        };
        let path = Utf8Path::new("capabilities").join(&capability.id);
        let inside = |file: &SourceFile| SourceFile {
            path: path.join(file.path.file_name().unwrap_or_default()),
            text: file.text.clone(),
        };
        let mut manifest = found.manifest.as_ref().map(inside);
        if let Some(manifest) = &mut manifest {
            manifest.text = with_image(&manifest.text, capability, image).ok_or_else(|| {
                PackageError::Image {
                    file: capability.origin.file.clone(),
                    line: capability.image_at.line,
                }
            })?;
        }
        capabilities.push(CapabilityFolder {
            manifest,
            prompts: found.prompts.iter().map(inside).collect(),
            container: None,
            builds: Vec::new(),
            path,
        });
    }
    let locale = |file: &SourceFile| SourceFile {
        path: Utf8Path::new("i18n").join(file.path.file_name().unwrap_or_default()),
        text: file.text.clone(),
    };
    Ok(AgentFolder {
        path: Utf8PathBuf::new(),
        agent: folder.and_then(|folder| folder.agent.as_ref()).map(top),
        prompts: folder
            .iter()
            .flat_map(|folder| folder.prompts.iter().map(top))
            .collect(),
        locales: folder
            .iter()
            .flat_map(|folder| folder.locales.iter().map(locale))
            .collect(),
        capabilities,
    })
}

/// The manifest with another image, every other byte as it was. `None` if what stands at that place is not the image in
/// plain words: an alias, for one.
fn with_image(text: &str, capability: &Capability, image: &str) -> Option<String> {
    let Span {
        line,
        column,
        length,
    } = capability.image_at;
    let mut lines: Vec<&str> = text.split('\n').collect();
    let at = usize::try_from(line).ok()?.checked_sub(1)?;
    let old = *lines.get(at)?;
    let byte = |characters: u32| {
        let characters = usize::try_from(characters).ok()?;
        let mut ends = old.char_indices().map(|(at, _)| at).chain([old.len()]);
        ends.nth(characters)
    };
    let start = byte(column.checked_sub(1)?)?;
    let end = byte((column - 1).checked_add(length)?)?;
    let written = old.get(start..end)?;
    let plain = written.trim_matches(['"', '\'']);
    if plain != capability.image.written {
        return None;
    }
    // Quoted: neither the `@` nor the colons mean anything to YAML then.
    let new = format!("{}\"{image}\"{}", &old[..start], &old[end..]);
    lines[at] = &new;
    Some(lines.join("\n"))
}

fn files(folder: &AgentFolder) -> BTreeMap<Utf8PathBuf, String> {
    let AgentFolder {
        path: _,
        agent,
        prompts,
        locales,
        capabilities,
    } = folder;
    let capabilities = capabilities
        .iter()
        .flat_map(|one| one.manifest.iter().chain(&one.prompts));
    agent
        .iter()
        .chain(prompts)
        .chain(locales)
        .chain(capabilities)
        .map(|file| (file.path.clone(), file.text.clone()))
        .collect()
}

fn entry(agent: &Agent, folder: &AgentFolder, images: &BTreeMap<String, String>) -> Entry {
    let mut entry = Entry {
        id: agent.id.clone(),
        name: agent.name.clone(),
        description: String::new(),
        name_localizations: BTreeMap::new(),
        description_localizations: BTreeMap::new(),
        version: None,
        author: None,
        archive_url: None,
        archive_sha256: None,
        capability_images: images
            .values()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .cloned()
            .collect(),
    };
    for file in &folder.locales {
        let locale: RawLocale = raw(file, schemas::locale()).unwrap_or_default();
        let labels = locale.agent.unwrap_or_default();
        let name = file.path.file_stem().unwrap_or_default();
        if let Some(text) = labels.name {
            entry.name_localizations.insert(name.to_owned(), text);
        }
        if let Some(text) = labels.description {
            entry
                .description_localizations
                .insert(name.to_owned(), text);
        }
    }
    let written: RawAgent = folder
        .agent
        .as_ref()
        .and_then(|file| raw(file, schemas::agent()))
        .unwrap_or_default();
    let default = written.i18n.unwrap_or_default().default_locale;
    let default = default.as_deref().unwrap_or("en");
    if let Some(text) = entry.description_localizations.get(default) {
        entry.description.clone_from(text);
    }
    entry
}

/// A file that was checked before, as written.
fn raw<T: serde::de::DeserializeOwned + Default>(
    file: &SourceFile,
    schema: &serde_json::Value,
) -> Option<T> {
    let (document, _) = yaml::read(&file.path, &file.text);
    let mut findings = Vec::new();
    document.map(|document| shape::read(&document, schema, shape::Unknown::Manifest, &mut findings))
}

/// Compiles the package and compares.
fn verify(
    project: &Project,
    agent: &Agent,
    images: &BTreeMap<String, String>,
    folder: AgentFolder,
) -> Result<(), PackageError> {
    let sources = SourceSet {
        kind: Some(RootKind::Agent),
        agents: vec![folder],
        ..SourceSet::default()
    };
    let checked = check(&sources);
    let Some(packaged) = checked.project else {
        let errors = checked.diagnostics.into_iter();
        let errors = errors.filter(|one| one.severity == Severity::Error);
        return Err(PackageError::Broken(errors.collect()));
    };
    for capability in agent.capabilities.values() {
        let instance = InstanceKey::new(&agent.id, &capability.id);
        let differs = |what| {
            Err(PackageError::Differs {
                instance: instance.clone(),
                what,
            })
        };
        let found = packaged
            .agents
            .get(&agent.id)
            .and_then(|agent| agent.capabilities.get(&capability.id));
        let Some(found) = found else {
            return differs("the capability is not there");
        };
        if images.get(&capability.id) != Some(&found.image.in_full()) {
            return differs("its image");
        }
        let overridden = project.settings.limits.contains_key(&instance);
        if let Some(what) = difference(capability, found, overridden) {
            return differs(what);
        }
    }
    Ok(())
}

/// What differs besides the image and places. Limits from selu.toml are not the manifest's.
fn difference(a: &Capability, b: &Capability, overridden: bool) -> Option<&'static str> {
    let Capability {
        id: _,
        origin: _,
        image_at: _,
        cpus_at: _,
        class,
        image: _,
        tools,
        network,
        filesystem,
        cache,
        sharing,
        credentials,
        limits,
        prompts,
        container: _,
    } = a;
    let hashes = |prompts: &BTreeMap<String, crate::model::Prompt>| {
        prompts
            .iter()
            .map(|(name, prompt)| (name.clone(), prompt.hash.clone()))
            .collect::<Vec<_>>()
    };
    let same = [
        (*class == b.class, "its class"),
        (same_tools(tools, &b.tools), "its tools"),
        (*network == b.network, "its network rules"),
        (*filesystem == b.filesystem, "its file system"),
        (*cache == b.cache, "its cache"),
        (*sharing == b.sharing, "its sharing"),
        (*credentials == b.credentials, "its credentials"),
        (overridden || *limits == b.limits, "its limits"),
        (hashes(prompts) == hashes(&b.prompts), "its prompts"),
    ];
    same.into_iter()
        .find(|(same, _)| !same)
        .map(|(_, what)| what)
}

fn same_tools(a: &ToolSource, b: &ToolSource) -> bool {
    match (a, b) {
        (ToolSource::Static(a), ToolSource::Static(b)) => {
            let bare = |tools: &[crate::model::Tool]| {
                let tools = tools.iter().cloned().map(|tool| crate::model::Tool {
                    origin: None,
                    ..tool
                });
                tools.collect::<Vec<_>>()
            };
            bare(a) == bare(b)
        }
        (a, b) => a == b,
    }
}

/// What of selu.toml holds for the agent here, and for nobody who installs it.
fn left_behind(project: &Project, plan: &Plan, agent: &Agent) -> Vec<String> {
    let mut left = Vec::new();
    for (key, instance) in &plan.instances {
        if key.agent() != agent.id {
            continue;
        }
        if !instance.limit_overrides.is_empty() {
            left.push(format!("limits of {key}"));
        }
        if !instance.private.is_empty() {
            left.push(format!("private addresses for {key}"));
        }
    }
    for ((key, tool), (policy, _)) in &project.settings.policies {
        if key.agent() == agent.id {
            left.push(format!("policy `{policy}` of {key}/{tool}"));
        }
    }
    left
}
