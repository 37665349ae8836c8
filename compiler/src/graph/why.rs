//! What uses a host, a credential, an image.

use std::collections::BTreeSet;

use serde::Serialize;

use super::ANY;
use crate::check::network::host::{self, Entry, Host};
use crate::model::{CredentialScope, InstanceKey, NetworkMode, Origin};
use crate::plan::{Plan, PlannedInstance};

/// One use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Use {
    /// Who uses it.
    pub instance: InstanceKey,
    /// As what.
    pub role: Role,
    /// Its manifest.
    pub origin: Origin,
}

/// What something is to an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "as", rename_all = "lowercase")]
pub enum Role {
    /// It may be reached.
    Host {
        /// By this entry of `network.hosts`, or by `mode: any`.
        rule: String,
        /// Also at a private address, by selu.toml (N8).
        private: bool,
    },
    /// It is handed over.
    Credential {
        /// One value for all, or one per user.
        scope: CredentialScope,
        /// Whether nothing runs without it.
        required: bool,
    },
    /// It runs.
    Image {
        /// As the manifest has it.
        written: String,
        /// What it is pinned to, where that is known.
        digest: Option<String>,
    },
}

/// Every use of a host, a credential, an image of this name. A host may have a port; an image may be named as it is
/// written, without tag, or by its digest.
pub fn why(plan: &Plan, name: &str) -> Vec<Use> {
    let asked = Asked {
        name,
        host: host::parse(name).ok(),
    };
    let mut uses = Vec::new();
    for (key, instance) in &plan.instances {
        let found = asked.in_instance(instance);
        uses.extend(found.into_iter().map(|role| Use {
            instance: key.clone(),
            role,
            origin: instance.origin.clone(),
        }));
    }
    uses
}

/// Every name that would find something, for a suggestion.
pub fn names(plan: &Plan) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for instance in plan.instances.values() {
        names.insert(instance.image.written.clone());
        names.insert(untagged(&instance.image.written).to_owned());
        names.extend(instance.credentials.iter().map(|one| one.name.clone()));
        names.extend(instance.network_rules.hosts.iter().cloned());
    }
    names
}

struct Asked<'a> {
    name: &'a str,
    host: Option<Entry>,
}

impl Asked<'_> {
    fn in_instance(&self, instance: &PlannedInstance) -> Vec<Role> {
        let mut roles = Vec::new();
        let image = &instance.image;
        let is_image = self.name == image.written
            || self.name == untagged(&image.written)
            || [&image.digest, &image.source, &image.reference]
                .into_iter()
                .any(|one| one.as_deref() == Some(self.name));
        if is_image {
            roles.push(Role::Image {
                written: image.written.clone(),
                digest: image.digest.clone(),
            });
        }
        for credential in instance
            .credentials
            .iter()
            .filter(|one| one.name == self.name)
        {
            roles.push(Role::Credential {
                scope: credential.scope,
                required: credential.required,
            });
        }
        roles.extend(self.reached(instance));
        roles
    }

    fn reached(&self, instance: &PlannedInstance) -> Vec<Role> {
        let Some(asked) = &self.host else {
            return Vec::new();
        };
        let private = instance.private.iter().any(|entry| covers(entry, asked));
        let rules = &instance.network_rules;
        let rules: Vec<String> = match rules.mode {
            NetworkMode::None => Vec::new(),
            // A bare address is no name (N9), and a word without a dot is no public one.
            NetworkMode::Any => match &asked.host {
                Host::Name(name) if name.contains('.') => vec![ANY.to_owned()],
                Host::Name(_) | Host::Below(_) | Host::Address(_) => Vec::new(),
            },
            NetworkMode::Allowlist => {
                let hosts = rules.hosts.iter();
                hosts.filter(|rule| covers(rule, asked)).cloned().collect()
            }
        };
        rules
            .into_iter()
            .map(|rule| Role::Host { rule, private })
            .collect()
    }
}

/// Whether a rule lets any of what was asked for through: without a port, on whichever port the rule has.
fn covers(rule: &str, asked: &Entry) -> bool {
    let Ok(rule) = Entry::parse_normalised(rule) else {
        return false;
    };
    let asked = Entry {
        host: asked.host.clone(),
        port: asked.port.or(rule.port),
    };
    rule.covers(&asked)
}

/// An image without tag and digest.
fn untagged(written: &str) -> &str {
    let name = written.split('@').next().unwrap_or(written);
    match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => path,
        _ => name,
    }
}
