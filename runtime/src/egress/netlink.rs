//! The kernel's netlink messages, as far as the privileged parent needs them: routes, notices, and the carrier of the
//! packet filter's batches ([`super::wall`]).
//!
//! No program is run and no C library is linked: the gateway's image holds one static executable.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use ipnet::Ipv4Net;
use rustix::net::netlink::{NETFILTER, SocketAddrNetlink};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send,
    socket_with,
};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// `NLM_F_*`.
pub(super) const REQUEST: u16 = 0x1;
pub(super) const ACK: u16 = 0x4;
pub(super) const REPLACE: u16 = 0x100;
pub(super) const CREATE: u16 = 0x400;
pub(super) const APPEND: u16 = 0x800;

const HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLA_F_NESTED: u16 = 0x8000;

const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RT_TABLE_LOCAL: u8 = 255;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_HOST: u8 = 254;
const RTN_LOCAL: u8 = 2;
/// The loopback's index in every network namespace.
const LOOPBACK: u32 = 1;

/// Notices of devices and of their IPv4 addresses: `RTMGRP_LINK` and `RTMGRP_IPV4_IFADDR`.
const DEVICE_GROUPS: u32 = 0x1 | 0x10;

/// The kernel answers at once or never.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Why the kernel did not do something.
#[derive(Debug, thiserror::Error)]
pub(super) enum NetlinkError {
    /// It refused.
    #[error("the kernel refused {what}{}", hint(.source))]
    Refused {
        /// Such as `the chain prerouting of type nat`.
        what: String,
        /// Its error.
        source: io::Error,
    },
    /// It could not be spoken to.
    #[error("cannot speak to the kernel about {what}")]
    Socket {
        /// Such as `routes`.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    use rustix::io::Errno;
    match error
        .raw_os_error()
        .map(Errno::from_raw_os_error)
        .unwrap_or(Errno::IO)
    {
        Errno::NOENT | Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => {
            ": the engine's kernel lacks that part of nf_tables (nft_chain_nat, nft_redir, nft_ct and nf_conntrack are \
             needed)"
        }
        Errno::PERM | Errno::ACCESS => {
            ": the gateway lacks NET_ADMIN; was it made by something else than `selu apply`?"
        }
        _ => "",
    }
}

/// Messages on their way to the kernel, one after another.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// What each message asks for, by its sequence number.
    what: Vec<String>,
    /// The last message that asks for an answer.
    answered: Option<usize>,
}

impl Batch {
    /// Adds a message: its fixed part, then its attributes.
    pub(super) fn message(
        &mut self,
        what: impl Into<String>,
        kind: u16,
        flags: u16,
        fixed: &[u8],
        attributes: &Attributes,
    ) {
        let length = HEADER + fixed.len() + attributes.0.len();
        let sequence = self.what.len();
        self.what.push(what.into());
        if flags & ACK != 0 {
            self.answered = Some(sequence);
        }
        self.bytes.extend(as_u32(length).to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((flags | REQUEST).to_ne_bytes());
        self.bytes.extend(as_u32(sequence).to_ne_bytes());
        self.bytes.extend(0_u32.to_ne_bytes());
        self.bytes.extend(fixed);
        self.bytes.extend(&attributes.0);
    }
}

/// Attributes: each with its length and kind, padded to four bytes.
#[derive(Default, Clone)]
pub(super) struct Attributes(Vec<u8>);

impl Attributes {
    pub(super) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(super) fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// In the network's byte order, as the packet filter has all its numbers.
    pub(super) fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub(super) fn nested(self, kind: u16, inner: &Self) -> Self {
        self.bytes(kind | NLA_F_NESTED, &inner.0)
    }

    pub(super) fn then(mut self, more: &Self) -> Self {
        self.0.extend(&more.0);
        self
    }
}

fn as_u32(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// A conversation with one part of the kernel.
pub(super) struct Kernel {
    socket: OwnedFd,
    about: &'static str,
}

impl Kernel {
    /// With the packet filter.
    pub(super) fn filter() -> Result<Self, NetlinkError> {
        Self::open("the packet filter", Some(NETFILTER))
    }

    /// With the routing tables.
    pub(super) fn routes() -> Result<Self, NetlinkError> {
        Self::open("routes", None)
    }

    fn open(about: &'static str, protocol: Option<Protocol>) -> Result<Self, NetlinkError> {
        let socket = netlink_socket(protocol, SocketFlags::CLOEXEC).and_then(|socket| {
            sockopt::set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_LIMIT))?;
            Ok(socket)
        });
        match socket {
            Ok(socket) => Ok(Self { socket, about }),
            Err(error) => Err(NetlinkError::Socket {
                what: about,
                source: error.into(),
            }),
        }
    }

    /// Sends all messages at once and waits for the answer to the last one that asks for one. An error of any of them is
    /// the batch's.
    pub(super) fn carry_out(&self, batch: &Batch) -> Result<(), NetlinkError> {
        let failed = |source: io::Error| NetlinkError::Socket {
            what: self.about,
            source,
        };
        // A table of many networks is larger than what a socket takes by default.
        let room = batch.bytes.len().max(64 << 10) * 2;
        let sized = sockopt::set_socket_send_buffer_size_force(&self.socket, room);
        sized.map_err(|error| failed(error.into()))?;
        let sent = send(&self.socket, &batch.bytes, SendFlags::empty());
        sent.map_err(|error| failed(error.into()))?;
        // An error quotes the message that it is about.
        let mut buffer = vec![0; 64 << 10];
        loop {
            let heard = recv(&self.socket, &mut buffer[..], RecvFlags::empty());
            let (length, _) = heard.map_err(|error| failed(error.into()))?;
            for (sequence, code) in answers(&buffer[..length]) {
                let sequence = sequence as usize;
                if code != 0 {
                    let what = batch.what.get(sequence).cloned();
                    return Err(NetlinkError::Refused {
                        what: what.unwrap_or_else(|| self.about.to_owned()),
                        source: io::Error::from_raw_os_error(code),
                    });
                }
                if batch.answered == Some(sequence) {
                    return Ok(());
                }
            }
        }
    }
}

fn netlink_socket(protocol: Option<Protocol>, flags: SocketFlags) -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)
}

/// Sequence number and error code of each answer.
fn answers(mut bytes: &[u8]) -> Vec<(u32, i32)> {
    let number = |bytes: &[u8], at: usize| -> Option<u32> {
        let four = bytes.get(at..at + 4)?;
        Some(u32::from_ne_bytes(four.try_into().ok()?))
    };
    let mut found = Vec::new();
    while let (Some(length), Some(kind), Some(sequence)) =
        (number(bytes, 0), number(bytes, 4), number(bytes, 8))
    {
        let length = length as usize;
        // Kind and flags are read as one number.
        let kind = u16::from_ne_bytes([kind.to_ne_bytes()[0], kind.to_ne_bytes()[1]]);
        if kind == NLMSG_ERROR
            && let Some(code) = number(bytes, HEADER)
        {
            found.push((sequence, code.cast_signed().wrapping_neg()));
        }
        match bytes.get(length.next_multiple_of(4)..) {
            Some(rest) if length >= HEADER => bytes = rest,
            _ => break,
        }
    }
    found
}

/// Makes every address of `ranges` one of the gateway's own: it answers for them on the wire, and packets to them arrive.
/// After an error none of them is.
pub(super) fn own(ranges: &[Ipv4Net]) -> Result<(), NetlinkError> {
    let Some((last, others)) = ranges.split_last() else {
        return Ok(());
    };
    let mut batch = Batch::default();
    for range in others {
        route(&mut batch, RTM_NEWROUTE, CREATE | REPLACE, *range);
    }
    // Errors are told unasked; one answer for each would fill the socket.
    route(&mut batch, RTM_NEWROUTE, CREATE | REPLACE | ACK, *last);
    Kernel::routes()?.carry_out(&batch).inspect_err(|_| {
        for range in ranges {
            // The first error says enough.
            let _ = disown(*range);
        }
    })
}

/// Takes [`own`] back. Taken back already is fine.
pub(super) fn disown(range: Ipv4Net) -> Result<(), NetlinkError> {
    let mut batch = Batch::default();
    route(&mut batch, RTM_DELROUTE, ACK, range);
    match Kernel::routes()?.carry_out(&batch) {
        Err(NetlinkError::Refused { source, .. })
            if source.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) =>
        {
            Ok(())
        }
        other => other,
    }
}

fn route(batch: &mut Batch, kind: u16, flags: u16, range: Ipv4Net) {
    let inet = 2;
    let fixed = [
        inet,
        range.prefix_len(),
        0,
        0,
        RT_TABLE_LOCAL,
        RTPROT_STATIC,
        RT_SCOPE_HOST,
        RTN_LOCAL,
        0,
        0,
        0,
        0,
    ];
    let attributes = Attributes::default()
        .bytes(RTA_DST, &octets(range.network()))
        .bytes(RTA_OIF, &LOOPBACK.to_ne_bytes());
    let what = format!("the route of {range}");
    batch.message(what, kind, flags, &fixed, &attributes);
}

pub(super) fn octets(address: Ipv4Addr) -> [u8; 4] {
    address.octets()
}

/// Notices of devices that come, go or change.
pub(super) struct Notices(mpsc::Receiver<()>);

impl Notices {
    /// Listens from now on, on a thread of its own.
    pub(super) fn listen() -> io::Result<Self> {
        let socket = netlink_socket(None, SocketFlags::CLOEXEC)?;
        bind(&socket, &SocketAddrNetlink::new(0, DEVICE_GROUPS))?;
        let (sender, receiver) = mpsc::channel(1);
        thread::Builder::new()
            .name("notices".to_owned())
            .spawn(move || pass_on(&socket, &sender))?;
        Ok(Self(receiver))
    }

    /// Returns once there was one, or several, or more than the kernel could keep: what they say is looked up. An error
    /// if there will be none any more.
    pub(super) async fn next(&mut self) -> io::Result<()> {
        let gone = || io::Error::other("the kernel tells nothing any more");
        self.0.recv().await.ok_or_else(gone)
    }
}

fn pass_on(socket: &OwnedFd, notices: &mpsc::Sender<()>) {
    let mut buffer = [0; 8192];
    loop {
        use rustix::io::Errno;
        match recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok(_) | Err(Errno::NOBUFS) => {
                // One that waits to be looked at stands for this one, too.
                if let Err(TrySendError::Closed(())) = notices.try_send(()) {
                    return;
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_their_length_does_not_count_the_padding() {
        let attributes = Attributes::default().text(1, "selu").number(2, 7);
        let mut expected = Vec::new();
        expected.extend(9_u16.to_ne_bytes());
        expected.extend(1_u16.to_ne_bytes());
        expected.extend(b"selu\0\0\0\0");
        expected.extend(8_u16.to_ne_bytes());
        expected.extend(2_u16.to_ne_bytes());
        expected.extend([0, 0, 0, 7]);
        assert_eq!(attributes.0, expected);
    }

    #[test]
    fn errors_are_read_with_the_message_that_they_belong_to() {
        let answer = |sequence: u32, code: i32| {
            let mut bytes = Vec::new();
            bytes.extend(36_u32.to_ne_bytes());
            bytes.extend(NLMSG_ERROR.to_ne_bytes());
            bytes.extend(0_u16.to_ne_bytes());
            bytes.extend(sequence.to_ne_bytes());
            bytes.extend(0_u32.to_ne_bytes());
            bytes.extend(code.to_ne_bytes());
            bytes.extend([0; 16]);
            bytes
        };
        let bytes = [answer(3, -2), answer(9, 0)].concat();
        assert_eq!(answers(&bytes), [(3, 2), (9, 0)]);
        assert_eq!(answers(&bytes[..30]), [(3, 2)], "cut short");
        assert_eq!(answers(&[0; 40]), [], "a length of nothing");
    }
}
