//! `selu package`: the archive that Selu's own installer takes.

use camino::Utf8PathBuf;
use selu_compiler::package::{Package, PackageError, package};
use selu_compiler::plan::hash::sha256_hex;
use selu_runtime::{archive, lockfile};
use serde_json::json;

use crate::args::{Cli, PackageArgs};
use crate::exit::Exit;
use crate::hints::Hinted;
use crate::printer::{Printer, shown};
use crate::project::{document, load_planned};

pub(crate) fn run(cli: &Cli, printer: &Printer, args: &PackageArgs) -> anyhow::Result<Exit> {
    let Some((loaded, plan)) = load_planned(cli, printer, &args.dir)? else {
        return Ok(Exit::Failed);
    };
    let packaged = package(
        &loaded.sources,
        &loaded.project,
        &plan,
        loaded.lock(),
        &args.agent,
    );
    let Package {
        files,
        mut entry,
        left_behind,
    } = packaged.map_err(hinted)?;
    for left in &left_behind {
        printer.warn(&format!(
            "selu.toml sets the {}, which no archive has: whoever installs it decides anew",
            shown(left)
        ));
    }
    // An installer takes away the one folder that all files share. Without one it would take a lone agent.yaml for it.
    let bytes = archive::tar_gz(&entry.id, &files)?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => Utf8PathBuf::from(format!("{}.tar.gz", entry.id)),
    };
    lockfile::write_public(&out, &bytes).map_err(|error| {
        Hinted::new(
            format!("{out} cannot be written: {error}"),
            "name another file with --out",
        )
    })?;
    entry.version.clone_from(&args.release);
    entry.author.clone_from(&args.author);
    entry.archive_url.clone_from(&args.url);
    entry.archive_sha256 = Some(sha256_hex(&bytes));
    printer.say(&format!(
        "{out} written: {} files, {} bytes",
        files.len(),
        bytes.len()
    ));
    if entry.version.is_none() || entry.archive_url.is_none() {
        printer.hint("a catalogue's entry needs --release VERSION and --url URL, too");
    }
    let entry = serde_json::to_value(&entry)?;
    printer.data(&format!("{}\n", selu_compiler::report::json_text(&entry)));
    let mut document = document(&plan.project);
    document.insert("archive".to_owned(), out.as_str().into());
    document.insert("files".to_owned(), json!(files.keys().collect::<Vec<_>>()));
    document.insert("entry".to_owned(), entry);
    document.insert("left_behind".to_owned(), json!(left_behind));
    document.insert("exit_code".to_owned(), Exit::Done.code().into());
    printer.json(&document.into());
    Ok(Exit::Done)
}

/// With what to do about it.
fn hinted(error: PackageError) -> anyhow::Error {
    let hint = match &error {
        PackageError::NoAgent { .. } => "`selu graph --format dot` shows the agents of the project",
        PackageError::Stale(_) => "`selu lock` pins the images and writes selu.lock",
        PackageError::Local(_) => {
            "push it to a registry (`docker tag`, `docker push`), name it there in the manifest's `image`, and run \
             `selu lock`"
        }
        PackageError::Image { .. } => {
            "write the image in plain words on the line of its key, without an alias"
        }
        PackageError::Differs { .. } | PackageError::Broken(_) => {
            "this is not meant to happen: please report it with the manifest"
        }
    };
    Hinted::new(error.to_string(), hint).into()
}
