//! Where an apply has its plan from: a directory, or a file that `plan --out` wrote.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::diag::Severity;
use selu_compiler::diff::{self, Action, Subject};
use selu_compiler::model::{InstanceKey, Settings};
use selu_compiler::plan::Plan;
use selu_compiler::plan::saved::{Basis, SavedPlan};
use selu_compiler::resolve;
use selu_runtime::discover::Journal;
use selu_runtime::engine::{Engine, EngineView};
use selu_runtime::lockfile::LockFile;
use selu_runtime::secrets::Secrets;

use crate::args::Cli;
use crate::exit::Ending;
use crate::printer::Printer;
use crate::project::{self, Loaded, Planned};
use crate::saved;
use crate::targets::{Targets, meant};

/// Where a plan comes from, and comes from once more under the hold.
pub(crate) enum Source {
    /// A directory that compiles.
    Directory {
        /// It.
        loaded: Box<Loaded>,
        /// What of it is meant.
        targets: Targets,
    },
    /// A file; of the directory only the lock and the state folder are used.
    File {
        /// What it says.
        saved: Box<SavedPlan>,
        /// The directory.
        root: Utf8PathBuf,
        /// Its lock, as it was when the command began.
        lock: LockFile,
        /// From the file.
        settings: Box<Settings>,
    },
}

impl Source {
    /// The directory of lock and state.
    pub(crate) fn root(&self) -> &Utf8Path {
        match self {
            Self::Directory { loaded, .. } => &loaded.root,
            Self::File { root, .. } => root,
        }
    }

    /// The lock that is to be written.
    pub(crate) fn lock(&self) -> &LockFile {
        match self {
            Self::Directory { loaded, .. } => &loaded.lock,
            Self::File { lock, .. } => lock,
        }
    }

    /// What the lock is merged with.
    pub(crate) fn settings(&self) -> &Settings {
        match self {
            Self::Directory { loaded, .. } => &loaded.project.settings,
            Self::File { settings, .. } => settings,
        }
    }

    /// What is meant.
    pub(crate) fn targets(&self) -> &Targets {
        match self {
            Self::Directory { targets, .. } => targets,
            Self::File { saved, .. } => &saved.targets,
        }
    }

    /// Credential values.
    pub(crate) fn secrets(&self, cli: &Cli, printer: &Printer) -> anyhow::Result<Secrets> {
        match self {
            Self::Directory { loaded, .. } => loaded.secrets(cli, printer),
            Self::File { saved, root, .. } => {
                let stored = project::stored(root, Some(&saved.plan))?;
                let declaring = saved
                    .plan
                    .instances
                    .iter()
                    .map(|(key, instance)| (key.clone(), instance.credentials.as_slice()));
                project::secrets(cli, printer, &declaring.collect(), stored)
            }
        }
    }

    /// The engine.
    pub(crate) async fn engine(&self, cli: &Cli) -> anyhow::Result<Box<dyn Engine>> {
        project::engine(cli, self.settings()).await
    }

    /// The plan, from what is there now. `None` once findings were reported.
    pub(crate) async fn plan(
        &self,
        printer: &Printer,
        engine: &dyn EngineView,
    ) -> anyhow::Result<Option<Planned>> {
        match self {
            Self::Directory { loaded, targets } => {
                let planned = loaded.plan(printer, engine, true).await?;
                Ok(planned.map(|planned| planned.only(targets)))
            }
            Self::File { saved, lock, .. } => {
                saved::verify(saved, lock.lock(), engine).await.map(Some)
            }
        }
    }

    /// Under the hold: the plan that was shown, or the error that names what has changed since (product.md 14).
    pub(crate) async fn plan_again(
        &self,
        printer: &Printer,
        engine: &dyn EngineView,
        shown: &Planned,
    ) -> anyhow::Result<Option<Planned>> {
        match self {
            Self::Directory { loaded, targets } => {
                loaded.require_same_lock()?;
                let Some(planned) = loaded.plan(printer, engine, false).await? else {
                    return Ok(None);
                };
                let planned = planned.only(targets);
                let same_work = planned.changes.settled() == shown.changes.settled();
                let intent = |planned: &Planned| planned.plan.clone().without_addresses();
                if intent(&planned) != intent(shown) || !same_work {
                    return Err(changed(&planned, shown, loaded).into());
                }
                Ok(Some(planned))
            }
            Self::File { saved, root, .. } => {
                let now = LockFile::load(root)?;
                saved::verify(saved, now.lock(), engine).await.map(Some)
            }
        }
    }

    /// The plan once images were pulled, with what they brought along.
    pub(crate) async fn plan_pulled(
        &self,
        printer: &Printer,
        engine: &dyn EngineView,
        planned: Planned,
    ) -> anyhow::Result<Option<Planned>> {
        match self {
            Self::Directory { loaded, targets } => {
                let planned = loaded.plan(printer, engine, false).await?;
                Ok(planned.map(|planned| planned.only(targets)))
            }
            Self::File { saved, lock, .. } => {
                let mut observed = planned.observed;
                for instance in planned.plan.instances.values() {
                    if let (true, Some(reference)) =
                        (instance.image.pull, &instance.image.reference)
                        && let Some(facts) = engine.image(reference).await?
                    {
                        observed.images.insert(reference.clone(), facts);
                    }
                }
                let (plan, findings) = resolve::pulled(&planned.plan, &observed);
                if findings
                    .iter()
                    .any(|finding| finding.severity == Severity::Error)
                {
                    project::refuse_without_sources(printer, &findings);
                    return Ok(None);
                }
                let changes = diff::changes_since(lock.lock(), &plan, &observed);
                let planned = Planned {
                    observed,
                    plan,
                    changes,
                };
                Ok(Some(planned.only(&saved.targets)))
            }
        }
    }

    /// Dynamic instances whose discovery is due although nothing about them may change (D5).
    pub(crate) fn due(&self, plan: &Plan, journal: &Journal) -> BTreeSet<InstanceKey> {
        let mut due = match self {
            Self::Directory { loaded, .. } => loaded.due(plan, journal),
            Self::File { saved, .. } => saved.due.clone(),
        };
        due.retain(|key| meant(self.targets(), key));
        due
    }

    /// Uses a saved plan up: noted before anything is changed, so that a kill makes it no newer (product.md 5).
    pub(crate) fn use_up(&self) -> anyhow::Result<()> {
        if let Self::File { saved, root, .. } = self {
            refuse_used(saved, root)?;
            selu_runtime::state::note_applied(root, &saved.plan_id)?;
        }
        Ok(())
    }
}

/// A plan is used once.
pub(crate) fn refuse_used(saved: &SavedPlan, root: &Utf8Path) -> anyhow::Result<()> {
    if selu_runtime::state::was_applied(root, &saved.plan_id)? {
        let message = format!(
            "plan {} was applied before; make a new one",
            crate::printer::shown(&saved.plan_id)
        );
        return Err(Ending::stale(message).into());
    }
    Ok(())
}

/// What has changed between a question and its answer.
fn changed(now: &Planned, shown: &Planned, loaded: &Loaded) -> Ending {
    let basis = |planned: &Planned| Basis::of(loaded.lock(), &planned.observed);
    let moved = basis(shown).moved(&basis(now));
    if !moved.is_empty() {
        return saved::stale(&moved);
    }
    let mut message = "what the plan was made from has changed since it was shown:".to_owned();
    let actions = |planned: &Planned| -> BTreeMap<Subject, Action> {
        let changes = planned.changes.settled().changes.into_iter();
        changes
            .map(|change| (change.subject, change.action))
            .collect()
    };
    let (before, after) = (actions(shown), actions(now));
    for (subject, action) in &after {
        if before.get(subject) != Some(action) {
            let name = selu_runtime::events::subject_name(subject);
            message.push_str(&format!("\n  {name} is now: {action:?}"));
        }
    }
    for (subject, action) in &before {
        if !after.contains_key(subject) {
            let name = selu_runtime::events::subject_name(subject);
            message.push_str(&format!("\n  {name} was: {action:?}, and is gone"));
        }
    }
    if before == after {
        message.push_str(
            "\n  the reasons or the details of what is to be done; plan again to see them",
        );
    }
    Ending::stale(message)
}
