//! A project as it was at a revision of its git repository, or as it is staged; nothing is checked out.
//!
//! git itself is asked, with commands that run no hook and no filter and fetch nothing. What it has of the project's
//! folder is written to a folder of its own, where the compiler reads it under the same rules as any other.

pub mod merge;
pub mod setup;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path};
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tree {
    /// A commit, by any name that git knows.
    Revision(String),
    /// What the next commit would have.
    Staged,
}

/// Why a project can't be read from git.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git is not installed, or can't be started.
    #[error("git can't be started")]
    Start(#[source] io::Error),
    /// No such revision, no repository, or another refusal.
    #[error("git says: {0}")]
    Refused(String),
    /// The index has several versions of a file.
    #[error("a merge is not settled yet: {}", .0.join(", "))]
    Unmerged(Vec<String>),
    /// It said what nobody understands.
    #[error("git answered something else than asked for: {0}")]
    Answer(&'static str),
    /// The folder of its own could not be written.
    #[error("{path} can't be written")]
    Write {
        /// Which part of it.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// A project from git, gone with this value.
#[derive(Debug)]
pub struct Extracted {
    folder: TempDir,
    /// Submodules in it, whose content is in other repositories.
    pub submodules: Vec<String>,
}

impl Extracted {
    /// Where it is.
    pub fn root(&self) -> Result<Utf8PathBuf, GitError> {
        Utf8PathBuf::from_path_buf(self.folder.path().to_owned())
            .map_err(|_| GitError::Answer("a folder for temporary files whose name is not UTF-8"))
    }
}

/// Whether `name` is a revision of the repository around `directory`.
pub fn knows(directory: &Utf8Path, name: &str) -> Result<bool, GitError> {
    let spec = format!("{name}^{{commit}}");
    let mut command = git(directory);
    command.args([
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &spec,
    ]);
    let output = command.output().map_err(GitError::Start)?;
    Ok(output.status.success())
}

/// A file as a revision has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAt {
    /// It is not in the repository.
    Outside,
    /// The revision has no such file.
    Missing,
    /// Its text.
    Found(String),
}

/// A file of the repository around `directory`, whether it is in the work tree or not, as it was at a revision.
///
/// # Errors
/// When git is missing or knows no such revision.
pub fn file_at(directory: &Utf8Path, revision: &str, path: &Utf8Path) -> Result<FileAt, GitError> {
    let top = text(directory, &["rev-parse", "--show-toplevel"])?;
    let top = Utf8Path::new(top.trim_end_matches('\n'));
    let parent = match path.parent() {
        Some(parent) if !parent.as_str().is_empty() => parent,
        _ => Utf8Path::new("."),
    };
    let Ok(parent) = parent.canonicalize_utf8() else {
        return Ok(FileAt::Outside);
    };
    let (Ok(folder), Some(name)) = (parent.strip_prefix(top), path.file_name()) else {
        return Ok(FileAt::Outside);
    };
    let commit = format!("{revision}^{{commit}}");
    let commit = text(
        directory,
        &["rev-parse", "--verify", "--end-of-options", &commit],
    )?;
    let object = format!("{}:{}", commit.trim_end(), folder.join(name));
    match text(directory, &["cat-file", "blob", &object]) {
        Ok(text) => Ok(FileAt::Found(text)),
        Err(GitError::Refused(_)) => Ok(FileAt::Missing),
        Err(error) => Err(error),
    }
}

/// The project at `directory` as it is in a tree.
///
/// # Errors
/// When git is missing, knows no such revision, or the folder can't be written.
pub fn extract(directory: &Utf8Path, tree: &Tree) -> Result<Extracted, GitError> {
    let prefix = text(directory, &["rev-parse", "--show-prefix"])?;
    let prefix = prefix.trim_end_matches('\n').as_bytes().to_vec();
    let listed = match tree {
        Tree::Revision(name) => {
            let spec = format!("{name}^{{commit}}");
            let commit = text(
                directory,
                &["rev-parse", "--verify", "--end-of-options", &spec],
            )?;
            let commit = commit.trim_end();
            bytes(directory, &["ls-tree", "-r", "-z", "--full-tree", commit])?
        }
        Tree::Staged => bytes(directory, &["ls-files", "--stage", "-z", "--full-name"])?,
    };
    let mut entries = Vec::new();
    let mut unmerged = BTreeSet::new();
    for line in listed
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
    {
        let entry = Entry::parse(line).ok_or(GitError::Answer("a line of a list of files"))?;
        if let Some(inside) = entry.path.strip_prefix(prefix.as_slice()) {
            if !entry.merged {
                let name = String::from_utf8_lossy(inside);
                unmerged.insert(selu_compiler::report::escape(&name));
            }
            entries.push(Entry {
                path: inside.to_vec(),
                ..entry
            });
        }
    }
    if !unmerged.is_empty() {
        return Err(GitError::Unmerged(unmerged.into_iter().collect()));
    }
    write(directory, &entries)
}

/// One file of a tree.
struct Entry {
    mode: u32,
    object: String,
    /// Whether it is the only version of its path; a tree has no others, an index may.
    merged: bool,
    path: Vec<u8>,
}

const SYMLINK: u32 = 0o120_000;
const SUBMODULE: u32 = 0o160_000;
const EXECUTABLE: u32 = 0o111;

impl Entry {
    /// `<mode> <type> <object>\t<path>` of ls-tree, `<mode> <object> <stage>\t<path>` of ls-files.
    fn parse(line: &[u8]) -> Option<Self> {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let head = std::str::from_utf8(&line[..tab]).ok()?;
        let mut words = head.split(' ');
        let mode = u32::from_str_radix(words.next()?, 8).ok()?;
        let object = words.find(|word| word.len() >= 40)?;
        // What follows the object in an index is the version's number.
        let merged = words.next().is_none_or(|stage| stage == "0");
        Some(Self {
            mode,
            object: object.to_owned(),
            merged,
            path: line[tab + 1..].to_vec(),
        })
    }
}

fn write(directory: &Utf8Path, entries: &[Entry]) -> Result<Extracted, GitError> {
    let folder = tempfile::Builder::new()
        .prefix("selu-")
        .tempdir()
        .map_err(|source| GitError::Write {
            path: std::env::temp_dir().display().to_string(),
            source,
        })?;
    let submodules = entries.iter().filter(|entry| entry.mode == SUBMODULE);
    let submodules = submodules
        .map(|entry| String::from_utf8_lossy(&entry.path).into_owned())
        .collect();
    let files: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.mode != SUBMODULE)
        .collect();

    let mut command = git(directory);
    command
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(GitError::Start)?;
    let (Some(mut asked), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(GitError::Answer("no pipe"));
    };
    let names: String = files
        .iter()
        .map(|entry| format!("{}\n", entry.object))
        .collect();
    // Asked from a thread of its own: both pipes are short.
    let asking = std::thread::spawn(move || asked.write_all(names.as_bytes()));
    let mut answers = BufReader::new(answers);
    let written = files
        .iter()
        .try_for_each(|entry| write_one(folder.path(), entry, &mut answers));
    drop(answers);
    // Whoever hung up first has said why.
    let _ = asking.join();
    let _ = child.wait();
    written?;
    Ok(Extracted { folder, submodules })
}

/// Takes one answer, `<object> blob <size>\n<bytes>\n`, and writes the file.
fn write_one(root: &Path, entry: &Entry, answers: &mut impl BufRead) -> Result<(), GitError> {
    let broken = |_| GitError::Answer("an object that ends early");
    let mut head = String::new();
    answers.read_line(&mut head).map_err(broken)?;
    let size: u64 = head
        .trim_end()
        .strip_prefix(&entry.object)
        .and_then(|rest| rest.strip_prefix(" blob "))
        .and_then(|size| size.parse().ok())
        .ok_or(GitError::Answer("an object that is no file, or is missing"))?;

    let relative = Path::new(OsStr::from_bytes(&entry.path));
    let plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !plain {
        return Err(GitError::Answer("a path that leads out of the repository"));
    }
    let path = root.join(relative);
    let failed = |source| GitError::Write {
        path: path.display().to_string(),
        source,
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    let mut content = answers.take(size);
    if entry.mode == SYMLINK {
        let mut target = Vec::new();
        content.read_to_end(&mut target).map_err(failed)?;
        symlink(OsStr::from_bytes(&target), &path).map_err(failed)?;
    } else {
        let mut file = fs::File::create_new(&path).map_err(failed)?;
        let copied = io::copy(&mut content, &mut file).map_err(failed)?;
        if copied != size {
            return Err(GitError::Answer("an object that ends early"));
        }
        let mode = if entry.mode & EXECUTABLE == 0 {
            0o644
        } else {
            0o755
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(failed)?;
    }
    let mut end = [0];
    answers.read_exact(&mut end).map_err(broken)
}

fn text(directory: &Utf8Path, arguments: &[&str]) -> Result<String, GitError> {
    String::from_utf8(bytes(directory, arguments)?)
        .map_err(|_| GitError::Answer("something that is not UTF-8"))
}

fn bytes(directory: &Utf8Path, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
    let output = git(directory)
        .args(arguments)
        .output()
        .map_err(GitError::Start)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().trim_start_matches("fatal: ");
    Err(GitError::Refused(selu_compiler::report::escape(said)))
}

/// git in a directory, that writes nothing, asks nobody and runs nothing of the repository's.
fn git(directory: &Utf8Path) -> Command {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(directory.as_str())
        .args(["--no-pager", "--no-optional-locks", "--literal-pathspecs"])
        .args(["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"])
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C");
    // A hook's surroundings name a repository that need not be the one of the directory.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_NAMESPACE"] {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests;
