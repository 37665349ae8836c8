//! Text → lock, strictly.

use super::Lock;

/// Why a lock cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct LockError {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

impl Lock {
    /// Reads selu.lock.
    ///
    /// # Errors
    /// When the text is not a lock of this version.
    pub fn read(text: &str) -> Result<Self, LockError> {
        let _ = text;
        Err(LockError {
            line: 1,
            column: 1,
            message: String::new(),
        })
    }

    /// Writes it, canonically; with CRLF line ends where the previous text had them.
    pub fn write(&self, previous: Option<&str>) -> String {
        let _ = previous;
        String::new()
    }
}
