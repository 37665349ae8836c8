//! An MCP server that runs elsewhere (Streamable HTTP): where it is, and a session with it.
//!
//! Nothing is sent anywhere but to the URL's own host, so that credentials stay with it; which hosts can be reached at all
//! is decided by the capability's network rules, as for any other connection of its container.

mod events;
mod session;
mod transport;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use selu_compiler::diag::shown;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::credentials::{self, CredentialSet};
use super::error::CallError;
use super::link::{END, Link};
use super::said::Said;
use session::Session;
use transport::Http;

/// Headers that are the protocol's, or the connection's.
const OURS: [&str; 14] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Where an MCP server is reached, and the headers of every request to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    url: Uri,
    headers: Vec<Header>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    name: HeaderName,
    value: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Credential(String),
}

/// What is wrong with a URL or a header.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The URL.
    #[error("--url: `{url}` {problem}")]
    Url {
        /// As given, but for what may be a secret in it.
        url: String,
        /// Why not.
        problem: &'static str,
    },
    /// A header.
    #[error("--header: {problem}")]
    Header {
        /// Why not. A value is not shown: it may be a secret.
        problem: String,
    },
}

/// Without user, password and query.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.rsplit_once('@') {
        Some((before, place)) => {
            let begin = before.split_once("://").map_or("", |(scheme, _)| scheme);
            format!("{begin}://{place}")
        }
        None => url.to_owned(),
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may hold a key.
        let scheme = self.url.scheme_str().unwrap_or_default();
        let place = self.url.authority().map_or("", |place| place.as_str());
        write!(f, "{scheme}://{place}{}", self.url.path())
    }
}

impl Remote {
    /// Reads a URL, and headers as `NAME: VALUE`; `${CREDENTIAL}` in a value stands for what a call brings.
    pub fn new(url: &str, headers: &[String]) -> Result<Self, RemoteError> {
        let wrong = |problem| RemoteError::Url {
            url: shown(&without_secrets(url)),
            problem,
        };
        let secure = match url.split_once("://") {
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => true,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => false,
            _ => return Err(wrong("begins with neither https:// nor http://")),
        };
        let read: Uri = url.parse().map_err(|_| wrong("is no URL"))?;
        let Some(authority) = read.authority() else {
            return Err(wrong("names no host"));
        };
        if authority.as_str().contains('@') {
            return Err(wrong(
                "has a user or a password in its URL; send it by --header instead",
            ));
        }
        let headers: Vec<Header> = headers
            .iter()
            .map(|text| Header::read(text))
            .collect::<Result<_, _>>()?;
        let secret = headers.iter().any(|header| header.names().next().is_some());
        if secret && !secure && !is_here(authority.host()) {
            return Err(wrong(
                "is not https, so the credentials of --header would be readable on their way",
            ));
        }
        Ok(Self { url: read, headers })
    }

    /// Host and port, as a network rule has them.
    pub fn rule(&self) -> String {
        let port = if self.url.scheme_str() == Some("https") {
            443
        } else {
            80
        };
        let host = self.url.host().unwrap_or_default();
        format!("{host}:{}", self.url.port_u16().unwrap_or(port))
    }

    /// The credentials in headers, each once.
    pub fn credentials(&self) -> BTreeSet<&str> {
        self.headers.iter().flat_map(Header::names).collect()
    }

    /// The headers with these values. One whose credential has no value is left out: whether the server can do without is
    /// its own to say.
    fn headers(&self, credentials: &CredentialSet) -> Result<HeaderMap, CallError> {
        let used = || self.headers.iter().flat_map(Header::names);
        if let Some((name, _)) = credentials
            .environment()
            .find(|(name, _)| used().all(|used| used != *name))
        {
            return Err(CallError::Credential {
                problem: format!("no --header of the bridge sends {name}"),
            });
        }
        let mut map = HeaderMap::new();
        for header in &self.headers {
            let mut text = String::new();
            let mut complete = true;
            for part in &header.value {
                match part {
                    Part::Text(part) => text.push_str(part),
                    Part::Credential(name) => match credentials.value(name) {
                        Some(value) => text.push_str(value),
                        None => complete = false,
                    },
                }
            }
            if !complete {
                continue;
            }
            let Ok(mut value) = HeaderValue::from_str(&text) else {
                return Err(CallError::Credential {
                    problem: format!(
                        "the value for the header {} has a character that no header can carry",
                        header.name
                    ),
                });
            };
            value.set_sensitive(true);
            map.append(header.name.clone(), value);
        }
        Ok(map)
    }

    /// Opens a session with these values.
    pub(super) fn open(
        &self,
        credentials: &CredentialSet,
        said: &Arc<Said>,
    ) -> Result<(Link, Http), CallError> {
        let missing = self
            .headers
            .iter()
            .flat_map(Header::names)
            .filter(|name| credentials.lacks(name))
            .map(str::to_owned)
            .collect();
        let headers = self.headers(credentials)?;
        let session = Session::new(self.url.clone(), headers, missing);
        let session = Arc::new(session.map_err(|reason| CallError::Start { reason })?);
        let (tell, ended) = watch::channel(None);
        let link = Link {
            said: Arc::clone(said),
            ended,
            end: CancellationToken::new(),
        };
        let end = link.end.clone();
        let closing = Arc::clone(&session);
        tokio::spawn(async move {
            end.cancelled().await;
            // Politeness only: a server forgets sessions by itself.
            let _ = timeout(END, closing.close()).await;
            tell.send_replace(Some("was left".to_owned()));
        });
        let transport = Http::new(session, Arc::clone(said), link.end.clone());
        Ok((link, transport))
    }
}

/// Whether a host is this container itself.
fn is_here(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

impl Header {
    fn read(text: &str) -> Result<Self, RemoteError> {
        let wrong = |problem: String| RemoteError::Header { problem };
        let Some((name, value)) = text.split_once(':') else {
            return Err(wrong(
                "this is not `NAME: VALUE`, such as `Authorization: Bearer ${API_TOKEN}`"
                    .to_owned(),
            ));
        };
        let Ok(header) = HeaderName::from_bytes(name.trim().as_bytes()) else {
            return Err(wrong(format!("`{}` is no name of a header", shown(name))));
        };
        if OURS.contains(&header.as_str()) {
            return Err(wrong(format!("{header} is set by the bridge itself")));
        }
        let mut parts = Vec::new();
        let mut rest = value.trim();
        while let Some((before, after)) = rest.split_once("${") {
            let Some((credential, after)) = after.split_once('}') else {
                return Err(wrong(format!("{header}: `${{` has no `}}`")));
            };
            credentials::check(credential).map_err(wrong)?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Credential(credential.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        for part in &parts {
            if let Part::Text(text) = part
                && HeaderValue::from_str(text).is_err()
            {
                return Err(wrong(format!(
                    "{header}: its value has a character that no header can carry"
                )));
            }
        }
        Ok(Self {
            name: header,
            value: parts,
        })
    }

    /// The credentials in it.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.value.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Credential(name) => Some(name.as_str()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str, headers: &[&str]) -> Result<Remote, String> {
        let headers: Vec<String> = headers.iter().map(|one| (*one).to_owned()).collect();
        Remote::new(url, &headers).map_err(|error| error.to_string())
    }

    fn set(text: &str) -> CredentialSet {
        CredentialSet::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn credentials_are_put_into_headers_and_a_header_without_its_value_is_left_out() {
        let remote = remote(
            "https://example.com/mcp",
            &[
                "Authorization: Bearer ${TOKEN}",
                "X-Org: ${ORG}",
                "X-Set: read,write",
            ],
        )
        .unwrap();
        let headers = remote.headers(&set(r#"{"TOKEN": "t0ken"}"#)).unwrap();
        assert_eq!(headers.len(), 2);
        assert_eq!(headers["authorization"], "Bearer t0ken");
        assert_eq!(headers["x-set"], "read,write");
        assert!(!format!("{headers:?}").contains("t0ken"));
        for (config, words) in [
            (
                r#"{"OTHER": "s3cret"}"#,
                "no --header of the bridge sends OTHER",
            ),
            (
                r#"{"TOKEN": "s3cret\r\nX-Admin: 1"}"#,
                "no header can carry",
            ),
        ] {
            let error = remote.headers(&set(config)).unwrap_err().to_string();
            assert!(
                error.contains(words) && !error.contains("s3cret"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_url_without_a_place_or_with_a_secret_and_a_header_that_is_not_the_authors_are_refused() {
        for (url, words) in [
            ("example.com/mcp", "begins with neither"),
            ("ftp://example.com", "begins with neither"),
            ("https://me:s3cret@example.com/", "has a user or a password"),
            ("https://", "is no URL"),
            ("https://me:s3cret@exa mple.com/", "is no URL"),
            ("ftp://example.com/?key=s3cret", "begins with neither"),
        ] {
            let error = remote(url, &[]).unwrap_err();
            assert!(
                error.contains(words) && !error.contains("s3cret"),
                "{error}"
            );
        }
        for (header, words) in [
            ("Authorization", "this is not `NAME: VALUE`"),
            ("Host: other.example", "host is set by the bridge itself"),
            ("X: ${TOKEN", "has no `}`"),
            ("X: ${LD_PRELOAD}", "`LD_PRELOAD` is reserved"),
            ("a b: c", "is no name of a header"),
        ] {
            let error = remote("https://example.com/", &[header]).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn credentials_are_not_sent_in_the_clear_but_to_the_container_itself() {
        let header = ["Authorization: ${TOKEN}"];
        assert!(remote("http://example.com/mcp", &header).is_err());
        assert!(remote("http://example.com/mcp", &["X-Set: read"]).is_ok());
        for url in [
            "http://127.0.0.1:8000/mcp",
            "http://localhost/mcp",
            "http://[::1]:1/",
        ] {
            assert!(remote(url, &header).is_ok(), "{url}");
        }
    }

    #[test]
    fn a_query_is_not_shown() {
        let remote = remote("https://example.com/mcp?key=s3cret", &[]).unwrap();
        assert_eq!(remote.to_string(), "https://example.com/mcp");
    }
}
