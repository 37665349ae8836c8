//! `selu apply`: make it so, discover, write the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use selu_compiler::diff::Action;
use selu_compiler::lock::stale;
use selu_compiler::model::InstanceKey;
use selu_compiler::plan::{ImageKind, Plan};
use selu_runtime::apply::{self, Job, Report};
use selu_runtime::discover::Journal;
use selu_runtime::engine::Engine;
use selu_runtime::secrets::Secrets;
use selu_runtime::stop::Stop;

use crate::args::{ApplyArgs, Cli};
use crate::cmd::plan::show;
use crate::exit::{Ending, Exit};
use crate::held;
use crate::hints::Hinted;
use crate::outcome::{Locking, Outcome, stale_text};
use crate::printer::Printer;
use crate::project::{Loaded, Planned, load};

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &ApplyArgs,
) -> anyhow::Result<Exit> {
    let Some(loaded) = load(cli, printer, &args.directory)? else {
        return Ok(Exit::Failed);
    };
    let secrets = loaded.secrets(cli, printer)?;
    if args.locked {
        // What needs no engine is found without one.
        let Some(plan) = loaded.plan_offline(printer) else {
            return Ok(Exit::Failed);
        };
        let stale = stale(loaded.lock(), &plan);
        if !stale.is_empty() {
            return Ok(stale_text(printer, &plan.project, &stale));
        }
    }
    let engine = loaded.engine(cli).await?;
    let Some(planned) = loaded.plan(printer, engine.view(), true).await? else {
        return Ok(Exit::Failed);
    };
    refuse_emptying(&planned)?;
    if args.locked
        && let Some(exit) = check_lock(printer, &loaded, &planned.plan, args.allow_local)?
    {
        return Ok(exit);
    }
    let mut journal = Journal::load(&loaded.root)?;
    let due = loaded.due(&planned.plan, &journal);
    let locking = Locking {
        printer,
        loaded: &loaded,
        read_only: args.locked,
    };
    if planned.changes.is_empty() && due.is_empty() {
        let outcome = Outcome::of(Report::unchanged(&planned.changes));
        printer.say("Nothing to do: everything runs as planned.");
        return locking.finish(&planned.plan, outcome, &mut journal);
    }

    if !printer.is_json() {
        show(printer, &planned.plan, Some(&planned.changes))?;
    }
    announce(printer, &planned.plan, &due, &secrets);
    if !held::ask(args.consent, "Go on?").await? {
        printer.say("Nothing was changed.");
        let outcome = Outcome::declined(&planned.changes, Exit::Failed);
        return Ok(outcome.show(printer, &planned.plan.project, &[]));
    }

    let Some(gateway) = &planned.plan.gateway else {
        return Err(anyhow::anyhow!(
            "the plan has no gateway; this is a fault in selu"
        ));
    };
    let timeout = args.consent.lock_timeout;
    let project = planned.plan.project.clone();
    let mut hold = held::take(
        engine.as_ref(),
        &project,
        &gateway.spec.image,
        "apply",
        timeout,
    )
    .await?;
    let work = async {
        let Some((planned, unpulled)) =
            settle(printer, stop, &loaded, engine.as_ref(), &secrets, &planned).await?
        else {
            return Ok(None);
        };
        for key in apply::to_discover(&planned.plan, &planned.changes, &due) {
            journal.note(&key, "not discovered since its container was last made");
        }
        journal.keep(|key| planned.plan.instances.contains_key(key));
        journal.save()?;
        let job = Job {
            engine: engine.as_ref(),
            plan: &planned.plan,
            changes: &planned.changes,
            observed: &planned.observed,
            due: &due,
            unpulled: &unpulled,
            secrets: &secrets,
            events: printer,
            stop,
            ready_timeout: Duration::from_secs(args.ready_timeout),
        };
        let report = apply::apply(&job).await;
        anyhow::Ok(Some((planned, report)))
    };
    let result = held::under(&mut hold, printer, stop, work).await;
    // The lock is written while nobody else can apply.
    let result = match result {
        Ok(Some((planned, report))) => {
            locking.finish(&planned.plan, Outcome::of(report), &mut journal)
        }
        Ok(None) => Ok(Exit::Failed),
        Err(error) => Err(error),
    };
    held::release(hold, engine.as_ref(), printer).await;
    result
}

/// Under the hold: what the plan was made from is observed again (product.md 14), then images are pulled, and what they
/// bring along is planned for. `None` once findings were reported.
async fn settle(
    printer: &Printer,
    stop: &Stop,
    loaded: &Loaded,
    engine: &dyn Engine,
    secrets: &Secrets,
    shown: &Planned,
) -> anyhow::Result<Option<(Planned, BTreeMap<String, String>)>> {
    loaded.require_same_lock()?;
    let Some(planned) = loaded.plan(printer, engine.view(), false).await? else {
        return Ok(None);
    };
    if planned.plan != shown.plan || planned.changes != shown.changes {
        let mut message = "what the plan was made from has changed since it was shown:".to_owned();
        for change in &planned.changes.changes {
            if !shown.changes.changes.contains(change) {
                let name = selu_runtime::events::subject_name(&change.subject);
                message.push_str(&format!("\n  {name} is now: {:?}", change.action));
            }
        }
        return Err(Ending::stale(message).into());
    }
    if !planned
        .plan
        .instances
        .values()
        .any(|instance| instance.image.pull)
    {
        return Ok(Some((planned, BTreeMap::new())));
    }
    let redactor = secrets.redactor();
    let unpulled = apply::pull(engine, &planned.plan, printer, redactor, stop).await;
    let planned = loaded.plan(printer, engine.view(), false).await?;
    Ok(planned.map(|planned| (planned, unpulled)))
}

fn announce(printer: &Printer, plan: &Plan, due: &BTreeSet<InstanceKey>, secrets: &Secrets) {
    for key in due {
        printer.say(&format!("{key}: will be asked which tools it has"));
    }
    for (key, instance) in &plan.instances {
        if let Err(missing) = secrets.discovery_config(key, &instance.credentials) {
            printer.warn(&missing.to_string());
        }
    }
}

/// A directory that has lost its capabilities must not empty an engine (K06).
fn refuse_emptying(planned: &Planned) -> anyhow::Result<()> {
    let deletes = planned
        .changes
        .changes
        .iter()
        .any(|change| change.action == Action::Delete);
    if !planned.plan.instances.is_empty() || !deletes {
        return Ok(());
    }
    let message = format!(
        "this directory has no capability any more, and applying it would remove all that project {} runs",
        planned.plan.project
    );
    Err(Hinted::new(message, "if that is meant, say `selu destroy`").into())
}

/// `--locked`: every stale entry at once, before anything is touched (product.md 25).
fn check_lock(
    printer: &Printer,
    loaded: &Loaded,
    plan: &Plan,
    allow_local: bool,
) -> anyhow::Result<Option<Exit>> {
    let stale = stale(loaded.lock(), plan);
    if !stale.is_empty() {
        return Ok(Some(stale_text(printer, &plan.project, &stale)));
    }
    let local: Vec<&str> = plan
        .instances
        .iter()
        .filter(|(_, instance)| instance.image.kind == ImageKind::Local)
        .map(|(key, _)| key.as_str())
        .collect();
    if local.is_empty() || allow_local {
        return Ok(None);
    }
    let message = format!(
        "--locked, but the images of these exist on this engine only, so nobody else gets the same: {}",
        local.join(", ")
    );
    Err(Hinted::new(message, "publish them, or accept that with --allow-local").into())
}
