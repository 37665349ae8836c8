//! Engine and registry → [`Observed`]: the facts that a plan is made from.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::StreamExt;
use futures_util::stream;
use selu_compiler::lock::Lock;
use selu_compiler::model::{ImageReference, InstanceKey, Project};
use selu_compiler::observed::{ImageFacts, Observed, RegistryAnswer};
use selu_compiler::resolve;

use crate::engine::{EngineError, EngineView};
use crate::pins;

/// Questions about images that are open at once.
const CONCURRENCY: usize = 8;

/// Why an image could not be asked about.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The engine did not answer.
    #[error("could not look at the engine")]
    Engine(#[source] EngineError),
    /// Neither the engine nor a registry answered about one image.
    #[error("could not find out about image {reference}")]
    Image {
        /// As written or pinned.
        reference: String,
        /// Why.
        source: EngineError,
    },
}

/// Whether registries are asked about what the engine does not have.
#[derive(Debug, Clone, Copy)]
pub enum Registries<'a> {
    /// They are not: `--frozen`.
    Unasked,
    /// They are; and about the tags of these instances whatever the engine has.
    Asked(&'a BTreeSet<InstanceKey>),
}

/// Looks at everything that a plan of `project` depends on. Only a view: nothing can be changed or pulled (product.md 3).
pub async fn observe(
    engine: &dyn EngineView,
    project: &Project,
    lock: Option<&Lock>,
) -> Result<Observed, ObserveError> {
    observe_with(engine, project, lock, Registries::Asked(&BTreeSet::new())).await
}

/// As [`observe`], and says which registries are asked.
pub async fn observe_with(
    engine: &dyn EngineView,
    project: &Project,
    lock: Option<&Lock>,
    registries: Registries<'_>,
) -> Result<Observed, ObserveError> {
    let name = project.name.as_deref().unwrap_or_default();
    let wanted = resolve::wanted_names(project);
    let (observed, images) = tokio::join!(
        engine.observe(name, &wanted),
        images(engine, project, lock, registries)
    );
    let mut observed = observed.map_err(ObserveError::Engine)?;
    let images = images?;
    if let Registries::Asked(_) = registries {
        observed.registries = unpulled(engine, project, lock, &images).await;
    }
    observed.images = images;
    Ok(observed)
}

/// Each distinct image once (I0).
async fn images(
    engine: &dyn EngineView,
    project: &Project,
    lock: Option<&Lock>,
    registries: Registries<'_>,
) -> Result<BTreeMap<String, ImageFacts>, ObserveError> {
    let mut unpinned = match registries {
        Registries::Unasked => BTreeMap::new(),
        Registries::Asked(fresh) => pins::unpinned(project, lock, fresh),
    };
    let mut questions: BTreeMap<String, Option<_>> = resolve::pinned_references(project, lock)
        .into_iter()
        .map(|pinned| (pinned, None))
        .collect();
    for reference in resolve::image_references(project).into_keys() {
        let ask = unpinned.remove(&reference);
        questions.insert(reference, ask);
    }
    let answers = questions.into_iter().map(|(reference, ask)| async move {
        match pins::facts(engine, &reference, ask.as_ref()).await {
            Ok(facts) => Ok(facts.map(|facts| (reference, facts))),
            Err(source) => Err(ObserveError::Image { reference, source }),
        }
    });
    let answers: Vec<_> = stream::iter(answers)
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;
    answers.into_iter().filter_map(Result::transpose).collect()
}

/// What registries say of digests that are to be pulled. That one does not answer is for the plan to mention: it may by
/// the time of the pull.
async fn unpulled(
    engine: &dyn EngineView,
    project: &Project,
    lock: Option<&Lock>,
    images: &BTreeMap<String, ImageFacts>,
) -> BTreeMap<String, RegistryAnswer> {
    let mut wanted = resolve::registry_pins(project, lock);
    for (written, reference) in resolve::image_references(project) {
        // What was unpinned until the registry said what the tag means.
        let facts = images.get(&written).filter(|facts| facts.id.is_none());
        if let Some(digest) = facts.and_then(|facts| facts.digest.as_ref()) {
            wanted.insert(reference.at(digest), reference.clone());
        }
    }
    let here = |pinned: &str, reference: &ImageReference| {
        let digest = pinned.split_once('@').map(|(_, digest)| digest);
        let is = |facts: &ImageFacts| facts.id.is_some() && facts.digest.as_deref() == digest;
        images.get(pinned).is_some_and(|facts| facts.id.is_some())
            || images.get(&reference.written).is_some_and(is)
    };
    wanted.retain(|pinned, reference| !here(pinned, reference));
    let answers = wanted.into_iter().map(|(pinned, reference)| async move {
        let answer = pins::answer(engine, &pinned, &reference).await;
        (pinned, answer)
    });
    stream::iter(answers)
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await
}
