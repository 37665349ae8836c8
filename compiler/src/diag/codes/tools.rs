//! Tools and their schemas (T): SELU0401–SELU0499.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
