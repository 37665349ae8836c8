//! Raw → Checked, a rule family a file; every problem is collected.

pub mod credential;
pub mod discovered;
pub mod image;
pub mod network;
pub mod schema;
pub mod tool;
