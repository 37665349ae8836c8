//! A lock in a merge: what git knows of its three sides, and the driver that git starts.

use std::fs;

use camino::Utf8Path;
use selu_compiler::lock::{Joined, Lock, LockError, Side, marked, sides};

use super::{GitError, bytes, git, text};
use crate::lockfile::{self, LockFileError};

/// The three sides of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stages {
    /// What both came from; `None` if both added the file.
    pub base: Option<String>,
    /// The branch that is merged into; `None` if it removed the file.
    pub ours: Option<String>,
    /// The branch that is merged; `None` if it removed the file.
    pub theirs: Option<String>,
}

/// The sides of a file that git has not settled; `None` if it has, or there is no repository.
///
/// # Errors
/// When git can't be started, or knows a side and can't show it.
pub fn stages(directory: &Utf8Path, file: &str) -> Result<Option<Stages>, GitError> {
    let listed = match bytes(directory, &["ls-files", "--unmerged", "-z", "--", file]) {
        Ok(listed) => listed,
        Err(GitError::Refused(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut found: [Option<String>; 3] = Default::default();
    for line in listed
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
    {
        // `<mode> <object> <stage>\t<path>`
        let head = line.split(|byte| *byte == b'\t').next().unwrap_or_default();
        let head = String::from_utf8_lossy(head);
        let mut words = head.split(' ').skip(1);
        let (Some(object), Some(stage)) = (words.next(), words.next()) else {
            return Err(GitError::Answer("a line of a list of files"));
        };
        let at = match stage {
            "1" => 0,
            "2" => 1,
            "3" => 2,
            _ => return Err(GitError::Answer("a stage that is none")),
        };
        found[at] = Some(text(directory, &["cat-file", "blob", object])?);
    }
    let [base, ours, theirs] = found;
    let any = base.is_some() || ours.is_some() || theirs.is_some();
    Ok(any.then_some(Stages { base, ours, theirs }))
}

/// Why a merge of locks can't be settled.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One of the sides is no lock.
    #[error("{side} is not a lock that this version reads")]
    Side {
        /// Which one.
        side: &'static str,
        /// Where and why.
        source: LockError,
    },
    /// The markers do not make sense.
    #[error(
        "the conflict markers are not as a merge writes them, and git does not know the sides any more"
    )]
    Markers,
    /// git has no part in it.
    #[error("git was asked")]
    Git(#[from] GitError),
    /// A file can't be read or written.
    #[error("a file of the merge")]
    File(#[from] LockFileError),
}

/// What settling came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The merge.
    pub joined: Joined,
    /// Instances that one side alone has, kept because nobody knows whether the other one removed them.
    pub kept: Vec<String>,
}

/// Settles a lock that has conflict markers, from what git knows of its sides, else from the markers.
///
/// # Errors
/// When a side can't be had, or is no lock.
pub fn settle(directory: &Utf8Path, text: &str, side: Side) -> Result<Settled, MergeError> {
    if let Some(stages) = stages(directory, lockfile::NAME)? {
        let base = side_of(stages.base.as_deref(), "what both sides came from")?;
        let ours = side_of(stages.ours.as_deref(), "our side")?;
        let theirs = side_of(stages.theirs.as_deref(), "their side")?;
        return Ok(Settled {
            joined: Lock::join(&base, &ours, &theirs, side),
            kept: Vec::new(),
        });
    }
    let sides = sides(text).ok_or(MergeError::Markers)?;
    let ours = side_of(Some(&sides.ours), "our side")?;
    let theirs = side_of(Some(&sides.theirs), "their side")?;
    if let Some(base) = &sides.base {
        let base = side_of(Some(base), "what both sides came from")?;
        return Ok(Settled {
            joined: Lock::join(&base, &ours, &theirs, side),
            kept: Vec::new(),
        });
    }
    let one_sided = |a: &Lock, b: &Lock| {
        let alone = a
            .instances
            .keys()
            .filter(|key| !b.instances.contains_key(*key));
        alone.map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut kept = one_sided(&ours, &theirs);
    kept.extend(one_sided(&theirs, &ours));
    kept.sort();
    Ok(Settled {
        joined: Lock::join(&Lock::default(), &ours, &theirs, side),
        kept,
    })
}

/// A lock; one that is not there has no entry.
fn side_of(text: Option<&str>, side: &'static str) -> Result<Lock, MergeError> {
    match text {
        None => Ok(Lock::default()),
        Some(text) if text.trim().is_empty() => Ok(Lock::default()),
        Some(text) => Lock::read(text).map_err(|source| MergeError::Side { side, source }),
    }
}

/// What git's merge driver did.
#[derive(Debug)]
pub enum Driven {
    /// It is merged.
    Merged,
    /// Both sides changed the same entries, which are marked in the file.
    Clashes(Joined),
    /// A side is no lock: the file has what git's own merge of lines makes of it, as a conflict in any case.
    Lines(MergeError),
}

/// Merges three files as git's merge driver does: the result is written to `ours`.
///
/// # Errors
/// When a file can't be read or written.
pub fn drive(
    base: &Utf8Path,
    ours: &Utf8Path,
    theirs: &Utf8Path,
    marker: usize,
) -> Result<Driven, MergeError> {
    let read = |path: &Utf8Path| {
        fs::read_to_string(path).map_err(|source| LockFileError::Io {
            path: path.to_owned(),
            verb: "read",
            source,
        })
    };
    let texts = [read(base)?, read(ours)?, read(theirs)?];
    let locks = [
        side_of(Some(&texts[0]), "what both sides came from"),
        side_of(Some(&texts[1]), "our side"),
        side_of(Some(&texts[2]), "their side"),
    ];
    let locks = match locks {
        [Ok(base), Ok(ours), Ok(theirs)] => [base, ours, theirs],
        [Err(error), ..] | [_, Err(error), _] | [.., Err(error)] => {
            by_lines(base, ours, theirs, marker)?;
            return Ok(Driven::Lines(error));
        }
    };
    let of = |side| Lock::join(&locks[0], &locks[1], &locks[2], side);
    let joined = of(Side::Ours);
    let previous = Some(texts[1].as_str());
    let merged = if joined.clashes.is_empty() {
        joined.lock.write(previous)
    } else {
        let (base, theirs) = (of(Side::Base).lock, of(Side::Theirs).lock);
        marked([&base, &joined.lock, &theirs], marker, previous)
    };
    lockfile::replace(ours, merged.as_bytes()).map_err(|source| LockFileError::Io {
        path: ours.to_owned(),
        verb: "written",
        source,
    })?;
    Ok(if joined.clashes.is_empty() {
        Driven::Merged
    } else {
        Driven::Clashes(joined)
    })
}

/// What git does without a driver.
fn by_lines(
    base: &Utf8Path,
    ours: &Utf8Path,
    theirs: &Utf8Path,
    marker: usize,
) -> Result<(), GitError> {
    let output = git(Utf8Path::new("."))
        .args(["merge-file", "--diff3", &format!("--marker-size={marker}")])
        .args(["-L", "ours", "-L", "base", "-L", "theirs"])
        .args([ours.as_str(), base.as_str(), theirs.as_str()])
        .output()
        .map_err(GitError::Start)?;
    // Its exit code counts conflicts, up to 127.
    match output.status.code() {
        Some(0..=127) => Ok(()),
        _ => Err(GitError::Refused(selu_compiler::report::escape(
            String::from_utf8_lossy(&output.stderr).trim(),
        ))),
    }
}
