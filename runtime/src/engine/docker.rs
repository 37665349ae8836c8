//! The adapter for engines that speak Docker's API: Docker from 20.10 on, Podman in part.

mod act;
mod ask;
mod call;
mod create;
mod credentials;
mod find;
mod mark;
mod readback;
mod registry;
mod streams;
mod supported;
#[cfg(test)]
mod tests;
mod usage;
mod view;

pub use find::{Surroundings, connect, connect_in};

/// A Docker engine that has answered.
#[derive(Clone)]
pub struct Docker {
    api: bollard::Docker,
    /// Where it is, for errors and for people.
    address: String,
    /// Docker's own configuration, for registry credentials (product.md 20).
    config: Option<std::path::PathBuf>,
    limits: call::Limits,
    /// What registries and helpers have answered already.
    memory: std::sync::Arc<registry::Memory>,
    /// The engine's own id, once it was asked for.
    id: std::sync::Arc<tokio::sync::OnceCell<String>>,
}

impl Docker {
    /// Where the engine was found, such as `unix:///var/run/docker.sock`.
    pub fn address(&self) -> &str {
        &self.address
    }
}
