//! Discovery results (D1, D7): untrusted bytes from a container.

pub(crate) mod json;

use std::collections::BTreeMap;

use crate::diag::Problem;
use crate::model::Tool;

/// A discovery result without doubt.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovered {
    /// By name.
    pub tools: BTreeMap<String, Tool>,
    /// Warnings and notes: what was dropped, what is legal but odd. Pointers are into the result.
    pub notes: Vec<Problem>,
}

/// Reads what a discovery tool returned. One bad item fails it whole (D1).
///
/// # Errors
/// Every problem of the result, errors and warnings, if at least one is an error.
pub fn discovered(
    capability: &str,
    discovery_tool: &str,
    result: &[u8],
) -> Result<Discovered, Vec<Problem>> {
    let _ = (capability, discovery_tool, result);
    Err(Vec::new())
}
