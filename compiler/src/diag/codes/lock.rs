//! selu.lock: SELU1001–SELU1099.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
