//! Credential names (C1).

use crate::diag::Problem;

/// Everything that is wrong with a credential's name.
pub fn name(text: &str) -> Vec<Problem> {
    let _ = text;
    Vec::new()
}
