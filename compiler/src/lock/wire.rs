//! The file's own types: promises, apart from the working types (house rule 11). Unknown fields are errors.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::{
    LockedCredential, LockedDiscovery, LockedImage, LockedInstance, LockedTool, ToolOrigin,
};
use crate::check::discovered::json;
use crate::model::{
    Class, CredentialScope, Filesystem, InstanceKey, Limits, Network, NetworkMode, Policy, Sharing,
    SharingMode,
};
use crate::plan::{ImageKind, PolicyOrigin};

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(rename = "version")]
    _version: u32,
    #[serde(default)]
    instance: BTreeMap<Spanned<String>, Instance>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Instance {
    image: Image,
    class: ClassWord,
    filesystem: FilesystemWord,
    cache: bool,
    sharing: SharingTable,
    limits: LimitsTable,
    network: NetworkTable,
    #[serde(default)]
    credential: BTreeMap<String, CredentialTable>,
    #[serde(default)]
    prompt: BTreeMap<String, Spanned<String>>,
    discovery: Option<Discovery>,
    #[serde(default)]
    tool: BTreeMap<String, Tool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    written: String,
    kind: KindWord,
    digest: Option<Spanned<String>>,
    source: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SharingTable {
    mode: SharingWord,
    max_concurrent: u32,
    idle_timeout_seconds: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    memory_mb: u64,
    nano_cpus: u64,
    cpu_seconds: u64,
    pids: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkTable {
    mode: ModeWord,
    hosts: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialTable {
    scope: ScopeWord,
    required: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Discovery {
    tool: String,
    credentials_present: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    source: SourceWord,
    policy: PolicyWord,
    policy_origin: PolicyOriginWord,
    recommended: Option<PolicyWord>,
    terminal_on_success: bool,
    description: String,
    input_schema: Spanned<String>,
}

/// Declares the words of a field, and what they mean.
macro_rules! words {
    ($name:ident => $model:ident { $($variant:ident),+ }) => {
        #[derive(Clone, Copy, Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum $name { $($variant),+ }

        impl From<$name> for $model {
            fn from(word: $name) -> Self {
                match word { $($name::$variant => Self::$variant),+ }
            }
        }
    };
}

words!(ClassWord => Class { Tool, Environment });
words!(FilesystemWord => Filesystem { None, Temp, Workspace });
words!(KindWord => ImageKind { Registry, Local });
words!(ModeWord => NetworkMode { None, Allowlist, Any });
words!(PolicyOriginWord => PolicyOrigin { Override, Manifest, Discovered, Default });
words!(PolicyWord => Policy { Block, Ask, Allow });
words!(ScopeWord => CredentialScope { System, User });
words!(SharingWord => SharingMode { Exclusive, Shared });
words!(SourceWord => ToolOrigin { Manifest, Discovered });

/// What is wrong with a value that TOML itself takes: where, in bytes, and why.
pub(super) struct Fault {
    pub(super) offset: usize,
    pub(super) message: String,
}

impl File {
    /// Into working types.
    pub(super) fn into_instances(self) -> Result<BTreeMap<InstanceKey, LockedInstance>, Fault> {
        self.instance
            .into_iter()
            .map(|(key, instance)| {
                let parsed = InstanceKey::parse(key.get_ref()).ok_or_else(|| Fault {
                    offset: key.span().start,
                    message: format!("`{}` is not `agent/capability`", key.get_ref()),
                })?;
                Ok((parsed, instance.into_locked()?))
            })
            .collect()
    }
}

impl Instance {
    fn into_locked(self) -> Result<LockedInstance, Fault> {
        let Self {
            image,
            class,
            filesystem,
            cache,
            sharing,
            limits,
            network,
            credential,
            prompt,
            discovery,
            tool,
        } = self;
        Ok(LockedInstance {
            image: LockedImage {
                written: image.written,
                kind: image.kind.into(),
                digest: image.digest.map(hash).transpose()?,
                source: image.source.map(hash).transpose()?,
            },
            class: class.into(),
            filesystem: filesystem.into(),
            cache,
            sharing: Sharing {
                mode: sharing.mode.into(),
                max_concurrent: sharing.max_concurrent,
                idle_timeout_seconds: sharing.idle_timeout_seconds,
            },
            limits: Limits {
                memory_mb: limits.memory_mb,
                nano_cpus: limits.nano_cpus,
                cpu_seconds: limits.cpu_seconds,
                pids: limits.pids,
            },
            network: Network {
                mode: network.mode.into(),
                hosts: network.hosts,
            },
            credentials: credential
                .into_iter()
                .map(|(name, credential)| {
                    let locked = LockedCredential {
                        scope: credential.scope.into(),
                        required: credential.required,
                    };
                    (name, locked)
                })
                .collect(),
            prompts: prompt
                .into_iter()
                .map(|(file, text)| Ok((file, hash(text)?)))
                .collect::<Result<_, Fault>>()?,
            discovery: discovery.map(|discovery| LockedDiscovery {
                tool: discovery.tool,
                credentials_present: discovery.credentials_present,
            }),
            tools: tool
                .into_iter()
                .map(|(name, tool)| Ok((name, tool.into_locked()?)))
                .collect::<Result<_, Fault>>()?,
        })
    }
}

impl Tool {
    fn into_locked(self) -> Result<LockedTool, Fault> {
        let schema = self.input_schema;
        let fault = |message: String| Fault {
            offset: schema.span().start,
            message,
        };
        let parsed = json::parse(schema.get_ref().as_bytes())
            .map_err(|error| fault(format!("input_schema is not JSON: {error}")))?;
        if let Some(pointer) = parsed.duplicates.first() {
            return Err(fault(format!("input_schema has the key `{pointer}` twice")));
        }
        Ok(LockedTool {
            source: self.source.into(),
            policy: self.policy.into(),
            policy_origin: self.policy_origin.into(),
            recommended: self.recommended.map(Into::into),
            description: self.description,
            input_schema: parsed.value,
            terminal_on_success: self.terminal_on_success,
        })
    }
}

/// `sha256:` and 64 hex digits.
fn hash(text: Spanned<String>) -> Result<String, Fault> {
    let hex = text.get_ref().strip_prefix("sha256:").unwrap_or_default();
    let right = hex.len() == 64
        && hex
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if right {
        Ok(text.into_inner())
    } else {
        Err(Fault {
            offset: text.span().start,
            message: format!(
                "`{}` is not `sha256:` and 64 hex digits",
                crate::diag::shown(text.get_ref())
            ),
        })
    }
}
