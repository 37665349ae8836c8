//! A directory that is checked again when it changes.
//!
//! Files are looked at again and again: that works on every file system, also where the kernel tells of no changes
//! (network shares, folders mounted into containers). Where it does, the next look comes at once, and at those folders
//! alone. A whole look asks for the state of every file that the compiler may read; what is unchanged is neither read nor
//! checked again.

mod alarm;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::FileType;
use selu_compiler::check::{Cache, Checked, check_again};
use selu_compiler::source::{self, Refreshed, SourceSet};

use alarm::Alarm;

/// Shortest time between two looks that nothing asks for.
const PAUSE: Duration = Duration::from_millis(100);
/// Such looking takes at most one part in this many of the time.
const SHARE: u32 = 10;
/// A whole look is never put off for longer, whatever the kernel tells of.
const LONGEST: Duration = Duration::from_secs(2);
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
    /// When everything was looked at last, and what that cost.
    whole: Option<(Instant, Duration)>,
    alarm: Alarm,
}

/// What is below the root: the folders that were entered.
#[derive(Default)]
struct Seen {
    folders: BTreeMap<PathBuf, Folder>,
}

/// What a folder holds.
#[derive(Default)]
struct Folder {
    entries: BTreeMap<OsString, Stamp>,
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
            whole: None,
            alarm: Alarm::new(),
        }
    }

    /// Looks, and checks again if anything changed.
    pub(crate) fn look(&mut self) -> Option<(Checked, &SourceSet)> {
        let began = Instant::now();
        let change = match self.told() {
            Some(files) => self.seen.change_of(files),
            None => self.everything(),
        };
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

    /// Files that changed in the folders that the kernel named; `None` if everything is to be looked at.
    fn told(&mut self) -> Option<Vec<PathBuf>> {
        let folders = self.alarm.rung()?;
        let (when, _) = self.whole?;
        if when.elapsed() > LONGEST {
            return None;
        }
        self.seen.look_again(&self.root, &folders)
    }

    /// Looks at everything.
    fn everything(&mut self) -> Option<Change> {
        let began = Instant::now();
        let seen = Seen::below(&self.root);
        let change = self.seen.change(&seen);
        self.seen = seen;
        self.whole = Some((began, began.elapsed()));
        if matches!(change, Some(Change::Everything)) {
            self.listen();
        }
        change
    }

    /// How many capabilities the last check looked at, and how many there are.
    pub(crate) fn looked_at(&self) -> (usize, usize) {
        (self.cache.fresh(), self.cache.len())
    }

    /// Waits until it is time for the next look: when something changed, or after a while. Looking never takes more than
    /// half of the time.
    pub(crate) async fn pause(&self) {
        let whole = self.whole.map_or(Duration::ZERO, |(_, cost)| cost);
        let most = PAUSE.max(whole * SHARE);
        self.alarm.wait(self.cost, most).await;
    }

    /// Has the kernel tell of changes in every folder that was seen.
    fn listen(&self) {
        for folder in self.seen.folders.keys() {
            self.alarm.listen(self.root.as_std_path(), folder);
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
        seen.enter(root.as_std_path(), PathBuf::new(), &|name| {
            everything || FOLDERS.contains(&name)
        });
        seen
    }

    fn enter(&mut self, root: &Path, path: PathBuf, enters: &dyn Fn(&str) -> bool) {
        let Some(folder) = Folder::read(&root.join(&path)) else {
            return;
        };
        for (name, stamp) in &folder.entries {
            if stamp.is_folder() && enters(&name.to_string_lossy()) {
                self.enter(root, path.join(name), &|_| true);
            }
        }
        self.folders.insert(path, folder);
    }

    /// From this to a later look.
    fn change(&self, later: &Self) -> Option<Change> {
        if !self.folders.keys().eq(later.folders.keys()) {
            return Some(Change::Everything);
        }
        let mut changed = Vec::new();
        for ((path, folder), later) in self.folders.iter().zip(later.folders.values()) {
            match folder.changed(later) {
                Some(names) => changed.extend(names.map(|name| path.join(name))),
                None => return Some(Change::Everything),
            }
        }
        later.change_of(changed)
    }

    /// Looks at these folders alone: which of their files changed. `None` if there is more to it than that.
    fn look_again(&mut self, root: &Utf8Path, folders: &BTreeSet<PathBuf>) -> Option<Vec<PathBuf>> {
        let mut changed = Vec::new();
        let mut looked_at = Vec::with_capacity(folders.len());
        for path in folders {
            let later = Folder::read(&root.as_std_path().join(path))?;
            let names = self.folders.get(path)?.changed(&later)?;
            changed.extend(names.map(|name| path.join(name)));
            looked_at.push((path.clone(), later));
        }
        // Only now: what is not finished here is compared with what was seen before.
        self.folders.extend(looked_at);
        Some(changed)
    }

    fn change_of(&self, files: Vec<PathBuf>) -> Option<Change> {
        if files.is_empty() {
            None
        } else if self.folders.values().any(|folder| folder.links) {
            Some(Change::Everything)
        } else {
            Some(Change::Files(files))
        }
    }
}

impl Folder {
    /// What cannot be looked at is not seen; reading it is a finding.
    fn read(path: &Path) -> Option<Self> {
        let mut folder = Self::default();
        for entry in fs::read_dir(path).ok()?.flatten() {
            let name = entry.file_name();
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if is_passing(&name.to_string_lossy()) {
                continue;
            }
            folder.links |= metadata.is_symlink();
            folder.entries.insert(name, Stamp::of(&metadata));
        }
        Some(folder)
    }

    /// Names of what changed; `None` if something came, went or became something else.
    fn changed<'a>(&'a self, later: &'a Self) -> Option<impl Iterator<Item = &'a OsString>> {
        let kinds = |folder: &'a Self| {
            let entries = folder.entries.iter();
            entries.map(|(name, stamp)| (name, stamp.kind))
        };
        let stays = kinds(self).eq(kinds(later));
        stays.then(|| {
            let pairs = self.entries.iter().zip(later.entries.values());
            pairs.filter_map(|((name, stamp), later)| (stamp != later).then_some(name))
        })
    }
}

impl Stamp {
    fn is_folder(&self) -> bool {
        FileType::from_raw_mode(self.kind).is_dir()
    }

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
