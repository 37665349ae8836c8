//! What to do about an error, by its type.

use selu_runtime::engine::EngineError;
use selu_runtime::git::GitError;
use selu_runtime::lockfile::LockFileError;

/// Hints for every error of the chain that has a cure.
pub(crate) fn of(error: &anyhow::Error) -> Vec<String> {
    error.chain().filter_map(one).collect()
}

fn one(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(Hinted { hint, .. }) = error.downcast_ref() {
        return Some(hint.clone());
    }
    if let Some(LockFileError::Malformed { .. }) = error.downcast_ref() {
        let hint = "settle a conflict in it with `selu lock --resolve`, or take it back from version control; if it is removed, `selu lock` writes \
                    it anew, without the policies that were settled in it";
        return Some(hint.to_owned());
    }
    if let Some(GitError::Unmerged(_)) = error.downcast_ref() {
        return Some("settle the conflict in each of them, and `git add` it".to_owned());
    }
    let hint = match error.downcast_ref::<EngineError>()? {
        EngineError::Unreachable { .. } => {
            "start the engine (`systemctl start docker`, `dockerd`, or Docker Desktop), install one \
             (https://docs.docker.com/engine/install/), or name it with --host or DOCKER_HOST; `selu check` and \
             `selu plan --offline` need none"
        }
        EngineError::Permission { .. } => {
            "root and members of the socket's group may open it: `sudo usermod -aG docker $USER`, then log in again \
             (members of that group are as good as root)"
        }
        EngineError::Unsupported { .. } => {
            "name a Docker engine from 20.10 on that runs as root, with --host, DOCKER_HOST or `docker context use`; \
             `selu check` and `selu plan --offline` need none"
        }
        EngineError::RateLimited { .. } => {
            "log in to the registry with `docker login`, or wait; with a complete selu.lock and pulled images no \
             registry is asked"
        }
        EngineError::Unauthorized { registry, .. } => {
            return Some(format!(
                "`docker login {registry}` with an account that may read it, and check the name: many registries say the \
                 same of an image that does not exist"
            ));
        }
        EngineError::Tls { .. } => {
            "give the engine's host the registry's certificate (/etc/docker/certs.d/REGISTRY/ca.crt); without TLS only \
             registries on loopback are used, or those of `insecure-registries` in the engine's configuration"
        }
        EngineError::Timeout { .. }
        | EngineError::Conflict { .. }
        | EngineError::NotFound { .. }
        | EngineError::Refused { .. }
        | EngineError::Protocol { .. } => return None,
    };
    Some(hint.to_owned())
}

/// An error of the binary's own that brings its cure along.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Hinted {
    message: String,
    hint: String,
}

impl Hinted {
    /// What is wrong, and what to do.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }
}
