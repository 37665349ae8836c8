//! `selu apply`: make it so, discover, write the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use selu_compiler::diff::Action;
use selu_compiler::lock::stale;
use selu_compiler::model::InstanceKey;
use selu_compiler::plan::{ImageKind, Plan, PlannedImage};
use selu_compiler::source::SourceSet;
use selu_runtime::apply::{self, Job, Report};
use selu_runtime::discover::Journal;
use selu_runtime::engine::Engine;
use selu_runtime::hold;
use selu_runtime::secrets::Secrets;
use selu_runtime::stop::Stop;

use crate::args::{ApplyArgs, Cli, Strict};
use crate::cmd::plan::show;
use crate::exit::{Ending, Exit};
use crate::held;
use crate::hints::Hinted;
use crate::leaks;
use crate::outcome::{Locking, Mode, Outcome, stale_text};
use crate::printer::Printer;
use crate::project::{Loaded, Planned, load, load_lock};
use crate::saved;
use crate::sessions::Desk;
use crate::source::{Source, refuse_used};
use crate::targets::{self, Targets, meant};

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &ApplyArgs,
) -> anyhow::Result<Exit> {
    if args.strict.allow_local && !args.strict.read_only() {
        let message = "--allow-local says something with --locked or --frozen only";
        return Err(Ending::usage(message).into());
    }
    let Some(source) = source(cli, printer, args)? else {
        return Ok(Exit::Failed);
    };
    let secrets = source.secrets(cli, printer)?;
    if let Source::Directory { loaded, targets } = &source
        && args.strict.read_only()
    {
        // What needs no engine is found without one.
        let Some(plan) = loaded.plan_offline(printer) else {
            return Ok(Exit::Failed);
        };
        if let Some(exit) = check_lock(printer, loaded, &plan, targets, args.strict)? {
            return Ok(exit);
        }
    }
    let engine = source.engine(cli).await?;
    let Some(planned) = source.plan(printer, engine.view()).await? else {
        return Ok(Exit::Failed);
    };
    let targets = source.targets();
    refuse_emptying(&planned)?;
    if let Source::Directory { loaded, .. } = &source
        && args.strict.read_only()
        && let Some(exit) = check_lock(printer, loaded, &planned.plan, targets, args.strict)?
    {
        return Ok(exit);
    }
    let mut journal = Journal::load(source.root())?;
    let due = source.due(&planned.plan, &journal);
    let locking = Locking {
        printer,
        lock: source.lock(),
        settings: source.settings(),
        targets,
        mode: match args.strict.read_only() {
            true => Mode::Locked,
            false => Mode::Write,
        },
    };
    if planned.changes.is_empty() && due.is_empty() {
        hold::sweep(engine.as_ref(), &planned.plan.project, &planned.observed).await?;
        let outcome = Outcome::of(Report::unchanged(&planned.changes));
        warn_of_missing(printer, &planned.plan, targets, &secrets);
        sweep(printer, stop, &source, engine.as_ref(), &secrets, &planned).await;
        printer.say("Nothing to do: everything runs as planned.");
        return locking.finish(&planned.plan, outcome, &mut journal);
    }

    if !printer.is_json() {
        let lock = source.lock().lock();
        show(
            printer,
            &planned.document(targets, secrets.redactor(), lock),
        )?;
    }
    announce(printer, &planned.plan, targets, &due, &secrets);
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
    let boot = hold.boot().await;
    let work = async {
        let Planned { plan, observed, .. } = &planned;
        leaks::ensure(printer, engine.as_ref(), boot.as_deref(), plan, observed).await?;
        let Some((planned, unpulled)) =
            settle(printer, stop, &source, engine.as_ref(), &secrets, &planned).await?
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
    sweep(printer, stop, &source, engine.as_ref(), &secrets, &planned).await;
    result
}

/// Sessions that nobody has called for long (X4). A plan in a file says nothing of the agents that they are of.
async fn sweep(
    printer: &Printer,
    stop: &Stop,
    source: &Source,
    engine: &dyn Engine,
    secrets: &Secrets,
    planned: &Planned,
) {
    if let Source::Directory { loaded, .. } = source
        && !stop.requested()
    {
        let desk = Desk {
            printer,
            stop,
            loaded,
            engine,
            secrets,
        };
        desk.sweep(planned).await;
    }
}

/// A directory, or a plan in a file, which reads no YAML. `None` once findings were reported.
fn source(cli: &Cli, printer: &Printer, args: &ApplyArgs) -> anyhow::Result<Option<Source>> {
    let Some(path) = &args.plan else {
        let Some(mut loaded) = load(cli, printer, &args.directory.dir)? else {
            return Ok(None);
        };
        loaded.frozen = args.strict.frozen;
        return Ok(Some(Source::Directory {
            targets: targets::choose(&loaded.project, &args.chosen.targets)?,
            loaded: Box::new(loaded),
        }));
    };
    let saved = saved::read(path)?;
    if let Some(name) = cli.global.project.as_deref()
        && name != saved.plan.project
    {
        let message = format!(
            "--project {name}, but the plan is for project {}",
            saved.plan.project
        );
        return Err(Ending::usage(message).into());
    }
    let root = args.directory.dir.clone();
    refuse_used(&saved, &root)?;
    let Some(lock) = load_lock(printer, &root, &SourceSet::default())? else {
        return Ok(None);
    };
    Ok(Some(Source::File {
        settings: Box::new(saved.settings.settings()),
        saved: Box::new(saved),
        root,
        lock,
    }))
}

/// Under the hold: what the plan was made from is observed again (product.md 14), then images are pulled, and what they
/// bring along is planned for. `None` once findings were reported.
async fn settle(
    printer: &Printer,
    stop: &Stop,
    source: &Source,
    engine: &dyn Engine,
    secrets: &Secrets,
    shown: &Planned,
) -> anyhow::Result<Option<(Planned, BTreeMap<String, String>)>> {
    let again = source.plan_again(printer, engine.view(), shown).await?;
    let Some(planned) = again else {
        return Ok(None);
    };
    source.use_up()?;
    let mut pulling = planned.plan.clone();
    pulling
        .instances
        .retain(|key, instance| instance.image.pull && meant(source.targets(), key));
    if pulling.instances.is_empty() {
        return Ok(Some((planned, BTreeMap::new())));
    }
    let redactor = secrets.redactor();
    let unpulled = apply::pull(engine, &pulling, printer, redactor, stop).await;
    let planned = source.plan_pulled(printer, engine.view(), planned).await?;
    Ok(planned.map(|planned| (planned, unpulled)))
}

fn announce(
    printer: &Printer,
    plan: &Plan,
    targets: &Targets,
    due: &BTreeSet<InstanceKey>,
    secrets: &Secrets,
) {
    for key in due {
        printer.say(&format!("{key}: will be asked which tools it has"));
    }
    warn_of_missing(printer, plan, targets, secrets);
}

/// Credentials without a value, by name and for whom: known before anything starts (product.md 29).
pub(crate) fn warn_of_missing(
    printer: &Printer,
    plan: &Plan,
    targets: &Targets,
    secrets: &Secrets,
) {
    for (key, instance) in &plan.instances {
        if meant(targets, key)
            && let Some(missing) = secrets.missing(key, &instance.credentials)
        {
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

/// `--locked`: every stale entry at once, before anything is touched (product.md 25); `--frozen`: also what would have to
/// be pulled.
fn check_lock(
    printer: &Printer,
    loaded: &Loaded,
    plan: &Plan,
    targets: &Targets,
    strict: Strict,
) -> anyhow::Result<Option<Exit>> {
    let mut stale = stale(loaded.lock(), plan);
    stale.retain(|one| one.instance().is_none_or(|key| meant(targets, key)));
    let with = |fits: &dyn Fn(&PlannedImage) -> bool| -> Vec<&str> {
        let chosen = plan.instances.iter().filter(|(key, _)| meant(targets, key));
        chosen
            .filter(|(_, instance)| fits(&instance.image))
            .map(|(key, _)| key.as_str())
            .collect()
    };
    let local = with(&|image| image.kind == ImageKind::Local && !strict.allow_local);
    let unpulled = with(&|image| image.pull && strict.frozen);
    let mut refusals: Vec<(String, &str)> = Vec::new();
    if !local.is_empty() {
        refusals.push((
            format!(
                "--locked, but the images of these exist on this engine only, so nobody else gets the same: {}",
                local.join(", ")
            ),
            "publish them, or accept that with --allow-local",
        ));
    }
    if !unpulled.is_empty() {
        refusals.push((
            format!(
                "--frozen, but the images of these would have to be pulled: {}",
                unpulled.join(", ")
            ),
            "pull them first, or say --locked",
        ));
    }
    if !stale.is_empty() {
        for (message, _) in refusals {
            printer.say(&message);
        }
        return Ok(Some(stale_text(printer, loaded, plan, &stale)));
    }
    match refusals.into_iter().next() {
        Some((message, hint)) => Err(Hinted::new(message, hint).into()),
        None => Ok(None),
    }
}
