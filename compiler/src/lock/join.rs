//! Two changed locks and what they both came from → one lock (product.md 26).
//!
//! Entry by entry: a field of an instance, a tool. What only one side changed is taken; what both changed alike is taken;
//! what they changed differently is a clash, and never decided here. A tool is one entry: a policy that was settled for
//! one definition is not put beside another one. So is all that one discovery found: a list of tools that no image ever
//! reported would be nobody's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::entry::Definition;
use super::{Lock, LockedDiscovery, LockedImage, LockedInstance, LockedTool, ToolOrigin};
use crate::diag::shown;
use crate::model::{InstanceKey, Limits, Network};

/// Whose word counts where both sides changed the same entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What both came from.
    Base,
    /// The branch that is merged into.
    Ours,
    /// The branch that is merged.
    Theirs,
}

/// An entry that both sides changed, differently.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clash {
    /// Whose entry.
    pub instance: InstanceKey,
    /// Which one.
    pub part: Part,
}

/// A part of an instance that changes as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Both sides added the instance, or one removed what the other changed.
    Whole,
    /// A field, by its name in the lock.
    Field(String),
    /// Image, discovery and the definitions of discovered tools: both sides discovered, and not the same.
    Discovered,
    /// A tool.
    Tool(String),
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, part } = self;
        match part {
            Part::Whole => write!(
                f,
                "{instance}: one side has it otherwise than the other, or not at all"
            ),
            Part::Field(name) => write!(f, "{instance}: both sides changed {}", shown(name)),
            Part::Discovered => write!(
                f,
                "{instance}: both sides discovered its tools, and not the same"
            ),
            Part::Tool(name) => {
                write!(f, "{instance}: both sides changed the tool {}", shown(name))
            }
        }
    }
}

/// What came of a merge.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// All that is not in doubt, and one side's word where it is.
    pub lock: Lock,
    /// Where it is; sorted, and empty if the merge is done.
    pub clashes: Vec<Clash>,
}

impl Lock {
    /// Merges two locks that came from the same one. Clashes get the word of one side, and are named.
    pub fn join(base: &Self, ours: &Self, theirs: &Self, side: Side) -> Joined {
        let mut joined = Joined {
            lock: Self::default(),
            clashes: Vec::new(),
        };
        for key in keys([&base.instances, &ours.instances, &theirs.instances]) {
            let mut join = Join {
                side,
                instance: key,
                clashes: &mut joined.clashes,
            };
            let merged = join.instance(
                base.instances.get(key),
                ours.instances.get(key),
                theirs.instances.get(key),
            );
            if let Some(instance) = merged {
                joined.lock.instances.insert(key.clone(), instance);
            }
        }
        joined.clashes.sort();
        joined.clashes.dedup();
        joined
    }
}

fn keys<K: Ord, V>(maps: [&BTreeMap<K, V>; 3]) -> BTreeSet<&K> {
    maps.into_iter().flat_map(BTreeMap::keys).collect()
}

struct Join<'a> {
    side: Side,
    instance: &'a InstanceKey,
    clashes: &'a mut Vec<Clash>,
}

impl Join<'_> {
    /// The value that is not in doubt, else one side's, which is noted.
    fn one<T: PartialEq>(&mut self, part: impl FnOnce() -> Part, of: [T; 3]) -> T {
        let [base, ours, theirs] = of;
        if ours == theirs || base == theirs {
            return ours;
        }
        if base == ours {
            return theirs;
        }
        self.clash(part());
        match self.side {
            Side::Base => base,
            Side::Ours => ours,
            Side::Theirs => theirs,
        }
    }

    fn clash(&mut self, part: Part) {
        self.clashes.push(Clash {
            instance: self.instance.clone(),
            part,
        });
    }

    fn instance(
        &mut self,
        base: Option<&LockedInstance>,
        ours: Option<&LockedInstance>,
        theirs: Option<&LockedInstance>,
    ) -> Option<LockedInstance> {
        match (base, ours, theirs) {
            (Some(base), Some(ours), Some(theirs)) => Some(self.fields([base, ours, theirs])),
            _ => self.one(|| Part::Whole, [base, ours, theirs]).cloned(),
        }
    }

    fn field<'b, T: PartialEq>(
        &mut self,
        name: &str,
        of: [&'b LockedInstance; 3],
        get: impl Fn(&'b LockedInstance) -> T,
    ) -> T {
        self.one(|| Part::Field(name.to_owned()), of.map(get))
    }

    fn fields(&mut self, of: [&LockedInstance; 3]) -> LockedInstance {
        let limit = |get: fn(&Limits) -> u64| move |one: &LockedInstance| get(&one.limits);
        let Tools {
            image,
            discovery,
            tools,
        } = self.tools(of);
        // Every field is named, so that a new one is not forgotten.
        LockedInstance {
            image,
            class: self.field("class", of, |one| one.class),
            filesystem: self.field("filesystem", of, |one| one.filesystem),
            cache: self.field("cache", of, |one| one.cache),
            sharing: self.field("sharing", of, |one| &one.sharing).clone(),
            limits: Limits {
                memory_mb: self.field("limits.memory_mb", of, limit(|of| of.memory_mb)),
                nano_cpus: self.field("limits.nano_cpus", of, limit(|of| of.nano_cpus)),
                cpu_seconds: self.field("limits.cpu_seconds", of, limit(|of| of.cpu_seconds)),
                pids: self.field("limits.pids", of, limit(|of| of.pids)),
            },
            network: self.network(of.map(|one| &one.network)),
            credentials: self.map("credential", of.map(|one| &one.credentials)),
            prompts: self.map("prompt", of.map(|one| &one.prompts)),
            discovery,
            tools,
        }
    }

    fn map<V: PartialEq + Clone>(
        &mut self,
        name: &str,
        of: [&BTreeMap<String, V>; 3],
    ) -> BTreeMap<String, V> {
        let mut merged = BTreeMap::new();
        for key in keys(of) {
            let part = || Part::Field(format!("{name}.{key}"));
            if let Some(value) = self.one(part, of.map(|map| map.get(key))) {
                merged.insert(key.clone(), value.clone());
            }
        }
        merged
    }

    /// Two lists of hosts are one, host by host, as long as they are lists of the same mode.
    fn network(&mut self, of: [&Network; 3]) -> Network {
        let [base, ours, theirs] = of;
        if ours.mode != theirs.mode || base.mode != ours.mode {
            return self.one(|| Part::Field("network".to_owned()), of).clone();
        }
        let all: BTreeSet<&String> = of.into_iter().flat_map(|one| &one.hosts).collect();
        let kept = all.into_iter().filter(|host| {
            let [base, ours, theirs] = of.map(|one| one.hosts.contains(host));
            // Of two sides that differ one is as it was.
            if ours == theirs { ours } else { !base }
        });
        Network {
            mode: ours.mode,
            hosts: kept.cloned().collect(),
        }
    }

    fn tools(&mut self, of: [&LockedInstance; 3]) -> Tools {
        let discovers = of.iter().any(|one| one.discovery.is_some());
        let [base, ours, theirs] = of.map(Discovered::of);
        if discovers && ours != theirs && base != ours && base != theirs {
            self.clash(Part::Discovered);
            let [base, ours, theirs] = of;
            let one = match self.side {
                Side::Base => base,
                Side::Ours => ours,
                Side::Theirs => theirs,
            };
            return Tools {
                image: one.image.clone(),
                discovery: one.discovery.clone(),
                tools: one.tools.clone(),
            };
        }
        let image = self.field("image", of, |one| &one.image).clone();
        let discovery = self.field("discovery", of, |one| &one.discovery).clone();
        let mut tools = BTreeMap::new();
        for name in keys(of.map(|one| &one.tools)) {
            let part = || Part::Tool(name.clone());
            if let Some(tool) = self.one(part, of.map(|one| one.tools.get(name))) {
                tools.insert(name.clone(), tool.clone());
            }
        }
        Tools {
            image,
            discovery,
            tools,
        }
    }
}

/// The fields of an instance that one discovery may settle together.
struct Tools {
    image: LockedImage,
    discovery: Option<LockedDiscovery>,
    tools: BTreeMap<String, LockedTool>,
}

/// What one discovery settles: everything about the tools but their policies.
#[derive(PartialEq)]
struct Discovered<'a> {
    image: &'a LockedImage,
    discovery: &'a Option<LockedDiscovery>,
    tools: BTreeMap<&'a String, Definition<'a>>,
}

impl<'a> Discovered<'a> {
    fn of(instance: &'a LockedInstance) -> Self {
        let tools = instance
            .tools
            .iter()
            .filter(|(_, tool)| tool.source == ToolOrigin::Discovered)
            .map(|(name, tool)| (name, tool.definition()));
        Self {
            image: &instance.image,
            discovery: &instance.discovery,
            tools: tools.collect(),
        }
    }
}
