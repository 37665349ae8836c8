//! Egress rules (N1–N6).

use crate::diag::Problem;
use crate::model::{Network, NetworkMode};

/// Checks and normalises egress rules; `None` when any entry is wrong, so that a list never falls open (D19).
pub fn network(mode: NetworkMode, hosts: &[String]) -> (Option<Network>, Vec<Problem>) {
    let _ = (mode, hosts);
    (None, Vec::new())
}
