//! selu.lock: what people review (product.md 21–26).
//!
//! These are the working types. The wire form, the canonical writer and the typed reasons why a lock is stale live in
//! the submodules.

mod callable;
mod entry;
mod flat;
mod join;
mod marked;
mod merge;
mod read;
mod stale;
mod values;
mod waiting;
mod wire;
pub(crate) mod words;
mod write;

use std::collections::BTreeMap;

pub use callable::{Callable, Refusal, callable, no_instance};
pub use join::{Clash, Joined, Part, Side};
pub use marked::{Sides, marked, sides};
pub use merge::{DiscoveryOutcome, FieldChange, Merged, ToolChange, ToolChangeKind};
pub use read::LockError;
pub use stale::{Stale, differences, stale};
pub use values::{ValueChange, value_changes};
pub use waiting::AcceptError;

use crate::model::{
    Class, CredentialScope, Filesystem, InstanceKey, Limits, Network, Policy, Sharing,
};
use crate::plan::{ImageKind, PolicyOrigin};

/// Version of the file that this compiler writes.
pub const VERSION: u32 = 1;

/// A whole lock.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lock {
    /// By key.
    pub instances: BTreeMap<InstanceKey, LockedInstance>,
}

impl Lock {
    /// Whether a capability that lists its tools itself was ever asked for them.
    pub fn was_asked(&self, key: &InstanceKey) -> bool {
        let discovery = self
            .instances
            .get(key)
            .and_then(|locked| locked.discovery.as_ref());
        discovery.is_some_and(|discovery| discovery.credentials_present.is_some())
    }
}

/// What is locked of an instance (product.md 22).
#[derive(Debug, Clone, PartialEq)]
pub struct LockedInstance {
    /// The image by what cannot move.
    pub image: LockedImage,
    /// tool or environment.
    pub class: Class,
    /// What is writable.
    pub filesystem: Filesystem,
    /// Whether `/cache` is kept.
    pub cache: bool,
    /// Exclusive or shared.
    pub sharing: Sharing,
    /// Limits.
    pub limits: Limits,
    /// Egress rules.
    pub network: Network,
    /// By name.
    pub credentials: BTreeMap<String, LockedCredential>,
    /// File name → hash.
    pub prompts: BTreeMap<String, String>,
    /// For a dynamic capability.
    pub discovery: Option<LockedDiscovery>,
    /// By name.
    pub tools: BTreeMap<String, LockedTool>,
}

/// An image in the lock. Local images are locked by their source, not by their id, which differs from build to build
/// (I3, product.md 19); by their id only where there is no folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedImage {
    /// As the manifest has it.
    pub written: String,
    /// Registry or local.
    pub kind: ImageKind,
    /// Registry kind: the index digest. Local kind without a folder: the image id.
    pub digest: Option<String>,
    /// Local kind: the hash of its folder.
    pub source: Option<String>,
}

/// A credential requirement in the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedCredential {
    /// One value for all, or one per user.
    pub scope: CredentialScope,
    /// Whether nothing runs without it.
    pub required: bool,
}

/// How the tools of a dynamic capability came to be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedDiscovery {
    /// The discovery tool.
    pub tool: String,
    /// Sorted names of the credentials that were present; `None` while nothing was ever discovered.
    pub credentials_present: Option<Vec<String>>,
}

/// A tool in the lock.
#[derive(Debug, Clone, PartialEq)]
pub struct LockedTool {
    /// Where it came from.
    pub source: ToolOrigin,
    /// The effective policy.
    pub policy: Policy,
    /// Why it is that.
    pub policy_origin: PolicyOrigin,
    /// What a discovered tool recommended last; a changed one is shown, not applied (D3). `None` for static tools, whose
    /// manifest says it, and where nothing was recommended.
    pub recommended: Option<Policy>,
    /// What the model reads.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: serde_json::Value,
    /// The tool loop ends after a success.
    pub terminal_on_success: bool,
}

/// Where a tool came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOrigin {
    /// Written in the manifest.
    Manifest,
    /// Listed live.
    Discovered,
}

#[cfg(test)]
mod tests;
