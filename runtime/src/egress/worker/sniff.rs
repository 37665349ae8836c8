//! What a client's first bytes say (N10): a TLS hello with the name of its server, an HTTP request, or neither.
//!
//! Recognising is generous and reading is strict: whatever some server might take for TLS or HTTP is treated as such
//! here, and is cut if it then cannot be read.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use rustls::server::Acceptor;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::limits::{BUFFER, Limits, OPENING, OPENING_LIMIT, Place};
use super::rules::Reason;

/// Longest first line of HTTP; servers take 8 KiB as a rule.
const LINE_MAX: usize = 16 * 1024;

/// How long something that may still become HTTP is held back. A request's first line comes in one piece, or in several
/// without a pause; another protocol's client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What hyper's client and others send before HTTP/2 without TLS.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a connection begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Opening {
    /// A TLS hello, with the name that it asks for.
    Tls(Option<String>),
    /// HTTP/1: the whole first line is there.
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
    /// Something else, or the end.
    Raw,
    /// It may still become HTTP, but the client waits for an answer to what it has said.
    Pending,
}

/// What is known so far.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Guess {
    /// It may still become this.
    Unclear(Family),
    Clear(Opening),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Tls,
    Http,
}

impl Family {
    /// Why it is cut when it stays unclear.
    fn unclear(self, why: &str) -> Reason {
        match self {
            Self::Tls => Reason::NotTls(why.to_owned()),
            Self::Http => Reason::NotHttp(why.to_owned()),
        }
    }
}

/// Reads into `read` until it is clear what this is. It may be dropped and begun again with the same buffer.
pub(super) async fn sniff(
    client: &TcpStream,
    read: &mut BytesMut,
    room: &mut Room<'_>,
) -> Result<Opening, Stop> {
    sniff_within(PATIENCE, OPENING_LIMIT, client, read, room).await
}

/// The memory for what is read: a little for everybody, more only for as many as there are places.
pub(super) struct Room<'a> {
    limits: &'a Limits,
    place: Option<Place>,
}

impl<'a> Room<'a> {
    /// With what was read already.
    pub(super) fn new(limits: &'a Limits, read: &BytesMut) -> Result<Self, Reason> {
        let place = match read.len() > OPENING {
            true => Some(limits.admit_opening()?),
            false => None,
        };
        Ok(Self { limits, place })
    }

    /// Makes room for at least one byte more.
    fn make(&mut self, read: &mut BytesMut) -> Result<(), Reason> {
        if read.len() < OPENING {
            read.reserve(OPENING - read.len());
        } else {
            if self.place.is_none() {
                self.place = Some(self.limits.admit_opening()?);
            }
            read.reserve((BUFFER + OPENING).saturating_sub(read.len()).max(1));
        }
        Ok(())
    }
}

async fn sniff_within(
    patience: Duration,
    limit: Duration,
    client: &TcpStream,
    read: &mut BytesMut,
    room: &mut Room<'_>,
) -> Result<Opening, Stop> {
    if read.is_empty() && !fill(client, read, room).await? {
        return Ok(Opening::Raw);
    }
    let began = Instant::now();
    let mut records = 0;
    loop {
        let family = match guess(read, &mut records)? {
            Guess::Clear(opening) => return Ok(opening),
            Guess::Unclear(family) => family,
        };
        if read.len() >= BUFFER {
            return Err(family.unclear("its begin is too long").into());
        }
        // A whole version cannot be taken back by what follows.
        let waits = family == Family::Http && !has_version(read);
        let until = began + if waits { patience } else { limit };
        match timeout_at(until, fill(client, read, room)).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return Err(family.unclear("it ends in its begin").into()),
            Ok(Err(stop)) => return Err(stop),
            Err(_) if waits => return Ok(Opening::Pending),
            Err(_) => return Err(Reason::TooSlow.into()),
        }
    }
}

/// Reads on after [`Opening::Pending`], when what is there was passed on. `true` while it may still become HTTP, `false`
/// once it cannot, or at the end. What makes it a request is refused, so that it never reaches the server.
pub(super) async fn read_on(
    client: &TcpStream,
    read: &mut BytesMut,
    room: &mut Room<'_>,
) -> Result<bool, Stop> {
    if !fill(client, read, room).await? {
        return Ok(false);
    }
    match guess(read, &mut 0)? {
        Guess::Clear(Opening::Raw) => Ok(false),
        Guess::Unclear(_) if !has_version(read) => Ok(true),
        _ => Err(Family::Http.unclear("its first line comes in parts").into()),
    }
}

/// Why nothing is carried.
#[derive(Debug)]
pub(super) enum Stop {
    /// A socket failed, or its peer broke off.
    Broken,
    /// The gateway cuts.
    Refused(Reason),
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        // Which side broke off is told to the other one, not to people: it happens all the time.
        Self::Broken
    }
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Self::Refused(reason)
    }
}

/// Reads what is there, and waits until something is. `false` at the end.
async fn fill(client: &TcpStream, read: &mut BytesMut, room: &mut Room<'_>) -> Result<bool, Stop> {
    loop {
        client.readable().await?;
        room.make(read)?;
        match client.try_read_buf(read) {
            Ok(count) => return Ok(count > 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// `records`: how many bytes of whole TLS records were looked at before, so that a hello in small pieces is not read anew
/// for each of them.
fn guess(bytes: &[u8], records: &mut usize) -> Result<Guess, Reason> {
    match bytes {
        [0x16] => Ok(Guess::Unclear(Family::Tls)),
        [0x16, 0x03, ..] => {
            let whole = whole_records(bytes);
            if whole <= *records {
                return Ok(Guess::Unclear(Family::Tls));
            }
            *records = whole;
            hello(bytes)
        }
        // The hello of SSL 2, by which some servers still let TLS begin: it has no place for a name.
        [0x80..=0xff, _, 0x01, 0x03, ..] => {
            Err(Reason::NotTls("it has the form of SSL 2".to_owned()))
        }
        [0x80..=0xff] | [0x80..=0xff, _] | [0x80..=0xff, _, 0x01] => {
            Ok(Guess::Unclear(Family::Tls))
        }
        _ => Ok(request_line(bytes)),
    }
}

/// The length of the whole records at the begin.
fn whole_records(bytes: &[u8]) -> usize {
    let mut whole = 0;
    while let Some([_, _, _, high, low, ..]) = bytes.get(whole..) {
        let next = whole + 5 + usize::from(u16::from_be_bytes([*high, *low]));
        if next > bytes.len() {
            break;
        }
        whole = next;
    }
    whole
}

fn hello(bytes: &[u8]) -> Result<Guess, Reason> {
    let mut acceptor = Acceptor::default();
    let mut rest = bytes;
    loop {
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let name = accepted.client_hello().server_name().map(str::to_owned);
                return Ok(Guess::Clear(Opening::Tls(name)));
            }
            Ok(None) if rest.is_empty() => return Ok(Guess::Unclear(Family::Tls)),
            Ok(None) => {}
            Err((error, _)) => return Err(Reason::NotTls(error.to_string())),
        }
        acceptor
            .read_tls(&mut rest)
            .map_err(|error| Reason::NotTls(error.to_string()))?;
    }
}

/// Whether this begins with a line that some server might take for a request of HTTP/1: a word, a blank, and `HTTP/`
/// later in the line. Servers pass over empty lines before it, and some over blanks.
fn request_line(bytes: &[u8]) -> Guess {
    let begin = bytes
        .iter()
        .position(|b| !is_blank(*b) && *b != b'\n')
        .unwrap_or(bytes.len());
    let text = &bytes[begin..];
    let unclear = Guess::Unclear(Family::Http);
    let raw = Guess::Clear(Opening::Raw);
    if bytes.starts_with(PREFACE) {
        return Guess::Clear(Opening::Http2);
    }
    if PREFACE.starts_with(bytes) {
        return unclear;
    }
    let end = text.iter().position(|b| *b == b'\n');
    let line = &text[..end.unwrap_or(text.len())];
    let word = line
        .iter()
        .position(|b| !is_token(*b))
        .unwrap_or(line.len());
    let looks_right = match line.get(word) {
        Some(after) if is_blank(*after) => {
            // Some servers take any byte in the middle of the line. What begins with a short number and a length of that
            // kind, as LDAP does, is no method that anybody serves.
            let foreign = |b: &u8| b.is_ascii_control() && !is_blank(*b);
            let letters = |b: &u8| b.is_ascii_alphabetic() || matches!(b, b'-' | b'_');
            word > 0 && (line[..word].iter().all(letters) || !line.iter().any(foreign))
        }
        Some(_) => false,
        // A word without an end, or nothing yet.
        None => end.is_none(),
    };
    if !looks_right {
        // No method that anybody serves, but a line that could not be more of HTTP than it is: some reader may be that lax.
        // Such a line is not waited for, since most of what begins like this is another protocol.
        return match end {
            Some(_) if ends_in_version(line) => Guess::Clear(Opening::Http1),
            _ => raw,
        };
    }
    match end {
        Some(_) if has_version(line) => Guess::Clear(Opening::Http1),
        Some(_) => raw,
        None if bytes.len() < LINE_MAX => unclear,
        // No server reads on, and what reads it strictly refuses it.
        None => Guess::Clear(Opening::Http1),
    }
}

/// What a method consists of (RFC 9110).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What some server takes for a blank: Python's also what is one in Unicode's first 256 characters.
fn is_blank(byte: u8) -> bool {
    matches!(
        byte,
        b'\t' | 0x0b | 0x0c | b'\r' | 0x1c..=0x20 | 0x85 | 0xa0
    )
}

fn has_version(line: &[u8]) -> bool {
    line.windows(5)
        .any(|part| part.eq_ignore_ascii_case(b"HTTP/"))
}

/// Whether its last word is a version of HTTP.
fn ends_in_version(line: &[u8]) -> bool {
    let mut words = line.split(|b| is_blank(*b)).filter(|word| !word.is_empty());
    words.next_back().is_some_and(has_version)
}

#[cfg(test)]
mod tests;
