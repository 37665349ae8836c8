//! Layout of the directory (L): SELU0101–SELU0199.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
