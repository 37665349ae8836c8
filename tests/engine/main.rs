//! Proofs on a real engine. They need one, found as `selu` finds it; without one they fail and say so.
//!
//! Everything that they make belongs to a project of its own per test and is removed at its end, passed or failed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what helpers of tests cannot do fails the test"
)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tables, measurements and what was skipped are for whoever runs them"
)]

mod call;
mod canary;
mod capability;
mod ci;
mod contract;
mod cuts;
mod cutting;
mod daemon;
mod drift;
mod drift_table;
mod egress_lab;
mod engines;
mod faults;
mod field;
mod field_calls;
mod gateway;
mod hardening;
mod hold;
mod invoke;
mod isolation;
mod leaks;
mod limits;
mod local_user;
mod main_job;
mod mcp;
mod messages;
mod networks;
mod new_mcp;
mod older;
mod ownership;
mod plans;
#[path = "../program.rs"]
mod program;
mod project;
mod registry;
mod registry_answers;
mod robust;
mod service;
mod sessions;
mod shared;
mod volumes;
mod waiting;
mod world;
