//! Plans in files (product.md 5).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

use anyhow::Context;
use camino::Utf8Path;
use selu_compiler::diff::{self, Action, ChangeSet, Subject};
use selu_compiler::lock::Lock;
use selu_compiler::model::{InstanceKey, Settings};
use selu_compiler::plan::saved::{Basis, Moved, PlanDocument, SavedPlan, SavedSettings};
use selu_runtime::engine::EngineView;
use selu_runtime::lockfile::write_private;

use crate::exit::Ending;
use crate::project::Planned;

/// Most that a plan may be, in bytes; one of 10,000 capabilities is a tenth of it.
const LARGEST: u64 = 1 << 30;

/// What the file says besides the plan itself.
pub(crate) struct Around<'a> {
    pub(crate) basis: Basis,
    pub(crate) settings: &'a Settings,
    pub(crate) due: &'a BTreeSet<InstanceKey>,
}

/// Writes a plan that [`read`] takes, for its owner's eyes alone.
pub(crate) fn write(
    path: &Utf8Path,
    document: PlanDocument,
    around: Around<'_>,
) -> anyhow::Result<()> {
    let PlanDocument {
        format_version,
        plan,
        changes,
        targets,
        review,
    } = document;
    let saved = SavedPlan {
        format_version,
        plan_id: random_id().context("no random id could be had for the plan")?,
        plan,
        changes: changes.unwrap_or_default(),
        targets,
        review,
        due: around.due.clone(),
        settings: SavedSettings::of(around.settings),
        basis: around.basis,
    };
    let mut bytes = serde_json::to_vec_pretty(&saved)?;
    bytes.push(b'\n');
    write_private(path, &bytes).with_context(|| format!("the plan {path} could not be written"))
}

/// The text of a plan in a file.
pub(crate) fn text(path: &Utf8Path) -> anyhow::Result<String> {
    let read = || -> anyhow::Result<String> {
        let mut text = String::new();
        let mut file = File::open(path)?.take(LARGEST + 1);
        file.read_to_string(&mut text)?;
        anyhow::ensure!(text.len() as u64 <= LARGEST, "it is larger than any plan");
        Ok(text)
    };
    read().with_context(|| format!("the plan {path} could not be read"))
}

/// A plan that is to be applied.
pub(crate) fn read(path: &Utf8Path) -> anyhow::Result<SavedPlan> {
    let text = text(path)?;
    SavedPlan::read(&text).with_context(|| format!("the plan {path} cannot be applied"))
}

/// Looks at the engine again; a plan that was made from something else ends with 4, and what has moved is named.
pub(crate) async fn verify(
    saved: &SavedPlan,
    lock: Option<&Lock>,
    engine: &dyn EngineView,
) -> anyhow::Result<Planned> {
    let plan = &saved.plan;
    let mut observed = engine.observe(&plan.project, &plan.wanted_names()).await?;
    for instance in plan.instances.values() {
        if let Some(reference) = &instance.image.reference
            && let Some(facts) = engine.image(reference).await?
        {
            observed.images.insert(reference.clone(), facts);
        }
    }
    let moved = saved.moved(lock, &observed);
    if !moved.is_empty() {
        return Err(stale(&moved).into());
    }
    let planned = Planned {
        changes: diff::changes_since(lock, plan, &observed),
        plan: plan.clone(),
        observed,
    }
    .only(&saved.targets);
    // What it was made from is the same, so this is too, unless another version of selu judges it otherwise.
    if outline(&planned.changes.settled()) != outline(&saved.changes.settled()) {
        let message = "this selu would do something else for the same plan; make a new one";
        return Err(Ending::stale(message).into());
    }
    Ok(planned)
}

/// What is done and why, without the values, of which a file has no secret ones.
fn outline(changes: &ChangeSet) -> Vec<(&Subject, Action, Vec<&str>)> {
    let changes = changes.changes.iter();
    changes
        .map(|change| {
            let paths = change.reasons.iter().map(|reason| reason.path.as_str());
            (&change.subject, change.action, paths.collect())
        })
        .collect()
}

/// The error that names what has moved.
pub(crate) fn stale(moved: &[Moved]) -> Ending {
    let mut message = "what the plan was made from has changed:".to_owned();
    for one in moved {
        message.push_str(&format!("\n  {one}"));
    }
    Ending::stale(message)
}

/// 128 random bits in hex.
fn random_id() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
