//! `selu plan`: what apply would do.

use camino::Utf8Path;
use selu_compiler::graph::Graph;
use selu_compiler::lock::{Stale, stale};
use selu_compiler::plan::saved::{Basis, PlanDocument};
use selu_compiler::report;
use selu_compiler::report::page::{Facts, page};
use selu_compiler::review::Grade;
use selu_runtime::discover::Journal;

use crate::args::{Cli, Format, PlanArgs, PlanFailOn};
use crate::cmd::apply::warn_of_missing;
use crate::exit::Exit;
use crate::outcome::counted;
use crate::printer::Printer;
use crate::project::load;
use crate::saved::{self, Around};
use crate::targets::{self, meant};
use crate::templates;

pub(crate) async fn run(cli: &Cli, printer: &Printer, args: &PlanArgs) -> anyhow::Result<Exit> {
    let Some(loaded) = load(cli, printer, &args.directory.dir)? else {
        return Ok(Exit::Failed);
    };
    let targets = targets::choose(&loaded.project, &args.chosen.targets)?;
    if args.offline {
        let Some(plan) = loaded.plan_offline(printer) else {
            return Ok(Exit::Failed);
        };
        let document = targets::offline(&plan, &targets, loaded.lock());
        show_with(printer, &document, args.template.as_deref())?;
        return Ok(judged(args, &document));
    }
    // Whatever somebody set on a live object, a known value is not shown.
    let secrets = loaded.secrets(cli, printer)?;
    let engine = loaded.engine(cli).await?;
    let Some(planned) = loaded.plan(printer, engine.view(), true).await? else {
        return Ok(Exit::Failed);
    };
    let planned = planned.only(&targets);
    let document = planned.document(&targets, secrets.redactor(), loaded.lock());
    show_with(printer, &document, args.template.as_deref())?;
    let widens = judged(args, &document) == Exit::Differs;
    warn_of_missing(printer, &planned.plan, &targets, &secrets);
    let mut due = loaded.due(&planned.plan, &Journal::load(&loaded.root)?);
    due.retain(|key| meant(&targets, key));
    for key in &due {
        printer.say(&format!("{key}: apply will ask it which tools it has"));
    }
    loaded.tell_waiting(printer)?;
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
    Ok(if widens || args.detailed_exitcode && !nothing {
        Exit::Differs
    } else {
        Exit::Done
    })
}

/// What `--fail-on` makes of it.
fn judged(args: &PlanArgs, document: &PlanDocument) -> Exit {
    let review = document.review.as_ref();
    let widens = review.is_some_and(|review| review.count(Grade::Widening) > 0);
    match args.fail_on {
        Some(PlanFailOn::Widening) if widens => Exit::Differs,
        Some(PlanFailOn::Widening) | None => Exit::Done,
    }
}

/// The plan as data.
pub(crate) fn show(printer: &Printer, document: &PlanDocument) -> anyhow::Result<()> {
    show_with(printer, document, None)
}

/// The same, by a template of the user's own.
fn show_with(
    printer: &Printer,
    document: &PlanDocument,
    template: Option<&Utf8Path>,
) -> anyhow::Result<()> {
    if printer.is_json() && template.is_none() {
        printer.json(&report::plan_json(document)?);
        return Ok(());
    }
    let plan = document.chosen();
    let changes = document.changes.as_ref();
    if template.is_some() || printer.format() == Format::Html {
        let mut graph = Graph::of_plan(&plan);
        if let Some(review) = &document.review {
            graph.mark(review);
        }
        let facts = Facts {
            plan: Some((&plan, changes)),
            review: document.review.as_ref(),
            graph: &graph,
        };
        printer.data(&match template {
            Some(path) => templates::custom(&facts, printer.format(), &templates::read(path)?)?,
            None => page(&facts)?,
        });
        return Ok(());
    }
    let text = report::plan_text(&plan, changes, document.review.as_ref())?;
    match (printer.format(), &document.review) {
        (Format::Markdown, Some(review)) => {
            let summary = changes.map_or(
                "Offline: compared with selu.lock only.".to_owned(),
                report::summary,
            );
            printer.data(&report::plan_markdown(&summary, &text, review)?);
        }
        _ => printer.data(&text),
    }
    Ok(())
}
