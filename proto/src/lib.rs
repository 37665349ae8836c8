//! The gRPC service `selu.capability.v1.Capability` (section 4 of the format), client and server side.

/// Version 1 of the service, as generated from `selu/capability/v1/capability.proto`, and its older dialect (W4) from
/// `older.proto` beside it.
#[allow(missing_docs, clippy::all, unreachable_pub)]
pub mod v1 {
    tonic::include_proto!("selu.capability.v1");
}

/// The port on which every capability serves, plaintext, inside its container.
pub const PORT: u16 = 50051;

/// Largest message either way, in bytes (W3).
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
