//! The leak probe (security.md S13): an engine that ignores an option, or a host whose packet filter was flushed, is
//! found before a capability starts, and refused.
//!
//! A container of our own image, made as a capability's is, tries the engine's host, a container outside, another
//! instance, a metadata service and the engine's resolver. Whatever is expected to be shut is first shown to be open
//! from elsewhere: from the host's own network namespace, and from beside the other instance.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use ipnet::Ipv4Net;
use selu_compiler::plan::spec::{CAPABILITY_USER, helper_spec};
use selu_compiler::plan::{ContainerSpec, PlannedNetwork, label};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::host::HOST_NETWORK;
use super::{GatewayError, LONGEST_ANSWER, answer, silent};
use crate::egress::leaks::{Inside, Listening, Target, Tried, Way};
use crate::engine::{Engine, EngineResult, Labels, Pipe};

/// For each end of the probe, with the start of its container.
const LIMIT: Duration = Duration::from_secs(30);

/// Where clouds tell a machine its secrets.
const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// The engine's resolver inside a container.
const RESOLVER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 11);

/// Why nothing may be started on this engine.
#[derive(Debug, thiserror::Error)]
pub enum LeakError {
    /// Something is open that must be shut.
    #[error(
        "the engine does not keep containers in: from one that may reach nothing, {}",
        .found.join("; ")
    )]
    Leaks {
        /// Each in words.
        found: Vec<String>,
    },
    /// The probe itself could not be carried out.
    #[error("could not probe whether the engine keeps containers in")]
    Probe(#[source] GatewayError),
}

/// Tries to get out, and says what could not be shown because its target does not answer anywhere. `subnets` are free.
pub async fn probe(
    engine: &dyn Engine,
    project: &str,
    image: &str,
    subnets: [Ipv4Net; 3],
) -> Result<Vec<String>, LeakError> {
    let probe = Probe::new(engine, project, image, subnets);
    // What a killed probe left behind.
    probe
        .clear()
        .await
        .map_err(|error| LeakError::Probe(error.into()))?;
    let tried = probe.run().await;
    let cleared = probe.clear().await;
    let (found, unproven) = tried.map_err(LeakError::Probe)?;
    cleared.map_err(|error| LeakError::Probe(error.into()))?;
    match found.is_empty() {
        true => Ok(unproven),
        false => Err(LeakError::Leaks { found }),
    }
}

struct Probe<'a> {
    engine: &'a dyn Engine,
    project: &'a str,
    image: &'a str,
    /// Where the probe is shut in.
    cut: PlannedNetwork,
    /// Another instance's.
    near: PlannedNetwork,
    /// An ordinary one.
    out: PlannedNetwork,
}

/// Ends of the probe; each has a container of its name.
const ENDS: [&str; 6] = ["cut", "near", "near-try", "out", "host", "host-try"];

impl<'a> Probe<'a> {
    fn new(
        engine: &'a dyn Engine,
        project: &'a str,
        image: &'a str,
        subnets: [Ipv4Net; 3],
    ) -> Self {
        let [cut, near, out] = subnets;
        let network = |end: &str, subnet| PlannedNetwork::new(name(project, end), subnet);
        Self {
            engine,
            project,
            image,
            cut: network("cut", cut),
            near: network("near", near),
            out: PlannedNetwork {
                outside: true,
                ..network("out", out)
            },
        }
    }

    async fn clear(&self) -> EngineResult<()> {
        let remove = |end: &&str| {
            let name = name(self.project, end);
            async move { self.engine.remove_container(&name).await }
        };
        for removed in join_all(ENDS.iter().map(remove)).await {
            removed?;
        }
        for network in [&self.cut, &self.near, &self.out] {
            self.engine.remove_network(&network.name).await?;
        }
        Ok(())
    }

    /// What was open, and what could not be shown to be shut.
    async fn run(&self) -> Result<(Vec<String>, Vec<String>), GatewayError> {
        let labels = Labels::from([
            (label::PROJECT.to_owned(), self.project.to_owned()),
            (label::ROLE.to_owned(), "helper".to_owned()),
        ]);
        for network in [&self.cut, &self.near, &self.out] {
            self.engine.create_network(network, &labels).await?;
        }
        let (on_host, out, near) = tokio::try_join!(
            self.listen("host", HOST_NETWORK, None),
            self.listen("out", &self.out.name, Some(self.out.capability)),
            self.listen("near", &self.near.name, Some(self.near.capability)),
        )?;
        let targets = Targets {
            host: &on_host.0,
            out: (self.out.capability, &out.0),
            near: (self.near.capability, &near.0),
            bridge: self.cut.bridge,
        };
        let (shown_outside, shown_near) = (targets.shown_outside(), targets.shown_near());
        let all: Vec<Target> = shown_outside
            .iter()
            .chain(&shown_near)
            .cloned()
            .chain(targets.unshown())
            .collect();
        let beside = Some(self.near.gateway);
        let (from_host, from_near, from_cut) = tokio::try_join!(
            self.attempt("host-try", HOST_NETWORK, None, &shown_outside),
            self.attempt("near-try", &self.near.name, beside, &shown_near),
            self.attempt("cut", &self.cut.name, Some(self.cut.capability), &all),
        )?;
        let mut found: Vec<String> = from_cut
            .answered
            .iter()
            .map(|name| format!("{name} answers"))
            .collect();
        let (weak, mut unproven) = weaknesses(&self.spec(&[]), &from_cut.inside);
        found.extend(weak);
        let silent = |targets: &[Target], tried: &Tried| -> Vec<String> {
            let names = targets.iter().map(|target| target.name.clone());
            names
                .filter(|name| !tried.answered.contains(name))
                .collect()
        };
        unproven.extend(silent(&shown_outside, &from_host));
        unproven.extend(silent(&shown_near, &from_near));
        Ok((found, unproven))
    }

    fn spec(&self, role: &[&str]) -> ContainerSpec {
        let command = ["gateway", "leaks"].iter().chain(role);
        let command = command.map(|&word| word.to_owned()).collect();
        let mut spec = helper_spec(self.project, "helper", command);
        spec.image = self.image.to_owned();
        // Not the image's own user, so that it shows whether the engine minds who is asked for.
        spec.user = CAPABILITY_USER.to_owned();
        spec
    }

    async fn start(
        &self,
        end: &str,
        mut spec: ContainerSpec,
        network: &str,
        address: Option<Ipv4Addr>,
    ) -> Result<Pipe, GatewayError> {
        let name = name(self.project, end);
        if network == HOST_NETWORK {
            // Kernel settings of the namespace are the host's own here.
            spec.sysctls = BTreeMap::new();
        }
        let engine = self.engine;
        engine
            .create_container(&name, &spec, network, address, true)
            .await?;
        let pipe = engine.attach(&name).await?;
        engine.start(&name).await?;
        Ok(pipe)
    }

    /// A target, which answers as long as the pipe is kept.
    async fn listen(
        &self,
        end: &str,
        network: &str,
        address: Option<Ipv4Addr>,
    ) -> Result<(Listening, Box<dyn Send>), GatewayError> {
        let name = name(self.project, end);
        let role = ["leaks", "listen"];
        let starting = async {
            let pipe = self
                .start(end, self.spec(&["listen"]), network, address)
                .await?;
            let mut lines = BufReader::new(pipe.output.take(LONGEST_ANSWER));
            let mut line = String::new();
            let read = lines.read_line(&mut line).await;
            read.map_err(|error| answer(&name, &role, error))?;
            let listening =
                serde_json::from_str(&line).map_err(|error| answer(&name, &role, error))?;
            let kept: Box<dyn Send> = Box::new((lines, pipe.input, pipe.ended));
            Ok((listening, kept))
        };
        let started = tokio::time::timeout(LIMIT, starting).await;
        started.unwrap_or_else(|_| Err(silent(&name, &role, LIMIT)))
    }

    /// What of the targets answers from a place.
    async fn attempt(
        &self,
        end: &str,
        network: &str,
        address: Option<Ipv4Addr>,
        targets: &[Target],
    ) -> Result<Tried, GatewayError> {
        let name = name(self.project, end);
        let role = ["leaks", "try"];
        let mut spec = self.spec(&["try"]);
        if network == self.cut.name {
            // As a capability's: the engine's own resolver has nobody else to ask.
            spec.dns = vec![self.cut.gateway];
        }
        let asking = async {
            let Pipe {
                output,
                mut input,
                ended,
            } = self.start(end, spec, network, address).await?;
            let text = serde_json::to_vec(targets).map_err(|error| answer(&name, &role, error))?;
            let broken = |error: std::io::Error| answer(&name, &role, error);
            input.write_all(&text).await.map_err(broken)?;
            input.shutdown().await.map_err(broken)?;
            drop(input);
            let mut heard = Vec::new();
            let mut output = output.take(LONGEST_ANSWER);
            output.read_to_end(&mut heard).await.map_err(broken)?;
            let (code, message) = ended.await?;
            if code != 0 {
                return Err(GatewayError::Role {
                    gateway: name.clone(),
                    role: "gateway leaks try".to_owned(),
                    code,
                    message: message.trim().to_owned(),
                });
            }
            serde_json::from_slice(&heard).map_err(|error| answer(&name, &role, error))
        };
        let asked = tokio::time::timeout(LIMIT, asking).await;
        asked.unwrap_or_else(|_| Err(silent(&name, &role, LIMIT)))
    }
}

/// `selu_<project>_leaks-cut`: no instance is ever called so, it would have three parts.
fn name(project: &str, end: &str) -> String {
    format!("selu_{project}_leaks-{end}")
}

struct Targets<'a> {
    host: &'a Listening,
    out: (Ipv4Addr, &'a Listening),
    near: (Ipv4Addr, &'a Listening),
    bridge: Ipv4Addr,
}

impl Targets<'_> {
    /// What answers the host's own network namespace.
    fn shown_outside(&self) -> Vec<Target> {
        let (out, listening) = self.out;
        let mut targets = both("a container outside", out.into(), listening);
        for address in &self.host.addresses {
            targets.extend(both("the engine's host", *address, self.host));
        }
        targets
    }

    /// What answers in the other instance's network.
    fn shown_near(&self) -> Vec<Target> {
        let (near, listening) = self.near;
        both("another instance", near.into(), listening)
    }

    /// What must not answer, whether it is there or not.
    fn unshown(&self) -> Vec<Target> {
        let mut targets = both(
            "the engine's host on its own bridge",
            self.bridge.into(),
            self.host,
        );
        targets.push(Target {
            name: "the metadata service".to_owned(),
            at: SocketAddr::new(METADATA.into(), 80),
            way: Way::Tcp,
        });
        targets.push(Target {
            name: "the engine's resolver, about a name outside,".to_owned(),
            at: SocketAddr::new(RESOLVER.into(), 53),
            way: Way::Dns,
        });
        targets
    }
}

fn both(what: &str, address: IpAddr, listening: &Listening) -> Vec<Target> {
    let target = |way, by, port| Target {
        name: format!("{what} at {address} by {by}"),
        at: SocketAddr::new(address, port),
        way,
    };
    vec![
        target(Way::Tcp, "TCP", listening.tcp),
        target(Way::Udp, "UDP", listening.udp),
    ]
}

/// What is not in force inside although it was asked for; and what the container itself cannot see.
fn weaknesses(spec: &ContainerSpec, inside: &Inside) -> (Vec<String>, Vec<String>) {
    let Inside {
        seccomp,
        no_new_privileges,
        capabilities,
        root_writable,
        ipv6,
        user,
        memory_bytes,
        swap_bytes,
        nano_cpus,
        pids,
        nofile,
    } = inside;
    let mut found = Vec::new();
    for (open, what) in [
        (!seccomp, "system calls are not filtered"),
        (!no_new_privileges, "programs can gain privileges"),
        (*capabilities, "the kernel's capabilities are not dropped"),
        (*root_writable, "the root file system is writable"),
        (*ipv6, "there is an IPv6 address"),
    ] {
        if open {
            found.push(what.to_owned());
        }
    }
    if user.as_deref() != Some(spec.user.as_str()) {
        let user = user.as_deref().unwrap_or("somebody else");
        found.push(format!("programs run as {user} instead of {}", spec.user));
    }
    let mut unseen = Vec::new();
    let swap = spec.memory_swap_bytes.saturating_sub(spec.memory_bytes);
    for (what, wanted, seen) in [
        ("memory", spec.memory_bytes, memory_bytes),
        ("swap", swap, swap_bytes),
        ("processor time (billionths)", spec.nano_cpus, nano_cpus),
        ("number of processes", spec.pids, pids),
        ("number of open files", spec.nofile, nofile),
    ] {
        match seen {
            Some(seen) if *seen == wanted => {}
            Some(seen) => found.push(format!(
                "the {what} is limited to {seen} instead of {wanted}"
            )),
            None => unseen.push(format!(
                "the limit of the {what}, which the container cannot see"
            )),
        }
    }
    (found, unseen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(spec: &ContainerSpec) -> Inside {
        Inside {
            seccomp: true,
            no_new_privileges: true,
            capabilities: false,
            root_writable: false,
            ipv6: false,
            user: Some(spec.user.clone()),
            memory_bytes: Some(spec.memory_bytes),
            swap_bytes: Some(0),
            nano_cpus: Some(spec.nano_cpus),
            pids: Some(spec.pids),
            nofile: Some(spec.nofile),
        }
    }

    #[test]
    fn each_thing_that_is_not_in_force_is_found_by_itself() {
        let spec = helper_spec("demo", "helper", Vec::new());
        assert_eq!(weaknesses(&spec, &sound(&spec)), (vec![], vec![]));
        type Opening = (fn(&mut Inside), &'static str);
        let cases: [Opening; 11] = [
            (|inside| inside.seccomp = false, "not filtered"),
            (|inside| inside.no_new_privileges = false, "gain privileges"),
            (|inside| inside.capabilities = true, "not dropped"),
            (|inside| inside.root_writable = true, "writable"),
            (|inside| inside.ipv6 = true, "IPv6"),
            (
                |inside| inside.memory_bytes = Some(1 << 62),
                "the memory is limited to",
            ),
            (|inside| inside.user = None, "run as somebody else"),
            (
                |inside| inside.swap_bytes = Some(9),
                "the swap is limited to",
            ),
            (
                |inside| inside.nano_cpus = Some(u64::MAX),
                "the processor time",
            ),
            (
                |inside| inside.pids = Some(u64::MAX),
                "processes is limited to",
            ),
            (
                |inside| inside.nofile = Some(1 << 20),
                "open files is limited to",
            ),
        ];
        for (open, said) in cases {
            let mut inside = sound(&spec);
            open(&mut inside);
            let (found, unseen) = weaknesses(&spec, &inside);
            assert!(
                found.len() == 1 && found[0].contains(said),
                "{said}: {found:?}"
            );
            assert!(unseen.is_empty());
        }
        let blind = Inside {
            pids: None,
            ..sound(&spec)
        };
        let (found, unseen) = weaknesses(&spec, &blind);
        assert!(found.is_empty() && unseen[0].contains("number of processes"));
    }
}
