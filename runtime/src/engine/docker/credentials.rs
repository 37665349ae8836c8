//! Registry credentials from Docker's own configuration and its helpers (product.md 20).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::call::refused;
use crate::engine::EngineResult;

/// Docker Hub's key in Docker's configuration.
const HUB_KEY: &str = "https://index.docker.io/v1/";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    auths: BTreeMap<String, Auth>,
    creds_store: Option<String>,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Auth {
    auth: Option<String>,
    identitytoken: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Helped {
    username: String,
    secret: String,
}

/// As whom a registry is asked.
#[derive(Clone)]
pub(super) struct Login {
    /// `None` to ask as nobody in particular.
    pub(super) credentials: Option<DockerCredentials>,
    /// Where they are from, or why there are none; never what they are.
    pub(super) source: String,
}

impl Login {
    fn none(why: String) -> Self {
        Self {
            credentials: None,
            source: format!("no credentials ({why})"),
        }
    }

    fn of(credentials: DockerCredentials, source: &str) -> Self {
        Self {
            credentials: Some(credentials),
            source: format!("the credentials of {source}"),
        }
    }
}

/// What Docker's configuration in `folder` has for a registry.
pub(super) async fn of_registry(
    call: &str,
    folder: Option<&Path>,
    registry: &str,
    limit: Duration,
) -> EngineResult<Login> {
    let Some(folder) = folder else {
        return Ok(Login::none("no home and no DOCKER_CONFIG".to_owned()));
    };
    let file = folder.join("config.json");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Login::none(format!("{} does not exist", file.display())));
        }
        Err(error) => return Err(refused(call, format!("{}: {error}", file.display()))),
    };
    // The parser's own message could quote a secret: the place must do.
    let config: Config = serde_json::from_str(&text).map_err(|error| {
        refused(
            call,
            format!(
                "{}, line {}: is not as Docker writes it",
                file.display(),
                error.line()
            ),
        )
    })?;
    let keys = keys(registry);
    let helper = keys
        .iter()
        .find_map(|key| config.cred_helpers.get(key))
        .or(config.creds_store.as_ref());
    let mut without = format!("{} has none for {registry}", file.display());
    if let Some(helper) = helper {
        let asked = if registry == "docker.io" {
            HUB_KEY
        } else {
            registry
        };
        match ask(call, helper, asked, limit).await? {
            Helper::Has(found) => return Ok(Login::of(*found, &program(helper))),
            Helper::HasNone => without = format!("{} has none for {registry}", program(helper)),
            Helper::Missing => without = format!("{} is not installed", program(helper)),
        }
    }
    let found = config
        .auths
        .iter()
        .find(|(key, _)| keys.iter().any(|wanted| host_of(key) == host_of(wanted)));
    let Some((key, auth)) = found else {
        return Ok(Login::none(without));
    };
    let stored = stored(auth, registry).map_err(|()| {
        refused(
            call,
            format!("{}: the entry {key} is unreadable", file.display()),
        )
    })?;
    Ok(match stored {
        Some(credentials) => Login::of(credentials, &file.display().to_string()),
        None => Login::none(without),
    })
}

fn keys(registry: &str) -> Vec<String> {
    if registry == "docker.io" {
        [
            HUB_KEY,
            "index.docker.io",
            "docker.io",
            "registry-1.docker.io",
        ]
        .map(str::to_owned)
        .to_vec()
    } else {
        vec![registry.to_owned(), format!("https://{registry}")]
    }
}

/// `https://ghcr.io/v2/` and `ghcr.io` are one registry.
fn host_of(key: &str) -> &str {
    let rest = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"))
        .unwrap_or(key);
    rest.split('/').next().unwrap_or(rest)
}

fn stored(auth: &Auth, registry: &str) -> Result<Option<DockerCredentials>, ()> {
    let Some(encoded) = auth.auth.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let bytes = STANDARD.decode(encoded.trim()).map_err(|_| ())?;
    let text = String::from_utf8(bytes).map_err(|_| ())?;
    let (username, password) = text.split_once(':').ok_or(())?;
    Ok(Some(DockerCredentials {
        username: Some(username.to_owned()),
        password: Some(password.trim_end_matches('\0').to_owned()),
        identitytoken: auth.identitytoken.clone().filter(|token| !token.is_empty()),
        serveraddress: Some(registry.to_owned()),
        ..DockerCredentials::default()
    }))
}

/// What a helper has.
enum Helper {
    Has(Box<DockerCredentials>),
    HasNone,
    /// It is configured and not installed, as when a configuration is taken to another machine (B13).
    Missing,
}

fn program(helper: &str) -> String {
    format!("docker-credential-{helper}")
}

async fn ask(call: &str, helper: &str, registry: &str, limit: Duration) -> EngineResult<Helper> {
    let program = program(helper);
    if !helper
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    {
        return Err(refused(
            call,
            format!("{helper:?} is no name of a credential helper"),
        ));
    }
    let failed = |error: io::Error| refused(call, format!("credential helper {program}: {error}"));
    let spawned = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Helper::Missing),
        Err(error) => return Err(failed(error)),
    };
    if let Some(mut input) = child.stdin.take() {
        match input.write_all(registry.as_bytes()).await {
            Ok(()) => {}
            // It answers without having read the question; the answer counts.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let output = tokio::time::timeout(limit, child.wait_with_output())
        .await
        .map_err(|_| {
            let message = format!(
                "credential helper {program} did not answer within {} s",
                limit.as_secs()
            );
            refused(call, message)
        })?
        .map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        // Helpers say so on standard output.
        if text.contains("credentials not found") {
            return Ok(Helper::HasNone);
        }
        return Err(refused(
            call,
            format!("credential helper {program} failed with {}", output.status),
        ));
    }
    let helped: Helped = serde_json::from_str(&text).map_err(|_| {
        refused(
            call,
            format!("credential helper {program}: its answer makes no sense"),
        )
    })?;
    let token = helped.username == "<token>";
    Ok(Helper::Has(Box::new(DockerCredentials {
        username: (!token).then_some(helped.username),
        password: (!token).then(|| helped.secret.clone()),
        identitytoken: token.then_some(helped.secret),
        serveraddress: Some(registry.to_owned()),
        ..DockerCredentials::default()
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn found(config: &str, registry: &str) -> EngineResult<Option<String>> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.json"), config).unwrap();
        let login = of_registry(
            "pull x",
            Some(folder.path()),
            registry,
            Duration::from_secs(5),
        )
        .await?;
        Ok(login
            .credentials
            .and_then(|credentials| credentials.username))
    }

    #[tokio::test]
    async fn a_registry_is_found_under_each_of_its_keys() {
        let auth = STANDARD.encode("me:secret");
        for (key, registry) in [
            ("https://index.docker.io/v1/", "docker.io"),
            ("ghcr.io", "ghcr.io"),
            ("https://ghcr.io", "ghcr.io"),
            ("https://ghcr.io/v2/", "ghcr.io"),
            ("localhost:5000", "localhost:5000"),
        ] {
            let config = format!(r#"{{"auths":{{"{key}":{{"auth":"{auth}"}}}}}}"#);
            assert_eq!(
                found(&config, registry).await.unwrap().as_deref(),
                Some("me"),
                "{key}"
            );
            assert_eq!(found(&config, "quay.io").await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn an_unreadable_configuration_is_an_error_that_quotes_nothing_of_it() {
        let broken = r#"{"auths":{"ghcr.io":{"auth":"c2VjcmV0"#;
        let message = found(broken, "ghcr.io").await.unwrap_err().to_string();
        assert!(message.contains("config.json, line 1"), "{message}");
        assert!(!message.contains("c2VjcmV0"), "{message}");
    }

    #[tokio::test]
    async fn b13_a_helper_that_is_not_installed_leaves_us_without_credentials_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let config = r#"{"credsStore":"no-such-helper-here"}"#;
        fs::write(folder.path().join("config.json"), config).unwrap();
        let limit = Duration::from_secs(5);
        let login = of_registry("pull x", Some(folder.path()), "ghcr.io", limit).await;
        let login = login.unwrap();
        assert!(login.credentials.is_none());
        assert_eq!(
            login.source,
            "no credentials (docker-credential-no-such-helper-here is not installed)"
        );
    }
}
