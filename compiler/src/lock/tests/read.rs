use super::super::*;
use super::{dynamic_instance, plan, static_instance};
use crate::lock::LockError;
use crate::model::Settings;

fn text() -> String {
    let plan = plan([
        ("home/files", dynamic_instance()),
        ("weather/api", static_instance()),
    ]);
    Lock::merge(None, &plan, &BTreeMap::new(), &Settings::default())
        .lock
        .write(None)
}

fn refused(text: &str) -> LockError {
    Lock::read(text).expect_err("read")
}

/// The line of the first occurrence, from 1.
fn line_of(text: &str, part: &str) -> u32 {
    let index = text.lines().position(|line| line.contains(part)).unwrap();
    u32::try_from(index + 1).unwrap()
}

#[test]
fn an_empty_lock_is_a_lock() {
    assert_eq!(Lock::read("version = 1\n"), Ok(Lock::default()));
    assert_eq!(
        Lock::read(&Lock::default().write(None)),
        Ok(Lock::default())
    );
}

#[test]
fn the_version_is_checked_before_all_else_h08() {
    for newer in [
        "version = 99\n",
        "version = 99\nrevision = 3\n[elsewhere]\nx = 1\n",
        "# hello\n\nversion = 99\nthis is = no { TOML that we know\n",
        "version = 2\ninstance = 7\n",
    ] {
        let error = refused(newer);
        assert!(
            matches!(error, LockError::VersionNewer { .. }),
            "{newer}: {error}"
        );
        assert!(error.to_string().contains("needs at least"), "{error}");
    }
    assert_eq!(refused(""), LockError::VersionMissing);
    assert_eq!(refused("[instance]\n"), LockError::VersionMissing);
    for none in [
        "version = \"1\"\n",
        "version = 1.0\n",
        "version = 0\n",
        "version = -1\n",
        "version = []\n",
    ] {
        let error = refused(none);
        assert!(
            matches!(
                error,
                LockError::VersionInvalid {
                    line: 1,
                    column: 11,
                    ..
                }
            ),
            "{none}: {error}"
        );
    }
}

#[test]
fn conflict_markers_are_named_with_their_line_26() {
    let text = text();
    for marker in ["<<<<<<< HEAD", "=======", ">>>>>>> theirs", "||||||| base"] {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.insert(4, marker);
        let error = refused(&lines.join("\n"));
        assert_eq!(error, LockError::Conflict { line: 5 }, "{marker}");
        let finding = error.diagnostic("selu.lock".into());
        assert!(finding.help.unwrap().contains("`selu lock --resolve`"));
        assert_eq!(finding.place.origin.line, 5);
    }
}

#[test]
fn what_is_not_a_lock_is_an_error_with_its_line() {
    let text = text();
    for (old, new, at) in [
        ("cache = false", "cache = false\nsurprise = 1", "surprise"),
        ("cache = false", "cache = \"no\"", "cache = \"no\""),
        ("cache = false\n", "", "[instance.\"home/files\"]"),
        (
            "cache = false",
            "cache = false\ncache = true",
            "cache = true",
        ),
        ("class = \"tool\"", "class = \"tol\"", "class = \"tol\""),
        ("limits.pids = 64", "limits.pids = -1", "limits.pids = -1"),
        (
            "image.kind = \"registry\"",
            "image.kind = \"unknown\"",
            "\"unknown\"",
        ),
        (
            "image.digest = \"sha256:a",
            "image.digest = \"sha256:x",
            "sha256:x",
        ),
        (
            "prompt.\"prompt.md\" = \"sha256:",
            "prompt.\"prompt.md\" = \"md5:",
            "md5:",
        ),
        (
            "[instance.\"home/files\"]",
            "[instance.\"Home/files\"]",
            "Home/files",
        ),
        (
            "\"type\": \"object\"",
            "\"type\" \"object\"",
            "input_schema = '''",
        ),
        (
            "\"type\": \"object\"",
            "\"type\": 1, \"type\": 2",
            "input_schema = '''",
        ),
    ] {
        let wrong = text.replacen(old, new, 1);
        assert_ne!(wrong, text, "{old}");
        let error = refused(&wrong);
        assert_eq!(error.code().name, "lock-invalid", "{new}: {error}");
        assert_eq!(error.position().0, line_of(&wrong, at), "{new}: {error}");
    }
}

#[test]
fn an_entry_that_a_merge_doubled_is_an_error_h05() {
    let text = text();
    let entry = &text[text.find("[instance.\"weather/api\"]").unwrap()..];
    let error = refused(&format!("{text}\n{entry}"));
    assert_eq!(error.code().name, "lock-invalid");
    assert!(error.to_string().contains("weather/api"), "{error}");
}

#[test]
fn columns_count_characters() {
    let error = refused("version = 1\n\"ä\" = \"ö\" x\n");
    assert_eq!(error.position(), (2, 11), "{error}");
}
