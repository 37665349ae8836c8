//! YAML itself (L5): SELU0201–SELU0299.

use crate::diag::Code;

/// The codes of this family.
pub static ALL: &[&Code] = &[];
