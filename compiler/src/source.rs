//! Directory → [`SourceSet`]: the only place where the compiler reads files.

mod context;
mod folder;
mod ignore;
mod reader;
mod refresh;

use std::num::NonZero;

use camino::{Utf8Path, Utf8PathBuf};

pub(crate) use context::text_hash;
pub use context::{
    ContextError, ContextFile, MAX_FILES, MAX_TOTAL_BYTES, container_files, folder_hash,
};
pub use refresh::{Refreshed, refresh};

use crate::diag::Diagnostic;
use crate::model::ContainerFolder;
use crate::parallel;

/// Everything that was read below one root, in path order, and what was wrong with reading it.
#[derive(Debug, Default)]
pub struct SourceSet {
    /// As it was given.
    pub root: Utf8PathBuf,
    /// What compiles there (L1); `None` if nothing does.
    pub kind: Option<RootKind>,
    /// selu.toml.
    pub settings: Option<SourceFile>,
    /// By path.
    pub agents: Vec<AgentFolder>,
    /// The project's shared capabilities, or the lone capability itself; by path.
    pub capabilities: Vec<CapabilityFolder>,
    /// What could not be read (L4).
    pub findings: Vec<Diagnostic>,
}

/// The three roots of L1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootKind {
    /// Holds `agents/` or `selu.toml`.
    Project,
    /// Holds `agent.yaml`.
    Agent,
    /// Holds `manifest.yaml`.
    Capability,
}

/// A text file, without BOM and with LF line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Relative to the root, with forward slashes.
    pub path: Utf8PathBuf,
    /// Its content.
    pub text: String,
}

/// One folder below `agents/`.
#[derive(Debug)]
pub struct AgentFolder {
    /// Relative to the root; empty for a lone agent.
    pub path: Utf8PathBuf,
    /// agent.yaml; `None` if it is missing or unreadable, which is a finding.
    pub agent: Option<SourceFile>,
    /// `agent.md` and `agent.<locale>.md`.
    pub prompts: Vec<SourceFile>,
    /// `i18n/<locale>.yaml`.
    pub locales: Vec<SourceFile>,
    /// Its own capabilities.
    pub capabilities: Vec<CapabilityFolder>,
}

/// One folder below a `capabilities/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityFolder {
    /// Relative to the root; empty for a lone capability.
    pub path: Utf8PathBuf,
    /// manifest.yaml; `None` if it is missing or unreadable, which is a finding.
    pub manifest: Option<SourceFile>,
    /// `prompt.md` and `prompt.<locale>.md`.
    pub prompts: Vec<SourceFile>,
    /// What builds the image.
    pub container: Option<ContainerFolder>,
    /// Those of its files that say which packages go into the image: Dockerfiles and requirements (P5).
    pub builds: Vec<SourceFile>,
}

impl SourceSet {
    /// Every text file that was read, by path.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        let of_agents = self.agents.iter().flat_map(|agent| {
            agent
                .agent
                .iter()
                .chain(&agent.prompts)
                .chain(&agent.locales)
                .chain(agent.capabilities.iter().flat_map(CapabilityFolder::files))
        });
        self.settings
            .iter()
            .chain(of_agents)
            .chain(self.capabilities.iter().flat_map(CapabilityFolder::files))
    }
}

impl CapabilityFolder {
    fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.manifest
            .iter()
            .chain(&self.prompts)
            .chain(&self.builds)
    }
}

/// Reads what [`crate::check::check`] needs below `root`. Never fails: what cannot be read is a finding.
pub fn read(root: &Utf8Path) -> SourceSet {
    read_on(parallel::cores(), root)
}

/// The same on so many threads. The outcome does not depend on their number.
pub fn read_on(threads: NonZero<usize>, root: &Utf8Path) -> SourceSet {
    folder::read(threads, root)
}
