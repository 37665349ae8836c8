//! Which discoveries are due: `.selu/discovery.json` (D4).
//!
//! An instance is noted before its container is made or replaced, and struck out once it was discovered. So a failure,
//! and also a kill in between, is found by the next apply, which then discovers although nothing else is to do.

use std::collections::BTreeMap;
use std::{fs, io};

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::model::InstanceKey;
use serde::{Deserialize, Serialize};

use crate::state::{self, FOLDER};

/// Version of the file.
const VERSION: u32 = 1;

/// Why the journal could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system refused.
    #[error("{path} could not be {verb}")]
    Io {
        /// Which file.
        path: Utf8PathBuf,
        /// `read` or `written`.
        verb: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Not what this program writes.
    #[error(
        "{path} is damaged; remove it, and the next apply discovers again what it finds missing"
    )]
    Malformed {
        /// Which file.
        path: Utf8PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// Another version of this program wrote it.
    #[error(
        "{path} has version {found} and this selu knows {VERSION}; remove it, and the next apply discovers again what it \
         finds missing"
    )]
    Version {
        /// Which file.
        path: Utf8PathBuf,
        /// What it says.
        found: u32,
    },
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: u32,
    due: BTreeMap<InstanceKey, String>,
}

/// The journal of one project, over all engines that it is applied to.
#[derive(Debug)]
pub struct Journal {
    folder: Utf8PathBuf,
    due: BTreeMap<InstanceKey, String>,
}

impl Journal {
    /// Reads it; a project that has none has nothing due.
    pub fn load(root: &Utf8Path) -> Result<Self, JournalError> {
        let folder = root.join(FOLDER);
        let path = folder.join("discovery.json");
        let due = match fs::read(&path) {
            Ok(bytes) => {
                let wire: Wire =
                    serde_json::from_slice(&bytes).map_err(|source| JournalError::Malformed {
                        path: path.clone(),
                        source,
                    })?;
                let Wire { version, due } = wire;
                if version != VERSION {
                    return Err(JournalError::Version {
                        path,
                        found: version,
                    });
                }
                due
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => {
                return Err(JournalError::Io {
                    path,
                    verb: "read",
                    source,
                });
            }
        };
        Ok(Self { folder, due })
    }

    /// Why an instance's discovery is due, if it is.
    pub fn due(&self, instance: &InstanceKey) -> Option<&str> {
        self.due.get(instance).map(String::as_str)
    }

    /// Notes an instance; `why` has no secrets in it.
    pub fn note(&mut self, instance: &InstanceKey, why: &str) {
        self.due.insert(instance.clone(), why.to_owned());
    }

    /// Strikes an instance out.
    pub fn settle(&mut self, instance: &InstanceKey) {
        self.due.remove(instance);
    }

    /// Forgets instances that are not in the project any more.
    pub fn keep(&mut self, known: impl Fn(&InstanceKey) -> bool) {
        self.due.retain(|instance, _| known(instance));
    }

    /// Writes it; an empty one that was never there stays away.
    pub fn save(&self) -> Result<(), JournalError> {
        let path = self.folder.join("discovery.json");
        if self.due.is_empty() && !path.exists() {
            return Ok(());
        }
        let wire = Wire {
            version: VERSION,
            due: self.due.clone(),
        };
        let write = || {
            state::prepare(&self.folder)?;
            let mut bytes = serde_json::to_vec_pretty(&wire)?;
            bytes.push(b'\n');
            crate::lockfile::replace(&path, &bytes)
        };
        write().map_err(|source| JournalError::Io {
            path: path.clone(),
            verb: "written",
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_version_does_not_write_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs::create_dir(root.join(FOLDER)).unwrap();
        for text in ["{", r#"{"version": 2, "due": {}}"#] {
            fs::write(root.join(".selu/discovery.json"), text).unwrap();
            let error = Journal::load(root).unwrap_err().to_string();
            assert!(error.contains("remove it"), "{error}");
        }
    }

    #[test]
    fn what_was_noted_is_due_until_it_is_settled_and_git_never_sees_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let key = InstanceKey::new("a", "b");

        Journal::load(root).unwrap().save().unwrap();
        assert!(!root.join(FOLDER).exists(), "nothing due, nothing written");

        let mut journal = Journal::load(root).unwrap();
        journal.note(&key, "it broke");
        journal.save().unwrap();
        assert_eq!(
            fs::read_to_string(root.join(".selu/.gitignore")).unwrap(),
            "*\n"
        );

        let mut journal = Journal::load(root).unwrap();
        assert_eq!(journal.due(&key), Some("it broke"));
        journal.settle(&key);
        journal.save().unwrap();
        assert_eq!(Journal::load(root).unwrap().due(&key), None);
    }

    #[test]
    fn another_version_is_not_read_as_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs::create_dir(root.join(FOLDER)).unwrap();
        let file = root.join(".selu/discovery.json");
        fs::write(&file, r#"{"version":1,"due":{}}"#).unwrap();
        Journal::load(root).unwrap();
        fs::write(&file, r#"{"version":2,"due":{}}"#).unwrap();
        let message = Journal::load(root).unwrap_err().to_string();
        assert!(message.contains("version 2"), "{message}");
    }
}
