//! Programs that a test puts somewhere and runs.
//!
//! The kernel runs no file that anybody holds open for writing. A test that wrote one itself would share its open file,
//! for a moment, with whatever another thread of the same process is about to start (between `fork` and `exec`), and
//! would fail with "Text file busy" now and then. So a process of its own writes it, and is gone when this returns.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A copy of a program that everybody may run.
pub(crate) fn copy(from: impl AsRef<Path>, to: &Path) {
    let mut install = Command::new("install");
    install.arg("-m").arg("755").arg(from.as_ref()).arg(to);
    assert!(install.status().unwrap().success(), "{}", to.display());
}

/// A script that everybody may run.
pub(crate) fn write(to: &Path, script: &str) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(to);
    let mut child = install.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success(), "{}", to.display());
}
