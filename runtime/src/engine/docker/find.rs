//! Finding the engine as Docker's own client finds it (product.md 17).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use selu_compiler::plan::hash::sha256_hex;
use serde::Deserialize;

use super::Docker;
use super::call::Limits;
use crate::engine::{EngineError, EngineResult};

/// For whoever configured TLS.
const NO_TLS: &str =
    "TLS to an engine is not supported; forward the engine's socket instead, such as with `ssh -L`";

/// The client library's own limit. Ours are shorter and name their call.
const LIBRARY_LIMIT: u64 = 24 * 60 * 60;

/// What finding an engine depends on, as plain data.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `DOCKER_HOST`.
    pub docker_host: Option<String>,
    /// `DOCKER_CONTEXT`.
    pub docker_context: Option<String>,
    /// `DOCKER_TLS_VERIFY`.
    pub docker_tls_verify: Option<String>,
    /// `DOCKER_CONFIG`, else `~/.docker`.
    pub config: Option<PathBuf>,
    /// Sockets to try when nothing is configured, in order.
    pub sockets: Vec<PathBuf>,
}

impl Surroundings {
    /// From this process's environment.
    pub fn read() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let home = variable("HOME").map(PathBuf::from);
        let runtime = variable("XDG_RUNTIME_DIR").map_or_else(
            || PathBuf::from(format!("/run/user/{}", rustix::process::getuid().as_raw())),
            PathBuf::from,
        );
        let mut sockets = vec![
            PathBuf::from("/var/run/docker.sock"),
            runtime.join("docker.sock"),
        ];
        if let Some(home) = &home {
            sockets.push(home.join(".docker/run/docker.sock"));
            sockets.push(home.join(".docker/desktop/docker.sock"));
        }
        sockets.push(runtime.join("podman/podman.sock"));
        sockets.push(PathBuf::from("/run/podman/podman.sock"));
        Self {
            docker_host: variable("DOCKER_HOST"),
            docker_context: variable("DOCKER_CONTEXT"),
            docker_tls_verify: variable("DOCKER_TLS_VERIFY"),
            config: variable("DOCKER_CONFIG")
                .map(PathBuf::from)
                .or_else(|| home.map(|home| home.join(".docker"))),
            sockets,
        }
    }
}

/// One address to try, and who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    address: String,
    named_by: String,
}

impl Candidate {
    fn tried(&self, what: impl std::fmt::Display) -> String {
        format!("{} ({}: {what})", self.address, self.named_by)
    }
}

/// Finds the engine: `host` if given, else by this process's environment.
pub async fn connect(host: Option<&str>) -> EngineResult<Docker> {
    connect_in(host, &Surroundings::read()).await
}

/// Finds the engine in the given surroundings. An address that somebody chose is the only one tried: another engine is
/// never taken in its place.
pub async fn connect_in(host: Option<&str>, around: &Surroundings) -> EngineResult<Docker> {
    connect_within(Limits::default(), host, around).await
}

pub(super) async fn connect_within(
    limits: Limits,
    host: Option<&str>,
    around: &Surroundings,
) -> EngineResult<Docker> {
    let candidates = candidates(host, around)?;
    let mut tried = Vec::new();
    let mut forbidden = None;
    for candidate in candidates {
        match open(limits, &candidate, around).await {
            Ok(docker) => return Ok(docker),
            Err(Closed::Permission(socket)) => {
                tried.push(candidate.tried("permission denied"));
                forbidden.get_or_insert(socket);
            }
            Err(Closed::Other(why)) => tried.push(candidate.tried(why)),
        }
    }
    Err(match forbidden {
        Some(socket) => EngineError::Permission { socket },
        None => EngineError::Unreachable { tried },
    })
}

fn candidates(host: Option<&str>, around: &Surroundings) -> EngineResult<Vec<Candidate>> {
    let one = |address: &str, named_by: String| {
        Ok(vec![Candidate {
            address: address.to_owned(),
            named_by,
        }])
    };
    if let Some(host) = host {
        return one(host, "given".to_owned());
    }
    if let Some(host) = &around.docker_host {
        return one(host, "DOCKER_HOST".to_owned());
    }
    let chosen = match &around.docker_context {
        Some(name) => Some((name.clone(), "DOCKER_CONTEXT".to_owned())),
        None => match &around.config {
            Some(folder) => current_context(&folder.join("config.json"))?
                .map(|name| (name, "current context".to_owned())),
            None => None,
        },
    };
    if let Some((name, named_by)) = chosen.filter(|(name, _)| name != "default") {
        let address = context_host(around.config.as_deref(), &name)?;
        return one(&address, format!("{named_by} {name}"));
    }
    Ok(around
        .sockets
        .iter()
        .map(|socket| Candidate {
            address: format!("unix://{}", socket.display()),
            named_by: "default".to_owned(),
        })
        .collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientConfig {
    current_context: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ContextMeta {
    endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Endpoints {
    docker: Option<Endpoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Endpoint {
    host: Option<String>,
}

fn unreadable(file: &Path, why: impl std::fmt::Display) -> EngineError {
    EngineError::Unreachable {
        tried: vec![format!("{} ({why})", file.display())],
    }
}

fn current_context(file: &Path) -> EngineResult<Option<String>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(file, error)),
    };
    let config: ClientConfig =
        serde_json::from_str(&text).map_err(|error| unreadable(file, error))?;
    Ok(config.current_context.filter(|name| !name.is_empty()))
}

fn context_host(config: Option<&Path>, name: &str) -> EngineResult<String> {
    let missing = || EngineError::Unreachable {
        tried: vec![format!(
            "context {name} (Docker's configuration has no such context with an address; see `docker context ls`)"
        )],
    };
    let folder = config.ok_or_else(missing)?;
    let id = sha256_hex(name.as_bytes());
    if folder.join("contexts/tls").join(&id).exists() {
        return Err(EngineError::Unreachable {
            tried: vec![format!("context {name} ({NO_TLS})")],
        });
    }
    let file = folder.join("contexts/meta").join(id).join("meta.json");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing()),
        Err(error) => return Err(unreadable(&file, error)),
    };
    let meta: ContextMeta =
        serde_json::from_str(&text).map_err(|error| unreadable(&file, error))?;
    meta.endpoints
        .docker
        .and_then(|endpoint| endpoint.host)
        .filter(|host| !host.is_empty())
        .ok_or_else(missing)
}

/// Why one candidate is not the engine.
enum Closed {
    Permission(String),
    Other(String),
}

async fn open(
    limits: Limits,
    candidate: &Candidate,
    around: &Surroundings,
) -> Result<Docker, Closed> {
    let address = candidate.address.as_str();
    let other = |error: &dyn std::fmt::Display| Closed::Other(error.to_string());
    let api = if let Some(path) = address.strip_prefix("unix://") {
        knock(limits.ping, path).await?;
        bollard::Docker::connect_with_unix(path, LIBRARY_LIMIT, bollard::API_DEFAULT_VERSION)
            .map_err(|error| other(&error))?
    } else if address.starts_with("tcp://") || address.starts_with("http://") {
        if around.docker_tls_verify.is_some() {
            return Err(Closed::Other(NO_TLS.to_owned()));
        }
        bollard::Docker::connect_with_http(address, LIBRARY_LIMIT, bollard::API_DEFAULT_VERSION)
            .map_err(|error| other(&error))?
    } else {
        return Err(Closed::Other(
            "only unix:// and tcp:// addresses are supported; forward a remote engine's socket, such as with `ssh -L`"
                .to_owned(),
        ));
    };
    let docker = Docker {
        api,
        address: address.to_owned(),
        config: around.config.clone(),
        limits,
        memory: std::sync::Arc::default(),
        id: std::sync::Arc::default(),
    };
    docker
        .call("ping", limits.ping, docker.api.ping())
        .await
        .map_err(|error| other(&error))?;
    Ok(docker)
}

/// Opens the socket once, for the sake of a clear error.
async fn knock(limit: Duration, path: &str) -> Result<(), Closed> {
    let knocking = tokio::net::UnixStream::connect(path);
    match tokio::time::timeout(limit, knocking).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(Closed::Permission(path.to_owned()))
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            Err(Closed::Other("no such socket".to_owned()))
        }
        Ok(Err(error)) => Err(Closed::Other(error.to_string())),
        Err(_) => Err(Closed::Other(format!(
            "no answer within {} s",
            limit.as_secs()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(host: Option<&str>, around: &Surroundings) -> Vec<String> {
        candidates(host, around)
            .unwrap()
            .into_iter()
            .map(|candidate| candidate.address)
            .collect()
    }

    fn with_context(name: &str, host: &str) -> (tempfile::TempDir, Surroundings) {
        let folder = tempfile::tempdir().unwrap();
        let meta = folder
            .path()
            .join("contexts/meta")
            .join(sha256_hex(name.as_bytes()));
        fs::create_dir_all(&meta).unwrap();
        fs::write(
            meta.join("meta.json"),
            format!(r#"{{"Name":"{name}","Metadata":{{}},"Endpoints":{{"docker":{{"Host":"{host}","SkipTLSVerify":false}}}}}}"#),
        )
        .unwrap();
        fs::write(
            folder.path().join("config.json"),
            format!(r#"{{"auths":{{}},"currentContext":"{name}"}}"#),
        )
        .unwrap();
        let around = Surroundings {
            config: Some(folder.path().to_owned()),
            sockets: vec![PathBuf::from("/default.sock")],
            ..Surroundings::default()
        };
        (folder, around)
    }

    #[test]
    fn the_order_is_that_of_dockers_client() {
        let (_folder, mut around) = with_context("far", "tcp://far:2375");
        assert_eq!(addresses(None, &around), ["tcp://far:2375"]);
        around.docker_host = Some("unix:///env.sock".to_owned());
        assert_eq!(addresses(None, &around), ["unix:///env.sock"]);
        assert_eq!(
            addresses(Some("unix:///arg.sock"), &around),
            ["unix:///arg.sock"]
        );
        around.docker_host = None;
        around.docker_context = Some("default".to_owned());
        assert_eq!(addresses(None, &around), ["unix:///default.sock"]);
    }

    #[test]
    fn a_context_that_does_not_exist_is_an_error_and_not_the_default_engine() {
        let (_folder, mut around) = with_context("far", "tcp://far:2375");
        around.docker_context = Some("nowhere".to_owned());
        let message = candidates(None, &around).unwrap_err().to_string();
        assert!(message.contains("context nowhere"), "{message}");

        let (folder, around) = with_context("far", "tcp://far:2375");
        fs::write(folder.path().join("config.json"), "{").unwrap();
        let message = candidates(None, &around).unwrap_err().to_string();
        assert!(message.contains("config.json"), "{message}");
    }

    #[tokio::test]
    async fn when_none_answers_the_error_lists_what_was_tried() {
        let folder = tempfile::tempdir().unwrap();
        let around = Surroundings {
            sockets: vec![
                folder.path().join("one.sock"),
                folder.path().join("two.sock"),
            ],
            ..Surroundings::default()
        };
        let Err(EngineError::Unreachable { tried }) = connect_in(None, &around).await else {
            panic!("something answered");
        };
        assert_eq!(tried.len(), 2);
        assert!(tried[0].contains("one.sock") && tried[0].contains("no such socket"));
        assert!(tried[1].contains("two.sock"));
    }
}
