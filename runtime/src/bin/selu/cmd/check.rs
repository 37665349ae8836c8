//! `selu check`: compile and report.

use selu_compiler::check::check;
use selu_compiler::diag::render;

use crate::args::Directory;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::project::{has_errors, read};

pub(crate) fn run(printer: &Printer, args: &Directory) -> anyhow::Result<Exit> {
    let sources = read(&args.dir)?;
    let checked = check(&sources);
    let exit = if has_errors(&checked.diagnostics) {
        Exit::Failed
    } else {
        Exit::Done
    };
    if printer.is_json() {
        let mut value = render::json(&checked.diagnostics);
        if let Some(object) = value.as_object_mut() {
            object.insert("exit_code".to_owned(), exit.code().into());
        }
        printer.json(&value);
    } else {
        printer.data(&render::text(
            &checked.diagnostics,
            &sources,
            printer.color_out(),
        ));
    }
    Ok(exit)
}
