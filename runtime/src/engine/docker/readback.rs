//! An inspect answer → [`ObservedContainer`]: what is set, in the plan's own words, and what must not be (W6).
//!
//! The engine merges what we set with what the image sets. The image's part is taken out again with the image's own
//! configuration, so that image and engine defaults never count as ours (product.md 4).

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;

use bollard::models::{
    ContainerConfig, ContainerInspectResponse, ContainerState as EngineState,
    ContainerStateStatusEnum, HostConfig, HostConfigCgroupnsModeEnum, ImageConfig, Mount,
    MountType, RestartPolicyNameEnum,
};
use selu_compiler::observed::{ContainerState, ObservedContainer};
use selu_compiler::plan::ContainerSpec;
use selu_compiler::plan::hash::sha256;

use super::create::{LOG_DRIVER, NO_NETWORK};
use crate::engine::{EngineError, EngineResult};

/// Reads one answer. `image` is the configuration of the image that it runs; empty if that image is gone.
pub(super) fn container(
    call: &str,
    answer: ContainerInspectResponse,
    image: &ImageConfig,
) -> EngineResult<ObservedContainer> {
    let missing = |what: &str| EngineError::Protocol {
        call: call.to_owned(),
        message: format!("it has no {what}"),
    };
    let config = answer.config.ok_or_else(|| missing("Config"))?;
    let host = answer.host_config.ok_or_else(|| missing("HostConfig"))?;
    let mut violations = Violations::default();
    let spec = spec(&config, &host, image, &mut violations);
    forbidden(&config, &host, image, &mut violations);
    for mount in answer.mounts.unwrap_or_default() {
        let path = mount.destination.unwrap_or_default();
        if !spec.volumes.contains_key(&path) && !spec.tmpfs.contains_key(&path) {
            violations.add(format!("something else is mounted at {path}"));
        }
    }
    Ok(ObservedContainer {
        id: answer.id.ok_or_else(|| missing("Id"))?,
        state: state(answer.state.unwrap_or_default()),
        spec,
        image_id: answer.image.ok_or_else(|| missing("Image"))?,
        networks: answer
            .network_settings
            .and_then(|settings| settings.networks)
            .unwrap_or_default()
            .into_iter()
            .filter(|(name, _)| name != NO_NETWORK)
            .map(|(name, endpoint)| {
                let planned = endpoint.ipam_config.and_then(|ipam| ipam.ipv4_address);
                let now = endpoint.ip_address.filter(|address| !address.is_empty());
                (name, now.or(planned).unwrap_or_default())
            })
            .collect(),
        violations: violations.0,
    })
}

#[derive(Default)]
struct Violations(Vec<String>);

impl Violations {
    fn add(&mut self, what: impl Into<String>) {
        self.0.push(what.into());
    }

    fn add_if(&mut self, is: bool, what: impl FnOnce() -> String) {
        if is {
            self.0.push(what());
        }
    }
}

fn spec(
    config: &ContainerConfig,
    host: &HostConfig,
    image: &ImageConfig,
    violations: &mut Violations,
) -> ContainerSpec {
    let shm = host.ipc_mode.as_deref() != Some("none");
    let security = host.security_opt.as_deref().unwrap_or_default();
    let log = host.log_config.clone().unwrap_or_default();
    let log_option = |name: &str| {
        log.config
            .as_ref()
            .and_then(|options| options.get(name))
            .map(String::as_str)
            .unwrap_or_default()
    };
    violations.add_if(log.typ.as_deref() != Some(LOG_DRIVER), || {
        format!("log driver {}", log.typ.as_deref().unwrap_or_default())
    });
    ContainerSpec {
        image: config.image.clone().unwrap_or_default(),
        command: config.cmd.clone().filter(|_| config.cmd != image.cmd),
        user: config.user.clone().unwrap_or_default(),
        env: own_env(
            config.env.as_deref().unwrap_or_default(),
            image.env.as_deref().unwrap_or_default(),
        ),
        read_only_root: host.readonly_rootfs.unwrap_or(false),
        cap_drop: capabilities(host.cap_drop.as_deref()),
        cap_add: capabilities(host.cap_add.as_deref()),
        no_new_privileges: security.iter().any(|option| is_no_new_privileges(option)),
        seccomp: security
            .iter()
            .find_map(|option| {
                option
                    .strip_prefix("seccomp=")
                    .or(option.strip_prefix("seccomp:"))
            })
            .map_or_else(|| "default".to_owned(), seccomp_name),
        memory_bytes: number(host.memory),
        memory_swap_bytes: number(host.memory_swap),
        nano_cpus: number(host.nano_cpus),
        pids: number(host.pids_limit),
        nofile: nofile(host, violations),
        shm_bytes: shm.then(|| number(host.shm_size)),
        tmpfs: sorted(host.tmpfs.as_ref()),
        volumes: volumes(host.mounts.as_deref().unwrap_or_default(), violations),
        sysctls: sorted(host.sysctls.as_ref()),
        dns: dns(host.dns.as_deref().unwrap_or_default(), violations),
        log_bytes: size(log_option("max-size")),
        log_files: log_option("max-file").parse().unwrap_or(1),
        restart: restart(host, violations),
        labels: sorted(config.labels.as_ref()),
    }
}

/// What W6 forbids and the spec has no word for.
fn forbidden(
    config: &ContainerConfig,
    host: &HostConfig,
    image: &ImageConfig,
    violations: &mut Violations,
) {
    let yes = |flag: Option<bool>| flag == Some(true);
    let has = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let text = |value: &Option<String>| value.clone().unwrap_or_default();

    violations.add_if(yes(host.privileged), || "privileged".to_owned());
    for bind in host.binds.iter().flatten() {
        violations.add(format!("host mount or bind {bind}"));
    }
    for device in host.devices.iter().flatten() {
        violations.add(format!("device {}", text(&device.path_on_host)));
    }
    violations.add_if(
        host.device_requests
            .as_ref()
            .is_some_and(|list| !list.is_empty()),
        || "a device request".to_owned(),
    );
    for rule in host.device_cgroup_rules.iter().flatten() {
        violations.add(format!("device rule {rule}"));
    }
    for port in host.port_bindings.iter().flat_map(HashMap::keys) {
        violations.add(format!("published port {port}"));
    }
    violations.add_if(yes(host.publish_all_ports), || {
        "publishes all ports".to_owned()
    });
    violations.add_if(has(&host.volumes_from), || {
        "volumes of another container".to_owned()
    });
    violations.add_if(has(&host.extra_hosts), || "extra hosts".to_owned());
    violations.add_if(has(&host.links), || "links".to_owned());
    violations.add_if(has(&host.group_add), || "additional groups".to_owned());
    violations.add_if(yes(host.oom_kill_disable), || {
        "is never killed for memory".to_owned()
    });
    violations.add_if(yes(host.auto_remove), || "removes itself".to_owned());

    let network = text(&host.network_mode);
    violations.add_if(
        network == "host" || network.starts_with("container:"),
        || format!("network namespace {network}"),
    );
    let ipc = text(&host.ipc_mode);
    violations.add_if(!matches!(ipc.as_str(), "none" | "private"), || {
        format!("IPC namespace {ipc}")
    });
    for (what, mode) in [
        ("process", text(&host.pid_mode)),
        ("host name", text(&host.uts_mode)),
        ("user", text(&host.userns_mode)),
    ] {
        violations.add_if(!matches!(mode.as_str(), "" | "private"), || {
            format!("{what} namespace {mode}")
        });
    }
    violations.add_if(
        host.cgroupns_mode == Some(HostConfigCgroupnsModeEnum::HOST),
        || "control group namespace host".to_owned(),
    );
    for option in host.security_opt.iter().flatten() {
        let known = is_no_new_privileges(option) || option.starts_with("seccomp");
        violations.add_if(!known, || format!("security option {option}"));
    }
    let unmasked = |list: &Option<Vec<String>>| list.as_ref().is_some_and(Vec::is_empty);
    violations.add_if(
        unmasked(&host.masked_paths) || unmasked(&host.readonly_paths),
        || "kernel paths unmasked".to_owned(),
    );
    let probe = config
        .healthcheck
        .as_ref()
        .and_then(|check| check.test.as_deref());
    violations.add_if(probe != Some(&["NONE".to_owned()]), || {
        "the image's HEALTHCHECK runs".to_owned()
    });
    violations.add_if(config.tty == Some(true), || "a terminal".to_owned());
    violations.add_if(
        filled(config.entrypoint.as_ref()) != filled(image.entrypoint.as_ref()),
        || format!("entry point {:?}", filled(config.entrypoint.as_ref())),
    );
}

fn state(state: EngineState) -> ContainerState {
    match state.status {
        Some(ContainerStateStatusEnum::CREATED) => ContainerState::Created,
        Some(ContainerStateStatusEnum::RUNNING | ContainerStateStatusEnum::STOPPING) => {
            ContainerState::Running
        }
        Some(ContainerStateStatusEnum::PAUSED) => ContainerState::Paused,
        Some(ContainerStateStatusEnum::RESTARTING) => ContainerState::Restarting,
        Some(ContainerStateStatusEnum::EXITED) => ContainerState::Exited {
            code: state.exit_code.unwrap_or(-1),
            oom_killed: state.oom_killed.unwrap_or(false),
        },
        Some(
            ContainerStateStatusEnum::DEAD
            | ContainerStateStatusEnum::REMOVING
            | ContainerStateStatusEnum::EMPTY,
        )
        | None => ContainerState::Dead,
    }
}

/// The engine puts our variables first and then those of the image that we did not set. So ours are the shortest
/// beginning after which exactly the image's rest follows; they are found even where both say the same.
fn own_env(all: &[String], image: &[String]) -> BTreeMap<String, String> {
    let name = |entry: &String| entry.split('=').next().map(str::to_owned);
    let ours = (0..=all.len())
        .find(|ours| {
            let (ours, rest) = all.split_at(*ours);
            let set: Vec<_> = ours.iter().map(name).collect();
            rest.iter()
                .eq(image.iter().filter(|entry| !set.contains(&name(entry))))
        })
        .unwrap_or(all.len());
    all[..ours]
        .iter()
        .map(|entry| {
            let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

fn capabilities(list: Option<&[String]>) -> Vec<String> {
    list.unwrap_or_default()
        .iter()
        .map(|name| name.strip_prefix("CAP_").unwrap_or(name).to_owned())
        .collect()
}

fn is_no_new_privileges(option: &str) -> bool {
    matches!(
        option,
        "no-new-privileges" | "no-new-privileges:true" | "no-new-privileges=true"
    )
}

fn seccomp_name(profile: &str) -> String {
    match profile {
        "unconfined" => profile.to_owned(),
        json => sha256(json.as_bytes()),
    }
}

/// The bound on open files. Other bounds are the engine's own defaults (`default-ulimits`), which it adds to every
/// container that it makes: not ours to judge (G05).
fn nofile(host: &HostConfig, violations: &mut Violations) -> u64 {
    let mut bound = 0;
    let limits = host.ulimits.iter().flatten();
    for limit in limits.filter(|limit| limit.name.as_deref() == Some("nofile")) {
        let (soft, hard) = (number(limit.soft), number(limit.hard));
        if soft == hard {
            bound = hard;
        } else {
            violations.add(format!("ulimit nofile {soft}:{hard}"));
        }
    }
    bound
}

fn volumes(mounts: &[Mount], violations: &mut Violations) -> BTreeMap<String, String> {
    let mut volumes = BTreeMap::new();
    for mount in mounts {
        let path = mount.target.clone().unwrap_or_default();
        let source = mount.source.clone().unwrap_or_default();
        let options = mount.volume_options.clone().unwrap_or_default();
        let plain = mount.typ == Some(MountType::VOLUME)
            && mount.read_only != Some(true)
            && options.no_copy == Some(true)
            && options.driver_config.is_none()
            && options.subpath.is_none();
        if plain {
            volumes.insert(path, source);
        } else {
            let kind = mount
                .typ
                .map_or_else(|| "mount".to_owned(), |kind| kind.to_string());
            violations.add(format!("{kind} {source} at {path}"));
        }
    }
    volumes
}

fn dns(servers: &[String], violations: &mut Violations) -> Vec<Ipv4Addr> {
    let mut addresses = Vec::new();
    for server in servers {
        match server.parse() {
            Ok(address) => addresses.push(address),
            Err(_) => violations.add(format!("resolver {server}")),
        }
    }
    addresses
}

fn restart(host: &HostConfig, violations: &mut Violations) -> bool {
    match host.restart_policy.as_ref().and_then(|policy| policy.name) {
        None | Some(RestartPolicyNameEnum::EMPTY | RestartPolicyNameEnum::NO) => false,
        Some(RestartPolicyNameEnum::UNLESS_STOPPED) => true,
        Some(other) => {
            violations.add(format!("restart policy {other}"));
            true
        }
    }
}

/// The engine writes -1 and 0 for "no limit"; a spec never has 0, so either differs from it.
fn number(value: Option<i64>) -> u64 {
    value
        .and_then(|value| u64::try_from(value).ok())
        .unwrap_or(0)
}

/// Digits are what we send; anything else is someone else's and differs from it.
fn size(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

fn filled(list: Option<&Vec<String>>) -> &[String] {
    list.map(Vec::as_slice).unwrap_or_default()
}

fn sorted(map: Option<&HashMap<String, String>>) -> BTreeMap<String, String> {
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(all: &[&str], image: &[&str]) -> String {
        let list = |entries: &[&str]| entries.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>();
        own_env(&list(all), &list(image))
            .iter()
            .map(|(name, value)| format!("{name}={value} "))
            .collect()
    }

    #[test]
    fn the_images_variables_are_not_ours_but_those_that_we_repeat_are() {
        let image = ["PATH=/bin", "LANG=C"];
        assert_eq!(env(&["PATH=/bin", "LANG=C"], &image), "");
        assert_eq!(env(&["A=1", "PATH=/bin", "LANG=C"], &image), "A=1 ");
        assert_eq!(
            env(&["A=1", "PATH=/ours", "LANG=C"], &image),
            "A=1 PATH=/ours "
        );
        let image = ["PATH=/bin", "A=1"];
        assert_eq!(env(&["A=1", "B=2", "PATH=/bin"], &image), "A=1 B=2 ");
    }

    #[test]
    fn a_variable_that_someone_added_is_seen() {
        assert_eq!(
            env(&["A=1", "LD_PRELOAD=/x", "PATH=/bin"], &["PATH=/bin"]),
            "A=1 LD_PRELOAD=/x "
        );
    }

    #[test]
    fn g05_options_that_the_engine_adds_by_default_are_not_ours() {
        let read = |log: &[(&str, &str)]| {
            let options = log
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let host = HostConfig {
                log_config: Some(bollard::models::HostConfigLogConfig {
                    typ: Some(LOG_DRIVER.to_owned()),
                    config: Some(options.collect()),
                }),
                // Filled in by every engine, and differently.
                runtime: Some("runc".to_owned()),
                cpu_shares: Some(0),
                oom_score_adj: Some(0),
                console_size: Some(vec![0, 0]),
                ..HostConfig::default()
            };
            let mut violations = Violations::default();
            let spec = spec(
                &ContainerConfig::default(),
                &host,
                &ImageConfig::default(),
                &mut violations,
            );
            (spec, violations.0)
        };
        let ours = [("max-size", "1048576"), ("max-file", "2")];
        let with_defaults = [ours.as_slice(), &[("compress", "true"), ("tag", "x")]].concat();
        assert_eq!(read(&ours), read(&with_defaults));
        assert_eq!(read(&ours).0.log_bytes, 1 << 20);
        assert_eq!(read(&ours).1, Vec::<String>::new());
    }

    #[test]
    fn what_the_spec_has_no_word_for_is_a_violation_in_words() {
        let mut violations = Violations::default();
        let host = HostConfig {
            privileged: Some(true),
            binds: Some(vec!["/var/run/docker.sock:/s".to_owned()]),
            port_bindings: Some(HashMap::from([("80/tcp".to_owned(), None)])),
            pid_mode: Some("host".to_owned()),
            network_mode: Some("host".to_owned()),
            ipc_mode: Some("shareable".to_owned()),
            security_opt: Some(vec!["apparmor=unconfined".to_owned()]),
            masked_paths: Some(Vec::new()),
            ..HostConfig::default()
        };
        forbidden(
            &ContainerConfig::default(),
            &host,
            &ImageConfig::default(),
            &mut violations,
        );
        assert_eq!(
            violations.0,
            [
                "privileged",
                "host mount or bind /var/run/docker.sock:/s",
                "published port 80/tcp",
                "network namespace host",
                "IPC namespace shareable",
                "process namespace host",
                "security option apparmor=unconfined",
                "kernel paths unmasked",
                "the image's HEALTHCHECK runs",
            ]
        );
    }
}
