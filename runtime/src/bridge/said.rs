//! What an MCP server says besides its answers: shown in the container's log, bounded, without secrets, and kept for the
//! error that may follow (P3, P4, J12).

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use selu_compiler::report::escape;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::secrets::Redactor;

/// Lines that an error quotes.
const KEPT: usize = 8;
/// Characters of a line that are shown.
const SHOWN: usize = 500;
/// Bytes of a line that are read; the rest of it is skipped.
const READ: usize = 8 * 1024;
/// Bytes of the log that one server may fill in one [`SPAN`].
const BUDGET: usize = 128 * 1024;
/// See [`BUDGET`].
const SPAN: Duration = Duration::from_secs(60);

/// One server's voice, or the bridge's own.
pub(super) struct Said {
    redactor: Redactor,
    state: Mutex<State>,
}

struct State {
    last: VecDeque<String>,
    since: Instant,
    spent: usize,
}

impl Said {
    /// A server's, whose credentials are removed.
    pub(super) fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            state: Mutex::new(State {
                last: VecDeque::new(),
                since: Instant::now(),
                spent: 0,
            }),
        }
    }

    /// The bridge's own.
    pub(super) fn own() -> Self {
        Self::new(Redactor::default())
    }

    /// A line of the bridge's own words.
    pub(super) fn say(&self, text: &str) {
        self.show(&format!("mcp-bridge: {}", self.redactor.clean(text)));
    }

    /// A line of the server's. The whole line is cleaned before it is cut: half a secret is one, too.
    pub(super) fn line(&self, stream: &str, bytes: &[u8]) {
        let text = self.redactor.clean(&String::from_utf8_lossy(bytes));
        let text = escape(text.trim_end());
        if text.is_empty() {
            return;
        }
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        {
            let mut state = self.state();
            if state.last.len() == KEPT {
                state.last.pop_front();
            }
            state.last.push_back(shown.clone());
        }
        self.show(&format!("{stream}: {shown}"));
    }

    /// The last lines, for the end of an error; empty if there are none.
    pub(super) fn last(&self) -> String {
        let state = self.state();
        if state.last.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = state.last.iter().map(String::as_str).collect();
        format!("; its last lines: {}", lines.join(" | "))
    }

    /// Reads a stream to its end, whatever comes: a pipe that nobody reads would stop the server.
    pub(super) async fn drain(&self, stream: &str, from: impl AsyncRead + Unpin) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            let (used, ended) = match from.fill_buf().await {
                Ok([]) | Err(_) => break,
                Ok(bytes) => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
                    let room = READ.saturating_sub(line.len());
                    line.extend(part.iter().take(room));
                    (part.len() + usize::from(end.is_some()), end.is_some())
                }
            };
            from.consume(used);
            if ended {
                self.line(stream, &line);
                line.clear();
                // See the reader of standard output.
                tokio::task::consume_budget().await;
            }
        }
        self.line(stream, &line);
    }

    /// Writes to standard error, which the engine takes for the container's log. A log that nobody takes, or that this
    /// server has had its share of, is no reason to stop.
    fn show(&self, line: &str) {
        let line = {
            let mut state = self.state();
            if state.since.elapsed() >= SPAN {
                state.since = Instant::now();
                state.spent = 0;
            }
            if state.spent > BUDGET {
                return;
            }
            state.spent += line.len() + 1;
            if state.spent > BUDGET {
                "mcp-bridge: the MCP server says too much; the rest of this minute is not shown"
            } else {
                line
            }
        };
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_is_drained_to_its_end_and_only_its_last_lines_are_kept() {
        let said = Said::own();
        let mut flood = Vec::new();
        for n in 0..20_000 {
            flood.extend(format!("line {n} {}\n", "x".repeat(2_000)).bytes());
        }
        flood.extend(b"\x1b[31mthe end");
        said.drain("stderr", flood.as_slice()).await;
        let last = said.last();
        assert!(last.ends_with("\\u{1b}[31mthe end"), "{last}");
        assert!(last.len() < KEPT * (SHOWN + 20), "{}", last.len());
    }

    #[test]
    fn a_secret_across_the_cut_of_a_long_line_does_not_show_in_part() {
        let said = Said::new(Redactor::new(["hunter2-hunter2"]));
        let line = format!("{}hunter2-hunter2 tail", "x".repeat(SHOWN - 4));
        said.line("stderr", line.as_bytes());
        assert!(!said.last().contains("hun"), "{}", said.last());
    }
}
