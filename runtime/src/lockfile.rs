//! selu.lock and the project's own state on disk: read whole, replaced whole, left alone when nothing changed
//! (product.md 23).

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::lock::Lock;
use selu_compiler::lock::LockError;

/// The lock's name in a project.
pub const NAME: &str = "selu.lock";

/// A lock as it is on disk.
#[derive(Debug)]
pub struct LockFile {
    path: Utf8PathBuf,
    text: Option<String>,
    lock: Option<Lock>,
}

/// Why the lock could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LockFileError {
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
    /// Its text is not a lock.
    #[error("{path} is not a lock that this version reads")]
    Malformed {
        /// Which file.
        path: Utf8PathBuf,
        /// Where and why.
        source: LockError,
    },
}

impl LockFile {
    /// Reads the lock of a project, if there is one.
    pub fn load(root: &Utf8Path) -> Result<Self, LockFileError> {
        let path = root.join(NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => {
                return Err(LockFileError::Io {
                    path,
                    verb: "read",
                    source,
                });
            }
        };
        let lock = match text.as_deref().map(Lock::read).transpose() {
            Ok(lock) => lock,
            Err(source) => return Err(LockFileError::Malformed { path, source }),
        };
        Ok(Self { path, text, lock })
    }

    /// Puts a lock in the place of a text that is none, such as one with conflict markers; its line ends stay.
    pub fn settle(root: &Utf8Path, text: &str, lock: &Lock) -> Result<(), LockFileError> {
        let path = root.join(NAME);
        replace(&path, lock.write(Some(text)).as_bytes()).map_err(|source| LockFileError::Io {
            path,
            verb: "written",
            source,
        })
    }

    /// What it says.
    pub fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    /// Its text, if there is one.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Where it is.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The project's folder.
    pub fn root(&self) -> &Utf8Path {
        let folder = self.path.parent();
        folder
            .filter(|folder| !folder.as_str().is_empty())
            .unwrap_or(Utf8Path::new("."))
    }

    /// Whether writing `lock` would change the file.
    pub fn differs(&self, lock: &Lock) -> bool {
        Some(lock.write(self.text.as_deref())) != self.text
    }

    /// Writes a lock in its place; `false` if the file says that already and was left alone.
    pub fn save(&self, lock: &Lock) -> Result<bool, LockFileError> {
        let text = lock.write(self.text.as_deref());
        if self.text.as_ref() == Some(&text) {
            return Ok(false);
        }
        replace(&self.path, text.as_bytes()).map_err(|source| LockFileError::Io {
            path: self.path.clone(),
            verb: "written",
            source,
        })?;
        Ok(true)
    }
}

/// Writes a file that is for its owner's eyes alone, as a whole. What is there and is no file is not replaced.
pub fn write_private(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let message = "there is something that is not a file";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        Ok(_) => fs::set_permissions(path, fs::Permissions::from_mode(PRIVATE))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    replace_with(path, bytes, Some(PRIVATE))
}

/// Writes a file that everyone may read, as a whole.
pub fn write_public(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, bytes, Some(0o644))
}

/// Replaces a file as a whole: whoever reads it sees the old text or the new one, also after a crash.
pub fn replace(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, bytes, None)
}

/// Of a file that only its owner may read and write.
const PRIVATE: u32 = 0o600;

fn replace_with(path: &Utf8Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    // A lock that is a symbolic link stays one.
    let path = match path.canonicalize_utf8() {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_str().is_empty() => folder,
        _ => Utf8Path::new("."),
    };
    // One fixed name: what a crash left behind is gone after the next write.
    let temporary = folder.join(format!(".{}.tmp", path.file_name().unwrap_or(NAME)));
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write_new(&temporary, &path, bytes, mode);
    if written.is_err() {
        // The first error is the one that explains; the leftover is removed next time if not now.
        let _ = fs::remove_file(&temporary);
        return written;
    }
    fs::File::open(folder)?.sync_all()
}

fn write_new(
    temporary: &Utf8Path,
    path: &Utf8Path,
    bytes: &[u8],
    mode: Option<u32>,
) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    if let Some(mode) = mode {
        options.mode(mode);
    }
    let mut file = options.open(temporary)?;
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        (folder, path)
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_leaves_no_temporary_one() {
        let (_guard, folder) = folder();
        let path = folder.join(NAME);
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(folder.join(".selu.lock.tmp"), "left by a crash").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn a_private_file_is_its_owners_alone_even_where_another_one_was() {
        let (_guard, folder) = folder();
        let path = folder.join("plan.json");
        for _ in 0..2 {
            write_private(&path, b"plan").unwrap();
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert!(write_private(&folder, b"plan").is_err(), "a folder");
        assert!(write_private(Utf8Path::new("/dev/null"), b"plan").is_err());
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_text() {
        let (_guard, folder) = folder();
        let path = folder.join(NAME);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), "x").unwrap();
        assert!(replace(&path, b"new").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_lock_is_none_and_an_unreadable_one_is_an_error() {
        let (_guard, folder) = folder();
        assert!(LockFile::load(&folder).unwrap().lock().is_none());
        fs::create_dir(folder.join(NAME)).unwrap();
        let error = LockFile::load(&folder).unwrap_err();
        assert!(matches!(error, LockFileError::Io { verb: "read", .. }));
    }
}
