//! Sources → [`Checked`]: every rule that needs no engine, a rule family a file, all findings in one run.

mod agent;
pub mod arguments;
mod cache;
mod capability;
pub mod credential;
mod cron;
pub mod discovered;
pub mod image;
mod locale;
pub mod network;
mod place;
mod quotes;
pub mod schema;
mod settings;
pub(crate) mod shape;
mod steps;
pub mod tool;
mod versions;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZero;
use std::sync::Arc;

use camino::Utf8Path;

use crate::diag::codes::{agent as codes, yaml};
use crate::diag::{Diagnostic, Place, Severity};
use crate::model::{Agent, InstanceKey, Origin, Project, Routing, Settings, ToolSource};
use crate::parallel;
use crate::source::{AgentFolder, CapabilityFolder, RootKind, SourceSet};
use agent::{Draft, Shared};
pub use cache::Cache;
use capability::Outcome;
use settings::{Known, Tools};
pub use shape::nearest;

/// The outcome of a check.
#[derive(Debug)]
pub struct Checked {
    /// The project; `None` if any finding is an error.
    pub project: Option<Project>,
    /// All findings, by file, line and column.
    pub diagnostics: Vec<Diagnostic>,
    /// Whose objects are meant, for what needs nothing else; `None` if selu.toml has an error, so that neither the owner nor
    /// the engine is guessed.
    pub owner: Option<Owner>,
}

/// Whose objects on which engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    /// The project's name, where it has one.
    pub name: Option<String>,
    /// selu.toml.
    pub settings: Settings,
}

/// Checks a whole source set. All findings of all files come in one run.
pub fn check(sources: &SourceSet) -> Checked {
    check_on(parallel::cores(), sources)
}

/// The same on so many threads. The outcome does not depend on their number.
pub fn check_on(threads: NonZero<usize>, sources: &SourceSet) -> Checked {
    // Capabilities are most of the work, and independent of each other.
    let outcomes = parallel::map(threads, &folders(sources), |folder| {
        Arc::new(capability::check(folder))
    });
    whole_project(sources, outcomes, |folders| {
        parallel::map(threads, folders, |folder| Arc::new(agent::read(folder)))
    })
}

/// [`check`], where only those capabilities and agents are read that are not as they were in the last one.
pub fn check_again(sources: &SourceSet, cache: &mut Cache) -> Checked {
    let outcomes = cache.outcomes(&folders(sources));
    cache.forget_other_agents(&sources.agents);
    whole_project(sources, outcomes, |folders| cache.drafts(folders))
}

/// Every capability's folder: those of the agents, then the shared ones.
fn folders(sources: &SourceSet) -> Vec<&CapabilityFolder> {
    sources
        .agents
        .iter()
        .flat_map(|agent| &agent.capabilities)
        .chain(&sources.capabilities)
        .collect()
}

/// Agents whose files are kept as trees at the same time.
const AGENTS_AT_ONCE: usize = 64;

/// The project, from its capabilities in the order of [`folders`], and from its agents, some at a time.
fn whole_project(
    sources: &SourceSet,
    outcomes: Vec<Arc<Outcome>>,
    drafts: impl FnMut(&[AgentFolder]) -> Vec<Arc<Draft>>,
) -> Checked {
    let mut diagnostics = sources.findings.clone();
    let mut settings = sources
        .settings
        .as_ref()
        .map(|file| settings::check(file, &mut diagnostics))
        .unwrap_or_default();
    let mut outcomes = outcomes.into_iter();
    let own: Vec<Vec<Arc<Outcome>>> = sources
        .agents
        .iter()
        .map(|agent| outcomes.by_ref().take(agent.capabilities.len()).collect())
        .collect();
    let shared = outcomes.collect();
    let mut ids = HashMap::new();
    let mut agents = if sources.kind == Some(RootKind::Capability) {
        nameless(shared, &mut ids, &mut diagnostics)
    } else {
        agents(sources, own, shared, drafts, &mut ids, &mut diagnostics)
    };
    if settings.has_targets() {
        settings.targets(&instances(&ids, &agents), &mut diagnostics);
    }
    override_limits(&settings.settings, &mut agents);
    settings.settings.levels.apply(&mut diagnostics);
    one_fault_a_place(&mut diagnostics);
    quotes::keep(&mut diagnostics, sources);
    diagnostics
        .sort_by(|a, b| (&a.place, a.code.id, &a.message).cmp(&(&b.place, b.code.id, &b.message)));
    diagnostics.dedup();
    let wrong = sources.kind.is_none()
        || diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error);
    let name = settings.name.clone().or_else(|| lone_id(sources, &agents));
    let sound = !diagnostics.iter().any(|diagnostic| {
        diagnostic.severity == Severity::Error && diagnostic.place.origin.file == "selu.toml"
    });
    let owner = (sound && sources.kind.is_some()).then(|| Owner {
        name: name.clone(),
        settings: settings.settings.clone(),
    });
    let project = (!wrong).then_some(Project {
        name,
        settings: settings.settings,
        agents,
    });
    Checked {
        project,
        diagnostics,
        owner,
    }
}

/// Of what has no value there is nothing more to say.
fn one_fault_a_place(diagnostics: &mut Vec<Diagnostic>) {
    let settles = |finding: &Diagnostic| {
        [&yaml::TAG, &yaml::NOT_JSON, &yaml::KEY_NOT_STRING].contains(&finding.code)
    };
    let settled: HashSet<Origin> = diagnostics
        .iter()
        .filter(|finding| settles(finding))
        .map(|finding| finding.place.origin.clone())
        .collect();
    if !settled.is_empty() {
        diagnostics.retain(|finding| settles(finding) || !settled.contains(&finding.place.origin));
    }
}

/// Agent → ids of its capabilities, right or wrong.
type Ids = HashMap<String, Vec<String>>;

fn agents(
    sources: &SourceSet,
    own: Vec<Vec<Arc<Outcome>>>,
    shared: Vec<Arc<Outcome>>,
    mut drafts: impl FnMut(&[AgentFolder]) -> Vec<Arc<Draft>>,
    ids: &mut Ids,
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeMap<String, Agent> {
    let mut shared = Shared::new(shared, diagnostics);
    let mut first: HashMap<String, Place> = HashMap::new();
    let mut agents = BTreeMap::new();
    let folders = sources.agents.chunks(AGENTS_AT_ONCE);
    let drafts = folders.flat_map(|folders| folders.iter().zip(drafts(folders)));
    for ((folder, draft), own) in drafts.zip(own) {
        if let Some(first) = first.get(&draft.id) {
            diagnostics.push(
                Diagnostic::new(
                    &codes::DUPLICATE_AGENT,
                    draft.place.clone(),
                    format!("there are two agents `{}`", draft.id),
                )
                .related(first.clone(), "the other one"),
            );
        } else {
            first.insert(draft.id.clone(), draft.place.clone());
        }
        if let Some(agent) = draft.finish(folder, own, &mut shared, ids, diagnostics) {
            agents.insert(agent.id.clone(), agent);
        }
    }
    shared.finish(diagnostics);
    agents
}

/// L1: a capability that is compiled alone lives under the nameless agent.
fn nameless(
    outcomes: Vec<Arc<Outcome>>,
    ids: &mut Ids,
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeMap<String, Agent> {
    let mut agents = BTreeMap::new();
    for outcome in outcomes {
        ids.insert(InstanceKey::NAMELESS.to_owned(), vec![outcome.id.clone()]);
        let capability = outcome.capability.clone();
        outcome.report(diagnostics);
        if let Some(capability) = capability {
            let agent = Agent {
                id: InstanceKey::NAMELESS.to_owned(),
                name: String::new(),
                origin: capability.origin.clone(),
                routing: Routing::Auto,
                own_model: false,
                idle_timeout_minutes: agent::IDLE_TIMEOUT_MINUTES,
                definition: "{}".into(),
                prompts: BTreeMap::new(),
                capabilities: BTreeMap::from([(capability.id.clone(), capability)]),
            };
            agents.insert(agent.id.clone(), agent);
        }
    }
    agents
}

/// Limits of selu.toml count for one instance, also where several agents name the same capability.
fn override_limits(settings: &Settings, agents: &mut BTreeMap<String, Agent>) {
    for (key, limits) in &settings.limits {
        let capability = agents
            .get_mut(key.agent())
            .and_then(|agent| agent.capabilities.get_mut(key.capability()));
        if let Some(capability) = capability {
            limits.apply(&mut Arc::make_mut(capability).limits);
        }
    }
}

/// The name of what is compiled without a project.
fn lone_id(sources: &SourceSet, agents: &BTreeMap<String, Agent>) -> Option<String> {
    let agent = agents.values().next()?;
    match sources.kind? {
        RootKind::Project => None,
        RootKind::Agent => Some(agent.id.clone()),
        RootKind::Capability => agent.capabilities.keys().next().cloned(),
    }
}

/// Every instance with what is known of it.
fn instances<'a>(
    ids: &Ids,
    agents: &'a BTreeMap<String, Agent>,
) -> HashMap<InstanceKey, Known<'a>> {
    let mut instances = HashMap::new();
    for (agent, capabilities) in ids {
        for id in capabilities {
            let capability = agents
                .get(agent)
                .and_then(|agent| agent.capabilities.get(id));
            let tools = match capability.map(|capability| &capability.tools) {
                Some(ToolSource::Static(tools)) => {
                    Tools::Static(tools.iter().map(|tool| tool.name.as_str()).collect())
                }
                Some(ToolSource::Dynamic { .. }) | None => Tools::Open,
            };
            let network = capability.map(|capability| &capability.network);
            instances.insert(InstanceKey::new(agent, id), Known { tools, network });
        }
    }
    instances
}

/// A file or folder as a whole.
fn whole(path: &Utf8Path) -> Place {
    Place {
        origin: Origin {
            file: path.to_owned(),
            line: 0,
            column: 0,
        },
        length: 0,
        path: String::new(),
    }
}
