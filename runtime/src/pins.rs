//! Tag → what cannot move (I3, product.md 18): the engine is asked first, a registry only for what nothing pins.

use std::collections::{BTreeMap, BTreeSet};

use selu_compiler::lock::Lock;
use selu_compiler::model::{ImageReference, InstanceKey, Project};
use selu_compiler::observed::{ImageFacts, RegistryAnswer};

use crate::chain::chain;
use crate::engine::{EngineResult, EngineView};

/// A reference that neither the lock nor its manifest pins.
pub(crate) struct Unpinned {
    reference: ImageReference,
    /// Whether each instance that has it can build it from a folder of its own.
    buildable: bool,
    /// Whether the registry's answer counts even where the engine has an image of that name.
    fresh: bool,
}

/// References that some instance has without a digest in its manifest or its lock entry, as written.
/// Those of `fresh` count as such.
pub(crate) fn unpinned(
    project: &Project,
    lock: Option<&Lock>,
    fresh: &BTreeSet<InstanceKey>,
) -> BTreeMap<String, Unpinned> {
    let mut open: BTreeMap<String, Unpinned> = BTreeMap::new();
    for (key, _, capability) in project.instances() {
        let image = &capability.image;
        let locked = lock.and_then(|lock| lock.instances.get(&key));
        let pinned = locked.is_some_and(|locked| locked.image.written == image.written);
        let fresh = fresh.contains(&key);
        if image.digest.is_some() || (pinned && !fresh) {
            continue;
        }
        let buildable = capability.container.is_some();
        open.entry(image.written.clone())
            .and_modify(|one| {
                one.buildable &= buildable;
                one.fresh |= fresh;
            })
            .or_insert_with(|| Unpinned {
                reference: image.clone(),
                buildable,
                fresh,
            });
    }
    open
}

/// What is known of one image. A registry is asked only if `ask` says so and the engine knows no digest: an image that
/// was pulled has one, and an image that was built here is meant to be used as it is.
pub(crate) async fn facts(
    engine: &dyn EngineView,
    reference: &str,
    ask: Option<&Unpinned>,
) -> EngineResult<Option<ImageFacts>> {
    let local = engine.image(reference).await?;
    let ask = match (&local, ask) {
        (None, Some(ask)) => ask,
        (Some(_), Some(ask)) if ask.fresh => ask,
        _ => return Ok(local),
    };
    let digest = match engine.registry_digest(&ask.reference).await {
        Ok(digest) => digest,
        // An image under development is in no registry, whose answer to that is often a refusal: it is to be built.
        Err(error) if ask.buildable => {
            tracing::info!("{reference}: {error}");
            None
        }
        Err(error) => return Err(error),
    };
    Ok(match digest {
        // In no registry: what the engine has is all there is.
        None => local,
        Some(digest) => match local {
            Some(local) if local.digest.as_ref() == Some(&digest) => Some(local),
            // It may have been pulled by its digest, which moves no tag.
            _ => match engine.image(&ask.reference.at(&digest)).await? {
                Some(pulled) if pulled.digest.as_ref() == Some(&digest) => Some(pulled),
                _ => Some(ImageFacts {
                    id: None,
                    digest: Some(digest),
                    volumes: Vec::new(),
                    labels: BTreeMap::new(),
                }),
            },
        },
    })
}

/// What a registry says of a digest that is to be pulled, and of the tag beside it once the digest is gone.
pub(crate) async fn answer(
    engine: &dyn EngineView,
    pinned: &str,
    reference: &ImageReference,
) -> RegistryAnswer {
    let asking = async {
        let digest = pinned.split_once('@').map(|(_, digest)| digest);
        let digest = digest.unwrap_or_default();
        let by_digest = ImageReference {
            digest: Some(digest.to_owned()),
            ..reference.clone()
        };
        if engine.registry_digest(&by_digest).await?.is_some() {
            let platforms = engine.registry_platforms(reference, digest).await?;
            return EngineResult::Ok(RegistryAnswer::Has { platforms });
        }
        let tag_now = match &reference.tag {
            Some(_) => {
                let by_tag = ImageReference {
                    digest: None,
                    ..reference.clone()
                };
                engine.registry_digest(&by_tag).await?
            }
            None => None,
        };
        Ok(RegistryAnswer::Gone { tag_now })
    };
    asking
        .await
        .unwrap_or_else(|error| RegistryAnswer::Silent { why: chain(&error) })
}
