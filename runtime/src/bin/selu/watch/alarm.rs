//! The kernel's word of which folders of a directory changed, so that the next look need not be waited for.
//!
//! It is a hint alone: where it does not come (network shares, folders mounted into containers, a system that has no more
//! watches to give), looking again and again finds the change all the same.

use std::collections::{BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// An editor saves in several steps: this long nothing must follow before the directory is looked at.
const SETTLED: Duration = Duration::from_millis(4);
/// So many times a change may follow another before it is looked at all the same.
const STEPS: usize = 4;

/// Watches of the kernel.
pub(super) struct Alarm {
    /// `None` where there are none.
    events: Option<Arc<OwnedFd>>,
    word: Arc<Word>,
}

/// What the kernel has told.
#[derive(Default)]
struct Word {
    changed: Notify,
    folders: Mutex<Folders>,
}

#[derive(Default)]
struct Folders {
    /// By the kernel's number.
    watched: HashMap<i32, PathBuf>,
    /// Those that changed.
    rung: BTreeSet<PathBuf>,
    /// Whether something changed that is not known.
    unknown: bool,
}

impl Word {
    fn folders(&self) -> MutexGuard<'_, Folders> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alarm {
    pub(super) fn new() -> Self {
        let events = inotify::init(CreateFlags::CLOEXEC).ok().map(Arc::new);
        let word = Arc::new(Word::default());
        if let Some(events) = events.clone() {
            let word = Arc::clone(&word);
            // It waits in the kernel for as long as the process lives.
            thread::spawn(move || tell(&events, &word));
        }
        Self { events, word }
    }

    /// Has the kernel tell of changes in a folder below `root`. One that is watched already stays so.
    pub(super) fn listen(&self, root: &Path, folder: &Path) {
        // What is created empty is told of when it is closed; what is renamed or removed, at once.
        let what = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::ONLYDIR
            | WatchFlags::EXCL_UNLINK;
        // Refused watches leave their folders to the looks.
        if let Some(events) = &self.events
            && let Ok(number) = inotify::add_watch(events, root.join(folder), what)
        {
            let watched = &mut self.word.folders().watched;
            watched.insert(number, folder.to_owned());
        }
    }

    /// Folders that changed since this was last asked; `None` if none is known to have, or not all of them are known.
    pub(super) fn rung(&self) -> Option<BTreeSet<PathBuf>> {
        let mut folders = self.word.folders();
        let rung = std::mem::take(&mut folders.rung);
        let unknown = std::mem::take(&mut folders.unknown);
        (!unknown && !rung.is_empty()).then_some(rung)
    }

    /// Waits for word of a change, at least and at most so long.
    pub(super) async fn wait(&self, least: Duration, most: Duration) {
        let end = Instant::now() + most;
        sleep(least.min(most)).await;
        let left = end.saturating_duration_since(Instant::now());
        if timeout(left, self.word.changed.notified()).await.is_err() {
            return;
        }
        for _ in 0..STEPS {
            if timeout(SETTLED, self.word.changed.notified())
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

/// Passes on what the kernel tells.
fn tell(events: &OwnedFd, word: &Word) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(events, &mut buffer);
    loop {
        match reader.next() {
            Ok(event) => {
                let mut folders = word.folders();
                if event.events().contains(ReadFlags::IGNORED) {
                    // The folder is gone; its number is not used again.
                    folders.watched.remove(&event.wd());
                } else if is_change(event.events()) {
                    match folders.watched.get(&event.wd()).cloned() {
                        Some(folder) => _ = folders.rung.insert(folder),
                        // Told before its number was noted, or the kernel has lost count.
                        None => folders.unknown = true,
                    }
                    word.changed.notify_one();
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// A file that was just created is still empty: it counts when it is closed.
fn is_change(events: ReadFlags) -> bool {
    let created = events.contains(ReadFlags::CREATE) && !events.contains(ReadFlags::ISDIR);
    !created && !events.contains(ReadFlags::IGNORED)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const FOREVER: Duration = Duration::from_secs(3600);

    /// Ends when the kernel told of what is done in a folder with one file.
    async fn rings<T>(change: impl FnOnce(&Path) -> T) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "1").unwrap();
        let alarm = Alarm::new();
        alarm.listen(folder.path(), Path::new(""));
        let _result = change(folder.path());
        alarm.wait(Duration::ZERO, FOREVER).await;
        assert_eq!(alarm.rung(), Some(BTreeSet::from([PathBuf::new()])));
        assert_eq!(alarm.rung(), None, "told once");
    }

    #[tokio::test]
    async fn what_changes_the_content_of_a_folder_ends_the_wait() {
        rings(|folder| fs::write(folder.join("file"), "2")).await;
        rings(|folder| fs::write(folder.join("new"), "2")).await;
        rings(|folder| fs::remove_file(folder.join("file"))).await;
        rings(|folder| fs::create_dir(folder.join("folder"))).await;
        rings(|folder| fs::rename(folder.join("file"), folder.join("other"))).await;
    }

    #[test]
    fn a_file_that_is_still_written_is_no_change_yet() {
        assert!(!is_change(ReadFlags::CREATE));
        assert!(is_change(ReadFlags::CLOSE_WRITE));
        assert!(is_change(ReadFlags::CREATE | ReadFlags::ISDIR));
    }

    #[tokio::test]
    async fn without_word_the_time_ends_the_wait() {
        let short = Duration::from_millis(1);
        Alarm::new().wait(short, short).await;
    }
}
