//! manifest.yaml: Raw → [`Capability`] (section 2).

mod limits;
mod tools;

pub(super) use limits::cores;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use camino::Utf8Path;

use super::shape::{self, Unknown};
use super::{credential, image, network, place, versions};
use crate::diag::codes::manifest as codes;
use crate::diag::{Code, Diagnostic, Place, Problem, Severity};
use crate::model::capability::{RawCapability, RawCredential, RawNetwork, RawSharing};
use crate::model::{
    Capability, Class, Credential, CredentialScope, Filesystem, ImageReference, Network,
    NetworkMode, Prompt, Sharing, SharingMode, schemas,
};
use crate::source::{CapabilityFolder, SourceFile, text_hash};
use crate::yaml::{self, Document};

/// What is known of a capability, be it right or wrong: enough to look it up without further complaints.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Its id; the folder's name where the manifest gives none.
    pub(super) id: String,
    /// Where the id is written, or the folder.
    pub(super) place: Place,
    /// What install steps may refer to (A1).
    pub(super) credentials: BTreeMap<String, Option<CredentialScope>>,
    /// Whether `credentials` is all there is.
    pub(super) credentials_known: bool,
    /// `None` if anything is wrong with it.
    pub(super) capability: Option<Arc<Capability>>,
    pub(super) findings: Vec<Diagnostic>,
}

impl Outcome {
    /// Adds its findings to those of the project: moved where nobody keeps it, copied where `check --watch` does.
    pub(super) fn report(self: Arc<Self>, findings: &mut Vec<Diagnostic>) {
        match Arc::try_unwrap(self) {
            Ok(outcome) => findings.extend(outcome.findings),
            Err(kept) => findings.extend_from_slice(&kept.findings),
        }
    }
}

/// Checks one folder.
pub(super) fn check(folder: &CapabilityFolder) -> Outcome {
    let mut outcome = Outcome {
        id: folder.path.file_name().unwrap_or_default().to_owned(),
        place: super::whole(&folder.path),
        credentials: BTreeMap::new(),
        credentials_known: false,
        capability: None,
        findings: Vec::new(),
    };
    for file in &folder.builds {
        versions::check(file, &mut outcome.findings);
    }
    let Some(file) = &folder.manifest else {
        return outcome;
    };
    let (document, findings) = yaml::read(&file.path, &file.text);
    outcome.findings.extend(findings);
    let Some(document) = document else {
        return outcome;
    };
    let raw: RawCapability = shape::read(
        &document,
        schemas::manifest(),
        Unknown::Manifest,
        &mut outcome.findings,
    );
    if let Some(id) = &raw.id {
        outcome.id.clone_from(id);
    }
    outcome.place = document.place("/id");
    outcome.credentials = raw
        .credentials
        .iter()
        .flatten()
        .flatten()
        .filter_map(|raw| Some((raw.name.clone()?, raw.scope)))
        .collect();
    outcome.credentials_known = true;
    let mut check = Check {
        document: &document,
        id: outcome.id.clone(),
        findings: &mut outcome.findings,
    };
    outcome.capability = check.capability(raw, folder).map(Arc::new);
    document.keep_pasteable(&mut outcome.findings);
    // They are kept until all are reported.
    outcome.findings.shrink_to_fit();
    outcome
}

struct Check<'a> {
    document: &'a Document,
    id: String,
    findings: &'a mut Vec<Diagnostic>,
}

impl Check<'_> {
    fn capability(&mut self, raw: RawCapability, folder: &CapabilityFolder) -> Option<Capability> {
        place::id(
            self.document,
            &folder.path,
            raw.id.as_deref(),
            self.findings,
        );
        let class = self.or("/class", raw.class, Class::Tool);
        let filesystem = self.or("/filesystem", raw.filesystem, Filesystem::None);
        let cache = self.or(
            "/cache/enabled",
            raw.cache.and_then(|cache| cache.enabled),
            false,
        );
        let sharing = self.sharing(raw.sharing.unwrap_or_default());
        self.combinations(class, filesystem, cache, sharing.as_ref());
        let image = raw.image.and_then(|image| self.image(&image));
        let tools = self.tools(raw.tool_source, raw.discovery_tool_name, raw.tools);
        let network = self.network(raw.network.unwrap_or_default());
        let credentials = self.credentials(raw.credentials.unwrap_or_default());
        let limits = self.limits(&raw.resources.unwrap_or_default());
        let errors = self
            .findings
            .iter()
            .any(|finding| finding.severity == Severity::Error);
        if errors {
            return None;
        }
        Some(Capability {
            id: raw.id?,
            origin: self.document.origin("/id"),
            image_at: self.document.span("/image"),
            cpus_at: self.document.span("/resources/max_cpu_fraction"),
            class: class?,
            image: image?,
            tools: tools?,
            network: network?,
            filesystem: filesystem?,
            cache: cache?,
            sharing: sharing?,
            credentials,
            limits: limits?,
            prompts: prompts(&folder.prompts),
            container: folder.container.clone(),
        })
    }

    /// The default where nothing is written; `None` where what is written was refused, so that no rule builds on a
    /// default that the author did not choose.
    fn or<T>(&self, pointer: &str, value: Option<T>, default: T) -> Option<T> {
        // What is refused is a finding: without any there is nothing to look for.
        if value.is_none() && !self.findings.is_empty() {
            return match self.document.at(pointer) {
                Some(node) if !node.is_null() => None,
                _ => Some(default),
            };
        }
        Some(value.unwrap_or(default))
    }

    fn image(&mut self, text: &str) -> Option<ImageReference> {
        let (image, problems) = image::image(text);
        self.lift("/image", problems);
        image
    }

    fn sharing(&mut self, raw: RawSharing) -> Option<Sharing> {
        let mode = self.or("/sharing/mode", raw.mode, SharingMode::Exclusive);
        let max_concurrent = self.or("/sharing/max_concurrent", raw.max_concurrent, 1);
        let idle = self.or(
            "/sharing/idle_timeout_seconds",
            raw.idle_timeout_seconds,
            300,
        );
        if mode == Some(SharingMode::Exclusive) && max_concurrent.is_some_and(|calls| calls > 1) {
            self.push(
                "/sharing/max_concurrent",
                &codes::NO_EFFECT,
                "`max_concurrent` has no effect without `mode: shared`: calls of a session come one at a time",
            );
        }
        Some(Sharing {
            mode: mode?,
            max_concurrent: max_concurrent?,
            idle_timeout_seconds: idle?,
        })
    }

    /// M2–M4.
    fn combinations(
        &mut self,
        class: Option<Class>,
        filesystem: Option<Filesystem>,
        cache: Option<bool>,
        sharing: Option<&Sharing>,
    ) {
        let workspace = filesystem == Some(Filesystem::Workspace);
        if class == Some(Class::Tool) {
            if workspace {
                self.push(
                    "/filesystem",
                    &codes::WORKSPACE_CLASS,
                    "`filesystem: workspace` needs `class: environment`, and the class is `tool`",
                );
            }
            if cache == Some(true) {
                self.push(
                    "/cache/enabled",
                    &codes::CACHE_CLASS,
                    "a cache needs `class: environment`, and the class is `tool`",
                );
            }
        }
        if sharing.is_some_and(|sharing| sharing.mode == SharingMode::Shared) {
            if class == Some(Class::Environment) {
                self.push(
                    "/sharing/mode",
                    &codes::SHARED_STATEFUL,
                    "`mode: shared` needs `class: tool`, and the class is `environment`",
                );
            } else if workspace {
                self.push(
                    "/sharing/mode",
                    &codes::SHARED_STATEFUL,
                    "`mode: shared` and `filesystem: workspace` exclude each other",
                );
            }
        }
    }

    fn network(&mut self, raw: RawNetwork) -> Option<Network> {
        let list = raw.hosts.as_ref().map(|_| ());
        let written = raw.hosts.unwrap_or_default();
        let whole_list =
            written.iter().all(Option::is_some) && self.or("/network/hosts", list, ()).is_some();
        // Entries that were refused already keep their index out of the leaf's pointers.
        let (indices, hosts): (Vec<usize>, Vec<String>) = written
            .into_iter()
            .enumerate()
            .filter_map(|(index, host)| Some((index, host?)))
            .unzip();
        let mode = self.or("/network/mode", raw.mode, NetworkMode::None);
        // Of a list beside a misspelt mode, at least the entries are checked.
        let (network, problems) = network::network(mode.unwrap_or(NetworkMode::Allowlist), &hosts);
        for mut problem in problems {
            if let Some(rest) = problem.pointer.strip_prefix("/hosts/") {
                let (index, tail) = rest.split_once('/').unwrap_or((rest, ""));
                if let Some(index) = index.parse().ok().and_then(|at: usize| indices.get(at)) {
                    problem.pointer = if tail.is_empty() {
                        format!("/hosts/{index}")
                    } else {
                        format!("/hosts/{index}/{tail}")
                    };
                }
            } else if mode.is_none() || !whole_list {
                // What is said of the list as a whole would be said of a part of it.
                continue;
            }
            self.findings
                .push(place::lift(self.document, "/network", problem));
        }
        network.filter(|_| mode.is_some() && whole_list)
    }

    fn credentials(&mut self, raw: Vec<Option<RawCredential>>) -> Vec<Credential> {
        let mut names: HashMap<String, usize> = HashMap::new();
        let mut credentials = Vec::with_capacity(raw.len());
        for (index, raw) in raw.into_iter().enumerate() {
            let Some(raw) = raw else { continue };
            let base = format!("/credentials/{index}");
            if let Some(name) = &raw.name {
                let at = format!("{base}/name");
                self.lift(&at, credential::name(name));
                if let Some(first) = names.get(name) {
                    let first = self.document.place(&format!("/credentials/{first}/name"));
                    let finding = Diagnostic::new(
                        &codes::DUPLICATE_CREDENTIAL,
                        self.document.place(&at),
                        format!("there are two credentials named `{name}`"),
                    )
                    .related(first, "the first one");
                    self.findings.push(finding);
                } else {
                    names.insert(name.clone(), index);
                }
            }
            if let (Some(name), Some(scope)) = (raw.name, raw.scope) {
                credentials.push(Credential {
                    name,
                    scope,
                    required: raw.required.unwrap_or(true),
                    description: raw.description.unwrap_or_default(),
                });
            }
        }
        credentials.sort();
        credentials
    }

    fn lift(&mut self, base: &str, problems: Vec<Problem>) {
        let document = self.document;
        self.findings.extend(
            problems
                .into_iter()
                .map(|problem| place::lift(document, base, problem)),
        );
    }

    fn push(&mut self, pointer: &str, code: &'static Code, message: impl Into<String>) {
        let place = self.document.place(pointer);
        self.findings.push(Diagnostic::new(code, place, message));
    }

    fn push_key(&mut self, pointer: &str, code: &'static Code, message: impl Into<String>) {
        let place = self.document.key_place(pointer);
        self.findings.push(Diagnostic::new(code, place, message));
    }
}

/// Prompt files by name (A5).
pub(super) fn prompts(files: &[SourceFile]) -> BTreeMap<String, Prompt> {
    files
        .iter()
        .map(|file| {
            let name = Utf8Path::file_name(&file.path).unwrap_or_default();
            let prompt = Prompt {
                file: file.path.clone(),
                hash: text_hash(&file.text),
                characters: file.text.chars().count(),
            };
            (name.to_owned(), prompt)
        })
        .collect()
}
