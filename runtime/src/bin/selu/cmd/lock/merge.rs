//! `selu lock --merge-driver`, `--resolve`, `--textconv`: the lock in git's hands. None of them reads the directory: in the
//! midst of a merge it may not compile.

use camino::Utf8Path;
use selu_compiler::lock::{Clash, Lock, Side};
use selu_runtime::git::merge::{self, Driven, Settled};
use selu_runtime::lockfile::{self, LockFile, LockFileError};
use serde_json::json;

use crate::args::{Cli, LockArgs, Taken};
use crate::exit::{Ending, Exit};
use crate::printer::Printer;
use crate::project::document;

/// `None` if the arguments ask for something else.
pub(super) fn run(cli: &Cli, printer: &Printer, args: &LockArgs) -> anyhow::Result<Option<Exit>> {
    if let Some(driven) = &args.merge_driver {
        let [base, ours, theirs, size, path] = driven.as_slice() else {
            return Err(Ending::usage("--merge-driver takes five values").into());
        };
        let size = size
            .parse()
            .map_err(|_| Ending::usage(format!("--merge-driver: {size} is not a marker's size")))?;
        let files = [base, ours, theirs].map(Utf8Path::new);
        return drive(printer, files, size, path).map(Some);
    }
    if let Some(file) = &args.textconv {
        return textconv(printer, file).map(Some);
    }
    match args.resolve {
        Some(taken) => resolve(cli, printer, args, taken).map(Some),
        None => Ok(None),
    }
}

/// git takes 1 for a conflict, and everything above 128 for a crash.
fn drive(
    printer: &Printer,
    [base, ours, theirs]: [&Utf8Path; 3],
    size: usize,
    path: &str,
) -> anyhow::Result<Exit> {
    let path = crate::printer::shown(path);
    match merge::drive(base, ours, theirs, size)? {
        Driven::Merged => Ok(Exit::Done),
        Driven::Clashes(joined) => {
            say_clashes(printer, &path, &joined.clashes);
            printer.hint(
                "keep one side of each marked entry, or let `selu lock --resolve=ours` or `--resolve=theirs` do it",
            );
            Ok(Exit::Failed)
        }
        Driven::Lines(error) => {
            printer.warn(&format!(
                "{path}: merged line by line, and not to be trusted: {}",
                crate::printer::shown(&error.to_string())
            ));
            Ok(Exit::Failed)
        }
    }
}

fn say_clashes(printer: &Printer, path: &str, clashes: &[Clash]) {
    for clash in clashes {
        printer.say(&format!("{path}: {clash}"));
    }
}

/// git goes on with whatever is printed, and stops altogether on a failure: what is no lock is shown as it is.
fn textconv(printer: &Printer, file: &Utf8Path) -> anyhow::Result<Exit> {
    let text = std::fs::read_to_string(file).map_err(|source| LockFileError::Io {
        path: file.to_owned(),
        verb: "read",
        source,
    })?;
    match Lock::read(&text) {
        Ok(lock) => printer.data(&lock.flat()),
        Err(_) => printer.data(&text),
    }
    Ok(Exit::Done)
}

fn resolve(
    cli: &Cli,
    printer: &Printer,
    args: &LockArgs,
    taken: Option<Taken>,
) -> anyhow::Result<Exit> {
    let root = &args.directory.dir;
    let path = root.join(lockfile::NAME);
    let text = std::fs::read_to_string(&path).map_err(|source| LockFileError::Io {
        path: path.clone(),
        verb: "read",
        source,
    })?;
    let mut document = document(cli.global.project.as_deref().unwrap_or_default());
    let mut finish = |resolved: bool, clashes: &[Clash], kept: &[String], exit: Exit| {
        let clashes: Vec<String> = clashes.iter().map(ToString::to_string).collect();
        document.insert("resolved".to_owned(), resolved.into());
        document.insert("conflicts".to_owned(), json!(clashes));
        document.insert("kept".to_owned(), json!(kept));
        document.insert("exit_code".to_owned(), exit.code().into());
        printer.json(&std::mem::take(&mut document).into());
        exit
    };
    if Lock::read(&text).is_ok() {
        printer
            .say("selu.lock has no conflict markers; `git add` it if that is what is left to do.");
        return Ok(finish(false, &[], &[], Exit::Done));
    }
    let side = match taken {
        Some(Taken::Theirs) => Side::Theirs,
        Some(Taken::Ours) | None => Side::Ours,
    };
    let Settled { joined, kept } = merge::settle(root, &text, side)?;
    say_clashes(printer, lockfile::NAME, &joined.clashes);
    if taken.is_none() && !joined.clashes.is_empty() {
        printer.hint("say `selu lock --resolve=ours` or `--resolve=theirs`, or keep one side of each by hand");
        return Ok(finish(false, &joined.clashes, &kept, Exit::Failed));
    }
    for key in &kept {
        printer.warn(&format!(
            "{key}: kept, although one side has no such entry; `selu lock` drops it if the directory has no such capability"
        ));
    }
    if args.dry_run {
        printer.say("selu.lock would be settled.");
        return Ok(finish(false, &joined.clashes, &kept, Exit::Done));
    }
    LockFile::settle(root, &text, &joined.lock)?;
    printer.say("selu.lock is settled; `selu lock --check` compares it with the directory, then `git add` it.");
    Ok(finish(true, &joined.clashes, &kept, Exit::Done))
}
