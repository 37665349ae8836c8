//! Where the policy lies: one file on the gateway's volume, replaced whole (S8).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::policy::{PolicyError, Sealed};

/// Where the volume is mounted.
pub const POLICY_FOLDER: &str = "/policy";

/// Why a policy was not taken.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is refused.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The volume failed.
    #[error("cannot {what} {}", .path.display())]
    File {
        /// Such as `write`.
        what: &'static str,
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A folder with at most one policy.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The store in a folder that exists.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The present policy. Missing, corrupt, of another protocol: an error, and then nothing is carried.
    pub fn load(&self) -> Result<Sealed, StoreError> {
        let path = self.file();
        match fs::read(&path) {
            Ok(bytes) => Ok(Sealed::read(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(PolicyError::Missing.into())
            }
            Err(source) => Err(StoreError::File {
                what: "read",
                path,
                source,
            }),
        }
    }

    /// Takes a delivery if it may follow the present policy. Deliveries wait for each other; readers see the old or
    /// the new one, never a part. Where this gateway `carries` nothing, a policy that opens something is refused.
    pub fn take(&self, delivery: &[u8], carries: bool) -> Result<Sealed, StoreError> {
        let offered = Sealed::read(delivery)?;
        if !carries && offered.policy.is_open() {
            return Err(PolicyError::Closed.into());
        }
        let lock = self.folder.join("lock");
        let guard = File::create(&lock).map_err(failed("open", &lock))?;
        flock(&guard, FlockOperation::LockExclusive)
            .map_err(|error| failed("lock", &lock)(error.into()))?;

        let present = match self.load() {
            Ok(present) => Some(present),
            Err(StoreError::Policy(_)) => None,
            Err(error) => return Err(error),
        };
        offered.may_follow(present.as_ref())?;
        if present.as_ref() != Some(&offered) {
            self.replace(&offered)?;
        }
        Ok(offered)
    }

    fn replace(&self, sealed: &Sealed) -> Result<(), StoreError> {
        let bytes =
            serde_json::to_vec(sealed).map_err(|error| PolicyError::Corrupt(error.to_string()))?;
        let new = self.folder.join("policy.json.new");
        let mut file = File::create(&new).map_err(failed("create", &new))?;
        file.write_all(&bytes).map_err(failed("write", &new))?;
        file.sync_all().map_err(failed("write", &new))?;
        fs::rename(&new, self.file()).map_err(failed("rename", &new))
    }

    fn file(&self) -> PathBuf {
        self.folder.join("policy.json")
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::File { what, path, source }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::policy::Policy;
    use super::*;

    fn delivery(generation: u64) -> Vec<u8> {
        let policy = Policy {
            project: "demo".to_owned(),
            generation,
            networks: BTreeMap::new(),
            refused: Vec::new(),
            ranges: Vec::new(),
        };
        serde_json::to_vec(&policy.seal().unwrap()).unwrap()
    }

    fn generation(store: &Store, number: u64) -> u64 {
        let taken = store.take(&delivery(number), true).unwrap();
        taken.policy.generation
    }

    #[test]
    fn a_gateway_that_carries_nothing_takes_no_policy_that_opens_something() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let mut sealed = Sealed::read(&delivery(1)).unwrap();
        let rule = serde_json::json!({
            "instance": "a/b",
            "subnet": "10.90.1.0/24",
            "capability": "10.90.1.2",
            "rules": {"mode": "any", "hosts": []},
            "private": [],
        });
        let rule = serde_json::from_value(rule).unwrap();
        let networks = &mut sealed.policy.networks;
        networks.insert("selu_demo_a_b_1".to_owned(), rule);
        let open = serde_json::to_vec(&sealed.policy.seal().unwrap()).unwrap();
        assert!(matches!(
            store.take(&open, false),
            Err(StoreError::Policy(PolicyError::Closed))
        ));
        assert!(store.load().is_err(), "it was not stored");
        assert!(store.take(&open, true).is_ok());
    }

    #[test]
    fn a_policy_out_of_turn_leaves_the_present_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        assert!(matches!(
            store.load(),
            Err(StoreError::Policy(PolicyError::Missing))
        ));
        assert_eq!(generation(&store, 1), 1);
        assert_eq!(generation(&store, 2), 2);
        assert!(matches!(
            store.take(&delivery(5), true),
            Err(StoreError::Policy(PolicyError::OutOfTurn { .. }))
        ));
        assert_eq!(store.load().unwrap().policy.generation, 2);
    }

    #[test]
    fn a_corrupt_policy_denies_and_can_be_made_good() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        generation(&store, 1);
        let file = folder.path().join("policy.json");
        let half = fs::read(&file).unwrap();
        fs::write(&file, &half[..half.len() / 2]).unwrap();
        assert!(matches!(
            store.load(),
            Err(StoreError::Policy(PolicyError::Corrupt(_)))
        ));
        assert_eq!(generation(&store, 7), 7);
        assert_eq!(store.load().unwrap().policy.generation, 7);
    }
}
