//! A directory that is checked again when it changes.
//!
//! Files are looked at again and again: that works on every file system, also where the kernel tells of no changes
//! (network shares, folders mounted into containers). Where it does, the next look comes at once. One look asks for the
//! state of every file that the compiler may read; what is unchanged is neither read nor checked again.

mod alarm;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::check::{Cache, Checked, check_again};
use selu_compiler::source::{self, Refreshed, SourceSet};

use alarm::Alarm;

/// Shortest time between two looks that nothing asks for.
const PAUSE: Duration = Duration::from_millis(100);
/// Such looking takes at most one part in this many of the time.
const SHARE: u32 = 10;
/// Folders of the root that hold what is compiled.
const FOLDERS: [&str; 3] = ["agents", "capabilities", "container"];

/// A directory and what is known of it.
pub(crate) struct Watch {
    root: Utf8PathBuf,
    sources: SourceSet,
    cache: Cache,
    seen: Seen,
    /// What changed at the last look. A second change within the file system's tick leaves the same time stamp, so it is
    /// read once more.
    young: Option<Change>,
    cost: Duration,
    alarm: Alarm,
}

/// What is below the root.
#[derive(Default)]
struct Seen {
    files: BTreeMap<PathBuf, Stamp>,
    /// Those that were entered.
    folders: Vec<PathBuf>,
    /// Whether a symbolic link is among them: one file may then be known under several names.
    links: bool,
}

/// What changes when a file does.
#[derive(PartialEq, Eq)]
struct Stamp {
    kind: u32,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What is to be read again.
#[derive(Clone)]
enum Change {
    Files(Vec<PathBuf>),
    Everything,
}

impl Watch {
    /// A directory that was not looked at yet.
    pub(crate) fn new(root: &Utf8Path) -> Self {
        Self {
            root: root.to_owned(),
            sources: SourceSet::default(),
            cache: Cache::default(),
            seen: Seen::default(),
            young: Some(Change::Everything),
            cost: Duration::ZERO,
            alarm: Alarm::new(),
        }
    }

    /// Looks, and checks again if anything changed.
    pub(crate) fn look(&mut self) -> Option<(Checked, &SourceSet)> {
        let began = Instant::now();
        let seen = Seen::below(&self.root);
        let change = self.seen.change(&seen);
        self.seen = seen;
        if matches!(change, Some(Change::Everything)) {
            self.listen();
        }
        let young = std::mem::replace(&mut self.young, change.clone());
        let checked = match Change::both(young, change) {
            None => None,
            Some(change) => self
                .read(change)
                .then(|| check_again(&self.sources, &mut self.cache)),
        };
        self.cost = began.elapsed();
        checked.map(|checked| (checked, &self.sources))
    }

    /// How many capabilities the last check looked at, and how many there are.
    pub(crate) fn looked_at(&self) -> (usize, usize) {
        (self.cache.fresh(), self.cache.len())
    }

    /// Waits until it is time for the next look: when something changed, or after a while. Looking never takes more than
    /// half of the time.
    pub(crate) async fn pause(&self) {
        let most = PAUSE.max(self.cost * SHARE);
        self.alarm.wait(self.cost, most).await;
    }

    /// Has the kernel tell of changes in every folder that was seen.
    fn listen(&self) {
        for folder in &self.seen.folders {
            self.alarm.listen(&self.root.as_std_path().join(folder));
        }
    }

    /// Whether what is read may be other than it was: a touched file is not, nor is one that is read a second time.
    fn read(&mut self, change: Change) -> bool {
        if let Change::Files(paths) = change {
            let read = paths.iter().try_fold(false, |changed, path| {
                match source::refresh(&mut self.sources, Utf8Path::from_path(path)?) {
                    Refreshed::Unknown => None,
                    Refreshed::Changed => Some(true),
                    Refreshed::Same => Some(changed),
                }
            });
            if let Some(changed) = read {
                return changed;
            }
        }
        self.sources = source::read(&self.root);
        true
    }
}

impl Seen {
    fn below(root: &Utf8Path) -> Self {
        let mut seen = Self::default();
        // A Dockerfile at the top makes everything beside it part of the image.
        let everything = root.join("Dockerfile").exists();
        seen.folder(root.as_std_path(), Path::new(""), &|name| {
            everything || FOLDERS.contains(&name)
        });
        seen
    }

    /// What cannot be looked at is not seen; reading it is a finding.
    fn folder(&mut self, root: &Path, folder: &Path, enters: &dyn Fn(&str) -> bool) {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            return;
        };
        self.folders.push(folder.to_owned());
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name_text = name.to_string_lossy();
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if is_passing(&name_text) {
                continue;
            }
            let path = folder.join(&name);
            if metadata.is_dir() && enters(&name_text) {
                self.folder(root, &path, &|_| true);
            }
            self.links |= metadata.is_symlink();
            self.files.insert(path, Stamp::of(&metadata));
        }
    }

    /// From this to a later look.
    fn change(&self, later: &Self) -> Option<Change> {
        let structure = self.files.len() != later.files.len()
            || self
                .files
                .iter()
                .zip(&later.files)
                .any(|((path, stamp), (other, later))| path != other || stamp.kind != later.kind);
        if structure {
            return Some(Change::Everything);
        }
        let changed: Vec<PathBuf> = self
            .files
            .iter()
            .zip(later.files.values())
            .filter(|((_, stamp), later)| stamp != later)
            .map(|((path, _), _)| path.clone())
            .collect();
        if changed.is_empty() {
            None
        } else if self.links || later.links {
            Some(Change::Everything)
        } else {
            Some(Change::Files(changed))
        }
    }
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        // A folder's times change with its entries, which are looked at themselves.
        let times = !metadata.is_dir();
        let time = |seconds, nanoseconds| {
            if times {
                (seconds, nanoseconds)
            } else {
                (0, 0)
            }
        };
        Self {
            kind: metadata.mode(),
            inode: metadata.ino(),
            length: if times { metadata.len() } else { 0 },
            modified: time(metadata.mtime(), metadata.mtime_nsec()),
            changed: time(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Change {
    fn both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(Self::Files(mut files)), Some(Self::Files(more))) => {
                files.extend(more);
                files.sort();
                files.dedup();
                Some(Self::Files(files))
            }
            (Some(Self::Everything), _) | (_, Some(Self::Everything)) => Some(Self::Everything),
            (one, other) => one.or(other),
        }
    }
}

/// What editors leave for the time of an edit, and version control; no rule looks at it.
fn is_passing(name: &str) -> bool {
    name == ".git"
        || name == "4913"
        || name.ends_with('~')
        || (name.starts_with('.') && (name.ends_with(".swp") || name.ends_with(".swx")))
        || name.starts_with(".#")
}
