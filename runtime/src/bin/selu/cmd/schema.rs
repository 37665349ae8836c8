//! `selu schema`: JSON schemas for editors.

use selu_compiler::model::schemas;

use crate::args::SchemaArgs;
use crate::exit::{Ending, Exit};
use crate::printer::Printer;

pub(crate) fn run(printer: &Printer, args: &SchemaArgs) -> anyhow::Result<Exit> {
    let Some(schema) = schemas::schema(&args.name) else {
        let known = schemas::NAMES.join(", ");
        return Err(Ending::usage(format!("no schema `{}`; there are {known}", args.name)).into());
    };
    // It is JSON in either format.
    printer.data(&format!("{schema:#}\n"));
    printer.json(&schema);
    Ok(Exit::Done)
}
