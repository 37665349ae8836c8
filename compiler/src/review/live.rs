//! What an engine and its images say: the state that a plan is compared with.

use std::collections::BTreeMap;

use super::{ImageSource, Snapshot};
use crate::diff::residents;
use crate::lock::{Lock, LockedCredential, LockedImage, LockedInstance};
use crate::model::Limits;
use crate::observed::{Observed, ObservedContainer};
use crate::plan::hash::RunRules;
use crate::plan::{Plan, PlannedContainer, PlannedInstance, label};

/// Labels by which images say what they were built from.
const SOURCE: &str = "org.opencontainers.image.source";
const REVISION: &str = "org.opencontainers.image.revision";

impl Snapshot {
    /// What runs now, as far as an engine knows it; the lock says the rest, and what of it does not run. An instance that
    /// neither knows is not there.
    pub fn of_live(plan: &Plan, observed: &Observed, lock: Option<&Lock>) -> Self {
        let mut live = lock.map(Self::of_lock).unwrap_or_default();
        for (key, planned) in &plan.instances {
            let newest = residents(&plan.project, key, observed).pop();
            let container = newest.and_then(|(_, name)| observed.containers.get(name));
            let (Some(container), Some(resident)) = (container, &planned.resident) else {
                continue;
            };
            let known = live.instances.remove(key).unwrap_or_else(|| {
                // Which tools it was meant to have nobody knows any more.
                LockedInstance {
                    tools: BTreeMap::new(),
                    ..LockedInstance::from_plan(planned)
                }
            });
            let rules = container.spec.labels.get(label::RULES);
            let rules = rules.and_then(|text| RunRules::from_label(text));
            if let Some(rules) = &rules
                && !rules.private.is_empty()
            {
                live.private.insert(key.clone(), rules.private.clone());
            }
            let instance = running(known, planned, resident, container, rules);
            live.instances.insert(key.clone(), instance);
        }
        live
    }

    /// With what the images say of themselves.
    #[must_use]
    pub fn with_images(mut self, plan: &Plan, observed: &Observed) -> Self {
        for (key, planned) in &plan.instances {
            let image = &planned.image;
            let by_reference = image.reference.as_ref();
            let facts = by_reference.and_then(|reference| observed.images.get(reference));
            let same = |id: &Option<String>| id.is_some() && *id == image.digest;
            let facts = facts.or_else(|| {
                let by_name = observed.images.get(&image.written);
                by_name.filter(|facts| same(&facts.id) || same(&facts.digest))
            });
            if let Some(facts) = facts.filter(|facts| facts.id.is_some()) {
                let source = ImageSource::of(&facts.labels);
                self.sources.insert(key.clone(), source);
            }
        }
        self
    }
}

impl ImageSource {
    /// From an image's labels.
    pub fn of(labels: &BTreeMap<String, String>) -> Self {
        let said = |name| {
            labels
                .get(name)
                .filter(|text| !text.trim().is_empty())
                .cloned()
        };
        Self {
            source: said(SOURCE),
            revision: said(REVISION),
        }
    }
}

fn running(
    mut known: LockedInstance,
    planned: &PlannedInstance,
    resident: &PlannedContainer,
    container: &ObservedContainer,
    rules: Option<RunRules>,
) -> LockedInstance {
    let spec = &container.spec;
    let as_planned = LockedInstance::from_plan(planned).image;
    known.image = if spec.image == resident.spec.image {
        as_planned
    } else {
        let digest = spec
            .image
            .rsplit_once('@')
            .map_or(spec.image.as_str(), |(_, digest)| digest);
        LockedImage {
            written: known.image.written.clone(),
            kind: as_planned.kind,
            digest: Some(digest.to_owned()),
            source: None,
        }
    };
    known.limits = Limits {
        memory_mb: spec.memory_bytes.div_ceil(1 << 20),
        nano_cpus: spec.nano_cpus,
        cpu_seconds: known.limits.cpu_seconds,
        pids: spec.pids,
    };
    let Some(rules) = rules else {
        return known;
    };
    let RunRules {
        cpu_seconds,
        network,
        // Not the instance's, but the permission for it.
        private: _,
        filesystem,
        cache,
        sharing,
        credentials,
    } = rules;
    known.limits.cpu_seconds = cpu_seconds;
    known.network = network;
    known.filesystem = filesystem;
    known.cache = cache;
    known.sharing = sharing;
    // Whether it is required, only the manifest says.
    let required = |name: &String| {
        let declared = planned.credentials.iter().find(|one| one.name == *name);
        let before = known.credentials.get(name);
        let declared = declared.map(|one| one.required);
        before.map(|one| one.required).or(declared).unwrap_or(true)
    };
    let credentials = credentials.into_iter().map(|(name, scope)| {
        let required = required(&name);
        (name, LockedCredential { scope, required })
    });
    known.credentials = credentials.collect();
    known
}
