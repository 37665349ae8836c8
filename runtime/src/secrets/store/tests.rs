use std::os::unix::fs::PermissionsExt;

use super::*;

struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn root(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.folder.path().to_owned()).unwrap()
    }

    fn key_file(&self) -> Utf8PathBuf {
        self.root().join("elsewhere/store.key")
    }

    fn store(&self) -> Store {
        Store::new(&self.root(), None, self.key_file())
    }

    fn with_variable(&self, keys: &str) -> Store {
        Store::new(&self.root(), Some(keys.to_owned().into()), self.key_file())
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.store().path()).unwrap()
    }
}

fn entry(name: &str, user: Option<&str>) -> Entry {
    Entry {
        instance: InstanceKey::new("a", "b"),
        name: name.to_owned(),
        user: user.map(str::to_owned),
    }
}

fn put(store: &Store, name: &str, user: Option<&str>, value: &str) {
    store
        .change(|stored| {
            stored
                .values
                .insert(entry(name, user), value.to_owned().into())
        })
        .unwrap();
}

fn get(store: &Store, name: &str, user: Option<&str>) -> Option<String> {
    let stored = store.read().unwrap();
    let value = stored.values.get(&entry(name, user));
    value.map(|value| value.expose_secret().to_owned())
}

const PEM: &str = "-----BEGIN KEY-----\r\nabc=\n  padded \n\n";

#[test]
fn values_come_back_byte_by_byte_and_each_user_has_his_own() {
    let desk = Desk::new();
    let store = desk.store();
    assert!(store.read().unwrap().values.is_empty(), "no store yet");
    put(&store, "KEY", None, PEM);
    put(&store, "TOKEN", Some("anna"), "annas");
    put(&store, "TOKEN", Some("ben"), "bens");
    assert_eq!(get(&store, "KEY", None).as_deref(), Some(PEM));
    assert_eq!(get(&store, "TOKEN", Some("anna")).as_deref(), Some("annas"));
    assert_eq!(get(&store, "TOKEN", Some("ben")).as_deref(), Some("bens"));
    assert_eq!(get(&store, "TOKEN", None), None);
}

#[test]
fn nothing_of_it_can_be_read_and_the_files_are_their_owners_alone() {
    let desk = Desk::new();
    put(&desk.store(), "REVEALING_NAME", Some("anna"), "canary-88");
    let text = String::from_utf8_lossy(&desk.bytes()).into_owned();
    for part in ["canary-88", "REVEALING", "anna", "a/b"] {
        assert!(!text.contains(part), "{part}");
    }
    for file in [desk.store().path().to_owned(), desk.key_file()] {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
    // The same content is never written alike.
    let before = desk.bytes();
    put(&desk.store(), "REVEALING_NAME", Some("anna"), "canary-88");
    assert_ne!(before, desk.bytes());
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let desk = Desk::new();
    let store = desk.store();
    put(&store, "KEY", None, "value");
    let whole = desk.bytes();
    let refused = |bytes: &[u8], what: &str| {
        fs::write(store.path(), bytes).unwrap();
        assert!(store.read().is_err(), "{what}");
        assert!(store.change(|_| ()).is_err(), "{what} is not written over");
        assert_eq!(desk.bytes(), bytes, "{what} is left as it is");
    };
    for index in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[index] ^= 1;
        refused(&bytes, &format!("bit of byte {index}"));
    }
    for length in 0..whole.len() {
        refused(&whole[..length], &format!("cut to {length}"));
    }
    fs::write(store.path(), &whole).unwrap();
    assert_eq!(get(&store, "KEY", None).as_deref(), Some("value"));
}

#[test]
fn a_wrong_or_missing_key_says_which_is_needed() {
    let desk = Desk::new();
    let (one, two) = ("11".repeat(32), "22".repeat(32));
    put(&desk.with_variable(&one), "KEY", None, "value");
    assert!(!desk.key_file().exists(), "the variable is key enough");
    assert!(matches!(desk.store().read(), Err(StoreError::NoKey { .. })));
    let error = desk.with_variable(&two).read().unwrap_err();
    assert!(matches!(error, StoreError::OtherKey { .. }), "{error}");
    assert!(!error.to_string().contains(&two), "{error}");
    for bad in ["", "11", &one[1..], &format!("{one}x"), &"zz".repeat(32)] {
        let error = desk.with_variable(bad).read().unwrap_err();
        assert!(matches!(error, StoreError::BadKey { .. }), "{error}");
    }
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let desk = Desk::new();
    put(&desk.store(), "KEY", None, "value");
    let open = fs::Permissions::from_mode(0o640);
    fs::set_permissions(desk.key_file(), open).unwrap();
    let error = desk.store().read().unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
}

#[test]
fn a_rotation_leaves_one_new_key_and_all_values() {
    let desk = Desk::new();
    let store = desk.store();
    put(&store, "KEY", None, PEM);
    let old = fs::read_to_string(desk.key_file()).unwrap();
    store.rotate().unwrap();
    let new = fs::read_to_string(desk.key_file()).unwrap();
    assert_eq!((new.lines().count(), new.contains(old.trim())), (1, false));
    assert_eq!(get(&store, "KEY", None).as_deref(), Some(PEM));
    assert!(
        desk.with_variable(old.trim()).read().is_err(),
        "the old key reads nothing"
    );
}

#[test]
fn a_rotation_that_was_cut_off_anywhere_loses_nothing() {
    let desk = Desk::new();
    let store = desk.store();
    put(&store, "KEY", None, PEM);
    let old_key = fs::read_to_string(desk.key_file()).unwrap();
    let old_store = desk.bytes();
    store.rotate().unwrap();
    let new_key = fs::read_to_string(desk.key_file()).unwrap();
    let new_store = desk.bytes();
    let both = format!("{new_key}{old_key}");
    for (keys, bytes) in [
        (&old_key, &old_store),
        (&both, &old_store),
        (&both, &new_store),
        (&new_key, &new_store),
    ] {
        fs::write(desk.key_file(), keys).unwrap();
        fs::write(store.path(), bytes).unwrap();
        assert_eq!(get(&store, "KEY", None).as_deref(), Some(PEM));
        store.rotate().unwrap();
        assert_eq!(
            get(&store, "KEY", None).as_deref(),
            Some(PEM),
            "and once more"
        );
    }
    // With keys in the variable, the first of them writes.
    let (one, two) = ("11".repeat(32), "22".repeat(32));
    fs::remove_file(store.path()).unwrap();
    put(&desk.with_variable(&one), "KEY", None, "value");
    desk.with_variable(&format!("{two},{one}"))
        .rotate()
        .unwrap();
    assert_eq!(
        get(&desk.with_variable(&two), "KEY", None).as_deref(),
        Some("value")
    );
}

#[test]
fn two_writers_lose_nothing() {
    let desk = Desk::new();
    put(&desk.store(), "FIRST", None, "value");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = desk.store();
            scope.spawn(move || {
                for number in 0..10 {
                    put(&store, &format!("K{writer}_{number}"), None, "value");
                }
            });
        }
    });
    assert_eq!(desk.store().read().unwrap().values.len(), 41);
}

#[test]
fn another_file_in_its_place_is_not_taken_for_it() {
    let desk = Desk::new();
    put(&desk.store(), "KEY", None, "value");
    for text in ["", "{}\n", "selu-credentials 2 0000000000000000\nxxxx"] {
        fs::write(desk.store().path(), text).unwrap();
        assert!(desk.store().read().is_err(), "{text:?}");
    }
}
