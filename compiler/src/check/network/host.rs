//! One entry of `network.hosts` (N2–N5). The gateway reads a policy's entries with the same parser.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::diag::codes::network as codes;
use crate::diag::{Code, Problem, shown};

/// The longest name in DNS, without the dot at its end.
const NAME_MAX: usize = 253;

/// Ports of service names that people write.
const SERVICES: &[(&str, u16)] = &[
    ("ftp", 21),
    ("ssh", 22),
    ("smtp", 25),
    ("domain", 53),
    ("http", 80),
    ("imap", 143),
    ("ldap", 389),
    ("https", 443),
    ("ldaps", 636),
    ("imaps", 993),
    ("ws", 80),
    ("wss", 443),
    ("mysql", 3306),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("redis", 6379),
    ("mongodb", 27017),
];

/// A rule without doubt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Which host.
    pub host: Host,
    /// Any port where there is none.
    pub port: Option<u16>,
}

/// Which hosts an entry allows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// In lower case and punycode, without the dot at its end.
    Name(String),
    /// Every subdomain at any depth, never the apex (N3).
    Below(String),
    /// Reachable through the gateway's proxy only (N4).
    Address(IpAddr),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => f.write_str(name)?,
            Host::Below(apex) => write!(f, "*.{apex}")?,
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl Entry {
    /// Reads an entry that is normalised already, as a plan has it: one way to write each, so that what is compared as
    /// text is compared as a rule.
    pub fn parse_normalised(text: &str) -> Result<Self, String> {
        let entry = parse(text).map_err(|problem| problem.message)?;
        let normal = entry.to_string();
        if normal == text {
            Ok(entry)
        } else {
            Err(format!("`{}` is written `{normal}` here", shown(text)))
        }
    }

    /// Whether everything that `other` allows is allowed by this one.
    pub fn covers(&self, other: &Self) -> bool {
        self == other || other.wider().contains(self)
    }

    /// Whether it allows names of more than one owner: a wildcard over a public suffix, or over the domain of a host for
    /// many (N5).
    pub fn has_many_owners(&self) -> bool {
        match &self.host {
            Host::Below(apex) => !matches!(Suffix::of(apex), Suffix::None),
            Host::Name(_) | Host::Address(_) => false,
        }
    }

    /// Every other entry that would cover this one.
    pub(super) fn wider(&self) -> Vec<Self> {
        let mut hosts = vec![self.host.clone()];
        if let Host::Name(name) | Host::Below(name) = &self.host {
            let mut rest = name.as_str();
            while let Some((_, parent)) = rest.split_once('.') {
                hosts.push(Host::Below(parent.to_owned()));
                rest = parent;
            }
        }
        hosts
            .into_iter()
            .flat_map(|host| {
                let any_port = Self {
                    host: host.clone(),
                    port: None,
                };
                let same_port = Self {
                    host,
                    port: self.port,
                };
                [any_port, same_port]
            })
            .filter(|wider| wider != self)
            .collect()
    }

    /// Warnings and notes about an entry that is right in itself (N5).
    pub(super) fn remarks(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.is_local() {
            problems.push(Problem::new(
                &codes::HOST_LOCAL,
                format!("`{self}` is the container itself, not the machine that it runs on"),
            ));
        }
        if let Host::Below(apex) = &self.host {
            problems.extend(match Suffix::of(apex) {
                Suffix::None => None,
                Suffix::Public => Some(Problem::new(
                    &codes::HOST_PUBLIC_SUFFIX,
                    format!("`{self}` allows every domain that anyone registers below `{apex}`"),
                )),
                Suffix::Shared => Some(Problem::new(
                    &codes::HOST_SHARED_SUFFIX,
                    format!("`{self}` allows the names of every customer of `{apex}`"),
                )),
            });
        }
        if self.port.is_none() {
            problems.push(
                Problem::new(
                    &codes::HOST_ANY_PORT,
                    format!("`{self}` has no port: it allows every TCP port"),
                )
                .suggest(format!("{self}:443")),
            );
        }
        problems
    }

    pub(in crate::check) fn is_local(&self) -> bool {
        match &self.host {
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Below(apex) => apex == "localhost" || apex.ends_with(".localhost"),
            Host::Address(address) => address.is_loopback() || address.is_unspecified(),
        }
    }
}

/// Who can get a name below a domain, by the public suffix list.
enum Suffix {
    /// Its owner.
    None,
    /// Anyone, at a registry: `com`, `co.uk`, and any single label.
    Public,
    /// Anyone, as a customer of its owner: `github.io`.
    Shared,
}

impl Suffix {
    fn of(apex: &str) -> Self {
        if apex == "localhost" {
            return Self::None;
        }
        if !apex.contains('.') {
            return Self::Public;
        }
        match psl::suffix(apex.as_bytes()) {
            Some(suffix) if suffix == apex => match suffix.typ() {
                Some(psl::Type::Icann) => Self::Public,
                Some(psl::Type::Private) => Self::Shared,
                None => Self::None,
            },
            _ => Self::None,
        }
    }
}

/// Reads an entry; the problem has no pointer yet.
pub fn parse(text: &str) -> Result<Entry, Problem> {
    refuse_other_forms(text)?;
    let (host, port) = split_port(text)?;
    let port = match port {
        Some(port) => Some(parse_port(text, host, port)?),
        None => None,
    };
    Ok(Entry {
        host: parse_host(text, host)?,
        port,
    })
}

/// URLs, paths, user info, blanks: the right form is shown where it is clear (N5).
fn refuse_other_forms(text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(invalid("the entry is empty").help("write `host:port`, or remove it"));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        let better: String = text
            .chars()
            .filter(|c| !c.is_whitespace() && !c.is_control())
            .collect();
        let trimmed = text.trim().chars().any(char::is_whitespace);
        let after_colon = text.contains(": ");
        let problem = invalid(format!("`{}` holds blanks", shown(text)));
        // A blank inside the host is two hosts as likely as one.
        return Err(if trimmed && !after_colon {
            problem.help("write one entry for each host")
        } else {
            offer(problem, better)
        });
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let port = SERVICES
            .iter()
            .find(|(name, _)| scheme.eq_ignore_ascii_case(name));
        let better = match port {
            Some((_, port)) if split_port(host).is_ok_and(|(_, port)| port.is_none()) => {
                format!("{host}:{port}")
            }
            _ => host.to_owned(),
        };
        return Err(offer(
            invalid(format!(
                "`{}` is a URL: an entry is `host:port`",
                masked(text)
            )),
            better,
        ));
    }
    if let Some((address, length)) = text.split_once('/')
        && address.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
        && !length.is_empty()
        && length.bytes().all(|b| b.is_ascii_digit())
    {
        return Err(
            invalid(format!("`{}` is a range of addresses", shown(text)))
                .help("list each host by its name"),
        );
    }
    if let Some((host, _)) = text.split_once(['/', '?', '#', '\\']) {
        return Err(offer(
            invalid(format!(
                "`{}` has a path: an entry is `host:port`",
                masked(text)
            )),
            host.rsplit('@').next().unwrap_or_default().to_owned(),
        ));
    }
    if let Some((_, host)) = text.rsplit_once('@') {
        return Err(offer(
            invalid(format!(
                "`{}` has user info: an entry is `host:port`",
                masked(text)
            )),
            host.to_owned(),
        ));
    }
    Ok(())
}

/// Host and port as written; brackets stay on the host.
fn split_port(text: &str) -> Result<(&str, Option<&str>), Problem> {
    if text.starts_with('[') {
        let Some(end) = text.find(']') else {
            return Err(invalid(format!(
                "`{}` lacks its closing bracket",
                shown(text)
            )));
        };
        let (host, after) = text.split_at(end + 1);
        return match (after, after.strip_prefix(':')) {
            ("", _) => Ok((host, None)),
            (_, Some(port)) => Ok((host, Some(port))),
            _ => Err(invalid(format!(
                "`{}`: only `:port` may follow the bracket",
                shown(text)
            ))),
        };
    }
    match text.matches(':').count() {
        0 => Ok((text, None)),
        1 => Ok(text
            .split_once(':')
            .map_or((text, None), |(host, port)| (host, Some(port)))),
        _ if text.parse::<Ipv6Addr>().is_ok() => Err(offer(
            invalid(format!(
                "`{}` is an IPv6 address without brackets",
                shown(text)
            )),
            format!("[{text}]"),
        )),
        _ => Err(invalid(format!(
            "`{}` has more than one colon: an entry is `host:port`, an IPv6 address is `[address]:port`",
            shown(text)
        ))),
    }
}

fn parse_port(text: &str, host: &str, port: &str) -> Result<u16, Problem> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if port.is_empty() {
        return Err(offer(
            wrong_port(format!("`{}` has no port after its colon", shown(text))),
            host.to_owned(),
        ));
    }
    if port == "*" {
        return Err(offer(
            wrong_port(format!(
                "`{}`: any port is written without `:*`",
                shown(text)
            )),
            host.to_owned(),
        ));
    }
    if let Some((_, number)) = SERVICES
        .iter()
        .find(|(name, _)| port.eq_ignore_ascii_case(name))
    {
        return Err(offer(
            wrong_port(format!(
                "`{port}` is the name of a service: a port is a number"
            )),
            format!("{host}:{number}"),
        ));
    }
    if port.split(['-', ',']).all(digits) && port.contains(['-', ',']) {
        return Err(
            wrong_port(format!("`{}` is more than one port", shown(port))).help(format!(
                "write one entry for each port, or `{}` for any",
                shown(host)
            )),
        );
    }
    let any = || format!("write the port that is meant, or `{}` for any", shown(host));
    if !digits(port) {
        return Err(wrong_port(format!(
            "`{}` is not a port: a number from 1 to 65535",
            shown(port)
        ))
        .help(any()));
    }
    if let Some(plain) = port
        .strip_prefix('0')
        .map(|rest| rest.trim_start_matches('0'))
        && !plain.is_empty()
    {
        return Err(offer(
            wrong_port(format!("`{}` begins with a zero", shown(port))),
            format!("{host}:{plain}"),
        ));
    }
    match port.parse::<u16>() {
        Ok(number @ 1..) => Ok(number),
        _ => Err(wrong_port(format!(
            "`{}` is out of range: a port is a number from 1 to 65535",
            shown(port)
        ))
        .help(any())),
    }
}

fn parse_host(text: &str, host: &str) -> Result<Host, Problem> {
    if host.is_empty() {
        return Err(invalid(format!("`{}` has no host", shown(text)))
            .help("write `host:port`; for every public name write `mode: any`"));
    }
    if matches!(host, "*" | "*." | "**") {
        return Err(Problem::new(
            &codes::HOST_BARE_WILDCARD,
            format!("`{}` would allow every host", shown(text)),
        )
        .help("list the hosts; where every public name is meant, write `mode: any`"));
    }
    if let Some(address) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        return match address.parse::<Ipv6Addr>() {
            Ok(address) => Ok(Host::Address(IpAddr::V6(address))),
            Err(_) => Err(invalid(format!(
                "`{}` is not an IPv6 address",
                shown(address)
            ))),
        };
    }
    if host.starts_with('.') {
        return Err(offer(
            wildcard(format!("`{}` begins with a dot", shown(text))),
            format!("*{text}"),
        ));
    }
    let (below, name) = match host.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, host),
    };
    if name.contains('*') {
        return Err(wildcard(format!(
            "`{}` has a `*` that is not a leading `*.`",
            shown(text)
        ))
        .help("write `*.example.com` for every subdomain at any depth"));
    }
    if !below && let Ok(address) = name.parse::<Ipv4Addr>() {
        return Ok(Host::Address(IpAddr::V4(address)));
    }
    let name = normalised(text, name)?;
    Ok(if below {
        Host::Below(name)
    } else {
        Host::Name(name)
    })
}

/// Lower case, punycode, without one dot at the end (N4).
fn normalised(text: &str, name: &str) -> Result<String, Problem> {
    let not_a_name = |why: &str| invalid(format!("`{}`: {why}", shown(text)));
    // IDNA maps more than one character to a dot, so that it comes first.
    let ascii = if name.is_ascii() && !name.to_ascii_lowercase().contains("xn--") {
        name.to_ascii_lowercase()
    } else {
        idna::domain_to_ascii(name)
            .map_err(|_| not_a_name("the name is not a legal internationalised domain name"))?
    };
    let ascii = ascii.strip_suffix('.').unwrap_or(&ascii);
    if ascii.is_empty() {
        return Err(not_a_name("there is no host"));
    }
    if ascii.len() > NAME_MAX {
        return Err(not_a_name("a name has at most 253 characters"));
    }
    for label in ascii.split('.') {
        if label.is_empty() {
            return Err(not_a_name("two dots in a row"));
        }
        if label.len() > 63 {
            return Err(not_a_name("a part between dots has at most 63 characters"));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(not_a_name(
                "a part between dots neither begins nor ends with `-`",
            ));
        }
        if let Some(c) = label
            .chars()
            .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
        {
            return Err(not_a_name(&format!(
                "`{}` cannot be in a host name",
                c.escape_debug()
            )));
        }
    }
    // Resolvers read such text as an address in some old form, or not at all.
    let last = ascii.rsplit('.').next().unwrap_or_default();
    let hex = last
        .strip_prefix("0x")
        .is_some_and(|h| h.bytes().all(|b| b.is_ascii_hexdigit()));
    if hex || last.bytes().all(|b| b.is_ascii_digit()) {
        return Err(not_a_name(
            "the host part is neither a name nor an IPv4 address",
        ));
    }
    Ok(ascii.to_owned())
}

/// The text without its user info, which may be a secret.
fn masked(text: &str) -> String {
    let begin = text.find("://").map_or(0, |at| at + "://".len());
    match text.rfind('@') {
        Some(end) if end >= begin => shown(&format!("{}…{}", &text[..begin], &text[end..])),
        _ => shown(text),
    }
}

/// Adds the right form, if it is one.
fn offer(problem: Problem, better: String) -> Problem {
    if parse(&better).is_ok() {
        problem.help(format!("write `{better}`")).suggest(better)
    } else {
        problem
    }
}

fn invalid(message: impl Into<String>) -> Problem {
    with(&codes::HOST_INVALID, message)
}

fn wrong_port(message: impl Into<String>) -> Problem {
    with(&codes::HOST_PORT, message)
}

fn wildcard(message: impl Into<String>) -> Problem {
    with(&codes::HOST_WILDCARD, message)
}

fn with(code: &'static Code, message: impl Into<String>) -> Problem {
    Problem::new(code, message)
}
