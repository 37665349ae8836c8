//! `selu diff`: what a change means for the rights of tools, between any two states of a project.

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::lock::Lock;
use selu_compiler::plan::saved::PlanDocument;
use selu_compiler::report;
use selu_compiler::review::{Grade, Review, Snapshot};
use selu_runtime::git::{self, Tree};
use selu_runtime::lockfile;

use crate::args::{Cli, DiffArgs, Directory, FailOn};
use crate::exit::{Ending, Exit};
use crate::hints::Hinted;
use crate::printer::Printer;
use crate::{project, saved};

/// One side of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Side {
    /// The project as it lies in a directory.
    Directory(Utf8PathBuf),
    /// A lock or a plan.
    File(Utf8PathBuf),
    /// The project as git has it.
    Git(Tree),
}

pub(crate) fn run(cli: &Cli, printer: &Printer, args: &DiffArgs) -> anyhow::Result<Exit> {
    let (old, new) = sides(args)?;
    let directory = &args.dir;
    let (Some(old), Some(new)) = (
        snapshot(cli, printer, directory, &old)?,
        snapshot(cli, printer, directory, &new)?,
    ) else {
        return Ok(Exit::Failed);
    };
    let review = Review::new(&old, &new);
    if printer.is_json() {
        printer.json(&serde_json::to_value(&review)?);
    } else if args.markdown {
        printer.data(&report::review_markdown(&review)?);
    } else {
        printer.data(&report::review_text(&review)?);
    }
    let widens = review.count(Grade::Widening) > 0;
    Ok(match args.fail_on {
        Some(FailOn::Widening) if widens => Exit::Differs,
        Some(FailOn::Any) if !review.findings.is_empty() => Exit::Differs,
        _ => Exit::Done,
    })
}

/// What the arguments ask for: `FROM..TO`, `FROM TO`, `FROM` against the directory, or HEAD against it.
fn sides(args: &DiffArgs) -> anyhow::Result<(Side, Side)> {
    let here = || Side::Directory(args.dir.clone());
    let head = || Side::Git(Tree::Revision("HEAD".to_owned()));
    match (args.staged, args.states.as_slice()) {
        (true, []) => Ok((head(), Side::Git(Tree::Staged))),
        (true, [from]) => Ok((side(&args.dir, from)?, Side::Git(Tree::Staged))),
        (true, _) => Err(Ending::usage("--staged takes at most one state to compare with").into()),
        (false, []) => Ok((head(), here())),
        (false, [range]) if range.contains("..") && !Utf8Path::new(range).exists() => {
            if range.contains("...") {
                let message = format!(
                    "{range}: selu compares two states; for what a branch changed since it began say `selu diff \
                     $(git merge-base A B)..B`"
                );
                return Err(Ending::usage(message).into());
            }
            let (from, to) = range.split_once("..").unwrap_or((range, ""));
            let revision = |name: &str| {
                let name = if name.is_empty() { "HEAD" } else { name };
                revision(&args.dir, name)
            };
            Ok((revision(from)?, revision(to)?))
        }
        (false, [from]) => Ok((side(&args.dir, from)?, here())),
        (false, [from, to]) => Ok((side(&args.dir, from)?, side(&args.dir, to)?)),
        (false, _) => Err(Ending::usage("two states are compared, not more").into()),
    }
}

/// A path that exists, or a revision; never a guess where it is both.
fn side(directory: &Utf8Path, name: &str) -> anyhow::Result<Side> {
    let path = Utf8Path::new(name);
    let exists = path.exists();
    // What is written as a path is none of git's names.
    let is_path = name.contains('/') && name.starts_with(['.', '/']);
    if !is_path && git::knows(directory, name).unwrap_or(false) {
        if exists {
            let message = format!("{name} is a revision and a file");
            let hint = format!("write ./{name} for the file, or refs/heads/{name} for a branch");
            return Err(Hinted::new(message, hint).into());
        }
        return Ok(Side::Git(Tree::Revision(name.to_owned())));
    }
    if !exists {
        let message =
            format!("{name} is neither a file or directory nor a revision that git knows");
        let hint = "name a directory, a selu.lock, a plan, or a revision such as main or HEAD~1";
        return Err(Hinted::new(message, hint).into());
    }
    Ok(if path.is_dir() {
        Side::Directory(path.to_owned())
    } else {
        Side::File(path.to_owned())
    })
}

fn revision(directory: &Utf8Path, name: &str) -> anyhow::Result<Side> {
    if git::knows(directory, name)? {
        return Ok(Side::Git(Tree::Revision(name.to_owned())));
    }
    let message = format!("{name} is no revision that git knows");
    Err(Hinted::new(message, "`git log --oneline --all` lists revisions").into())
}

/// `None` once it was reported why there is none.
fn snapshot(
    cli: &Cli,
    printer: &Printer,
    directory: &Utf8Path,
    side: &Side,
) -> anyhow::Result<Option<Snapshot>> {
    match side {
        Side::Directory(path) => compiled(cli, printer, path),
        Side::File(path) => file(path).map(Some),
        Side::Git(tree) => {
            let name = match tree {
                Tree::Revision(name) => name.as_str(),
                Tree::Staged => "the staged state",
            };
            let extracted = git::extract(directory, tree)
                .with_context(|| format!("{name} cannot be read from git"))?;
            for path in &extracted.submodules {
                printer.warn(&format!(
                    "{name}: {} is a submodule, which is not compared",
                    crate::printer::shown(path)
                ));
            }
            let root = extracted.root()?;
            let empty = std::fs::read_dir(&root)?.next().is_none();
            if empty {
                // A project that was not there yet: everything is new.
                return Ok(Some(Snapshot::default()));
            }
            let found = compiled(cli, printer, &root)?;
            if found.is_none() {
                printer.say(&format!(
                    "{name} does not compile, so nothing can be compared"
                ));
            }
            Ok(found)
        }
    }
}

fn compiled(cli: &Cli, printer: &Printer, path: &Utf8Path) -> anyhow::Result<Option<Snapshot>> {
    let directory = Directory {
        dir: path.to_owned(),
    };
    let Some(loaded) = project::load_silently(cli, printer, &directory)? else {
        return Ok(None);
    };
    let plan = loaded.resolved(printer, loaded.lock(), None, false);
    Ok(plan.map(|plan| Snapshot::of_plan(&plan, loaded.lock())))
}

/// A lock, or a plan in one of its two forms.
fn file(path: &Utf8Path) -> anyhow::Result<Snapshot> {
    let text = saved::text(path)?;
    if text.trim_start().starts_with('{') {
        let document: PlanDocument = serde_json::from_str(&text)
            .with_context(|| format!("{path} is neither a plan nor a lock"))?;
        return Ok(Snapshot::of_plan(&document.chosen(), None));
    }
    let lock = Lock::read(&text).map_err(|error| {
        let (line, column) = error.position();
        let name = if path.file_name() == Some(lockfile::NAME) {
            ""
        } else {
            "as a lock, "
        };
        anyhow::anyhow!("{name}{path}:{line}:{column}: {error}")
    })?;
    Ok(Snapshot::of_lock(&lock))
}
