//! Subnets for networks of one container each (S2, S9).

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use sha2::{Digest, Sha256};

use crate::model::{Network, NetworkMode};

/// Where subnets are cut from unless selu.toml says otherwise.
///
/// A private range (RFC 1918) that stays clear of the usual neighbours: Docker's own pools (172.17–172.31, 192.168),
/// Kubernetes' customary ones (10.42, 10.43, 10.96, 10.244), Podman's 10.88 and the low 10.0 and 10.1 of offices and
/// clouds. What an engine really has is avoided besides.
pub(super) const DEFAULT_RANGE: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 231, 0, 0), 16);

/// A network with no rule needs three addresses.
pub(super) const CLOSED_PREFIX: u8 = 28;
/// Exact names: at least fifteen virtual addresses.
const LISTED_PREFIX: u8 = 27;
/// Names that are not known in advance: at least 127 virtual addresses.
const OPEN_PREFIX: u8 = 24;

/// The size that the rules need (S9). The upper half holds the virtual addresses, the last of which is the broadcast
/// address.
pub(super) fn prefix_for(rules: &Network) -> u8 {
    let smallest = match rules.mode {
        NetworkMode::None => return CLOSED_PREFIX,
        NetworkMode::Any => OPEN_PREFIX,
        NetworkMode::Allowlist if rules.hosts.iter().any(|host| host.starts_with("*.")) => {
            OPEN_PREFIX
        }
        NetworkMode::Allowlist => LISTED_PREFIX,
    };
    let mut prefix = smallest;
    while prefix > 8 && virtual_addresses(prefix) < rules.hosts.len() {
        prefix -= 1;
    }
    prefix
}

fn virtual_addresses(prefix: u8) -> usize {
    (1_usize << (31 - prefix)) - 1
}

/// Hands out subnets that nobody uses.
pub(super) struct Subnets {
    range: Ipv4Net,
    used: Vec<Ipv4Net>,
}

impl Subnets {
    pub(super) fn new(range: Option<Ipv4Net>, used: Vec<Ipv4Net>) -> Self {
        Self {
            range: range.unwrap_or_else(super::default_range).trunc(),
            used,
        }
    }

    pub(super) fn range(&self) -> Ipv4Net {
        self.range
    }

    /// A free subnet. The search starts at a place that depends on who asks, so that one network more or less moves no
    /// other. `None` if there is none left.
    pub(super) fn take(&mut self, prefix: u8, project: &str, container: &str) -> Option<Ipv4Net> {
        let bits = prefix.checked_sub(self.range.prefix_len())?;
        let slots = 1_u64 << bits;
        let start = slot_hash(project, container) % slots;
        let free = (0..slots)
            .map(|step| self.slot((start + step) % slots, prefix))
            .find(|subnet| !self.used.iter().any(|used| overlap(used, subnet)))?;
        self.used.push(free);
        Some(free)
    }

    fn slot(&self, index: u64, prefix: u8) -> Ipv4Net {
        // index < 2^(prefix - range prefix), so the sum stays inside the range.
        let offset = u32::try_from(index << (32 - prefix)).unwrap_or(0);
        let address = Ipv4Addr::from(u32::from(self.range.network()) | offset);
        Ipv4Net::new_assert(address, prefix)
    }
}

fn overlap(a: &Ipv4Net, b: &Ipv4Net) -> bool {
    a.contains(b) || b.contains(a)
}

fn slot_hash(project: &str, container: &str) -> u64 {
    let mut hash = Sha256::new();
    for part in [project, container] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest = hash.finalize();
    digest
        .iter()
        .take(8)
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    fn rules(mode: NetworkMode, hosts: &[&str]) -> Network {
        Network {
            mode,
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        }
    }

    #[test]
    fn size_follows_the_rules() {
        assert_eq!(prefix_for(&rules(NetworkMode::None, &[])), 28);
        assert_eq!(prefix_for(&rules(NetworkMode::Any, &[])), 24);
        assert_eq!(
            prefix_for(&rules(NetworkMode::Allowlist, &["a.example:443"])),
            27
        );
        assert_eq!(
            prefix_for(&rules(NetworkMode::Allowlist, &["*.a.example"])),
            24
        );
        let many: Vec<String> = (0..16).map(|n| format!("h{n}.example:443")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(prefix_for(&rules(NetworkMode::Allowlist, &many[..15])), 27);
        assert_eq!(prefix_for(&rules(NetworkMode::Allowlist, &many)), 26);
    }

    #[test]
    fn every_slot_is_found_once_and_then_the_range_is_exhausted() {
        let mut subnets = Subnets::new(Some(net("10.9.0.0/26")), vec![net("10.9.0.20/32")]);
        let mut taken: Vec<_> = (0..3)
            .map(|n| subnets.take(28, "p", &format!("c{n}")).unwrap().to_string())
            .collect();
        taken.sort();
        assert_eq!(taken, ["10.9.0.0/28", "10.9.0.32/28", "10.9.0.48/28"]);
        assert_eq!(subnets.take(28, "p", "c4"), None);
    }

    #[test]
    fn a_network_larger_than_the_range_is_refused() {
        assert_eq!(
            Subnets::new(Some(net("10.9.0.0/26")), vec![]).take(24, "p", "c"),
            None
        );
    }

    #[test]
    fn a_larger_foreign_network_covers_all_slots_inside_it() {
        let mut subnets = Subnets::new(Some(net("10.9.0.0/24")), vec![net("10.0.0.0/8")]);
        assert_eq!(subnets.take(28, "p", "c"), None);
    }

    #[test]
    fn the_start_depends_on_project_and_container_alone() {
        let take = |project: &str, name: &str| Subnets::new(None, vec![]).take(28, project, name);
        assert_eq!(take("p", "a"), take("p", "a"));
        assert_ne!(take("p", "a"), take("q", "a"));
        assert_ne!(take("p", "a"), take("p", "b"));
    }
}
