//! What the example servers share: the gRPC service of a capability (section 4 of the format) around plain functions.
//!
//! A server implements [`Tools`] and calls [`serve`] from `main`. It never sees gRPC: a call comes in as a [`Call`] with
//! checked JSON, goes out as JSON or a [`ToolError`], and a panic in one call is an error of that call alone.

mod call;
pub mod date;
mod service;

pub use call::{Call, ToolError, reply};
pub use service::serve;

/// The tools of one capability.
pub trait Tools: Send + Sync + 'static {
    /// Runs one tool to its end. It may block: each call has a thread of its own, so that health is answered meanwhile.
    fn call(&self, call: &Call) -> Result<serde_json::Value, ToolError>;
}
