//! The processes that the bridge starts, and those that it inherits.
//!
//! Process 1 gets the orphans of its container, and must take note of their end or they count against `pids_limit` for
//! good. tokio waits for what was started here by itself; the two must not take each other's.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

/// Started here, and not gone yet.
static STARTED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn started() -> MutexGuard<'static, BTreeSet<i32>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a process that [`gone`] is called for later. It is known before it can have ended.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Pid)> {
    let mut started = started();
    let child = command.spawn()?;
    let pid = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("it has no process id"))?;
    started.insert(pid.as_raw_nonzero().get());
    Ok((child, pid))
}

/// Somebody has waited for it.
pub(super) fn gone(pid: Pid) {
    started().remove(&pid.as_raw_nonzero().get());
}

/// Takes note of ended orphans from now on. Does nothing where this is not process 1.
pub(super) fn start() -> JoinHandle<()> {
    tokio::spawn(async {
        if getpid() != Pid::INIT {
            return;
        }
        let Ok(mut ended) = signal(SignalKind::child()) else {
            return;
        };
        while ended.recv().await.is_some() {
            orphans();
        }
    })
}

/// Zombies whose parent this is, and that were not started here.
fn orphans() {
    let started = started();
    let Ok(processes) = fs::read_dir("/proc") else {
        return;
    };
    for entry in processes.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        if is_orphan(&stat)
            && !started.contains(&pid)
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// `PID (NAME) Z 1 …`; a name may hold anything.
fn is_orphan(stat: &str) -> bool {
    stat.rsplit_once(')')
        .map(|(_, rest)| rest.split_ascii_whitespace())
        .is_some_and(|mut fields| fields.next() == Some("Z") && fields.next() == Some("1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ended_children_of_process_1_are_orphans_whatever_their_name() {
        assert!(is_orphan("7 (sh) Z 1 7 7 0 -1"));
        assert!(is_orphan("7 (a) S 2 (b) Z 1 7"));
        for other in ["7 (sh) S 1 7", "7 (sh) Z 12 7", "7 (sh", ""] {
            assert!(!is_orphan(other), "{other}");
        }
    }
}
