//! `selu plan`: what apply would do.

use selu_compiler::lock::{Stale, stale};
use selu_compiler::report;
use selu_runtime::discover::Journal;

use crate::args::{Cli, PlanArgs};
use crate::exit::Exit;
use crate::outcome::counted;
use crate::printer::Printer;
use crate::project::load;

pub(crate) async fn run(cli: &Cli, printer: &Printer, args: &PlanArgs) -> anyhow::Result<Exit> {
    let Some(loaded) = load(cli, printer, &args.directory)? else {
        return Ok(Exit::Failed);
    };
    if args.offline {
        let Some(plan) = loaded.plan_offline(printer) else {
            return Ok(Exit::Failed);
        };
        show(printer, &plan, None)?;
        return Ok(Exit::Done);
    }
    let engine = loaded.engine(cli).await?;
    let Some(planned) = loaded.plan(printer, engine.view(), true).await? else {
        return Ok(Exit::Failed);
    };
    show(printer, &planned.plan, Some(&planned.changes))?;
    let due = loaded.due(&planned.plan, &Journal::load(&loaded.root)?);
    for key in &due {
        printer.say(&format!("{key}: apply will ask it which tools it has"));
    }
    let stale = stale(loaded.lock(), &planned.plan);
    match stale.as_slice() {
        [] => {}
        [Stale::NoLock] => printer.say("selu.lock: there is none yet, apply will write it"),
        stale => printer.say(&format!(
            "selu.lock: {}, apply will write it anew",
            counted(stale.len(), "difference")
        )),
    }
    let nothing = planned.changes.is_empty() && due.is_empty() && stale.is_empty();
    Ok(if args.detailed_exitcode && !nothing {
        Exit::Differs
    } else {
        Exit::Done
    })
}

/// The plan as data.
pub(crate) fn show(
    printer: &Printer,
    plan: &selu_compiler::plan::Plan,
    changes: Option<&selu_compiler::diff::ChangeSet>,
) -> anyhow::Result<()> {
    if printer.is_json() {
        printer.json(&report::plan_json(plan, changes)?);
    } else {
        printer.data(&report::plan_text(plan, changes)?);
    }
    Ok(())
}
