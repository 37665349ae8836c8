//! `selu sync`: ask what runs for its tools again, and merge; once, or as a service.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use selu_compiler::diff::{Action, Change, ChangeSet, Subject};
use selu_compiler::model::InstanceKey;
use selu_runtime::apply::{self, Discovery, Job, Report};
use selu_runtime::discover::Journal;
use selu_runtime::engine::Engine;
use selu_runtime::secrets::Secrets;
use selu_runtime::stop::Stop;

use crate::args::{Cli, Format, SyncArgs};
use crate::exit::{Ending, Exit};
use crate::held;
use crate::metrics::{Metrics, Round};
use crate::outcome::{Locking, Mode, Outcome};
use crate::printer::Printer;
use crate::project::{Loaded, Planned, load};
use crate::sessions::{Desk, runs};

/// A pause is longer by up to this part of it, so that services that were started together spread out.
const JITTER: u32 = 10;

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &SyncArgs,
) -> anyhow::Result<Exit> {
    let mut metrics = Metrics::default();
    let Some(every) = args.every else {
        let mut round = Round::default();
        let result = one(cli, printer, stop, args, &mut round).await;
        round.exit = result.as_ref().map_or_else(Exit::of, |exit| *exit);
        metrics.note(&round);
        if let Some(path) = &args.metrics {
            metrics.write(path)?;
        }
        return result;
    };
    if cli.global.format == Format::Json {
        let message =
            "--every prints no JSON, because it has no end; --metrics FILE is for programs";
        return Err(Ending::usage(message).into());
    }
    // From here on a signal ends the pause, or the round once it is consistent. Either is this service's regular end.
    stop.begin_work();
    loop {
        let mut round = Round::default();
        let began = Instant::now();
        let result = one(cli, printer, stop, args, &mut round).await;
        round.took = began.elapsed();
        round.exit = match result {
            Ok(exit) => exit,
            Err(error) => {
                let exit = Exit::of(&error);
                printer.error(&error, exit);
                exit
            }
        };
        metrics.note(&round);
        if let Some(path) = &args.metrics
            && let Err(error) = metrics.write(path)
        {
            // The next round tries again; the file's age shows that this one did not.
            printer.warn(&format!("{error:#}"));
        }
        if stop.requested() {
            return Ok(Exit::Done);
        }
        let pause = every + jitter(every);
        printer.say(&format!("next round in {} s", pause.as_secs()));
        tokio::select! {
            biased;
            () = stop.wait() => return Ok(Exit::Done),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// One look at directory and engine, from the beginning: either may have changed since the last one.
async fn one(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &SyncArgs,
    round: &mut Round,
) -> anyhow::Result<Exit> {
    let Some(loaded) = load(cli, printer, &args.directory.dir)? else {
        return Ok(Exit::Failed);
    };
    round.project.clone_from(&loaded.project.name);
    let secrets = loaded.secrets(cli, printer)?;
    let engine = loaded.engine(cli).await?;
    let Some(planned) = loaded.plan(printer, engine.view(), true).await? else {
        return Ok(Exit::Failed);
    };
    let mut journal = Journal::load(&loaded.root)?;
    let asked = asked(&planned);
    let locking = Locking {
        printer,
        lock: &loaded.lock,
        settings: &loaded.project.settings,
        // What is not asked keeps its entry.
        targets: &Some(asked.clone()),
        mode: Mode::Write,
    };
    let mut report = not_running(&planned, &asked);
    let desk = Desk {
        printer,
        stop,
        loaded: &loaded,
        engine: engine.as_ref(),
        secrets: &secrets,
    };
    let (Some(gateway), false) = (&planned.plan.gateway, asked.is_empty()) else {
        round.count(&report);
        let result = locking.finish(&planned.plan, Outcome::of(report), &mut journal);
        desk.sweep(&planned).await;
        return result;
    };
    let project = &planned.plan.project;
    let image = &gateway.spec.image;
    let wait = args.lock_timeout;
    let mut hold = held::take(engine.as_ref(), project, image, "sync", wait).await?;
    let work = ask(printer, stop, &loaded, engine.as_ref(), &secrets, &asked);
    let result = match held::under(&mut hold, printer, stop, work).await {
        Ok(Some((planned, done))) => {
            report.discoveries.extend(done.discoveries);
            report.interrupted = done.interrupted;
            round.count(&report);
            // The lock is written while nobody else can write it.
            locking.finish(&planned.plan, Outcome::of(report), &mut journal)
        }
        Ok(None) => Ok(Exit::Failed),
        Err(error) => Err(error),
    };
    held::release(hold, engine.as_ref(), printer).await;
    if !stop.requested() {
        desk.sweep(&planned).await;
    }
    result
}

/// Under the hold: nothing is made or changed, only what runs as planned is asked.
async fn ask(
    printer: &Printer,
    stop: &Stop,
    loaded: &Loaded,
    engine: &dyn Engine,
    secrets: &Secrets,
    wanted: &BTreeSet<InstanceKey>,
) -> anyhow::Result<Option<(Planned, Report)>> {
    loaded.require_same_lock()?;
    let Some(planned) = loaded.plan(printer, engine.view(), false).await? else {
        return Ok(None);
    };
    if !wanted.is_subset(&asked(&planned)) {
        let message = "what runs has changed since it was looked at; say it again";
        return Err(Ending::stale(message).into());
    }
    let unchanged = planned.changes.changes.iter();
    let unchanged = unchanged.filter(|change| match &change.subject {
        Subject::Instance(key) => wanted.contains(key),
        Subject::Gateway(_) => true,
        Subject::Container(_) | Subject::Network(_) => false,
    });
    let changes = ChangeSet {
        changes: unchanged.cloned().collect(),
    };
    let job = Job {
        engine,
        plan: &planned.plan,
        changes: &changes,
        observed: &planned.observed,
        due: wanted,
        unpulled: &BTreeMap::new(),
        secrets,
        events: printer,
        stop,
        ready_timeout: apply::DEFAULT_TIMEOUT,
    };
    let report = apply::apply(&job).await;
    Ok(Some((planned, report)))
}

/// Dynamic instances that run as planned, behind a gateway that does.
fn asked(planned: &Planned) -> BTreeSet<InstanceKey> {
    let right = |subject: &Subject| {
        let mut changes = planned.changes.changes.iter();
        changes.any(|change| change.subject == *subject && change.action == Action::NoOp)
    };
    let gateway = planned.plan.gateway.as_ref();
    if !gateway.is_some_and(|gateway| right(&Subject::Gateway(gateway.name.clone()))) {
        return BTreeSet::new();
    }
    dynamic(planned)
        .filter(|key| right(&Subject::Instance((*key).clone())) && runs(planned, key))
        .cloned()
        .collect()
}

fn dynamic(planned: &Planned) -> impl Iterator<Item = &InstanceKey> {
    let instances = planned.plan.instances.iter();
    instances
        .filter(|(_, instance)| instance.discovery_tool.is_some())
        .map(|(key, _)| key)
}

/// A report that holds the others.
fn not_running(planned: &Planned, asked: &BTreeSet<InstanceKey>) -> Report {
    let why = "it does not run as planned, so it was not asked; `selu apply` mends that";
    let asleep = |key: &InstanceKey| {
        let mut changes = planned.changes.changes.iter();
        let as_planned = |change: &Change| change.action == Action::NoOp;
        changes.any(|change| change.subject == Subject::Instance(key.clone()) && as_planned(change))
            && !runs(planned, key)
    };
    // What nobody calls need not be woken to be asked.
    let others = dynamic(planned).filter(|key| !asked.contains(*key) && !asleep(key));
    Report {
        discoveries: others
            .map(|key| (key.clone(), Discovery::Failed(why.to_owned())))
            .collect(),
        ..Report::default()
    }
}

/// Somewhere in `0..every / JITTER`. Without randomness services merely stay in step.
fn jitter(every: Duration) -> Duration {
    let mut bytes = [0; 4];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    match read {
        Ok(()) => {
            (every / JITTER).mul_f64(f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX))
        }
        Err(_) => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_by_a_tenth_at_most() {
        let every = Duration::from_secs(900);
        for _ in 0..100 {
            assert!(jitter(every) <= every / 10);
        }
    }
}
