//! Engine and registry → [`Observed`]: the facts that a plan is made from.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::StreamExt;
use futures_util::stream;
use selu_compiler::lock::Lock;
use selu_compiler::model::{InstanceKey, Project};
use selu_compiler::observed::{ImageFacts, Observed};
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

/// Looks at everything that a plan of `project` depends on. Only a view: nothing can be changed or pulled (product.md 3).
pub async fn observe(
    engine: &dyn EngineView,
    project: &Project,
    lock: Option<&Lock>,
) -> Result<Observed, ObserveError> {
    observe_fresh(engine, project, lock, &BTreeSet::new()).await
}

/// As [`observe`], and the registry is asked what the tags of some instances mean now, whatever the engine has.
pub async fn observe_fresh(
    engine: &dyn EngineView,
    project: &Project,
    lock: Option<&Lock>,
    fresh: &BTreeSet<InstanceKey>,
) -> Result<Observed, ObserveError> {
    let name = project.name.as_deref().unwrap_or_default();
    let wanted = resolve::wanted_names(project);
    let (observed, images) = tokio::join!(
        engine.observe(name, &wanted),
        images(engine, project, lock, fresh)
    );
    let mut observed = observed.map_err(ObserveError::Engine)?;
    observed.images = images?;
    Ok(observed)
}

/// Each distinct image once (I0).
async fn images(
    engine: &dyn EngineView,
    project: &Project,
    lock: Option<&Lock>,
    fresh: &BTreeSet<InstanceKey>,
) -> Result<BTreeMap<String, ImageFacts>, ObserveError> {
    let mut unpinned = pins::unpinned(project, lock, fresh);
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
