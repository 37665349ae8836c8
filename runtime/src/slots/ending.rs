//! A container that is started anew ends every call that it serves. Whoever does it learns which those are, and the
//! others learn why (R2); two that want it at once do it once.
//!
//! The note of the last end is one file beside the slots. It is locked while the container is started anew.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::time::sleep;

use super::{AGAIN, FOLDER, Slot, SlotError, attempt, fail, path};
use crate::state;

/// The right to start the container anew; given back when dropped.
#[derive(Debug)]
pub struct Ending {
    _file: File,
}

/// Who starts the container anew.
#[derive(Debug)]
pub enum End {
    /// The caller, as long as it keeps this.
    Own(Ending),
    /// Another call did it meanwhile, for this reason.
    Others(String),
}

impl Slot {
    /// What else the container serves now, such as `burn (process 12)`.
    pub fn others(&self) -> Result<Vec<String>, SlotError> {
        let mut others = Vec::new();
        for number in (0..self.most).filter(|number| *number != self.number) {
            let path = path(&self.root, &self.name, number);
            if path.exists() && attempt(&self.root, &self.name, number)?.is_none() {
                others.push(fs::read_to_string(&path).map_err(fail(&path))?);
            }
        }
        Ok(others)
    }

    /// Asks for the right to start the container anew, and leaves the reason for the calls that this ends. Waits while
    /// another call does it.
    pub async fn end(&self, why: &str) -> Result<End, SlotError> {
        let place = place(&self.root, &self.name);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&place);
        let mut file = file.map_err(fail(&place))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => sleep(AGAIN).await,
                Err(error) => return Err(fail(&place)(error.into())),
            }
        }
        let mut note = String::new();
        file.read_to_string(&mut note).map_err(fail(&place))?;
        if note != self.before {
            return Ok(End::Others(reason(&note)));
        }
        // No two notes are alike.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let note = format!("{now} {}\n{why}", std::process::id());
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(note.as_bytes()));
        written.map_err(fail(&place))?;
        Ok(End::Own(Ending { _file: file }))
    }

    /// Why another call has the container started anew, if one has since this slot was taken.
    pub fn ended(&self) -> Result<Option<String>, SlotError> {
        let note = noted(&self.root, &self.name)?;
        Ok((note != self.before).then(|| reason(&note)))
    }
}

/// The note of the last end as it stands; empty if there was none.
pub(super) fn noted(root: &Utf8Path, name: &str) -> Result<String, SlotError> {
    let place = place(root, name);
    match fs::read_to_string(&place) {
        Ok(note) => Ok(note),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(fail(&place)(error)),
    }
}

pub(super) fn forget(root: &Utf8Path, name: &str) -> Result<(), SlotError> {
    let place = place(root, name);
    match fs::remove_file(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fail(&place)(error)),
        _ => Ok(()),
    }
}

fn reason(note: &str) -> String {
    note.split_once('\n')
        .map_or(note, |(_, why)| why)
        .to_owned()
}

fn place(root: &Utf8Path, name: &str) -> Utf8PathBuf {
    root.join(state::FOLDER)
        .join(FOLDER)
        .join(format!("{name}.end"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::take;
    use super::*;

    fn root() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        (folder, root)
    }

    async fn slot(root: &Utf8Path, what: &str) -> Slot {
        take(root, "c", what, 3, Duration::ZERO).await.unwrap()
    }

    #[tokio::test]
    async fn whoever_ends_calls_learns_of_them_and_they_learn_why_r2() {
        let (_folder, root) = root();
        let burning = slot(&root, "burn").await;
        assert!(burning.others().unwrap().is_empty());
        let waiting = slot(&root, "wait").await;
        let expected = format!("wait (process {})", std::process::id());
        assert_eq!(burning.others().unwrap(), [expected]);
        assert_eq!(waiting.ended().unwrap(), None);
        let end = burning.end("burn used it up").await.unwrap();
        assert!(matches!(end, End::Own(_)), "{end:?}");
        assert_eq!(waiting.ended().unwrap().as_deref(), Some("burn used it up"));
        drop(end);
        // The other one, which wants the same, finds it done.
        let end = waiting.end("wait used it up").await.unwrap();
        assert!(
            matches!(&end, End::Others(why) if why == "burn used it up"),
            "{end:?}"
        );
        // What ended before it began is nothing to a later call, and that may end the container again.
        drop(waiting);
        let later = slot(&root, "later").await;
        assert_eq!(later.ended().unwrap(), None);
        assert!(matches!(later.end("again").await.unwrap(), End::Own(_)));
    }

    #[tokio::test]
    async fn two_that_want_a_container_started_anew_do_it_one_after_the_other() {
        let (_folder, root) = root();
        let (one, two) = (slot(&root, "one").await, slot(&root, "two").await);
        let end = one.end("one").await.unwrap();
        let mut waiting = std::pin::pin!(two.end("two"));
        tokio::select! {
            _ = &mut waiting => panic!("two at once"),
            () = sleep(AGAIN * 2) => drop(end),
        }
        assert!(matches!(waiting.await.unwrap(), End::Others(_)));
    }
}
