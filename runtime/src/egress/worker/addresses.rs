//! The virtual addresses of one network: which name each of them stands for.
//!
//! An address belongs to its name for as long as the network exists, over restarts of the worker and of the gateway
//! (S9): what a container remembers never becomes another host. So each is written down before it is told.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use ipnet::Ipv4Net;

/// What the files' names end with.
const EXTENSION: &str = ".addresses";

/// Why a network has no virtual addresses.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressesError {
    /// The file failed.
    #[error("cannot {what} {}", .path.display())]
    File {
        /// Such as `write`.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds what was not written by us: which names the addresses belong to is not known any more.
    #[error("{}, line {line}: `{text}` is no assignment of an address; remove the file once the container is gone", .path.display())]
    Corrupt {
        /// Which.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A name that makes no file.
    #[error("{0:?} cannot be the name of a network")]
    Network(String),
}

/// The addresses of one network.
#[derive(Debug)]
pub(crate) struct Addresses {
    path: PathBuf,
    file: File,
    /// In the order of addresses; the first is the range's first.
    names: Vec<String>,
    by_name: HashMap<String, Ipv4Addr>,
    first: u32,
    most: usize,
}

impl Addresses {
    /// What `network` had before, or nothing yet. `range` is its upper half, whose last address is never given away.
    pub(crate) fn open(
        folder: &Path,
        network: &str,
        range: Ipv4Net,
    ) -> Result<Self, AddressesError> {
        let path = file(folder, network)?;
        let failed = |what| {
            let path = path.clone();
            move |source| AddressesError::File { what, path, source }
        };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed("read")(error)),
        };
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(failed("open"))?;
        // A line without its end was being written when everything stopped: nobody was told of it.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(failed("shorten"))?;

        let mut addresses = Self {
            path: path.clone(),
            file,
            names: Vec::new(),
            by_name: HashMap::new(),
            first: u32::from(range.network()),
            most: usize::try_from((1_u64 << (32 - range.prefix_len())) - 1).unwrap_or(usize::MAX),
        };
        for (index, line) in text[..whole].lines().enumerate() {
            let assigned = line.split_once(' ').filter(|(address, name)| {
                let next = addresses.next();
                next.is_some_and(|next| *address == next.to_string())
                    && !name.is_empty()
                    && !addresses.by_name.contains_key(*name)
            });
            let Some((_, name)) = assigned else {
                return Err(AddressesError::Corrupt {
                    path,
                    line: index + 1,
                    text: line.chars().take(80).collect(),
                });
            };
            addresses.keep(name);
        }
        Ok(addresses)
    }

    /// The address of a name that has one.
    pub(crate) fn of(&self, name: &str) -> Option<Ipv4Addr> {
        self.by_name.get(name).copied()
    }

    /// The name of an address.
    pub(crate) fn name(&self, address: Ipv4Addr) -> Option<&str> {
        let offset = u32::from(address).checked_sub(self.first)?;
        let index = usize::try_from(offset).ok()?;
        self.names.get(index).map(String::as_str)
    }

    /// Gives a name an address for good; `None` when there is none left.
    pub(crate) fn assign(&mut self, name: &str) -> Result<Option<Ipv4Addr>, AddressesError> {
        if let Some(address) = self.of(name) {
            return Ok(Some(address));
        }
        let Some(address) = self.next() else {
            return Ok(None);
        };
        // One write, so that a line is there or not.
        self.file
            .write_all(format!("{address} {name}\n").as_bytes())
            .map_err(|source| AddressesError::File {
                what: "write",
                path: self.path.clone(),
                source,
            })?;
        self.keep(name);
        Ok(Some(address))
    }

    fn next(&self) -> Option<Ipv4Addr> {
        if self.names.len() >= self.most {
            return None;
        }
        let offset = u32::try_from(self.names.len()).ok()?;
        Some(Ipv4Addr::from(self.first.checked_add(offset)?))
    }

    fn keep(&mut self, name: &str) {
        if let Some(address) = self.next() {
            self.names.push(name.to_owned());
            self.by_name.insert(name.to_owned(), address);
        }
    }
}

fn file(folder: &Path, network: &str) -> Result<PathBuf, AddressesError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if network.is_empty() || !network.bytes().all(plain) {
        return Err(AddressesError::Network(network.to_owned()));
    }
    Ok(folder.join(format!("{network}{EXTENSION}")))
}

/// Forgets the networks that are gone.
pub(crate) fn forget(folder: &Path, stays: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let network = name.to_str().and_then(|name| name.strip_suffix(EXTENSION));
        if network.is_some_and(|network| !stays(network)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path) -> Result<Addresses, AddressesError> {
        Addresses::open(folder, "selu_p_a_b_1", "10.231.0.8/29".parse().unwrap())
    }

    fn text(address: Option<Ipv4Addr>) -> String {
        address.map(|a| a.to_string()).unwrap_or_default()
    }

    #[test]
    fn an_address_keeps_its_name_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut addresses = open(folder.path()).unwrap();
        let a = addresses.assign("a.example.com").unwrap();
        let b = addresses.assign("b.example.com").unwrap();
        assert_eq!(text(a), "10.231.0.8");
        assert_eq!(text(b), "10.231.0.9");
        assert_eq!(addresses.assign("a.example.com").unwrap(), a);
        drop(addresses);

        let mut again = open(folder.path()).unwrap();
        assert_eq!(again.of("b.example.com"), b);
        assert_eq!(again.name(a.unwrap()), Some("a.example.com"));
        assert_eq!(text(again.assign("c.example.com").unwrap()), "10.231.0.10");
    }

    #[test]
    fn the_last_address_of_the_range_is_never_given_away() {
        let folder = tempfile::tempdir().unwrap();
        let mut addresses = open(folder.path()).unwrap();
        for n in 0..7 {
            assert!(addresses.assign(&format!("n{n}")).unwrap().is_some());
        }
        assert_eq!(addresses.assign("n7").unwrap(), None);
        assert_eq!(addresses.name("10.231.0.15".parse().unwrap()), None);
        assert_eq!(addresses.name("10.231.0.7".parse().unwrap()), None);
        assert_eq!(text(addresses.assign("n6").unwrap()), "10.231.0.14");
    }

    #[test]
    fn a_torn_line_is_dropped_and_a_foreign_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("selu_p_a_b_1.addresses");
        fs::write(&path, "10.231.0.8 a.example.com\n10.231.0.9 b.exa").unwrap();
        let mut addresses = open(folder.path()).unwrap();
        assert_eq!(
            text(addresses.assign("c.example.com").unwrap()),
            "10.231.0.9"
        );
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "10.231.0.8 a.example.com\n10.231.0.9 c.example.com\n"
        );
        for wrong in [
            "10.231.0.9 a\n",
            "10.231.0.8 a\n10.231.0.8 b\n",
            "10.231.0.8 a\n10.231.0.9 a\n",
            "10.231.0.8\n",
            "10.231.0.8 \n",
            "\n",
        ] {
            fs::write(&path, wrong).unwrap();
            let error = open(folder.path()).unwrap_err();
            assert!(matches!(error, AddressesError::Corrupt { .. }), "{wrong:?}");
        }
    }

    #[test]
    fn networks_that_are_gone_are_forgotten_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["gone.addresses", "stays.addresses", "gone.log"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        forget(folder.path(), |network| network == "stays").unwrap();
        assert!(!folder.path().join("gone.addresses").exists());
        assert!(folder.path().join("stays.addresses").exists());
        assert!(folder.path().join("gone.log").exists());
    }

    #[test]
    fn a_network_name_cannot_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["../x", "a/b", "", ".", "a.b"] {
            let opened = Addresses::open(folder.path(), name, "10.0.0.8/29".parse().unwrap());
            assert!(matches!(opened, Err(AddressesError::Network(_))), "{name}");
        }
    }
}
