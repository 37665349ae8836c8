//! What goes wrong around an apply: somebody else's at the same moment, a disk that is full.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::project::{TestProject, run};
use crate::world::docker_text;

const STATIC: &str = "tools:\n  - name: read\n    description: Reads a file.\n    recommended_policy: allow\n    input_schema: {type: object}\n";

fn one(topic: &str) -> TestProject {
    let project = TestProject::new(&format!("images5-{topic}"));
    project.probe("a", "one", &["serve"], STATIC);
    project.selu(&["build"]).expect(0);
    project
}

fn set_pids(project: &TestProject, pids: usize, more: &str) {
    let image = project.image("a", "one");
    project.write(
        "agents/a/capabilities/one/manifest.yaml",
        &format!("id: one\nimage: {image}\n{STATIC}resources: {{pids_limit: {pids}}}\n{more}"),
    );
}

/// `SELU_RACES` says how often; 50 is what was asked for, 6 what each run of the tests can afford.
#[test]
fn of_two_applies_at_once_one_does_it_and_the_other_does_nothing_twice_however_often() {
    let races = std::env::var("SELU_RACES").map_or(6, |count| count.parse().unwrap());
    let project = one("race");
    for race in 0..races {
        // In place, by replacement, and back.
        let temp = if race % 4 < 2 {
            "filesystem: temp\n"
        } else {
            ""
        };
        set_pids(&project, 32 + race % 2, temp);
        let start = || project.start(&["apply", "-y", "--lock-timeout", "60"]);
        let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
        let said: Vec<String> = both
            .iter()
            .map(|output| String::from_utf8_lossy(&output.stderr).into_owned())
            .collect();
        let mut codes = both.map(|output| output.status.code());
        codes.sort_unstable();
        // What the second had seen has changed by the time that it may; or it looked later, and there was nothing to do.
        let fine = matches!(codes, [Some(0), Some(0 | 4)]);
        assert!(fine, "race {race}: {codes:?}\n{}", said.join("\n---\n"));
        let running = docker_text(&[
            "ps",
            "-a",
            "--format",
            "{{.Names}}",
            "--filter",
            "label=dev.selu.instance=a/one",
            "--filter",
            &format!("label=dev.selu.project={}", project.name),
        ]);
        assert_eq!(running.lines().count(), 1, "race {race}: {running}");
        project.selu(&["plan", "--detailed-exitcode"]).expect(0);
        project.selu(&["lock", "--check"]).expect(0);
    }
}

/// A small file system at a folder, gone with its owner.
struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    /// `None` where this may not be mounted.
    fn mount(folder: &'a Path) -> Option<Self> {
        let mounted = run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=128k", "selu-test"])
            .arg(folder));
        (mounted.code == 0).then_some(Self(folder))
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        run(Command::new("umount").arg("-l").arg(self.0));
    }
}

#[test]
fn a_disk_that_is_full_when_the_lock_is_written_leaves_the_old_one_and_room_makes_the_next_apply_write_it()
 {
    let project = one("full");
    let name = project.name.clone();
    let folder = tempfile::tempdir().unwrap();
    let Some(_small) = Small::mount(folder.path()) else {
        println!("skipped: a file system cannot be mounted here");
        return;
    };
    // The project as it is, on the small file system.
    let copied = run(Command::new("cp")
        .arg("-r")
        .arg(project.path().join("."))
        .arg(folder.path()));
    copied.expect(0);
    let selu = |arguments: &[&str]| {
        run(Command::new(env!("CARGO_BIN_EXE_selu"))
            .current_dir(folder.path())
            .args(arguments))
    };
    selu(&["apply", "-y"]).expect(0);
    let lock = folder.path().join("selu.lock");
    let before = fs::read_to_string(&lock).unwrap();

    let image = project.image("a", "one");
    let manifest = folder
        .path()
        .join("agents/a/capabilities/one/manifest.yaml");
    let changed = format!("id: one\nimage: {image}\n{STATIC}resources: {{pids_limit: 33}}\n");
    fs::write(&manifest, &changed).unwrap();
    // Whatever room there is goes.
    let filler = folder.path().join("filler");
    let filled = fs::write(&filler, vec![0; 1 << 20]).unwrap_err();
    assert_eq!(filled.kind(), std::io::ErrorKind::StorageFull, "{filled}");

    let refused = selu(&["apply", "-y"]);
    assert!(
        matches!(refused.code, 1 | 3),
        "{}: {}",
        refused.code,
        refused.stderr
    );
    assert!(
        refused.stderr.contains("No space left on device"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        fs::read_to_string(&lock).unwrap(),
        before,
        "the old lock, whole"
    );
    let strays: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|file| {
            !["agents", "filler", "selu.lock", "selu.toml", ".selu"].contains(&file.as_str())
        })
        .collect();
    assert_eq!(strays, Vec::<String>::new(), "no half a lock beside it");

    fs::remove_file(&filler).unwrap();
    selu(&["apply", "-y"]).expect(0);
    let after = fs::read_to_string(&lock).unwrap();
    assert_eq!(
        after,
        before.replace("limits.pids = 64", "limits.pids = 33"),
        "{name}"
    );
    selu(&["plan", "--detailed-exitcode"]).expect(0);
}
