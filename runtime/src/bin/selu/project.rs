//! From a directory to a plan: what most commands begin with.

use std::collections::BTreeSet;
use std::ffi::OsString;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::check::{Owner, check};
use selu_compiler::diag::{Diagnostic, Severity, render};
use selu_compiler::diff::{self, ChangeSet};
use selu_compiler::lock::Lock;
use selu_compiler::model::{InstanceKey, Project, Settings, is_id};
use selu_compiler::observed::Observed;
use selu_compiler::plan::Plan;
use selu_compiler::plan::hash::sha256;
use selu_compiler::resolve::resolve;
use selu_compiler::source::{self, SourceSet};
use selu_runtime::discover::Journal;
use selu_runtime::engine::{Engine, EngineView, docker};
use selu_runtime::lockfile::{self, LockFile, LockFileError};
use selu_runtime::observe::{Registries, observe_with};
use selu_runtime::secrets::{
    Declaring, EnvFile, KEY_FILE_VARIABLE, KEY_VARIABLE, Secrets, Store, Stored, grant,
};
use selu_runtime::waiting::Waiting;

use crate::args::Cli;
use crate::exit::{Ending, Exit};
use crate::hints::Hinted;
use crate::printer::{FORMAT_VERSION, Printer};

/// A directory that compiles, with its lock.
pub(crate) struct Loaded {
    pub(crate) root: Utf8PathBuf,
    pub(crate) sources: SourceSet,
    pub(crate) project: Project,
    pub(crate) lock: LockFile,
    /// No registry is asked (product.md 25).
    pub(crate) frozen: bool,
}

/// A plan against a live engine.
pub(crate) struct Planned {
    pub(crate) observed: Observed,
    pub(crate) plan: Plan,
    pub(crate) changes: ChangeSet,
}

/// Reads and checks. `None` once the findings were reported because one of them is an error.
pub(crate) fn load(
    cli: &Cli,
    printer: &Printer,
    directory: &Utf8Path,
) -> anyhow::Result<Option<Loaded>> {
    with_lock(printer, directory, compile(cli, printer, directory, true)?)
}

/// As [`load`], with the plan that needs no engine.
pub(crate) fn load_planned(
    cli: &Cli,
    printer: &Printer,
    directory: &Utf8Path,
) -> anyhow::Result<Option<(Loaded, Plan)>> {
    let Some(loaded) = load(cli, printer, directory)? else {
        return Ok(None);
    };
    let plan = loaded.plan_offline(printer);
    Ok(plan.map(|plan| (loaded, plan)))
}

/// As [`load`], with findings only where they are errors: what is compared may be an old state.
pub(crate) fn load_silently(
    cli: &Cli,
    printer: &Printer,
    directory: &Utf8Path,
) -> anyhow::Result<Option<Loaded>> {
    with_lock(printer, directory, compile(cli, printer, directory, false)?)
}

fn with_lock(
    printer: &Printer,
    directory: &Utf8Path,
    compiled: Option<(SourceSet, Project)>,
) -> anyhow::Result<Option<Loaded>> {
    let Some((sources, project)) = compiled else {
        return Ok(None);
    };
    let root = directory.to_owned();
    let Some(lock) = load_lock(printer, &root, &sources)? else {
        return Ok(None);
    };
    Ok(Some(Loaded {
        root,
        sources,
        project,
        lock,
        frozen: false,
    }))
}

/// As [`load`], without the lock: what needs no lock goes on where that is damaged.
pub(crate) fn load_project(
    cli: &Cli,
    printer: &Printer,
    directory: &Utf8Path,
) -> anyhow::Result<Option<Project>> {
    Ok(compile(cli, printer, directory, true)?.map(|(_, project)| project))
}

/// The lock. `None` once its fault was reported, with code and place.
pub(crate) fn load_lock(
    printer: &Printer,
    root: &Utf8Path,
    sources: &SourceSet,
) -> anyhow::Result<Option<LockFile>> {
    match LockFile::load(root) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockFileError::Malformed { source, .. }) => {
            refuse(
                printer,
                &[source.diagnostic(lockfile::NAME.into())],
                sources,
            );
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whose objects on which engine, for what needs nothing else: it goes on where a manifest has errors or the lock is
/// damaged. `None` once it was reported that even this is not known.
pub(crate) fn owner(
    cli: &Cli,
    printer: &Printer,
    directory: &Utf8Path,
) -> anyhow::Result<Option<(String, Settings)>> {
    let option = project_option(cli)?;
    let sources = read(directory)?;
    let checked = check(&sources);
    let Some(Owner { name, settings }) = checked.owner else {
        refuse(printer, &checked.diagnostics, &sources);
        return Ok(None);
    };
    if has_errors(&checked.diagnostics) {
        printer.warn("the directory has errors, which `selu check` lists; only its name is used");
    }
    match option.map(str::to_owned).or(name) {
        Some(name) => Ok(Some((name, settings))),
        None => {
            let hint = "set `name` in selu.toml, or say --project NAME";
            let message = "the project has no name, so it owns nothing";
            Err(Hinted::new(message, hint).into())
        }
    }
}

/// Keeps every credential value that there is out of what is shown.
pub(crate) fn guard(cli: &Cli, printer: &Printer) -> anyhow::Result<()> {
    let file = env_file(cli)?;
    let file = file.as_ref().map(|(name, text)| EnvFile { name, text });
    printer.guard(&Secrets::redactor_of_all(std::env::vars_os(), file)?);
    Ok(())
}

/// The env file's name and text, where one was named.
fn env_file(cli: &Cli) -> anyhow::Result<Option<(&str, String)>> {
    let Some(path) = &cli.global.env_file else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the env file {path} cannot be read"))?;
    Ok(Some((path.as_str(), text)))
}

/// `--project`, which must be an id.
fn project_option(cli: &Cli) -> anyhow::Result<Option<&str>> {
    let name = cli.global.project.as_deref();
    if let Some(name) = name.filter(|name| !is_id(name)) {
        return Err(Ending::usage(format!(
            "--project {name}: a project's name has lower-case letters, digits and inner hyphens, 63 at most"
        ))
        .into());
    }
    Ok(name)
}

/// The checked project; `None` once its errors were reported. Other findings are reported where there is to be `talk`.
fn compile(
    cli: &Cli,
    printer: &Printer,
    directory: &Utf8Path,
    talk: bool,
) -> anyhow::Result<Option<(SourceSet, Project)>> {
    let sources = read(directory)?;
    let mut checked = check(&sources);
    let name = project_option(cli)?;
    let Some(mut project) = checked.project.take() else {
        refuse(printer, &checked.diagnostics, &sources);
        return Ok(None);
    };
    if talk {
        report(printer, &checked.diagnostics, &sources);
    }
    if let Some(name) = name {
        project.name = Some(name.to_owned());
    }
    Ok(Some((sources, project)))
}

/// Says that these definitions wait for a person.
pub(crate) fn say_waiting(printer: &Printer, waiting: &[String]) {
    if !waiting.is_empty() {
        printer.say(&format!(
            "new or changed, and not in use until somebody accepts it (`selu lock --accept NAME`): {}",
            crate::printer::shown(&waiting.join(", "))
        ));
    }
}

/// Reads a directory; one without a project is an error, never an empty project (K06).
pub(crate) fn read(root: &Utf8Path) -> anyhow::Result<SourceSet> {
    let metadata = std::fs::metadata(root).with_context(|| format!("{root} cannot be read"))?;
    if !metadata.is_dir() {
        let message = format!("{root} is a file");
        return Err(Hinted::new(message, "name the directory that holds the project").into());
    }
    let sources = source::read(root);
    if sources.kind.is_none() {
        let message = format!(
            "no project in {root}: looked for agents/ or selu.toml (a project), agent.yaml (an agent), manifest.yaml (a \
             capability)"
        );
        return Err(Hinted::new(message, "change into the project's directory, or name it").into());
    }
    Ok(sources)
}

/// Findings that stop a command: data in JSON, talk in text.
fn refuse(printer: &Printer, diagnostics: &[Diagnostic], sources: &SourceSet) {
    report(printer, diagnostics, sources);
    let mut value = render::json(diagnostics);
    if let Some(object) = value.as_object_mut() {
        object.insert("exit_code".to_owned(), Exit::Failed.code().into());
    }
    printer.json(&value);
}

/// As [`refuse`], where no directory was read.
pub(crate) fn refuse_without_sources(printer: &Printer, diagnostics: &[Diagnostic]) {
    refuse(printer, diagnostics, &SourceSet::default());
}

/// Findings besides the command's own data.
fn report(printer: &Printer, diagnostics: &[Diagnostic], sources: &SourceSet) {
    if !diagnostics.is_empty() {
        let look = render::Look {
            color: printer.color_err(),
            width: printer.width_err(),
            base: sources.root.clone(),
        };
        printer.say(&render::text_for(diagnostics, sources, &look));
    }
}

impl Loaded {
    /// What the lock says.
    pub(crate) fn lock(&self) -> Option<&Lock> {
        self.lock.lock()
    }

    /// Under the hold: whether the lock is still the one that was read (product.md 14).
    pub(crate) fn require_same_lock(&self) -> anyhow::Result<()> {
        let now = LockFile::load(&self.root)?;
        if now.lock() == self.lock() {
            return Ok(());
        }
        Err(Ending::stale("selu.lock has changed since it was read; say it again").into())
    }

    /// The engine that the command line, the settings or the environment name.
    pub(crate) async fn engine(&self, cli: &Cli) -> anyhow::Result<Box<dyn Engine>> {
        engine(cli, &self.project.settings).await
    }

    /// A plan that asked nobody. `None` once its findings were reported.
    pub(crate) fn plan_offline(&self, printer: &Printer) -> Option<Plan> {
        self.resolved(printer, self.lock(), None, true)
    }

    /// Facts, plan and changes. `None` once the findings were reported.
    pub(crate) async fn plan(
        &self,
        printer: &Printer,
        engine: &dyn EngineView,
        talk: bool,
    ) -> anyhow::Result<Option<Planned>> {
        self.plan_from(printer, engine, self.lock(), &BTreeSet::new(), talk)
            .await
    }

    /// As [`Self::plan`], with other pins, and tags of some instances that a registry is asked about in any case.
    pub(crate) async fn plan_from(
        &self,
        printer: &Printer,
        engine: &dyn EngineView,
        pins: Option<&Lock>,
        fresh: &BTreeSet<InstanceKey>,
        talk: bool,
    ) -> anyhow::Result<Option<Planned>> {
        let registries = match self.frozen {
            true => Registries::Unasked,
            false => Registries::Asked(fresh),
        };
        let observed = observe_with(engine, &self.project, pins, registries).await?;
        let journal = match self.project.settings.idle_stop {
            true => Some(Journal::load(&self.root)?),
            false => None,
        };
        if talk {
            for warning in &observed.engine.warnings {
                printer.warn(&format!(
                    "the engine says: {}",
                    crate::printer::shown(warning)
                ));
            }
        }
        Ok(self
            .resolved(printer, pins, Some(&observed), talk)
            .map(|plan| {
                let mut changes = diff::changes_since(self.lock(), &plan, &observed);
                if let Some(journal) = &journal {
                    changes = changes.asleep(&plan, &observed, &self.due(&plan, journal));
                }
                Planned {
                    observed,
                    plan,
                    changes,
                }
            }))
    }

    /// A plan from given facts. `None` once its findings were reported.
    pub(crate) fn resolved(
        &self,
        printer: &Printer,
        lock: Option<&Lock>,
        observed: Option<&Observed>,
        talk: bool,
    ) -> Option<Plan> {
        let resolved = resolve(&self.project, lock, observed);
        let mut diagnostics = resolved.diagnostics;
        diagnostics.sort_by(|a, b| a.place.cmp(&b.place));
        match resolved.plan {
            Some(plan) => {
                if talk {
                    report(printer, &diagnostics, &self.sources);
                }
                Some(plan)
            }
            None => {
                refuse(printer, &diagnostics, &self.sources);
                None
            }
        }
    }

    /// Credential values, with a word about those that fit nothing.
    pub(crate) fn secrets(&self, cli: &Cli, printer: &Printer) -> anyhow::Result<Secrets> {
        let declaring = self
            .project
            .instances()
            .map(|(key, _, capability)| (key, capability.credentials.as_slice()));
        // What stored values were granted to is looked up in what directory and lock say.
        let plan = resolve(&self.project, self.lock(), None).plan;
        let stored = stored(&self.root, plan.as_ref())?;
        secrets(cli, printer, &declaring.collect(), stored)
    }

    /// `AGENT/CAP/TOOL` of definitions that wait for a person (D3).
    pub(crate) fn waiting(&self) -> anyhow::Result<Vec<String>> {
        let waiting = Waiting::load(&self.root, self.lock())?;
        Ok(waiting.lock().waiting_names())
    }

    /// Says what waits for a person, if anything does.
    pub(crate) fn tell_waiting(&self, printer: &Printer) -> anyhow::Result<Vec<String>> {
        let waiting = self.waiting()?;
        say_waiting(printer, &waiting);
        Ok(waiting)
    }

    /// Dynamic instances that were never discovered, or whose last discovery failed or was cut off (D5).
    pub(crate) fn due(&self, plan: &Plan, journal: &Journal) -> BTreeSet<InstanceKey> {
        let discovered = |key: &InstanceKey| self.lock().is_some_and(|lock| lock.was_asked(key));
        plan.instances
            .iter()
            .filter(|(_, instance)| instance.discovery_tool.is_some())
            .filter(|(key, _)| journal.due(key).is_some() || !discovered(key))
            .map(|(key, _)| key.clone())
            .collect()
    }
}

/// Credential values for what is declared, with a word about those that fit nothing.
pub(crate) fn secrets(
    cli: &Cli,
    printer: &Printer,
    declaring: &Declaring<'_>,
    stored: Option<(Stored, BTreeSet<InstanceKey>)>,
) -> anyhow::Result<Secrets> {
    let file = env_file(cli)?;
    let file = file.as_ref().map(|(name, text)| EnvFile { name, text });
    let (secrets, unused) = Secrets::gather_for(declaring, std::env::vars_os(), file)?;
    for name in unused {
        printer.warn(&format!(
            "{name} is set, but no capability declares that credential"
        ));
    }
    let secrets = match stored {
        Some((stored, granted)) => secrets.with_store(stored, &granted),
        None => secrets,
    };
    printer.guard(secrets.redactor());
    Ok(secrets)
}

/// What the store has, and the instances that are what their values were granted to. `None` if there is no store.
pub(crate) fn stored(
    root: &Utf8Path,
    plan: Option<&Plan>,
) -> anyhow::Result<Option<(Stored, BTreeSet<InstanceKey>)>> {
    if !Store::is_in(root) {
        return Ok(None);
    }
    let stored = store(root)?.read()?;
    let granted = plan
        .iter()
        .flat_map(|plan| &plan.instances)
        .filter(|(key, instance)| {
            let now = grant(instance);
            now.is_some() && stored.grants.get(*key) == now.as_ref()
        })
        .map(|(key, _)| key.clone());
    let granted = granted.collect();
    Ok(Some((stored, granted)))
}

/// The project's credential store. Its key is outside the project's folder: that may be a stranger's (S14).
pub(crate) fn store(root: &Utf8Path) -> anyhow::Result<Store> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let text = |value: OsString, name: &str| {
        let value = value.into_string();
        value.map_err(|_| anyhow::anyhow!("the value of {name} is not UTF-8"))
    };
    let variable = match given(KEY_VARIABLE) {
        Some(value) => Some(text(value, KEY_VARIABLE)?.into()),
        None => None,
    };
    let key_file = match given(KEY_FILE_VARIABLE) {
        Some(path) => Utf8PathBuf::from(text(path, KEY_FILE_VARIABLE)?),
        None => {
            let root = root.canonicalize_utf8().unwrap_or_else(|_| root.to_owned());
            let hash = sha256(root.as_str().as_bytes());
            let name: String = hash
                .trim_start_matches("sha256:")
                .chars()
                .take(16)
                .collect();
            config_folder()?.join(format!("selu/keys/{name}.key"))
        }
    };
    Ok(Store::new(root, variable, key_file))
}

fn config_folder() -> anyhow::Result<Utf8PathBuf> {
    let absolute = |name: &str| {
        let value = std::env::var(name).ok().map(Utf8PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .with_context(|| {
            format!("there is no home for the store's key; name a file in {KEY_FILE_VARIABLE}")
        })
}

/// The engine that the command line, the environment or the settings name, in this order. An engine is given
/// credentials, and the settings may be a stranger's (S14): they can name a socket of this machine and no other.
pub(crate) async fn engine(cli: &Cli, settings: &Settings) -> anyhow::Result<Box<dyn Engine>> {
    let named = std::env::var_os("DOCKER_HOST").is_some_and(|host| !host.is_empty());
    let host = match (cli.global.host.as_deref(), settings.engine_host.as_deref()) {
        (Some(host), _) => Some(host),
        (None, Some(host)) if !named && !host.starts_with("unix://") => {
            let message =
                format!("selu.toml names {host} as the engine, which is not on this machine");
            let hint =
                "an engine is given credentials, so say --host or set DOCKER_HOST if that is meant";
            return Err(Hinted::new(message, hint).into());
        }
        (None, host) => host.filter(|_| !named),
    };
    connect(host).await
}

/// Finds an engine.
pub(crate) async fn connect(host: Option<&str>) -> anyhow::Result<Box<dyn Engine>> {
    Ok(Box::new(docker::connect(host).await?))
}

/// Whether any finding is an error.
pub(crate) fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// The head of every JSON document of a command.
pub(crate) fn document(project: &str) -> serde_json::Map<String, serde_json::Value> {
    let mut head = serde_json::Map::new();
    head.insert("format_version".to_owned(), FORMAT_VERSION.into());
    head.insert("project".to_owned(), project.into());
    head
}
