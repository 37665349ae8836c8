//! `selu git install`: what git is told about selu.lock.

use camino::Utf8Path;
use selu_runtime::git::setup::{self, Done};
use serde_json::{Value, json};

use crate::args::{GitAction, GitArgs};
use crate::exit::Exit;
use crate::printer::{FORMAT_VERSION, Printer, shown};

pub(crate) fn run(printer: &Printer, args: &GitArgs) -> anyhow::Result<Exit> {
    let GitAction::Install { directory, remove } = &args.action;
    let root = &directory.dir;
    let done = if *remove {
        setup::remove(root)?
    } else {
        setup::install(root, &program()?)?
    };
    for Done {
        what,
        value,
        changed,
    } in &done
    {
        let what = shown(what);
        printer.data(&match (value, changed) {
            (Some(value), true) => format!("{what}: {} (set)\n", shown(value)),
            (Some(value), false) => format!("{what}: {} (was so already)\n", shown(value)),
            (None, true) => format!("{what}: removed\n"),
            (None, false) => format!("{what}: was not set\n"),
        });
    }
    if !remove {
        if let Some(other) = setup::overruled(root)? {
            printer.warn(&format!(
                "other attributes overrule the line in .gitattributes: {}",
                shown(&other)
            ));
        }
        printer.hint(
            "commit .gitattributes; the settings are this clone's own, so that every clone needs `selu git install` once",
        );
    }
    let changes: Vec<Value> = done
        .iter()
        .map(|one| json!({ "what": one.what, "value": one.value, "changed": one.changed }))
        .collect();
    printer.json(&json!({
        "format_version": FORMAT_VERSION,
        "settings": changes,
        "exit_code": Exit::Done.code(),
    }));
    Ok(Exit::Done)
}

/// This program as git's shell finds it: by name if that leads here, else by its path.
fn program() -> anyhow::Result<String> {
    let here = std::env::current_exe()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::split_paths(&path)
        .map(|folder| folder.join("selu"))
        .find(|file| file.is_file());
    let same = |file: &std::path::Path| match (file.canonicalize(), here.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    if named.is_some_and(|file| same(&file)) {
        return Ok("selu".to_owned());
    }
    let here = here
        .to_str()
        .ok_or_else(|| anyhow::anyhow!("the path of this program is not UTF-8"))?;
    Ok(quoted(Utf8Path::new(here)))
}

/// As a POSIX shell takes it for one word.
fn quoted(path: &Utf8Path) -> String {
    format!("'{}'", path.as_str().replace('\'', "'\\''"))
}
