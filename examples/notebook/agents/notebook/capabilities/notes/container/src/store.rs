//! Notes on disk: one file a note, all in one folder.
//!
//! A name is checked and never repaired: what could leave the folder is refused before a path is made of it. A note is
//! written beside its place and renamed into it, so a reader sees the old text or the new one, never a part.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Longest name, in characters, all of them ASCII.
pub(crate) const NAME_LENGTH: usize = 80;
/// Largest note, in bytes.
pub(crate) const NOTE_BYTES: usize = 256 * 1024;
/// The ending of a note's file.
const ENDING: &str = ".txt";
/// The file that the next note is written to. Names begin with a letter or digit, so no note is called that. One name
/// suffices: the capability is exclusive, and its calls come one at a time.
const DRAFT: &str = ".draft";

/// Why a note could not be stored, read or removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The name breaks the rule.
    #[error(
        "`{}` is no name for a note: 1 to {NAME_LENGTH} letters, digits, spaces, `-` and `_`, \
         the first one a letter or digit, the last one no space",
        .0.escape_debug()
    )]
    Name(String),
    /// There is no such note.
    #[error("there is no note `{0}`")]
    Missing(String),
    /// The text is longer than [`NOTE_BYTES`].
    #[error("the text has {0} bytes; a note holds {NOTE_BYTES}")]
    TooLong(usize),
    /// Under a note's name stands something that is no plain file.
    #[error("`{0}` is not a plain file and is left alone")]
    NotAFile(String),
    /// The file system refused.
    #[error("the workspace cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// A folder of notes.
pub(crate) struct Store {
    folder: PathBuf,
}

impl Store {
    /// Notes in `folder`, which exists.
    pub(crate) fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Writes a note whole; says whether it replaced one.
    pub(crate) fn save(&self, name: &str, text: &str) -> Result<bool, StoreError> {
        let place = self.place(name)?;
        if text.len() > NOTE_BYTES {
            return Err(StoreError::TooLong(text.len()));
        }
        let replaced = exists(&place, name)?;
        let draft = self.folder.join(DRAFT);
        // A draft that a killed server left behind is no note: it is written anew. Removing it first means that nothing
        // that somebody put there is followed.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = File::create_new(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, &place)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(replaced)
    }

    /// A note's text.
    pub(crate) fn read(&self, name: &str) -> Result<String, StoreError> {
        let place = self.place(name)?;
        if !exists(&place, name)? {
            return Err(StoreError::Missing(name.to_owned()));
        }
        Ok(fs::read_to_string(place)?)
    }

    /// Removes a note.
    pub(crate) fn delete(&self, name: &str) -> Result<(), StoreError> {
        let place = self.place(name)?;
        if !exists(&place, name)? {
            return Err(StoreError::Missing(name.to_owned()));
        }
        Ok(fs::remove_file(place)?)
    }

    /// Names of all notes, sorted.
    pub(crate) fn names(&self) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let file = entry?.file_name();
            // What is not ours by its name (a draft, something that was put there from outside) is no note.
            if let Some(name) = file.to_str().and_then(|file| file.strip_suffix(ENDING))
                && is_name(name)
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn place(&self, name: &str) -> Result<PathBuf, StoreError> {
        if is_name(name) {
            Ok(self.folder.join(format!("{name}{ENDING}")))
        } else {
            Err(StoreError::Name(name.to_owned()))
        }
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_');
    (1..=NAME_LENGTH).contains(&name.len())
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.ends_with(' ')
}

/// Whether a note is there; a link or a folder under its name is an error and is not followed.
fn exists(place: &Path, name: &str) -> Result<bool, StoreError> {
    match fs::symlink_metadata(place) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(_) => Err(StoreError::NotAFile(name.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        (folder, store)
    }

    #[test]
    fn a_note_is_saved_replaced_read_and_deleted() {
        let (_folder, store) = store();
        assert!(!store.save("Shopping list", "milk").unwrap());
        assert!(store.save("Shopping list", "milk\nbread ä").unwrap());
        assert_eq!(store.read("Shopping list").unwrap(), "milk\nbread ä");
        assert_eq!(store.names().unwrap(), ["Shopping list"]);
        store.delete("Shopping list").unwrap();
        assert!(matches!(
            store.read("Shopping list"),
            Err(StoreError::Missing(_))
        ));
        assert!(matches!(
            store.delete("Shopping list"),
            Err(StoreError::Missing(_))
        ));
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let (folder, store) = store();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(folder.path().join("secret.txt"), "outside").unwrap();
        let inside = Store::new(&inner);
        let long = "x".repeat(NAME_LENGTH + 1);
        for name in [
            "../secret",
            "..",
            ".",
            "",
            "/etc/passwd",
            "a/b",
            "a\\b",
            ".draft",
            "a\0b",
            " a",
            "a ",
            "ä",
            &long,
        ] {
            assert!(
                matches!(inside.read(name), Err(StoreError::Name(_))),
                "{name:?}"
            );
            assert!(
                matches!(inside.save(name, "x"), Err(StoreError::Name(_))),
                "{name:?}"
            );
            assert!(
                matches!(inside.delete(name), Err(StoreError::Name(_))),
                "{name:?}"
            );
        }
        assert_eq!(store.read("secret").unwrap(), "outside");
        assert!(inside.names().unwrap().is_empty());
    }

    #[test]
    fn a_link_under_a_notes_name_is_not_followed() {
        let (folder, store) = store();
        let target = folder.path().join("target");
        fs::write(&target, "outside").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("trap.txt")).unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join(DRAFT)).unwrap();
        assert!(matches!(store.read("trap"), Err(StoreError::NotAFile(_))));
        assert!(matches!(
            store.save("trap", "x"),
            Err(StoreError::NotAFile(_))
        ));
        store.save("plain", "x").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "outside");
    }

    #[test]
    fn a_failed_write_leaves_the_old_text() {
        let (folder, store) = store();
        store.save("plan", "old").unwrap();
        // A folder in the draft's place is what `save` cannot write to, whoever runs this test.
        fs::create_dir(folder.path().join(DRAFT)).unwrap();
        assert!(matches!(store.save("plan", "new"), Err(StoreError::Io(_))));
        assert_eq!(store.read("plan").unwrap(), "old");
    }

    #[test]
    fn a_text_that_is_too_long_is_refused_with_both_numbers() {
        let (_folder, store) = store();
        let error = store
            .save("big", &"x".repeat(NOTE_BYTES + 1))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("262145") && error.contains("262144"),
            "{error}"
        );
        assert!(store.names().unwrap().is_empty());
    }
}
