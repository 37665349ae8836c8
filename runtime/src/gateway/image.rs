//! The gateway's image, made from the running executable: nothing has to be pulled to enforce a rule.

use std::path::{Path, PathBuf};

use selu_compiler::observed::EngineFacts;
use selu_compiler::plan::hash::{sha256, sha256_hex};
use selu_compiler::plan::label;
use serde_json::json;

use crate::egress::record::LOG_FOLDER;
use crate::egress::{POLICY_FOLDER, RUN_USER};

/// A folder of the image that belongs to 1000:1000, as what a capability writes to must (F4).
pub(super) const HANDED_FOLDER: &str = "/workspace";

/// Why the image cannot be made here.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The executable is out of reach.
    #[error("cannot read the running executable {}", .path.display())]
    Executable {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It would not start in an empty container.
    #[error(
        "the gateway's image is made from the running executable, and {} cannot serve: {reason}",
        .path.display()
    )]
    Unfit {
        /// The executable.
        path: PathBuf,
        /// Why, and the way out.
        reason: String,
    },
    /// The engine runs on other machines.
    #[error(
        "the engine's platform is {engine} and this executable is for {ours}: run `selu` on a machine of the engine's \
         platform"
    )]
    Platform {
        /// The engine's.
        engine: String,
        /// This executable's.
        ours: String,
    },
    /// Writing to memory failed.
    #[error("cannot write the image archive")]
    Archive(#[from] std::io::Error),
}

/// Whether this executable runs on the engine.
pub(super) fn check_platform(engine: &EngineFacts) -> Result<(), ImageError> {
    let ours = architecture();
    if engine.architecture == ours && cfg!(target_os = "linux") {
        return Ok(());
    }
    Err(ImageError::Platform {
        engine: format!("linux/{}", engine.architecture),
        ours: format!("{}/{ours}", std::env::consts::OS),
    })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A `docker save` archive of the gateway's image: this executable as `/selu` in an otherwise empty image. Equal bytes
/// for equal executables.
pub fn image_archive(tag: &str, project: &str) -> Result<Vec<u8>, ImageError> {
    image_archive_of(Path::new("/proc/self/exe"), tag, project)
}

/// The same from another executable.
pub fn image_archive_of(
    executable: &Path,
    tag: &str,
    project: &str,
) -> Result<Vec<u8>, ImageError> {
    let content = std::fs::read(executable).map_err(|source| ImageError::Executable {
        path: executable.to_owned(),
        source,
    })?;
    let shown = std::fs::read_link(executable).unwrap_or_else(|_| executable.to_owned());
    check_static(&shown, &content)?;
    Ok(archive(tag, project, &content)?)
}

fn archive(tag: &str, project: &str, executable: &[u8]) -> Result<Vec<u8>, std::io::Error> {
    let layer = layer(executable)?;
    let diff_id = sha256(&layer);
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "Entrypoint": ["/selu"],
            "Labels": { label::PROJECT: project },
            "User": RUN_USER,
            "WorkingDir": "/",
        },
        "rootfs": { "type": "layers", "diff_ids": [diff_id] },
        "history": [{ "created_by": "selu" }],
    });
    let config = serde_json::to_vec(&config)?;
    let config_name = format!("{}.json", sha256_hex(&config));
    let manifest = json!([{
        "Config": config_name,
        "RepoTags": [tag],
        "Layers": ["layer.tar"],
    }]);

    let mut archive = tar::Builder::new(Vec::new());
    append(
        &mut archive,
        "manifest.json",
        Entry::file(0o444),
        &serde_json::to_vec(&manifest)?,
    )?;
    append(&mut archive, &config_name, Entry::file(0o444), &config)?;
    append(&mut archive, "layer.tar", Entry::file(0o444), &layer)?;
    archive.into_inner()
}

fn layer(executable: &[u8]) -> Result<Vec<u8>, std::io::Error> {
    let mut layer = tar::Builder::new(Vec::new());
    let handed = HANDED_FOLDER.trim_start_matches('/');
    let policy = POLICY_FOLDER.trim_start_matches('/');
    append(&mut layer, handed, Entry::folder(1000), &[])?;
    let log = LOG_FOLDER.trim_start_matches('/');
    append(&mut layer, policy, Entry::folder(65532), &[])?;
    append(&mut layer, log, Entry::folder(65534), &[])?;
    append(&mut layer, "selu", Entry::file(0o555), executable)?;
    layer.into_inner()
}

/// Kind, mode and owner of an entry.
struct Entry {
    kind: tar::EntryType,
    mode: u32,
    owner: u64,
}

impl Entry {
    fn file(mode: u32) -> Self {
        Self {
            kind: tar::EntryType::Regular,
            mode,
            owner: 0,
        }
    }

    fn folder(owner: u64) -> Self {
        Self {
            kind: tar::EntryType::Directory,
            mode: 0o755,
            owner,
        }
    }
}

fn append(
    archive: &mut tar::Builder<Vec<u8>>,
    name: &str,
    entry: Entry,
    content: &[u8],
) -> Result<(), std::io::Error> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(entry.kind);
    header.set_mode(entry.mode);
    header.set_uid(entry.owner);
    header.set_gid(entry.owner);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    archive.append_data(&mut header, name, content)
}

/// Whether an ELF file starts in a container that holds nothing else: it names no interpreter.
fn check_static(path: &Path, file: &[u8]) -> Result<(), ImageError> {
    let unfit = |reason: &str| {
        Err(ImageError::Unfit {
            path: path.to_owned(),
            reason: reason.to_owned(),
        })
    };
    match names_interpreter(file) {
        Some(false) => Ok(()),
        Some(true) => unfit(
            "it is linked dynamically; use a static build (`-C target-feature=+crt-static`, as this project's own \
             .cargo/config.toml sets it)",
        ),
        None => unfit("it is no 64-bit little-endian ELF file"),
    }
}

/// Whether a 64-bit little-endian ELF file has a `PT_INTERP` header; `None` for anything else.
fn names_interpreter(file: &[u8]) -> Option<bool> {
    const PT_INTERP: u64 = 3;
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let slice = file.get(at..at.checked_add(bytes)?)?;
        Some(
            slice
                .iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        )
    };
    if file.get(..6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let table = usize::try_from(number(32, 8)?).ok()?;
    let size = usize::try_from(number(54, 2)?).ok()?;
    let count = usize::try_from(number(56, 2)?).ok()?;
    for index in 0..count {
        let at = table.checked_add(index.checked_mul(size)?)?;
        if number(at, 4)? == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn elf(header_type: u8) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        file[32] = 64;
        file[54] = 56;
        file[56] = 1;
        file[64] = header_type;
        file
    }

    #[test]
    fn a_dynamically_linked_executable_is_refused_with_the_cure() {
        let path = Path::new("/usr/bin/selu");
        assert!(check_static(path, &elf(1)).is_ok());
        let message = check_static(path, &elf(3)).unwrap_err().to_string();
        assert!(message.contains("/usr/bin/selu"), "{message}");
        assert!(message.contains("crt-static"), "{message}");
        assert!(check_static(path, b"#!/bin/sh").is_err());
        assert!(check_static(path, &elf(1)[..66]).is_err(), "cut short");
    }

    #[test]
    fn the_archive_is_equal_for_equal_executables_and_its_folders_belong_to_their_users() {
        let one = archive("selu.local/demo/gateway:1", "demo", b"binary").unwrap();
        assert_eq!(
            one,
            archive("selu.local/demo/gateway:1", "demo", b"binary").unwrap()
        );
        let mut layer = Vec::new();
        for entry in tar::Archive::new(one.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            if entry.path().unwrap() == Path::new("layer.tar") {
                entry.read_to_end(&mut layer).unwrap();
            }
        }
        let found: Vec<(String, u64, u32)> = tar::Archive::new(layer.as_slice())
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                (
                    entry.path().unwrap().display().to_string(),
                    header.uid().unwrap(),
                    header.mode().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("workspace".to_owned(), 1000, 0o755),
                ("policy".to_owned(), 65532, 0o755),
                ("egress".to_owned(), 65534, 0o755),
                ("selu".to_owned(), 0, 0o555),
            ]
        );
    }

    #[test]
    fn an_engine_of_another_platform_is_refused() {
        let facts = |architecture: &str| EngineFacts {
            architecture: architecture.to_owned(),
            ..EngineFacts::default()
        };
        assert!(check_platform(&facts(architecture())).is_ok());
        let message = check_platform(&facts("s390x")).unwrap_err().to_string();
        assert!(message.contains("linux/s390x"), "{message}");
    }
}
