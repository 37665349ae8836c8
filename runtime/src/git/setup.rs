//! What git is told about selu.lock: in `.gitattributes`, which is committed, and in the clone's own configuration, which
//! is not.

use std::fs;
use std::io;

use camino::Utf8Path;

use super::{GitError, bytes, git, text};
use crate::lockfile;

/// The line of `.gitattributes`.
pub const ATTRIBUTES: &str = "selu.lock merge=selu-lock diff=selu-lock";

/// One thing that was set, removed, or right already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// A file, or a key of git's configuration.
    pub what: String,
    /// What it is now; `None` if it is gone.
    pub value: Option<String>,
    /// Whether it was otherwise before.
    pub changed: bool,
}

/// Keys of the configuration and their values; `program` as a shell is told it.
fn settings(program: &str) -> [(&'static str, String); 3] {
    [
        (
            "merge.selu-lock.name",
            "selu.lock, entry by entry".to_owned(),
        ),
        (
            "merge.selu-lock.driver",
            // Of a driver git replaces `%` and a letter itself.
            format!(
                "{} lock --merge-driver %O %A %B %L %P",
                program.replace('%', "%%")
            ),
        ),
        (
            "diff.selu-lock.textconv",
            format!("{program} lock --textconv"),
        ),
    ]
}

/// Tells git how to merge and show selu.lock. A second time nothing is changed.
///
/// # Errors
/// When there is no repository, or something can't be written.
pub fn install(directory: &Utf8Path, program: &str) -> Result<Vec<Done>, GitError> {
    text(directory, &["rev-parse", "--show-toplevel"])?;
    let mut done = vec![attributes(directory, true)?];
    for (key, value) in settings(program) {
        let old = configured(directory, key)?;
        let changed = old.as_deref() != Some(value.as_str());
        if changed {
            bytes(
                directory,
                &["config", "--local", "--replace-all", key, &value],
            )?;
        }
        done.push(Done {
            what: key.to_owned(),
            value: Some(value),
            changed,
        });
    }
    Ok(done)
}

/// Takes all of it back.
///
/// # Errors
/// When there is no repository, or something can't be written.
pub fn remove(directory: &Utf8Path) -> Result<Vec<Done>, GitError> {
    text(directory, &["rev-parse", "--show-toplevel"])?;
    let mut done = vec![attributes(directory, false)?];
    for (key, _) in settings("") {
        let changed = configured(directory, key)?.is_some();
        if changed {
            bytes(directory, &["config", "--local", "--unset-all", key])?;
        }
        done.push(Done {
            what: key.to_owned(),
            value: None,
            changed,
        });
    }
    Ok(done)
}

/// What git makes of the attributes in the end: `None` if it is as installed, else what stands against it.
///
/// # Errors
/// When git can't be asked.
pub fn overruled(directory: &Utf8Path) -> Result<Option<String>, GitError> {
    let said = text(
        directory,
        &["check-attr", "merge", "diff", "--", lockfile::NAME],
    )?;
    let right = |line: &&str| line.ends_with(": selu-lock");
    let wrong: Vec<&str> = said.lines().filter(|line| !right(line)).collect();
    Ok((!wrong.is_empty()).then(|| wrong.join("; ")))
}

fn configured(directory: &Utf8Path, key: &str) -> Result<Option<String>, GitError> {
    let output = git(directory)
        .args(["config", "--local", "--get-all", key])
        .output()
        .map_err(GitError::Start)?;
    let value = String::from_utf8_lossy(&output.stdout);
    Ok(output
        .status
        .success()
        .then(|| value.trim_end_matches('\n').to_owned()))
}

/// The line in the project's `.gitattributes`: there, or not there.
fn attributes(directory: &Utf8Path, wanted: bool) -> Result<Done, GitError> {
    let path = directory.join(".gitattributes");
    let failed = |source: io::Error| GitError::Write {
        path: path.to_string(),
        source,
    };
    if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
        let message = "it is a link or a folder, and git reads neither";
        return Err(failed(io::Error::other(message)));
    }
    let old = match fs::read_to_string(&path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let before = old.clone().unwrap_or_default();
    let ours = |line: &str| line.trim() == ATTRIBUTES;
    let there = before.lines().any(ours);
    let changed = there != wanted;
    let done = Done {
        what: ".gitattributes".to_owned(),
        value: wanted.then(|| ATTRIBUTES.to_owned()),
        changed,
    };
    if !changed {
        return Ok(done);
    }
    let end = if before.contains("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let text = if wanted {
        let gap = if before.is_empty() || before.ends_with('\n') {
            ""
        } else {
            end
        };
        format!("{before}{gap}{ATTRIBUTES}{end}")
    } else {
        let kept = before.split_inclusive('\n').filter(|line| !ours(line));
        kept.collect()
    };
    if text.is_empty() {
        fs::remove_file(&path).map_err(failed)?;
    } else {
        lockfile::replace(&path, text.as_bytes()).map_err(failed)?;
    }
    Ok(done)
}
