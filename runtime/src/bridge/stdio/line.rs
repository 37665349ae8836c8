//! Lines of bounded length, out of pieces of any length.

use selu_proto::MAX_MESSAGE_BYTES;

/// Longest line that is read: what the wire to the caller takes, and room for the message around it (W3).
pub(in crate::bridge) const LONGEST: usize = MAX_MESSAGE_BYTES + 64 * 1024;

/// Bytes at either end of a longer line that are kept, to tell which request it answers.
pub(in crate::bridge) const ENDS: usize = 256;

/// Buffers larger than this are not kept for the next line.
const KEPT: usize = 256 * 1024;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// As it came.
    Whole(Vec<u8>),
    /// What remains of one that was too long.
    TooLong {
        /// Its length.
        bytes: usize,
        /// Its first bytes.
        head: Vec<u8>,
        /// Its last bytes.
        tail: Vec<u8>,
    },
}

/// The line at hand.
#[derive(Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    /// Set once it is too long: its first bytes, and how many there were. `line` then holds its last bytes.
    head: Option<(Vec<u8>, usize)>,
}

impl Lines {
    /// Takes bytes up to the end of a line, and says how many.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (usize, Option<Line>) {
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                self.add(bytes.get(..end).unwrap_or_default());
                (end + 1, Some(self.finish()))
            }
            None => {
                self.add(bytes);
                (bytes.len(), None)
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.head.is_none() && self.line.len() + bytes.len() > LONGEST {
            let head = self.line.get(..ENDS).unwrap_or(&self.line).to_vec();
            self.head = Some((head, self.line.len()));
            self.line = last(&self.line);
        }
        self.line.extend_from_slice(bytes);
        if let Some((_, count)) = &mut self.head {
            *count += bytes.len();
            self.line = last(&self.line);
        }
    }

    fn finish(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        match self.head.take() {
            Some((head, bytes)) => Line::TooLong {
                bytes,
                head,
                tail: line,
            },
            None => {
                // The next line is probably as long as this one, unless this one was of another kind.
                self.line = Vec::with_capacity(line.len().min(KEPT));
                Line::Whole(line)
            }
        }
    }
}

fn last(bytes: &[u8]) -> Vec<u8> {
    bytes
        .get(bytes.len().saturating_sub(ENDS)..)
        .unwrap_or(bytes)
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], piece: usize) -> Vec<Line> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in bytes.chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (used, line) = lines.take(rest);
                found.extend(line);
                rest = &rest[used..];
            }
        }
        found
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_are_cut() {
        let text = b"{\"a\":1}\n\nnoise\n{\"b\":2}\nrest";
        let whole = read(text, text.len());
        assert_eq!(whole.len(), 4);
        assert_eq!(whole[2], Line::Whole(b"noise".to_vec()));
        for piece in 1..8 {
            assert_eq!(read(text, piece), whole, "{piece}");
        }
    }

    #[test]
    fn of_a_line_that_is_too_long_only_its_ends_and_its_length_remain() {
        let mut text = b"{\"id\":7,".to_vec();
        text.resize(LONGEST + 1, b'x');
        text.extend(b",\"id\":7}\nnext\n");
        for piece in [64 * 1024, text.len()] {
            let lines = read(&text, piece);
            let Line::TooLong { bytes, head, tail } = &lines[0] else {
                panic!("not too long");
            };
            assert_eq!(*bytes, LONGEST + 9);
            assert!(tail.ends_with(b",\"id\":7}") && tail.len() == ENDS);
            if piece < text.len() {
                assert!(head.starts_with(b"{\"id\":7,"));
            }
            assert_eq!(lines[1], Line::Whole(b"next".to_vec()));
        }
    }

    #[test]
    fn a_line_of_the_limit_passes() {
        let mut text = vec![b'x'; LONGEST];
        text.push(b'\n');
        assert!(matches!(&read(&text, 8192)[..], [Line::Whole(line)] if line.len() == LONGEST));
    }
}
