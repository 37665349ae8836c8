//! Credential values at rest: `.selu/credentials.store`, encrypted and authenticated as a whole (product.md 29).
//!
//! The file begins with a line that says what it is, which key it needs and nothing else; what follows is a nonce and one
//! XChaCha20-Poly1305 message, so that not even names can be read or exchanged. A change is written beside it and renamed,
//! under a lock, so a reader sees the old or the new and two writers lose nothing.
//!
//! The key is not beside it: it comes from an environment variable, or from a file that nobody else may read. Several
//! keys may be there: the first one writes, all read. So a rotation can be cut off anywhere.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rustix::fs::{FlockOperation, flock};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use selu_compiler::model::InstanceKey;
use selu_compiler::plan::hash::sha256;
use serde::{Deserialize, Serialize};

use crate::state;

/// The variable that holds keys, 64 hex digits each, separated by commas.
pub const KEY_VARIABLE: &str = "SELU_STORE_KEY";

/// The variable that names the file of keys.
pub const KEY_FILE_VARIABLE: &str = "SELU_STORE_KEY_FILE";

/// The store, in the state folder.
const FILE: &str = "credentials.store";

/// What its first line begins with; the key's id follows.
const MAGIC: &str = "selu-credentials 1 ";

/// Version of what is inside.
const VERSION: u32 = 1;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// The largest store that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// Why the store or its key cannot be used. Never holds a value or a key.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("{path} cannot be {verb}")]
    Io {
        /// Which file.
        path: Utf8PathBuf,
        /// `read`, `written` or `locked`.
        verb: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Others may read the key.
    #[error(
        "{path} may be read by others (mode {mode:04o}); the key must be its owner's alone: `chmod 600 {path}`"
    )]
    Mode {
        /// The key file.
        path: Utf8PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// No key.
    #[error("{path} is encrypted, and there is no key: looked in {KEY_VARIABLE} and in {key_file}")]
    NoKey {
        /// The store.
        path: Utf8PathBuf,
        /// The key file.
        key_file: Utf8PathBuf,
    },
    /// A key of another form.
    #[error("{place} holds something else than keys of 64 hex digits")]
    BadKey {
        /// The variable or the file.
        place: String,
    },
    /// A key, but not this one.
    #[error("{path} was written with key {wanted}, and {place} holds {}", .found.join(", "))]
    OtherKey {
        /// The store.
        path: Utf8PathBuf,
        /// The id of the key that it needs.
        wanted: String,
        /// The variable or the file.
        place: String,
        /// The ids of the keys that are there.
        found: Vec<String>,
    },
    /// Bits differ, or bytes are missing.
    #[error(
        "{path} is damaged: it is not what was written, to the last bit; take it back from a copy, or remove it and set every credential anew"
    )]
    Damaged {
        /// The store.
        path: Utf8PathBuf,
    },
    /// Not a store, or one of a later version.
    #[error("{path} is no credential store that this selu knows")]
    Unknown {
        /// The store.
        path: Utf8PathBuf,
    },
    /// Random numbers are not to be had.
    #[error("the system gives no random numbers")]
    Random(#[source] io::Error),
    /// Larger than it may be.
    #[error("{path} would be larger than {LARGEST} bytes")]
    TooLarge {
        /// The store.
        path: Utf8PathBuf,
    },
}

/// Whose value it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The instance that declares it.
    pub instance: InstanceKey,
    /// The credential's name.
    pub name: String,
    /// The user; `None` for everybody's.
    pub user: Option<String>,
}

/// What is stored.
#[derive(Debug, Default)]
pub struct Stored {
    /// By whose they are.
    pub values: BTreeMap<Entry, SecretString>,
    /// Instance → what its values were granted to ([`super::grant()`]).
    pub grants: BTreeMap<InstanceKey, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: u32,
    values: Vec<WireEntry>,
    grants: BTreeMap<InstanceKey, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireEntry {
    instance: InstanceKey,
    name: String,
    user: Option<String>,
    value: String,
}

/// Keys, the one that writes first.
struct Keys {
    /// For messages.
    place: String,
    keys: Vec<SecretSlice<u8>>,
}

/// One project's store.
pub struct Store {
    path: Utf8PathBuf,
    /// What the variable says, if it is set.
    variable: Option<SecretString>,
    key_file: Utf8PathBuf,
}

impl Store {
    /// The store of the project in `root`. `variable` are keys by themselves; else `key_file` holds them.
    pub fn new(root: &Utf8Path, variable: Option<SecretString>, key_file: Utf8PathBuf) -> Self {
        Self {
            path: root.join(state::FOLDER).join(FILE),
            variable,
            key_file,
        }
    }

    /// Whether a project has one.
    pub fn is_in(root: &Utf8Path) -> bool {
        root.join(state::FOLDER).join(FILE).exists()
    }

    /// Where it is.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Everything in it; nothing if there is none.
    pub fn read(&self) -> Result<Stored, StoreError> {
        let Some(bytes) = self.bytes()? else {
            return Ok(Stored::default());
        };
        self.open(&bytes)
    }

    /// Changes it under a lock. A first value makes the key, where none was given.
    pub fn change<T>(&self, change: impl FnOnce(&mut Stored) -> T) -> Result<T, StoreError> {
        let _lock = self.lock()?;
        let mut stored = self.read()?;
        let result = change(&mut stored);
        self.write(&stored)?;
        Ok(result)
    }

    /// Encrypts it with another key. The file of keys first holds both, then the new one alone: whatever is cut off, one
    /// of the keys that are there reads what is there. Keys in the variable are the caller's own matter: the first of
    /// them writes.
    pub fn rotate(&self) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let stored = self.read()?;
        if self.variable.is_some() {
            return self.write(&stored);
        }
        let old = self.keys()?.map(|keys| keys.keys).unwrap_or_default();
        let new = fresh_key()?;
        let both = std::iter::once(&new).chain(&old);
        self.write_key_file(both)?;
        self.write(&stored)?;
        self.write_key_file(std::iter::once(&new))
    }

    fn bytes(&self) -> Result<Option<Vec<u8>>, StoreError> {
        match File::open(&self.path) {
            Ok(file) => {
                let mut bytes = Vec::new();
                let read = file.take(LARGEST + 1).read_to_end(&mut bytes);
                read.map_err(self.fail("read"))?;
                Ok(Some(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.fail("read")(error)),
        }
    }

    fn open(&self, bytes: &[u8]) -> Result<Stored, StoreError> {
        let path = || self.path.clone();
        let unknown = || StoreError::Unknown { path: path() };
        let damaged = || StoreError::Damaged { path: path() };
        let end = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or_else(damaged)?;
        let (header, rest) = bytes.split_at(end + 1);
        let line = std::str::from_utf8(header).map_err(|_| unknown())?;
        let wanted = line.strip_prefix(MAGIC).ok_or_else(unknown)?.trim_end();
        let keys = self.keys()?.ok_or_else(|| StoreError::NoKey {
            path: path(),
            key_file: self.key_file.clone(),
        })?;
        let key = keys.keys.iter().find(|key| id(key) == wanted);
        let Some(key) = key else {
            return Err(StoreError::OtherKey {
                path: path(),
                wanted: selu_compiler::diag::shown(wanted),
                place: keys.place,
                found: keys.keys.iter().map(id).collect(),
            });
        };
        let (nonce, message) = rest.split_at_checked(NONCE_BYTES).ok_or_else(damaged)?;
        let payload = Payload {
            msg: message,
            aad: header,
        };
        let cipher = cipher(key).ok_or_else(damaged)?;
        let opened = cipher.decrypt(XNonce::from_slice(nonce), payload);
        let opened = SecretSlice::from(opened.map_err(|_| damaged())?);
        let wire: Wire = serde_json::from_slice(opened.expose_secret()).map_err(|_| unknown())?;
        if wire.version != VERSION {
            return Err(unknown());
        }
        let values = wire.values.into_iter().map(|entry| {
            let WireEntry {
                instance,
                name,
                user,
                value,
            } = entry;
            let entry = Entry {
                instance,
                name,
                user,
            };
            (entry, SecretString::from(value))
        });
        Ok(Stored {
            values: values.collect(),
            grants: wire.grants,
        })
    }

    fn write(&self, stored: &Stored) -> Result<(), StoreError> {
        let wire = Wire {
            version: VERSION,
            values: stored
                .values
                .iter()
                .map(|(entry, value)| WireEntry {
                    instance: entry.instance.clone(),
                    name: entry.name.clone(),
                    user: entry.user.clone(),
                    value: value.expose_secret().to_owned(),
                })
                .collect(),
            grants: stored.grants.clone(),
        };
        let plain =
            serde_json::to_vec(&wire).map_err(|error| self.fail("written")(error.into()))?;
        let plain = SecretSlice::from(plain);
        let keys = match self.keys()? {
            Some(keys) => keys,
            None => {
                let key = fresh_key()?;
                self.write_key_file(std::iter::once(&key))?;
                Keys {
                    place: self.key_file.to_string(),
                    keys: vec![key],
                }
            }
        };
        let bad_key = || StoreError::BadKey {
            place: keys.place.clone(),
        };
        let key = keys.keys.first().ok_or_else(bad_key)?;
        let header = format!("{MAGIC}{}\n", id(key));
        let mut nonce = [0; NONCE_BYTES];
        random(&mut nonce)?;
        let payload = Payload {
            msg: plain.expose_secret(),
            aad: header.as_bytes(),
        };
        let cipher = cipher(key).ok_or_else(bad_key)?;
        let sealed = cipher.encrypt(XNonce::from_slice(&nonce), payload);
        let sealed = sealed.map_err(|_| StoreError::TooLarge {
            path: self.path.clone(),
        })?;
        let bytes = [header.as_bytes(), &nonce, &sealed].concat();
        if bytes.len() as u64 > LARGEST {
            return Err(StoreError::TooLarge {
                path: self.path.clone(),
            });
        }
        replace(&self.path, &bytes).map_err(self.fail("written"))
    }

    /// `None` if there are none.
    fn keys(&self) -> Result<Option<Keys>, StoreError> {
        if let Some(variable) = &self.variable {
            let place = KEY_VARIABLE.to_owned();
            let keys = parse(variable.expose_secret().split(','));
            let keys = keys.ok_or_else(|| StoreError::BadKey {
                place: place.clone(),
            })?;
            return Ok(Some(Keys { place, keys }));
        }
        let path = &self.key_file;
        let fail = |source| StoreError::Io {
            path: path.clone(),
            verb: "read",
            source,
        };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error)),
        };
        let mode = file.metadata().map_err(fail)?.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(StoreError::Mode {
                path: path.clone(),
                mode,
            });
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(fail)?;
        let text = SecretString::from(text);
        let place = path.to_string();
        let keys = parse(text.expose_secret().lines());
        let keys = keys.ok_or_else(|| StoreError::BadKey {
            place: place.clone(),
        })?;
        Ok(Some(Keys { place, keys }))
    }

    fn write_key_file<'a>(
        &self,
        keys: impl Iterator<Item = &'a SecretSlice<u8>>,
    ) -> Result<(), StoreError> {
        let text: String = keys.map(|key| hex(key.expose_secret()) + "\n").collect();
        let text = SecretString::from(text);
        let fail = |source| StoreError::Io {
            path: self.key_file.clone(),
            verb: "written",
            source,
        };
        if let Some(folder) = self.key_file.parent() {
            fs::create_dir_all(folder).map_err(fail)?;
        }
        replace(&self.key_file, text.expose_secret().as_bytes()).map_err(fail)
    }

    /// One writer at a time.
    fn lock(&self) -> Result<File, StoreError> {
        let folder = self.path.parent().unwrap_or(Utf8Path::new("."));
        state::prepare(folder).map_err(self.fail("written"))?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(folder.join("credentials.lock"))
            .map_err(self.fail("locked"))?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| self.fail("locked")(error.into()))?;
        Ok(lock)
    }

    fn fail(&self, verb: &'static str) -> impl FnOnce(io::Error) -> StoreError {
        let path = self.path.clone();
        move |source| StoreError::Io { path, verb, source }
    }
}

/// Written beside it, made durable, renamed: whoever reads sees the old bytes or the new ones, after a crash too.
fn replace(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_str().is_empty() => folder,
        _ => Utf8Path::new("."),
    };
    // A temporary file is its owner's alone.
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(bytes)?;
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    File::open(folder)?.sync_all()
}

fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Option<Vec<SecretSlice<u8>>> {
    let words = words.map(str::trim).filter(|word| !word.is_empty());
    let keys: Vec<SecretSlice<u8>> = words.map(unhex).collect::<Option<_>>()?;
    (!keys.is_empty()).then_some(keys)
}

fn unhex(text: &str) -> Option<SecretSlice<u8>> {
    let digits = text.as_bytes();
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let bytes: Option<Vec<u8>> = digits
        .chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
            _ => None,
        })
        .collect();
    bytes.map(SecretSlice::from)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What tells keys apart; nothing of a random key can be learnt from it.
fn id(key: &SecretSlice<u8>) -> String {
    let hash = sha256(&[b"selu store key: ", key.expose_secret()].concat());
    hash.trim_start_matches("sha256:")
        .chars()
        .take(16)
        .collect()
}

fn cipher(key: &SecretSlice<u8>) -> Option<XChaCha20Poly1305> {
    XChaCha20Poly1305::new_from_slice(key.expose_secret()).ok()
}

fn fresh_key() -> Result<SecretSlice<u8>, StoreError> {
    let mut key = vec![0; KEY_BYTES];
    random(&mut key)?;
    Ok(SecretSlice::from(key))
}

fn random(bytes: &mut [u8]) -> Result<(), StoreError> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let flags = rustix::rand::GetRandomFlags::empty();
        let got = rustix::rand::getrandom(&mut *rest, flags)
            .map_err(|error| StoreError::Random(error.into()))?;
        rest = rest.get_mut(got..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
