//! Image references (I0–I2).

use crate::diag::Problem;
use crate::model::ImageReference;

/// Reads an image reference; `None` when any problem is an error.
pub fn image(text: &str) -> (Option<ImageReference>, Vec<Problem>) {
    let _ = text;
    (None, Vec::new())
}
