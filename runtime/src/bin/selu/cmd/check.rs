//! `selu check`: compile and report.

use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::check::{Checked, check};
use selu_compiler::diag::{levels, render};
use selu_compiler::report;
use selu_compiler::source::SourceSet;

use crate::args::{CheckArgs, Deny, Format};
use crate::exit::{Ending, Exit};
use crate::printer::Printer;
use crate::project::{has_errors, read};
use crate::watch::Watch;

pub(crate) async fn run(printer: &Printer, args: &CheckArgs) -> anyhow::Result<Exit> {
    if args.watch {
        return watch(printer, args).await;
    }
    let sources = read(&args.directory.dir)?;
    let mut checked = check(&sources);
    deny(args, &mut checked);
    let exit = if has_errors(&checked.diagnostics) {
        Exit::Failed
    } else {
        Exit::Done
    };
    show(printer, &checked, &sources, exit);
    Ok(exit)
}

fn deny(args: &CheckArgs, checked: &mut Checked) {
    match args.deny {
        None => {}
        Some(Deny::Warnings) => levels::deny_warnings(&mut checked.diagnostics),
    }
}

fn show(printer: &Printer, checked: &Checked, sources: &SourceSet, exit: Exit) {
    let found = &checked.diagnostics;
    match printer.format() {
        // The others never get here.
        Format::Text
        | Format::Markdown
        | Format::Html
        | Format::Svg
        | Format::Dot
        | Format::Mermaid => {
            let look = look(printer, sources);
            printer.data(&render::text_for(found, sources, &look));
            printer.say(&extent(sources));
            explain(printer, checked);
        }
        Format::Json => {
            let mut value = render::json(found);
            if let Some(object) = value.as_object_mut() {
                object.insert("exit_code".to_owned(), exit.code().into());
            }
            printer.json(&value);
        }
        Format::Sarif => {
            let log = render::sarif(found, &from_here(&sources.root));
            printer.data(&format!("{}\n", report::json_text(&log)));
        }
        Format::Github => {
            printer.data(&render::github(found, &from_here(&sources.root)));
            printer.say(&render::count(found).to_string());
        }
    }
}

fn look(printer: &Printer, sources: &SourceSet) -> render::Look {
    render::Look {
        color: printer.color_out(),
        width: printer.width_out(),
        base: sources.root.clone(),
    }
}

/// How much was checked: that nothing was found means little where nothing was looked at.
fn extent(sources: &SourceSet) -> String {
    let own: usize = sources
        .agents
        .iter()
        .map(|agent| agent.capabilities.len())
        .sum();
    let capabilities = match own + sources.capabilities.len() {
        1 => "1 capability".to_owned(),
        many => format!("{many} capabilities"),
    };
    match sources.agents.len() {
        0 => format!("checked {capabilities}"),
        1 => format!("checked 1 agent and {capabilities}"),
        many => format!("checked {many} agents and {capabilities}"),
    }
}

/// Where more is to be read about the first finding that has a say in the outcome.
fn explain(printer: &Printer, checked: &Checked) {
    let worst = checked
        .diagnostics
        .iter()
        .rev()
        .max_by_key(|one| one.severity);
    if let Some(worst) = worst {
        printer.hint(&format!(
            "`selu explain {}` says why and what to do; it takes any code",
            worst.code.id
        ));
    }
}

/// A directory as services outside see it: they know paths from where they run, the top of the repository.
pub(crate) fn from_here(root: &Utf8Path) -> Utf8PathBuf {
    std::env::current_dir()
        .ok()
        .and_then(|here| {
            root.strip_prefix(Utf8PathBuf::from_path_buf(here).ok()?)
                .ok()
        })
        .unwrap_or(root)
        .to_owned()
}

async fn watch(printer: &Printer, args: &CheckArgs) -> anyhow::Result<Exit> {
    if printer.format() != Format::Text {
        return Err(Ending::usage("--watch shows text; leave --format away").into());
    }
    // A directory without a project is refused before it is watched.
    read(&args.directory.dir)?;
    let mut began = Instant::now();
    let mut watch = Watch::new(&args.directory.dir);
    let mut texts = render::Texts::default();
    let mut shown = String::new();
    loop {
        let text = watch.look().map(|(mut checked, sources)| {
            deny(args, &mut checked);
            texts.again(&checked.diagnostics, sources, &look(printer, sources))
        });
        // Files are read twice after a change; the second time mostly shows nothing new.
        if let Some(text) = text.filter(|text| *text != shown) {
            printer.clear_screen();
            printer.data(&text);
            let took = began.elapsed().as_millis();
            let (fresh, all) = watch.looked_at();
            printer.say(&format!(
                "checked {fresh} of {all} capabilities in {took} ms; waiting for changes"
            ));
            shown = text;
        }
        watch.pause().await;
        began = Instant::now();
    }
}
