//! Definitions of tools that wait for a person: `.selu/waiting.lock` (D3). It belongs to one working copy: whoever accepts
//! them writes selu.lock, which is committed and reviewed.

use std::{fs, io};

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::lock::{Lock, LockError, Merged};

use crate::state::{self, FOLDER};

/// Why the file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum WaitingError {
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
    #[error("{path} is damaged; remove it, and the next discovery finds again what waits")]
    Malformed {
        /// Which file.
        path: Utf8PathBuf,
        /// Where and why.
        source: LockError,
    },
}

/// What waits in one project.
#[derive(Debug)]
pub struct Waiting {
    folder: Utf8PathBuf,
    lock: Lock,
}

impl Waiting {
    /// Reads it, without what selu.lock, as it is now, says already.
    ///
    /// # Errors
    /// When there is a file that can't be read.
    pub fn load(root: &Utf8Path, lock: Option<&Lock>) -> Result<Self, WaitingError> {
        let folder = root.join(FOLDER);
        let path = file(&folder);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let lock = Lock::default();
                return Ok(Self { folder, lock });
            }
            Err(source) => {
                let verb = "read";
                return Err(WaitingError::Io { path, verb, source });
            }
        };
        match Lock::read(&text) {
            Ok(waiting) => Ok(Self {
                folder,
                lock: waiting.not_in(lock.unwrap_or(&Lock::default())),
            }),
            Err(source) => Err(WaitingError::Malformed { path, source }),
        }
    }

    /// Each instance with the definitions that wait, and nothing else of it that counts.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Takes over what a merge has found.
    pub fn merge(&mut self, merged: &Merged) {
        self.lock = self.lock.waiting_after(merged);
    }

    /// Forgets what a new lock says.
    pub fn accepted_in(&mut self, lock: &Lock) {
        self.lock = self.lock.clone().not_in(lock);
    }

    /// Writes it; where nothing waits there is no file.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn save(&self) -> Result<(), WaitingError> {
        let path = file(&self.folder);
        let write = || {
            if self.lock.instances.is_empty() {
                return match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                };
            }
            let text = self.lock.write(None);
            if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
                return Ok(());
            }
            state::prepare(&self.folder)?;
            crate::lockfile::replace(&path, text.as_bytes())
        };
        write().map_err(|source| WaitingError::Io {
            path: path.clone(),
            verb: "written",
            source,
        })
    }
}

fn file(folder: &Utf8Path) -> Utf8PathBuf {
    folder.join("waiting.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_waits_there_is_no_file_and_a_damaged_one_is_an_error_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let waiting = Waiting::load(root, None).unwrap();
        waiting.save().unwrap();
        assert!(!root.join(FOLDER).exists());
        fs::create_dir(root.join(FOLDER)).unwrap();
        fs::write(file(&root.join(FOLDER)), "version = 1\nx = 1\n").unwrap();
        let error = Waiting::load(root, None).unwrap_err().to_string();
        assert!(error.contains("remove it"), "{error}");
    }
}
