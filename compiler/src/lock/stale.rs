//! Lock × Plan → why the lock is stale.

use super::Lock;
use crate::model::InstanceKey;
use crate::plan::Plan;

/// One reason why a lock does not say what the directory says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stale {
    /// In the directory, not in the lock.
    Missing(InstanceKey),
}

/// Every difference between what the lock says and what the directory says.
pub fn stale(lock: Option<&Lock>, plan: &Plan) -> Vec<Stale> {
    let _ = (lock, plan);
    Vec::new()
}
