//! Once per engine, its version and its boot: whether it keeps containers in (security.md S13).

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use selu_compiler::observed::{EngineFacts, Observed};
use selu_compiler::plan::Plan;
use selu_compiler::plan::hash::sha256_hex;
use selu_compiler::resolve::probe_subnets;
use selu_runtime::engine::Engine;
use selu_runtime::gateway::leaks::{LeakError, probe};

use crate::hints::Hinted;
use crate::printer::Printer;

/// Which engines were probed, a line each.
const FILE: &str = "selu/probed-engines";

/// Probes unless this engine was probed since its machine was started, and refuses where anything is open. Under the
/// hold, which says which boot of its machine this is.
pub(crate) async fn ensure(
    printer: &Printer,
    engine: &dyn Engine,
    boot: Option<&str>,
    plan: &Plan,
    observed: &Observed,
) -> anyhow::Result<()> {
    let Some(gateway) = &plan.gateway else {
        return Ok(());
    };
    let line = boot.map(|boot| identity(&observed.engine, boot));
    // Without a home, or a boot to tell apart, nothing is remembered.
    let remembered = state_folder().map(|folder| folder.join(FILE)).zip(line);
    if let Some((file, line)) = &remembered
        && is_noted(file, line)?
    {
        return Ok(());
    }
    printer.say("Probing once whether this engine keeps containers in.");
    let Some(subnets) = probe_subnets(plan, observed) else {
        return Err(Hinted::new(
            "there is no room for the networks of the leak probe",
            "widen `[engine] subnets` in selu.toml, or remove networks that are not used any more",
        )
        .into());
    };
    match probe(engine, &plan.project, &gateway.spec.image, subnets).await {
        Ok(unproven) => {
            for what in unproven {
                printer.warn(&format!(
                    "the leak probe can't show that this is shut, because it answers from nowhere: {what}"
                ));
            }
        }
        Err(error @ LeakError::Leaks { .. }) => {
            let hint = "nothing was started; use a Docker engine that manages its host's packet filter (not rootless, \
                        not with `iptables: false`), and restart it if the filter was flushed";
            return Err(Hinted::new(error.to_string(), hint).into());
        }
        Err(error) => return Err(error.into()),
    }
    if let Some((file, line)) = &remembered
        && let Err(error) = note(file, line)
    {
        // It is probed again the next time, and nothing worse.
        printer.warn(&format!("{} could not be written: {error}", file.display()));
    }
    Ok(())
}

/// Of this build too: a later one may probe for more.
fn identity(engine: &EngineFacts, boot: &str) -> String {
    let EngineFacts { id, version, .. } = engine;
    let parts = [id.as_str(), version, boot, env!("CARGO_PKG_VERSION")];
    sha256_hex(parts.join("\n").as_bytes())
}

fn state_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

fn is_noted(file: &Path, line: &str) -> io::Result<bool> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text.lines().any(|noted| noted == line)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn note(file: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_engine_version_or_boot_is_probed_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b");
        let engine = EngineFacts {
            id: "X".to_owned(),
            version: "Docker 1".to_owned(),
            ..EngineFacts::default()
        };
        let line = identity(&engine, "boot-1");
        assert!(!is_noted(&file, &line).unwrap());
        note(&file, &line).unwrap();
        assert!(is_noted(&file, &line).unwrap());
        assert!(!is_noted(&file, &identity(&engine, "boot-2")).unwrap());
        for other in [
            EngineFacts {
                id: "Y".to_owned(),
                ..engine.clone()
            },
            EngineFacts {
                version: "Docker 2".to_owned(),
                ..engine
            },
        ] {
            assert!(!is_noted(&file, &identity(&other, "boot-1")).unwrap());
        }
    }
}
