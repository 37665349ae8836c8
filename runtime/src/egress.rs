//! What runs inside the gateway's container: `selu gateway …`.
//!
//! `run` is process 1 and holds nothing. Everything else is an exec by the desk, so that engine access is the
//! authentication and nothing listens (S1): `policy` takes and acknowledges the policy (S8), `pipe` carries calls to
//! one container. `hold` is the odd one out: it is all that a hold's container runs (product.md 14).
//!
//! No role has a capability, and none can be looked into by another process of its user (S7, S3).

mod control;
mod pipe;
pub mod policy;
pub mod record;
mod roles;
mod store;
mod worker;

pub use pipe::OPENED;
pub use roles::main;
pub use store::{POLICY_FOLDER, Store, StoreError};

/// User and group of process 1, which owns the policy.
pub const RUN_USER: &str = "65532:65532";

/// User and group of the pipes: they read the policy and can neither write it nor look into process 1 (S7).
pub const PIPE_USER: &str = "65533:65533";
