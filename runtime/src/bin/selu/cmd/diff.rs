//! `selu diff`: what a change means for the rights of tools, between any two states of a project.

use std::collections::BTreeMap;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::check;
use selu_compiler::diag::Diagnostic;
use selu_compiler::graph::Graph;
use selu_compiler::lock::Lock;
use selu_compiler::plan::ImageKind;
use selu_compiler::plan::saved::PlanDocument;
use selu_compiler::report;
use selu_compiler::report::page::{Facts, page};
use selu_compiler::review::{Finding, Grade, ImageSource, Review, Snapshot};
use selu_runtime::git::{self, FileAt, Tree};

use crate::args::{Cli, DiffArgs, FailOn, Format};
use crate::cmd::check::from_here;
use crate::exit::{Ending, Exit};
use crate::hints::Hinted;
use crate::printer::Printer;
use crate::{project, saved, templates};

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

pub(crate) async fn run(cli: &Cli, printer: &Printer, args: &DiffArgs) -> anyhow::Result<Exit> {
    let (from, to) = sides(args)?;
    let directory = &args.dir;
    let (old, new) = match (&from, &to) {
        // Large locks take long to read, and each by itself.
        (Side::File(from), Side::File(to)) => {
            let (old, new) = std::thread::scope(|scope| {
                let old = scope.spawn(|| file(from));
                let new = file(to);
                (old.join(), new)
            });
            let old = old.map_err(|_| anyhow::anyhow!("{from} could not be read"))?;
            (told(printer, old?), told(printer, new?))
        }
        _ => {
            let old = snapshot(cli, printer, directory, &from)?;
            let old = told(printer, old);
            let new = snapshot(cli, printer, directory, &to)?;
            (old, told(printer, new))
        }
    };
    let (Some(old), Some(mut new)) = (old, new) else {
        return Ok(Exit::Failed);
    };
    if args.images {
        look_at_images(cli, &old, &mut new).await?;
    }
    let review = Review::new(&old, &new);
    match (printer.format(), &args.template) {
        (form, Some(path)) => {
            let template = template(directory, &from, path)?;
            let graph = changed(&new, &review);
            printer.data(&templates::custom(
                &facts(&review, &graph),
                form,
                &template,
            )?);
        }
        (Format::Json, None) => printer.json(&serde_json::to_value(&review)?),
        (Format::Sarif, None) => {
            let base = match &to {
                Side::Directory(path) => path,
                Side::File(_) | Side::Git(_) => directory,
            };
            let log = report::review_sarif(&review, &new, &from_here(base));
            printer.data(&format!("{}\n", report::json_text(&log)));
        }
        (Format::Markdown, None) => printer.data(&report::review_markdown(&review)?),
        (Format::Html, None) => {
            let graph = changed(&new, &review);
            printer.data(&page(&facts(&review, &graph))?);
        }
        // The others never get here.
        (Format::Text | Format::Github | Format::Svg | Format::Dot | Format::Mermaid, None) => {
            printer.data(&report::review_text(&review)?);
        }
    }
    if old.settings.is_none() && args.fail_on == Some(FailOn::Review) {
        printer.say(
            "the older state has no selu.toml, so everything that widens needs a person; compare with a revision or a \
             directory to have its [review]",
        );
    }
    let open = |finding: &Finding| finding.grade == Grade::Widening && finding.is_open();
    let widens = review.findings.iter().any(open);
    Ok(match args.fail_on {
        Some(FailOn::Widening) if widens => Exit::Differs,
        Some(FailOn::Review) if review.open().next().is_some() => Exit::Differs,
        Some(FailOn::Any) if !review.findings.is_empty() => Exit::Differs,
        _ => Exit::Done,
    })
}

/// What changed capabilities use, drawn.
fn changed(new: &Snapshot, review: &Review) -> Graph {
    let mut graph = Graph::of_snapshot(new);
    graph.mark(review);
    graph.marked_only()
}

fn facts<'a>(review: &'a Review, graph: &'a Graph) -> Facts<'a> {
    Facts {
        plan: None,
        review: Some(review),
        graph,
    }
}

/// The template, from the older state where that is a revision of the repository that the file is in: a change does not
/// write its own report (S14).
fn template(directory: &Utf8Path, from: &Side, path: &Utf8Path) -> anyhow::Result<String> {
    let Side::Git(Tree::Revision(name)) = from else {
        return templates::read(path);
    };
    match git::file_at(directory, name, path)? {
        FileAt::Outside => templates::read(path),
        FileAt::Found(text) => Ok(text),
        FileAt::Missing => {
            let message = format!("{name} has no {path}");
            let hint = "templates are taken from the older state, so that no change writes its own report; commit it there \
                        first, or name a file outside the repository";
            Err(Hinted::new(message, hint).into())
        }
    }
}

/// Asks the engine what the images that differ say of themselves. What it has not is not asked of anybody else: a change
/// that is reviewed pulls nothing (S14).
async fn look_at_images(cli: &Cli, old: &Snapshot, new: &mut Snapshot) -> anyhow::Result<()> {
    let settings = old.settings.clone().unwrap_or_default();
    let engine = project::engine(cli, &settings).await?;
    let mut sources = BTreeMap::new();
    for (key, instance) in &new.instances {
        let before = old.instances.get(key);
        if before.is_some_and(|before| before.image == instance.image) {
            continue;
        }
        let image = &instance.image;
        let reference = match (&image.digest, image.kind) {
            (Some(digest), ImageKind::Registry) => {
                let (written, _) = check::image::image(&image.written);
                written.map(|written| written.at(digest))
            }
            (Some(id), ImageKind::Local) => Some(id.clone()),
            (None, _) | (_, ImageKind::Unknown) => None,
        };
        let Some(reference) = reference else {
            continue;
        };
        if let Some(facts) = engine.view().image(&reference).await? {
            sources.insert(key.clone(), ImageSource::of(&facts.labels));
        }
    }
    new.sources.extend(sources);
    Ok(())
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

/// A state, or why a lock is none; `None` once it was reported why there is none.
type Read = Option<Result<Snapshot, Box<Diagnostic>>>;

fn told(printer: &Printer, read: Read) -> Option<Snapshot> {
    match read? {
        Ok(snapshot) => Some(snapshot),
        Err(fault) => {
            project::refuse_without_sources(printer, &[*fault]);
            None
        }
    }
}

fn snapshot(
    cli: &Cli,
    printer: &Printer,
    directory: &Utf8Path,
    side: &Side,
) -> anyhow::Result<Read> {
    match side {
        Side::Directory(path) => Ok(compiled(cli, printer, path)?.map(Ok)),
        Side::File(path) => file(path),
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
                return Ok(Some(Ok(Snapshot::empty())));
            }
            let found = compiled(cli, printer, &root)?;
            if found.is_none() {
                printer.say(&format!(
                    "{name} does not compile, so nothing can be compared"
                ));
            }
            Ok(found.map(Ok))
        }
    }
}

fn compiled(cli: &Cli, printer: &Printer, path: &Utf8Path) -> anyhow::Result<Option<Snapshot>> {
    let Some(mut loaded) = project::load_silently(cli, printer, path)? else {
        return Ok(None);
    };
    // Nothing is applied, so nobody need own it.
    let project = loaded.project.clone();
    loaded
        .project
        .name
        .get_or_insert_with(|| "unnamed".to_owned());
    let plan = loaded.resolved(printer, loaded.lock(), None, false);
    Ok(plan.map(|plan| Snapshot::of_plan(&plan, loaded.lock()).with_project(&project)))
}

/// A lock, or a plan in one of its two forms.
fn file(path: &Utf8Path) -> anyhow::Result<Read> {
    let text = saved::text(path)?;
    if text.trim_start().starts_with('{') {
        let document: PlanDocument = serde_json::from_str(&text)
            .with_context(|| format!("{path} is neither a plan nor a lock"))?;
        return Ok(Some(Ok(Snapshot::of_plan(&document.chosen(), None))));
    }
    let lock = Lock::read(&text).map_err(|error| Box::new(error.diagnostic(path)));
    Ok(Some(lock.map(Snapshot::from)))
}
