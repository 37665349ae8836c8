//! N7, S1, S2, S10: from inside a `none` container nothing answers. Each target first answers the same probe from an
//! unrestricted container: a refusal by an unreachable target proves nothing.

use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::call::call;
use crate::daemon;
use crate::project::{TestProject, probe_binary, run};

/// A listener of the test's own, ended with it. Its output stays open: it says what it sees.
struct Target {
    child: Child,
    _output: BufReader<ChildStdout>,
}

impl Target {
    /// Starts a listener, in a network namespace or on this host, and waits until it listens.
    fn listen(namespace: Option<&str>, role: &str, addresses: &[String]) -> Self {
        let mut command = match namespace {
            Some(namespace) => {
                let mut command = Command::new("ip");
                command
                    .args(["netns", "exec", namespace])
                    .arg(probe_binary());
                command
            }
            None => Command::new(probe_binary()),
        };
        let mut child = command
            .arg(role)
            .args(addresses)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "listening\n", "{role} {addresses:?}");
        Self {
            child,
            _output: output,
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Our own "outside": a network namespace behind the host, at an address that no container network has.
struct Outside;

impl Outside {
    const NAME: &str = "selu-test-out";
    const HOST: &str = "198.51.100.1";
    const ADDRESS: &str = "198.51.100.2";

    fn new() -> Self {
        let outside = Self;
        Self::remove();
        for arguments in [
            format!("netns add {}", Self::NAME),
            format!(
                "link add selu-out0 type veth peer name eth0 netns {}",
                Self::NAME
            ),
            format!("addr add {}/24 dev selu-out0", Self::HOST),
            "link set selu-out0 up".to_owned(),
            format!("-n {} addr add {}/24 dev eth0", Self::NAME, Self::ADDRESS),
            format!("-n {} link set eth0 up", Self::NAME),
            format!("-n {} link set lo up", Self::NAME),
            format!("-n {} route add default via {}", Self::NAME, Self::HOST),
        ] {
            run(Command::new("ip").args(arguments.split(' '))).expect(0);
        }
        outside
    }

    fn remove() {
        run(Command::new("ip").args(["link", "del", "selu-out0"]));
        run(Command::new("ip").args(["netns", "del", Self::NAME]));
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        Self::remove();
    }
}

/// Every address of this host but loopback, IPv4 and global or unique-local IPv6.
fn host_addresses() -> Vec<IpAddr> {
    let listed = run(Command::new("ip").args(["-json", "addr"]))
        .expect(0)
        .json();
    let mut addresses = Vec::new();
    for link in listed.as_array().unwrap() {
        for address in link["addr_info"].as_array().unwrap() {
            let ip: IpAddr = address["local"].as_str().unwrap().parse().unwrap();
            if !ip.is_loopback() && address["scope"] == "global" {
                addresses.push(ip);
            }
        }
    }
    addresses
}

/// Waits until the kernel has checked every address of this host for duplicates: until then they answer nothing.
fn settle() {
    for _ in 0..100 {
        let listed = run(Command::new("ip").args(["-6", "addr", "show", "tentative"])).expect(0);
        if listed.stdout.trim().is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("an IPv6 address of this host stays tentative");
}

fn endpoint(address: impl ToString, port: u16) -> Value {
    json!({"address": address.to_string(), "port": port})
}

#[test]
fn d11_from_inside_a_none_container_nothing_answers_that_answers_elsewhere() {
    const TCP: u16 = 4711;
    const UDP: u16 = 4712;
    let _outside = Outside::new();

    let project = TestProject::new("cut");
    project.probe("a", "probe", &["serve"], "");
    project.probe("a", "neighbour", &["serve"], "");
    project.up();
    let image = project.image("a", "probe");
    let gateway = project.gateway();
    let network = project.resident("a", "probe", 1);
    let open = daemon::OpenNetwork::new(&image);
    settle();

    let everywhere = |address: &str| vec![address.to_owned()];
    let _targets = [
        Target::listen(None, "listen-tcp", &everywhere(&format!("[::]:{TCP}"))),
        Target::listen(None, "listen-udp", &everywhere(&format!("[::]:{UDP}"))),
        Target::listen(
            Some(Outside::NAME),
            "listen-tcp",
            &everywhere(&format!("0.0.0.0:{TCP}")),
        ),
        Target::listen(
            Some(Outside::NAME),
            "listen-udp",
            &[format!("0.0.0.0:{UDP}"), "0.0.0.0:53".to_owned()],
        ),
    ];

    let mut targets = vec![
        (
            "outside by TCP".to_owned(),
            "tcp",
            endpoint(Outside::ADDRESS, TCP),
            "bridge",
        ),
        (
            "outside by UDP".to_owned(),
            "udp",
            endpoint(Outside::ADDRESS, UDP),
            "bridge",
        ),
        (
            "an outside resolver".to_owned(),
            "udp",
            endpoint(Outside::ADDRESS, 53),
            "bridge",
        ),
    ];
    for address in host_addresses() {
        let from = if address.is_ipv6() {
            open.name.as_str()
        } else {
            "bridge"
        };
        targets.push((
            format!("host at {address} by TCP"),
            "tcp",
            endpoint(address, TCP),
            from,
        ));
        targets.push((
            format!("host at {address} by UDP"),
            "udp",
            endpoint(address, UDP),
            from,
        ));
    }
    let neighbour = project.resident("a", "neighbour", 1);
    let settings = &daemon::inspect(&neighbour)["NetworkSettings"]["Networks"][&neighbour];
    let address = settings["IPAddress"].as_str().unwrap().to_owned();
    targets.push((
        "neighbour's gRPC port".to_owned(),
        "tcp",
        endpoint(address, 50051),
        neighbour.as_str(),
    ));
    assert!(
        targets.iter().any(|(name, ..)| name.contains(":")),
        "the host has an IPv6 address to try: {targets:?}"
    );

    for (name, tool, arguments, from) in &targets {
        let free = daemon::unrestricted(&image, from, tool, arguments);
        if name.starts_with("neighbour") {
            // A gRPC server waits for its client to speak first: connecting is the answer.
            assert_eq!(free["ok"], true, "{name} answers elsewhere: {free}");
        } else if free["value"].as_str().is_none_or(str::is_empty) {
            // Another test's network may have ended since, and the host's address in it.
            let address = arguments["address"].as_str().unwrap().parse().unwrap();
            assert!(
                name.starts_with("host") && !host_addresses().contains(&address),
                "{name} answers elsewhere: {free}"
            );
            continue;
        }
        let cut = call(&gateway, &network, tool, arguments);
        assert_eq!(cut["ok"], false, "{name} answers from inside: {cut}");
    }

    // The addresses of its own network: the bridge's, which the host does not have, and the gateway's.
    let inside = daemon::inspect_network(&network);
    let bridge = inside["IPAM"]["Config"][0]["Gateway"]
        .as_str()
        .unwrap()
        .to_owned();
    let own = &daemon::inspect(&gateway)["NetworkSettings"]["Networks"][&network];
    let gateway_address = own["IPAddress"].as_str().unwrap().to_owned();
    for address in [&bridge, &gateway_address] {
        for port in [TCP, 22, 53, 80, 443, 2375, 2376, 50051] {
            let cut = call(&gateway, &network, "tcp", &endpoint(address, port));
            assert_eq!(cut["ok"], false, "{address}:{port} answers from inside");
        }
        let cut = call(&gateway, &network, "udp", &endpoint(address, 53));
        assert_eq!(cut["ok"], false, "a resolver answers from inside");
    }
}

#[test]
fn no_name_is_resolved_from_inside_a_none_container() {
    let project = TestProject::new("dns");
    project.probe("a", "probe", &["serve"], "");
    project.probe("a", "neighbour", &["serve"], "");
    project.up();
    let gateway = project.gateway();
    let network = project.resident("a", "probe", 1);
    // On a network with a neighbour the engine's resolver answers: the same probe gets an address there.
    let neighbour = project.resident("a", "neighbour", 1);
    let name = json!({"name": neighbour});
    let free = daemon::unrestricted(&project.image("a", "probe"), &neighbour, "resolve", &name);
    assert_eq!(free["ok"], true, "{free}");
    for name in [
        neighbour.as_str(),
        "host.docker.internal",
        "gateway.docker.internal",
        "example.com",
        "localhost.localdomain",
    ] {
        let cut = call(&gateway, &network, "resolve", &json!({"name": name}));
        assert_eq!(cut["ok"], false, "{name}: {cut}");
    }
}

#[test]
fn nothing_listens_on_the_host_for_a_capability() {
    let listening = || {
        let listed = run(Command::new("ss").args(["-Hltun"])).expect(0).stdout;
        let mut sockets: Vec<String> = listed
            .lines()
            .filter_map(|line| line.split_whitespace().nth(4))
            .map(str::to_owned)
            .collect();
        sockets.sort();
        sockets
    };
    let _target = Target::listen(None, "listen-tcp", &["127.0.0.1:4713".to_owned()]);
    let before = listening();
    assert!(
        before.iter().any(|socket| socket.ends_with(":4713")),
        "a listener is seen: {before:?}"
    );
    let project = TestProject::new("listen");
    project.probe("a", "probe", &["serve"], "");
    project.up();
    let grpc: Vec<String> = listening()
        .into_iter()
        .filter(|socket| socket.ends_with(":50051"))
        .collect();
    assert_eq!(grpc, Vec::<String>::new());
    for name in [project.gateway(), project.resident("a", "probe", 1)] {
        let ports = &daemon::inspect(&name)["NetworkSettings"]["Ports"];
        assert!(
            ports.is_null() || ports.as_object().unwrap().values().all(Value::is_null),
            "{name}: {ports}"
        );
    }
}
