//! Server-sent events, out of pieces of any length: as much of them as MCP uses.

use std::time::Duration;

use hyper::header::HeaderValue;

use crate::bridge::stdio::line::LONGEST;

/// How long to wait before a stream is asked for again, where the server says nothing, and what it may say.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_LEAST: Duration = Duration::from_millis(100);
const AGAIN_MOST: Duration = Duration::from_secs(30);

/// A stream's state.
pub(super) struct Events {
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed after it ends no other line.
    returned: bool,
    data: Vec<u8>,
    /// Whether the event has a line of data at all.
    has_data: bool,
    /// Whether the event is of another kind than `message`.
    other: bool,
    /// The last event's id, from which a stream can be taken up again.
    pub(super) last: Option<HeaderValue>,
    /// How long to wait before that.
    pub(super) again: Duration,
}

/// A line or an event has more bytes than a message may have.
#[derive(Debug)]
pub(super) struct TooLong;

impl Events {
    pub(super) fn new() -> Self {
        Self {
            line: Vec::new(),
            returned: false,
            data: Vec::new(),
            has_data: false,
            other: false,
            last: None,
            again: AGAIN,
        }
    }

    /// Takes bytes, and gives the events that end in them.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            if std::mem::take(&mut self.returned) && bytes.first() == Some(&b'\n') {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if self.line.len() + self.data.len() + part.len() > LONGEST {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.returned = bytes.get(end) == Some(&b'\r');
            bytes = bytes.get(end + 1..).unwrap_or_default();
            let line = std::mem::take(&mut self.line);
            found.extend(self.ended(&line));
        }
        Ok(found)
    }

    /// A whole line. An empty one ends an event.
    fn ended(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let other = std::mem::take(&mut self.other);
            // An event without data only tells its id.
            return (std::mem::take(&mut self.has_data) && !other && !data.is_empty())
                .then_some(data);
        }
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.get(1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.other = value != b"message",
            b"id" => {
                self.last = HeaderValue::from_bytes(value)
                    .ok()
                    .filter(|id| !id.is_empty())
            }
            b"retry" => {
                let milliseconds = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                if let Some(milliseconds) = milliseconds {
                    self.again = Duration::from_millis(milliseconds).clamp(AGAIN_LEAST, AGAIN_MOST);
                }
            }
            // A comment, or of a later time.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut_and_whatever_ends_a_line() {
        let text = "\u{feff}: hello\n\nid: 7\nretry: 5\ndata:\n\nevent: message\r\ndata: {\"a\":\r\ndata:  1}\r\n\r\n\
                    event: ping\ndata: x\n\ndata: last\r\rdata: cut";
        for piece in 1..text.len() {
            let mut events = Events::new();
            let mut found = Vec::new();
            for bytes in text.as_bytes().chunks(piece) {
                found.extend(events.take(bytes).unwrap());
            }
            assert_eq!(found, [&b"{\"a\":\n 1}"[..], b"last"], "{piece}");
            assert_eq!(events.last.as_ref().unwrap(), "7");
            assert_eq!(events.again, AGAIN_LEAST);
        }
    }

    #[test]
    fn an_event_without_an_end_is_not_kept() {
        let mut events = Events::new();
        let line = [b"data: ".as_slice(), &vec![b'x'; 1 << 20], b"\n"].concat();
        let taken = (0..20).find(|_| events.take(&line).is_err());
        assert_eq!(taken, Some(16));
    }
}
