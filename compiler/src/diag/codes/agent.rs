//! agent.yaml (A): SELU0801–SELU0899.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
