//! [`ContainerSpec`] → the engine's create and update calls. [`super::readback`] is the inverse.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use bollard::models::{
    ContainerCreateBody, ContainerUpdateBody, EndpointIpamConfig, EndpointSettings, HealthConfig,
    HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, Mount, MountType,
    MountVolumeOptions, NetworkingConfig, ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use selu_compiler::plan::ContainerSpec;
use selu_compiler::plan::spec::{seccomp_hash, seccomp_profile};

use super::call::refused;
use crate::engine::EngineResult;

/// The network of a container that has none.
pub(super) const NO_NETWORK: &str = "none";

/// The container's own name for itself: the same for all, and nothing that it could learn from.
pub(super) const HOSTNAME: &str = "selu";

/// The only log driver that we set: bounded by the engine, readable through it.
pub(super) const LOG_DRIVER: &str = "json-file";

/// The create call's body.
pub(super) fn body(
    call: &str,
    spec: &ContainerSpec,
    network: &str,
    address: Option<Ipv4Addr>,
    open_stdin: bool,
) -> EngineResult<ContainerCreateBody> {
    // Destructured: a field that nobody sends must break the build.
    let ContainerSpec {
        image,
        command,
        user,
        env,
        read_only_root,
        cap_drop,
        cap_add,
        no_new_privileges,
        seccomp,
        memory_bytes,
        memory_swap_bytes,
        nano_cpus,
        pids,
        nofile,
        shm_bytes,
        tmpfs,
        volumes,
        sysctls,
        dns,
        log_bytes,
        log_files,
        restart,
        labels,
    } = spec;

    let Some(profile) = seccomp_profile(seccomp) else {
        let own = seccomp_hash();
        return Err(refused(
            call,
            format!("the plan asks for seccomp profile {seccomp}; this version of selu has {own}"),
        ));
    };
    let number = |what: &str, value: u64| {
        i64::try_from(value).map_err(|_| refused(call, format!("{what} is too large: {value}")))
    };
    let mut security = vec![format!("seccomp={profile}")];
    if *no_new_privileges {
        security.push("no-new-privileges".to_owned());
    }
    let host = HostConfig {
        network_mode: Some(network.to_owned()),
        memory: Some(number("memory_bytes", *memory_bytes)?),
        memory_swap: Some(number("memory_swap_bytes", *memory_swap_bytes)?),
        nano_cpus: Some(number("nano_cpus", *nano_cpus)?),
        pids_limit: Some(number("pids", *pids)?),
        ulimits: Some(vec![ResourcesUlimits {
            name: Some("nofile".to_owned()),
            soft: Some(number("nofile", *nofile)?),
            hard: Some(number("nofile", *nofile)?),
        }]),
        cap_drop: Some(cap_drop.clone()),
        cap_add: Some(cap_add.clone()),
        security_opt: Some(security),
        readonly_rootfs: Some(*read_only_root),
        privileged: Some(false),
        publish_all_ports: Some(false),
        auto_remove: Some(false),
        ipc_mode: Some(
            if shm_bytes.is_some() {
                "private"
            } else {
                "none"
            }
            .to_owned(),
        ),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        shm_size: shm_bytes
            .map(|bytes| number("shm_bytes", bytes))
            .transpose()?,
        tmpfs: Some(map(tmpfs)),
        mounts: Some(
            volumes
                .iter()
                .map(|(path, volume)| volume_mount(path, volume, true))
                .collect(),
        ),
        sysctls: Some(map(sysctls)),
        dns: Some(dns.iter().map(Ipv4Addr::to_string).collect()),
        log_config: Some(HostConfigLogConfig {
            typ: Some(LOG_DRIVER.to_owned()),
            config: Some(HashMap::from([
                ("max-size".to_owned(), log_bytes.to_string()),
                ("max-file".to_owned(), log_files.to_string()),
            ])),
        }),
        restart_policy: Some(restart_policy(*restart)),
        ..HostConfig::default()
    };
    Ok(ContainerCreateBody {
        image: Some(image.clone()),
        cmd: command.clone(),
        user: Some(user.clone()),
        env: Some(
            env.iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        ),
        labels: Some(map(labels)),
        hostname: Some(HOSTNAME.to_owned()),
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        attach_stdin: Some(open_stdin),
        open_stdin: Some(open_stdin),
        stdin_once: Some(open_stdin),
        host_config: Some(host),
        networking_config: (network != NO_NETWORK).then(|| NetworkingConfig {
            endpoints_config: Some(HashMap::from([(network.to_owned(), endpoint(address))])),
        }),
        ..ContainerCreateBody::default()
    })
}

/// The update call's body: what the engine changes in place, and nothing else.
pub(super) fn update(call: &str, spec: &ContainerSpec) -> EngineResult<ContainerUpdateBody> {
    let number = |what: &str, value: u64| {
        i64::try_from(value).map_err(|_| refused(call, format!("{what} is too large: {value}")))
    };
    Ok(ContainerUpdateBody {
        memory: Some(number("memory_bytes", spec.memory_bytes)?),
        memory_swap: Some(number("memory_swap_bytes", spec.memory_swap_bytes)?),
        nano_cpus: Some(number("nano_cpus", spec.nano_cpus)?),
        pids_limit: Some(number("pids", spec.pids)?),
        restart_policy: Some(restart_policy(spec.restart)),
        ..ContainerUpdateBody::default()
    })
}

/// A network's endpoint with a static address.
pub(super) fn endpoint(address: Option<Ipv4Addr>) -> EndpointSettings {
    EndpointSettings {
        ipam_config: address.map(|address| EndpointIpamConfig {
            ipv4_address: Some(address.to_string()),
            ..EndpointIpamConfig::default()
        }),
        ..EndpointSettings::default()
    }
}

/// A volume at a path. Without `no_copy` the engine hands a new one the image's content, owner and mode at that path.
pub(super) fn volume_mount(path: &str, volume: &str, no_copy: bool) -> Mount {
    Mount {
        target: Some(path.to_owned()),
        source: Some(volume.to_owned()),
        typ: Some(MountType::VOLUME),
        read_only: Some(false),
        volume_options: Some(MountVolumeOptions {
            no_copy: Some(no_copy),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}

fn restart_policy(restart: bool) -> RestartPolicy {
    RestartPolicy {
        name: Some(if restart {
            RestartPolicyNameEnum::UNLESS_STOPPED
        } else {
            RestartPolicyNameEnum::NO
        }),
        maximum_retry_count: None,
    }
}

fn map(entries: &std::collections::BTreeMap<String, String>) -> HashMap<String, String> {
    entries
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
