//! Directories that someone made to hurt: an error that names the place, and no hang.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Desk, Ran};

/// A guard against hanging, not a measure of speed.
const LONGEST: Duration = Duration::from_secs(120);
const CAPABILITY: &str = "agents/weather/capabilities";

impl Desk {
    /// `selu check`, killed if it does not end.
    #[track_caller]
    fn check(&self) -> Ran {
        ended(self.command(&["check"]))
    }

    fn make_folder(&self, path: &str) {
        fs::create_dir_all(self.path().join(path)).unwrap();
    }

    fn link(&self, target: &str, path: &str) {
        symlink(target, self.path().join(path)).unwrap();
    }
}

/// How a command ends, output read from files so that it can be waited for.
#[track_caller]
fn ended(mut command: Command) -> Ran {
    let out = tempfile::NamedTempFile::new().unwrap();
    let err = tempfile::NamedTempFile::new().unwrap();
    command
        .stdout(Stdio::from(out.reopen().unwrap()))
        .stderr(Stdio::from(err.reopen().unwrap()));
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > LONGEST {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    Ran {
        code: status.code(),
        out: read(out.path()),
        err: read(err.path()),
    }
}

/// All that a run said.
fn said(ran: &Ran) -> String {
    format!("{}{}", ran.out, ran.err)
}

#[track_caller]
fn names(ran: &Ran, code: &str, place: &str) {
    let said = said(ran);
    assert!(
        said.contains(code) && said.contains(place),
        "{code} {place}: {said}"
    );
}

#[test]
fn links_in_circles_and_out_of_the_root_are_named() {
    let desk = Desk::with_project();
    desk.link("loop-b", &format!("{CAPABILITY}/loop-a"));
    desk.link("loop-a", &format!("{CAPABILITY}/loop-b"));
    desk.link("../../..", &format!("{CAPABILITY}/up"));
    desk.link("/etc", &format!("{CAPABILITY}/out"));
    desk.make_folder(&format!("{CAPABILITY}/leak"));
    desk.link("/etc/passwd", &format!("{CAPABILITY}/leak/manifest.yaml"));
    let ran = desk.check().exits(1);
    for place in ["loop-a", "loop-b", "up", "out", "leak/manifest.yaml"] {
        names(&ran, "SELU0106", &format!("{CAPABILITY}/{place}"));
    }
    assert!(!said(&ran).contains("root:"), "nothing of it is shown");
}

#[test]
fn a_pipe_is_named_and_not_waited_for() {
    let desk = Desk::with_project();
    desk.make_folder(&format!("{CAPABILITY}/pipe"));
    let path = desk.path().join(CAPABILITY).join("pipe/manifest.yaml");
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let ran = desk.check().exits(1);
    names(
        &ran,
        "SELU0108",
        &format!("{CAPABILITY}/pipe/manifest.yaml"),
    );
}

#[test]
fn a_manifest_of_a_gibibyte_is_named_and_not_read() {
    let desk = Desk::with_project();
    desk.make_folder(&format!("{CAPABILITY}/large"));
    let path = desk.path().join(CAPABILITY).join("large/manifest.yaml");
    fs::File::create(path).unwrap().set_len(1 << 30).unwrap();
    let ran = desk.check().exits(1);
    names(
        &ran,
        "SELU0109",
        &format!("{CAPABILITY}/large/manifest.yaml"),
    );
    assert!(said(&ran).contains("1073741824 bytes"), "{}", said(&ran));
}

#[test]
fn an_unreadable_file_and_folder_are_named() {
    let desk = Desk::with_project();
    desk.make_folder(&format!("{CAPABILITY}/closed"));
    desk.make_folder(&format!("{CAPABILITY}/shut"));
    desk.write(&format!("{CAPABILITY}/shut/manifest.yaml"), "id: shut\n");
    let mode = |path: String, mode: u32| {
        let path = desk.path().join(path);
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(String::new(), 0o755);
    mode(format!("{CAPABILITY}/closed"), 0);
    mode(format!("{CAPABILITY}/shut/manifest.yaml"), 0);
    // Root reads everything; an ordinary user does not.
    let mut command = desk.command(&["check"]);
    let root = fs::metadata("/proc/self")
        .is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0);
    let binary = desk.path().join("selu-copy");
    if root {
        // The binary may lie where that user cannot go.
        crate::program::copy(env!("CARGO_BIN_EXE_selu"), &binary);
        command = Command::new(&binary);
        command
            .arg("check")
            .current_dir(desk.path())
            .env_clear()
            .uid(65534)
            .gid(65534);
    }
    let ran = ended(command).exits(1);
    mode(format!("{CAPABILITY}/closed"), 0o755);
    names(&ran, "SELU0105", &format!("{CAPABILITY}/closed"));
    names(
        &ran,
        "SELU0105",
        &format!("{CAPABILITY}/shut/manifest.yaml"),
    );
}

#[test]
fn names_with_line_ends_and_control_characters_are_shown_escaped() {
    let desk = Desk::with_project();
    for name in [
        &b"new\nline: error"[..],
        b"escape\x1b[31mred",
        b"turned\xe2\x80\xaeback",
    ] {
        let folder = desk
            .path()
            .join(CAPABILITY)
            .join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(folder).unwrap();
    }
    let latin = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::create_dir_all(desk.path().join(CAPABILITY).join(latin)).unwrap();
    for format in ["text", "json"] {
        let ran = ended(desk.command(&["check", "--format", format])).exits(1);
        let said = said(&ran);
        assert!(!said.contains('\x1b'), "{said:?}");
        // JSON holds the name as it is: a reader of JSON is no terminal.
        assert!(format == "json" || !said.contains('\u{202e}'), "{said:?}");
        assert!(!said.contains("\nline: error"), "{said:?}");
        for name in ["line: error", "escape", "turned", "caf"] {
            assert!(said.contains(name), "{name}: {said}");
        }
    }
}

#[test]
fn a_hundred_thousand_files_are_passed_over() {
    let desk = Desk::with_project();
    let folder = desk.path().join(CAPABILITY).join("api/data");
    for group in 0..100 {
        let folder = folder.join(group.to_string());
        fs::create_dir_all(&folder).unwrap();
        for file in 0..1_000 {
            fs::File::create(folder.join(file.to_string())).unwrap();
        }
    }
    desk.check().exits(0);
    // What builds an image is bounded, and says so.
    fs::rename(&folder, desk.path().join(CAPABILITY).join("api/container")).unwrap();
    desk.write(
        &format!("{CAPABILITY}/api/container/Dockerfile"),
        "FROM scratch\n",
    );
    let ran = desk.check().exits(1);
    names(&ran, "SELU0110", &format!("{CAPABILITY}/api/container"));
}

#[test]
fn a_manifest_that_is_swapped_while_it_is_read_is_one_of_the_two_or_a_named_error() {
    let desk = Desk::with_project();
    let path = desk.path().join(CAPABILITY).join("api/manifest.yaml");
    let valid = fs::read(&path).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = desk.path().join("other");
            let mut turn = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = fs::remove_file(&other);
                match turn % 4 {
                    0 => fs::write(&other, &valid).unwrap(),
                    1 => symlink("/etc/passwd", &other).unwrap(),
                    2 => drop(Command::new("mkfifo").arg(&other).status()),
                    _ => fs::File::create(&other).unwrap().set_len(1 << 30).unwrap(),
                }
                fs::rename(&other, &path).unwrap();
                turn += 1;
            }
        });
        for _ in 0..40 {
            let ran = std::panic::catch_unwind(|| desk.check());
            let Ok(ran) = ran else {
                done.store(true, std::sync::atomic::Ordering::Relaxed);
                panic!("it hangs");
            };
            let said = said(&ran);
            let named = said.contains(&format!("{CAPABILITY}/api"));
            let right = ran.code == Some(0) || (ran.code == Some(1) && named);
            if !right || said.contains("root:") {
                done.store(true, std::sync::atomic::Ordering::Relaxed);
                panic!("{:?}: {said}", ran.code);
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
