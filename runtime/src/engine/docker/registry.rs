//! Asking a registry ourselves, with HEAD first, which registries do not count as a pull (product.md 18 and 20).
//!
//! What pulls is the engine, from its place in the network and with its certificates. So whatever keeps us from getting
//! an answer (another network, a certificate that only the engine has, a proxy) is [`Failure::Elsewhere`], and the engine
//! is asked instead; what the registry itself said counts.

mod challenge;
mod http;
mod memory;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Method, StatusCode, Uri};
use selu_compiler::plan::hash::sha256_hex;
use serde::Deserialize;

use super::credentials::Login;
use crate::engine::EngineError;
use challenge::Challenge;
use http::{Answer, HttpError, Question};

pub(super) use memory::Memory;

/// How often one question is asked while the registry limits requests (B11).
const TRIES: u32 = 3;

/// The longest wait that a registry's Retry-After gets; who asks for more is told so instead.
const PATIENCE: Duration = Duration::from_secs(10);

/// Without a Retry-After.
const PAUSE: Duration = Duration::from_secs(1);

/// How often a blob's address may move on.
const REDIRECTS: usize = 3;

/// What a manifest may be; the index first, so that a tag means all its platforms.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// Why there is no answer.
pub(super) enum Failure {
    /// We did not get through; the engine may.
    Elsewhere(String),
    /// The registry has answered, and this is what it means.
    Told(EngineError),
}

/// One registry, as whom it is asked, and for what.
pub(super) struct Registry<'a> {
    /// For errors.
    pub(super) call: &'a str,
    /// As in a reference, such as `docker.io`.
    pub(super) host: &'a str,
    /// Such as `library/redis`.
    pub(super) repository: &'a str,
    pub(super) login: &'a Login,
}

impl Registry<'_> {
    /// The digest of a tag or digest: HEAD, and GET only where the answer has no digest. `None` if there is no such
    /// reference.
    pub(super) async fn digest(&self, reference: &str) -> Result<Option<String>, Failure> {
        let path = format!("manifests/{reference}");
        let Some(answer) = self.ask(Method::HEAD, &path, MANIFESTS).await? else {
            return Ok(None);
        };
        let named = answer.headers.get("docker-content-digest");
        if let Some(digest) = named
            .and_then(|value| value.to_str().ok())
            .filter(|text| is_digest(text))
        {
            return Ok(Some(digest.to_owned()));
        }
        let answer = self.ask(Method::GET, &path, MANIFESTS).await?;
        Ok(answer.map(|answer| digest_of(&answer.body)))
    }

    /// The platforms that a digest is for, such as `linux/amd64`. Nothing is believed that does not hash to its digest.
    pub(super) async fn platforms(&self, digest: &str) -> Result<Vec<String>, Failure> {
        let path = format!("manifests/{digest}");
        let Some(body) = self.content(&path, MANIFESTS, digest).await? else {
            return Ok(Vec::new());
        };
        let manifest: Manifest = self.parsed(&body)?;
        if let Some(entries) = manifest.manifests {
            let platforms = entries.into_iter().filter_map(|entry| entry.platform);
            return Ok(platforms.filter_map(Platform::text).collect());
        }
        let Some(config) = manifest.config else {
            return Ok(Vec::new());
        };
        let path = format!("blobs/{}", config.digest);
        let Some(body) = self.content(&path, "*/*", &config.digest).await? else {
            return Ok(Vec::new());
        };
        let platform: Platform = self.parsed(&body)?;
        Ok(platform.text().into_iter().collect())
    }

    async fn content(
        &self,
        path: &str,
        accept: &str,
        digest: &str,
    ) -> Result<Option<Bytes>, Failure> {
        let Some(answer) = self.ask(Method::GET, path, accept).await? else {
            return Ok(None);
        };
        if digest_of(&answer.body) != digest {
            return Err(self.nonsense(format!("what it has as {digest} is something else")));
        }
        Ok(Some(answer.body))
    }

    fn parsed<T: serde::de::DeserializeOwned>(&self, body: &[u8]) -> Result<T, Failure> {
        let parsed = serde_json::from_slice(body);
        parsed.map_err(|error| self.nonsense(format!("its manifest makes no sense: {error}")))
    }

    fn nonsense(&self, message: String) -> Failure {
        Failure::Told(EngineError::Protocol {
            call: self.call.to_owned(),
            message: format!("registry {}: {message}", self.host),
        })
    }

    /// One question, over TLS; on loopback, as engines do, without where there is no TLS.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        accept: &str,
    ) -> Result<Option<Answer>, Failure> {
        let host = match self.host {
            "docker.io" => "registry-1.docker.io",
            other => other,
        };
        let address = |scheme: &str| format!("{scheme}://{host}/v2/{}/{path}", self.repository);
        match self.ask_at(&method, &address("https"), accept).await {
            Err(Failure::Elsewhere(why)) if is_loopback(host) => {
                tracing::debug!("{}: {why}; trying without TLS", self.call);
                self.ask_at(&method, &address("http"), accept).await
            }
            other => other,
        }
    }

    async fn ask_at(
        &self,
        method: &Method,
        address: &str,
        accept: &str,
    ) -> Result<Option<Answer>, Failure> {
        let mut at: Uri = address
            .parse()
            .map_err(|error| Failure::Elsewhere(format!("{address}: {error}")))?;
        let mut authorization = None;
        let mut asked_in = false;
        let mut tries = 1;
        let mut moves = 0;
        loop {
            let question = Question {
                method: method.clone(),
                at: at.clone(),
                accept,
                authorization: authorization.clone(),
                form: None,
            };
            let answer = http::send(question)
                .await
                .map_err(|error| self.unheard(error))?;
            match answer.status {
                status if status.is_success() => return Ok(Some(answer)),
                StatusCode::NOT_FOUND => return Ok(None),
                StatusCode::UNAUTHORIZED if !asked_in => {
                    asked_in = true;
                    authorization = Some(self.authorization(&answer.headers, &at).await?);
                }
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    return Err(self.refused(&answer));
                }
                StatusCode::TOO_MANY_REQUESTS => {
                    self.wait(&answer, tries).await?;
                    tries += 1;
                }
                status
                    if status.is_redirection() && *method == Method::GET && moves < REDIRECTS =>
                {
                    moves += 1;
                    let next = self.moved(&answer.headers, &at)?;
                    if next.authority() != at.authority() {
                        // Storage behind a registry has its own way of admitting, within the address.
                        authorization = None;
                        asked_in = true;
                    }
                    at = next;
                }
                status => return Err(Failure::Elsewhere(format!("{at} answers {status}"))),
            }
        }
    }

    fn unheard(&self, error: HttpError) -> Failure {
        Failure::Elsewhere(format!("registry {}: {error}", self.host))
    }

    /// Where a redirect leads: never from TLS to none.
    fn moved(&self, headers: &HeaderMap, from: &Uri) -> Result<Uri, Failure> {
        let target = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let target = target.and_then(|text| match text.strip_prefix('/') {
            Some(_) => {
                let (scheme, authority) = (from.scheme_str()?, from.authority()?);
                format!("{scheme}://{authority}{text}").parse().ok()
            }
            None => text.parse::<Uri>().ok(),
        });
        target
            .filter(|to| to.scheme_str() == Some("https") || to.scheme_str() == from.scheme_str())
            .ok_or_else(|| Failure::Elsewhere(format!("{from} redirects to nowhere")))
    }

    /// Waits as long as the registry asks for, if that is bearable.
    async fn wait(&self, answer: &Answer, tries: u32) -> Result<(), Failure> {
        let asked = answer
            .headers
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        let seconds = asked.and_then(|text| text.trim().parse().ok());
        let pause = match (asked, seconds) {
            (None, _) => PAUSE * tries,
            (Some(_), Some(seconds)) => Duration::from_secs(seconds),
            // A date, which is not this process's to compare with its clock.
            (Some(_), None) => Duration::MAX,
        };
        if tries < TRIES && pause <= PATIENCE {
            tracing::debug!("{}: asked to wait {} s", self.call, pause.as_secs());
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        let after = match (asked, seconds) {
            (Some(_), Some(seconds)) => format!("; it wants to be left alone for {seconds} s"),
            (Some(text), None) => format!("; it wants to be left alone until {text:?}"),
            (None, _) => String::new(),
        };
        Err(Failure::Told(EngineError::RateLimited {
            call: self.call.to_owned(),
            message: format!(
                "registry {}, asked with {}{after}",
                self.host, self.login.source
            ),
        }))
    }

    fn refused(&self, answer: &Answer) -> Failure {
        let said = serde_json::from_slice::<Errors>(&answer.body)
            .ok()
            .and_then(|errors| errors.errors.into_iter().next())
            .and_then(|error| error.message)
            .map_or_else(
                || answer.status.to_string(),
                |message| format!("{}: {message}", answer.status),
            );
        Failure::Told(EngineError::Unauthorized {
            call: self.call.to_owned(),
            registry: self.host.to_owned(),
            message: format!("{}: {said}", self.login.source),
        })
    }

    /// What to say to a registry that asks who we are.
    async fn authorization(&self, headers: &HeaderMap, at: &Uri) -> Result<HeaderValue, Failure> {
        let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
        let challenges = challenges.filter_map(|value| value.to_str().ok());
        let challenge = challenges.filter_map(challenge::parse).next();
        match challenge {
            Some(Challenge::Basic) => match self.basic() {
                Some(value) => Ok(value),
                None => Err(self.refused(&Answer::bare(StatusCode::UNAUTHORIZED))),
            },
            Some(Challenge::Bearer {
                realm,
                service,
                scope,
            }) => self.token(&realm, service, scope, at).await,
            None => Err(self.refused(&Answer::bare(StatusCode::UNAUTHORIZED))),
        }
    }

    fn basic(&self) -> Option<HeaderValue> {
        let credentials = self.login.credentials.as_ref()?;
        let (name, password) = (
            credentials.username.as_ref()?,
            credentials.password.as_ref()?,
        );
        let encoded = STANDARD.encode(format!("{name}:{password}"));
        secret(&format!("Basic {encoded}"))
    }

    /// A token from the place that the registry names; with the credentials that are for this registry, as Docker does.
    async fn token(
        &self,
        realm: &str,
        service: Option<String>,
        scope: Option<String>,
        from: &Uri,
    ) -> Result<HeaderValue, Failure> {
        let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.repository));
        let mut asked = vec![("scope", scope)];
        asked.extend(service.map(|service| ("service", service)));
        let identity = self.login.credentials.as_ref();
        let identity = identity.and_then(|credentials| credentials.identitytoken.clone());
        let form = identity.map(|token| {
            let mut fields = asked.clone();
            fields.push(("grant_type", "refresh_token".to_owned()));
            fields.push(("client_id", "selu".to_owned()));
            fields.push(("refresh_token", token));
            challenge::encoded(&fields)
        });
        let address = match &form {
            Some(_) => realm.to_owned(),
            None => {
                let join = if realm.contains('?') { '&' } else { '?' };
                format!("{realm}{join}{}", challenge::encoded(&asked))
            }
        };
        let at: Uri = address
            .parse()
            .map_err(|error| Failure::Elsewhere(format!("{realm}: {error}")))?;
        if at.scheme_str() != Some("https") && at.scheme_str() != from.scheme_str() {
            return Err(self.nonsense(format!("it asks for a login at {realm}, which has no TLS")));
        }
        let question = Question {
            method: if form.is_some() {
                Method::POST
            } else {
                Method::GET
            },
            at,
            accept: "application/json",
            authorization: form.is_none().then(|| self.basic()).flatten(),
            form,
        };
        let answer = http::send(question)
            .await
            .map_err(|error| self.unheard(error))?;
        match answer.status {
            status if status.is_success() => {
                let token: Token = serde_json::from_slice(&answer.body)
                    .map_err(|_| self.nonsense(format!("what {realm} answers is no token")))?;
                token
                    .token
                    .or(token.access_token)
                    .and_then(|token| secret(&format!("Bearer {token}")))
                    .ok_or_else(|| self.nonsense(format!("what {realm} answers has no token")))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.refused(&answer)),
            status => Err(Failure::Elsewhere(format!("{realm} answers {status}"))),
        }
    }
}

#[derive(Deserialize)]
struct Manifest {
    manifests: Option<Vec<Entry>>,
    config: Option<Descriptor>,
}

#[derive(Deserialize)]
struct Entry {
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
}

#[derive(Deserialize)]
struct Platform {
    os: Option<String>,
    architecture: Option<String>,
}

impl Platform {
    /// Entries that are no images, such as attestations, are for `unknown/unknown`.
    fn text(self) -> Option<String> {
        let (os, architecture) = (self.os?, self.architecture?);
        (os != "unknown").then(|| format!("{os}/{architecture}"))
    }
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    message: Option<String>,
}

/// A header that no log shows.
fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// What every engine takes without TLS.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let address = address.parse::<std::net::IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_asked_without_tls() {
        for host in [
            "localhost",
            "localhost:5000",
            "127.0.0.1:5000",
            "127.9.0.1",
            "[::1]:5000",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "docker.io",
            "localhost.example:5000",
            "10.0.0.1:5000",
            "[fe80::1]:5000",
            "127.0.0.1.example",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn what_is_no_image_is_no_platform() {
        let platform = |os: &str, architecture: &str| Platform {
            os: Some(os.to_owned()),
            architecture: Some(architecture.to_owned()),
        };
        assert_eq!(
            platform("linux", "arm64").text().as_deref(),
            Some("linux/arm64")
        );
        assert_eq!(platform("unknown", "unknown").text(), None);
    }
}
