//! What runs inside the gateway's container: `selu gateway …`.
//!
//! `run` is process 1. Where no rule opens anything it holds nothing at all; where one does, it is the privileged
//! `parent` of the `worker` that carries what leaves (S7). Everything else is an exec by the desk, so that engine
//! access is the authentication and nothing listens (S1): `policy` takes the policy and acknowledges it once it is gone
//! by (S8), `pipe` carries calls to one container, `log` shows what was carried. `hold` is the odd one out: it is all
//! that a hold's container runs (product.md 14).
//!
//! No role but the parent has a capability, and none can be looked into by another process of its user (S7, S3).

mod control;
mod devices;
mod host;
pub(crate) mod leaks;
mod netlink;
mod parent;
mod pipe;
pub mod policy;
pub mod record;
mod roles;
mod store;
mod wall;
mod worker;

pub use pipe::OPENED;
pub use roles::main;
pub use store::{POLICY_FOLDER, Store, StoreError};
pub use worker::{AddressKind, address_kind};

/// User and group of the roles that own the policy, and of process 1 where nothing is carried.
pub const RUN_USER: &str = "65532:65532";
const RUN_UID: u32 = 65_532;

/// User and group of the pipes and of the log: they read and can neither write nor look into process 1 (S7).
pub const PIPE_USER: &str = "65533:65533";
const PIPE_UID: u32 = 65_533;

/// User and group of the worker, which owns the log and the virtual addresses.
pub const WORKER_USER: &str = "65534:65534";
const WORKER_UID: u32 = 65_534;
