//! `selu lock`: pin and discover, leaving nothing running.

mod merge;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use selu_compiler::lock::{Lock, stale};
use selu_compiler::model::InstanceKey;
use selu_compiler::plan::{ImageKind, Plan, PlannedGateway};
use selu_runtime::apply::{self, Discovery, Job, Report};
use selu_runtime::discover::Journal;
use selu_runtime::engine::Engine;
use selu_runtime::secrets::Secrets;
use selu_runtime::stop::Stop;
use serde_json::{Value, json};

use crate::args::{Cli, LockArgs};
use crate::exit::{Ending, Exit};
use crate::held;
use crate::hints::Hinted;
use crate::leaks;
use crate::outcome::{Locking, Mode, Outcome, stale_text};
use crate::printer::Printer;
use crate::project::{Loaded, Planned, document, load};
use crate::targets::{Targets, meant};

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &LockArgs,
) -> anyhow::Result<Exit> {
    if let Some(exit) = merge::run(cli, printer, args)? {
        return Ok(exit);
    }
    let Some(loaded) = load(cli, printer, &args.directory.dir)? else {
        return Ok(Exit::Failed);
    };
    if !args.accept.is_empty() {
        return super::accept::run(printer, &loaded, &args.accept, args.dry_run);
    }
    if args.migrate {
        return migrate(printer, &loaded, args.dry_run);
    }
    if args.check {
        let exit = check(printer, &loaded, args.live);
        if exit != Exit::Done || !args.live {
            return Ok(exit);
        }
    }
    let targets = match &args.upgrade {
        Some(Some(name)) => upgraded(&loaded, name)?,
        Some(None) | None => None,
    };
    let secrets = loaded.secrets(cli, printer)?;
    let engine = loaded.engine(cli).await?;
    let keys: BTreeSet<InstanceKey> = loaded.project.instances().map(|(key, ..)| key).collect();
    let upgrading: BTreeSet<InstanceKey> = match &args.upgrade {
        Some(_) => keys
            .iter()
            .filter(|key| meant(&targets, key))
            .cloned()
            .collect(),
        None => BTreeSet::new(),
    };
    let fresh = if args.live { &keys } else { &upgrading };
    let mut pins = loaded.lock().map(|lock| lock.unpinned(&upgrading));
    let planned = loaded
        .plan_from(printer, engine.view(), pins.as_ref(), fresh, true)
        .await?;
    let Some(planned) = planned else {
        return Ok(Exit::Failed);
    };
    // Whoever asks a registry twice may get two answers.
    pins = pins.map(|pins| pins.pinned(&planned.plan));
    let upgrades = upgrades(printer, &loaded, &planned.plan, &upgrading);
    let mut journal = Journal::load(&loaded.root)?;
    let mode = match (args.live, args.dry_run) {
        (true, _) => Mode::Check,
        (false, true) => Mode::DryRun,
        (false, false) => Mode::Write,
    };
    let unverified = match args.live {
        true => unverifiable(printer, &loaded, &planned.plan, &secrets),
        false => BTreeMap::new(),
    };
    let dynamic: BTreeSet<&InstanceKey> = planned
        .plan
        .instances
        .iter()
        .filter(|(_, instance)| instance.discovery_tool.is_some())
        .map(|(key, _)| key)
        .filter(|key| meant(&targets, key) && !unverified.contains_key(*key))
        .collect();
    let mut report = Report::default();
    let wanted: Vec<InstanceKey> = dynamic.into_iter().cloned().collect();
    let finish = |plan: &Plan, report: Report| {
        let locking = Locking {
            printer,
            lock: &loaded.lock,
            settings: &loaded.project.settings,
            targets: &followed(&targets, &keys, &upgrading, &report),
            mode,
        };
        let outcome = Outcome::of(report)
            .with_upgrades(upgrades)
            .with_unverified(unverified);
        locking.finish(plan, outcome, &mut journal)
    };
    let (Some(gateway), false) = (&planned.plan.gateway, wanted.is_empty()) else {
        return finish(&planned.plan, report);
    };

    let image = gateway.spec.image.clone();
    let had_image = engine.image(&image).await?.is_some();
    let project = &planned.plan.project;
    let mut hold = held::take(engine.as_ref(), project, &image, "lock", args.lock_timeout).await?;
    let run = Run {
        printer,
        stop,
        loaded: &loaded,
        pins: pins.as_ref(),
        engine: engine.as_ref(),
        secrets: &secrets,
        ready_timeout: Duration::from_secs(args.ready_timeout),
        boot: hold.boot().await,
    };
    let result = held::under(&mut hold, printer, stop, run.discover(&wanted, &mut report)).await;
    // The lock is written while nobody else can write it.
    let result = match result {
        Ok(Some(plan)) => finish(&plan, report),
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

/// The instances that `--upgrade NAME` means.
fn upgraded(loaded: &Loaded, name: &str) -> anyhow::Result<Targets> {
    let keys: BTreeSet<InstanceKey> = loaded.project.instances().map(|(key, ..)| key).collect();
    let means = |key: &&InstanceKey| {
        key.as_str() == name || key.agent() == name || key.capability() == name
    };
    let chosen: BTreeSet<InstanceKey> = keys.iter().filter(means).cloned().collect();
    if chosen.is_empty() {
        let known: Vec<&str> = keys.iter().map(InstanceKey::as_str).collect();
        let message = format!(
            "--upgrade {name}: the directory has no such instance, agent or capability; there are {}",
            known.join(", ")
        );
        return Err(Ending::usage(message).into());
    }
    Ok(Some(chosen))
}

/// The instances whose entries are written anew: not those whose new image could not be asked for its tools, because the old
/// tools are not its own.
fn followed(
    targets: &Targets,
    keys: &BTreeSet<InstanceKey>,
    upgrading: &BTreeSet<InstanceKey>,
    report: &Report,
) -> Targets {
    let failed = |key: &InstanceKey| {
        upgrading.contains(key)
            && matches!(
                report.discoveries.get(key),
                Some(Discovery::Failed(_) | Discovery::NotStarted)
            )
    };
    if !keys.iter().any(failed) {
        return targets.clone();
    }
    let followed = keys
        .iter()
        .filter(|key| meant(targets, key) && !failed(key));
    Some(followed.cloned().collect())
}

/// Old and new image of each instance whose tag was followed.
fn upgrades(
    printer: &Printer,
    loaded: &Loaded,
    plan: &Plan,
    upgrading: &BTreeSet<InstanceKey>,
) -> Vec<Value> {
    let mut upgrades = Vec::new();
    for key in upgrading {
        let Some(planned) = plan.instances.get(key) else {
            continue;
        };
        let old = loaded
            .lock()
            .and_then(|lock| lock.instances.get(key))
            .map(|locked| &locked.image)
            .and_then(|image| image.digest.as_ref().or(image.source.as_ref()));
        let image = &planned.image;
        let new = match image.kind {
            ImageKind::Local => image.source.as_ref().or(image.digest.as_ref()),
            ImageKind::Registry | ImageKind::Unknown => image.digest.as_ref(),
        };
        let text = |digest: Option<&String>| digest.map_or("nothing".to_owned(), String::clone);
        let written = crate::printer::shown(&image.written);
        if old == new {
            printer.say(&format!("{key}: {written} still is {}", text(new)));
        } else {
            printer.say(&format!("{key}: {written}: {} → {}", text(old), text(new)));
        }
        upgrades.push(json!({
            "instance": key, "image": image.written, "old": old, "new": new,
        }));
    }
    upgrades
}

/// Dynamic instances that were locked with other credentials than there are now: their lists cannot be compared, and that
/// is never fine (product.md 22, 24).
fn unverifiable(
    printer: &Printer,
    loaded: &Loaded,
    plan: &Plan,
    secrets: &Secrets,
) -> BTreeMap<InstanceKey, String> {
    let mut unverified = BTreeMap::new();
    for (key, instance) in &plan.instances {
        let locked = loaded.lock().and_then(|lock| lock.instances.get(key));
        let Some(discovery) = locked.and_then(|locked| locked.discovery.as_ref()) else {
            continue;
        };
        let Some(then) = &discovery.credentials_present else {
            let why = "not verified: it never was discovered".to_owned();
            printer.say(&format!("{key}: {why}"));
            unverified.insert(key.clone(), why);
            continue;
        };
        let then: BTreeSet<&String> = then.iter().collect();
        let now = secrets.present(key, &instance.credentials);
        let now: BTreeSet<&String> = now.iter().collect();
        let list = |names: Vec<&&String>| {
            let names: Vec<&str> = names.into_iter().map(|name| name.as_str()).collect();
            names.join(", ")
        };
        let mut whys = Vec::new();
        let absent: Vec<&&String> = then.difference(&now).collect();
        if !absent.is_empty() {
            whys.push(format!("absent now: {}", list(absent)));
        }
        let more: Vec<&&String> = now.difference(&then).collect();
        if !more.is_empty() {
            whys.push(format!("absent when it was locked: {}", list(more)));
        }
        if !whys.is_empty() {
            let why = format!(
                "not verified: its tools depend on credentials; {}",
                whys.join("; ")
            );
            printer.say(&format!("{key}: {why}"));
            unverified.insert(key.clone(), why);
        }
    }
    unverified
}

/// `--migrate`: the same lock, as this version writes it (product.md 26).
fn migrate(printer: &Printer, loaded: &Loaded, dry_run: bool) -> anyhow::Result<Exit> {
    let Some(lock) = loaded.lock() else {
        return Err(
            Hinted::new("there is no selu.lock to migrate", "`selu lock` makes one").into(),
        );
    };
    let differs = loaded.lock.differs(lock);
    if differs && !dry_run {
        loaded.lock.save(lock)?;
    }
    printer.say(match (differs, dry_run) {
        (false, _) => "selu.lock has the newest form already.",
        (true, false) => "selu.lock written in the newest form; what it says is the same.",
        (true, true) => "selu.lock would be written in the newest form; what it says is the same.",
    });
    let mut document = document(loaded.project.name.as_deref().unwrap_or_default());
    document.insert("migrated".to_owned(), (differs && !dry_run).into());
    document.insert("exit_code".to_owned(), Exit::Done.code().into());
    printer.json(&document.into());
    Ok(Exit::Done)
}

/// What needs neither engine nor network. `more` is to come, and answers for both.
fn check(printer: &Printer, loaded: &Loaded, more: bool) -> Exit {
    let Some(plan) = loaded.plan_offline(printer) else {
        return Exit::Failed;
    };
    let stale = stale(loaded.lock(), &plan);
    if !stale.is_empty() {
        return stale_text(printer, loaded, &plan, &stale);
    }
    printer.say("selu.lock fits the directory.");
    if more {
        return Exit::Done;
    }
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
    /// What images are taken, besides the manifests.
    pins: Option<&'a Lock>,
    engine: &'a dyn Engine,
    secrets: &'a Secrets,
    ready_timeout: Duration,
    /// Of the engine's machine.
    boot: Option<String>,
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
            pins,
            engine,
            secrets,
            ready_timeout,
            ref boot,
        } = *self;
        let fresh = BTreeSet::new();
        let plan = || loaded.plan_from(printer, engine.view(), pins, &fresh, false);
        loaded.require_same_lock()?;
        let Some(mut planned) = plan().await? else {
            return Ok(None);
        };
        let Planned {
            plan: now,
            observed,
            ..
        } = &planned;
        leaks::ensure(printer, engine, boot.as_deref(), now, observed).await?;
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
            match plan().await? {
                Some(again) => planned = again,
                None => return Ok(None),
            }
        }
        let Planned { observed, plan, .. } = planned;
        let masked = apply::without_residents(&observed);
        let Some(alone) = loaded.resolved(printer, pins, Some(&masked), false) else {
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
