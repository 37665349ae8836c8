//! selu.lock: SELU1001–SELU1099.

use crate::diag::{Code, Severity};

/// Not a lock.
pub static SYNTAX: Code = Code {
    id: "SELU1001",
    name: "lock-invalid",
    severity: Severity::Error,
    rules: &["21"],
    cause: "The file is not TOML, or not what a lock holds: a field that is unknown here may come from a newer `selu`.",
    cure: "Use the `selu` that wrote it, if that was a newer one; else take the last committed version, or delete the file and run `selu lock`.",
    example: r#"version = 1
instances = []"#,
};

/// Conflict markers.
pub static CONFLICT: Code = Code {
    id: "SELU1002",
    name: "lock-conflict",
    severity: Severity::Error,
    rules: &["26"],
    cause: "A merge left both sides in the file.",
    cure: "`selu lock --resolve` settles it entry by entry and names what both sides changed; or take one side back from version control. `selu git install` lets git merge the file so from then on.",
    example: "<<<<<<< HEAD",
};

/// No version, or none that is a number.
pub static VERSION: Code = Code {
    id: "SELU1003",
    name: "lock-version",
    severity: Severity::Error,
    rules: &["21", "26"],
    cause: "The first line of a lock says which version of the format it has: `version = 1`.",
    cure: "Take the last committed version, or delete the file and run `selu lock`.",
    example: r#"version = "1""#,
};

/// Written by a newer `selu`.
pub static VERSION_NEWER: Code = Code {
    id: "SELU1004",
    name: "lock-version-newer",
    severity: Severity::Error,
    rules: &["26"],
    cause: "The file has a version that this `selu` cannot read. It is left as it is.",
    cure: "Install a newer `selu`.",
    example: "version = 99",
};

/// The lock does not say what the directory says.
pub static STALE: Code = Code {
    id: "SELU1005",
    name: "lock-stale",
    severity: Severity::Error,
    rules: &["24", "25"],
    cause: "The directory was changed after the lock was written.",
    cure: "Run `selu lock`, review the difference and commit it.",
    example: "version = 1",
};

/// The codes of this family.
pub static ALL: &[&Code] = &[&SYNTAX, &CONFLICT, &VERSION, &VERSION_NEWER, &STALE];
