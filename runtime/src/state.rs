//! `.selu/`: what belongs to one working copy and is never committed.

use std::fs;
use std::io::{self, Write};

use camino::Utf8Path;

/// The folder's name in a project.
pub(crate) const FOLDER: &str = ".selu";

/// Ids of the plans that were applied from this working copy, one a line.
const APPLIED: &str = "applied-plans";

/// Makes the folder, hidden from version control.
pub(crate) fn prepare(folder: &Utf8Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let ignore = folder.join(".gitignore");
    if !ignore.exists() {
        fs::write(ignore, "*\n")?;
    }
    Ok(())
}

/// Whether a saved plan was applied from here before (product.md 5).
pub fn was_applied(root: &Utf8Path, plan_id: &str) -> io::Result<bool> {
    match fs::read_to_string(root.join(FOLDER).join(APPLIED)) {
        Ok(text) => Ok(text.lines().any(|line| line == plan_id)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Notes that a saved plan is being applied; on disk before this returns, so that a kill does not make it new again.
pub fn note_applied(root: &Utf8Path, plan_id: &str) -> io::Result<()> {
    let folder = root.join(FOLDER);
    prepare(&folder)?;
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(APPLIED))?;
    file.write_all(format!("{plan_id}\n").as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_used_up_once_it_was_noted_and_no_other_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        assert!(!was_applied(root, "ab").unwrap());
        note_applied(root, "ab").unwrap();
        note_applied(root, "cd").unwrap();
        assert!(was_applied(root, "ab").unwrap());
        assert!(was_applied(root, "cd").unwrap());
        assert!(!was_applied(root, "a").unwrap());
        let ignore = fs::read_to_string(root.join(".selu/.gitignore")).unwrap();
        assert_eq!(ignore, "*\n");
    }
}
