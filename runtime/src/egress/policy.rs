//! The gateway's policy: what it may carry, per network (S8).

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::Ipv4Net;
use selu_compiler::check::network::host::Entry;
use selu_compiler::model::{InstanceKey, Network, NetworkMode, is_id};
use selu_compiler::plan::hash::sha256;
use selu_compiler::plan::spec::POLICY_PROTOCOL;
use selu_compiler::plan::{GatewayRule, PlannedNetwork};
use serde::{Deserialize, Serialize};

/// Version of the delivery's and the stored policy's form. The gateway's image bears it in its tag.
pub const PROTOCOL: u32 = POLICY_PROTOCOL;

/// Largest delivery that is read, in bytes.
pub const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The smallest network there is: sixteen addresses, half of them virtual.
const MAX_PREFIX: u8 = 28;

/// What a gateway may carry. Whatever is not here is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The project whose gateway this is.
    pub project: String,
    /// Counts up by one with each policy: compare and set. The first may bear any number from 1.
    pub generation: u64,
    /// By network name.
    pub networks: BTreeMap<String, GatewayRule>,
    /// Addresses of the engine's host, whatever the rules say (N8, S6). Sorted.
    pub refused: Vec<IpAddr>,
    /// Where this project's networks are: never dialled, whatever the rules say (N8). Sorted.
    pub ranges: Vec<Ipv4Net>,
}

/// A policy on its way to the gateway and on its volume: with the hash that the sender computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// [`Policy::hash`].
    pub hash: String,
    /// The policy.
    pub policy: Policy,
}

/// What the gateway goes by. Where anything may leave, it is the worker that carries it who says so (S8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ack {
    /// The project.
    pub project: String,
    /// The generation.
    pub generation: u64,
    /// The hash.
    pub hash: String,
}

/// How the gateway stands: `policy --show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// What it goes by.
    pub ack: Ack,
    /// [`Policy::refused`], which no plan knows.
    pub refused: Vec<IpAddr>,
    /// Networks of the policy that the gateway is not attached to: nothing leaves them.
    pub unattached: Vec<String>,
    /// Why it does not go by the policy although it has it; nothing is carried then.
    pub problem: Option<String>,
}

/// Why a policy is refused, or why there is none to go by. Nothing is carried then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// None was delivered yet.
    #[error("the gateway has no policy yet")]
    Missing,
    /// It cannot be read as one.
    #[error("the policy is corrupt: {0}")]
    Corrupt(String),
    /// Another form.
    #[error("the policy has protocol {found}, this gateway speaks {PROTOCOL}")]
    Protocol {
        /// What it has.
        found: u32,
    },
    /// Somebody else was faster, or the sender's picture is old.
    #[error("the gateway has policy generation {present}, so generation {offered} is out of turn")]
    OutOfTurn {
        /// What the gateway has.
        present: u64,
        /// What was sent.
        offered: u64,
    },
    /// The volume belongs to another project.
    #[error("the gateway belongs to project {present}, not to {offered}")]
    Project {
        /// Whose it is.
        present: String,
        /// Whose policy came.
        offered: String,
    },
    /// It opens something, and this gateway was made without what is needed to carry it.
    #[error(
        "the policy lets something leave, and this gateway was made to carry nothing; `selu apply` makes it anew"
    )]
    Closed,
    /// A rule makes no sense or is not carried out by this gateway.
    #[error("network {network}: {message}")]
    Rule {
        /// The network.
        network: String,
        /// What is wrong, and the way out.
        message: String,
    },
}

impl Policy {
    /// A policy for these networks. `range` is what new ones are cut from; old ones may lie elsewhere.
    pub fn new(
        project: &str,
        generation: u64,
        range: Ipv4Net,
        networks: BTreeMap<String, GatewayRule>,
        mut refused: Vec<IpAddr>,
    ) -> Self {
        let elsewhere = networks.values().map(|rule| rule.subnet);
        let elsewhere = elsewhere.filter(|subnet| !range.contains(subnet));
        let mut ranges: Vec<Ipv4Net> = std::iter::once(range).chain(elsewhere).collect();
        ranges.sort();
        ranges.dedup();
        refused.sort();
        refused.dedup();
        Self {
            project: project.to_owned(),
            generation,
            networks,
            refused,
            ranges,
        }
    }

    /// `sha256:` and hex over the canonical form.
    pub fn hash(&self) -> Result<String, PolicyError> {
        let canonical =
            serde_json::to_vec(self).map_err(|error| PolicyError::Corrupt(error.to_string()))?;
        Ok(sha256(&canonical))
    }

    /// With its hash, ready to be sent or stored.
    pub fn seal(self) -> Result<Sealed, PolicyError> {
        Ok(Sealed {
            protocol: PROTOCOL,
            hash: self.hash()?,
            policy: self,
        })
    }

    /// Whether every rule makes sense and is one that this gateway carries out.
    pub fn validate(&self) -> Result<(), PolicyError> {
        if !is_id(&self.project) {
            return Err(PolicyError::Corrupt(format!(
                "{:?} is no project name",
                self.project
            )));
        }
        if self.generation == 0 {
            return Err(PolicyError::Corrupt("generations count from 1".to_owned()));
        }
        if !self.refused.is_sorted_by(|a, b| a < b) || !self.ranges.is_sorted_by(|a, b| a < b) {
            return Err(PolicyError::Corrupt(
                "the refused addresses and ranges are not sorted, each once".to_owned(),
            ));
        }
        for (network, rule) in &self.networks {
            self.validate_rule(network, rule)
                .map_err(|message| PolicyError::Rule {
                    network: network.clone(),
                    message,
                })?;
            let overlaps = self.networks.iter().find(|(other, other_rule)| {
                *other != network
                    && (other_rule.subnet.contains(&rule.subnet)
                        || rule.subnet.contains(&other_rule.subnet))
            });
            if let Some((other, _)) = overlaps {
                return Err(PolicyError::Rule {
                    network: network.clone(),
                    message: format!("its subnet {} overlaps that of {other}", rule.subnet),
                });
            }
        }
        Ok(())
    }

    fn validate_rule(&self, network: &str, rule: &GatewayRule) -> Result<(), String> {
        let GatewayRule {
            instance,
            subnet,
            capability,
            rules,
            private,
        } = rule;
        if !network.starts_with(&format!("selu_{}_", self.project)) {
            return Err(format!("is no network of project {}", self.project));
        }
        if InstanceKey::parse(instance.as_str()).is_none() {
            return Err(format!("{:?} is no agent/capability", instance.as_str()));
        }
        if subnet.addr() != subnet.network() || subnet.prefix_len() > MAX_PREFIX {
            return Err(format!(
                "{subnet} is no subnet that a container can live in"
            ));
        }
        let planned = PlannedNetwork::new(network.to_owned(), *subnet);
        if *capability != planned.capability {
            return Err(format!(
                "{capability} is not the container's address in {subnet}, which is {}",
                planned.capability
            ));
        }
        validate_entries(rules, private)
    }

    /// Whether anything may leave any of its networks.
    pub fn is_open(&self) -> bool {
        self.networks.values().any(GatewayRule::is_open)
    }

    /// What may be carried in one network.
    pub fn rule(&self, network: &str) -> Result<&GatewayRule, PolicyError> {
        self.networks.get(network).ok_or_else(|| PolicyError::Rule {
            network: network.to_owned(),
            message: format!(
                "is not in policy generation {} of project {}",
                self.generation, self.project
            ),
        })
    }
}

/// A misspelt entry is no entry: it fails the whole policy, and is never skipped.
fn validate_entries(rules: &Network, private: &[String]) -> Result<(), String> {
    let parse = |what: &str, list: &[String]| {
        if !list.is_sorted_by(|a, b| a < b) {
            return Err(format!("{what} is not sorted, each entry once"));
        }
        list.iter()
            .map(|text| Entry::parse_normalised(text).map_err(|error| format!("{what}: {error}")))
            .collect::<Result<Vec<_>, _>>()
    };
    let hosts = parse("hosts", &rules.hosts)?;
    let private = parse("private", private)?;
    match rules.mode {
        NetworkMode::Any if hosts.is_empty() => Ok(()),
        NetworkMode::None | NetworkMode::Any if !hosts.is_empty() => {
            Err("hosts belong to mode allowlist alone".to_owned())
        }
        NetworkMode::None | NetworkMode::Any | NetworkMode::Allowlist => {
            let uncovered = private
                .iter()
                .find(|entry| !hosts.iter().any(|host| host.covers(entry)));
            match uncovered {
                Some(entry) => Err(format!("private: `{entry}` is not among the hosts")),
                None => Ok(()),
            }
        }
    }
}

impl Sealed {
    /// Reads, checks hash and rules. Anything doubtful is an error.
    pub fn read(bytes: &[u8]) -> Result<Self, PolicyError> {
        let sealed: Self = serde_json::from_slice(bytes)
            .map_err(|error| PolicyError::Corrupt(error.to_string()))?;
        if sealed.protocol != PROTOCOL {
            return Err(PolicyError::Protocol {
                found: sealed.protocol,
            });
        }
        let hash = sealed.policy.hash()?;
        if sealed.hash != hash {
            return Err(PolicyError::Corrupt(format!(
                "it hashes to {hash}, not to {}",
                sealed.hash
            )));
        }
        sealed.policy.validate()?;
        Ok(sealed)
    }

    /// Whether this one may follow what is present. A second delivery of the very same policy may: its sender did not
    /// hear the first acknowledgement. A missing or corrupt predecessor is followed by any generation, so that a lost
    /// volume can be made good.
    pub fn may_follow(&self, present: Option<&Self>) -> Result<(), PolicyError> {
        let Some(present) = present else {
            return Ok(());
        };
        if present.policy.project != self.policy.project {
            return Err(PolicyError::Project {
                present: present.policy.project.clone(),
                offered: self.policy.project.clone(),
            });
        }
        let again = present.hash == self.hash;
        if again || self.policy.generation.checked_sub(1) == Some(present.policy.generation) {
            return Ok(());
        }
        Err(PolicyError::OutOfTurn {
            present: present.policy.generation,
            offered: self.policy.generation,
        })
    }

    /// How a gateway stands that carries nothing and so needs no device.
    pub fn standing(&self) -> Standing {
        Standing {
            ack: self.ack(),
            refused: self.policy.refused.clone(),
            unattached: Vec::new(),
            problem: None,
        }
    }

    /// What to tell the desk once this policy is gone by.
    pub fn ack(&self) -> Ack {
        Ack {
            project: self.policy.project.clone(),
            generation: self.policy.generation,
            hash: self.hash.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use selu_compiler::model::Network;

    use super::*;

    fn rule(subnet: &str, capability: &str) -> GatewayRule {
        GatewayRule {
            instance: InstanceKey::new("weather", "api"),
            subnet: subnet.parse().unwrap(),
            capability: capability.parse().unwrap(),
            rules: Network {
                mode: NetworkMode::None,
                hosts: Vec::new(),
            },
            private: Vec::new(),
        }
    }

    fn policy(generation: u64) -> Policy {
        Policy {
            project: "demo".to_owned(),
            generation,
            networks: BTreeMap::from([(
                "selu_demo_weather_api_1".to_owned(),
                rule("10.90.1.0/28", "10.90.1.2"),
            )]),
            refused: Vec::new(),
            ranges: vec!["10.90.0.0/16".parse().unwrap()],
        }
    }

    fn refusal(change: impl FnOnce(&mut Policy)) -> String {
        let mut policy = policy(1);
        change(&mut policy);
        policy.validate().unwrap_err().to_string()
    }

    #[test]
    fn a_sealed_policy_reads_back_and_any_changed_byte_is_corrupt() {
        let sealed = policy(1).seal().unwrap();
        let bytes = serde_json::to_vec(&sealed).unwrap();
        assert_eq!(Sealed::read(&bytes).unwrap(), sealed);

        let text = String::from_utf8(bytes).unwrap();
        let forged = text.replace("10.90.1.2\"", "10.90.1.3\"");
        assert_ne!(forged, text);
        assert!(matches!(
            Sealed::read(forged.as_bytes()),
            Err(PolicyError::Corrupt(_))
        ));
        assert!(matches!(Sealed::read(b"{"), Err(PolicyError::Corrupt(_))));
        let newer = text.replace("\"protocol\":2", "\"protocol\":3");
        assert_eq!(
            Sealed::read(newer.as_bytes()),
            Err(PolicyError::Protocol { found: 3 })
        );
    }

    #[test]
    fn generations_are_compared_and_set() {
        let one = policy(1).seal().unwrap();
        let two = policy(2).seal().unwrap();
        let three = policy(3).seal().unwrap();
        assert_eq!(three.may_follow(None), Ok(()));
        assert_eq!(two.may_follow(Some(&one)), Ok(()));
        assert_eq!(one.may_follow(Some(&one)), Ok(()), "delivered twice");
        for (next, present) in [(&three, &one), (&one, &two)] {
            assert_eq!(
                next.may_follow(Some(present)),
                Err(PolicyError::OutOfTurn {
                    present: present.policy.generation,
                    offered: next.policy.generation
                })
            );
        }
        let mut rival = policy(1);
        rival.networks.clear();
        let rival = rival.seal().unwrap();
        assert!(matches!(
            rival.may_follow(Some(&one)),
            Err(PolicyError::OutOfTurn { .. })
        ));
        let mut foreign = policy(2);
        foreign.project = "other".to_owned();
        foreign.networks.clear();
        assert!(matches!(
            foreign.seal().unwrap().may_follow(Some(&one)),
            Err(PolicyError::Project { .. })
        ));
    }

    #[test]
    fn rules_that_make_no_sense_are_refused_with_their_network() {
        let name = "selu_demo_weather_api_1";
        type Change = Box<dyn FnOnce(&mut Policy)>;
        let cases: [(&str, Change); 6] = [
            (
                "10.90.2.2 is not the container's address in 10.90.1.0/28, which is 10.90.1.2",
                Box::new(|p| {
                    p.networks.get_mut(name).unwrap().capability = "10.90.2.2".parse().unwrap();
                }),
            ),
            (
                "10.90.1.15 is not the container's address",
                Box::new(|p| {
                    p.networks.get_mut(name).unwrap().capability = "10.90.1.15".parse().unwrap();
                }),
            ),
            (
                "is no subnet that a container can live in",
                Box::new(|p| {
                    p.networks.get_mut(name).unwrap().subnet = "10.90.1.2/32".parse().unwrap();
                }),
            ),
            (
                "is no subnet that a container can live in",
                Box::new(|p| {
                    p.networks.get_mut(name).unwrap().subnet = "10.90.1.0/29".parse().unwrap();
                }),
            ),
            (
                "is no network of project demo",
                Box::new(|p| {
                    let rule = p.networks.remove(name).unwrap();
                    p.networks
                        .insert("selu_other_weather_api_1".to_owned(), rule);
                }),
            ),
            (
                "overlaps that of",
                Box::new(|p| {
                    p.networks.insert(
                        "selu_demo_weather_api_2".to_owned(),
                        rule("10.90.0.0/16", "10.90.7.2"),
                    );
                }),
            ),
        ];
        for (expected, change) in cases {
            let message = refusal(change);
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("selu_"), "{message}");
        }
    }

    #[test]
    fn a_doubtful_entry_fails_the_whole_policy() {
        use NetworkMode::{Allowlist, Any, None};
        let check = |mode, hosts: &[&str], private: &[&str]| {
            let mut policy = policy(1);
            let rule = policy.networks.values_mut().next().unwrap();
            let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            rule.rules = Network {
                mode,
                hosts: list(hosts),
            };
            rule.private = list(private);
            policy.validate().map_err(|error| error.to_string())
        };
        let both = ["*.a.example", "b.example:443"];
        assert_eq!(check(Allowlist, &both, &["db.a.example:5432"]), Ok(()));
        assert_eq!(check(Any, &[], &["db.a.example:5432"]), Ok(()));
        for (mode, hosts, private, expected) in [
            (
                Allowlist,
                &["B.example:443"][..],
                &[][..],
                "is written `b.example:443`",
            ),
            (Allowlist, &["https://b.example"], &[], "URL"),
            (Allowlist, &["*"], &[], "every host"),
            (
                Allowlist,
                &["b.example", "a.example"],
                &[],
                "hosts is not sorted",
            ),
            (
                Allowlist,
                &["a.example", "a.example"],
                &[],
                "each entry once",
            ),
            (
                Allowlist,
                &["a.example:443"],
                &["a.example"],
                "is not among the hosts",
            ),
            (
                Allowlist,
                &["*.a.example"],
                &["a.example"],
                "is not among the hosts",
            ),
            (None, &["a.example"], &[], "mode allowlist alone"),
            (Any, &["a.example"], &[], "mode allowlist alone"),
            (None, &[], &["a.example"], "is not among the hosts"),
        ] {
            let message = check(mode, hosts, private).unwrap_err();
            assert!(
                message.contains(expected),
                "{hosts:?} {private:?}: {message}"
            );
        }
    }

    #[test]
    fn a_network_outside_the_policy_is_refused_by_name() {
        let message = policy(4)
            .rule("selu_demo_mail_api_1")
            .unwrap_err()
            .to_string();
        assert_eq!(
            message,
            "network selu_demo_mail_api_1: is not in policy generation 4 of project demo"
        );
    }
}
