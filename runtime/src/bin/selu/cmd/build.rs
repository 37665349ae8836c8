//! `selu build`: local images from their container folders.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::Stdio;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::diff::Subject;
use selu_compiler::model::{Capability, InstanceKey};
use selu_compiler::plan::label;
use selu_compiler::source::{ContextFile, container_files, folder_hash};
use selu_runtime::engine::Labels;
use selu_runtime::events::{Event, Events, with_progress};
use selu_runtime::secrets::{KEY_VARIABLE, PREFIX};
use selu_runtime::stop::Stop;
use serde_json::{Value, json};

use crate::args::{BuildArgs, Cli};
use crate::exit::Exit;
use crate::hints::Hinted;
use crate::printer::{Printer, shown};
use crate::project::{Loaded, document, load};

/// Where the `prepare` command leaves what the build context needs besides the folder.
const OUT: &str = "SELU_BUILD_OUT";

/// Most that a `prepare` command may leave, in bytes.
const LARGEST_OUT: u64 = 1 << 30;

/// One image to build; a shared capability of several agents is one.
struct Job<'a> {
    key: InstanceKey,
    capability: &'a Capability,
    folder: &'a Utf8Path,
}

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &BuildArgs,
) -> anyhow::Result<Exit> {
    let Some(loaded) = load(cli, printer, &args.dir)? else {
        return Ok(Exit::Failed);
    };
    let jobs = jobs(&loaded, args.name.as_deref())?;
    let engine = loaded.engine(cli).await?;
    stop.begin_work();
    let (mut built, mut failed, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for job in &jobs {
        if stop.requested() {
            left.push(job.key.to_string());
            continue;
        }
        let build = build(&loaded, engine.as_ref(), printer, job);
        let result = tokio::select! {
            biased;
            () = stop.wait() => {
                left.push(job.key.to_string());
                continue;
            }
            result = build => result,
        };
        let subject = Subject::Instance(job.key.clone());
        match result {
            Ok(source) => {
                let image = job.capability.image.written.clone();
                printer.emit(Event::Done {
                    subject,
                    text: format!("built {image}"),
                });
                built.push(json!({ "instance": job.key, "image": image, "source": source }));
            }
            Err(error) => {
                let text = printer.clean(&format!("{error:#}"));
                printer.emit(Event::Failed {
                    subject,
                    text: text.clone(),
                });
                failed.push(json!({ "instance": job.key, "error": text }));
            }
        }
    }
    let exit = match (stop.requested(), built.is_empty(), failed.is_empty()) {
        (true, _, _) => Exit::Interrupted,
        (false, _, true) => Exit::Done,
        (false, true, false) => Exit::Failed,
        (false, false, false) => Exit::Partial,
    };
    let mut document = document(loaded.project.name.as_deref().unwrap_or_default());
    document.insert("built".to_owned(), Value::from(built));
    document.insert("failed".to_owned(), Value::from(failed));
    document.insert("not_started".to_owned(), left.into());
    document.insert("exit_code".to_owned(), exit.code().into());
    printer.json(&document.into());
    Ok(exit)
}

/// Builds the image of one capability.
pub(crate) async fn one(
    loaded: &Loaded,
    engine: &dyn selu_runtime::engine::Engine,
    printer: &Printer,
    name: &str,
) -> anyhow::Result<()> {
    for job in jobs(loaded, Some(name))? {
        build(loaded, engine, printer, &job).await?;
    }
    Ok(())
}

fn jobs<'a>(loaded: &'a Loaded, name: Option<&str>) -> anyhow::Result<Vec<Job<'a>>> {
    let wanted = |key: &InstanceKey| {
        name.is_none_or(|name| name == key.as_str() || name == key.capability())
    };
    let mut by_folder: BTreeMap<&Utf8Path, Job<'a>> = BTreeMap::new();
    let mut without_folder = Vec::new();
    for (key, _, capability) in loaded.project.instances().filter(|(key, ..)| wanted(key)) {
        match &capability.container {
            Some(folder) => {
                let folder = folder.path.as_path();
                by_folder.entry(folder).or_insert(Job {
                    key,
                    capability,
                    folder,
                });
            }
            None => without_folder.push(key.to_string()),
        }
    }
    if by_folder.is_empty() {
        let message = match (name, without_folder.first()) {
            (Some(_), Some(key)) => format!(
                "{key} has no container/ folder and no Dockerfile, so there is nothing to build"
            ),
            (Some(name), None) => format!("no capability is called `{name}`"),
            (None, _) => "no capability has a container/ folder or a Dockerfile".to_owned(),
        };
        let known: Vec<String> = loaded
            .project
            .instances()
            .filter(|(_, _, capability)| capability.container.is_some())
            .map(|(key, ..)| key.to_string())
            .collect();
        let hint = match known.as_slice() {
            [] => "put a Dockerfile into the capability's container/ folder".to_owned(),
            known => format!("these can be built: {}", known.join(", ")),
        };
        return Err(Hinted::new(message, hint).into());
    }
    let mut tags: BTreeMap<&str, &Job<'_>> = BTreeMap::new();
    for job in by_folder.values() {
        let image = &job.capability.image;
        if image.digest.is_some() {
            let message = format!(
                "{}: image {} names a digest, which no build can have",
                job.key, image.written
            );
            return Err(Hinted::new(message, "write a tag instead").into());
        }
        if let Some(other) = tags.insert(&image.written, job) {
            let message = format!(
                "{} and {} have different folders and the same image {}",
                other.key, job.key, image.written
            );
            return Err(Hinted::new(message, "give each its own image name").into());
        }
    }
    Ok(by_folder.into_values().collect())
}

async fn build(
    loaded: &Loaded,
    engine: &dyn selu_runtime::engine::Engine,
    printer: &Printer,
    job: &Job<'_>,
) -> anyhow::Result<String> {
    let files = container_files(&loaded.root, job.folder)?;
    // Of what is really packed, not of what was there when the project was read.
    let source = folder_hash(&files);
    let mut context: BTreeMap<Utf8PathBuf, ContextFile> = files
        .into_iter()
        .map(|file| (file.path.clone(), file))
        .collect();
    if !context.contains_key(Utf8Path::new("Dockerfile")) {
        anyhow::bail!("{} has no Dockerfile", job.folder);
    }
    if let Some(command) = loaded.project.settings.prepare.get(&job.key) {
        for file in prepare(loaded, printer, job, command).await? {
            let path = file.path.clone();
            if context.insert(path.clone(), file).is_some() {
                anyhow::bail!(
                    "`prepare` left {path} in ${OUT}, which {} has already",
                    job.folder
                );
            }
        }
    }
    let subject = Subject::Instance(job.key.clone());
    printer.emit(Event::Step {
        subject: subject.clone(),
        text: format!("building {}", job.capability.image.written),
    });
    let labels = Labels::from([(label::SOURCE.to_owned(), source.clone())]);
    let context = bytes::Bytes::from(pack(context.values())?);
    let tag = &job.capability.image.written;
    with_progress(
        async |lines| {
            engine
                .build(context, "Dockerfile", tag, &labels, lines)
                .await
        },
        |text| {
            printer.emit(Event::Progress {
                subject: subject.clone(),
                text,
            });
        },
    )
    .await?;
    Ok(source)
}

/// Runs the project's own command, shown before it runs: it is code from the directory.
async fn prepare(
    loaded: &Loaded,
    printer: &Printer,
    job: &Job<'_>,
    command: &[String],
) -> anyhow::Result<Vec<ContextFile>> {
    let (program, arguments) = command.split_first().context("`prepare` is empty")?;
    let out = tempfile::tempdir().context("no temporary folder for `prepare`")?;
    printer.say(&format!(
        "{}: running {}",
        job.key,
        shown(&command.join(" "))
    ));
    let mut process = tokio::process::Command::new(program);
    for (name, _) in std::env::vars_os() {
        // The directory's code is not who credentials are for (S4), nor the key of their store.
        let name_bytes = name.as_encoded_bytes();
        if name_bytes.starts_with(PREFIX.as_bytes())
            || name_bytes.starts_with(KEY_VARIABLE.as_bytes())
        {
            process.env_remove(name);
        }
    }
    let status = process
        .args(arguments)
        .current_dir(loaded.root.canonicalize_utf8()?)
        .env(OUT, out.path())
        .stdin(Stdio::null())
        // What it prints is talk.
        .stdout(Stdio::from(std::io::stderr()))
        .kill_on_drop(true)
        .status()
        .await
        .with_context(|| format!("`prepare` could not run {program}"))?;
    if !status.success() {
        anyhow::bail!("`prepare` failed: {status}");
    }
    let root =
        Utf8Path::from_path(out.path()).context("the temporary folder's path is not UTF-8")?;
    let mut files = Vec::new();
    let mut budget = LARGEST_OUT;
    collect(root, Utf8Path::new(""), &mut budget, &mut files)?;
    Ok(files)
}

fn collect(
    root: &Utf8Path,
    below: &Utf8Path,
    budget: &mut u64,
    files: &mut Vec<ContextFile>,
) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for entry in root.join(below).read_dir_utf8()? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let metadata = std::fs::symlink_metadata(entry.path())?;
        if metadata.is_dir() {
            collect(root, &path, budget, files)?;
        } else if metadata.is_file() {
            let mut bytes = Vec::new();
            std::fs::File::open(entry.path())?
                .take(*budget + 1)
                .read_to_end(&mut bytes)?;
            let size = bytes.len() as u64;
            *budget = budget
                .checked_sub(size)
                .with_context(|| format!("`prepare` left more than {LARGEST_OUT} bytes"))?;
            files.push(ContextFile {
                path,
                executable: metadata.permissions().mode() & 0o100 != 0,
                bytes,
            });
        } else {
            anyhow::bail!("`prepare` left {path}, which is neither a file nor a folder");
        }
    }
    Ok(())
}

/// The same bytes for the same files, on every machine.
fn pack<'a>(files: impl Iterator<Item = &'a ContextFile>) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, file.path.as_std_path(), file.bytes.as_slice())?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_prepare_left_is_taken_with_its_folders_and_execute_bits_and_nothing_else_is() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        std::fs::create_dir(root.join("bin")).unwrap();
        std::fs::write(root.join("bin/server"), "x").unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(root.join("bin/server"), executable).unwrap();
        std::fs::write(root.join("data"), "yz").unwrap();

        let take = |mut budget: u64| {
            let mut files = Vec::new();
            collect(root, Utf8Path::new(""), &mut budget, &mut files).map(|()| {
                files.sort_by(|a, b| a.path.cmp(&b.path));
                files
            })
        };
        let files = take(3).unwrap();
        let seen: Vec<(&str, bool)> = files
            .iter()
            .map(|file| (file.path.as_str(), file.executable))
            .collect();
        assert_eq!(seen, [("bin/server", true), ("data", false)]);
        assert!(take(2).is_err(), "more than it may leave");

        symlink("/etc/passwd", root.join("link")).unwrap();
        let error = take(3).unwrap_err().to_string();
        assert!(error.contains("link"), "{error}");
    }

    #[test]
    fn equal_files_are_packed_into_equal_bytes() {
        let file = ContextFile {
            path: "a/b".into(),
            executable: true,
            bytes: b"content".to_vec(),
        };
        let pack = || pack([&file].into_iter()).unwrap();
        assert_eq!(pack(), pack());
        let bytes = pack();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.header().mode().unwrap(), 0o755);
        assert_eq!(entry.header().mtime().unwrap(), 0);
    }
}
