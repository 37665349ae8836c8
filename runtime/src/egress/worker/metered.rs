//! A TCP stream for code that reads and writes through buffers: it begins with what was read already, and counts.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::splice::Activity;

/// Reads first what was read before, counts what passes, and lets others keep the socket.
pub(crate) struct Metered {
    stream: Arc<TcpStream>,
    before: Bytes,
    meter: Option<Meter>,
}

/// Where what passes is counted.
#[derive(Clone)]
pub(crate) struct Meter {
    /// What is written.
    pub(crate) written: Arc<AtomicU64>,
    /// What is read.
    pub(crate) read: Arc<AtomicU64>,
    /// When.
    pub(crate) activity: Arc<Activity>,
}

impl Metered {
    /// A stream of which nothing is counted.
    pub(crate) fn unmetered(stream: Arc<TcpStream>, before: Bytes) -> Self {
        Self {
            stream,
            before,
            meter: None,
        }
    }

    /// A stream that is counted.
    pub(crate) fn new(stream: Arc<TcpStream>, meter: Meter) -> Self {
        Self {
            stream,
            before: Bytes::new(),
            meter: Some(meter),
        }
    }
}

impl Meter {
    fn count(&self, which: &AtomicU64, bytes: usize) {
        which.fetch_add(bytes as u64, Ordering::Relaxed);
        self.activity.now();
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.before.is_empty() {
            let part = self.before.len().min(buffer.remaining());
            buffer.put_slice(&self.before[..part]);
            self.before.advance(part);
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    if let Some(meter) = &self.meter {
                        meter.count(&meter.read, read);
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match self.stream.try_write_vectored(slices) {
                Ok(written) => {
                    if let Some(meter) = &self.meter {
                        meter.count(&meter.written, written);
                    }
                    return Poll::Ready(Ok(written));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(&*self.stream, Shutdown::Write).map_err(Into::into))
    }
}
