//! The packet filter of the gateway: table `ip selu`, replaced whole in one step.
//!
//! It is closed by default in every direction. What is known by the device that it came in on and by its source address
//! may ask the gateway's DNS and proxy, and every TCP connection to a virtual address is led to one port of the worker.
//! From outside comes nothing. Nothing is forwarded, whatever the kernel's settings. And of the gateway's own processes
//! the worker reaches the outside alone and a pipe its containers alone (S5, S6, S7).

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use selu_proto::PORT;

use super::control::{PROXY_PORT, REDIRECT_PORT};
use super::netlink::{ACK, APPEND, Attributes, Batch, CREATE, Kernel, NetlinkError, octets};
use super::{PIPE_UID, WORKER_UID};

/// What the filter is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wall {
    /// Index of the way out.
    pub(super) outside: Option<u32>,
    /// One for each network that the gateway is attached to.
    pub(super) doors: Vec<Door>,
}

/// A container's network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Door {
    /// Index of the gateway's device in it.
    pub(super) device: u32,
    /// The container's address.
    pub(super) capability: Ipv4Addr,
    /// The gateway's address.
    pub(super) gateway: Ipv4Addr,
    /// Its virtual addresses, where anything may leave.
    pub(super) open: Option<Ipv4Net>,
}

const TABLE: &str = "selu";

const NFPROTO_IPV4: u8 = 2;
const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEWTABLE: u16 = SUBSYSTEM << 8;
const DELTABLE: u16 = SUBSYSTEM << 8 | 2;
const NEWCHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEWRULE: u16 = SUBSYSTEM << 8 | 6;

const REGISTER: u32 = 1;
const VERDICT_REGISTER: u32 = 0;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

const LOOPBACK: u32 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DNS_PORT: u16 = 53;

/// `NFT_META_*`.
const META_IIF: u32 = 4;
const META_OIF: u32 = 5;
const META_SKUID: u32 = 10;
const META_L4PROTO: u32 = 16;
/// `NFT_CT_*` with the bits that are looked for.
const CT_STATE: u32 = 0;
const CT_STATUS: u32 = 2;
const ESTABLISHED_OR_RELATED: u32 = 0x2 | 0x4;
const LED_HERE: u32 = 0x20;

/// Puts the filter up in place of the present one.
pub(super) fn put_up(wall: &Wall) -> Result<(), NetlinkError> {
    Kernel::filter()?.carry_out(&batch(wall))
}

fn batch(wall: &Wall) -> Batch {
    let mut table = Table::default();
    table.begin();
    table.chain("prerouting", "nat", 0, -100, ACCEPT);
    table.chain("input", "filter", 1, 0, DROP);
    table.chain("forward", "filter", 2, 0, DROP);
    table.chain("output", "filter", 3, 0, DROP);

    table.rule(
        "input",
        &[meta(META_IIF, &LOOPBACK.to_ne_bytes()), accept()],
    );
    table.rule(
        "input",
        &[connection(CT_STATE, ESTABLISHED_OR_RELATED), accept()],
    );
    table.rule(
        "output",
        &[meta(META_OIF, &LOOPBACK.to_ne_bytes()), accept()],
    );
    table.rule(
        "output",
        &[connection(CT_STATE, ESTABLISHED_OR_RELATED), accept()],
    );
    if let Some(outside) = wall.outside {
        // The engine's own resolver asks from inside this namespace as root.
        for uid in [WORKER_UID, 0] {
            let rule = [
                meta(META_OIF, &outside.to_ne_bytes()),
                meta(META_SKUID, &uid.to_ne_bytes()),
                accept(),
            ];
            table.rule("output", &rule);
        }
    }
    for door in &wall.doors {
        table.door(door);
    }
    table.end()
}

#[derive(Default)]
struct Table(Batch);

impl Table {
    fn begin(&mut self) {
        self.bracket(BATCH_BEGIN);
        let name = Attributes::default().text(1, TABLE);
        // Made where it is missing, so that it can be removed, so that the new one is empty.
        self.add("the table", NEWTABLE, CREATE, &name);
        self.add("removing the table", DELTABLE, 0, &name);
        self.add("the table", NEWTABLE, CREATE, &name);
    }

    fn end(mut self) -> Batch {
        // The last one of the batch proper is answered once all of it is in force.
        let name = Attributes::default().text(1, TABLE);
        self.add("the table", NEWTABLE, ACK, &name);
        self.bracket(BATCH_END);
        self.0
    }

    fn bracket(&mut self, kind: u16) {
        let [high, low] = SUBSYSTEM.to_be_bytes();
        let nothing = Attributes::default();
        self.0
            .message("a batch of rules", kind, 0, &[0, 0, high, low], &nothing);
    }

    fn add(&mut self, what: &str, kind: u16, flags: u16, attributes: &Attributes) {
        self.0
            .message(what, kind, flags, &[NFPROTO_IPV4, 0, 0, 0], attributes);
    }

    fn chain(&mut self, name: &str, kind: &str, hook: u32, priority: i32, policy: u32) {
        let hook = Attributes::default()
            .number(1, hook)
            .number(2, priority.cast_unsigned());
        let attributes = Attributes::default()
            .text(1, TABLE)
            .text(3, name)
            .nested(4, &hook)
            .number(5, policy)
            .text(7, kind);
        let what = format!("the chain {name} of type {kind}");
        self.add(&what, NEWCHAIN, CREATE, &attributes);
    }

    fn rule(&mut self, chain: &str, expressions: &[Attributes]) {
        let all = expressions
            .iter()
            .fold(Attributes::default(), |all, one| all.then(one));
        let attributes = Attributes::default()
            .text(1, TABLE)
            .text(2, chain)
            .nested(4, &all);
        let what = format!("a rule of the chain {chain}");
        self.add(&what, NEWRULE, CREATE | APPEND, &attributes);
    }

    fn door(&mut self, door: &Door) {
        let Door {
            device,
            capability,
            gateway,
            open,
        } = door;
        let out = [
            meta(META_OIF, &device.to_ne_bytes()),
            meta(META_SKUID, &PIPE_UID.to_ne_bytes()),
            network(16, *capability),
            transport(TCP),
            destination_port(PORT),
            accept(),
        ];
        self.rule("output", &out);

        let Some(range) = open else { return };
        let from = meta(META_IIF, &device.to_ne_bytes()).then(&network(12, *capability));
        let virtual_address = payload(1, 16, 4)
            .then(&bits(&range.netmask().octets()))
            .then(&compare(EQUAL, &octets(range.network())));
        let led = [
            from.clone(),
            virtual_address,
            transport(TCP),
            redirect(REDIRECT_PORT),
        ];
        self.rule("prerouting", &led);
        let to_gateway = from.then(&network(16, *gateway));
        let accepted = [(UDP, DNS_PORT), (TCP, DNS_PORT), (TCP, PROXY_PORT)];
        for (protocol, port) in accepted {
            let rule = [
                to_gateway.clone(),
                transport(protocol),
                destination_port(port),
                accept(),
            ];
            self.rule("input", &rule);
        }
        let arrived = [
            to_gateway,
            transport(TCP),
            destination_port(REDIRECT_PORT),
            connection(CT_STATUS, LED_HERE),
            accept(),
        ];
        self.rule("input", &arrived);
    }
}

const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;

fn expression(name: &str, data: &Attributes) -> Attributes {
    let element = Attributes::default().text(1, name).nested(2, data);
    Attributes::default().nested(1, &element)
}

fn value(bytes: &[u8]) -> Attributes {
    Attributes::default().bytes(1, bytes)
}

fn compare(how: u32, with: &[u8]) -> Attributes {
    let data = Attributes::default()
        .number(1, REGISTER)
        .number(2, how)
        .nested(3, &value(with));
    expression("cmp", &data)
}

/// Keeps the bits of a mask.
fn bits(mask: &[u8; 4]) -> Attributes {
    let data = Attributes::default()
        .number(1, REGISTER)
        .number(2, REGISTER)
        .number(3, 4)
        .nested(4, &value(mask))
        .nested(5, &value(&[0; 4]));
    expression("bitwise", &data)
}

fn meta(key: u32, is: &[u8]) -> Attributes {
    let data = Attributes::default().number(1, REGISTER).number(2, key);
    expression("meta", &data).then(&compare(EQUAL, is))
}

/// Whether the connection has any of these bits.
fn connection(key: u32, any_of: u32) -> Attributes {
    let data = Attributes::default().number(1, REGISTER).number(2, key);
    expression("ct", &data)
        .then(&bits(&any_of.to_ne_bytes()))
        .then(&compare(NOT_EQUAL, &[0; 4]))
}

/// Loads bytes of the network's (1) or the transport's (2) header.
fn payload(base: u32, offset: u32, length: u32) -> Attributes {
    let data = Attributes::default()
        .number(1, REGISTER)
        .number(2, base)
        .number(3, offset)
        .number(4, length);
    expression("payload", &data)
}

/// An address in the network's header: 12 is the source, 16 the destination.
fn network(offset: u32, is: Ipv4Addr) -> Attributes {
    payload(1, offset, 4).then(&compare(EQUAL, &octets(is)))
}

fn transport(protocol: u8) -> Attributes {
    meta(META_L4PROTO, &[protocol])
}

fn destination_port(port: u16) -> Attributes {
    payload(2, 2, 2).then(&compare(EQUAL, &port.to_be_bytes()))
}

fn accept() -> Attributes {
    let code = Attributes::default().number(1, ACCEPT);
    let verdict = Attributes::default().nested(2, &code);
    let data = Attributes::default()
        .number(1, VERDICT_REGISTER)
        .nested(2, &verdict);
    expression("immediate", &data)
}

/// Leads to a port of the address that the gateway has on the device that it came in on.
fn redirect(port: u16) -> Attributes {
    let load = Attributes::default()
        .number(1, REGISTER)
        .nested(2, &value(&port.to_be_bytes()));
    let data = Attributes::default().number(1, REGISTER);
    expression("immediate", &load).then(&expression("redir", &data))
}
