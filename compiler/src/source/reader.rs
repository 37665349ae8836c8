//! One file or folder at a time, and everything that can be wrong with it (L4).

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};

use super::SourceFile;
use crate::diag::codes::layout as codes;
use crate::diag::{Code, Diagnostic, Place};
use crate::model::Origin;
use crate::yaml::MAX_BYTES;

/// Opening a pipe does not wait for a writer.
const O_NONBLOCK: i32 = if cfg!(target_os = "linux") {
    0o4000
} else {
    0x4
};

/// What some editors put before UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Where a reader reads.
pub(super) struct Root {
    root: Utf8PathBuf,
    /// Where links must stay.
    real_root: PathBuf,
}

/// Reads below one root. Each thread has its own.
pub(super) struct Reader<'a> {
    at: &'a Root,
    pub(super) findings: Vec<Diagnostic>,
}

/// What stands in a folder, links followed.
pub(super) struct Item {
    pub(super) name: String,
    pub(super) is_folder: bool,
}

impl Root {
    /// `None` if it is no readable directory.
    pub(super) fn new(root: &Utf8Path) -> Option<Self> {
        let real_root = fs::canonicalize(root).ok()?;
        real_root.is_dir().then(|| Self {
            root: root.to_owned(),
            real_root,
        })
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(at: &'a Root) -> Self {
        Self {
            at,
            findings: Vec::new(),
        }
    }

    /// What is in a folder, sorted by name, without what L4 skips.
    pub(super) fn list(&mut self, folder: &Utf8Path) -> Vec<Item> {
        let full = self.at.root.join(folder);
        let entries = match fs::read_dir(&full) {
            Ok(entries) => entries,
            Err(error) => {
                self.unreadable(folder, &error);
                return Vec::new();
            }
        };
        let mut items = Vec::new();
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.unreadable(folder, &error);
                    continue;
                }
            };
            let name = match entry.file_name().into_string() {
                Ok(name) => name,
                Err(name) => {
                    self.finding(
                        &codes::NOT_UTF8,
                        folder,
                        format!("the name {name:?} in this folder is not UTF-8"),
                    );
                    continue;
                }
            };
            if is_skipped(&name) {
                continue;
            }
            // Most systems say the kind with the name; only links need a closer look.
            let is_folder = match entry.file_type() {
                Ok(kind) if !kind.is_symlink() => Some(kind.is_dir()),
                _ => self.is_folder(&folder.join(&name)),
            };
            if let Some(is_folder) = is_folder {
                items.push(Item { name, is_folder });
            }
        }
        items.sort_by(|a, b| a.name.cmp(&b.name));
        items
    }

    /// Whether something that exists is a folder, links followed; `None` with a finding if it is a link that leads
    /// astray.
    pub(super) fn is_folder(&mut self, path: &Utf8Path) -> Option<bool> {
        let kind = match fs::symlink_metadata(self.at.root.join(path)) {
            Ok(metadata) => metadata.file_type(),
            Err(error) => {
                self.unreadable(path, &error);
                return None;
            }
        };
        if !kind.is_symlink() {
            return Some(kind.is_dir());
        }
        let Ok(target) = fs::canonicalize(self.at.root.join(path)) else {
            self.finding(
                &codes::BAD_LINK,
                path,
                "this symbolic link leads nowhere, or in a circle",
            );
            return None;
        };
        if !target.starts_with(&self.at.real_root) {
            self.finding(
                &codes::BAD_LINK,
                path,
                "this symbolic link leads out of the root",
            );
            return None;
        }
        let is_folder = target.is_dir();
        let parent = path.parent().unwrap_or(Utf8Path::new(""));
        let real_parent = fs::canonicalize(self.at.root.join(parent)).unwrap_or_default();
        if is_folder && real_parent.starts_with(&target) {
            self.finding(
                &codes::BAD_LINK,
                path,
                "this symbolic link leads in a circle: to a folder that holds it",
            );
            return None;
        }
        Some(is_folder)
    }

    /// A text file without BOM and with LF line ends; `None` with a finding if it cannot be had.
    pub(super) fn text(&mut self, path: &Utf8Path) -> Option<SourceFile> {
        let mut bytes = self.bytes(path)?;
        if bytes.starts_with(BOM) {
            bytes.drain(..BOM.len());
        }
        let mut text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                self.not_utf8(path, error.as_bytes(), error.utf8_error().valid_up_to());
                return None;
            }
        };
        if text.contains('\r') {
            text = text.replace("\r\n", "\n");
            // In YAML a carriage return alone ends a line too; elsewhere it is a character.
            if matches!(path.extension(), Some("yaml" | "yml")) {
                text = text.replace('\r', "\n");
            }
        }
        // It is kept as long as the findings: without the room that reading left.
        text.shrink_to_fit();
        Some(SourceFile {
            path: path.to_owned(),
            text,
        })
    }

    fn bytes(&mut self, path: &Utf8Path) -> Option<Vec<u8>> {
        let full = self.at.root.join(path);
        // What is asked and what is read is the opened file, whatever is put in its place meanwhile. A pipe opens at
        // once in this way, without a writer.
        let opened = fs::OpenOptions::new()
            .read(true)
            .custom_flags(O_NONBLOCK)
            .open(&full)
            .and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                match fs::metadata(&full) {
                    // A socket cannot be opened.
                    Ok(metadata) if !metadata.is_file() => self.not_a_file(path, &metadata),
                    _ => self.unreadable(path, &error),
                }
                return None;
            }
        };
        if !metadata.is_file() {
            self.not_a_file(path, &metadata);
            return None;
        }
        if !self.stands_there(&full, &metadata) {
            self.finding(
                &codes::UNREADABLE,
                path,
                "this cannot be read: another file was put in its place meanwhile",
            );
            return None;
        }
        // A file that is known to be too large is not read.
        let most = match metadata.len() {
            size if size > MAX_BYTES as u64 => 0,
            _ => MAX_BYTES as u64 + 1,
        };
        // Room for all of it and for the read that finds the end: without, a file is read in many small pieces.
        let mut bytes = Vec::with_capacity(metadata.len().min(most) as usize + 1);
        let size = match file.take(most).read_to_end(&mut bytes) {
            Ok(read) => metadata.len().max(read as u64),
            Err(error) => {
                self.unreadable(path, &error);
                return None;
            }
        };
        if size > MAX_BYTES as u64 {
            self.finding(
                &codes::FILE_TOO_LARGE,
                path,
                format!("the file has {size} bytes; at most {MAX_BYTES} are read"),
            );
            return None;
        }
        Some(bytes)
    }

    /// Whether an opened file is the one of that name, and within the root: the listing's answer may be old.
    fn stands_there(&self, full: &Utf8Path, opened: &fs::Metadata) -> bool {
        let same =
            |found: &fs::Metadata| (found.dev(), found.ino()) == (opened.dev(), opened.ino());
        match fs::symlink_metadata(full) {
            Ok(found) if found.is_symlink() => fs::canonicalize(full).is_ok_and(|target| {
                target.starts_with(&self.at.real_root)
                    && fs::symlink_metadata(target).is_ok_and(|found| same(&found))
            }),
            Ok(found) => same(&found),
            Err(_) => false,
        }
    }

    fn not_a_file(&mut self, path: &Utf8Path, metadata: &fs::Metadata) {
        self.finding(
            &codes::NOT_A_FILE,
            path,
            format!("{} stands where a file is expected", kind_of(metadata)),
        );
    }

    fn not_utf8(&mut self, path: &Utf8Path, bytes: &[u8], at: usize) {
        let before = &bytes[..at];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        let byte = bytes.get(at).copied().unwrap_or_default();
        let place = Place {
            origin: Origin {
                file: path.to_owned(),
                line: u32::try_from(line).unwrap_or(u32::MAX),
                column: u32::try_from(column).unwrap_or(u32::MAX),
            },
            length: 1,
            path: String::new(),
        };
        self.findings.push(
            Diagnostic::new(
                &codes::NOT_UTF8,
                place,
                format!("the byte 0x{byte:02X} is not UTF-8"),
            )
            .help("save the file as UTF-8; it may be Latin-1 or Windows-1252 now"),
        );
    }

    pub(super) fn unreadable(&mut self, path: &Utf8Path, error: &std::io::Error) {
        self.finding(
            &codes::UNREADABLE,
            path,
            format!("this cannot be read: {error}"),
        );
    }

    pub(super) fn finding(
        &mut self,
        code: &'static Code,
        path: &Utf8Path,
        message: impl Into<String>,
    ) {
        self.findings
            .push(Diagnostic::new(code, whole(path), message));
    }

    /// Whether something of that name exists, whatever it is.
    pub(super) fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.at.root.join(path)).is_ok()
    }

    /// A project that the root is a part of: people often stand in one of its folders.
    pub(super) fn project_above(&self) -> Option<String> {
        self.at
            .real_root
            .ancestors()
            .skip(1)
            .find(|folder| folder.join("selu.toml").is_file() || folder.join("agents").is_dir())
            .map(|folder| folder.display().to_string())
    }

    /// For another reader of the same root.
    pub(super) fn at(&self) -> &'a Root {
        self.at
    }

    /// The root as it was given.
    pub(super) fn root(&self) -> &Utf8Path {
        &self.at.root
    }
}

/// A file or folder as a whole.
pub(super) fn whole(path: &Utf8Path) -> Place {
    Place {
        origin: Origin {
            file: path.to_owned(),
            line: 0,
            column: 0,
        },
        length: 0,
        path: String::new(),
    }
}

/// Dotfiles, what package managers and compilers leave, and editors' backups (L4).
fn is_skipped(name: &str) -> bool {
    name.starts_with('.')
        || matches!(name, "node_modules" | "target")
        || name.ends_with('~')
        || (name.starts_with('#') && name.ends_with('#'))
        || Path::new(name).extension().is_some_and(|extension| {
            matches!(extension.to_str(), Some("bak" | "orig" | "swp" | "swo"))
        })
}

pub(super) fn kind_of(metadata: &fs::Metadata) -> &'static str {
    if metadata.is_dir() {
        "a folder"
    } else if metadata.is_file() {
        "a file"
    } else {
        "a pipe, socket or device"
    }
}
