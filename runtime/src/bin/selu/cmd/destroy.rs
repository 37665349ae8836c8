//! `selu destroy`: remove what the project owns.

use selu_compiler::plan::spec::gateway_image;
use selu_runtime::apply::{Removal, destroy, remove_gateway_image};
use selu_runtime::stop::Stop;
use serde_json::{Value, json};

use crate::args::{Cli, DestroyArgs};
use crate::exit::{Ending, Exit};
use crate::held;
use crate::printer::Printer;
use crate::project::{document, engine, owner};

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &DestroyArgs,
) -> anyhow::Result<Exit> {
    let Some((name, settings)) = owner(cli, printer, &args.directory.dir)? else {
        return Ok(Exit::Failed);
    };
    let project = name;
    let engine = engine(cli, &settings).await?;
    let observed = engine.observe(&project, &[]).await?;
    let removal = Removal::of(&observed, args.volumes);
    let image = gateway_image(&project);
    if removal.is_empty() && engine.image(&image).await?.is_none() {
        printer.say(&format!(
            "Nothing to remove: project {project} owns nothing here."
        ));
        kept(printer, &removal);
        return Ok(finish(
            printer,
            &project,
            &removal,
            &Default::default(),
            Exit::Done,
        ));
    }
    list(printer, &removal);
    if !held::ask(args.consent, "Remove all of it?").await? {
        printer.say("Nothing was removed.");
        return Ok(finish(
            printer,
            &project,
            &removal,
            &Default::default(),
            Exit::Failed,
        ));
    }

    let timeout = args.consent.lock_timeout;
    let mut hold = held::take(engine.as_ref(), &project, &image, "destroy", timeout).await?;
    let work = async {
        // Looked at again: what went is gone, and what came was in no answer.
        let observed = engine.observe(&project, &[]).await?;
        let now = Removal::of(&observed, args.volumes);
        let appeared = now.beyond(&removal);
        if !appeared.is_empty() {
            let mut message = "these appeared since the question; nothing was removed:".to_owned();
            for name in appeared {
                message.push_str(&format!("\n  {}", crate::printer::shown(&name)));
            }
            return Err(Ending::stale(message).into());
        }
        let removal = now;
        anyhow::Ok((
            destroy(engine.as_ref(), &observed, &removal, stop).await,
            removal,
        ))
    };
    let result = held::under(&mut hold, printer, stop, work).await;
    held::release(hold, engine.as_ref(), printer).await;
    let (mut report, removal) = result?;
    if report.failed.is_empty() && !stop.requested() {
        match remove_gateway_image(engine.as_ref(), &image).await {
            Ok(true) => report.done.push(format!("image {image}")),
            Ok(false) => {}
            Err(error) => report
                .failed
                .push((format!("image {image}"), error.to_string())),
        }
    }
    for name in &report.done {
        printer.say(&format!("removed {name}"));
    }
    for (name, why) in &report.failed {
        printer.say(&format!("failed: {name}: {}", crate::printer::shown(why)));
    }
    kept(printer, &removal);
    let exit = match (
        stop.requested(),
        report.failed.is_empty(),
        report.done.is_empty(),
    ) {
        (true, ..) => Exit::Interrupted,
        (false, true, _) => Exit::Done,
        (false, false, true) => Exit::Failed,
        (false, false, false) => Exit::Partial,
    };
    Ok(finish(printer, &project, &removal, &report, exit))
}

fn list(printer: &Printer, removal: &Removal) {
    printer.say("To be removed:");
    for (kind, names) in [
        ("container", &removal.containers),
        ("network", &removal.networks),
    ] {
        for name in names {
            printer.say(&format!("  {kind} {name}"));
        }
    }
    for (name, purpose) in &removal.volumes {
        let data = match purpose.as_str() {
            "workspace" | "cache" => ", with the data in it",
            _ => "",
        };
        printer.say(&format!("  {purpose} volume {name}{data}"));
    }
    kept(printer, removal);
}

fn kept(printer: &Printer, removal: &Removal) {
    for (name, purpose) in &removal.kept_volumes {
        printer.say(&format!(
            "  kept: {purpose} volume {name} (--volumes removes it)"
        ));
    }
}

fn finish(
    printer: &Printer,
    project: &str,
    removal: &Removal,
    report: &selu_runtime::apply::Destroyed,
    exit: Exit,
) -> Exit {
    let failed: Vec<Value> = report
        .failed
        .iter()
        .map(|(name, why)| json!({ "name": name, "error": printer.clean(why) }))
        .collect();
    let kept: Vec<&String> = removal.kept_volumes.iter().map(|(name, _)| name).collect();
    let mut document = document(project);
    document.insert("removed".to_owned(), json!(report.done));
    document.insert("failed".to_owned(), failed.into());
    document.insert("not_started".to_owned(), json!(report.not_started));
    document.insert("kept_volumes".to_owned(), json!(kept));
    document.insert("exit_code".to_owned(), exit.code().into());
    printer.json(&document.into());
    exit
}
