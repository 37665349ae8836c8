//! Images, before anything is touched (product.md 16).

use std::collections::{BTreeMap, BTreeSet};

use futures_util::StreamExt;
use futures_util::stream;
use selu_compiler::diff::Subject;
use selu_compiler::model::InstanceKey;
use selu_compiler::plan::Plan;

use super::CONCURRENCY;
use crate::engine::Engine;
use crate::events::{Event, Events, with_progress};
use crate::secrets::Redactor;
use crate::stop::Stop;

/// Pulls what the plan needs and the engine does not have, each image once (I0). What could not be pulled comes back by
/// reference, with the reason.
pub async fn pull(
    engine: &dyn Engine,
    plan: &Plan,
    events: &dyn Events,
    redactor: &Redactor,
    stop: &Stop,
) -> BTreeMap<String, String> {
    let mut wanted: BTreeMap<&str, BTreeSet<&InstanceKey>> = BTreeMap::new();
    for (key, instance) in &plan.instances {
        if let Some(reference) = instance
            .image
            .reference
            .as_deref()
            .filter(|_| instance.image.pull)
        {
            wanted.entry(reference).or_default().insert(key);
        }
    }
    let pulls = wanted.into_iter().map(|(reference, keys)| async move {
        // Told about once, under the first instance that needs it.
        let subject = keys.first().map(|key| Subject::Instance((*key).clone()))?;
        events.emit(Event::Step {
            subject: subject.clone(),
            text: format!("pulling {reference}"),
        });
        let progress = |text: String| {
            events.emit(Event::Progress {
                subject: subject.clone(),
                text: redactor.clean(&format!("pulling {reference}: {text}")),
            });
        };
        let pull = with_progress(async |lines| engine.pull(reference, lines).await, progress);
        let result = tokio::select! {
            biased;
            () = stop.wait() => return Some((reference.to_owned(), "interrupted".to_owned())),
            result = pull => result,
        };
        let error = result.err()?;
        Some((reference.to_owned(), redactor.clean(&error.to_string())))
    });
    stream::iter(pulls)
        .buffer_unordered(CONCURRENCY)
        .filter_map(|failed| async { failed })
        .collect()
        .await
}
