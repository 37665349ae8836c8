//! `--target`: which instances a command is about (product.md 6).

use std::collections::BTreeSet;

use selu_compiler::lock::Lock;
use selu_compiler::model::{InstanceKey, Project};
use selu_compiler::plan::saved::PlanDocument;
use selu_compiler::plan::{FORMAT_VERSION, Plan};
use selu_compiler::review::{Review, Snapshot};
use selu_runtime::secrets::Redactor;

use crate::exit::Ending;
use crate::project::Planned;

/// The chosen instances; `None` for all.
pub(crate) type Targets = Option<BTreeSet<InstanceKey>>;

/// Reads `AGENT/CAPABILITY` or `AGENT`, each as often as there is one. One that the directory has not is wrong usage: it
/// is somebody's typing error, or an orphan, which no target may touch.
pub(crate) fn choose(project: &Project, wanted: &[String]) -> anyhow::Result<Targets> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let known: BTreeSet<InstanceKey> = project.instances().map(|(key, ..)| key).collect();
    let mut chosen = BTreeSet::new();
    for word in wanted {
        let fits = |key: &&InstanceKey| key.as_str() == word || key.agent() == word;
        let found: Vec<InstanceKey> = known.iter().filter(fits).cloned().collect();
        if found.is_empty() {
            let names: Vec<&str> = known.iter().map(InstanceKey::as_str).collect();
            return Err(Ending::usage(format!(
                "--target {word}: the directory has no such instance or agent; there are {}",
                names.join(", ")
            ))
            .into());
        }
        chosen.extend(found);
    }
    Ok(Some(chosen))
}

/// Whether an instance is meant.
pub(crate) fn meant(targets: &Targets, key: &InstanceKey) -> bool {
    targets.as_ref().is_none_or(|targets| targets.contains(key))
}

impl Planned {
    /// What concerns the targets.
    pub(crate) fn only(mut self, targets: &Targets) -> Self {
        if let Some(targets) = targets {
            self.changes = self.changes.only(&self.plan, targets);
        }
        self
    }

    /// What it means for rights, compared with what runs, and where nothing runs with what the lock says.
    pub(crate) fn review(&self, targets: &Targets, lock: Option<&Lock>) -> Review {
        let Self { plan, observed, .. } = self;
        let live = Snapshot::of_live(plan, observed, lock);
        let planned = Snapshot::of_plan(plan, lock).with_images(plan, observed);
        about(Review::new(&live, &planned), targets)
    }

    /// For people and programs: whatever somebody set on a live object, a known secret is not shown.
    pub(crate) fn document(
        &self,
        targets: &Targets,
        redactor: &Redactor,
        lock: Option<&Lock>,
    ) -> PlanDocument {
        let mut review = self.review(targets, lock);
        for finding in &mut review.findings {
            finding.says = redactor.clean(&finding.says);
            for value in [&mut finding.old, &mut finding.new].into_iter().flatten() {
                *value = redactor.clean(value);
            }
        }
        let mut changes = self.changes.clone();
        for change in &mut changes.changes {
            for reason in &mut change.reasons {
                for value in [&mut reason.old, &mut reason.new].into_iter().flatten() {
                    *value = redactor.clean(value);
                }
            }
        }
        PlanDocument {
            format_version: FORMAT_VERSION.to_owned(),
            plan: self.plan.clone(),
            changes: Some(changes),
            targets: targets.clone(),
            review: Some(review),
        }
    }
}

/// A plan that was compared with the lock and no engine.
pub(crate) fn offline(plan: &Plan, targets: &Targets, lock: Option<&Lock>) -> PlanDocument {
    let locked = lock.map(Snapshot::of_lock).unwrap_or_default();
    let review = Review::new(&locked, &Snapshot::of_plan(plan, lock));
    PlanDocument {
        format_version: FORMAT_VERSION.to_owned(),
        plan: plan.clone(),
        changes: None,
        targets: targets.clone(),
        review: Some(about(review, targets)),
    }
}

/// The findings about the targets.
fn about(mut review: Review, targets: &Targets) -> Review {
    let concerns = |key: &InstanceKey| meant(targets, key);
    review
        .findings
        .retain(|finding| finding.instance.as_ref().is_none_or(concerns));
    review
}
