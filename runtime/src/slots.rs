//! Who calls a container now, and when it was called last: files in the project's state folder, one for each call that
//! it may serve at once (X1, X2, X4). The kernel gives a slot back when its holder ends, however that is.
//!
//! Only callers of this working copy see each other.

mod ending;

pub use ending::{End, Ending};

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::time::{Instant, sleep};

use crate::state;

/// How often a slot is tried for.
const AGAIN: Duration = Duration::from_millis(50);

/// How long a call waits for a slot (X1).
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Where the slots are, below the state folder.
const FOLDER: &str = "calls";

/// Why there is no slot.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// The file system refused.
    #[error("{path} cannot be used")]
    Io {
        /// Which file.
        path: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others call (X1).
    #[error("all {most} calls that {name} serves at once were taken for {} s", .patience.as_secs())]
    Busy {
        /// The container.
        name: String,
        /// How many it serves.
        most: u32,
        /// How long it was waited.
        patience: Duration,
    },
}

/// A slot; given back when dropped.
#[derive(Debug)]
pub struct Slot {
    file: File,
    root: Utf8PathBuf,
    name: String,
    most: u32,
    number: u32,
    /// The call, such as `burn (process 12)`.
    what: String,
    /// What stood in the note of the last end when the slot was taken.
    before: String,
}

impl Slot {
    /// The call that has it, such as `burn (process 12)`.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The project's folder.
    #[cfg(test)]
    pub(crate) fn root(&self) -> &Utf8Path {
        &self.root
    }

    fn tell(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(self.what.as_bytes())?;
        self.file.set_modified(SystemTime::now())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The time is that of the end of the last call. One that cannot be set leaves that of its beginning.
        let _ = self.file.set_modified(SystemTime::now());
    }
}

/// Takes one of a container's `most` slots, or waits for one. `what` tells others what is called.
pub async fn take(
    root: &Utf8Path,
    name: &str,
    what: &str,
    most: u32,
    patience: Duration,
) -> Result<Slot, SlotError> {
    let give_up = Instant::now() + patience;
    loop {
        for number in 0..most {
            if let Some(file) = attempt(root, name, number)? {
                let mut slot = Slot {
                    file,
                    what: format!("{what} (process {})", std::process::id()),
                    root: root.to_owned(),
                    name: name.to_owned(),
                    most,
                    number,
                    before: ending::noted(root, name)?,
                };
                slot.tell().map_err(fail(&path(root, name, number)))?;
                return Ok(slot);
            }
        }
        if Instant::now() >= give_up {
            return Err(SlotError::Busy {
                name: name.to_owned(),
                most,
                patience,
            });
        }
        sleep(AGAIN).await;
    }
}

/// A container that is not called, and is not while this is kept: whoever wants to waits.
#[derive(Debug, Default)]
pub struct Idle {
    /// For how long.
    pub time: Duration,
    _slots: Vec<File>,
}

/// How long a container has not been called; `None` while it is. One that was never called from here is taken for called
/// just now.
pub fn idle(root: &Utf8Path, name: &str, most: u32) -> Result<Option<Idle>, SlotError> {
    let mut last: Option<SystemTime> = None;
    let mut slots = Vec::new();
    for number in 0..most {
        let path = path(root, name, number);
        if number > 0 && !path.exists() {
            continue;
        }
        let Some(file) = attempt(root, name, number)? else {
            return Ok(None);
        };
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let modified = modified.map_err(fail(&path))?;
        let now = SystemTime::now();
        if modified > now {
            // The clock was set back: idleness is counted from here, or it would begin in the future only.
            file.set_modified(now).map_err(fail(&path))?;
        }
        last = last.max(Some(modified));
        slots.push(file);
    }
    let time = last.and_then(|last| last.elapsed().ok());
    Ok(Some(Idle {
        time: time.unwrap_or_default(),
        _slots: slots,
    }))
}

/// Forgets a container that is gone.
pub fn forget(root: &Utf8Path, name: &str, most: u32) -> Result<(), SlotError> {
    for number in 0..most {
        let path = path(root, name, number);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(fail(&path)(error));
            }
            _ => {}
        }
    }
    ending::forget(root, name)
}

/// A locked file, unless somebody else has it.
fn attempt(root: &Utf8Path, name: &str, number: u32) -> Result<Option<File>, SlotError> {
    let state = root.join(state::FOLDER);
    let folder = state.join(FOLDER);
    let made = state::prepare(&state).and_then(|()| fs::create_dir_all(&folder));
    made.map_err(fail(&folder))?;
    let path = path(root, name, number);
    loop {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(fail(&path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(fail(&path)(error.into())),
        }
        // It may have been forgotten between opening and locking: then this is nobody's slot.
        let own = file.metadata().map_err(fail(&path))?;
        match fs::metadata(&path) {
            Ok(named) if named.ino() == own.ino() => return Ok(Some(file)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(&path)(error)),
        }
    }
}

fn path(root: &Utf8Path, name: &str, number: u32) -> Utf8PathBuf {
    root.join(state::FOLDER)
        .join(FOLDER)
        .join(format!("{name}.{number}"))
}

fn fail(path: &Utf8Path) -> impl FnOnce(io::Error) -> SlotError {
    let path = path.to_owned();
    move |source| SlotError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn root() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        (folder, root)
    }

    #[tokio::test]
    async fn no_more_calls_than_may_go_at_once_and_a_slot_given_back_is_free() {
        let (_folder, root) = root();
        let first = take(&root, "c", "t", 2, NOW).await.unwrap();
        let _second = take(&root, "c", "t", 2, NOW).await.unwrap();
        let third = take(&root, "c", "t", 2, NOW).await.unwrap_err();
        assert!(matches!(third, SlotError::Busy { most: 2, .. }), "{third}");
        take(&root, "another", "t", 1, NOW).await.unwrap();
        drop(first);
        take(&root, "c", "t", 2, NOW).await.unwrap();
    }

    #[tokio::test]
    async fn whoever_waits_gets_the_slot_that_is_given_back() {
        let (_folder, root) = root();
        let first = take(&root, "c", "t", 1, NOW).await.unwrap();
        let waiting = take(&root, "c", "t", 1, Duration::from_secs(60));
        tokio::pin!(waiting);
        tokio::select! {
            _ = &mut waiting => panic!("two at once"),
            () = sleep(AGAIN * 2) => drop(first),
        }
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn a_container_that_is_called_is_not_idle_whatever_its_time() {
        let (_folder, root) = root();
        let slot = take(&root, "c", "t", 2, NOW).await.unwrap();
        assert!(idle(&root, "c", 2).unwrap().is_none());
        drop(slot);
        let hour = Duration::from_secs(3600);
        let file = File::options()
            .write(true)
            .open(path(&root, "c", 0))
            .unwrap();
        file.set_modified(SystemTime::now() - hour).unwrap();
        let kept = idle(&root, "c", 2).unwrap().unwrap();
        assert!(kept.time >= hour);
        let called = take(&root, "c", "t", 1, NOW).await;
        called.expect_err("nobody calls what is about to be closed");
        drop(kept);
        take(&root, "c", "t", 1, NOW).await.unwrap();
        assert!(idle(&root, "never seen", 1).unwrap().unwrap().time < hour);
    }

    #[tokio::test]
    async fn a_clock_that_was_set_back_lets_a_session_go_idle_all_the_same() {
        let (_folder, root) = root();
        drop(take(&root, "c", "t", 1, NOW).await.unwrap());
        let year = Duration::from_secs(365 * 24 * 3600);
        let options = || {
            File::options()
                .write(true)
                .open(path(&root, "c", 0))
                .unwrap()
        };
        options().set_modified(SystemTime::now() + year).unwrap();
        assert_eq!(idle(&root, "c", 1).unwrap().unwrap().time, Duration::ZERO);
        let noted = options().metadata().unwrap().modified().unwrap();
        assert!(
            noted <= SystemTime::now(),
            "the next look counts from this one"
        );
    }

    #[tokio::test]
    async fn a_slot_that_was_forgotten_is_nobodys() {
        let (_folder, root) = root();
        let old = take(&root, "c", "t", 1, NOW).await.unwrap();
        forget(&root, "c", 1).unwrap();
        let new = take(&root, "c", "t", 1, NOW).await.unwrap();
        drop(old);
        take(&root, "c", "t", 1, NOW).await.unwrap_err();
        drop(new);
    }
}
