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
        let name = reference.in_full();
        let asking = async {
            let call = format!("ask {} for {name}", reference.registry);
            plain(&call, &name)?;
            let login = self.login(&call, &reference.registry).await?;
            let own = registry(&call, reference, &login);
            if let Some(digest) = told(&call, own.digest(reference.which()).await)? {
                return Ok(digest);
            }
            let found = self.through_engine(&own, &name).await?;
            match found.map(|answer| answer.descriptor.digest) {
                None => Ok(None),
                Some(Some(digest)) => Ok(Some(digest)),
                Some(None) => Err(EngineError::Protocol {
                    call,
                    message: "the registry's answer has no digest".to_owned(),
                }),
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
        let name = reference.at(digest);
        let asking = async {
            let call = format!("ask {} for the platforms of {name}", reference.registry);
            plain(&call, &name)?;
            let login = self.login(&call, &reference.registry).await?;
            let own = registry(&call, reference, &login);
            if let Some(platforms) = told(&call, own.platforms(digest).await)? {
                return Ok(platforms);
            }
            let found = self.through_engine(&own, &name).await?;
            let platforms = found.map(|answer| answer.platforms).unwrap_or_default();
            let texts = platforms.into_iter().filter_map(|platform| {
                let (os, architecture) = (platform.os?, platform.architecture?);
                (os != "unknown" && !os.is_empty()).then(|| format!("{os}/{architecture}"))
            });
            Ok(texts.collect())
        };
        self.memory.platforms(&name, asking).await
    }

    /// The same question through the engine.
    async fn through_engine(
        &self,
        asked: &Registry<'_>,
        name: &str,
    ) -> EngineResult<Option<DistributionInspect>> {
        let Registry {
            call,
            host,
            repository: _,
            login,
        } = asked;
        let asking = self
            .api
            .inspect_registry_image(name, login.credentials.clone());
        match self.call(call, self.limits.registry, asking).await {
            Ok(answer) => Ok(Some(answer)),
            Err(EngineError::NotFound { .. }) => Ok(None),
            Err(error) => Err(of_registry(error, host, &login.source)),
        }
    }
}

fn registry<'a>(call: &'a str, reference: &'a ImageReference, login: &'a Login) -> Registry<'a> {
    Registry {
        call,
        host: &reference.registry,
        repository: &reference.repository,
        login,
    }
}

/// What the registry itself has told us; `None` where only the engine may get through.
fn told<T>(call: &str, answer: Result<T, Failure>) -> EngineResult<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::Told(error)) => Err(error),
        Err(Failure::Elsewhere(why)) => {
            tracing::debug!("{call}: {why}; asking through the engine");
            Ok(None)
        }
    }
}
