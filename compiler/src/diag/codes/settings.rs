//! selu.toml: SELU0901–SELU0999.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
