//! The gateway's devices, by what they are attached to: their names are not stable in a container with many networks.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use ipnet::Ipv4Net;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::control::Device;

/// The kernel's table of IPv4 routes.
pub(super) struct Routes(Vec<Route>);

struct Route {
    device: String,
    destination: Ipv4Addr,
    gateway: Ipv4Addr,
    mask: Ipv4Addr,
}

impl Routes {
    /// As they are now.
    pub(super) fn read() -> io::Result<Self> {
        Ok(Self::parse(&std::fs::read_to_string("/proc/net/route")?))
    }

    fn parse(table: &str) -> Self {
        // The kernel prints the address's bytes as one number of the machine's own byte order.
        let address = |hex: &str| {
            u32::from_str_radix(hex, 16)
                .ok()
                .map(|value| Ipv4Addr::from(value.to_ne_bytes()))
        };
        let route = |line: &str| {
            let mut fields = line.split_ascii_whitespace();
            Some(Route {
                device: fields.next()?.to_owned(),
                destination: address(fields.next()?)?,
                gateway: address(fields.next()?)?,
                mask: address(fields.nth(4)?)?,
            })
        };
        Self(table.lines().skip(1).filter_map(route).collect())
    }

    /// The device that is directly attached to `subnet`.
    pub(super) fn device_in(&self, subnet: Ipv4Net) -> Option<&str> {
        let attached = |route: &&Route| {
            route.gateway.is_unspecified()
                && route.destination == subnet.network()
                && route.mask == subnet.netmask()
        };
        self.0
            .iter()
            .find(attached)
            .map(|route| route.device.as_str())
    }

    /// The way out: the device of the default route.
    pub(super) fn outside(&self) -> Option<&str> {
        let default = |route: &&Route| {
            !route.gateway.is_unspecified()
                && route.destination.is_unspecified()
                && route.mask.is_unspecified()
        };
        self.0
            .iter()
            .find(default)
            .map(|route| route.device.as_str())
    }
}

/// The devices that are there now.
pub(super) struct Devices(OwnedFd);

impl Devices {
    /// Opens the socket over which the kernel is asked for them.
    pub(super) fn open() -> io::Result<Self> {
        let family = AddressFamily::INET;
        let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        Ok(Self(socket))
    }

    /// A device with its index; `None` if it is gone.
    pub(super) fn find(&self, name: &str) -> io::Result<Option<Device>> {
        match name_to_index(&self.0, name) {
            Ok(index) => Ok(Some(Device {
                device: name.to_owned(),
                index,
            })),
            Err(rustix::io::Errno::NODEV) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth7\t10015A0A\t00000000\t0001\t0\t0\t0\tF0FFFFFF\t0\t0\t0
";

    #[test]
    fn the_device_is_found_by_the_exact_attached_subnet() {
        let routes = Routes::parse(ROUTES);
        let device = |subnet: &str| routes.device_in(subnet.parse().unwrap());
        assert_eq!(device("10.90.1.16/28"), Some("eth7"));
        assert_eq!(device("192.168.1.0/24"), Some("eth0"));
        assert_eq!(device("10.90.1.16/29"), None, "another size");
        assert_eq!(device("10.90.1.0/28"), None, "a neighbour");
        assert_eq!(device("0.0.0.0/0"), None, "routed, not attached");
        assert_eq!(routes.outside(), Some("eth0"));
    }

    #[test]
    fn without_a_default_route_there_is_no_way_out() {
        let table: Vec<&str> = ROUTES
            .lines()
            .filter(|line| !line.contains("0101A8C0"))
            .collect();
        assert_eq!(Routes::parse(&table.join("\n")).outside(), None);
    }
}
