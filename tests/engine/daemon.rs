//! The engine seen from outside, without our own adapter: what a test says of the engine must not rest on the code that
//! it tests.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters as query;
use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::project::run;

/// A connection of the test's own, made inside the runtime that uses it.
pub(crate) fn connect() -> Docker {
    Docker::connect_with_defaults()
        .expect("a Docker engine; scripts/ensure-engine makes sure of one")
}

/// Runs a future to its end.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// `docker inspect` of a container.
#[track_caller]
pub(crate) fn inspect(name: &str) -> Value {
    let answer = wait(async {
        connect()
            .inspect_container(name, None::<query::InspectContainerOptions>)
            .await
    });
    serde_json::to_value(answer.unwrap()).unwrap()
}

/// `docker stop`.
#[track_caller]
pub(crate) fn stop(name: &str) {
    let options = query::StopContainerOptions {
        t: Some(1),
        ..Default::default()
    };
    wait(async { connect().stop_container(name, Some(options)).await }).unwrap();
}

/// `docker kill`.
#[track_caller]
pub(crate) fn kill(name: &str) {
    wait(async {
        connect()
            .kill_container(name, None::<query::KillContainerOptions>)
            .await
    })
    .unwrap();
}

/// Waits until a container's log holds a text so many times.
#[track_caller]
pub(crate) fn wait_for_log(name: &str, text: &str, times: usize) {
    for _ in 0..600 {
        let log = wait(async {
            let options = query::LogsOptions {
                stdout: true,
                stderr: true,
                ..Default::default()
            };
            let lines = connect()
                .logs(name, Some(options))
                .map(|line| line.unwrap().to_string());
            lines.collect::<Vec<_>>().await.concat()
        });
        if log.matches(text).count() >= times {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{name} never logs {text:?} {times} times");
}

/// `docker network inspect`.
#[track_caller]
pub(crate) fn inspect_network(name: &str) -> Value {
    let answer = wait(async {
        connect()
            .inspect_network(name, None::<query::InspectNetworkOptions>)
            .await
    });
    serde_json::to_value(answer.unwrap()).unwrap()
}

/// Every container, network, volume and tagged image on the engine that is of one of `projects` or of no test at all:
/// what `destroy` must leave as it was. Other tests come and go at the same time.
pub(crate) fn everything(projects: &[&str]) -> Vec<String> {
    wait(async {
        let docker = connect();
        let mut found: Vec<(String, HashMap<String, String>)> = Vec::new();
        let all = query::ListContainersOptions {
            all: true,
            ..Default::default()
        };
        for container in docker.list_containers(Some(all)).await.unwrap() {
            let labels = container.labels.unwrap_or_default();
            found.extend(
                container
                    .names
                    .unwrap_or_default()
                    .into_iter()
                    .map(|name| (format!("container {name}"), labels.clone())),
            );
        }
        for network in docker
            .list_networks(None::<query::ListNetworksOptions>)
            .await
            .unwrap()
        {
            found.push((
                format!("network {}", network.name.unwrap_or_default()),
                network.labels.unwrap_or_default(),
            ));
        }
        for volume in docker
            .list_volumes(None::<query::ListVolumesOptions>)
            .await
            .unwrap()
            .volumes
            .unwrap_or_default()
        {
            found.push((format!("volume {}", volume.name), volume.labels));
        }
        for image in docker
            .list_images(None::<query::ListImagesOptions>)
            .await
            .unwrap()
        {
            for tag in image.repo_tags.iter().filter(|tag| !tag.contains("<none>")) {
                found.push((format!("image {tag}"), image.labels.clone()));
            }
        }
        let project = |labels: &HashMap<String, String>| {
            labels.get("dev.selu.project").cloned().unwrap_or_default()
        };
        let of_another_test = |name: &str, owner: &str| {
            let ours = projects
                .iter()
                .any(|project| owner == *project || name.contains(&format!("/{project}-")));
            let of_a_test = owner.starts_with("t-")
                || owner.starts_with("engine-")
                || name.contains("selu-test");
            of_a_test && !ours
        };
        let mut names: Vec<String> = found
            .into_iter()
            .filter(|(name, labels)| !of_another_test(name, &project(labels)))
            .map(|(name, _)| name)
            .collect();
        names.sort();
        names
    })
}

/// Removes every image whose name begins with `prefix`.
pub(crate) fn remove_images(prefix: &str) {
    wait(async {
        let docker = connect();
        for image in docker
            .list_images(None::<query::ListImagesOptions>)
            .await
            .unwrap()
        {
            for tag in image.repo_tags.iter().filter(|tag| tag.starts_with(prefix)) {
                // The builder's steps below it stay: another test may be building on the same ones in this moment.
                let forced = query::RemoveImageOptions {
                    force: true,
                    noprune: true,
                    ..Default::default()
                };
                let _ = docker.remove_image(tag, Some(forced), None).await;
            }
        }
    });
}

/// The engine's events while something is done, as `type action name`, for objects whose name holds `part`. They are
/// heard as they come: an engine remembers the last 256 only, of whoever makes them.
pub(crate) fn events_during(part: &str, action: impl FnOnce()) -> Vec<String> {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let last = format!("selu-test-last-event-{}-{number}", std::process::id());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let since = format!("{}.{:09}", now.as_secs(), now.subsec_nanos());
    let (part, until) = (part.to_owned(), last.clone());
    let listener = std::thread::spawn(move || {
        wait(async {
            let options = query::EventsOptions {
                since: Some(since),
                ..Default::default()
            };
            let docker = connect();
            let mut stream = docker.events(Some(options));
            let mut seen = Vec::new();
            while let Some(event) = stream.next().await {
                let event = serde_json::to_value(event.unwrap()).unwrap();
                let line = format!(
                    "{} {} {}",
                    event["Type"].as_str().unwrap_or_default(),
                    event["Action"].as_str().unwrap_or_default(),
                    event["Actor"]
                );
                if line.contains(&until) {
                    return seen;
                }
                if line.contains(&part) {
                    seen.push(line);
                }
            }
            panic!("the engine ended its events: {seen:#?}")
        })
    });
    action();
    // What is heard before this is all that there was.
    let request = bollard::models::VolumeCreateRequest {
        name: Some(last.clone()),
        ..Default::default()
    };
    wait(async {
        let docker = connect();
        docker.create_volume(request).await.unwrap();
        let none = None::<query::RemoveVolumeOptions>;
        docker.remove_volume(&last, none).await.unwrap();
    });
    listener.join().unwrap()
}

/// Runs one of the probe's tools in a container without any of our restrictions and returns what it says: the same
/// probe, from an unrestricted place.
#[track_caller]
pub(crate) fn unrestricted(image: &str, network: &str, tool: &str, arguments: &Value) -> Value {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("selu-test-free-{}-{number}", std::process::id());
    wait(async {
        let docker = connect();
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            entrypoint: Some(vec![
                "/probe".to_owned(),
                "call".to_owned(),
                tool.to_owned(),
                arguments.to_string(),
            ]),
            host_config: Some(HostConfig {
                network_mode: Some(network.to_owned()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let named = query::CreateContainerOptions {
            name: Some(name.clone()),
            ..Default::default()
        };
        docker.create_container(Some(named), body).await.unwrap();
        docker
            .start_container(&name, None::<query::StartContainerOptions>)
            .await
            .unwrap();
        let ended = docker
            .wait_container(&name, None::<query::WaitContainerOptions>)
            .next()
            .await;
        let options = query::LogsOptions {
            stdout: true,
            stderr: true,
            ..Default::default()
        };
        let mut text = String::new();
        let mut logs = docker.logs(&name, Some(options));
        while let Some(line) = logs.next().await {
            text.push_str(&line.unwrap().to_string());
        }
        let forced = query::RemoveContainerOptions {
            force: true,
            ..Default::default()
        };
        docker.remove_container(&name, Some(forced)).await.unwrap();
        assert!(
            matches!(ended, Some(Ok(_))),
            "the probe itself failed: {ended:?} {text}"
        );
        serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error} in {text:?}"))
    })
}

/// An ordinary network with IPv6, for what a container of ours must not reach; gone with its owner.
pub(crate) struct OpenNetwork {
    pub(crate) name: String,
}

impl OpenNetwork {
    /// `image` is the probe's. One container stays in the network: without any the bridge has no carrier, and its IPv6
    /// address is tentative again, answering nothing, each time that one comes.
    pub(crate) fn new(image: &str) -> Self {
        let name = format!("selu-test-open-{}", std::process::id());
        wait(async {
            let subnet = Some(format!("fd00:5e1:{:x}::/64", std::process::id() & 0xffff));
            let config = bollard::models::IpamConfig {
                subnet,
                ..Default::default()
            };
            let ipam = bollard::models::Ipam {
                config: Some(vec![config]),
                ..Default::default()
            };
            let request = bollard::models::NetworkCreateRequest {
                name: name.clone(),
                enable_ipv6: Some(true),
                ipam: Some(ipam),
                ..Default::default()
            };
            let docker = connect();
            // The engine chooses an IPv4 range, and another network may be made in it at the same moment.
            let mut tries = 0;
            while let Err(error) = docker.create_network(request.clone()).await {
                tries += 1;
                let overlaps = error.to_string().contains("Pool overlaps");
                assert!(overlaps && tries < 20, "{error}");
            }
            let body = ContainerCreateBody {
                image: Some(image.to_owned()),
                entrypoint: Some(vec!["/probe".to_owned(), "silent".to_owned()]),
                host_config: Some(HostConfig {
                    network_mode: Some(name.clone()),
                    ..Default::default()
                }),
                ..Default::default()
            };
            let named = query::CreateContainerOptions {
                name: Some(name.clone()),
                ..Default::default()
            };
            docker.create_container(Some(named), body).await.unwrap();
            docker
                .start_container(&name, None::<query::StartContainerOptions>)
                .await
                .unwrap();
        });
        Self { name }
    }
}

impl Drop for OpenNetwork {
    fn drop(&mut self) {
        wait(async {
            let forced = query::RemoveContainerOptions {
                force: true,
                ..Default::default()
            };
            let _ = connect().remove_container(&self.name, Some(forced)).await;
            let _ = connect().remove_network(&self.name).await;
        });
    }
}

/// Stops the engine as a reboot would and starts it again: by the command in `SELU_ENGINE_RESTART`, without which only the
/// engine of this machine is restarted.
pub(crate) fn restart() {
    if let Ok(command) = std::env::var("SELU_ENGINE_RESTART") {
        run(Command::new("sh").args(["-c", &command])).expect(0);
        return;
    }
    assert!(
        std::env::var_os("DOCKER_HOST").is_none(),
        "DOCKER_HOST names an engine: set SELU_ENGINE_RESTART to the command that restarts that one"
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/ensure-engine");
    if Path::new("/run/systemd/system").exists() {
        run(Command::new("systemctl").args(["restart", "docker"])).expect(0);
    } else {
        let pid = std::fs::read_to_string("/var/run/docker.pid").unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while rustix::process::test_kill_process(pid).is_ok() {
            assert!(Instant::now() < deadline, "the engine does not stop");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    run(&mut Command::new(script)).expect(0);
}
