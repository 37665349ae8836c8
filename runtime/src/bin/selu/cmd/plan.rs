//! `selu plan`: what apply would do.

use selu_compiler::lock::{Stale, stale};
use selu_compiler::plan::saved::{Basis, PlanDocument};
use selu_compiler::report;
use selu_runtime::discover::Journal;

use crate::args::{Cli, PlanArgs};
use crate::cmd::apply::warn_of_missing;
use crate::exit::Exit;
use crate::outcome::counted;
use crate::printer::Printer;
use crate::project::load;
use crate::saved::{self, Around};
use crate::targets::{self, meant};

pub(crate) async fn run(cli: &Cli, printer: &Printer, args: &PlanArgs) -> anyhow::Result<Exit> {
    let Some(loaded) = load(cli, printer, &args.directory)? else {
        return Ok(Exit::Failed);
    };
    let targets = targets::choose(&loaded.project, &args.chosen.targets)?;
    if args.offline {
        let Some(plan) = loaded.plan_offline(printer) else {
            return Ok(Exit::Failed);
        };
        show(printer, &targets::offline(&plan, &targets))?;
        return Ok(Exit::Done);
    }
    // Whatever somebody set on a live object, a known value is not shown.
    let secrets = loaded.secrets(cli, printer)?;
    let engine = loaded.engine(cli).await?;
    let Some(planned) = loaded.plan(printer, engine.view(), true).await? else {
        return Ok(Exit::Failed);
    };
    let planned = planned.only(&targets);
    let document = planned.document(&targets, secrets.redactor());
    show(printer, &document)?;
    warn_of_missing(printer, &planned.plan, &targets, &secrets);
    let mut due = loaded.due(&planned.plan, &Journal::load(&loaded.root)?);
    due.retain(|key| meant(&targets, key));
    for key in &due {
        printer.say(&format!("{key}: apply will ask it which tools it has"));
    }
    let mut stale = stale(loaded.lock(), &planned.plan);
    stale.retain(|one| one.instance().is_none_or(|key| meant(&targets, key)));
    match stale.as_slice() {
        [] => {}
        [Stale::NoLock] => printer.say("selu.lock: there is none yet, apply will write it"),
        stale => printer.say(&format!(
            "selu.lock: {}, apply will write it anew",
            counted(stale.len(), "difference")
        )),
    }
    if let Some(path) = &args.out {
        let around = Around {
            basis: Basis::of(loaded.lock(), &planned.observed),
            settings: &loaded.project.settings,
            due: &due,
        };
        saved::write(path, document, around)?;
        printer.say(&format!(
            "{path} written; `selu apply --plan {path}` does exactly this, once, or refuses"
        ));
    }
    let nothing = planned.changes.is_empty() && due.is_empty() && stale.is_empty();
    Ok(if args.detailed_exitcode && !nothing {
        Exit::Differs
    } else {
        Exit::Done
    })
}

/// The plan as data.
pub(crate) fn show(printer: &Printer, document: &PlanDocument) -> anyhow::Result<()> {
    if printer.is_json() {
        printer.json(&report::plan_json(document)?);
    } else {
        let plan = document.chosen();
        printer.data(&report::plan_text(&plan, document.changes.as_ref())?);
    }
    Ok(())
}
