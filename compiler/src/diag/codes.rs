//! Every code there is, a family a file.

use super::Code;

pub mod agent;
pub mod credentials;
pub mod discovery;
pub mod image;
pub mod layout;
pub mod lock;
pub mod manifest;
pub mod network;
pub mod plan;
pub mod settings;
pub mod tools;
pub mod yaml;

/// All codes, sorted by id.
pub fn all() -> Vec<&'static Code> {
    let mut codes: Vec<&'static Code> = [
        layout::ALL,
        yaml::ALL,
        manifest::ALL,
        tools::ALL,
        network::ALL,
        credentials::ALL,
        image::ALL,
        agent::ALL,
        settings::ALL,
        lock::ALL,
        plan::ALL,
        discovery::ALL,
    ]
    .concat();
    codes.sort_by_key(|code| code.id);
    codes
}
