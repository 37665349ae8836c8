//! One call: its time limit (F14), and what its failure means. Status codes mislead, so texts are read too (B11).

use std::io;
use std::time::Duration;

use bollard::errors::Error;

use super::Docker;
use crate::chain;
use crate::engine::{EngineError, EngineResult};

/// How long each kind of call may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// To say that it is there.
    pub(super) ping: Duration,
    /// Listing and inspecting.
    pub(super) look: Duration,
    /// Creating, starting, connecting and removing.
    pub(super) act: Duration,
    /// One answer of a registry through the engine.
    pub(super) registry: Duration,
    /// One answer of a credential helper.
    pub(super) helper: Duration,
    /// The next piece of a stream: a pull, a load, a build.
    pub(super) next: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ping: Duration::from_secs(10),
            look: Duration::from_secs(20),
            act: Duration::from_secs(60),
            registry: Duration::from_secs(60),
            helper: Duration::from_secs(30),
            next: Duration::from_secs(300),
        }
    }
}

impl Docker {
    /// Runs one call within its limit; both name it in their errors.
    pub(super) async fn call<T>(
        &self,
        call: &str,
        limit: Duration,
        future: impl Future<Output = Result<T, Error>>,
    ) -> EngineResult<T> {
        tracing::trace!("{call}");
        match tokio::time::timeout(limit, future).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.failure(call, limit, error)),
            Err(_) => Err(timeout(call, limit)),
        }
    }

    /// What an error of the client library means.
    pub(super) fn failure(&self, call: &str, limit: Duration, error: Error) -> EngineError {
        match error {
            Error::DockerResponseServerError {
                status_code,
                message,
            } => refusal(call, status_code, &message),
            Error::DockerStreamError { error } => refusal(call, 0, &error),
            Error::RequestTimeoutError => timeout(call, limit),
            other => match io_kind(&other) {
                Some(io::ErrorKind::PermissionDenied) => EngineError::Permission {
                    socket: self.address.clone(),
                },
                Some(io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
                    EngineError::Unreachable {
                        tried: vec![format!("{} ({other})", self.address)],
                    }
                }
                _ => EngineError::Protocol {
                    call: call.to_owned(),
                    message: chain(&other),
                },
            },
        }
    }
}

pub(super) fn timeout(call: &str, limit: Duration) -> EngineError {
    EngineError::Timeout {
        call: call.to_owned(),
        limit,
    }
}

/// A refusal that never left this process.
pub(super) fn refused(call: &str, message: impl Into<String>) -> EngineError {
    EngineError::Refused {
        call: call.to_owned(),
        status: 0,
        message: message.into(),
    }
}

/// Classifies what the engine said. The engine's words are kept.
pub(super) fn refusal(call: &str, status: u16, message: &str) -> EngineError {
    let call = call.to_owned();
    let message = message.trim().to_owned();
    let text = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if status == 429 || says(&["toomanyrequests", "too many requests", "rate limit"]) {
        return EngineError::RateLimited { call, message };
    }
    if says(&["x509:", "tls: ", "http response to https client"]) {
        return EngineError::Tls { call, message };
    }
    if status == 409
        && says(&[
            "already in use by container",
            "already exists",
            "name is in use",
        ])
    {
        return EngineError::Conflict { call, message };
    }
    let missing = [
        "no such container",
        "no such image",
        "no such network",
        "no such volume",
        "no such exec",
        "manifest unknown",
        "name unknown",
        "repository name not known",
    ];
    // Who may not look is told 404 by some: that is no answer to whether it exists.
    let forbidden = says(&[
        "access denied",
        "unauthorized",
        "access to the resource is denied",
    ]);
    if !forbidden && (status == 404 || says(&missing)) {
        return EngineError::NotFound { call, message };
    }
    EngineError::Refused {
        call,
        status,
        message,
    }
}

/// What a registry's refusal through the engine means, with the credentials that were used.
pub(super) fn of_registry(error: EngineError, registry: &str, login: &str) -> EngineError {
    match error {
        EngineError::Refused {
            call,
            status,
            message,
        } => {
            let text = message.to_lowercase();
            let words = [
                "unauthorized",
                "denied",
                "no basic auth credentials",
                "authentication required",
            ];
            if status == 401 || status == 403 || words.iter().any(|word| text.contains(word)) {
                return EngineError::Unauthorized {
                    call,
                    registry: registry.to_owned(),
                    message: format!("{login}: {message}"),
                };
            }
            EngineError::Refused {
                call,
                status,
                message,
            }
        }
        EngineError::RateLimited { call, message } => EngineError::RateLimited {
            call,
            message: format!("{message} (registry {registry}, asked with {login})"),
        },
        other => other,
    }
}

fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        source = cause.source();
    }
    None
}

/// Names and references become part of a URL's path: nothing that could mean something else there.
pub(super) fn plain<'a>(call: &str, name: &'a str) -> EngineResult<&'a str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@-".contains(&byte);
    let dots = name
        .split('/')
        .any(|part| part.is_empty() || part.starts_with('.'));
    if name.is_empty() || dots || !name.bytes().all(fits) {
        return Err(refused(
            call,
            format!("{name:?} is no name of an engine's object"),
        ));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b11_a_rate_limit_is_known_by_its_text_whatever_the_status_says() {
        let body = "toomanyrequests: You have reached your pull rate limit";
        for status in [0, 429, 500] {
            assert!(matches!(
                refusal("pull x", status, body),
                EngineError::RateLimited { .. }
            ));
        }
        assert!(matches!(
            refusal(
                "pull x",
                500,
                "unauthorized: incorrect username or password"
            ),
            EngineError::Refused { status: 500, .. }
        ));
    }

    #[test]
    fn what_may_not_be_seen_is_not_missing() {
        let hidden =
            "pull access denied for x, repository does not exist or may require 'docker login'";
        assert!(matches!(
            refusal("pull x", 404, hidden),
            EngineError::Refused { status: 404, .. }
        ));
        assert!(matches!(
            refusal("pull x", 0, "manifest unknown"),
            EngineError::NotFound { .. }
        ));
    }

    #[test]
    fn trouble_with_a_registrys_tls_is_told_from_everything_else() {
        for body in [
            "Get \"https://r.example/v2/\": x509: certificate signed by unknown authority",
            "Get \"https://r.example/v2/\": x509: certificate is valid for a.example, not r.example",
            "Get \"https://r.example/v2/\": http: server gave HTTP response to HTTPS client",
            "Get \"https://r.example/v2/\": remote error: tls: handshake failure",
        ] {
            let error = refusal("pull x", 500, body);
            assert!(matches!(error, EngineError::Tls { .. }), "{error}");
        }
        let down =
            "Get \"https://r.example/v2/\": dial tcp 192.0.2.1:443: connect: connection refused";
        assert!(matches!(
            refusal("pull x", 500, down),
            EngineError::Refused { .. }
        ));
    }

    #[test]
    fn a_refused_login_is_known_by_status_or_text_and_names_whose_it_was() {
        let texts = [
            (500, "unauthorized: incorrect username or password"),
            (
                404,
                "pull access denied for x, repository does not exist or may require 'docker login'",
            ),
            (500, "no basic auth credentials"),
            (401, "anything"),
        ];
        for (status, body) in texts {
            let error = of_registry(
                refusal("pull x", status, body),
                "r.example",
                "no credentials (a)",
            );
            assert!(matches!(error, EngineError::Unauthorized { .. }), "{error}");
            let text = error.to_string();
            assert!(
                text.contains("r.example") && text.contains("no credentials (a)"),
                "{text}"
            );
        }
        let other = of_registry(refusal("pull x", 500, "disk full"), "r.example", "a");
        assert!(matches!(other, EngineError::Refused { .. }), "{other}");
    }

    #[test]
    fn only_a_taken_name_is_a_conflict() {
        let taken = "Conflict. The container name \"/x\" is already in use by container \"1\".";
        assert!(matches!(
            refusal("create container x", 409, taken),
            EngineError::Conflict { .. }
        ));
        assert!(matches!(
            refusal("remove volume x", 409, "remove x: volume is in use - [1]"),
            EngineError::Refused { status: 409, .. }
        ));
        assert!(matches!(
            refusal("start x", 500, "No such container: x"),
            EngineError::NotFound { .. }
        ));
    }

    #[test]
    fn a_name_that_would_change_the_url_is_refused() {
        for bad in ["", "a/../b", "x?force=1", "x#y", "/x", "x y", "x%2f"] {
            assert!(plain("inspect", bad).is_err(), "{bad:?}");
        }
        for good in [
            "selu_a_b_1",
            "docker.io/library/redis:7",
            "x@sha256:00",
            "localhost:5000/x",
        ] {
            assert_eq!(plain("inspect", good).unwrap(), good);
        }
    }
}
