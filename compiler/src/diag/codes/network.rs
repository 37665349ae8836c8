//! Network rules (N): SELU0501–SELU0599.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
