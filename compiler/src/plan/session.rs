//! Containers of sessions and users (X2, X3): the planned resident under another name, in a network and with volumes of
//! its own.

use ipnet::Ipv4Net;
use sha2::{Digest, Sha256};

use super::{PlannedContainer, PlannedInstance, PlannedNetwork, hash, label, names};
use crate::model::{CredentialScope, InstanceKey, SharingMode};

/// What a session's container has as its role.
pub const ROLE: &str = "session";

/// The longest name of a user or a session, in bytes.
const LONGEST: usize = 128;

/// Whose container it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// Whose values its calls carry; empty for nobody's.
    pub user: String,
    /// The session, `default` where none was named.
    pub session: String,
}

/// Why a name is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name of a {what} has 1 to {LONGEST} bytes, no control characters and no blanks at its ends"
)]
pub struct BadName {
    /// `user` or `session`.
    pub what: &'static str,
}

impl Who {
    /// Who gets a container of his own (X1, X2); `None` for whoever is served by the resident.
    pub fn of(
        instance: &PlannedInstance,
        user: Option<&str>,
        session: Option<&str>,
    ) -> Result<Option<Self>, BadName> {
        check("user", user)?;
        check("session", session)?;
        let session = session.unwrap_or(names::RESIDENT_SESSION);
        let user = user.unwrap_or_default();
        let values_of_users = instance
            .credentials
            .iter()
            .any(|credential| credential.scope == CredentialScope::User);
        let session = match instance.sharing.mode {
            // C5: one user's values never meet another's.
            SharingMode::Shared if values_of_users && !user.is_empty() => names::RESIDENT_SESSION,
            SharingMode::Shared => return Ok(None),
            SharingMode::Exclusive => session,
        };
        let resident = user.is_empty() && session == names::RESIDENT_SESSION;
        Ok((!resident).then(|| Self {
            user: user.to_owned(),
            session: session.to_owned(),
        }))
    }

    /// Reads the labels of a session's container.
    pub fn of_labels(labels: &std::collections::BTreeMap<String, String>) -> Option<Self> {
        if labels.get(label::ROLE).is_none_or(|role| role != ROLE) {
            return None;
        }
        Some(Self {
            user: labels.get(label::USER)?.clone(),
            session: labels.get(label::SESSION)?.clone(),
        })
    }

    /// The name of its container and network. No resident has such a name: those have one part more.
    pub fn container_name(&self, project: &str, instance: &InstanceKey) -> String {
        let mut digest = Sha256::new();
        for part in [project, instance.as_str(), &self.user, &self.session] {
            // The length in front keeps ("a", "bc") and ("ab", "c") apart (S3).
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        let digest = digest.finalize();
        format!("selu_{project}_session_{}", hash::hex(&digest[..16]))
    }
}

fn check(what: &'static str, name: Option<&str>) -> Result<(), BadName> {
    let fits = |name: &str| {
        !name.is_empty()
            && name.len() <= LONGEST
            && name.trim() == name
            && !name.chars().any(char::is_control)
    };
    match name {
        Some(name) if !fits(name) => Err(BadName { what }),
        _ => Ok(()),
    }
}

/// A session's container in a subnet, as the resident is planned. Its spec label is the resident's hash: it says what the
/// session was made from.
pub fn container(
    project: &str,
    instance: &InstanceKey,
    resident: &PlannedContainer,
    who: &Who,
    subnet: Ipv4Net,
) -> PlannedContainer {
    let Who { user, session } = who;
    let name = who.container_name(project, instance);
    let network = PlannedNetwork::new(name.clone(), subnet);
    let mut volumes = resident.volumes.clone();
    let mut spec = resident.spec.clone();
    for (path, volume) in &mut volumes {
        // A cache is the user's, a workspace the session's (X3).
        let session = match volume.purpose.as_str() {
            "cache" => "",
            _ => session,
        };
        volume.name = names::volume(project, instance, user, session, path);
        spec.volumes.insert(path.clone(), volume.name.clone());
    }
    // A shared capability is told that it is shared instead (W5).
    if let Some(told) = spec.env.get_mut("SELU_SESSION_ID") {
        told.clone_from(session);
    }
    spec.dns = vec![network.gateway];
    let labels = &mut spec.labels;
    labels.remove(label::GENERATION);
    labels.insert(label::ROLE.to_owned(), ROLE.to_owned());
    labels.insert(label::USER.to_owned(), user.clone());
    labels.insert(label::SESSION.to_owned(), session.clone());
    PlannedContainer {
        generation: 0,
        name,
        network,
        volumes,
        spec,
        spec_hash: resident.spec_hash.clone(),
    }
}

#[cfg(test)]
mod tests;
