//! One file per command.

pub(crate) mod apply;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod credentials;
pub(crate) mod destroy;
pub(crate) mod diff;
pub(crate) mod egress;
pub(crate) mod explain;
pub(crate) mod invoke;
pub(crate) mod lock;
pub(crate) mod logs;
pub(crate) mod plan;
pub(crate) mod schema;
pub(crate) mod sessions;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod sync;
pub(crate) mod tools;
