//! A project whose capabilities have every kind of rule, and unrestricted containers beside it for the proofs that a
//! target answers.

use std::process::Command;

use serde_json::{Value, json};

use super::lab;
use crate::call::Calls;
use crate::daemon;
use crate::project::{Run, TestProject, run};
use crate::world::docker_text;

/// What `web/open` may reach. Everything else that the suite tries is not in it.
const OPEN: &str = r#"
network:
  mode: allowlist
  hosts:
    - www.selu-lab.net:80
    - www.selu-lab.net:443
    - mail.selu-lab.net:22
    - mail.selu-lab.net:25
    - mail.selu-lab.net:143
    - mail.selu-lab.net:993
    - mail.selu-lab.net:5432
    - mail.selu-lab.net:6379
    - api.selu-lab.net
    - "*.wild.selu-lab.net:80"
    - "*.wild.selu-lab.net:443"
    - "*.at.selu-lab.net"
    - "bücher.selu-lab.net:80"
    - private.selu-lab.net:80
    - 11.20.30.10:5000
"#;

/// A neighbour with a rule of its own, and so with a virtual address of its own.
const NEAR: &str = r#"
network:
  mode: allowlist
  hosts: ["api.selu-lab.net:9999", "near-only.selu-lab.net:80"]
"#;

const ANY: &str = "network: {mode: any}\n";

const PRIVATE: &str = r#"
network:
  mode: allowlist
  hosts: ["private.selu-lab.net:80", "10.123.0.10:5000", "10.123.0.11:5000"]
"#;

/// The deployed project.
pub(crate) struct Scene {
    /// An unrestricted container on an ordinary network with IPv6. It also listens on [`FREE_PORT`]. Its image is the
    /// project's, so it goes first.
    pub(crate) free: FreeContainer,
    pub(crate) project: TestProject,
    calls: Calls,
}

/// Where the unrestricted container listens, on every address that it has.
pub(crate) const FREE_PORT: u16 = 5001;

impl Scene {
    /// Builds and applies all of it; everything must be ready.
    pub(crate) fn new(topic: &str) -> Self {
        Self::of(topic, &["open", "near", "any", "private", "none"])
    }

    /// Of these capabilities alone.
    pub(crate) fn of(topic: &str, capabilities: &[&str]) -> Self {
        let project = Self::project(topic);
        for capability in capabilities {
            let rules = match *capability {
                "open" => OPEN,
                "near" => NEAR,
                "any" => ANY,
                "private" => PRIVATE,
                _ => "",
            };
            project.probe("web", capability, &["serve"], rules);
        }
        if capabilities.contains(&"private") {
            let settings = project.read("selu.toml");
            let permission = r#"private = ["private.selu-lab.net:80", "10.123.0.10:5000"]"#;
            project.write(
                "selu.toml",
                &format!("{settings}\n[network.\"web/private\"]\n{permission}\n"),
            );
        }
        Self::up(project, topic)
    }

    /// A project whose only capability, `web/open`, has these rules.
    pub(crate) fn with_rules(topic: &str, rules: &str) -> Self {
        let project = Self::project(topic);
        project.probe("web", "open", &["serve"], rules);
        Self::up(project, topic)
    }

    /// A project without anything in it yet, which asks the lab's name server.
    pub(crate) fn project(topic: &str) -> TestProject {
        let project = TestProject::new(topic);
        let settings = project.read("selu.toml");
        let resolvers = format!("{settings}\n[engine]\nresolvers = [\"{}\"]\n", lab::DNS);
        project.write("selu.toml", &resolvers);
        project
    }

    fn up(project: TestProject, topic: &str) -> Self {
        project.up();
        let free = FreeContainer::new(topic, &project.image("web", "open"));
        Self {
            free,
            project,
            calls: Calls::new(),
        }
    }

    /// The name of a capability's container and network.
    pub(crate) fn resident(&self, capability: &str) -> String {
        self.project.resident("web", capability, 1)
    }

    /// A capability's own address.
    pub(crate) fn address(&self, capability: &str) -> String {
        address_in(&self.resident(capability), &self.resident(capability))
    }

    /// The gateway's address in a capability's network.
    pub(crate) fn gateway_in(&self, capability: &str) -> String {
        address_in(&self.project.gateway(), &self.resident(capability))
    }

    /// What a capability's resolver says for a name: its virtual address.
    pub(crate) fn virtual_address(&self, capability: &str, name: &str) -> String {
        let answer = self.inside(capability, "dns", &json!({"name": name}));
        let address = &answer["answers"][0]["data"];
        address
            .as_str()
            .unwrap_or_else(|| panic!("{capability} gets no address for {name}: {answer}"))
            .to_owned()
    }

    /// The network by which the gateway reaches the internet: the one of its networks that is not internal.
    pub(crate) fn outside_network(&self) -> String {
        let seen = daemon::inspect(&self.project.gateway());
        let networks = seen["NetworkSettings"]["Networks"].as_object().unwrap();
        networks
            .keys()
            .find(|name| daemon::inspect_network(name)["Internal"] == false)
            .unwrap_or_else(|| panic!("every network is internal: {networks:?}"))
            .clone()
    }

    /// The subnet of a capability's network.
    pub(crate) fn subnet(&self, capability: &str) -> String {
        docker_text(&[
            "network",
            "inspect",
            "-f",
            "{{(index .IPAM.Config 0).Subnet}}",
            &self.resident(capability),
        ])
    }

    /// Uses a tool of the probe in a capability's container, as a call of it. What the probe could not even try is told as
    /// an outcome too.
    pub(crate) fn inside(&self, capability: &str, tool: &str, arguments: &Value) -> Value {
        match self.calls.call(
            &self.project.gateway(),
            &self.resident(capability),
            tool,
            arguments,
        ) {
            Ok(answer) => answer,
            Err(error) => json!({"ok": false, "error": error}),
        }
    }

    /// The same, without the gateway's help.
    pub(crate) fn inside_by_engine(
        &self,
        capability: &str,
        tool: &str,
        arguments: &Value,
    ) -> Value {
        probe_in(&self.resident(capability), tool, arguments)
    }

    /// The variables by which a capability's programs find the proxy, as its container has them.
    pub(crate) fn proxy_variables(&self, capability: &str) -> Vec<(String, String)> {
        let seen = daemon::inspect(&self.resident(capability));
        let variables = seen["Config"]["Env"].as_array().unwrap();
        variables
            .iter()
            .filter_map(|variable| variable.as_str()?.split_once('='))
            .filter(|(name, _)| name.to_lowercase().ends_with("_proxy"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

/// A container's address in a network.
#[track_caller]
pub(crate) fn address_in(container: &str, network: &str) -> String {
    let seen = daemon::inspect(container);
    let address = &seen["NetworkSettings"]["Networks"][network]["IPAddress"];
    address
        .as_str()
        .filter(|address| !address.is_empty())
        .unwrap_or_else(|| panic!("{container} has no address in {network}"))
        .to_owned()
}

/// Uses a tool of the probe in a container that has it.
fn probe_in(container: &str, tool: &str, arguments: &Value) -> Value {
    let done = run(Command::new("docker").args([
        "exec",
        container,
        "/probe",
        "call",
        tool,
        &arguments.to_string(),
    ]));
    outcome(&done)
}

/// What the probe said, or why it could say nothing.
pub(crate) fn outcome(done: &Run) -> Value {
    if done.code == 0 {
        done.json()
    } else {
        json!({"ok": false, "error": done.stderr.trim()})
    }
}

/// The process of a container, as the host sees it.
fn pid(container: &str) -> String {
    docker_text(&["inspect", "-f", "{{.State.Pid}}", container])
}

/// Runs a program of this machine in the network of a container, with its resolver and hosts, as root with every right.
pub(crate) fn in_network_of(
    container: &str,
    variables: &[(String, String)],
    command: &[&str],
) -> Run {
    let pid = pid(container);
    // Copies: what is mounted in the container cannot be mounted from here.
    let folder = tempfile::tempdir().unwrap();
    let its_root = std::path::Path::new("/proc").join(&pid).join("root");
    let from = |file: &str| {
        let copy = folder.path().join(file);
        std::fs::copy(its_root.join("etc").join(file), &copy).unwrap();
        format!("mount --bind {} /etc/{file}", copy.display())
    };
    let script = format!(
        "{} && {} && exec \"$@\"",
        from("resolv.conf"),
        from("hosts")
    );
    let net = format!("--net=/proc/{pid}/ns/net");
    let mut nsenter = Command::new("nsenter");
    nsenter
        .args([net.as_str(), "--", "unshare", "--mount", "--", "sh", "-c"])
        .args([script.as_str(), "sh"])
        .args(command);
    // Nothing of this machine's own way out may help or hinder.
    for (name, _) in std::env::vars() {
        if name.to_lowercase().ends_with("_proxy") {
            nsenter.env_remove(name);
        }
    }
    nsenter.envs(variables.iter().cloned());
    run(&mut nsenter)
}

/// A container without any of our restrictions, on an ordinary network, with the lab's name server.
pub(crate) struct FreeContainer {
    pub(crate) name: String,
    image: String,
    pid: String,
}

impl FreeContainer {
    /// `image` has the probe.
    pub(crate) fn new(topic: &str, image: &str) -> Self {
        let mut free = Self {
            name: format!("selu-test-free-{topic}-{}", std::process::id()),
            image: image.to_owned(),
            pid: String::new(),
        };
        let subnet = format!("fd00:5e1:{:x}::/64", std::process::id() & 0xffff);
        docker_text(&[
            "network", "create", "--ipv6", "--subnet", &subnet, &free.name,
        ]);
        docker_text(&[
            "run",
            "-d",
            "--name",
            &free.name,
            "--network",
            &free.name,
            "--dns",
            lab::DNS,
            "--add-host",
            "host.docker.internal:host-gateway",
            "-v",
            &format!("{}:/var/run/docker.sock", engine_socket()),
            "--entrypoint",
            "/probe",
            &free.image,
            "listen-tcp",
            &format!("0.0.0.0:{FREE_PORT}"),
        ]);
        free.pid = pid(&free.name);
        free
    }

    /// Uses a tool of the probe, as root with every right.
    pub(crate) fn probe(&self, tool: &str, arguments: &Value) -> Value {
        let done = run(Command::new("nsenter").args([
            "--target",
            &self.pid,
            "--all",
            "/probe",
            "call",
            tool,
            &arguments.to_string(),
        ]));
        outcome(&done)
    }

    /// Starts it again after the engine was restarted.
    pub(crate) fn restart(&mut self) {
        docker_text(&["start", &self.name]);
        self.pid = pid(&self.name);
    }

    /// An address of this container's network that is not its own.
    pub(crate) fn neighbouring_address(&self) -> String {
        let own: std::net::Ipv4Addr = address_in(&self.name, &self.name).parse().unwrap();
        std::net::Ipv4Addr::from(u32::from(own) + 1).to_string()
    }

    /// Uses a tool of the probe from beside a container: in its network, with nothing of ours in between.
    pub(crate) fn probe_beside(&self, network: &str, tool: &str, arguments: &Value) -> Value {
        let done = run(Command::new("docker").args([
            "run",
            "--rm",
            "--network",
            network,
            "--entrypoint",
            "/probe",
            &self.image,
            "call",
            tool,
            &arguments.to_string(),
        ]));
        done.expect(0).json()
    }

    /// The address of the host in this container's network, of the family that `index` has.
    pub(crate) fn host_address(&self, version: u8) -> String {
        let format = "{{range .IPAM.Config}}{{.Subnet}} {{.Gateway}}\n{{end}}";
        let seen = docker_text(&["network", "inspect", "-f", format, &self.name]);
        let line = seen
            .lines()
            .find(|line| line.contains(':') == (version == 6))
            .unwrap_or_else(|| panic!("no IPv{version} in {seen:?}"));
        let (subnet, gateway) = line.split_once(' ').unwrap_or((line, ""));
        if gateway.is_empty() {
            let subnet: std::net::Ipv6Addr = subnet.split('/').next().unwrap().parse().unwrap();
            std::net::Ipv6Addr::from(u128::from(subnet) + 1).to_string()
        } else {
            gateway.split('/').next().unwrap().to_owned()
        }
    }
}

/// Where the engine itself finds its socket. SELU_ENGINE_SOCKET says it where that is not the usual place, as for one
/// that lives in a root of its own.
fn engine_socket() -> String {
    std::env::var("SELU_ENGINE_SOCKET").unwrap_or_else(|_| "/var/run/docker.sock".to_owned())
}

impl Drop for FreeContainer {
    fn drop(&mut self) {
        for arguments in [
            ["rm", "-f", "-v", &self.name],
            ["network", "rm", &self.name, ""],
        ] {
            run(Command::new("docker").args(arguments.iter().filter(|word| !word.is_empty())));
        }
    }
}
