//! Removing everything that a project owns (product.md 10, 15).

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use selu_compiler::observed::Observed;
use selu_compiler::plan::label;

use super::GRACE;
use crate::engine::{Engine, EngineError, EngineResult};
use crate::stop::Stop;

/// How many containers are ended at once: one that ignores the signal takes all of its grace, and waiting costs nothing.
const AT_ONCE: usize = 16;

/// What is to be removed, and what stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removal {
    /// Names, the gateway first: once it is gone, nothing carries anything.
    pub containers: Vec<String>,
    /// Names.
    pub networks: Vec<String>,
    /// Names with what they are for.
    pub volumes: Vec<(String, String)>,
    /// Volumes that hold data and were not asked for, with what they are for.
    pub kept_volumes: Vec<(String, String)>,
}

impl Removal {
    /// Everything of the project; volumes with data only where that was asked for.
    pub fn of(observed: &Observed, with_data: bool) -> Self {
        let role = |labels: &BTreeMap<String, String>| {
            labels.get(label::ROLE).cloned().unwrap_or_default()
        };
        let mut containers: Vec<(bool, String)> = observed
            .containers
            .iter()
            .map(|(name, container)| (role(&container.spec.labels), name))
            // The hold is what this very command has.
            .filter(|(role, _)| role != "hold")
            .map(|(role, name)| (role != "gateway", name.clone()))
            .collect();
        containers.sort();
        let mut removal = Self {
            containers: containers.into_iter().map(|(_, name)| name).collect(),
            networks: observed.networks.keys().cloned().collect(),
            ..Self::default()
        };
        for (name, volume) in &observed.volumes {
            let entry = (name.clone(), role(&volume.labels));
            let data = matches!(entry.1.as_str(), "workspace" | "cache");
            if with_data || !data {
                removal.volumes.push(entry);
            } else {
                removal.kept_volumes.push(entry);
            }
        }
        removal
    }

    /// What is in this one and was not in an earlier one, such as `container selu_x_a_b_2`.
    pub fn beyond(&self, earlier: &Self) -> Vec<String> {
        let new = |kind: &'static str, now: &[String], then: &[String]| {
            let new = now.iter().filter(|name| !then.contains(name));
            new.map(|name| format!("{kind} {name}")).collect::<Vec<_>>()
        };
        let names = |volumes: &[(String, String)]| -> Vec<String> {
            volumes.iter().map(|(name, _)| name.clone()).collect()
        };
        let mut beyond = new("container", &self.containers, &earlier.containers);
        beyond.extend(new("network", &self.networks, &earlier.networks));
        let (now, then) = (names(&self.volumes), names(&earlier.volumes));
        beyond.extend(new("volume", &now, &then));
        beyond
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.containers.is_empty() && self.networks.is_empty() && self.volumes.is_empty()
    }
}

/// What was removed.
#[derive(Debug, Default)]
pub struct Destroyed {
    /// Such as `container selu_x_gateway`.
    pub done: Vec<String>,
    /// What could not be removed, and why.
    pub failed: Vec<(String, String)>,
    /// What was left because of an interrupt.
    pub not_started: Vec<String>,
}

/// Removes it. What fails is reported, and the rest is removed nevertheless (F09).
pub async fn destroy(
    engine: &dyn Engine,
    observed: &Observed,
    removal: &Removal,
    stop: &Stop,
) -> Destroyed {
    let mut report = Destroyed::default();
    let none: &[String] = &[];
    let (first, others) = removal.containers.split_at(removal.containers.len().min(1));
    for group in [first, others] {
        let removals = group.iter().map(|name| async move {
            let what = format!("container {name}");
            if stop.requested() {
                return (what, None);
            }
            if let Err(error) = engine.stop(name, GRACE).await {
                // Removal by force comes next, and its error is the one that counts.
                tracing::debug!("{name} did not stop: {error}");
            }
            (what, Some(engine.remove_container(name).await))
        });
        let removals: Vec<_> = stream::iter(removals).buffered(AT_ONCE).collect().await;
        for (what, result) in removals {
            match result {
                Some(result) => report.note(what, result, none),
                None => report.not_started.push(what),
            }
        }
    }
    for name in &removal.networks {
        let what = format!("network {name}");
        if report.skip(stop, &what) {
            continue;
        }
        let strangers = strangers(observed, name);
        report.note(what, engine.remove_network(name).await, &strangers);
    }
    for (name, purpose) in &removal.volumes {
        let what = format!("{purpose} volume {name}");
        if report.skip(stop, &what) {
            continue;
        }
        report.note(what, engine.remove_volume(name).await, none);
    }
    report
}

/// Containers in a network of ours that are not ours.
pub(super) fn strangers(observed: &Observed, network: &str) -> Vec<String> {
    let attached = observed.networks.get(network).map(|one| &one.attached);
    attached
        .into_iter()
        .flatten()
        .filter(|name| !observed.containers.contains_key(*name))
        .cloned()
        .collect()
}

/// Takes the gateway's image away, once no container of ours uses it any more; says whether it is gone. Whoever took the
/// hold meanwhile keeps it.
pub async fn remove_gateway_image(engine: &dyn Engine, tag: &str) -> Result<bool, EngineError> {
    if engine.image(tag).await?.is_none() {
        return Ok(false);
    }
    engine.remove_image(tag).await?;
    Ok(engine.image(tag).await?.is_none())
}

impl Destroyed {
    fn skip(&mut self, stop: &Stop, what: &str) -> bool {
        let skip = stop.requested();
        if skip {
            self.not_started.push(what.to_owned());
        }
        skip
    }

    fn note(&mut self, what: String, result: EngineResult<()>, strangers: &[String]) {
        match result {
            Ok(()) => self.done.push(what),
            Err(error) if strangers.is_empty() => self.failed.push((what, error.to_string())),
            Err(error) => self.failed.push((
                what,
                format!(
                    "{error}; containers that are not ours are in it: {}",
                    strangers.join(", ")
                ),
            )),
        }
    }
}
