//! Tool names (T2).

use crate::diag::Problem;

/// Everything that is wrong with a tool's name in that capability.
pub fn name(capability: &str, tool: &str) -> Vec<Problem> {
    let _ = (capability, tool);
    Vec::new()
}
