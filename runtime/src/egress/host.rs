//! `selu gateway host-addresses`: the addresses of the machine whose network namespace this runs in (N8, S6).
//!
//! It is a one-shot container of our own image in the host's namespace, with no right to do anything there: a gateway
//! that dials "public" addresses must not reach the engine's own host by one of them.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Every address of this network namespace but loopback and link-local ones, which nothing is ever dialled at.
pub(super) fn addresses() -> io::Result<Vec<IpAddr>> {
    let trie = std::fs::read_to_string("/proc/net/fib_trie")?;
    let v6 = match std::fs::read_to_string("/proc/net/if_inet6") {
        Ok(table) => table,
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let v4 = local_v4(&trie).into_iter().map(IpAddr::V4);
    let all: BTreeSet<IpAddr> = v4
        .chain(assigned_v6(&v6).into_iter().map(IpAddr::V6))
        .collect();
    Ok(all.into_iter().collect())
}

/// Addresses that the kernel's routing tables call local: a line with the address, then one with what it is.
fn local_v4(trie: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut last = None;
    for line in trie.lines() {
        let line = line.trim_start();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.trim().parse::<Ipv4Addr>().ok();
        } else if line.starts_with("/32 host LOCAL")
            && let Some(address) = last
            && !address.is_loopback()
        {
            found.push(address);
        }
    }
    found
}

fn assigned_v6(table: &str) -> Vec<Ipv6Addr> {
    let address = |line: &str| {
        let digits = line.split_ascii_whitespace().next()?;
        let address = Ipv6Addr::from(u128::from_str_radix(digits, 16).ok()?);
        let counts = !address.is_loopback() && !address.is_unicast_link_local();
        counts.then_some(address)
    };
    table.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_found_among_routes_and_broadcasts() {
        let trie = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- 198.51.100.0
        /24 link UNICAST
Local:
  +-- 127.0.0.0/8 2 0 2
     |-- 127.0.0.0
        /8 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 198.51.100.7
        /32 host LOCAL
     |-- 198.51.100.255
        /32 link BROADCAST
";
        assert_eq!(
            local_v4(trie),
            ["198.51.100.7".parse::<Ipv4Addr>().unwrap()]
        );
    }

    #[test]
    fn assigned_addresses_are_read_and_link_local_ones_left_out() {
        let table = "\
fe8000000000000064102dfffe668c21 fa0 40 20 80 veth3a2db82
20010db8000000000000000000000007 02 40 00 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
";
        assert_eq!(
            assigned_v6(table),
            ["2001:db8::7".parse::<Ipv6Addr>().unwrap()]
        );
    }

    #[test]
    fn this_very_machine_can_be_asked() {
        assert!(addresses().is_ok());
    }
}
