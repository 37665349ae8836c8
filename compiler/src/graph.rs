//! Agents, their capabilities, and what those reach, hold and run: as a picture, and the other way round (`why`).

mod dot;
mod mermaid;
mod svg;
mod why;

use std::collections::{BTreeMap, BTreeSet};

pub use svg::{SVG_STYLE, svg_inline};
pub use why::{Role, Use, names, why};

use crate::model::{CredentialScope, InstanceKey, Network, NetworkMode};
use crate::plan::{ImageKind, Plan};
use crate::review::{Grade, Review, Snapshot};

/// What `network.mode: any` reaches.
const ANY: &str = "any public name";

/// Nodes in layers, from agents to what their capabilities use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    /// By kind and name, each once.
    nodes: Vec<Node>,
    /// From and to, as positions in `nodes`.
    edges: BTreeSet<(usize, usize)>,
}

/// One thing in the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    kind: Kind,
    /// As it is; every form makes it safe for itself.
    name: String,
    /// What is written for it, where that is not the name.
    label: String,
    /// What a change means for it.
    grade: Option<Grade>,
}

/// What a node is, in the order of the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Agent,
    Capability,
    Image,
    Host,
    Credential,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Capability => "capability",
            Self::Image => "image",
            Self::Host => "host",
            Self::Credential => "credential",
        }
    }
}

/// What the picture shows of one instance.
struct Shown<'a> {
    key: &'a InstanceKey,
    image: &'a str,
    local: bool,
    network: &'a Network,
    credentials: Vec<(&'a str, CredentialScope)>,
}

impl Graph {
    /// What a plan says, agents without capabilities too.
    pub fn of_plan(plan: &Plan) -> Self {
        let mut graph = Self::default();
        let mut at = BTreeMap::new();
        for id in plan.agents.keys().filter(|id| *id != InstanceKey::NAMELESS) {
            graph.node(&mut at, Kind::Agent, id, id);
        }
        for (key, instance) in &plan.instances {
            let credentials = instance.credentials.iter();
            graph.instance(
                &mut at,
                &Shown {
                    key,
                    image: &instance.image.written,
                    local: instance.image.kind == ImageKind::Local,
                    network: &instance.network_rules,
                    credentials: credentials
                        .map(|one| (one.name.as_str(), one.scope))
                        .collect(),
                },
            );
        }
        graph
    }

    /// What a state of a project says.
    pub fn of_snapshot(snapshot: &Snapshot) -> Self {
        let mut graph = Self::default();
        let mut at = BTreeMap::new();
        for (key, instance) in &snapshot.instances {
            let credentials = instance.credentials.iter();
            graph.instance(
                &mut at,
                &Shown {
                    key,
                    image: &instance.image.written,
                    local: instance.image.kind == ImageKind::Local,
                    network: &instance.network,
                    credentials: credentials
                        .map(|(name, one)| (name.as_str(), one.scope))
                        .collect(),
                },
            );
        }
        graph
    }

    /// Marks each capability with what its changes mean at most.
    pub fn mark(&mut self, review: &Review) {
        let mut worst: BTreeMap<&str, Grade> = BTreeMap::new();
        for finding in &review.findings {
            let Some(instance) = &finding.instance else {
                continue;
            };
            let grade = worst.entry(instance.as_str()).or_insert(finding.grade);
            // Widening is the first of the grades.
            *grade = finding.grade.min(*grade);
        }
        for node in &mut self.nodes {
            if node.kind == Kind::Capability {
                node.grade = worst.get(node.name.as_str()).copied();
            }
        }
    }

    /// The same without what no change touched, for a picture of a change; what a touched capability uses stays.
    pub fn marked_only(&self) -> Self {
        let kept_capability = |at: usize| {
            self.nodes
                .get(at)
                .is_some_and(|node| node.kind == Kind::Capability && node.grade.is_some())
        };
        let edges: Vec<(usize, usize)> = self
            .edges
            .iter()
            .copied()
            .filter(|(from, to)| kept_capability(*from) || kept_capability(*to))
            .collect();
        let mut kept: BTreeSet<usize> = edges.iter().flat_map(|(a, b)| [*a, *b]).collect();
        kept.extend((0..self.nodes.len()).filter(|at| kept_capability(*at)));
        let place: BTreeMap<usize, usize> = kept
            .iter()
            .enumerate()
            .map(|(new, old)| (*old, new))
            .collect();
        Self {
            nodes: kept
                .iter()
                .filter_map(|at| self.nodes.get(*at).cloned())
                .collect(),
            edges: edges
                .into_iter()
                .filter_map(|(a, b)| Some((*place.get(&a)?, *place.get(&b)?)))
                .collect(),
        }
    }

    /// Whether there is nothing to be seen.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many nodes there are.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// How many there are of each kind, in words.
    pub fn summary(&self) -> String {
        let of = |kind: Kind| self.nodes.iter().filter(|node| node.kind == kind).count();
        let counted = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        [
            counted(of(Kind::Agent), "agent", "agents"),
            counted(of(Kind::Capability), "capability", "capabilities"),
            counted(of(Kind::Image), "image", "images"),
            counted(of(Kind::Host), "host", "hosts"),
            counted(of(Kind::Credential), "credential", "credentials"),
        ]
        .join(", ")
    }

    fn node(
        &mut self,
        at: &mut BTreeMap<(Kind, String), usize>,
        kind: Kind,
        name: &str,
        label: &str,
    ) -> usize {
        *at.entry((kind, name.to_owned())).or_insert_with(|| {
            self.nodes.push(Node {
                kind,
                name: name.to_owned(),
                label: label.to_owned(),
                grade: None,
            });
            self.nodes.len() - 1
        })
    }

    fn instance(&mut self, at: &mut BTreeMap<(Kind, String), usize>, shown: &Shown<'_>) {
        let Shown {
            key,
            image,
            local,
            network,
            credentials,
        } = shown;
        let capability = self.node(at, Kind::Capability, key.as_str(), key.capability());
        if key.agent() != InstanceKey::NAMELESS {
            let agent = self.node(at, Kind::Agent, key.agent(), key.agent());
            self.edges.insert((agent, capability));
        }
        let label = match local {
            true => format!("{image} (local)"),
            false => (*image).to_owned(),
        };
        let image = self.node(at, Kind::Image, image, &label);
        self.edges.insert((capability, image));
        let hosts: Vec<&str> = match network.mode {
            NetworkMode::None => Vec::new(),
            NetworkMode::Allowlist => network.hosts.iter().map(String::as_str).collect(),
            NetworkMode::Any => vec![ANY],
        };
        for host in hosts {
            let host = self.node(at, Kind::Host, host, host);
            self.edges.insert((capability, host));
        }
        for (name, scope) in credentials {
            let label = match scope {
                CredentialScope::System => (*name).to_owned(),
                CredentialScope::User => format!("{name} (per user)"),
            };
            let credential = self.node(at, Kind::Credential, name, &label);
            self.edges.insert((capability, credential));
        }
    }
}

#[cfg(test)]
mod tests;
