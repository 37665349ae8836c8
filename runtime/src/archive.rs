//! A tar.gz whose bytes are the same on every machine: no time, no owner, fixed modes, sorted, and stored without
//! compression, so that they do not change with a compressor's version either.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use flate2::{Compression, GzBuilder};

/// RFC 1952: made on a system that is not said.
const NO_SYSTEM: u8 = 255;

/// Packs text files below one folder, as which they will all lie in the archive.
///
/// # Errors
/// When a path is longer than an archive can have.
pub fn tar_gz(folder: &str, files: &BTreeMap<Utf8PathBuf, String>) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(text.len() as u64);
        let path = Utf8Path::new(folder).join(path);
        archive.append_data(&mut header, path.as_std_path(), text.as_bytes())?;
    }
    let mut gzip = GzBuilder::new()
        .mtime(0)
        .operating_system(NO_SYSTEM)
        .write(Vec::new(), Compression::none());
    gzip.write_all(&archive.into_inner()?)?;
    gzip.finish()
}
