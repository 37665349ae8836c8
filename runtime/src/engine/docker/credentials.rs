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

use super::call::{refused, timeout};
use crate::engine::{EngineError, EngineResult};

/// How long a helper may take.
const HELPER: Duration = Duration::from_secs(30);

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
struct Answer {
    username: String,
    secret: String,
}

/// What a registry is asked with.
pub(super) struct Found {
    /// Without any where this is `None`.
    pub(super) credentials: Option<DockerCredentials>,
    /// Whose they are, or why there are none.
    source: String,
    /// What is wrong with the configuration, where the registry may answer all the same (B13).
    pub(super) warning: Option<String>,
}

impl Found {
    fn none(why: impl Into<String>) -> Self {
        Self {
            credentials: None,
            source: format!("without credentials, {}", why.into()),
            warning: None,
        }
    }

    fn some(credentials: DockerCredentials, owner: &str) -> Self {
        Self {
            credentials: Some(credentials),
            source: format!("with the credentials of {owner}"),
            warning: None,
        }
    }

    /// A refusal, with what the registry was asked with.
    pub(super) fn explain(&self, mut error: EngineError) -> EngineError {
        if let EngineError::Refused { message, .. } | EngineError::RateLimited { message, .. } =
            &mut error
        {
            message.push_str(" (asked ");
            message.push_str(&self.source);
            message.push(')');
        }
        error
    }
}

/// What a credential helper said.
enum Helped {
    Has(Box<DockerCredentials>),
    /// It knows the registry not.
    HasNone,
    Missing,
}

/// What Docker's configuration in `folder` has for a registry.
pub(super) async fn of_registry(
    call: &str,
    folder: Option<&Path>,
    registry: &str,
) -> EngineResult<Found> {
    let Some(folder) = folder else {
        return Ok(Found::none(
            "there is no home directory for Docker's configuration",
        ));
    };
    let file = folder.join("config.json");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Found::none(format!("there is no {}", file.display())));
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
    let mut why = format!("{} has none for {registry}", file.display());
    let mut warning = None;
    if let Some(helper) = helper {
        let asked = if registry == "docker.io" {
            HUB_KEY
        } else {
            registry
        };
        let program = format!("docker-credential-{helper}");
        if !helper
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        {
            return Err(refused(
                call,
                format!("{helper:?} is no name of a credential helper"),
            ));
        }
        match ask(call, &program, asked).await? {
            Helped::Has(found) => return Ok(Found::some(*found, &program)),
            Helped::HasNone => why = format!("{program} has none for {registry}"),
            Helped::Missing => {
                why = format!(
                    "{program}, which {} names, is not installed",
                    file.display()
                );
                warning = Some(format!("{registry} is asked without credentials: {why}"));
            }
        }
    }
    let entry = config
        .auths
        .iter()
        .find(|(key, _)| keys.iter().any(|wanted| host_of(key) == host_of(wanted)));
    if let Some((key, auth)) = entry {
        let stored = stored(auth, registry).map_err(|()| {
            refused(
                call,
                format!("{}: the entry {key} is unreadable", file.display()),
            )
        })?;
        if let Some(stored) = stored {
            return Ok(Found::some(stored, &file.display().to_string()));
        }
    }
    Ok(Found {
        warning,
        ..Found::none(why)
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

async fn ask(call: &str, program: &str, registry: &str) -> EngineResult<Helped> {
    let failed = |error: io::Error| refused(call, format!("credential helper {program}: {error}"));
    let spawned = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Helped::Missing),
        Err(error) => return Err(failed(error)),
    };
    if let Some(mut input) = child.stdin.take() {
        match input.write_all(registry.as_bytes()).await {
            // It ended without having read: what it said counts.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(failed)?,
        }
    }
    let output = tokio::time::timeout(HELPER, child.wait_with_output())
        .await
        .map_err(|_| timeout(&format!("{call}: {program}"), HELPER))?
        .map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        // Helpers say so on standard output.
        if text.contains("credentials not found") {
            return Ok(Helped::HasNone);
        }
        return Err(refused(
            call,
            format!("credential helper {program} failed with {}", output.status),
        ));
    }
    let answer: Answer = serde_json::from_str(&text).map_err(|_| {
        refused(
            call,
            format!("credential helper {program}: its answer makes no sense"),
        )
    })?;
    let token = answer.username == "<token>";
    Ok(Helped::Has(Box::new(DockerCredentials {
        username: (!token).then_some(answer.username),
        password: (!token).then(|| answer.secret.clone()),
        identitytoken: token.then_some(answer.secret),
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
        let found = of_registry("pull x", Some(folder.path()), registry).await?;
        Ok(found
            .credentials
            .and_then(|credentials| credentials.username))
    }

    /// A helper that does as the script says, asked for ghcr.io.
    async fn helped(script: &str) -> EngineResult<Helped> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("docker-credential-fake");
        // Written by another process: one that is forked here meanwhile would hold it open for writing.
        let write = std::process::Command::new("sh")
            .args([
                "-c",
                r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 700 "$0""#,
            ])
            .arg(&program)
            .arg(script)
            .status();
        assert!(write.unwrap().success());
        ask("pull x", program.to_str().unwrap(), "ghcr.io").await
    }

    #[tokio::test]
    async fn b13_a_helper_that_has_none_or_is_missing_leaves_an_anonymous_question_that_says_so() {
        let none = "echo nothing here >&2; echo 'credentials not found in native keychain'; exit 1";
        assert!(matches!(helped(none).await, Ok(Helped::HasNone)));
        let has = r#"read -r host; echo asked for "$host" >&2; echo "{\"ServerURL\":\"$host\",\"Username\":\"$host-user\",\"Secret\":\"s3cret\"}""#;
        let Ok(Helped::Has(credentials)) = helped(has).await else {
            panic!("it has them");
        };
        assert_eq!(credentials.username.as_deref(), Some("ghcr.io-user"));
        for wrong in ["echo s3cret; exit 3", "echo s3cret"] {
            let error = helped(wrong).await.err().unwrap().to_string();
            assert!(error.contains("docker-credential-fake"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }

        let folder = tempfile::tempdir().unwrap();
        let config = r#"{"credHelpers":{"ghcr.io":"no-such-helper-here"}}"#;
        fs::write(folder.path().join("config.json"), config).unwrap();
        let asked = |registry| of_registry("pull x", Some(folder.path()), registry);
        let found = asked("ghcr.io").await.unwrap();
        assert!(found.credentials.is_none());
        let warning = found.warning.as_deref().unwrap();
        assert!(
            warning.contains("docker-credential-no-such-helper-here")
                && warning.contains("ghcr.io"),
            "{warning}"
        );
        // When the registry then refuses, both are named.
        let explained = found.explain(refused("pull x", "unauthorized")).to_string();
        assert!(
            explained.contains("unauthorized")
                && explained.contains("docker-credential-no-such-helper-here"),
            "{explained}"
        );
        let other = asked("quay.io").await.unwrap();
        assert!(other.credentials.is_none() && other.warning.is_none());
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
}
