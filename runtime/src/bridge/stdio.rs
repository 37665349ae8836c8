//! rmcp's transport over a subprocess's standard streams, framed by ourselves: one JSON document a line, bounded.

pub(super) mod line;

use std::future::Future;
use std::io;
use std::sync::Arc;

use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::messages::{self, Messages};
use super::said::Said;
use line::{Line, Lines};

/// The streams of one MCP server.
pub(super) struct Stdio {
    /// `None` once closed. Locked for a whole line: two messages must not be written into each other.
    stdin: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    stdout: BufReader<ChildStdout>,
    lines: Lines,
    messages: Messages,
}

impl Stdio {
    pub(super) fn new(stdin: ChildStdin, stdout: ChildStdout, said: Arc<Said>) -> Self {
        Self {
            stdin: Arc::new(tokio::sync::Mutex::new(Some(stdin))),
            stdout: BufReader::with_capacity(64 * 1024, stdout),
            lines: Lines::default(),
            messages: Messages::new(said, "stdout"),
        }
    }

    /// Takes a whole line of the server's.
    fn take(&mut self, line: Line) {
        match line {
            Line::Whole(bytes) => self.messages.read(&bytes),
            Line::TooLong { bytes, head, tail } => {
                let reason = format!(
                    "the MCP server wrote a message of {bytes} bytes, the limit is {}",
                    line::LONGEST
                );
                self.messages.fail(messages::id_in(&head, &tail), &reason);
            }
        }
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sent = self.messages.sends(&item);
        let stdin = Arc::clone(&self.stdin);
        async move {
            let _sent = sent;
            let mut bytes = serde_json::to_vec(&item)?;
            drop(item);
            bytes.push(b'\n');
            let mut stdin = stdin.lock().await;
            let Some(stdin) = stdin.as_mut() else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            stdin.write_all(&bytes).await?;
            stdin.flush().await
        }
    }

    /// Reads on where it was left: a caller may drop the future between two awaits.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(message) = self.messages.next() {
                return Some(message);
            }
            let (used, line) = match self.stdout.fill_buf().await {
                Ok(bytes) if !bytes.is_empty() => self.lines.take(bytes),
                // The end, or as good as that. A line without its end is a message cut off: nothing to be read.
                _ => return None,
            };
            self.stdout.consume(used);
            if let Some(line) = line {
                self.take(line);
                // A server that writes without a pause must not keep timers and other calls waiting.
                tokio::task::consume_budget().await;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A server ends when its standard input does.
        if let Ok(mut stdin) = self.stdin.try_lock() {
            *stdin = None;
        }
        Ok(())
    }
}
