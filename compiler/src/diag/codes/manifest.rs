//! manifest.yaml: fields, limits, filesystem (M, F, R): SELU0301–SELU0399.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
