//! The folder that builds an image: its files and their hash (product.md 19).
//!
//! What counts: every regular file that `.dockerignore` does not exclude, and `Dockerfile` and `.dockerignore`
//! themselves always. In a capability's own folder (one that holds `manifest.yaml`) the manifest and the prompts do not
//! count: they are no part of the image. Anything that is neither a file nor a folder is refused unless it is excluded.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest, Sha256};

use super::ignore::{Ignore, PatternError};
use super::reader::kind_of;

/// Most files of one folder.
pub const MAX_FILES: usize = 10_000;
/// Most bytes of one folder.
pub const MAX_TOTAL_BYTES: u64 = 256 * 1024 * 1024;

/// A file of a build context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Relative to the folder, with forward slashes.
    pub path: Utf8PathBuf,
    /// Whether its owner may execute it.
    pub executable: bool,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Why a build context cannot be read. Paths are relative to the root.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// A file or folder that cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// Which one.
        path: Utf8PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A link, pipe, socket or device.
    #[error("{path} is {kind}; a build context holds regular files only")]
    NotAFile {
        /// Which one.
        path: Utf8PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// A name that is not UTF-8.
    #[error("{path} holds the name {name}, which is not UTF-8")]
    BadName {
        /// Its folder.
        path: Utf8PathBuf,
        /// The name, escaped.
        name: String,
    },
    /// More than [`MAX_FILES`].
    #[error("{path} holds more than {MAX_FILES} files; exclude some in .dockerignore")]
    TooManyFiles {
        /// The folder.
        path: Utf8PathBuf,
    },
    /// More than [`MAX_TOTAL_BYTES`].
    #[error("{path} holds more than 256 MiB; exclude some in .dockerignore")]
    TooLarge {
        /// The folder.
        path: Utf8PathBuf,
    },
    /// A line of `.dockerignore` that is no pattern.
    #[error("{path}, line {line}: {reason}")]
    BadPattern {
        /// The `.dockerignore`.
        path: Utf8PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

impl ContextError {
    /// The file or folder at fault, relative to the root.
    pub fn path(&self) -> &Utf8Path {
        match self {
            Self::Unreadable { path, .. }
            | Self::NotAFile { path, .. }
            | Self::BadName { path, .. }
            | Self::TooManyFiles { path }
            | Self::TooLarge { path }
            | Self::BadPattern { path, .. } => path,
        }
    }
}

/// The files of a build context, sorted by path. `folder` is relative to `root`.
///
/// # Errors
/// If anything in the folder cannot be part of a build context.
pub fn container_files(
    root: &Utf8Path,
    folder: &Utf8Path,
) -> Result<Vec<ContextFile>, ContextError> {
    let top = root.join(folder);
    let ignore_file = folder.join(".dockerignore");
    let ignore = match fs::read_to_string(top.join(".dockerignore")) {
        Ok(text) => Ignore::parse(&text).map_err(|PatternError { line, reason }| {
            ContextError::BadPattern {
                path: ignore_file.clone(),
                line,
                reason,
            }
        })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ignore::default(),
        Err(source) => {
            return Err(ContextError::Unreadable {
                path: ignore_file,
                source,
            });
        }
    };
    let mut walk = Walk {
        folder,
        top: &top,
        ignore,
        own_folder: top.join("manifest.yaml").exists(),
        bytes: 0,
        files: Vec::new(),
    };
    walk.folder(Utf8Path::new(""))?;
    walk.files
        .sort_by(|a, b| a.path.as_str().cmp(b.path.as_str()));
    Ok(walk.files)
}

/// `sha256:` and hex over the files: path, mode (0755 or 0644) and content of each, every part after its length as
/// eight bytes, least first, in the order of the paths' bytes.
pub fn folder_hash(files: &[ContextFile]) -> String {
    let mut sorted: Vec<&ContextFile> = files.iter().collect();
    sorted.sort_by(|a, b| a.path.as_str().cmp(b.path.as_str()));
    let mut hasher = Sha256::new();
    for file in sorted {
        let mode: &[u8] = if file.executable { b"0755" } else { b"0644" };
        for part in [file.path.as_str().as_bytes(), mode, &file.bytes] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hex(&hasher.finalize())
}

/// `sha256:` and hex of a digest.
fn hex(digest: &[u8]) -> String {
    let mut text = String::from("sha256:");
    for byte in digest {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// `sha256:` and hex of a text.
pub(crate) fn text_hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Whether a name is `stem.md` or `stem.<locale>.md`.
pub(super) fn is_prompt(name: &str, stem: &str) -> bool {
    name.strip_prefix(stem)
        .and_then(|rest| rest.strip_suffix(".md"))
        .is_some_and(|locale| match locale.strip_prefix('.') {
            None => locale.is_empty(),
            Some(locale) => {
                !locale.is_empty()
                    && locale
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            }
        })
}

struct Walk<'a> {
    folder: &'a Utf8Path,
    top: &'a Utf8Path,
    ignore: Ignore,
    own_folder: bool,
    bytes: u64,
    files: Vec<ContextFile>,
}

impl Walk<'_> {
    fn folder(&mut self, below: &Utf8Path) -> Result<(), ContextError> {
        let unreadable = |source| ContextError::Unreadable {
            path: self.folder.join(below),
            source,
        };
        let entries = fs::read_dir(self.top.join(below)).map_err(unreadable)?;
        for entry in entries {
            let entry = entry.map_err(|source| ContextError::Unreadable {
                path: self.folder.join(below),
                source,
            })?;
            let name = entry
                .file_name()
                .into_string()
                .map_err(|name| ContextError::BadName {
                    path: self.folder.join(below),
                    name: format!("{name:?}"),
                })?;
            let path = if below.as_str().is_empty() {
                Utf8PathBuf::from(name)
            } else {
                Utf8PathBuf::from(format!("{below}/{name}"))
            };
            self.entry(&path, &entry)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &Utf8Path, entry: &fs::DirEntry) -> Result<(), ContextError> {
        let shown = || self.folder.join(path);
        let unreadable = |source| ContextError::Unreadable {
            path: self.folder.join(path),
            source,
        };
        let metadata = entry.metadata().map_err(unreadable)?;
        let always = matches!(path.as_str(), "Dockerfile" | ".dockerignore");
        let excluded = !always && self.ignore.excludes(path.as_str());
        if metadata.is_dir() {
            // An exception may bring back a file of an excluded folder.
            return if excluded && !self.ignore.has_exceptions() {
                Ok(())
            } else {
                self.folder(path)
            };
        }
        if excluded || self.is_own_text(path) {
            return Ok(());
        }
        if !metadata.is_file() {
            let kind = if metadata.is_symlink() {
                "a symbolic link"
            } else {
                kind_of(&metadata)
            };
            return Err(ContextError::NotAFile {
                path: shown(),
                kind,
            });
        }
        self.bytes += metadata.len();
        if self.bytes > MAX_TOTAL_BYTES {
            return Err(ContextError::TooLarge {
                path: self.folder.to_owned(),
            });
        }
        if self.files.len() == MAX_FILES {
            return Err(ContextError::TooManyFiles {
                path: self.folder.to_owned(),
            });
        }
        let bytes = fs::read(self.top.join(path)).map_err(unreadable)?;
        self.files.push(ContextFile {
            path: path.to_owned(),
            executable: is_executable(&metadata),
            bytes,
        });
        Ok(())
    }

    fn is_own_text(&self, path: &Utf8Path) -> bool {
        self.own_folder && (path == "manifest.yaml" || is_prompt(path.as_str(), "prompt"))
    }
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

/// Where files have no such bit, none is executable.
#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}
