//! Image references (I): SELU0701–SELU0799.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
