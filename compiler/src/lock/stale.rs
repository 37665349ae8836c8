//! Lock × Plan → why the lock is stale (house rule 10, product.md 24–25).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use camino::Utf8Path;

use super::values::value_changes;
use super::words::{
    class_word, filesystem_word, kind_word, mode_word, origin_word, policy_origin_word, scope_word,
    sharing_word,
};
use super::{Lock, LockedCredential, LockedDiscovery, LockedImage, LockedInstance, LockedTool};
use crate::diag::codes::lock as codes;
use crate::diag::{Diagnostic, Place, shown};
use crate::model::{InstanceKey, Limits, Network, Origin, Sharing};
use crate::plan::{ImageKind, Plan};

/// One reason why a lock does not say what the directory says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stale {
    /// There is no lock.
    NoLock,
    /// In the directory, not in the lock.
    Missing(InstanceKey),
    /// In the lock, not in the directory.
    Extra(InstanceKey),
    /// A field differs.
    Field {
        /// Whose field.
        instance: InstanceKey,
        /// Such as `limits.memory_mb` or `tool.forecast.input_schema/properties/city`.
        path: String,
        /// What the lock says; `None` if nothing.
        old: Option<String>,
        /// What the directory says; `None` if nothing.
        new: Option<String>,
    },
}

impl Stale {
    /// Whose entry it is; `None` where there is no lock at all.
    pub fn instance(&self) -> Option<&InstanceKey> {
        match self {
            Self::NoLock => None,
            Self::Missing(key) | Self::Extra(key) | Self::Field { instance: key, .. } => Some(key),
        }
    }

    /// As a finding: at the manifest that differs, or, where there is none, at the entry of the lock. `file` is the lock's
    /// name, `text` what it says.
    pub fn diagnostic(&self, plan: &Plan, file: &Utf8Path, text: &str) -> Diagnostic {
        let entry = |key: &InstanceKey| {
            let head = format!("[instance.\"{key}\"]");
            let line = text.lines().position(|line| line.trim_end() == head);
            let line = line.map_or(0, |index| u32::try_from(index + 1).unwrap_or(u32::MAX));
            Origin {
                file: file.to_owned(),
                line,
                column: u32::from(line > 0),
            }
        };
        let manifest = |key: &InstanceKey| {
            let planned = plan.instances.get(key);
            planned.map_or_else(|| entry(key), |planned| planned.origin.clone())
        };
        let (origin, path) = match self {
            Self::NoLock => {
                let origin = Origin {
                    file: file.to_owned(),
                    line: 0,
                    column: 0,
                };
                (origin, "")
            }
            Self::Missing(key) => (manifest(key), ""),
            Self::Extra(key) => (entry(key), ""),
            Self::Field { instance, path, .. } => (manifest(instance), path.as_str()),
        };
        let place = Place {
            length: u32::from(origin.line > 0),
            origin,
            path: path.to_owned(),
        };
        Diagnostic::new(&codes::STALE, place, self.to_string())
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLock => f.write_str("there is no selu.lock yet"),
            Self::Missing(key) => write!(f, "`{key}` is in the directory but not in the lock"),
            Self::Extra(key) => write!(f, "`{key}` is in the lock but not in the directory"),
            Self::Field {
                instance,
                path,
                old,
                new,
            } => {
                let path = shown(path);
                match (old.as_deref().map(shown), new.as_deref().map(shown)) {
                    (Some(old), Some(new)) => write!(
                        f,
                        "`{instance}`: {path} is `{old}` in the lock but `{new}` in the directory"
                    ),
                    (None, Some(new)) => write!(
                        f,
                        "`{instance}`: {path} is `{new}` in the directory but not in the lock"
                    ),
                    (Some(old), None) => write!(
                        f,
                        "`{instance}`: {path} is `{old}` in the lock but not in the directory"
                    ),
                    (None, None) => write!(f, "`{instance}`: {path} differs"),
                }
            }
        }
    }
}

/// Every difference between what the lock says and what the directory says. What only an engine, a registry or a live
/// capability knows is not compared where the plan does not know it.
pub fn stale(lock: Option<&Lock>, plan: &Plan) -> Vec<Stale> {
    let Some(lock) = lock else {
        return vec![Stale::NoLock];
    };
    let keys: BTreeSet<&InstanceKey> = lock.instances.keys().chain(plan.instances.keys()).collect();
    let mut reasons = Vec::new();
    for key in keys {
        match (lock.instances.get(key), plan.instances.get(key)) {
            (None, Some(_)) => reasons.push(Stale::Missing(key.clone())),
            (Some(_), None) => reasons.push(Stale::Extra(key.clone())),
            (Some(locked), Some(planned)) => {
                let mut compare = Compare {
                    instance: key,
                    reasons: &mut reasons,
                };
                compare.instances(locked, &LockedInstance::from_plan(planned));
            }
            (None, None) => {}
        }
    }
    reasons
}

/// Every difference between two locks, by instance; in [`Stale`]'s terms the second is the directory. Which credentials were
/// present at a discovery, and what its tools recommended, is no difference of meaning.
pub fn differences(old: &Lock, new: &Lock) -> Vec<Stale> {
    let keys: BTreeSet<&InstanceKey> = old.instances.keys().chain(new.instances.keys()).collect();
    let mut reasons = Vec::new();
    for key in keys {
        match (old.instances.get(key), new.instances.get(key)) {
            (None, Some(_)) => reasons.push(Stale::Missing(key.clone())),
            (Some(_), None) => reasons.push(Stale::Extra(key.clone())),
            (Some(old), Some(new)) => {
                let mut compare = Compare {
                    instance: key,
                    reasons: &mut reasons,
                };
                compare.instances(old, new);
            }
            (None, None) => {}
        }
    }
    reasons
}

/// Compares one instance, field by field; every type is taken apart without `..` (house rule 7).
struct Compare<'a> {
    instance: &'a InstanceKey,
    reasons: &'a mut Vec<Stale>,
}

impl Compare<'_> {
    fn differ(&mut self, path: impl Into<String>, old: Option<String>, new: Option<String>) {
        if old != new {
            self.reasons.push(Stale::Field {
                instance: self.instance.clone(),
                path: path.into(),
                old,
                new,
            });
        }
    }

    fn text(&mut self, path: impl Into<String>, old: &impl ToString, new: &impl ToString) {
        self.differ(path, Some(old.to_string()), Some(new.to_string()));
    }

    fn instances(&mut self, old: &LockedInstance, new: &LockedInstance) {
        let LockedInstance {
            image,
            class,
            filesystem,
            cache,
            sharing,
            limits,
            network,
            credentials,
            prompts,
            discovery,
            tools,
        } = old;
        self.images(image, &new.image);
        self.text("class", &class_word(*class), &class_word(new.class));
        self.text(
            "filesystem",
            &filesystem_word(*filesystem),
            &filesystem_word(new.filesystem),
        );
        self.text("cache", cache, &new.cache);
        self.sharing(sharing, &new.sharing);
        self.limits(limits, &new.limits);
        self.network(network, &new.network);
        self.credentials(credentials, &new.credentials);
        for name in both(prompts, &new.prompts) {
            self.differ(
                format!("prompt.{name}"),
                prompts.get(name).cloned(),
                new.prompts.get(name).cloned(),
            );
        }
        self.discovery(discovery.as_ref(), new.discovery.as_ref());
        for name in both(tools, &new.tools) {
            match (tools.get(name), new.tools.get(name)) {
                (Some(old), Some(new)) => self.tools(name, old, new),
                (old, new) => {
                    let word =
                        |tool: Option<&LockedTool>| tool.map(|t| origin_word(t.source).to_owned());
                    self.differ(format!("tool.{name}"), word(old), word(new));
                }
            }
        }
    }

    fn images(&mut self, old: &LockedImage, new: &LockedImage) {
        let LockedImage {
            written,
            kind,
            digest,
            source,
        } = old;
        self.text("image.written", written, &new.written);
        // Nobody was asked: what the directory says of the image is its name.
        if new.kind == ImageKind::Unknown {
            return;
        }
        self.text("image.kind", &kind_word(*kind), &kind_word(new.kind));
        if *kind != new.kind {
            return;
        }
        if new.digest.is_some() || new.source.is_some() {
            self.differ("image.digest", digest.clone(), new.digest.clone());
            self.differ("image.source", source.clone(), new.source.clone());
        }
    }

    fn sharing(&mut self, old: &Sharing, new: &Sharing) {
        let Sharing {
            mode,
            max_concurrent,
            idle_timeout_seconds,
        } = old;
        self.text(
            "sharing.mode",
            &sharing_word(*mode),
            &sharing_word(new.mode),
        );
        self.text(
            "sharing.max_concurrent",
            max_concurrent,
            &new.max_concurrent,
        );
        self.text(
            "sharing.idle_timeout_seconds",
            idle_timeout_seconds,
            &new.idle_timeout_seconds,
        );
    }

    fn limits(&mut self, old: &Limits, new: &Limits) {
        let Limits {
            memory_mb,
            nano_cpus,
            cpu_seconds,
            pids,
        } = old;
        self.text("limits.memory_mb", memory_mb, &new.memory_mb);
        self.text("limits.nano_cpus", nano_cpus, &new.nano_cpus);
        self.text("limits.cpu_seconds", cpu_seconds, &new.cpu_seconds);
        self.text("limits.pids", pids, &new.pids);
    }

    fn network(&mut self, old: &Network, new: &Network) {
        let Network { mode, hosts } = old;
        self.text("network.mode", &mode_word(*mode), &mode_word(new.mode));
        let old: BTreeSet<&String> = hosts.iter().collect();
        let new: BTreeSet<&String> = new.hosts.iter().collect();
        for host in old.symmetric_difference(&new) {
            let side = |hosts: &BTreeSet<&String>| hosts.contains(host).then(|| (*host).clone());
            self.differ("network.hosts", side(&old), side(&new));
        }
    }

    fn credentials(
        &mut self,
        old: &BTreeMap<String, LockedCredential>,
        new: &BTreeMap<String, LockedCredential>,
    ) {
        for name in both(old, new) {
            match (old.get(name), new.get(name)) {
                (Some(old), Some(new)) => {
                    let LockedCredential { scope, required } = old;
                    self.text(
                        format!("credential.{name}.scope"),
                        &scope_word(*scope),
                        &scope_word(new.scope),
                    );
                    self.text(
                        format!("credential.{name}.required"),
                        required,
                        &new.required,
                    );
                }
                (old, new) => {
                    let word =
                        |c: Option<&LockedCredential>| c.map(|c| scope_word(c.scope).to_owned());
                    self.differ(format!("credential.{name}"), word(old), word(new));
                }
            }
        }
    }

    fn discovery(&mut self, old: Option<&LockedDiscovery>, new: Option<&LockedDiscovery>) {
        let tool = |discovery: &LockedDiscovery| {
            let LockedDiscovery {
                tool,
                // Known to a live discovery only.
                credentials_present: _,
            } = discovery;
            tool.clone()
        };
        self.differ("discovery.tool", old.map(tool), new.map(tool));
    }

    fn tools(&mut self, name: &str, old: &LockedTool, new: &LockedTool) {
        let LockedTool {
            source,
            policy,
            policy_origin,
            // A discovered tool's recommendation is known to a live discovery only.
            recommended: _,
            description,
            input_schema,
            terminal_on_success,
        } = old;
        let at = |field: &str| format!("tool.{name}.{field}");
        self.text(
            at("source"),
            &origin_word(*source),
            &origin_word(new.source),
        );
        self.text(at("policy"), policy, &new.policy);
        self.text(
            at("policy_origin"),
            &policy_origin_word(*policy_origin),
            &policy_origin_word(new.policy_origin),
        );
        self.text(at("description"), description, &new.description);
        for change in value_changes(input_schema, &new.input_schema) {
            self.differ(
                format!("{}{}", at("input_schema"), change.pointer),
                change.old.map(|value| value.to_string()),
                change.new.map(|value| value.to_string()),
            );
        }
        self.text(
            at("terminal_on_success"),
            terminal_on_success,
            &new.terminal_on_success,
        );
    }
}

/// The names of both sides, sorted.
fn both<'a, T>(old: &'a BTreeMap<String, T>, new: &'a BTreeMap<String, T>) -> BTreeSet<&'a String> {
    old.keys().chain(new.keys()).collect()
}
