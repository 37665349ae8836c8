//! The MCP bridge over real gRPC, in front of servers that behave and misbehave (section 6 of the format). Needs Python 3
//! and no engine.

#![allow(
    clippy::unwrap_used,
    reason = "what helpers of tests cannot do fails the test"
)]
#![allow(
    clippy::print_stderr,
    reason = "what was skipped is for whoever runs them"
)]

mod credentials;
mod desk;
mod lists;
mod misbehaviour;
mod remote;
mod results;
