//! Exit codes, the same for every command and fixed for good.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or nothing to do.
    Done,
    /// Diagnostics, or a failed operation.
    Failed,
    /// Differences, where the caller asked to be told.
    Differs,
    /// Something is done and something failed; the report says which.
    Partial,
    /// What the plan was made from has changed.
    Stale,
    /// Wrong usage.
    Usage,
    /// Interrupted, things left consistent.
    Interrupted,
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Differs => 2,
            Self::Partial => 3,
            Self::Stale => 4,
            Self::Usage => 64,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
