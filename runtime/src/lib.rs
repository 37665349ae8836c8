//! The runtime: applies a plan to a container engine, discovers live tools and merges them into the lock.
//!
//! Everything that touches the world is here: engines, gRPC, the gateway, secrets. What to do is never decided here;
//! the plan says it (house rule 1).

pub mod apply;
pub mod archive;
pub mod bridge;
mod chain;
pub mod discover;
pub mod egress;
pub mod engine;
pub mod events;
pub mod gateway;
pub mod git;
pub mod hold;
pub mod invoke;
pub mod lockfile;
pub mod observe;
mod pins;
pub mod scaffold;
pub mod secrets;
pub mod slots;
pub mod state;
pub mod stop;
#[cfg(test)]
mod testing;
mod trust;
pub mod waiting;

pub use chain::chain;
