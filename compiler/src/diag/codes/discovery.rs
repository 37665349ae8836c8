//! Discovered tools (D): SELU1201–SELU1299.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
