//! The compiler: a directory, a lock and facts in; diagnostics, a [`plan::Plan`], a [`diff::ChangeSet`] and a
//! [`lock::Lock`] out.
//!
//! It is pure. It knows no engine, no gRPC, no async, no network, no clock, no environment variable and no randomness,
//! and a test keeps it so. Files are read in [`source`] only. What the world alone knows reaches it as [`observed`]
//! facts.

pub mod check;
pub mod diag;
pub mod diff;
pub mod graph;
pub mod lock;
pub mod model;
pub mod observed;
pub mod package;
mod parallel;
pub mod plan;
pub mod policy;
pub mod report;
pub mod resolve;
pub mod review;
pub mod source;
pub mod yaml;
