//! Project, lock and observed facts → [`Plan`].
//!
//! Everything that apply does is decided here. Without observed facts the plan says what directory and lock say, and has
//! no resident: no address, no generation, no image that only the world knows.

mod image;
mod pulled;
mod resident;
mod subnets;
mod tools;

use std::collections::{BTreeMap, BTreeSet};

use ipnet::Ipv4Net;

pub use pulled::pulled;

use crate::diag::codes::plan as code;
use crate::diag::{Diagnostic, Place, Severity};
use crate::lock::{Lock, LockedInstance};
use crate::model::{
    Agent, Capability, ImageReference, InstanceKey, LimitOverrides, Origin, Project, ToolSource,
    is_id,
};
use crate::observed::Observed;
use crate::plan::{FORMAT_VERSION, ImageKind, Plan, PlannedAgent, PlannedInstance, names, spec};
use crate::yaml::node::Span;
use subnets::Subnets;

/// What networks are cut from unless selu.toml says otherwise.
pub(crate) fn default_range() -> ipnet::Ipv4Net {
    let (address, prefix) = subnets::DEFAULT_RANGE;
    ipnet::Ipv4Net::new_assert(address, prefix)
}

/// A plan and what there is to say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// `None` if any finding is an error: half a plan is never shown as one.
    pub plan: Option<Plan>,
    /// In no particular order.
    pub diagnostics: Vec<Diagnostic>,
}

/// Generations whose names are looked up beforehand. A later one that someone else holds is refused by the engine when
/// it is created, which is before anything of ours is replaced.
const FORESEEN_GENERATIONS: u64 = 32;

/// Decides what should exist.
pub fn resolve(project: &Project, lock: Option<&Lock>, observed: Option<&Observed>) -> Resolved {
    let mut findings = Vec::new();
    let plan = match project.name.as_deref() {
        Some(name) if is_id(name) => Some(plan(name, project, lock, observed, &mut findings)),
        name => {
            let message = match name {
                Some(name) => format!("`{name}` is not a valid project name"),
                None => "the project has no name".to_owned(),
            };
            let place = project_place();
            findings.push(Diagnostic::new(&code::PROJECT_WITHOUT_NAME, place, message));
            None
        }
    };
    project.settings.levels.apply(&mut findings);
    let failed = findings
        .iter()
        .any(|finding| finding.severity == Severity::Error);
    Resolved {
        plan: plan.filter(|_| !failed),
        diagnostics: findings,
    }
}

/// A subnet that nobody uses for one more network, such as a session's, of the same size as another. `None` if there is
/// none left.
pub fn free_subnet(
    project: &Project,
    observed: &Observed,
    like: Ipv4Net,
    name: &str,
) -> Option<Ipv4Net> {
    let mut subnets = Subnets::new(project.settings.subnets, resident::in_use(observed));
    let owner = project.name.as_deref().unwrap_or_default();
    subnets.take(like.prefix_len(), owner, name)
}

/// Names of containers, networks and volumes that a plan may use: what the engine is asked about, to find those that
/// belong to someone else (F08). Sorted; empty for a project without a valid name, which has no plan.
pub fn wanted_names(project: &Project) -> Vec<String> {
    let Some(name) = project.name.as_deref().filter(|name| is_id(name)) else {
        return Vec::new();
    };
    let mut wanted = BTreeSet::new();
    for (key, _, capability) in project.instances() {
        wanted.insert(names::gateway(name));
        wanted.insert(names::egress(name));
        wanted.extend(
            (1..=FORESEEN_GENERATIONS).map(|generation| names::resident(name, &key, generation)),
        );
        let volumes = spec::resident_volumes(name, &key, capability);
        wanted.extend(volumes.into_values().map(|volume| volume.name));
    }
    wanted.into_iter().collect()
}

/// Each distinct reference, by the text that the manifests have (I0): what engine and registry are asked about. The
/// answers go into [`Observed::images`] under that text.
pub fn image_references(project: &Project) -> BTreeMap<String, ImageReference> {
    project
        .instances()
        .map(|(_, _, capability)| (capability.image.written.clone(), capability.image.clone()))
        .collect()
}

/// What the lock or a manifest pins, as an engine is asked for it: `repository@sha256:…`, or the id of a local image. The
/// engine's answers go into [`Observed::images`] under that text, too; the registry need not be asked.
pub fn pinned_references(project: &Project, lock: Option<&Lock>) -> BTreeSet<String> {
    let mut pinned = BTreeSet::new();
    for (key, _, capability) in project.instances() {
        let locked = locked(lock, &key).map(|locked| &locked.image);
        let locked = image::lock_pin(capability, locked);
        match (&capability.image.digest, locked) {
            (Some(digest), _) => {
                pinned.insert(capability.image.at(digest));
            }
            (None, Some(locked)) => {
                pinned.extend(locked.digest.as_ref().map(|digest| match locked.kind {
                    ImageKind::Local => digest.clone(),
                    ImageKind::Registry | ImageKind::Unknown => capability.image.at(digest),
                }));
            }
            (None, None) => {}
        }
    }
    pinned
}

/// What of [`pinned_references`] is a registry's, with the reference as written that it pins: what a registry is asked
/// for where the engine does not have it.
pub fn registry_pins(project: &Project, lock: Option<&Lock>) -> BTreeMap<String, ImageReference> {
    let mut pins = BTreeMap::new();
    for (key, _, capability) in project.instances() {
        let image = &capability.image;
        let locked = locked(lock, &key).map(|locked| &locked.image);
        let locked = image::lock_pin(capability, locked);
        let locked = locked.filter(|locked| locked.kind == ImageKind::Registry);
        let locked = locked.and_then(|locked| locked.digest.as_ref());
        if let Some(digest) = image.digest.as_ref().or(locked) {
            pins.insert(image.at(digest), image.clone());
        }
    }
    pins
}

/// Free subnets for the ends of the leak probe (S13), which are networks for a moment only. `None` if the range is full.
pub fn probe_subnets(plan: &Plan, observed: &Observed) -> Option<[Ipv4Net; 3]> {
    let gateway = plan.gateway.as_ref()?;
    let residents = plan
        .instances
        .values()
        .filter_map(|instance| instance.resident.as_ref());
    let planned = residents.map(|resident| resident.network.subnet);
    let ours = observed
        .networks
        .values()
        .filter_map(|network| network.subnet);
    let foreign = observed.foreign_subnets.iter().copied();
    let used = planned
        .chain(ours)
        .chain(foreign)
        .chain([gateway.network.subnet]);
    let mut subnets = Subnets::new(Some(gateway.range), used.collect());
    let mut take = |end| subnets.take(subnets::CLOSED_PREFIX, &plan.project, end);
    Some([take("leaks-cut")?, take("leaks-near")?, take("leaks-out")?])
}

fn plan(
    name: &str,
    project: &Project,
    lock: Option<&Lock>,
    observed: Option<&Observed>,
    findings: &mut Vec<Diagnostic>,
) -> Plan {
    let mut instances = BTreeMap::new();
    let mut content = BTreeMap::new();
    for (key, _, capability) in project.instances() {
        let locked = locked(lock, &key);
        let overrides = project.settings.limits.get(&key);
        let pinned = image::pin(
            &key,
            capability,
            locked.map(|locked| &locked.image),
            observed,
            findings,
        );
        if let Some(observed) = observed {
            check_cores(&key, capability, overrides, observed, findings);
        }
        let instance = PlannedInstance {
            origin: capability.origin.clone(),
            image: pinned.image,
            class: capability.class,
            filesystem: capability.filesystem,
            cache: capability.cache,
            sharing: capability.sharing.clone(),
            limits: capability.limits.clone(),
            limit_overrides: overrides.map(LimitOverrides::origins).unwrap_or_default(),
            network_rules: capability.network.clone(),
            private: project
                .settings
                .private
                .get(&key)
                .cloned()
                .unwrap_or_default(),
            credentials: capability.credentials.clone(),
            prompts: hashes(&capability.prompts),
            discovery_tool: match &capability.tools {
                ToolSource::Static(_) => None,
                ToolSource::Dynamic { discovery_tool } => Some(discovery_tool.clone()),
            },
            tools: tools::planned(project, &key, capability, locked),
            resident: None,
        };
        content.insert(key.clone(), pinned.content);
        instances.insert(key, instance);
    }
    tools::check_policies(project, lock, &instances, findings);
    let agents = project
        .agents
        .iter()
        .map(|(id, agent)| (id.clone(), planned_agent(agent, &instances)))
        .collect();
    let gateway = observed.and_then(|observed| {
        for warning in &observed.engine.warnings {
            let message = format!("the engine says: {}", warning.trim_end_matches('.'));
            findings.push(Diagnostic::new(
                &code::ENGINE_WARNING,
                project_place(),
                message,
            ));
        }
        resident::place_all(name, project, observed, &content, &mut instances, findings)
    });
    Plan {
        format_version: FORMAT_VERSION.to_owned(),
        project: name.to_owned(),
        agents,
        instances,
        gateway,
    }
}

fn planned_agent(
    agent: &Agent,
    instances: &BTreeMap<InstanceKey, PlannedInstance>,
) -> PlannedAgent {
    PlannedAgent {
        origin: agent.origin.clone(),
        name: agent.name.clone(),
        routing: tools::routing(agent, instances),
        prompts: hashes(&agent.prompts),
    }
}

fn hashes(prompts: &BTreeMap<String, crate::model::Prompt>) -> BTreeMap<String, String> {
    prompts
        .iter()
        .map(|(file, prompt)| (file.clone(), prompt.hash.clone()))
        .collect()
}

/// R1: the engine refuses a container with more cores than its host has.
fn check_cores(
    key: &InstanceKey,
    capability: &Capability,
    overrides: Option<&LimitOverrides>,
    observed: &Observed,
    findings: &mut Vec<Diagnostic>,
) {
    let cores = observed.engine.cpus;
    if capability.limits.nano_cpus > cores.saturating_mul(1_000_000_000) {
        let place = match overrides.and_then(|limits| limits.nano_cpus.as_ref()) {
            Some((_, origin)) => place(origin, &format!("limits[\"{key}\"].max_cpu_fraction")),
            None => {
                let path = "resources.max_cpu_fraction";
                place_at(&capability.origin, capability.cpus_at, path)
            }
        };
        let message = format!(
            "{key}: a limit of {} cores is above the {cores} of the engine's host",
            crate::report::cores(capability.limits.nano_cpus)
        );
        findings.push(Diagnostic::new(&code::CPU_ABOVE_ENGINE, place, message));
    }
}

fn locked<'a>(lock: Option<&'a Lock>, key: &InstanceKey) -> Option<&'a LockedInstance> {
    lock.and_then(|lock| lock.instances.get(key))
}

fn place(origin: &Origin, path: &str) -> Place {
    Place {
        origin: origin.clone(),
        length: 1,
        path: path.to_owned(),
    }
}

/// Another place in the same file.
fn place_at(origin: &Origin, span: Span, path: &str) -> Place {
    Place {
        origin: Origin {
            file: origin.file.clone(),
            line: span.line,
            column: span.column,
        },
        length: span.length,
        path: path.to_owned(),
    }
}

/// The project's folder as a whole.
fn project_place() -> Place {
    Place {
        origin: Origin {
            file: ".".into(),
            line: 0,
            column: 0,
        },
        length: 0,
        path: String::new(),
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
