//! `selu lock`: pin and discover, leaving nothing running.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use selu_compiler::lock::stale;
use selu_compiler::model::InstanceKey;
use selu_compiler::plan::{Plan, PlannedGateway};
use selu_runtime::apply::{self, Discovery, Job, Report};
use selu_runtime::discover::Journal;
use selu_runtime::engine::Engine;
use selu_runtime::secrets::Secrets;
use selu_runtime::stop::Stop;
use serde_json::json;

use crate::args::{Cli, LockArgs};
use crate::exit::Exit;
use crate::held;
use crate::outcome::{Locking, Outcome, stale_text};
use crate::printer::Printer;
use crate::project::{Loaded, Planned, document, load};

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &LockArgs,
) -> anyhow::Result<Exit> {
    let Some(loaded) = load(cli, printer, &args.directory)? else {
        return Ok(Exit::Failed);
    };
    if args.check {
        return Ok(check(printer, &loaded));
    }
    let secrets = loaded.secrets(cli, printer)?;
    let engine = loaded.engine(cli).await?;
    let Some(planned) = loaded.plan(printer, engine.view(), true).await? else {
        return Ok(Exit::Failed);
    };
    let mut journal = Journal::load(&loaded.root)?;
    let locking = Locking {
        printer,
        loaded: &loaded,
        read_only: false,
    };
    let dynamic: BTreeSet<&InstanceKey> = planned
        .plan
        .instances
        .iter()
        .filter(|(_, instance)| instance.discovery_tool.is_some())
        .map(|(key, _)| key)
        .collect();
    let mut report = Report::default();
    let wanted: Vec<InstanceKey> = dynamic.into_iter().cloned().collect();
    let (Some(gateway), false) = (&planned.plan.gateway, wanted.is_empty()) else {
        return locking.finish(&planned.plan, Outcome::of(report), &mut journal);
    };

    let image = gateway.spec.image.clone();
    let had_image = engine.image(&image).await?.is_some();
    let project = &planned.plan.project;
    let mut hold = held::take(engine.as_ref(), project, &image, "lock", args.lock_timeout).await?;
    let run = Run {
        printer,
        stop,
        loaded: &loaded,
        engine: engine.as_ref(),
        secrets: &secrets,
        ready_timeout: Duration::from_secs(args.ready_timeout),
    };
    let result = held::under(&mut hold, printer, stop, run.discover(&wanted, &mut report)).await;
    // The lock is written while nobody else can write it.
    let result = match result {
        Ok(Some(plan)) => locking.finish(&plan, Outcome::of(report), &mut journal),
        Ok(None) => Ok(Exit::Failed),
        Err(error) => Err(error),
    };
    held::release(hold, engine.as_ref(), printer).await;
    if !had_image && let Err(error) = apply::remove_gateway_image(engine.as_ref(), &image).await {
        // What came of the discovery counts more than an image that is left.
        printer.warn(&format!("image {image} could not be removed: {error}"));
    }
    result
}

fn check(printer: &Printer, loaded: &Loaded) -> Exit {
    let Some(plan) = loaded.plan_offline(printer) else {
        return Exit::Failed;
    };
    let stale = stale(loaded.lock(), &plan);
    if !stale.is_empty() {
        return stale_text(printer, &plan.project, &stale);
    }
    printer.say("selu.lock fits the directory.");
    let mut document = document(&plan.project);
    document.insert("stale".to_owned(), json!([]));
    document.insert("exit_code".to_owned(), Exit::Done.code().into());
    printer.json(&document.into());
    Exit::Done
}

struct Run<'a> {
    printer: &'a Printer,
    stop: &'a Stop,
    loaded: &'a Loaded,
    engine: &'a dyn Engine,
    secrets: &'a Secrets,
    ready_timeout: Duration,
}

impl Run<'_> {
    /// Pulls, discovers in containers just for it, and tidies up. The plan that the lock follows from, or `None` once
    /// findings were reported.
    async fn discover(
        &self,
        wanted: &[InstanceKey],
        report: &mut Report,
    ) -> anyhow::Result<Option<Plan>> {
        let Self {
            printer,
            stop,
            loaded,
            engine,
            secrets,
            ready_timeout,
        } = *self;
        loaded.require_same_lock()?;
        let Some(mut planned) = loaded.plan(printer, engine.view(), false).await? else {
            return Ok(None);
        };
        let mut unpulled = BTreeMap::new();
        if wanted.iter().any(|key| {
            planned
                .plan
                .instances
                .get(key)
                .is_some_and(|one| one.image.pull)
        }) {
            let mut needed = planned.plan.clone();
            needed.instances.retain(|key, _| wanted.contains(key));
            unpulled = apply::pull(engine, &needed, printer, secrets.redactor(), stop).await;
            match loaded.plan(printer, engine.view(), false).await? {
                Some(again) => planned = again,
                None => return Ok(None),
            }
        }
        let Planned { observed, plan, .. } = planned;
        let masked = apply::without_residents(&observed);
        let Some(alone) = loaded.resolved(printer, loaded.lock(), Some(&masked), false) else {
            return Ok(None);
        };
        let (trial, changes) = apply::trial(alone, &masked, &plan, wanted);
        let had_gateway = trial
            .gateway
            .as_ref()
            .is_some_and(|PlannedGateway { name, .. }| observed.containers.contains_key(name));
        let job = Job {
            engine,
            plan: &trial,
            changes: &changes,
            observed: &observed,
            due: &BTreeSet::new(),
            unpulled: &unpulled,
            secrets,
            events: printer,
            stop,
            ready_timeout,
        };
        job.clear_trials(true).await?;
        let done = apply::apply(&job).await;
        job.clear_trials(had_gateway).await?;
        report.interrupted = done.interrupted;
        for (change, outcome) in done.outcomes {
            if let (selu_compiler::diff::Subject::Instance(key), apply::Outcome::Failed(why)) =
                (&change.subject, outcome)
            {
                report
                    .discoveries
                    .insert(key.clone(), Discovery::Failed(why));
            }
        }
        for (key, discovery) in done.discoveries {
            report.discoveries.entry(key).or_insert(discovery);
        }
        Ok(Some(plan))
    }
}
