//! Tool schemas (T3).

use crate::diag::Problem;

/// Everything that is wrong with an `input_schema`, errors and warnings.
pub fn schema(value: &serde_json::Value) -> Vec<Problem> {
    let _ = value;
    Vec::new()
}
