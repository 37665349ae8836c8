//! One test's project on the engine.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use ipnet::Ipv4Net;
use selu_compiler::model::{InstanceKey, Network, NetworkMode};
use selu_compiler::plan::{
    ContainerSpec, GatewayRule, PlannedGateway, PlannedNetwork, SECCOMP_PROFILE, label,
};
use selu_runtime::egress::policy::Policy;
use selu_runtime::engine::docker::{Docker, connect};
use selu_runtime::engine::{Engine, EngineView, Labels};
use selu_runtime::gateway::image_archive_of;
use sha2::{Digest, Sha256};

/// The binary under test.
pub(crate) const SELU: &str = env!("CARGO_BIN_EXE_selu");

static COUNTER: AtomicU32 = AtomicU32::new(0);

pub(crate) struct World {
    pub(crate) engine: Docker,
    pub(crate) project: String,
    /// The second byte of this test's addresses, 10.177.N.0/24.
    slice: u8,
    /// The gateway's tag.
    pub(crate) image: String,
}

impl World {
    /// A project of its own, with the gateway's image loaded.
    pub(crate) async fn new(what: &str) -> Self {
        let engine = connect(None)
            .await
            .expect("these tests need a container engine that may be used");
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let project = format!("engine-{what}-{}-{number}", std::process::id());
        let taken = engine.observe(&project, &[]).await.unwrap().foreign_subnets;
        // Tests of one process run at once: each has its own stride.
        let first = std::process::id() as u8;
        let slice = (0..=255u8)
            .map(|step| {
                first
                    .wrapping_add(step.wrapping_mul(16))
                    .wrapping_add(number as u8)
            })
            .find(|slice| {
                let wanted: Ipv4Net = format!("10.177.{slice}.0/24").parse().unwrap();
                !taken
                    .iter()
                    .any(|net| net.contains(&wanted) || wanted.contains(net))
            })
            .expect("no free subnet");
        let image = format!("selu.local/{project}/gateway:1");
        let archive = image_archive_of(Path::new(SELU), &image, &project).unwrap();
        engine.load_image(archive.into()).await.unwrap();
        Self {
            engine,
            project,
            slice,
            image,
        }
    }

    /// The image of a capability that serves as [`crate::capability`] does.
    pub(crate) async fn capability_image(&self) -> String {
        static SELF: OnceLock<PathBuf> = OnceLock::new();
        let executable = SELF.get_or_init(|| std::env::current_exe().unwrap());
        let tag = format!("selu.local/{}/capability:1", self.project);
        let archive = image_archive_of(executable, &tag, &self.project).unwrap();
        self.engine.load_image(archive.into()).await.unwrap();
        tag
    }

    pub(crate) fn network(&self, name: &str, number: u8) -> PlannedNetwork {
        let first = Ipv4Addr::new(10, 177, self.slice, number * 16);
        let subnet = Ipv4Net::new(first, 28).unwrap();
        PlannedNetwork::new(format!("selu_{}_{name}", self.project), subnet)
    }

    pub(crate) fn labels(&self, role: &str) -> Labels {
        BTreeMap::from([
            (label::PROJECT.to_owned(), self.project.clone()),
            (label::ROLE.to_owned(), role.to_owned()),
        ])
    }

    pub(crate) fn spec(&self, image: &str, role: &str) -> ContainerSpec {
        ContainerSpec {
            image: image.to_owned(),
            command: None,
            user: "1000:1000".to_owned(),
            env: BTreeMap::new(),
            read_only_root: true,
            cap_drop: vec!["ALL".to_owned()],
            cap_add: Vec::new(),
            no_new_privileges: true,
            seccomp: format!("sha256:{}", hex(&Sha256::digest(SECCOMP_PROFILE))),
            memory_bytes: 64 << 20,
            memory_swap_bytes: 64 << 20,
            nano_cpus: 570_000_000,
            pids: 64,
            nofile: 1024,
            shm_bytes: None,
            tmpfs: BTreeMap::new(),
            volumes: BTreeMap::new(),
            sysctls: BTreeMap::from([(
                "net.ipv6.conf.all.disable_ipv6".to_owned(),
                "1".to_owned(),
            )]),
            dns: Vec::new(),
            log_bytes: 1 << 20,
            log_files: 2,
            restart: false,
            labels: self.labels(role),
        }
    }

    pub(crate) fn gateway(&self) -> PlannedGateway {
        let name = format!("selu_{}_gateway", self.project);
        let mut spec = self.spec(&self.image, "gateway");
        spec.command = Some(vec!["gateway".to_owned(), "run".to_owned()]);
        spec.user = "65532:65532".to_owned();
        spec.volumes = BTreeMap::from([("/policy".to_owned(), name.clone())]);
        spec.sysctls
            .insert("net.ipv4.ip_forward".to_owned(), "0".to_owned());
        spec.restart = true;
        PlannedGateway {
            network: self.network("gateway", 0),
            volume: name.clone(),
            log_volume: None,
            name,
            spec,
            spec_hash: "v1:sha256:00".to_owned(),
            range: "10.0.0.0/8".parse().unwrap(),
            policy: BTreeMap::new(),
        }
    }

    pub(crate) fn policy(&self, generation: u64, networks: &[&PlannedNetwork]) -> Policy {
        Policy {
            project: self.project.clone(),
            generation,
            networks: networks
                .iter()
                .map(|network| {
                    let rule = GatewayRule {
                        instance: InstanceKey::new("test", "capability"),
                        subnet: network.subnet,
                        capability: network.capability,
                        rules: Network {
                            mode: NetworkMode::None,
                            hosts: Vec::new(),
                        },
                        private: Vec::new(),
                    };
                    (network.name.clone(), rule)
                })
                .collect(),
            refused: Vec::new(),
            ranges: Vec::new(),
        }
    }
}

impl Drop for World {
    /// Removes what the project owns, by its label, with the engine's own client: it works from a failing test too.
    fn drop(&mut self) {
        let filter = format!("label={}={}", label::PROJECT, self.project);
        for (list, remove) in [
            (vec!["ps", "-aq"], vec!["rm", "-fv"]),
            (vec!["network", "ls", "-q"], vec!["network", "rm"]),
            (vec!["volume", "ls", "-q"], vec!["volume", "rm", "-f"]),
            (
                vec!["image", "ls", "-q"],
                vec!["image", "rm", "-f", "--no-prune"],
            ),
        ] {
            let found = docker(&[list, vec!["--filter", &filter]].concat());
            let ids = String::from_utf8_lossy(&found.stdout).into_owned();
            let ids: Vec<&str> = ids.split_whitespace().collect();
            if !ids.is_empty() {
                docker(&[remove, ids].concat());
            }
        }
    }
}

/// The engine's own client: a second pair of eyes, and hands that are not ours.
pub(crate) fn docker(args: &[&str]) -> Output {
    Command::new("docker")
        .args(args)
        .output()
        .expect("these tests need the `docker` command")
}

/// Its standard output, trimmed; a failure fails the test.
pub(crate) fn docker_text(args: &[&str]) -> String {
    let output = docker(args);
    assert!(
        output.status.success(),
        "docker {}: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
