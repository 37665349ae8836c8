//! Heads of requests: where they say they go (N10), and what of them is meant for one connection only (RFC 9110, 7.6.1).

use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::{Authority, Scheme};
use hyper::{Method, Request, Version};

use crate::egress::worker::rules::{Host, Reason, Target};

/// Longest part of what a client wrote that a reason repeats.
const REPEATED: usize = 100;

/// Headers that belong to one connection even where nobody says so.
const HOP_BY_HOP: [&str; 4] = [
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
];

/// Whether everything in a request that says where it goes names the target: the `Host` header, and the authority of
/// its first line or of `:authority` where it has one.
pub(super) fn check<B>(target: &Target, request: &Request<B>) -> Result<(), Reason> {
    if request.method() == Method::CONNECT {
        return Err(Reason::HostMismatch(format!(
            "CONNECT {}",
            repeated(&request.uri().to_string())
        )));
    }
    let uri = request.uri();
    if let Some(scheme) = uri.scheme()
        && *scheme != Scheme::HTTP
    {
        return Err(Reason::NotHttp(format!(
            "the scheme is {:?}",
            repeated(scheme.as_str())
        )));
    }
    let authority = uri.authority();
    if let Some(authority) = authority {
        names(target, authority.as_str())?;
    }
    match one_host(request.headers())? {
        Some(host) => names(target, host),
        // HTTP/2 has the authority in the place of the header (RFC 9113, 8.3.1).
        None if request.version() == Version::HTTP_2 && authority.is_some() => Ok(()),
        None => Err(Reason::NoHost),
    }
}

/// The `Host` header; more than one is an error even where they agree.
pub(crate) fn one_host(headers: &HeaderMap) -> Result<Option<&str>, Reason> {
    let mut hosts = headers.get_all(HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(Reason::NotHttp("it has more than one Host".to_owned()));
    }
    first
        .map(|host| {
            host.to_str().map_err(|_| {
                Reason::HostMismatch(repeated(&String::from_utf8_lossy(host.as_bytes())))
            })
        })
        .transpose()
}

/// Whether `host[:port]` is the target. A port that is not said is the target's.
pub(crate) fn names(target: &Target, authority: &str) -> Result<(), Reason> {
    let same = read_authority(authority)
        .is_some_and(|(host, port)| host == target.host && port.is_none_or(|p| p == target.port));
    if same {
        Ok(())
    } else {
        Err(Reason::HostMismatch(repeated(authority)))
    }
}

/// The target of `host[:port]`; `None` for any other form, user info too.
pub(crate) fn target_of(authority: &Authority, default_port: Option<u16>) -> Option<Target> {
    let (host, port) = read_authority(authority.as_str())?;
    Some(Target {
        host,
        port: port.or(default_port)?,
    })
}

/// Reads `host[:port]`.
pub(crate) fn read_authority(text: &str) -> Option<(Host, Option<u16>)> {
    let at = match text.strip_prefix('[') {
        Some(_) => text.find(']')? + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at(at);
    let port = match rest.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port != 0)?)
        }
        None if rest.is_empty() => None,
        _ => return None,
    };
    Some((Host::read(host)?, port))
}

/// Whether a request asks for a web socket: the one other protocol that is let through.
pub(super) fn asks_for_web_socket<B>(request: &Request<B>) -> bool {
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && options(request.headers()).any(|option| option == UPGRADE)
        && upgrades_to_web_socket(request.headers())
}

/// Whether the `Upgrade` header is `websocket`.
pub(super) fn upgrades_to_web_socket(headers: &HeaderMap) -> bool {
    headers.get_all(UPGRADE).iter().count() == 1
        && headers
            .get(UPGRADE)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Takes out what is meant for this connection only, and refuses what could not be passed on whole. `upgrade` keeps the
/// two headers that ask for a web socket.
pub(super) fn strip(headers: &mut HeaderMap, upgrade: bool) -> Result<(), Reason> {
    // The body comes out of its chunks here and goes into others; a second coding would be lost.
    let plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    let codings = headers.get_all(TRANSFER_ENCODING);
    if codings.iter().count() > 1 || !codings.iter().all(plain) {
        return Err(Reason::NotHttp(
            "its Transfer-Encoding is more than `chunked`".to_owned(),
        ));
    }
    // Whoever names Host or the length as such an option wants the next one to read another message than this.
    let named: Vec<HeaderName> = options(headers)
        .filter(|name| *name != HOST && *name != CONTENT_LENGTH)
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    let trailers = headers
        .get_all(TE)
        .iter()
        .any(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers"));
    for name in [CONNECTION, TRANSFER_ENCODING, TE, UPGRADE] {
        headers.remove(name);
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    } else {
        headers.remove(TRAILER);
    }
    if upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    }
    Ok(())
}

/// What the `Connection` headers list.
fn options(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
}

/// A part of what somebody wrote, for a reason.
pub(crate) fn repeated(text: &str) -> String {
    text.chars().take(REPEATED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str, port: u16) -> Target {
        Target {
            host: Host::read(host).unwrap(),
            port,
        }
    }

    #[test]
    fn an_authority_names_the_target_in_any_case_with_a_dot_and_without_its_port() {
        let api = target("api.example.com", 8080);
        for same in [
            "api.example.com:8080",
            "api.example.com",
            "API.Example.COM.:8080",
        ] {
            assert_eq!(names(&api, same), Ok(()), "{same}");
        }
        for other in [
            "",
            ":8080",
            "example.com",
            "api.example.com:80",
            "api.example.com:",
            "api.example.com:0",
            "api.example.com:+8080",
            "api.example.com:08080x",
            "api.example.com:8080:8080",
            "api.example.com..",
            "api.example.com.evil.net",
            "evilapi.example.com",
            "user@api.example.com",
            "api.example.com@evil.net",
            "api.example.com/",
            "api.example.com, evil.net",
            "api.example.com evil.net",
            "api%2eexample.com",
            "api。example.com",
            "[api.example.com]:8080",
            "192.0.2.1",
        ] {
            assert_eq!(
                names(&api, other),
                Err(Reason::HostMismatch(other.to_owned())),
                "{other}"
            );
        }
    }

    #[test]
    fn an_address_is_named_in_its_one_form_only() {
        assert_eq!(names(&target("192.0.2.1", 80), "192.0.2.1:80"), Ok(()));
        assert_eq!(
            names(&target("[2001:db8::1]", 80), "[2001:DB8:0::1]"),
            Ok(())
        );
        for other in [
            "192.0.2.01",
            "192.0.513",
            "0xc0000201",
            "3221225985",
            "[::ffff:192.0.2.1]",
        ] {
            assert!(names(&target("192.0.2.1", 80), other).is_err(), "{other}");
        }
    }

    #[test]
    fn what_belongs_to_one_connection_is_taken_out_but_never_the_host() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "api.example.com"),
            ("connection", "close, X-Private, Host"),
            ("connection", "content-length, Upgrade"),
            ("content-length", "3"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic c2VjcmV0"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("x-kept", "1"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        strip(&mut headers, false).unwrap();
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "te", "x-kept"]);
    }

    #[test]
    fn a_coding_that_would_be_lost_is_refused() {
        for codings in [&["gzip, chunked"][..], &["chunked", "chunked"], &["chunke"]] {
            let mut headers = HeaderMap::new();
            for coding in codings {
                headers.append(TRANSFER_ENCODING, HeaderValue::from_static(coding));
            }
            assert!(matches!(
                strip(&mut headers, false),
                Err(Reason::NotHttp(_))
            ));
        }
        let mut headers =
            HeaderMap::from_iter([(TRANSFER_ENCODING, HeaderValue::from_static("Chunked"))]);
        assert_eq!(strip(&mut headers, false), Ok(()));
        assert!(headers.is_empty());
    }
}
