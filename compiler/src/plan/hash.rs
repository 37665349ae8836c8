//! The spec hash: whether a container is the one that the directory asks for (product.md 7).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::ContainerSpec;
use crate::model::{Capability, Credential, CredentialScope, Filesystem, Limits, Network, Sharing};

/// What a spec hash of this version begins with. A hash of another version says nothing: such a container is compared
/// field by field.
pub const VERSION_PREFIX: &str = "v1:";

/// The rules of a container that its settings on the engine cannot show, but that it must be replaced for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRules {
    /// CPU seconds that one call may use.
    pub cpu_seconds: u64,
    /// Egress rules.
    pub network: Network,
    /// Entries that may lead to private addresses.
    pub private: Vec<String>,
    /// What is writable.
    pub filesystem: Filesystem,
    /// Whether `/cache` is kept.
    pub cache: bool,
    /// Exclusive or shared.
    pub sharing: Sharing,
    /// Names and scopes; neither values nor descriptions.
    pub credentials: BTreeMap<String, CredentialScope>,
}

impl RunRules {
    /// The rules of a capability.
    pub fn of(capability: &Capability, private: &[String]) -> Self {
        let Limits {
            memory_mb: _,
            nano_cpus: _,
            cpu_seconds,
            pids: _,
        } = &capability.limits;
        Self {
            cpu_seconds: *cpu_seconds,
            network: capability.network.clone(),
            private: private.to_vec(),
            filesystem: capability.filesystem,
            cache: capability.cache,
            sharing: capability.sharing.clone(),
            credentials: capability
                .credentials
                .iter()
                .map(
                    |Credential {
                         name,
                         scope,
                         required: _,
                         description: _,
                     }| (name.clone(), *scope),
                )
                .collect(),
        }
    }

    /// As the label [`super::label::RULES`] holds it.
    pub fn to_label(&self) -> String {
        canonical(&self.to_value())
    }

    pub(crate) fn to_value(&self) -> Value {
        let Self {
            cpu_seconds,
            network: Network { mode, hosts },
            private,
            filesystem,
            cache,
            sharing:
                Sharing {
                    mode: sharing_mode,
                    max_concurrent,
                    idle_timeout_seconds,
                },
            credentials,
        } = self;
        json!({
            "cpu_seconds": cpu_seconds,
            "network": {"mode": mode, "hosts": set(hosts)},
            "private": set(private),
            "filesystem": filesystem,
            "cache": cache,
            "sharing": {
                "mode": sharing_mode,
                "max_concurrent": max_concurrent,
                "idle_timeout_seconds": idle_timeout_seconds,
            },
            "credentials": credentials,
        })
    }

    /// Reads [`RunRules::to_label`] back; `None` for anything else.
    pub fn from_label(text: &str) -> Option<Self> {
        let mut value: Value = serde_json::from_str(text).ok()?;
        // The canonical form leaves out what is at its default.
        let network = value.get_mut("network")?.as_object_mut()?;
        network.entry("hosts").or_insert_with(|| json!([]));
        let rules = value.as_object_mut()?;
        rules.entry("private").or_insert_with(|| json!([]));
        rules.entry("cache").or_insert_with(|| json!(false));
        rules.entry("credentials").or_insert_with(|| json!({}));
        serde_json::from_value(value).ok()
    }
}

/// `v1:sha256:…` over everything that decides how a container runs. Not in it: labels, and addresses with the resolvers
/// that follow from them, which differ from one generation to the next.
pub fn spec_hash(spec: &ContainerSpec, rules: Option<&RunRules>) -> String {
    hash_with(spec, rules.map(RunRules::to_value))
}

/// The limits that a live container had when it was made, as its label [`super::label::LIMITS`] holds them.
///
/// An engine changes limits in place but no label, so a container whose limits were changed keeps the hash that it was
/// made with. With these it can still be told what that hash covered: `MadeLimits::hash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeLimits {
    /// Bytes.
    pub memory_bytes: u64,
    /// Bytes, memory and swap together.
    pub memory_swap_bytes: u64,
    /// Billionths of a core.
    pub nano_cpus: u64,
    /// Processes and threads.
    pub pids: u64,
}

impl MadeLimits {
    /// The limits of a container that is about to be made.
    pub fn of(spec: &ContainerSpec) -> Self {
        Self {
            memory_bytes: spec.memory_bytes,
            memory_swap_bytes: spec.memory_swap_bytes,
            nano_cpus: spec.nano_cpus,
            pids: spec.pids,
        }
    }

    /// As the label holds it.
    pub fn to_label(self) -> String {
        let Self {
            memory_bytes,
            memory_swap_bytes,
            nano_cpus,
            pids,
        } = self;
        canonical(&json!({
            "memory_bytes": memory_bytes,
            "memory_swap_bytes": memory_swap_bytes,
            "nano_cpus": nano_cpus,
            "pids": pids,
        }))
    }

    /// From a label; `None` for anything that [`Self::to_label`] does not write.
    pub fn from_label(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The hash of what is planned, if it had been made with these limits. `rules` is the planned label
    /// [`super::label::RULES`].
    pub(crate) fn hash(self, planned: &ContainerSpec, rules: Option<&str>) -> Option<String> {
        let Self {
            memory_bytes,
            memory_swap_bytes,
            nano_cpus,
            pids,
        } = self;
        let spec = ContainerSpec {
            memory_bytes,
            memory_swap_bytes,
            nano_cpus,
            pids,
            ..planned.clone()
        };
        let rules = rules.map(serde_json::from_str).transpose().ok()?;
        Some(hash_with(&spec, rules))
    }
}

fn hash_with(spec: &ContainerSpec, rules: Option<Value>) -> String {
    let ContainerSpec {
        image,
        command,
        user,
        env,
        read_only_root,
        cap_drop,
        cap_add,
        no_new_privileges,
        seccomp,
        memory_bytes,
        memory_swap_bytes,
        nano_cpus,
        pids,
        nofile,
        shm_bytes,
        tmpfs,
        volumes,
        sysctls,
        dns: _,
        log_bytes,
        log_files,
        restart,
        labels: _,
    } = spec;
    let value = json!({
        "image": image,
        "command": command,
        "user": user,
        "env": env,
        "read_only_root": read_only_root,
        "cap_drop": set(cap_drop),
        "cap_add": set(cap_add),
        "no_new_privileges": no_new_privileges,
        "seccomp": seccomp,
        "memory_bytes": memory_bytes,
        "memory_swap_bytes": memory_swap_bytes,
        "nano_cpus": nano_cpus,
        "pids": pids,
        "nofile": nofile,
        "shm_bytes": shm_bytes,
        "tmpfs": tmpfs,
        "volumes": volumes,
        "sysctls": sysctls,
        "log_bytes": log_bytes,
        "log_files": log_files,
        "restart": restart,
        "rules": rules,
    });
    format!("{VERSION_PREFIX}{}", sha256(canonical(&value).as_bytes()))
}

/// `sha256:` and hex.
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// The hex alone, for names that are made of it.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn set(items: &[String]) -> BTreeSet<&str> {
    items.iter().map(String::as_str).collect()
}

/// JSON with sorted keys and without members that are null, false or an empty list or object: a field that a later
/// version adds, at its default, changes no hash (G09). An empty string stays: a variable that is set to nothing is set.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            // Sorted here: the map type keeps insertion order if any crate in the build asks for it.
            let sorted: BTreeMap<&String, &Value> = members
                .iter()
                .filter(|(_, member)| !is_default(member))
                .collect();
            out.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_default),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
