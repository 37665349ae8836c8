//! Bytes from one socket to another inside the kernel. A pipe is held only while there are bytes in it, so that idle
//! connections cost two descriptors each.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

/// What a pipe may hold: four times the kernel's default, for a quarter of the calls.
const CHUNK: usize = 256 * 1024;

/// Empty pipes that wait for their next use.
const KEPT: usize = 64;

static PIPES: Mutex<Vec<Pipe>> = Mutex::new(Vec::new());

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    fn take() -> io::Result<Self> {
        let kept = PIPES.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match kept {
            Some(pipe) => Ok(pipe),
            None => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                // The kernel bounds what all pipes of a user may hold; beyond, they have the default size.
                let _ = fcntl_setpipe_size(&write, CHUNK);
                Ok(Self { read, write })
            }
        }
    }

    /// For an empty one only.
    fn give_back(self) {
        let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
        if pipes.len() < KEPT {
            pipes.push(self);
        }
    }
}

/// When something last passed, in either direction.
pub(super) struct Activity {
    began: Instant,
    last_ms: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            last_ms: AtomicU64::new(0),
        }
    }

    pub(super) fn now(&self) {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(passed, Ordering::Relaxed);
    }

    /// Ends when nothing has passed for so long.
    pub(super) async fn idle(&self, limit: Duration) {
        loop {
            let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let until = self.began + last + limit;
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// Carries bytes until `from` ends, and then ends `to`'s side.
pub(super) async fn carry(
    from: &TcpStream,
    to: &TcpStream,
    count: &AtomicU64,
    activity: &Activity,
) -> io::Result<()> {
    loop {
        from.readable().await?;
        let pipe = Pipe::take()?;
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let mut filled = match from.try_io(Interest::READABLE, || {
            Ok(splice(from.as_fd(), None, &pipe.write, None, CHUNK, flags)?)
        }) {
            Ok(0) => {
                pipe.give_back();
                return Ok(rustix::net::shutdown(to, rustix::net::Shutdown::Write)?);
            }
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                pipe.give_back();
                continue;
            }
            Err(error) => return Err(error),
        };
        activity.now();
        while filled > 0 {
            let moved = to
                .async_io(Interest::WRITABLE, || {
                    Ok(splice(&pipe.read, None, to.as_fd(), None, filled, flags)?)
                })
                .await?;
            filled -= moved;
            count.fetch_add(moved as u64, Ordering::Relaxed);
            activity.now();
        }
        pipe.give_back();
    }
}

/// Writes what was read already.
pub(super) async fn write(to: &TcpStream, bytes: &[u8], count: &AtomicU64) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        to.writable().await?;
        match to.try_write(rest) {
            Ok(written) => {
                rest = &rest[written..];
                count.fetch_add(written as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
