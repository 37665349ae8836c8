//! What selu.toml says about the way out: resolvers, and permissions for private addresses (N8).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::network::host::{self, Entry, Host};
use super::{Check, Known, Outcome, Target};
use crate::diag::codes::settings as codes;
use crate::diag::{self, Diagnostic, Place};
use crate::model::{InstanceKey, NetworkMode};
use crate::resolve::default_range;
use crate::yaml::escape;

/// Metadata services outside the link-local range.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

fn is_resolver(address: Ipv4Addr) -> bool {
    let nobody = address.is_unspecified() || address.is_broadcast() || address.is_multicast();
    // The gateway's own loopback holds no resolver but the engine's.
    !nobody && !address.is_loopback()
}

/// An entry that may lead to private addresses.
pub(super) struct Permission {
    instance: InstanceKey,
    entry: Entry,
    place: Place,
}

impl Check<'_> {
    pub(super) fn resolvers(&mut self, written: Vec<Option<String>>) {
        for (index, text) in written.into_iter().enumerate() {
            let text = text.unwrap_or_default();
            match text.parse::<Ipv4Addr>() {
                Ok(address) if is_resolver(address) => {
                    self.outcome.settings.resolvers.push(address);
                }
                _ => self.findings.push(
                    Diagnostic::new(
                        &codes::BAD_RESOLVER,
                        self.document.place(&format!("/engine/resolvers/{index}")),
                        format!("`{}` is not a resolver's address", diag::shown(&text)),
                    )
                    .help("write an IPv4 address that the gateway's container can reach, without a port"),
                ),
            }
        }
    }

    /// The entries of one instance. Whether its rules cover them is known once the project is.
    pub(super) fn private(&mut self, key: &str, entries: Option<Vec<Option<String>>>) {
        let pointer = format!("/network/{}", escape(key));
        let place = self.document.key_place(&pointer);
        let Some(instance) = InstanceKey::parse(key) else {
            self.bad_key(place, key, "agent/capability");
            return;
        };
        self.outcome.targets.push(Target {
            instance: instance.clone(),
            tool: None,
            place,
            code: &codes::NOT_AN_INSTANCE,
        });
        for (index, text) in entries.unwrap_or_default().into_iter().enumerate() {
            let place = self.document.place(&format!("{pointer}/private/{index}"));
            let entry = match host::parse(&text.unwrap_or_default()) {
                Ok(entry) => entry,
                Err(problem) => {
                    let mut finding = Diagnostic::new(problem.code, place, problem.message);
                    finding.help = problem.help;
                    finding.suggestion = problem.suggestion;
                    self.findings.push(finding);
                    continue;
                }
            };
            if let Some(why) = self.never(&entry) {
                let message = format!("`{entry}` can't be permitted: {why}");
                self.findings
                    .push(Diagnostic::new(&codes::PRIVATE_NEVER, place, message));
                continue;
            }
            let permissions = &mut self.outcome.permissions;
            permissions.push(Permission {
                instance: instance.clone(),
                entry,
                place,
            });
        }
    }

    /// What no setting opens (N8). A name that leads to such an address is refused when it is dialled.
    fn never(&self, entry: &Entry) -> Option<&'static str> {
        let range = self.outcome.settings.subnets.unwrap_or_else(default_range);
        match &entry.host {
            Host::Name(_) | Host::Below(_) => {
                entry.is_local().then_some("it is the gateway itself")
            }
            Host::Address(address) => {
                let address = address.to_canonical();
                let link_local = match address {
                    IpAddr::V4(address) => address.is_link_local(),
                    IpAddr::V6(address) => address.is_unicast_link_local(),
                };
                let ours = matches!(address, IpAddr::V4(address) if range.contains(&address));
                let everybody = address == IpAddr::V4(Ipv4Addr::BROADCAST);
                if address.is_loopback() || address.is_unspecified() {
                    Some("it is the gateway itself")
                } else if link_local || METADATA.contains(&address) {
                    Some("metadata services and link-local addresses stay closed")
                } else if ours {
                    Some("it lies in the range of the containers' own networks")
                } else if address.is_multicast() || everybody {
                    Some("it is no single host")
                } else {
                    None
                }
            }
        }
    }
}

impl Outcome {
    /// Takes the permissions that an instance's rules cover: one for a host that the manifest does not list would be a
    /// hole that nobody sees in it.
    pub(super) fn permit(
        &mut self,
        instances: &HashMap<InstanceKey, Known<'_>>,
        findings: &mut Vec<Diagnostic>,
    ) {
        for Permission {
            instance,
            entry,
            place,
        } in self.permissions.drain(..)
        {
            // Nothing is known of one that does not exist or has errors: said elsewhere.
            let Some(network) = instances.get(&instance).and_then(|known| known.network) else {
                continue;
            };
            let covered = match network.mode {
                NetworkMode::None => false,
                NetworkMode::Any => true,
                NetworkMode::Allowlist => network
                    .hosts
                    .iter()
                    .filter_map(|host| host::parse(host).ok())
                    .any(|host| host.covers(&entry)),
            };
            if covered {
                let all = self.settings.private.entry(instance).or_default();
                all.push(entry.to_string());
                all.sort();
                all.dedup();
                continue;
            }
            let message = format!("`{instance}` may not reach `{entry}` at all");
            let finding = Diagnostic::new(&codes::PRIVATE_NOT_LISTED, place, message);
            findings.push(match network.mode {
                NetworkMode::None => finding.help("its `network.mode` is `none`"),
                _ => finding.help(format!("add `{entry}` to the manifest's `network.hosts`")),
            });
        }
    }
}
