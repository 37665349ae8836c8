//! Proofs on a real engine. They need one, found as `selu` finds it; without one they fail and say so.
//!
//! Everything that they make belongs to a project of its own per test and is removed at its end, passed or failed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what helpers of tests cannot do fails the test"
)]

mod capability;
mod contract;
mod drift;
mod gateway;
mod hold;
mod networks;
mod volumes;
mod world;
