//! Planning against an engine: SELU1101–SELU1199.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
