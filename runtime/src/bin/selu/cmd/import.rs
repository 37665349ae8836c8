//! `selu import`: entries of catalogues as capabilities.

use selu_compiler::report::escape;
use selu_runtime::scaffold::{Catalogue, Imported, import};
use serde_json::json;

use super::new::listed;
use crate::args::{ImportArgs, Shape};
use crate::exit::Exit;
use crate::outcome::counted;
use crate::printer::{FORMAT_VERSION, Printer};

pub(crate) fn run(printer: &Printer, args: &ImportArgs) -> anyhow::Result<Exit> {
    let catalogue = match args.shape {
        Shape::McpJson => Catalogue::McpJson,
        Shape::DockerMcp => Catalogue::DockerMcp,
        Shape::Toolhive => Catalogue::Toolhive,
    };
    let (mut written, mut refused, mut rows) = (Vec::new(), 0, Vec::new());
    let mut fail = |name: &str, reason: &str| {
        // Both may be of the file: on one line, and nothing that a terminal or CI obeys.
        let (shown, why) = (escape(name), escape(reason));
        printer.warn(&format!("{shown}: not imported: {why}"));
        refused += 1;
        json!({ "name": name, "refused": reason })
    };
    for file in &args.files {
        let entries = match std::fs::read_to_string(file) {
            Ok(text) => import(catalogue, file, &text),
            Err(error) => Err(error.to_string()),
        };
        let entries = match entries {
            Ok(entries) => entries,
            Err(reason) => {
                rows.push(fail(file.as_str(), &reason));
                continue;
            }
        };
        for entry in entries {
            let Imported { wrapper, notes } = match entry {
                Ok(imported) => imported,
                Err(entry) => {
                    rows.push(fail(&entry.name, &entry.reason));
                    continue;
                }
            };
            match wrapper.write(&args.dir) {
                Ok(files) => {
                    for note in &notes {
                        printer.say(&format!("{}: {}", wrapper.id, escape(note)));
                    }
                    rows.push(json!({ "name": wrapper.title, "id": wrapper.id, "written": files, "notes": notes }));
                    written.extend(files);
                }
                Err(error) => rows.push(fail(&wrapper.id, &error.to_string())),
            }
        }
    }
    let done = rows.len() - refused;
    printer.data(&listed(&written));
    printer.json(&json!({ "format_version": FORMAT_VERSION, "entries": rows }));
    printer.say(&format!(
        "{} imported, {refused} not; `selu check` says what is left to be done",
        counted(done, "server")
    ));
    Ok(match (done, refused) {
        (_, 0) => Exit::Done,
        (0, _) => Exit::Failed,
        _ => Exit::Partial,
    })
}
