//! What is set on each container (W6): residents, the gateway, and short-lived helpers.

use std::collections::BTreeMap;

use std::net::Ipv4Addr;
use std::sync::LazyLock;

use super::{ContainerSpec, PlannedVolume, SECCOMP_PROFILE, hash, label, names};
use crate::model::{Capability, Filesystem, InstanceKey, SharingMode};
use crate::observed::ImageFacts;

/// Version of the protocol between `selu` and its gateway's policy file; the tag of the gateway's image.
pub const POLICY_PROTOCOL: u32 = 2;

/// Whom a capability's programs run as (W6), whatever its image says.
pub const CAPABILITY_USER: &str = "1000:1000";
/// The gateway and the hold: no user of any image, and not the capabilities' one either.
const GATEWAY_USER: &str = "65532:65532";
/// Process 1 of a gateway that carries egress (S7).
const PARENT_USER: &str = "0:0";

const MIB: u64 = 1 << 20;

/// `/tmp` (F2).
const TMP_OPTIONS: &str = "rw,noexec,nosuid,nodev,size=67108864,mode=1777";
/// An image's own VOLUME (F5): empty, and not writable even for its owner.
const IMAGE_VOLUME_OPTIONS: &str = "ro,noexec,nosuid,nodev,size=65536,mode=0555";

/// Paths of the volumes.
const WORKSPACE: &str = "/workspace";
const CACHE: &str = "/cache";
const POLICY: &str = "/policy";
const EGRESS: &str = "/egress";
/// Where the gateway's parent has its control socket.
const CONTROL: &str = "/run";
const CONTROL_OPTIONS: &str = "rw,noexec,nosuid,nodev,size=65536,mode=0755";

/// What residents are told to send HTTP through, where anything may leave. It resolves in every container's network.
pub const PROXY: &str = "http://gateway.selu.internal:3128";
const NO_PROXY: &str = "localhost,127.0.0.1,::1";

/// `sha256:…` of the profile that every container runs under.
pub fn seccomp_hash() -> String {
    hash::sha256(SECCOMP_PROFILE.as_bytes())
}

/// The profile of a gateway that carries egress: the common one, and the packet filter's netlink protocol besides.
pub static PARENT_SECCOMP_PROFILE: LazyLock<String> = LazyLock::new(|| {
    const BEGIN: &str = "\"syscalls\": [";
    let rule = r#"
    {
      "comment": "AF_NETLINK, NETLINK_NETFILTER: the gateway's packet filter",
      "names": ["socket"],
      "args": [
        {"index": 0, "value": 16, "op": "SCMP_CMP_EQ"},
        {"index": 2, "value": 12, "op": "SCMP_CMP_EQ"}
      ],
      "action": "SCMP_ACT_ALLOW"
    },"#;
    SECCOMP_PROFILE.replacen(BEGIN, &format!("{BEGIN}{rule}"), 1)
});

/// A profile of ours by its hash.
pub fn seccomp_profile(hash: &str) -> Option<&'static str> {
    [SECCOMP_PROFILE, PARENT_SECCOMP_PROFILE.as_str()]
        .into_iter()
        .find(|profile| hash::sha256(profile.as_bytes()) == hash)
}

/// The local tag of the gateway's image.
pub fn gateway_image(project: &str) -> String {
    format!("selu.local/{project}/gateway:{POLICY_PROTOCOL}")
}

/// The volumes of an instance's resident, by path (X3, F3).
pub fn resident_volumes(
    project: &str,
    instance: &InstanceKey,
    capability: &Capability,
) -> BTreeMap<String, PlannedVolume> {
    let mut volumes = BTreeMap::new();
    if capability.filesystem == Filesystem::Workspace {
        // One per session.
        let name = names::volume(project, instance, "", names::RESIDENT_SESSION, WORKSPACE);
        let purpose = "workspace".to_owned();
        volumes.insert(WORKSPACE.to_owned(), PlannedVolume { name, purpose });
    }
    if capability.cache {
        // One per user and capability, whatever the session; the resident serves no user in particular.
        let name = names::volume(project, instance, "", "", CACHE);
        let purpose = "cache".to_owned();
        volumes.insert(CACHE.to_owned(), PlannedVolume { name, purpose });
    }
    volumes
}

/// The settings of a resident, all but those that follow from its generation and addresses: resolvers and labels.
pub(crate) fn resident(
    image: &str,
    facts: Option<&ImageFacts>,
    capability: &Capability,
    volumes: &BTreeMap<String, PlannedVolume>,
) -> ContainerSpec {
    let memory_bytes = capability.limits.memory_mb.saturating_mul(MIB);
    let mut env = BTreeMap::from([("SELU_CAPABILITY_ID".to_owned(), capability.id.clone())]);
    match capability.sharing.mode {
        SharingMode::Shared => env.insert("SELU_SHARED".to_owned(), "true".to_owned()),
        SharingMode::Exclusive => env.insert(
            "SELU_SESSION_ID".to_owned(),
            names::RESIDENT_SESSION.to_owned(),
        ),
    };
    if capability.network.opens() {
        for name in ["HTTP_PROXY", "HTTPS_PROXY"] {
            env.insert(name.to_owned(), PROXY.to_owned());
            env.insert(name.to_lowercase(), PROXY.to_owned());
        }
        for name in ["NO_PROXY", "no_proxy"] {
            env.insert(name.to_owned(), NO_PROXY.to_owned());
        }
    }
    let volumes: BTreeMap<String, String> = volumes
        .iter()
        .map(|(path, volume)| (path.clone(), volume.name.clone()))
        .collect();
    let mut tmpfs = BTreeMap::new();
    if let Some(facts) = facts {
        hide_image_volumes(&mut tmpfs, &volumes, facts);
    }
    if capability.filesystem == Filesystem::Temp {
        tmpfs.insert("/tmp".to_owned(), TMP_OPTIONS.to_owned());
    }
    ContainerSpec {
        image: image.to_owned(),
        user: CAPABILITY_USER.to_owned(),
        env,
        memory_bytes,
        memory_swap_bytes: memory_bytes,
        nano_cpus: capability.limits.nano_cpus,
        pids: capability.limits.pids,
        // F1: nothing is writable, /dev/shm neither.
        shm_bytes: (capability.filesystem != Filesystem::None).then_some(16 * MIB),
        tmpfs,
        volumes,
        ..hardened()
    }
}

/// Puts an empty place where the image has a VOLUME and nothing else is mounted (F5).
pub(crate) fn hide_image_volumes(
    tmpfs: &mut BTreeMap<String, String>,
    volumes: &BTreeMap<String, String>,
    facts: &ImageFacts,
) {
    for path in &facts.volumes {
        let path = normal_path(path);
        if !volumes.contains_key(&path) {
            tmpfs
                .entry(path)
                .or_insert_with(|| IMAGE_VOLUME_OPTIONS.to_owned());
        }
    }
}

/// Labels of a resident: ours, and every label of the image blanked (W6).
pub(crate) fn resident_labels(
    project: &str,
    instance: &InstanceKey,
    generation: u64,
    spec_hash: &str,
    rules: &hash::RunRules,
    facts: Option<&ImageFacts>,
) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = facts
        .into_iter()
        .flat_map(|facts| facts.labels.keys())
        .map(|name| (name.clone(), String::new()))
        .collect();
    labels.extend(own_labels(project, "resident"));
    labels.insert(label::INSTANCE.to_owned(), instance.to_string());
    labels.insert(label::GENERATION.to_owned(), generation.to_string());
    labels.insert(label::SPEC.to_owned(), spec_hash.to_owned());
    labels.insert(label::RULES.to_owned(), rules.to_label());
    labels
}

/// The settings of a gateway that carries nothing, labels included. Mode `none` needs no privilege, so it has none.
pub(crate) fn closed_gateway(project: &str) -> (ContainerSpec, String) {
    let spec = ContainerSpec {
        image: gateway_image(project),
        // The image's entry point is the executable.
        command: Some(["gateway", "run"].map(str::to_owned).to_vec()),
        user: GATEWAY_USER.to_owned(),
        memory_bytes: 64 * MIB,
        memory_swap_bytes: 64 * MIB,
        nano_cpus: 500_000_000,
        pids: 256,
        nofile: GATEWAY_FILES,
        volumes: BTreeMap::from([(POLICY.to_owned(), names::gateway(project))]),
        sysctls: gateway_sysctls(),
        ..hardened()
    };
    gateway_labelled(project, spec)
}

/// Memory of a gateway that carries what leaves. Its worker's own limits keep what it holds below, whatever containers
/// send; a gateway of an ordinary project takes a twentieth of it.
pub const OPEN_GATEWAY_MEMORY: u64 = 256 * MIB;

/// Descriptors of a gateway, six a connection at worst. Engines cannot give more than they have, and some have 20,000.
pub const GATEWAY_FILES: u64 = 16_384;

/// The settings of a gateway that carries what leaves, on an engine of so many cores. Its first process sets routes and
/// the packet filter, starts the worker as another user, and has no right beyond that (S7).
pub(crate) fn open_gateway(
    project: &str,
    cores: u64,
    resolvers: &[Ipv4Addr],
) -> (ContainerSpec, String) {
    let (closed, _) = closed_gateway(project);
    let mut sysctls = closed.sysctls;
    // The worker has no right to bind port 53, so every port is free to bind in this namespace, which holds nobody else.
    sysctls.insert(
        "net.ipv4.ip_unprivileged_port_start".to_owned(),
        "0".to_owned(),
    );
    let mut volumes = closed.volumes;
    volumes.insert(EGRESS.to_owned(), names::egress(project));
    let spec = ContainerSpec {
        user: PARENT_USER.to_owned(),
        cap_add: ["NET_ADMIN", "SETGID", "SETUID"]
            .map(str::to_owned)
            .to_vec(),
        seccomp: hash::sha256(PARENT_SECCOMP_PROFILE.as_bytes()),
        memory_bytes: OPEN_GATEWAY_MEMORY,
        memory_swap_bytes: OPEN_GATEWAY_MEMORY,
        nano_cpus: cores.clamp(1, 2) * 1_000_000_000,
        tmpfs: BTreeMap::from([(CONTROL.to_owned(), CONTROL_OPTIONS.to_owned())]),
        volumes,
        sysctls,
        dns: resolvers.to_vec(),
        ..closed
    };
    gateway_labelled(project, spec)
}

fn gateway_labelled(project: &str, mut spec: ContainerSpec) -> (ContainerSpec, String) {
    spec.labels = BTreeMap::new();
    let spec_hash = hash::spec_hash(&spec, None);
    spec.labels = own_labels(project, "gateway");
    spec.labels
        .insert(label::SPEC.to_owned(), spec_hash.clone());
    (spec, spec_hash)
}

/// The settings of a short-lived container from our own image, such as the hold or a probe, as unprivileged as the
/// gateway. `command` are the arguments of the executable; `role` becomes a label, and the caller may add others.
pub fn helper_spec(project: &str, role: &str, command: Vec<String>) -> ContainerSpec {
    ContainerSpec {
        image: gateway_image(project),
        command: Some(command),
        user: GATEWAY_USER.to_owned(),
        memory_bytes: 32 * MIB,
        memory_swap_bytes: 32 * MIB,
        nano_cpus: 500_000_000,
        pids: 32,
        restart: false,
        labels: own_labels(project, role),
        ..hardened()
    }
}

/// What every container has in common (W6). Image, user and limits are the caller's.
fn hardened() -> ContainerSpec {
    ContainerSpec {
        image: String::new(),
        command: None,
        user: String::new(),
        env: BTreeMap::new(),
        read_only_root: true,
        cap_drop: vec!["ALL".to_owned()],
        cap_add: Vec::new(),
        no_new_privileges: true,
        seccomp: seccomp_hash(),
        memory_bytes: 0,
        memory_swap_bytes: 0,
        nano_cpus: 0,
        pids: 0,
        nofile: 4_096,
        shm_bytes: None,
        tmpfs: BTreeMap::new(),
        volumes: BTreeMap::new(),
        sysctls: sysctls(&[
            ("net.ipv6.conf.all.disable_ipv6", "1"),
            ("net.ipv6.conf.default.disable_ipv6", "1"),
        ]),
        dns: Vec::new(),
        log_bytes: 4 * MIB,
        log_files: 2,
        restart: true,
        labels: BTreeMap::new(),
    }
}

/// The gateway stands in many networks and must never route between them (S5). Set explicitly, because the host's
/// defaults are inherited.
fn gateway_sysctls() -> BTreeMap<String, String> {
    sysctls(&[
        ("net.ipv4.conf.all.accept_redirects", "0"),
        ("net.ipv4.conf.all.accept_source_route", "0"),
        ("net.ipv4.conf.all.rp_filter", "1"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.ipv4.conf.default.accept_redirects", "0"),
        ("net.ipv4.conf.default.accept_source_route", "0"),
        ("net.ipv4.conf.default.rp_filter", "1"),
        ("net.ipv4.conf.default.send_redirects", "0"),
        ("net.ipv4.ip_forward", "0"),
        ("net.ipv6.conf.all.disable_ipv6", "1"),
        ("net.ipv6.conf.default.disable_ipv6", "1"),
    ])
}

fn sysctls(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
    settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn own_labels(project: &str, role: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (label::PROJECT.to_owned(), project.to_owned()),
        (label::ROLE.to_owned(), role.to_owned()),
    ])
}

/// `/data/` and `/data` are one mount point.
fn normal_path(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { "/" } else { trimmed }.to_owned()
}

#[cfg(test)]
mod tests;
