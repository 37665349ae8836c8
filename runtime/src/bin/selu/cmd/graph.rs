//! `selu graph`: a picture of agents, capabilities and what they use. It asks nobody.

use selu_compiler::graph::Graph;

use crate::args::{Cli, Directory, Format};
use crate::exit::{Ending, Exit};
use crate::printer::Printer;
use crate::project::load_planned;

pub(crate) fn run(cli: &Cli, printer: &Printer, directory: &Directory) -> anyhow::Result<Exit> {
    if printer.is_json() {
        let message = "a graph has no JSON form; `selu plan --offline --format json` says the same";
        return Err(Ending::usage(message).into());
    }
    let Some((_, plan)) = load_planned(cli, printer, &directory.dir)? else {
        return Ok(Exit::Failed);
    };
    let graph = Graph::of_plan(&plan);
    printer.data(&match printer.format() {
        Format::Svg => graph.svg(),
        Format::Dot => graph.dot(),
        _ => graph.mermaid(),
    });
    printer.say(&graph.summary());
    Ok(Exit::Done)
}
