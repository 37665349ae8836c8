//! Name and port → verdict (N1–N6, N9). Entries and names are read by the compiler's own parser, so that what the plan
//! says and what is enforced cannot differ.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::IpAddr;

use selu_compiler::check::network::host;
use selu_compiler::model::NetworkMode;
use selu_compiler::plan::GatewayRule;

/// Domains that are nobody's in the public tree (RFC 6761 and its registry), or that are in use for private ones: what
/// mode `any` calls a public name is not in them (N9).
const NOT_PUBLIC: &[&str] = &[
    "alt",
    "arpa",
    "corp",
    "example",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "test",
];

/// What somebody wants to reach: a name or an address, never both (N4).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    /// In lower case and punycode, without the dot at its end.
    Name(String),
    /// As it was written by a client of the proxy.
    Literal(IpAddr),
}

impl Host {
    /// Reads what a client wrote: a name in any case with at most one dot at its end, an IPv4 address in its usual form,
    /// or an IPv6 address in brackets. Anything else, old forms of addresses too, is nothing.
    pub(crate) fn read(text: &str) -> Option<Self> {
        // The parser is made for people's manifests and explains every mistake. What cannot be right does not get there.
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        let bracketed = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        let possible = match bracketed {
            Some(inner) => inner
                .bytes()
                .all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.')),
            None => text.bytes().all(plain),
        };
        if !possible || text.len() > 254 {
            return None;
        }
        match host::parse(text).ok()? {
            host::Entry {
                host: host::Host::Name(name),
                port: None,
            } => Some(Self::Name(name)),
            host::Entry {
                host: host::Host::Address(address),
                port: None,
            } => Some(Self::Literal(address)),
            _ => None,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Literal(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Literal(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A host and a TCP port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    /// Where to.
    pub(crate) host: Host,
    /// Never 0.
    pub(crate) port: u16,
}

impl Target {
    /// Its name, if it is one.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Name(name) => Some(name),
            Host::Literal(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        write!(f, "{host}:{port}")
    }
}

/// Why something is not carried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Reason {
    #[error("it is not in the manifest's `network.hosts`")]
    NotListed,
    #[error("the host is listed, but not with this port")]
    PortNotListed,
    #[error("mode `any` is for public names: this is none")]
    NotPublicName,
    #[error("{0} is not a globally reachable address")]
    NotGlobal(IpAddr),
    #[error("{0} is a private address, which takes a permission in selu.toml")]
    Private(IpAddr),
    #[error("{0} is an address of the engine's own host")]
    HostAddress(IpAddr),
    #[error("{0} is in the range of this gateway's own networks")]
    OwnRange(IpAddr),
    #[error("there is no such name, or it has no IPv4 address")]
    NoSuchName,
    #[error("the name could not be looked up: {0}")]
    LookupFailed(String),
    #[error("the TLS client hello names no server")]
    NoSni,
    #[error("what looks like TLS cannot be read as such: {0}")]
    NotTls(String),
    #[error("the TLS client hello names {0:?}")]
    SniMismatch(String),
    #[error("the HTTP request is for {0:?}")]
    HostMismatch(String),
    #[error("the HTTP request names no host")]
    NoHost,
    #[error("what looks like HTTP cannot be read as such: {0}")]
    NotHttp(String),
    #[error("the client's first bytes came too slowly")]
    TooSlow,
    #[error("there are too many connections")]
    TooManyConnections,
    #[error("there are too many questions")]
    RateLimited,
    #[error("there is no virtual address left in the container's subnet")]
    PoolEmpty,
    #[error("too many new names in an hour")]
    TooManyNames,
    #[error("the name is too long, or not of letters, digits and hyphens")]
    NameTooLong,
    #[error("no connection: {0}")]
    ConnectFailed(String),
    #[error("no connection within {0} s")]
    TimedOut(u64),
    #[error("no name belongs to this virtual address")]
    RawAddress,
    #[error("nothing passed for an hour")]
    Idle,
    #[error("the policy no longer allows it")]
    Revoked,
}

impl Reason {
    /// For programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NotListed => "not-listed",
            Self::PortNotListed => "port-not-listed",
            Self::NotPublicName => "not-public-name",
            Self::NotGlobal(_) => "not-global",
            Self::Private(_) => "private",
            Self::HostAddress(_) => "host-address",
            Self::OwnRange(_) => "own-range",
            Self::NoSuchName => "no-such-name",
            Self::LookupFailed(_) => "lookup-failed",
            Self::NoSni => "no-sni",
            Self::NotTls(_) => "not-tls",
            Self::SniMismatch(_) => "sni-mismatch",
            Self::HostMismatch(_) => "host-mismatch",
            Self::NoHost => "no-host",
            Self::NotHttp(_) => "not-http",
            Self::TooSlow => "too-slow",
            Self::TooManyConnections => "too-many-connections",
            Self::RateLimited => "rate-limited",
            Self::PoolEmpty => "pool-empty",
            Self::TooManyNames => "too-many-names",
            Self::NameTooLong => "name-too-long",
            Self::ConnectFailed(_) => "connect-failed",
            Self::TimedOut(_) => "timed-out",
            Self::RawAddress => "raw-address",
            Self::Idle => "idle",
            Self::Revoked => "revoked",
        }
    }

    /// Whether nobody refused anything: the destination did not answer.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::NoSuchName | Self::LookupFailed(_) | Self::ConnectFailed(_) | Self::TimedOut(_)
        )
    }

    /// The address that was refused, if it was one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self {
            Self::NotGlobal(address)
            | Self::Private(address)
            | Self::HostAddress(address)
            | Self::OwnRange(address) => Some(*address),
            _ => None,
        }
    }
}

/// The ports of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Ports {
    any: bool,
    listed: BTreeSet<u16>,
}

impl Ports {
    fn allow(&mut self, port: Option<u16>) {
        match port {
            None => self.any = true,
            Some(port) => {
                self.listed.insert(port);
            }
        }
    }

    fn allows(&self, port: u16) -> bool {
        self.any || self.listed.contains(&port)
    }
}

/// Entries in a form that is quick to ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Table {
    names: HashMap<String, Ports>,
    below: HashMap<String, Ports>,
    literals: HashMap<IpAddr, Ports>,
}

impl Table {
    fn new(entries: &[String]) -> Result<Self, String> {
        let mut table = Self::default();
        for text in entries {
            let host::Entry { host, port } = host::Entry::parse_normalised(text)?;
            match host {
                host::Host::Name(name) => table.names.entry(name).or_default().allow(port),
                host::Host::Below(apex) => table.below.entry(apex).or_default().allow(port),
                host::Host::Address(address) => {
                    table.literals.entry(address).or_default().allow(port);
                }
            }
        }
        Ok(table)
    }

    /// What the table says of a host, entry by entry.
    fn ports<'a>(&'a self, host: &'a Host) -> impl Iterator<Item = &'a Ports> {
        let (exact, name) = match host {
            Host::Name(name) => (self.names.get(name), name.as_str()),
            Host::Literal(address) => (self.literals.get(address), ""),
        };
        exact
            .into_iter()
            .chain(parents(name).filter_map(|parent| self.below.get(parent)))
    }
}

/// `b.c` and `c` for `a.b.c`: never the name itself, so that a wildcard's apex is not below itself (N3).
fn parents(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let (_, parent) = rest.split_once('.')?;
        rest = parent;
        Some(parent)
    })
}

/// The egress rules of one network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rules {
    mode: NetworkMode,
    allowed: Table,
    private: Table,
    /// The exact names, sorted: they get their virtual addresses first.
    exact: Vec<String>,
}

impl Rules {
    /// Reads a rule; an entry that cannot be read makes the whole rule unreadable (N6).
    pub(crate) fn new(rule: &GatewayRule) -> Result<Self, String> {
        let allowed = Table::new(&rule.rules.hosts)?;
        let mut exact: Vec<String> = allowed.names.keys().cloned().collect();
        exact.sort();
        Ok(Self {
            mode: rule.rules.mode,
            allowed,
            private: Table::new(&rule.private)?,
            exact,
        })
    }

    /// The names that are listed without a wildcard.
    pub(crate) fn exact_names(&self) -> &[String] {
        &self.exact
    }

    /// Whether a name is listed without a wildcard.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.allowed.names.contains_key(name)
    }

    /// Whether a name, in its normal form, may have a virtual address: some port of it is allowed.
    pub(crate) fn verdict_on_name(&self, name: &str) -> Result<(), Reason> {
        match self.mode {
            NetworkMode::None => Err(Reason::NotListed),
            NetworkMode::Any if is_public(name) => Ok(()),
            NetworkMode::Any => Err(Reason::NotPublicName),
            NetworkMode::Allowlist => {
                if self.lists(name) {
                    return Ok(());
                }
                if !parents(name).any(|parent| self.allowed.below.contains_key(parent)) {
                    return Err(Reason::NotListed);
                }
                if is_plain(name) {
                    Ok(())
                } else {
                    Err(Reason::NameTooLong)
                }
            }
        }
    }

    /// Whether a connection may be made.
    pub(crate) fn check(&self, target: &Target) -> Result<(), Reason> {
        match &target.host {
            Host::Name(name) => self.verdict_on_name(name)?,
            // Mode `any` is for names; an address has to be listed, or be permitted as a private one (N9, N8).
            Host::Literal(_) if self.mode == NetworkMode::Any => {
                return if self.permits_private(target) {
                    Ok(())
                } else {
                    Err(Reason::NotPublicName)
                };
            }
            Host::Literal(_) => {}
        }
        if self.mode == NetworkMode::Any {
            return Ok(());
        }
        if self.mode == NetworkMode::None {
            return Err(Reason::NotListed);
        }
        let mut listed = false;
        for ports in self.allowed.ports(&target.host) {
            if ports.allows(target.port) {
                return Ok(());
            }
            listed = true;
        }
        Err(if listed {
            Reason::PortNotListed
        } else {
            Reason::NotListed
        })
    }

    /// Whether selu.toml lets this target have a private address (N8).
    pub(crate) fn permits_private(&self, target: &Target) -> bool {
        self.private
            .ports(&target.host)
            .any(|ports| ports.allows(target.port))
    }
}

/// A name that may exist in the public tree: more than one label, of letters, digits and hyphens, and not in a domain
/// that is reserved (N9).
fn is_public(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    name.contains('.') && is_plain(name) && !NOT_PUBLIC.contains(&last)
}

/// The longest name that nobody wrote down. Names of real hosts stay below it; each connection to a new one could tell its
/// domain's owner that much (S15).
const LONGEST: usize = 128;

/// Letters, digits and hyphens in bounded labels: what a name that nobody wrote down may consist of (S15).
fn is_plain(name: &str) -> bool {
    name.len() <= LONGEST
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        })
}

#[cfg(test)]
mod tests;
