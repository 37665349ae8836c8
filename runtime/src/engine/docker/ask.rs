//! What a registry has: asked by ourselves, and through the engine where that does not get through.

use bollard::models::DistributionInspect;
use selu_compiler::model::ImageReference;

use super::Docker;
use super::call::{of_registry, plain};
use super::credentials::{self, Login};
use super::registry::{Failure, Registry};
use crate::engine::{EngineError, EngineResult};

impl Docker {
    /// Credentials for a registry, for resolving and pulling alike.
    pub(super) async fn login(&self, call: &str, registry: &str) -> EngineResult<Login> {
        let folder = self.config.as_deref();
        let asking = credentials::of_registry(call, folder, registry, self.limits.helper);
        self.memory.login(registry, asking).await
    }

    /// The digest that a reference has now; one question per reference.
    pub(super) async fn asked_digest(
        &self,
        reference: &ImageReference,
    ) -> EngineResult<Option<String>> {
        let (name, which) = name(reference);
        let ImageReference {
            registry,
            repository,
            ..
        } = reference;
        let asking = async {
            let call = format!("ask {registry} for {name}");
            plain(&call, &name)?;
            let login = self.login(&call, registry).await?;
            let own = Registry {
                call: &call,
                host: registry,
                repository,
                login: &login,
            };
            match own.digest(&which).await {
                Ok(digest) => Ok(digest),
                Err(Failure::Told(error)) => Err(error),
                Err(Failure::Elsewhere(why)) => {
                    tracing::debug!("{call}: {why}; asking through the engine");
                    let found = self.through_engine(&call, &name, registry, &login).await?;
                    match found.map(|answer| answer.descriptor.digest) {
                        None => Ok(None),
                        Some(Some(digest)) => Ok(Some(digest)),
                        Some(None) => Err(EngineError::Protocol {
                            call,
                            message: "the registry's answer has no digest".to_owned(),
                        }),
                    }
                }
            }
        };
        self.memory.digest(&name, asking).await
    }

    /// The platforms of a digest.
    pub(super) async fn asked_platforms(
        &self,
        reference: &ImageReference,
        digest: &str,
    ) -> EngineResult<Vec<String>> {
        let ImageReference {
            registry,
            repository,
            ..
        } = reference;
        let name = format!("{registry}/{repository}@{digest}");
        let asking = async {
            let call = format!("ask {registry} for the platforms of {name}");
            plain(&call, &name)?;
            let login = self.login(&call, registry).await?;
            let own = Registry {
                call: &call,
                host: registry,
                repository,
                login: &login,
            };
            match own.platforms(digest).await {
                Ok(platforms) => Ok(platforms),
                Err(Failure::Told(error)) => Err(error),
                Err(Failure::Elsewhere(why)) => {
                    tracing::debug!("{call}: {why}; asking through the engine");
                    let found = self.through_engine(&call, &name, registry, &login).await?;
                    let platforms = found.map(|answer| answer.platforms).unwrap_or_default();
                    let texts = platforms.into_iter().filter_map(|platform| {
                        let (os, architecture) = (platform.os?, platform.architecture?);
                        (os != "unknown" && !os.is_empty()).then(|| format!("{os}/{architecture}"))
                    });
                    Ok(texts.collect())
                }
            }
        };
        self.memory.platforms(&name, asking).await
    }

    async fn through_engine(
        &self,
        call: &str,
        name: &str,
        registry: &str,
        login: &Login,
    ) -> EngineResult<Option<DistributionInspect>> {
        let asking = self
            .api
            .inspect_registry_image(name, login.credentials.clone());
        match self.call(call, self.limits.registry, asking).await {
            Ok(answer) => Ok(Some(answer)),
            Err(EngineError::NotFound { .. }) => Ok(None),
            Err(error) => Err(of_registry(error, registry, &login.source)),
        }
    }
}

/// A reference in full, and what of it is asked for: the digest where there is one, else the tag.
fn name(reference: &ImageReference) -> (String, String) {
    let ImageReference {
        written: _,
        registry,
        repository,
        tag,
        digest,
    } = reference;
    match (digest, tag) {
        (Some(digest), _) => (format!("{registry}/{repository}@{digest}"), digest.clone()),
        (None, Some(tag)) => (format!("{registry}/{repository}:{tag}"), tag.clone()),
        (None, None) => (
            format!("{registry}/{repository}:latest"),
            "latest".to_owned(),
        ),
    }
}
