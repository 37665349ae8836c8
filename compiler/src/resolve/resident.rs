//! Residents and the gateway: generations, names, networks, settings.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::subnets::{CLOSED_PREFIX, Subnets, prefix_for};
use crate::diag::Diagnostic;
use crate::diag::codes::plan as code;
use crate::diff;
use crate::model::{InstanceKey, Origin, Project};
use crate::observed::{ImageFacts, Observed};
use crate::plan::hash::{MadeLimits, RunRules, spec_hash};
use crate::plan::{
    GatewayRule, PlannedContainer, PlannedGateway, PlannedInstance, PlannedNetwork, PlannedVolume,
    label, names, spec,
};

/// Gives every instance whose image is known its resident, and the project its gateway.
///
/// First everything that stays takes the subnet that it has, then what is new gets one of the rest: an old network never
/// moves for a new one.
pub(super) fn place_all(
    project_name: &str,
    project: &Project,
    observed: &Observed,
    content: &BTreeMap<InstanceKey, Option<&ImageFacts>>,
    instances: &mut BTreeMap<InstanceKey, PlannedInstance>,
    findings: &mut Vec<Diagnostic>,
) -> Option<PlannedGateway> {
    let mut placing = Placing {
        project: project_name,
        observed,
        subnets: Subnets::new(project.settings.subnets, in_use(observed)),
        resolvers: &project.settings.resolvers,
        findings,
    };
    for (key, _, capability) in project.instances() {
        let Some(instance) = instances.get_mut(&key) else {
            continue;
        };
        let Some(reference) = instance.image.reference.clone() else {
            continue;
        };
        let facts = content.get(&key).copied().flatten();
        let volumes = spec::resident_volumes(project_name, &key, capability);
        placing.check_volumes(&key, &capability.origin, &volumes);
        let rules = RunRules::of(capability, &instance.private);
        let mut spec = spec::resident(&reference, facts, capability, &volumes);
        let spec_hash = spec_hash(&spec, Some(&rules));
        spec.labels = spec::resident_labels(project_name, &key, 0, &spec_hash, &rules, facts);
        spec.labels
            .insert(label::LIMITS.to_owned(), MadeLimits::of(&spec).to_label());
        let draft = PlannedContainer {
            generation: 0,
            name: String::new(),
            network: PlannedNetwork::new(String::new(), Ipv4Net::default()),
            volumes,
            spec,
            spec_hash,
        };
        let prefix = prefix_for(&capability.network);
        instance.resident = placing.resident(&key, &capability.origin, draft, prefix);
    }
    let origin = instances.values().next()?.origin.clone();
    let policy = instances
        .iter()
        .filter_map(|(key, instance)| {
            let resident = instance.resident.as_ref()?;
            let rule = GatewayRule {
                instance: key.clone(),
                subnet: resident.network.subnet,
                capability: resident.network.capability,
                rules: instance.network_rules.clone(),
                private: instance.private.clone(),
            };
            Some((resident.network.name.clone(), rule))
        })
        .collect();
    placing.gateway(&origin, policy)
}

/// Every subnet that the engine has.
pub(super) fn in_use(observed: &Observed) -> Vec<Ipv4Net> {
    let own = observed.networks.values();
    observed
        .foreign_subnets
        .iter()
        .copied()
        .chain(own.filter_map(|network| network.subnet))
        .collect()
}

struct Placing<'a> {
    project: &'a str,
    observed: &'a Observed,
    subnets: Subnets,
    resolvers: &'a [Ipv4Addr],
    findings: &'a mut Vec<Diagnostic>,
}

impl Placing<'_> {
    /// The newest resident that is what it should be stays; else there is a new generation.
    fn resident(
        &mut self,
        key: &InstanceKey,
        origin: &Origin,
        draft: PlannedContainer,
        prefix: u8,
    ) -> Option<PlannedContainer> {
        let kept = diff::residents(self.project, key, self.observed)
            .into_iter()
            .rev()
            .filter_map(|(generation, name)| {
                let subnet = self.observed.networks.get(name)?.subnet?;
                (subnet.prefix_len() == prefix)
                    .then(|| draft.in_generation(generation, name, subnet))
            })
            .find(|candidate| diff::may_stay(candidate, self.project, self.observed));
        if kept.is_some() {
            return kept;
        }
        let generation = self.last_generation(key) + 1;
        let name = names::resident(self.project, key, generation);
        self.check_name(&name, origin, &format!("{key}: the name"));
        let subnet = self.subnet(prefix, &name, origin, key.as_str())?;
        Some(draft.in_generation(generation, &name, subnet))
    }

    /// Networks count, too: one may be left of a resident that was never created.
    fn last_generation(&self, key: &InstanceKey) -> u64 {
        self.observed
            .containers
            .keys()
            .chain(self.observed.networks.keys())
            .filter_map(|name| names::generation(name, self.project, key))
            .max()
            .unwrap_or(0)
    }

    fn gateway(
        &mut self,
        origin: &Origin,
        policy: BTreeMap<String, GatewayRule>,
    ) -> Option<PlannedGateway> {
        let name = names::gateway(self.project);
        self.check_name(&name, origin, "the gateway's name");
        let own = self
            .observed
            .networks
            .get(&name)
            .and_then(|network| network.subnet)
            .filter(|subnet| subnet.prefix_len() == CLOSED_PREFIX);
        let subnet = match own {
            Some(subnet) => subnet,
            None => self.subnet(CLOSED_PREFIX, &name, origin, "the gateway")?,
        };
        // Where no rule opens anything there is nothing to carry, and no privilege to carry it with.
        let carries = policy.values().any(GatewayRule::is_open);
        let (spec, spec_hash) = match carries {
            true => spec::open_gateway(self.project, self.observed.engine.cpus, self.resolvers),
            false => spec::closed_gateway(self.project),
        };
        let log_volume = carries.then(|| names::egress(self.project));
        if let Some(log) = &log_volume {
            self.check_name(log, origin, "the name of the gateway's log");
        }
        Some(PlannedGateway {
            network: PlannedNetwork {
                outside: carries,
                ..PlannedNetwork::new(name.clone(), subnet)
            },
            volume: name.clone(),
            log_volume,
            name,
            spec,
            spec_hash,
            range: self.subnets.range(),
            policy,
        })
    }

    fn subnet(&mut self, prefix: u8, name: &str, origin: &Origin, whose: &str) -> Option<Ipv4Net> {
        let subnet = self.subnets.take(prefix, self.project, name);
        if subnet.is_none() {
            let message = format!(
                "{whose}: no free /{prefix} is left in {}",
                self.subnets.range()
            );
            let place = super::place(origin, "network");
            self.findings
                .push(Diagnostic::new(&code::SUBNETS_EXHAUSTED, place, message));
        }
        subnet
    }

    fn check_volumes(
        &mut self,
        key: &InstanceKey,
        origin: &Origin,
        volumes: &BTreeMap<String, PlannedVolume>,
    ) {
        for (path, PlannedVolume { name, purpose }) in volumes {
            self.check_name(
                name,
                origin,
                &format!("{key}: the name of the volume at {path},"),
            );
            let Some(volume) = self.observed.volumes.get(name) else {
                continue;
            };
            for violation in &volume.violations {
                let message = format!(
                    "{key}: the volume `{name}` for {path} is not the plain one that was made: {violation}"
                );
                let place = super::place(origin, "filesystem");
                self.findings
                    .push(Diagnostic::new(&code::NAME_TAKEN, place, message));
            }
            // X3: labels are checked before a volume is mounted.
            let owner = volume.labels.get(label::INSTANCE).map(String::as_str);
            let role = volume.labels.get(label::ROLE).map(String::as_str);
            if owner != Some(key.as_str()) || role != Some(purpose) {
                let message = format!(
                    "{key}: the volume `{name}` for {path} is labelled as {} of {}",
                    role.unwrap_or("nothing"),
                    owner.unwrap_or("nobody"),
                );
                let place = super::place(origin, "filesystem");
                self.findings
                    .push(Diagnostic::new(&code::NAME_TAKEN, place, message));
            }
        }
    }

    fn check_name(&mut self, name: &str, origin: &Origin, whose: &str) {
        if let Some(owner) = self.observed.foreign_names.get(name) {
            let message = format!("{whose} `{name}` is taken: {owner}");
            let place = super::place(origin, "id");
            self.findings
                .push(Diagnostic::new(&code::NAME_TAKEN, place, message));
        }
    }
}
