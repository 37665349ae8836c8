//! Credentials (C): SELU0601–SELU0699.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
