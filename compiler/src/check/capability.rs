//! manifest.yaml: Raw → [`Capability`] (section 2).

use std::collections::{BTreeMap, HashMap};

use camino::Utf8Path;

use super::shape::{self, Unknown};
use super::{credential, image, network, place, schema, tool};
use crate::diag::codes::{manifest as codes, tools as tool_codes, yaml as yaml_codes};
use crate::diag::{Diagnostic, Place, Severity};
use crate::model::capability::{RawCapability, RawCredential, RawResources, RawToolSource};
use crate::model::tool::RawTool;
use crate::model::{
    Capability, Class, Credential, CredentialScope, Filesystem, ImageReference, Limits, Network,
    NetworkMode, Policy, Prompt, Sharing, SharingMode, Tool, ToolSource, schemas,
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
    pub(super) capability: Option<Capability>,
    pub(super) findings: Vec<Diagnostic>,
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
    let Some(file) = &folder.manifest else {
        return outcome;
    };
    let (document, findings) = yaml::read(&file.path, &file.text);
    outcome.findings = findings;
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
    outcome.capability = check.capability(raw, folder);
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
            origin: self.document.place("/id").origin,
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
        value.or_else(|| match self.document.at(pointer) {
            Some(node) if !node.is_null() => None,
            _ => Some(default),
        })
    }

    fn image(&mut self, text: &str) -> Option<ImageReference> {
        let (image, problems) = image::image(text);
        self.lift("/image", problems);
        image
    }

    fn sharing(&mut self, raw: crate::model::capability::RawSharing) -> Option<Sharing> {
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

    fn tools(
        &mut self,
        source: Option<RawToolSource>,
        discovery_tool: Option<String>,
        raw: Option<Vec<Option<RawTool>>>,
    ) -> Option<ToolSource> {
        let source = self.or("/tool_source", source, RawToolSource::Manifest);
        if let Some(name) = &discovery_tool {
            if source == Some(RawToolSource::Manifest) {
                self.push_key(
                    "/discovery_tool_name",
                    &codes::NO_EFFECT,
                    "`discovery_tool_name` has no effect without `tool_source: dynamic`",
                );
            }
            // Its full name reaches no model, so only what makes it invalid counts.
            let problems = tool::name(&self.id, name);
            let errors = problems
                .into_iter()
                .filter(|problem| problem.code.severity == Severity::Error)
                .collect();
            self.lift("/discovery_tool_name", errors);
        }
        let discovery_tool = self.or(
            "/discovery_tool_name",
            discovery_tool,
            "list_tools".to_owned(),
        );
        let raw = raw.unwrap_or_default();
        if source == Some(RawToolSource::Dynamic) && !raw.is_empty() {
            self.push_key(
                "/tools",
                &codes::DYNAMIC_WITH_TOOLS,
                format!(
                    "`tool_source: dynamic` excludes static tools, and there are {}",
                    raw.len()
                ),
            );
        }
        let mut names: HashMap<String, usize> = HashMap::new();
        let mut tools = Vec::with_capacity(raw.len());
        for (index, raw) in raw.into_iter().enumerate() {
            let Some(raw) = raw else { continue };
            if let Some(name) = &raw.name {
                // Capability ids hold no underscore, so a name that is unique here is unique for the model too (T2).
                if let Some(first) = names.get(name) {
                    let first = self.document.place(&format!("/tools/{first}/name"));
                    let finding = Diagnostic::new(
                        &codes::DUPLICATE_TOOL,
                        self.document.place(&format!("/tools/{index}/name")),
                        format!("there are two tools named `{name}`"),
                    )
                    .related(first, "the first one");
                    self.findings.push(finding);
                } else {
                    names.insert(name.clone(), index);
                }
            }
            tools.extend(self.tool(index, raw));
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        match source? {
            RawToolSource::Manifest => Some(ToolSource::Static(tools)),
            RawToolSource::Dynamic => Some(ToolSource::Dynamic {
                discovery_tool: discovery_tool?,
            }),
        }
    }

    fn tool(&mut self, index: usize, raw: RawTool) -> Option<Tool> {
        let base = format!("/tools/{index}");
        let at = |field: &str| format!("{base}/{field}");
        if let Some(name) = &raw.name {
            self.lift(&at("name"), tool::name(&self.id, name));
        }
        if raw
            .description
            .as_ref()
            .is_some_and(|text| text.trim().is_empty())
        {
            self.push(
                &at("description"),
                &tool_codes::DESCRIPTION_EMPTY,
                "the description is empty; the model reads it to know what the tool does",
            );
        }
        if let Some(input_schema) = &raw.input_schema {
            self.lift(&at("input_schema"), schema::schema(input_schema));
        }
        // T1: true without a recommendation means ask, and nothing at all means block.
        let recommended = match (raw.recommended_policy, raw.requires_confirmation) {
            (Some(policy), Some(confirm)) if confirm != (policy == Policy::Ask) => {
                self.push(
                    &at("requires_confirmation"),
                    &codes::POLICY_DISAGREES,
                    format!(
                        "`requires_confirmation: {confirm}` disagrees with `recommended_policy: {policy}`, which wins"
                    ),
                );
                policy
            }
            (Some(policy), _) => policy,
            (None, Some(true)) => Policy::Ask,
            (None, _) => Policy::Block,
        };
        let origin = self.document.place(&at("name")).origin;
        Some(Tool {
            name: raw.name?,
            description: raw.description?,
            input_schema: raw.input_schema?,
            recommended: (raw.recommended_policy.is_some()
                || raw.requires_confirmation == Some(true))
            .then_some(recommended),
            terminal_on_success: self.or(
                &at("terminal_on_success"),
                raw.terminal_on_success,
                false,
            )?,
            origin: Some(origin),
        })
    }

    fn network(&mut self, raw: crate::model::capability::RawNetwork) -> Option<Network> {
        let written = raw.hosts.unwrap_or_default();
        let whole_list = written.iter().all(Option::is_some)
            && self.or("/network/hosts", Some(()), ()).is_some();
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

    fn limits(&mut self, raw: &RawResources) -> Option<Limits> {
        let nano_cpus = match raw.max_cpu_fraction {
            Some(_) => self.nano_cpus("/resources/max_cpu_fraction"),
            None => self.or("/resources/max_cpu_fraction", None, 500_000_000),
        };
        Some(Limits {
            memory_mb: self.or("/resources/max_memory_mb", raw.max_memory_mb, 128)?,
            nano_cpus: nano_cpus?,
            cpu_seconds: self.or("/resources/max_cpu_seconds", raw.max_cpu_seconds, 30)?,
            pids: self.or("/resources/pids_limit", raw.pids_limit, 64)?,
        })
    }

    /// R5: from the written digits, never through a float.
    fn nano_cpus(&mut self, pointer: &str) -> Option<u64> {
        let text = self.document.at(pointer)?.scalar()?.text.clone();
        let nano = nano_cpus(&text);
        if nano.is_none() {
            let finding = Diagnostic::new(
                &yaml_codes::NUMBER_FORM,
                self.document.place(pointer),
                format!("{text} has more than nine digits after the point"),
            )
            .help("a billionth of a core is the smallest part there is");
            self.findings.push(finding);
        }
        nano
    }

    fn lift(&mut self, base: &str, problems: Vec<crate::diag::Problem>) {
        let document = self.document;
        self.findings.extend(
            problems
                .into_iter()
                .map(|problem| place::lift(document, base, problem)),
        );
    }

    fn push(
        &mut self,
        pointer: &str,
        code: &'static crate::diag::Code,
        message: impl Into<String>,
    ) {
        let place = self.document.place(pointer);
        self.findings.push(Diagnostic::new(code, place, message));
    }

    fn push_key(
        &mut self,
        pointer: &str,
        code: &'static crate::diag::Code,
        message: impl Into<String>,
    ) {
        let place = self.document.key_place(pointer);
        self.findings.push(Diagnostic::new(code, place, message));
    }
}

/// Billionths of a core of a plain decimal; `None` if it has finer parts.
fn nano_cpus(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 9 {
        return None;
    }
    let padded = format!("{fraction:0<9}");
    let whole: u64 = whole.parse().ok()?;
    whole
        .checked_mul(1_000_000_000)?
        .checked_add(padded.parse().ok()?)
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

#[cfg(test)]
mod tests {
    use super::nano_cpus;

    #[test]
    fn cores_become_integers_without_rounding() {
        for (text, nano) in [
            ("0.57", Some(570_000_000)),
            ("0.1", Some(100_000_000)),
            ("2", Some(2_000_000_000)),
            ("1.50", Some(1_500_000_000)),
            ("0.123456789", Some(123_456_789)),
            ("0.1234567891", None),
            ("0.12345678900", Some(123_456_789)),
        ] {
            assert_eq!(nano_cpus(text), nano, "{text}");
        }
    }
}
