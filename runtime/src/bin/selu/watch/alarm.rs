//! The kernel's word that something below a directory changed, so that the next look need not be waited for.
//!
//! It is a hint alone: where it does not come (network shares, folders mounted into containers, a system that has no more
//! watches to give), looking again and again finds the change all the same.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
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
    changed: Arc<Notify>,
}

impl Alarm {
    pub(super) fn new() -> Self {
        let events = inotify::init(CreateFlags::CLOEXEC).ok().map(Arc::new);
        let changed = Arc::new(Notify::new());
        if let Some(events) = events.clone() {
            let changed = Arc::clone(&changed);
            // It waits in the kernel for as long as the process lives.
            thread::spawn(move || tell(&events, &changed));
        }
        Self { events, changed }
    }

    /// Has the kernel tell of changes in a folder. One that is watched already stays so.
    pub(super) fn listen(&self, folder: &Path) {
        // What is created empty is told of when it is closed; what is renamed or removed, at once.
        let what = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::ONLYDIR
            | WatchFlags::EXCL_UNLINK;
        if let Some(events) = &self.events {
            // Refused watches leave their folders to the looks.
            let _ = inotify::add_watch(events, folder, what);
        }
    }

    /// Waits for word of a change, at least and at most so long.
    pub(super) async fn wait(&self, least: Duration, most: Duration) {
        let end = Instant::now() + most;
        sleep(least.min(most)).await;
        let left = end.saturating_duration_since(Instant::now());
        if timeout(left, self.changed.notified()).await.is_err() {
            return;
        }
        for _ in 0..STEPS {
            if timeout(SETTLED, self.changed.notified()).await.is_err() {
                return;
            }
        }
    }
}

/// Passes on what the kernel tells.
fn tell(events: &OwnedFd, changed: &Notify) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(events, &mut buffer);
    loop {
        match reader.next() {
            Ok(event) if is_change(event.events()) => changed.notify_one(),
            Ok(_) | Err(Errno::INTR) => {}
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
        alarm.listen(folder.path());
        let _result = change(folder.path());
        alarm.wait(Duration::ZERO, FOREVER).await;
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
