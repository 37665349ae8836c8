//! Which addresses may be dialled at all (N8): the IANA registries of special-purpose addresses, in both families.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::Ipv4Net;

use super::rules::Reason;

/// What an address is by the registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reachable from everywhere.
    Global,
    /// Somebody's own network: reachable with a permission.
    Private,
    /// Never dialled.
    Special,
}

/// IPv4 that may be permitted: RFC 1918 and the shared space of RFC 6598.
const PRIVATE_V4: &[(u32, u8)] = &[
    (v4(10, 0, 0, 0), 8),
    (v4(100, 64, 0, 0), 10),
    (v4(172, 16, 0, 0), 12),
    (v4(192, 168, 0, 0), 16),
];

/// IPv4 that never is.
const SPECIAL_V4: &[(u32, u8)] = &[
    (v4(0, 0, 0, 0), 8),          // this network
    (v4(100, 100, 100, 200), 32), // metadata of a cloud, inside the shared space
    (v4(127, 0, 0, 0), 8),        // loopback
    (v4(168, 63, 129, 16), 32),   // metadata of a cloud, at a public address
    (v4(169, 254, 0, 0), 16),     // link-local, and metadata of most clouds
    (v4(192, 0, 0, 0), 24),       // protocol assignments, and metadata of a cloud
    (v4(192, 0, 2, 0), 24),       // documentation
    (v4(192, 88, 99, 0), 24),     // 6to4 relays, withdrawn
    (v4(198, 18, 0, 0), 15),      // benchmarks
    (v4(198, 51, 100, 0), 24),    // documentation
    (v4(203, 0, 113, 0), 24),     // documentation
    (v4(224, 0, 0, 0), 4),        // multicast
    (v4(240, 0, 0, 0), 4),        // reserved, and the broadcast address
];

/// The one part of IPv6 that is given out (RFC 4291), without its exceptions in [`SPECIAL_V6`].
const GLOBAL_V6: (u128, u8) = (v6([0x2000, 0, 0, 0, 0, 0, 0, 0]), 3);

/// IPv6 that may be permitted: unique local addresses.
const PRIVATE_V6: (u128, u8) = (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0]), 7);

/// What is not global inside [`GLOBAL_V6`]; and metadata of a cloud inside [`PRIVATE_V6`].
const SPECIAL_V6: &[(u128, u8)] = &[
    // Protocol assignments: Teredo, benchmarks, ORCHID and others. The few global ones among them serve no host that
    // a capability would name.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0]), 23),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0]), 32), // documentation
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0]), 20),     // documentation
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]), 128),
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]), 128),
];

const fn v4(a: u8, b: u8, c: u8, d: u8) -> u32 {
    u32::from_be_bytes([a, b, c, d])
}

const fn v6(parts: [u16; 8]) -> u128 {
    let mut value = 0;
    let mut at = 0;
    while at < 8 {
        value = (value << 16) | parts[at] as u128;
        at += 1;
    }
    value
}

fn within_v4(address: u32, (network, length): (u32, u8)) -> bool {
    (address ^ network).leading_zeros() >= u32::from(length)
}

fn within_v6(address: u128, (network, length): (u128, u8)) -> bool {
    (address ^ network).leading_zeros() >= u32::from(length)
}

/// What an address is.
pub fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> Kind {
    let bits = u32::from(address);
    if SPECIAL_V4.iter().any(|range| within_v4(bits, *range)) {
        Kind::Special
    } else if PRIVATE_V4.iter().any(|range| within_v4(bits, *range)) {
        Kind::Private
    } else {
        Kind::Global
    }
}

fn kind_v6(address: Ipv6Addr) -> Kind {
    let bits = u128::from(address);
    if let Some(inner) = address.to_ipv4_mapped() {
        return kind_v4(inner);
    }
    if SPECIAL_V6.iter().any(|range| within_v6(bits, *range)) {
        return Kind::Special;
    }
    if within_v6(bits, PRIVATE_V6) {
        return Kind::Private;
    }
    if within_v6(bits, GLOBAL_V6) && inner_v4(address).is_none_or(|v4| kind_v4(v4) == Kind::Global)
    {
        return Kind::Global;
    }
    // The translated form is global exactly where what it stands for is; everything else is unassigned, local or more.
    match inner_v4(address) {
        Some(inner) if is_translated(address) => match kind_v4(inner) {
            Kind::Global => Kind::Global,
            Kind::Private | Kind::Special => Kind::Special,
        },
        _ => Kind::Special,
    }
}

/// `64:ff9b::/96` (RFC 6052).
fn is_translated(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [0x64, 0xff9b, 0, 0, 0, 0, _, _])
}

/// The IPv4 address that an IPv6 address stands for, by every form that carries one.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // 6to4
        [0x2002, high, low, ..] => Some(join(high, low)),
        // mapped, compatible, translated (RFC 2765, RFC 6052)
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            Some(join(high, low))
        }
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(join(high, low)),
        // ISATAP
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(join(high, low)),
        _ => None,
    }
}

/// What this gateway may never dial, besides what the registries say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach {
    refused: Vec<IpAddr>,
    ranges: Vec<Ipv4Net>,
}

impl Reach {
    /// Addresses of the engine's host, and the ranges of our own networks.
    pub(super) fn new(refused: &[IpAddr], ranges: &[Ipv4Net]) -> Self {
        Self {
            refused: refused.iter().map(IpAddr::to_canonical).collect(),
            ranges: ranges.to_vec(),
        }
    }

    /// Whether an address may be dialled.
    pub(super) fn judge(&self, address: IpAddr, private_permitted: bool) -> Result<(), Reason> {
        let plain = match address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(address) => inner_v4(address),
        };
        if let Some(plain) = plain
            && self.ranges.iter().any(|range| range.contains(&plain))
        {
            return Err(Reason::OwnRange(address));
        }
        let forms = [Some(address.to_canonical()), plain.map(IpAddr::V4)];
        if forms
            .into_iter()
            .flatten()
            .any(|form| self.refused.contains(&form))
        {
            return Err(Reason::HostAddress(address));
        }
        match kind(address) {
            Kind::Global => Ok(()),
            Kind::Private if private_permitted => Ok(()),
            Kind::Private => Err(Reason::Private(address)),
            Kind::Special => Err(Reason::NotGlobal(address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(kind_of: Kind, addresses: &[&str]) {
        for text in addresses {
            assert_eq!(kind(text.parse().unwrap()), kind_of, "{text}");
        }
    }

    #[test]
    fn the_registries_are_followed_to_their_edges() {
        all(
            Kind::Global,
            &[
                "1.0.0.0",
                "8.8.8.8",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.0",
                "168.63.129.15",
                "168.63.129.17",
                "169.253.255.255",
                "169.255.0.0",
                "172.15.255.255",
                "172.32.0.0",
                "191.255.255.255",
                "192.0.1.0",
                "192.31.196.1",
                "192.88.98.255",
                "192.167.255.255",
                "192.169.0.0",
                "198.17.255.255",
                "198.20.0.0",
                "223.255.255.255",
                "2606:4700::1111",
                "2a00:1450::1",
                "64:ff9b::808:808",
                "::ffff:8.8.8.8",
                "2002:808:808::1",
            ],
        );
        all(
            Kind::Private,
            &[
                "10.0.0.0",
                "10.255.255.255",
                "100.64.0.0",
                "100.127.255.255",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.0.1",
                "fc00::1",
                "fdff::1",
                "::ffff:10.0.0.1",
            ],
        );
        all(
            Kind::Special,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "100.100.100.200",
                "127.0.0.1",
                "127.255.255.255",
                "168.63.129.16",
                "169.254.0.1",
                "169.254.169.254",
                "192.0.0.1",
                "192.0.0.192",
                "192.0.2.1",
                "192.88.99.1",
                "198.18.0.1",
                "198.19.255.255",
                "198.51.100.1",
                "203.0.113.1",
                "224.0.0.1",
                "239.255.255.255",
                "240.0.0.1",
                "255.255.255.255",
                "::",
                "::1",
                "::ffff:127.0.0.1",
                "::ffff:169.254.169.254",
                "::7f00:1",
                "::ffff:0:7f00:1",
                "::808:808",
                "64:ff9b::7f00:1",
                "64:ff9b::a9fe:a9fe",
                "64:ff9b::a00:1",
                "64:ff9b:1::808:808",
                "100::1",
                "2001::1",
                "2001:db8::1",
                "2001:10::1",
                "2002:7f00:1::1",
                "2002:a9fe:a9fe::",
                "2002:a00:1::",
                "2606:4700::5efe:7f00:1",
                "3fff::1",
                "4000::1",
                "5f00::1",
                "fd00:ec2::254",
                "fe80::1",
                "febf::1",
                "fec0::1",
                "ff02::1",
            ],
        );
    }

    #[test]
    fn a_permission_opens_private_addresses_and_nothing_else() {
        let reach = Reach::default();
        let judge = |text: &str| reach.judge(text.parse().unwrap(), true);
        assert_eq!(judge("192.168.1.1"), Ok(()));
        for closed in [
            "127.0.0.1",
            "169.254.169.254",
            "100.100.100.200",
            "fd00:ec2::254",
        ] {
            assert!(
                matches!(judge(closed), Err(Reason::NotGlobal(_))),
                "{closed}"
            );
        }
        let text = "10.0.0.1".parse().unwrap();
        assert_eq!(reach.judge(text, false), Err(Reason::Private(text)));
    }

    #[test]
    fn the_host_and_our_own_networks_stay_closed_in_every_form() {
        let reach = Reach::new(
            &[
                "198.41.0.4".parse().unwrap(),
                "2606:4700::1".parse().unwrap(),
            ],
            &["10.231.0.0/16".parse().unwrap()],
        );
        for host in [
            "198.41.0.4",
            "::ffff:198.41.0.4",
            "64:ff9b::c629:4",
            "2002:c629:4::1",
            "2606:4700::1",
        ] {
            let address = host.parse().unwrap();
            assert_eq!(
                reach.judge(address, true),
                Err(Reason::HostAddress(address)),
                "{host}"
            );
        }
        for own in ["10.231.7.9", "::ffff:10.231.7.9"] {
            let address = own.parse().unwrap();
            assert_eq!(
                reach.judge(address, true),
                Err(Reason::OwnRange(address)),
                "{own}"
            );
        }
        assert_eq!(reach.judge("198.41.0.5".parse().unwrap(), false), Ok(()));
    }
}
