//! Binaries of results, kept until they are fetched or newer ones need the room.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rustix::rand::{GetRandomFlags, getrandom};

use super::error::CallError;

/// Bytes that all of them may have together. A container has little memory, and the MCP server lives in it, too.
const ROOM: usize = 32 * 1024 * 1024;

/// One binary.
pub(super) struct Artifact {
    id: String,
    pub(super) name: String,
    pub(super) mime_type: String,
    pub(super) bytes: Bytes,
}

/// The newest ones.
#[derive(Default)]
pub(super) struct Artifacts(Mutex<VecDeque<Arc<Artifact>>>);

impl Artifacts {
    /// Keeps one, and forgets the oldest where there is no room. The id can't be guessed: another caller of the same
    /// container must be told it.
    pub(super) fn keep(
        &self,
        name: &str,
        mime_type: &str,
        bytes: Vec<u8>,
    ) -> Result<String, CallError> {
        let mut random = [0; 16];
        getrandom(&mut random, GetRandomFlags::empty()).map_err(|error| CallError::Unusable {
            problem: format!("no random number for an artifact's id: {error}"),
        })?;
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut kept = self.kept();
        kept.push_back(Arc::new(Artifact {
            id: id.clone(),
            name: name.to_owned(),
            mime_type: mime_type.to_owned(),
            bytes: bytes.into(),
        }));
        let mut sum: usize = kept.iter().map(|artifact| artifact.bytes.len()).sum();
        while sum > ROOM
            && kept.len() > 1
            && let Some(oldest) = kept.pop_front()
        {
            sum -= oldest.bytes.len();
        }
        Ok(id)
    }

    /// The one with this id, if it is still there.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Artifact>> {
        self.kept()
            .iter()
            .find(|artifact| artifact.id == id)
            .cloned()
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Arc<Artifact>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_ones_go_when_there_is_no_room() {
        let artifacts = Artifacts::default();
        let keep = |size| artifacts.keep("a", "b", vec![0; size]).unwrap();
        let (first, second) = (keep(ROOM / 2), keep(ROOM / 2));
        assert_ne!(first, second);
        assert!(artifacts.find(&first).is_some());
        let third = keep(1);
        assert!(artifacts.find(&first).is_none());
        assert!(artifacts.find(&second).is_some() && artifacts.find(&third).is_some());
    }
}
