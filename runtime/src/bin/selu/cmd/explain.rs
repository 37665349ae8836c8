//! `selu explain`: a code's cause, cure and example.

use selu_compiler::diag::{Code, codes};
use serde_json::json;

use crate::args::ExplainArgs;
use crate::exit::{Ending, Exit};
use crate::printer::{FORMAT_VERSION, Printer};

pub(crate) fn run(printer: &Printer, args: &ExplainArgs) -> anyhow::Result<Exit> {
    let Some(code) = codes::find(&args.code) else {
        let meant = match codes::nearest(&args.code) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "docs/diagnostics.md lists all of them".to_owned(),
        };
        return Err(Ending::usage(format!("there is no code `{}`; {meant}", args.code)).into());
    };
    let Code {
        id,
        name,
        severity,
        rules,
        cause,
        cure,
        example,
    } = code;
    printer.data(&codes::explain(code));
    printer.json(&json!({
        "format_version": FORMAT_VERSION,
        "code": id,
        "name": name,
        "severity": severity,
        "rules": rules,
        "cause": cause,
        "cure": cure,
        "example": example,
        "exit_code": Exit::Done.code(),
    }));
    Ok(Exit::Done)
}
