//! `selu show`: any plan in a file, stale or foreign.

use anyhow::Context;
use selu_compiler::plan::FORMAT_VERSION;
use selu_compiler::plan::saved::PlanDocument;
use selu_compiler::report;
use serde_json::Value;

use crate::args::ShowArgs;
use crate::exit::Exit;
use crate::hints::Hinted;
use crate::printer::Printer;
use crate::saved;

pub(crate) fn run(printer: &Printer, args: &ShowArgs) -> anyhow::Result<Exit> {
    let file = &args.file;
    let text = saved::text(file)?;
    let value: Value =
        serde_json::from_str(&text).with_context(|| format!("{file} is not a plan"))?;
    let version = value.get("format_version").and_then(Value::as_str);
    let (Some(version), Some(_)) = (version, value.get("plan")) else {
        let message = format!("{file} is not a plan");
        let hint =
            "a plan is written by `selu plan --out FILE` or printed by `selu plan --format json`";
        return Err(Hinted::new(message, hint).into());
    };
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(version) != major(FORMAT_VERSION) {
        let message = format!("{file} has format {version}, and this selu shows {FORMAT_VERSION}");
        return Err(Hinted::new(message, "show it with the selu that wrote it").into());
    }
    if printer.is_json() {
        // As it is written: nothing that this version does not know is lost.
        printer.json(&value);
        return Ok(Exit::Done);
    }
    let document: PlanDocument =
        serde_json::from_value(value.clone()).with_context(|| format!("{file} is not a plan"))?;
    printer.data(&report::plan_text(
        &document.chosen(),
        document.changes.as_ref(),
        document.review.as_ref(),
    )?);
    if let Some(id) = value.get("plan_id").and_then(Value::as_str) {
        printer.say(&format!(
            "plan {}; `selu apply --plan` refuses it if what it was made from has changed",
            crate::printer::shown(id)
        ));
    }
    Ok(Exit::Done)
}
