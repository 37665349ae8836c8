use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use camino::Utf8PathBuf;
use tempfile::TempDir;

use super::{GitError, Tree, extract, knows};

/// A repository with a project in a folder of it.
struct Repository {
    _folder: TempDir,
    project: Utf8PathBuf,
}

impl Repository {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let project = root.join("a project");
        fs::create_dir(&project).unwrap();
        let repository = Self {
            _folder: folder,
            project,
        };
        repository.git(&["init", "--quiet", "--initial-branch", "main", ".."]);
        repository
    }

    fn git(&self, arguments: &[&str]) {
        let ran = Command::new("git")
            .current_dir(&self.project)
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(["-c", "commit.gpgSign=false", "-c", "core.autocrlf=false"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self) {
        self.git(&["add", "--all", ".."]);
        self.git(&["commit", "--quiet", "--message", "x"]);
    }
}

#[test]
fn each_state_is_read_as_it_was_and_the_work_tree_is_left_alone() {
    let repository = Repository::new();
    repository.write("agents/ä \"b\"/x.yaml", "one\r\n");
    repository.write("../beside.txt", "not of the project");
    repository.write("run.sh", "#!/bin/sh\n");
    let run = repository.project.join("run.sh");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("agents", repository.project.join("link")).unwrap();
    // What git leaves out of archives is reviewed all the same.
    repository.write(".gitattributes", "* export-ignore\n*.yaml text eol=lf\n");
    repository.commit();
    repository.write("agents/ä \"b\"/x.yaml", "two\n");
    repository.git(&["add", "--all"]);
    repository.write("agents/ä \"b\"/x.yaml", "three\n");
    repository.write("untracked", "");

    let read = |tree: &Tree| {
        let found = extract(&repository.project, tree).unwrap();
        let root = found.root().unwrap();
        assert!(!root.join("beside.txt").exists() && !root.join("untracked").exists());
        let mode = fs::metadata(root.join("run.sh"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
        let link = fs::read_link(root.join("link")).unwrap();
        assert_eq!(link.to_str(), Some("agents"));
        fs::read_to_string(root.join("agents/ä \"b\"/x.yaml")).unwrap()
    };
    // As git has it: with the line ends of the repository.
    assert_eq!(read(&Tree::Revision("HEAD".to_owned())), "one\n");
    assert_eq!(read(&Tree::Revision("main".to_owned())), "one\n");
    assert_eq!(read(&Tree::Staged), "two\n");
    let there = fs::read_to_string(repository.project.join("agents/ä \"b\"/x.yaml")).unwrap();
    assert_eq!(there, "three\n");
}

#[test]
fn what_is_no_revision_is_refused_and_never_an_option() {
    let repository = Repository::new();
    repository.write("a", "");
    repository.commit();
    assert!(knows(&repository.project, "main").unwrap());
    for name in ["other", "--all", "-h", "main:a", ""] {
        assert!(!knows(&repository.project, name).unwrap(), "{name}");
        let refused = extract(&repository.project, &Tree::Revision(name.to_owned()));
        assert!(
            matches!(refused, Err(GitError::Refused(_))),
            "{name}: {refused:?}"
        );
    }
    let outside = tempfile::tempdir().unwrap();
    let outside = Utf8PathBuf::from_path_buf(outside.path().to_owned()).unwrap();
    let refused = extract(&outside, &Tree::Staged).unwrap_err().to_string();
    assert!(refused.contains("not a git repository"), "{refused}");
}

#[test]
fn a_folder_that_was_not_there_yet_is_empty_and_a_submodule_is_named() {
    let repository = Repository::new();
    repository.write("../beside.txt", "");
    repository.git(&["add", ".."]);
    repository.git(&["commit", "--quiet", "--message", "before the project"]);
    repository.write("a", "");
    let object = "0123456789012345678901234567890123456789";
    repository.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{object},a project/module"),
    ]);
    let head = extract(&repository.project, &Tree::Revision("HEAD".to_owned())).unwrap();
    assert_eq!(fs::read_dir(head.root().unwrap()).unwrap().count(), 0);
    let staged = extract(&repository.project, &Tree::Staged).unwrap();
    assert_eq!(staged.submodules, ["module"]);
}
