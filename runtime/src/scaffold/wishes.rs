//! What a server says it lacks, read out of its own words: names of credentials and of hosts. A proposal, no more.

use std::collections::BTreeSet;

/// Parts of a variable's name that make it one which people fill in, and not a code of an error.
const TELLING: [&str; 22] = [
    "ACCOUNT",
    "CREDENTIALS",
    "DSN",
    "EMAIL",
    "HOST",
    "ID",
    "KEY",
    "LOGIN",
    "MAIL",
    "ORG",
    "PASS",
    "PASSWORD",
    "PAT",
    "PROJECT",
    "PW",
    "SECRET",
    "TOKEN",
    "URI",
    "URL",
    "USER",
    "USERNAME",
    "WORKSPACE",
];

/// Beginnings of names that are other people's.
const OTHERS: [&str; 6] = ["ERR_", "NODE_", "NPM_", "PIP_", "PYTHON", "SELU_"];

/// Names that a text holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Wishes {
    /// Variables such as `BRAVE_API_KEY`.
    pub credentials: BTreeSet<String>,
    /// Hosts with their ports, such as `api.example.com:443`.
    pub hosts: BTreeSet<String>,
}

impl Wishes {
    /// Reads an error's words.
    pub fn of(text: &str) -> Self {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let credentials = text
            .split(|c| !word(c))
            .filter(|name| is_variable(name))
            .map(str::to_owned)
            .collect();
        let mut hosts = BTreeSet::new();
        for (scheme, port) in [("https://", 443), ("http://", 80)] {
            for (at, _) in text.match_indices(scheme) {
                let rest = text.get(at + scheme.len()..).unwrap_or_default();
                hosts.extend(host(rest, port));
            }
        }
        // As Node's and Python's resolvers say it.
        for (before, port) in [("ENOTFOUND ", 443), ("EAI_AGAIN ", 443), ("host='", 443)] {
            for (at, _) in text.match_indices(before) {
                let rest = text.get(at + before.len()..).unwrap_or_default();
                hosts.extend(host(rest, port));
            }
        }
        Self { credentials, hosts }
    }
}

fn is_variable(name: &str) -> bool {
    let shape = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.contains('_')
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(shape)
        && !OTHERS.iter().any(|begins| name.starts_with(begins))
        && name.split('_').any(|part| TELLING.contains(&part))
}

/// The host that a text begins with, if it has a dot and is no machine of the server's own.
fn host(text: &str, port: u16) -> Option<String> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || ".-:".contains(c)));
    let text = text
        .get(..end.unwrap_or(text.len()))?
        .trim_end_matches(['.', ':', '-']);
    let (name, port) = match text.split_once(':') {
        Some((name, own)) => (name, own.split(':').next()?.parse().ok()?),
        None => (text, port),
    };
    let named = name.contains('.') && name.contains(|c: char| c.is_ascii_alphabetic());
    named.then(|| format!("{}:{port}", name.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_told_from_codes_of_errors() {
        for (text, found) in [
            (
                "Error: BRAVE_API_KEY environment variable is required",
                vec!["BRAVE_API_KEY"],
            ),
            (
                "set `MAIL_USER` and `MAIL_PW`",
                vec!["MAIL_PW", "MAIL_USER"],
            ),
            (
                "Error [ERR_MODULE_NOT_FOUND]: code ECONNREFUSED, EAI_AGAIN, SELU_CAPABILITY_ID",
                vec![],
            ),
            ("UNABLE_TO_GET_ISSUER_CERT_LOCALLY at API_KEY2", vec![]),
        ] {
            let names: Vec<String> = Wishes::of(text).credentials.into_iter().collect();
            assert_eq!(names, found, "{text}");
        }
    }

    #[test]
    fn hosts_are_found_in_urls_and_in_a_resolvers_words() {
        for (text, found) in [
            (
                "cannot GET https://API.example.com/v1?x",
                vec!["api.example.com:443"],
            ),
            (
                "http://a.example.org:8080, http://localhost:3000, https://127.0.0.1/",
                vec!["a.example.org:8080"],
            ),
            ("getaddrinfo EAI_AGAIN api.x.io", vec!["api.x.io:443"]),
            (
                "HTTPSConnectionPool(host='api.y.io', port=443)",
                vec!["api.y.io:443"],
            ),
        ] {
            let hosts: Vec<String> = Wishes::of(text).hosts.into_iter().collect();
            assert_eq!(hosts, found, "{text}");
        }
    }
}
