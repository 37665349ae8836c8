//! What a change means for the rights of tools: every difference between two states of a project, typed, with its path
//! and a grade (product.md 28).
//!
//! Whatever is compared — locks, plans, directories, revisions — becomes a [`Snapshot`] first. Widening comes first, and
//! what can't be decided counts as widening.

mod agent;
mod instance;
mod live;
pub mod rules;
pub mod schema;
mod settings;
pub mod text;
mod tool;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lock::{Lock, LockedInstance};
use crate::model::{InstanceKey, Origin, Project, Settings};
use crate::plan::{Plan, PlannedAgent};
pub use agent::Agent;
use rules::Rules;

/// Version of the JSON form.
pub const FORMAT_VERSION: &str = "1.0";

/// What there is to compare: everything that grants or limits a right.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// By key.
    pub instances: BTreeMap<InstanceKey, LockedInstance>,
    /// Rules whose destinations may be private addresses (N8); nothing where only a lock is known.
    pub private: BTreeMap<InstanceKey, Vec<String>>,
    /// The project's name; `None` where only a lock is known.
    pub project: Option<String>,
    /// selu.toml; `None` where only a lock or a plan is known.
    pub settings: Option<Settings>,
    /// Agents by id; `None` where only a lock is known.
    pub agents: Option<BTreeMap<String, Agent>>,
    /// Where instances, and tools that a manifest has, are written; nothing where only a lock is known.
    pub places: BTreeMap<InstanceKey, Places>,
    /// What images say they were built from; nothing where nobody looked at them.
    pub sources: BTreeMap<InstanceKey, ImageSource>,
}

/// What an image says of itself. Whoever built it wrote that, so it proves nothing, and is a place to look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageSource {
    /// Where its source is.
    pub source: Option<String>,
    /// Which state of it.
    pub revision: Option<String>,
}

impl From<Lock> for Snapshot {
    fn from(lock: Lock) -> Self {
        Self {
            instances: lock.instances,
            ..Self::default()
        }
    }
}

/// Where an instance is written, and its tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Places {
    /// Its manifest.
    pub manifest: Origin,
    /// Tools by name.
    pub tools: BTreeMap<String, Origin>,
}

impl Snapshot {
    /// A project that is not there yet: nothing, and no rules.
    pub fn empty() -> Self {
        Self {
            settings: Some(Settings::default()),
            agents: Some(BTreeMap::new()),
            ..Self::default()
        }
    }

    /// All that a lock says.
    pub fn of_lock(lock: &Lock) -> Self {
        lock.clone().into()
    }

    /// What a plan says, with what only its lock knows: which credentials were present, what discovered tools
    /// recommended, and images that the plan could not tell.
    pub fn of_plan(plan: &Plan, lock: Option<&Lock>) -> Self {
        let locked = |key: &InstanceKey| lock.and_then(|lock| lock.instances.get(key));
        let instances = plan.instances.iter().map(|(key, planned)| {
            let mut instance = LockedInstance::from_plan(planned);
            if let Some(locked) = locked(key) {
                instance.recall(locked);
            }
            (key.clone(), instance)
        });
        let permitted = plan
            .instances
            .iter()
            .filter(|(_, planned)| !planned.private.is_empty());
        let private = permitted.map(|(key, planned)| (key.clone(), planned.private.clone()));
        let places = plan.instances.iter().map(|(key, planned)| {
            let tools = planned.tools.iter();
            let tools = tools.filter_map(|(name, tool)| Some((name.clone(), tool.origin.clone()?)));
            let places = Places {
                manifest: planned.origin.clone(),
                tools: tools.collect(),
            };
            (key.clone(), places)
        });
        Self {
            instances: instances.collect(),
            private: private.collect(),
            project: Some(plan.project.clone()),
            settings: None,
            agents: Some(plan.agents.iter().map(agent).collect()),
            places: places.collect(),
            sources: BTreeMap::new(),
        }
    }

    /// With what only the directory says: selu.toml, and agents beside their prompts. A name that the directory has not is none.
    #[must_use]
    pub fn with_project(mut self, project: &Project) -> Self {
        self.settings = Some(project.settings.clone());
        self.project = project.name.clone();
        for (id, agent) in self.agents.iter_mut().flatten() {
            let written = project.agents.get(id);
            agent.idle_timeout_minutes = written.map(|agent| agent.idle_timeout_minutes);
            agent.definition = written.map(|agent| agent::flat(&agent.definition));
        }
        self
    }
}

fn agent((id, planned): (&String, &PlannedAgent)) -> (String, Agent) {
    let agent = Agent {
        origin: planned.origin.clone(),
        prompts: planned.prompts.clone(),
        idle_timeout_minutes: None,
        definition: None,
    };
    (id.clone(), agent)
}

/// What a change means for rights.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// More is possible than before, or it can't be told.
    Widening,
    /// Less is possible than before.
    Narrowing,
    /// Neither.
    Neutral,
}

/// Which right or fact a finding is about.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A whole instance came or went.
    Instance,
    /// What runs.
    Image,
    /// Stateless or stateful.
    Class,
    /// What is writable.
    Filesystem,
    /// Whether `/cache` is kept.
    Cache,
    /// Who shares a container, and how long it lives.
    Sharing,
    /// Memory, CPU, processes.
    Limit,
    /// What may be reached.
    Network,
    /// A secret that is handed over.
    Credential,
    /// What agent.yaml says of an agent: its model, its sessions, its installation.
    Agent,
    /// What an agent does by itself, and when.
    Schedule,
    /// What an agent or a capability tells a model.
    Prompt,
    /// How tools come to be known.
    Discovery,
    /// A whole tool came or went.
    Tool,
    /// Whether a tool may be called.
    Policy,
    /// What a tool recommends about itself.
    Recommendation,
    /// What a model reads about a tool.
    Description,
    /// What a tool's arguments may be.
    Schema,
    /// Whether a success ends the loop.
    Loop,
    /// What selu.toml says of the project itself.
    Setting,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Instance,
        Self::Image,
        Self::Class,
        Self::Filesystem,
        Self::Cache,
        Self::Sharing,
        Self::Limit,
        Self::Network,
        Self::Credential,
        Self::Agent,
        Self::Schedule,
        Self::Prompt,
        Self::Discovery,
        Self::Tool,
        Self::Policy,
        Self::Recommendation,
        Self::Description,
        Self::Schema,
        Self::Loop,
        Self::Setting,
    ];

    /// What it is about, for whoever reads it the first time.
    pub fn says(self) -> &'static str {
        match self {
            Self::Instance => "A capability of an agent came or went",
            Self::Image => "What runs",
            Self::Class => "Whether it keeps state between calls",
            Self::Filesystem => "What it may write",
            Self::Cache => "Whether its cache is kept",
            Self::Sharing => "Who shares a container, and how long it lives",
            Self::Limit => "Memory, CPU, processes",
            Self::Network => "What it may reach",
            Self::Credential => "Secrets that it is handed",
            Self::Agent => "What an agent is, and what installing it asks and sends",
            Self::Schedule => "What an agent does by itself",
            Self::Prompt => "What a model is told",
            Self::Discovery => "How its tools come to be known",
            Self::Tool => "Which tools there are",
            Self::Policy => "Whether a tool may be called",
            Self::Recommendation => "What a tool recommends about itself",
            Self::Description => "What a model reads about a tool",
            Self::Schema => "What a tool's arguments may be",
            Self::Loop => "Whether a success ends the model's turn",
            Self::Setting => "What selu.toml says of the project itself",
        }
    }

    /// As selu.toml and JSON have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Image => "image",
            Self::Class => "class",
            Self::Filesystem => "filesystem",
            Self::Cache => "cache",
            Self::Sharing => "sharing",
            Self::Limit => "limit",
            Self::Network => "network",
            Self::Credential => "credential",
            Self::Agent => "agent",
            Self::Schedule => "schedule",
            Self::Prompt => "prompt",
            Self::Discovery => "discovery",
            Self::Tool => "tool",
            Self::Policy => "policy",
            Self::Recommendation => "recommendation",
            Self::Description => "description",
            Self::Schema => "schema",
            Self::Loop => "loop",
            Self::Setting => "setting",
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Whose right; `None` for the project as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceKey>,
    /// Which tool's; `None` for the instance as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Which right.
    pub kind: Kind,
    /// Where in the lock, such as `limits.memory_mb` or `input_schema/properties/city/enum`.
    pub path: String,
    /// What it means.
    pub grade: Grade,
    /// A sentence for a reviewer.
    pub says: String,
    /// Before, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Now, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// What hides in the new text and did not hide in the old one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<text::Suspicion>,
    /// Whether a person has to look at it, by `[review]` of the old state.
    #[serde(default)]
    pub person: bool,
    /// Why a person accepted it beforehand, by `[review]` of the old state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
}

impl Finding {
    /// Whose right, as a reader is told.
    pub fn whose(&self) -> &str {
        match (&self.instance, self.kind) {
            (Some(instance), _) => instance.as_str(),
            (None, Kind::Setting) => "selu.toml",
            (None, _) => "agents",
        }
    }

    /// [`Self::whose`], and the tool.
    pub fn subject(&self) -> String {
        let whose = self.whose();
        match &self.tool {
            Some(tool) => format!("{whose} {tool}"),
            None => whose.to_owned(),
        }
    }

    /// Whether it is still to be looked at: nobody has accepted it.
    pub fn is_open(&self) -> bool {
        self.accepted.is_none()
    }
}

/// Everything that differs between two snapshots, widening first, then by place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// [`FORMAT_VERSION`].
    pub format_version: String,
    /// What differs.
    pub findings: Vec<Finding>,
}

impl Review {
    /// Compares. The rules that say what needs a person are those of `old`, never those of the change itself (S14).
    pub fn new(old: &Snapshot, new: &Snapshot) -> Self {
        let no_rules = Rules::default();
        let rules = old.settings.as_ref();
        let rules = rules.map_or(&no_rules, |settings| &settings.review);
        let mut about = About::new(None);
        settings::compare(&mut about, old, new);
        agent::compare(&mut about, old, new);
        let mut findings = about.findings;
        let keys: BTreeSet<&InstanceKey> =
            old.instances.keys().chain(new.instances.keys()).collect();
        for key in keys {
            let before = old.instances.get(key);
            let now = new.instances.get(key);
            let mut about = About::new(Some(key));
            let none = Vec::new();
            let private = |snapshot: &'_ Snapshot| {
                let entries = snapshot.private.get(key);
                entries.unwrap_or(&none).clone()
            };
            match (before, now) {
                (Some(before), Some(now)) => {
                    instance::compare(&mut about, before, now);
                    instance::private(&mut about, &private(old), &private(new));
                }
                (None, Some(now)) => {
                    instance::added(&mut about, now);
                    instance::private(&mut about, &[], &private(new));
                }
                (Some(before), None) => instance::removed(&mut about, before),
                (None, None) => {}
            }
            if let (Some(most), Some(now)) = (rules.max_tools, now) {
                instance::many(&mut about, most, before, now);
            }
            instance::source(&mut about, new.sources.get(key), rules.image_source);
            findings.extend(about.findings);
        }
        for finding in &mut findings {
            rules.judge(finding);
        }
        // Stable: within a grade the order of the places stays.
        findings.sort_by_key(|finding| finding.grade);
        Self {
            format_version: FORMAT_VERSION.to_owned(),
            findings,
        }
    }

    /// What a person has to look at and nobody has accepted.
    pub fn open(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.findings.iter();
        findings.filter(|finding| finding.person && finding.is_open())
    }

    /// How many findings have a grade.
    pub fn count(&self, grade: Grade) -> usize {
        let with_it = |finding: &&Finding| finding.grade == grade;
        self.findings.iter().filter(with_it).count()
    }
}

/// The findings about one instance, or one of its tools, or the project.
struct About<'a> {
    instance: Option<&'a InstanceKey>,
    tool: Option<&'a str>,
    findings: Vec<Finding>,
}

impl<'a> About<'a> {
    fn new(instance: Option<&'a InstanceKey>) -> Self {
        Self {
            instance,
            tool: None,
            findings: Vec::new(),
        }
    }

    fn add(
        &mut self,
        kind: Kind,
        path: impl Into<String>,
        grade: Grade,
        says: impl Into<String>,
    ) -> &mut Finding {
        self.findings.push(Finding {
            instance: self.instance.cloned(),
            tool: self.tool.map(str::to_owned),
            kind,
            path: path.into(),
            grade,
            says: says.into(),
            old: None,
            new: None,
            hidden: Vec::new(),
            person: false,
            accepted: None,
        });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }
}

impl Finding {
    fn between(&mut self, old: Option<impl ToString>, new: Option<impl ToString>) -> &mut Self {
        self.old = old.map(|old| old.to_string());
        self.new = new.map(|new| new.to_string());
        self
    }
}

#[cfg(test)]
mod tests;
