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
    /// What an error ends with: wrong usage and staleness are marked as such, everything else is a failure.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        error
            .downcast_ref::<Ending>()
            .map_or(Self::Failed, |ending| ending.exit)
    }

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

/// An error that does not end with 1.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Ending {
    message: String,
    exit: Exit,
}

impl Ending {
    /// Wrong usage that the argument parser cannot see.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit: Exit::Usage,
        }
    }

    /// A signal came before anything was begun.
    pub(crate) fn interrupted() -> Self {
        Self::interrupted_in("interrupted; nothing was changed")
    }

    /// A signal came, and this is what is known of the work at hand.
    pub(crate) fn interrupted_in(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit: Exit::Interrupted,
        }
    }

    /// What the plan was made from has changed.
    pub(crate) fn stale(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit: Exit::Stale,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
