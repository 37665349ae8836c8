//! Acting: create, start, connect, remove, load, pull, build.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use async_trait::async_trait;
use bollard::body_full;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::models::{
    ContainerCreateBody, HostConfig, Ipam, IpamConfig, NetworkConnectRequest, NetworkCreateRequest,
    NetworkDisconnectRequest, VolumeCreateRequest,
};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, BuildImageOptionsBuilder, CreateContainerOptionsBuilder,
    CreateImageOptionsBuilder, ImportImageOptions, InspectNetworkOptions,
    RemoveContainerOptionsBuilder, RemoveImageOptions, RemoveVolumeOptions,
    RestartContainerOptionsBuilder, StopContainerOptionsBuilder,
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use selu_compiler::plan::{ContainerSpec, PlannedNetwork, label};

use super::Docker;
use super::call::{of_registry, plain, refused, timeout};
use super::create::{self, NO_NETWORK};
use super::mark::Marks;
use super::streams::Process;
use super::view::{INHIBIT, OUTSIDE};
use crate::engine::{Engine, EngineError, EngineResult, EngineView, Labels, Pipe, Progress};

/// How often a removal that is under way is looked at.
const AGAIN: Duration = Duration::from_millis(100);

/// How often a build is begun that another's removal of an image has ended.
const BUILD_TRIES: u32 = 5;

/// What the classic builder says then. It looks for a cached step among all images on the same one, reads each of them, and
/// fails with the first that was removed meanwhile, whoever's it was (moby, image/cache).
const CACHED_STEP_GONE: &str = "unable to find image \"sha256:";

/// How much output of an exec is taken from the engine at once.
const OUTPUT_CAPACITY: usize = 64 * 1024;

#[async_trait]
impl Engine for Docker {
    fn view(&self) -> &dyn EngineView {
        self
    }

    async fn create_network(&self, network: &PlannedNetwork, labels: &Labels) -> EngineResult<()> {
        let PlannedNetwork {
            name,
            subnet,
            outside,
            bridge,
            capability: _,
            gateway: _,
        } = network;
        let call = format!("create network {name}");
        // Older engines make a second network of the same name.
        let looking = self
            .api
            .inspect_network(plain(&call, name)?, None::<InspectNetworkOptions>);
        match self.call(&call, self.limits.look, looking).await {
            Ok(_) => {
                return Err(EngineError::Conflict {
                    call,
                    message: "a network of that name exists".to_owned(),
                });
            }
            Err(EngineError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        let request = NetworkCreateRequest {
            name: name.clone(),
            driver: Some("bridge".to_owned()),
            internal: Some(!outside),
            attachable: Some(false),
            enable_ipv6: Some(false),
            ipam: Some(Ipam {
                driver: Some("default".to_owned()),
                config: Some(vec![IpamConfig {
                    subnet: Some(subnet.to_string()),
                    gateway: Some(bridge.to_string()),
                    ip_range: Some(network.dynamic_range().to_string()),
                    ..IpamConfig::default()
                }]),
                options: None,
            }),
            options: Some(match outside {
                true => OUTSIDE
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                false => HashMap::from([(INHIBIT.to_owned(), "true".to_owned())]),
            }),
            labels: Some(hash_map(labels)),
            ..NetworkCreateRequest::default()
        };
        self.call(&call, self.limits.act, self.api.create_network(request))
            .await?;
        Ok(())
    }

    async fn remove_network(&self, name: &str) -> EngineResult<()> {
        let call = format!("remove network {name}");
        let removing = self.api.remove_network(plain(&call, name)?);
        gone_is_done(self.call(&call, self.limits.act, removing).await)
    }

    async fn connect(&self, network: &str, container: &str, address: Ipv4Addr) -> EngineResult<()> {
        let call = format!("connect {container} to network {network}");
        let request = NetworkConnectRequest {
            container: container.to_owned(),
            endpoint_config: Some(create::endpoint(Some(address))),
        };
        let connecting = self.api.connect_network(plain(&call, network)?, request);
        let error = match self.call(&call, self.limits.act, connecting).await {
            Ok(()) => return Ok(()),
            Err(error @ EngineError::Refused { .. }) => error,
            Err(error) => return Err(error),
        };
        // Attached already, at this address: done. What the engine says of it differs, so it is looked at.
        let attached = self.container(container).await?.is_some_and(|found| {
            found
                .networks
                .get(network)
                .is_some_and(|at| *at == address.to_string())
        });
        if attached { Ok(()) } else { Err(error) }
    }

    async fn disconnect(&self, network: &str, container: &str) -> EngineResult<()> {
        let call = format!("disconnect {container} from network {network}");
        let request = NetworkDisconnectRequest {
            container: container.to_owned(),
            force: Some(true),
        };
        let disconnecting = self.api.disconnect_network(plain(&call, network)?, request);
        match self.call(&call, self.limits.act, disconnecting).await {
            Err(EngineError::Refused { message, .. })
                if message.contains("is not connected to") =>
            {
                Ok(())
            }
            other => gone_is_done(other),
        }
    }

    async fn create_volume(&self, name: &str, labels: &Labels) -> EngineResult<()> {
        let call = format!("create volume {name}");
        let request = VolumeCreateRequest {
            name: Some(plain(&call, name)?.to_owned()),
            driver: Some("local".to_owned()),
            labels: Some(hash_map(labels)),
            ..VolumeCreateRequest::default()
        };
        // The engine answers with the one that exists, whoever made it.
        let volume = self
            .call(&call, self.limits.act, self.api.create_volume(request))
            .await?;
        let key = label::PROJECT;
        if volume.labels.get(key) == labels.get(key) && volume.options.is_empty() {
            return Ok(());
        }
        Err(EngineError::Conflict {
            call,
            message: "a volume of that name exists that this project did not make".to_owned(),
        })
    }

    async fn remove_volume(&self, name: &str) -> EngineResult<()> {
        let call = format!("remove volume {name}");
        let removing = self
            .api
            .remove_volume(plain(&call, name)?, None::<RemoveVolumeOptions>);
        gone_is_done(self.call(&call, self.limits.act, removing).await)
    }

    async fn seed_volume(
        &self,
        volume: &str,
        image: &str,
        path: &str,
        labels: &Labels,
    ) -> EngineResult<()> {
        let call = format!("hand over volume {volume}");
        let project = labels
            .get(label::PROJECT)
            .ok_or_else(|| refused(&call, "it has no project"))?;
        let helper = format!("selu_{project}_seed_{volume}");
        let mut own = labels.clone();
        own.insert(label::ROLE.to_owned(), "helper".to_owned());
        self.remove_container(&helper).await?;
        let mut own = hash_map(&own);
        let engine = self.engine_id().await?;
        Marks { engine }.put(&helper, &mut own);
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            labels: Some(own),
            host_config: Some(HostConfig {
                network_mode: Some(NO_NETWORK.to_owned()),
                mounts: Some(vec![create::volume_mount(path, volume, false)]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::default()
            .name(&helper)
            .build();
        let created = self
            .call(
                &call,
                self.limits.act,
                self.api.create_container(Some(options), body),
            )
            .await;
        self.remove_container(&helper).await?;
        created.map(|_| ())
    }

    async fn create_container(
        &self,
        name: &str,
        spec: &ContainerSpec,
        network: &str,
        address: Option<Ipv4Addr>,
        open_stdin: bool,
    ) -> EngineResult<()> {
        let call = format!("create container {name}");
        let mut body = create::body(&call, spec, network, address, open_stdin)?;
        let engine = self.engine_id().await?;
        Marks { engine }.put(name, body.labels.get_or_insert_default());
        let options = CreateContainerOptionsBuilder::default()
            .name(plain(&call, name)?)
            .build();
        self.call(
            &call,
            self.limits.act,
            self.api.create_container(Some(options), body),
        )
        .await?;
        Ok(())
    }

    async fn start(&self, name: &str) -> EngineResult<()> {
        let call = format!("start container {name}");
        let starting = self.api.start_container(plain(&call, name)?, None);
        match self.call(&call, self.limits.act, starting).await {
            Err(EngineError::Refused {
                call,
                status,
                message,
            }) if message.contains("/proc/sys/net/ipv6") => Err(EngineError::Refused {
                call,
                status,
                message: format!(
                    "{message} (the engine's kernel runs without IPv6, so that it cannot be turned off per container: \
                     start the kernel with IPv6, `ipv6.disable_ipv6=1` leaves it off)"
                ),
            }),
            other => other,
        }
    }

    async fn stop(&self, name: &str, grace: Duration) -> EngineResult<()> {
        let call = format!("stop container {name}");
        let seconds = i32::try_from(grace.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptionsBuilder::default().t(seconds).build();
        let stopping = self.api.stop_container(plain(&call, name)?, Some(options));
        self.call(&call, self.limits.act + grace, stopping).await
    }

    async fn restart(&self, name: &str) -> EngineResult<()> {
        let call = format!("restart container {name}");
        let options = RestartContainerOptionsBuilder::default().t(0).build();
        let restarting = self
            .api
            .restart_container(plain(&call, name)?, Some(options));
        self.call(&call, self.limits.act, restarting).await
    }

    async fn remove_container(&self, name: &str) -> EngineResult<()> {
        let call = format!("remove container {name}");
        let name = plain(&call, name)?;
        let give_up = tokio::time::Instant::now() + self.limits.act;
        loop {
            let options = RemoveContainerOptionsBuilder::default()
                .force(true)
                .v(true)
                .build();
            let removing = self.api.remove_container(name, Some(options));
            match self.call(&call, self.limits.act, removing).await {
                // Someone else's removal is under way: it is gone when it is gone.
                Err(EngineError::Refused { message, .. })
                    if message.contains("already in progress")
                        && tokio::time::Instant::now() < give_up =>
                {
                    tokio::time::sleep(AGAIN).await;
                }
                other => return gone_is_done(other),
            }
        }
    }

    async fn remove_ended(&self, id: &str) -> EngineResult<bool> {
        let call = format!("remove container {id}");
        let options = RemoveContainerOptionsBuilder::default().v(true).build();
        let removing = self.api.remove_container(plain(&call, id)?, Some(options));
        match self.call(&call, self.limits.act, removing).await {
            Err(EngineError::Refused { status: 409, .. }) => Ok(false),
            other => gone_is_done(other).map(|()| true),
        }
    }

    async fn update_container(&self, name: &str, spec: &ContainerSpec) -> EngineResult<()> {
        let call = format!("update container {name}");
        let body = create::update(&call, spec)?;
        let updating = self.api.update_container(plain(&call, name)?, body);
        self.call(&call, self.limits.act, updating).await
    }

    async fn exec(&self, container: &str, user: &str, command: &[String]) -> EngineResult<Pipe> {
        let call = format!("run {} in {container}", command.join(" "));
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            cmd: Some(command.to_vec()),
            user: Some(user.to_owned()),
            ..CreateExecOptions::default()
        };
        let creating = self.api.create_exec(plain(&call, container)?, options);
        let id = self.call(&call, self.limits.act, creating).await?.id;
        let options = StartExecOptions {
            detach: false,
            tty: false,
            output_capacity: Some(OUTPUT_CAPACITY),
        };
        let starting = self.api.start_exec(&id, Some(options));
        match self.call(&call, self.limits.act, starting).await? {
            StartExecResults::Attached { output, input } => {
                Ok(self.pipe(call, Process::Exec(id), output, input))
            }
            StartExecResults::Detached => Err(EngineError::Protocol {
                call,
                message: "its streams are not attached".to_owned(),
            }),
        }
    }

    async fn attach(&self, container: &str) -> EngineResult<Pipe> {
        let call = format!("attach to container {container}");
        let options = AttachContainerOptionsBuilder::default()
            .stream(true)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .build();
        let attaching = self
            .api
            .attach_container(plain(&call, container)?, Some(options));
        let streams = self.call(&call, self.limits.act, attaching).await?;
        let process = Process::Container(container.to_owned());
        Ok(self.pipe(call, process, streams.output, streams.input))
    }

    async fn load_image(&self, archive: Bytes) -> EngineResult<()> {
        let call = "load an image";
        let stream = self
            .api
            .import_image(ImportImageOptions::default(), body_full(archive), None);
        self.follow(call, stream, |_| {}).await
    }

    async fn remove_image(&self, reference: &str) -> EngineResult<()> {
        let call = format!("remove image {reference}");
        let removing =
            self.api
                .remove_image(plain(&call, reference)?, None::<RemoveImageOptions>, None);
        match self
            .call(&call, self.limits.act, removing)
            .await
            .map(|_| ())
        {
            Err(EngineError::Refused { status: 409, .. }) => Ok(()),
            other => gone_is_done(other),
        }
    }

    async fn pull(&self, reference: &str, progress: &Progress<'_>) -> EngineResult<()> {
        let call = format!("pull {reference}");
        let (repository, digest) = reference
            .split_once('@')
            .ok_or_else(|| refused(&call, "only `repository@digest` is pulled: a tag can move"))?;
        let registry = match repository.split_once('/') {
            Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => first,
            _ => "docker.io",
        };
        let login = self.login(&call, registry).await?;
        let options = CreateImageOptionsBuilder::default()
            .from_image(plain(&call, repository)?)
            .tag(plain(&call, digest)?)
            .build();
        let stream = self
            .api
            .create_image(Some(options), None, login.credentials.clone());
        let pulled = self
            .follow(&call, stream, |info| {
                let status = info.status.as_deref().unwrap_or_default();
                match &info.id {
                    Some(id) => progress(&format!("{id}: {status}")),
                    None => progress(status),
                }
            })
            .await;
        pulled.map_err(|error| of_registry(error, registry, &login.source))
    }

    async fn build(
        &self,
        context: Bytes,
        dockerfile: &str,
        tag: &str,
        labels: &Labels,
        progress: &Progress<'_>,
    ) -> EngineResult<()> {
        let call = format!("build {tag}");
        let options = BuildImageOptionsBuilder::default()
            .dockerfile(dockerfile)
            .t(plain(&call, tag)?)
            .labels(&hash_map(labels))
            .networkmode(NO_NETWORK)
            .rm(true)
            .forcerm(true)
            .build();
        let mut tries = BUILD_TRIES;
        loop {
            tries -= 1;
            let body = Some(body_full(context.clone()));
            let stream = self.api.build_image(options.clone(), None, body);
            let built = self.follow(&call, stream, |info| {
                let line = info.stream.as_deref().or(info.status.as_deref());
                if let Some(line) = line.map(str::trim_end).filter(|line| !line.is_empty()) {
                    progress(line);
                }
            });
            match built.await {
                Err(EngineError::Refused { message, .. })
                    if tries > 0 && message.starts_with(CACHED_STEP_GONE) =>
                {
                    progress("an image was removed while the builder looked for a step: once more");
                }
                other => return other,
            }
        }
    }
}

impl Docker {
    /// Reads a stream of progress to its end; each piece has the limit (F14). An error inside it is the call's.
    async fn follow<T>(
        &self,
        call: &str,
        stream: impl Stream<Item = Result<T, Error>>,
        mut each: impl FnMut(&T),
    ) -> EngineResult<()> {
        let mut stream = std::pin::pin!(stream);
        loop {
            match tokio::time::timeout(self.limits.next, stream.next()).await {
                Ok(Some(Ok(piece))) => each(&piece),
                Ok(Some(Err(error))) => return Err(self.failure(call, self.limits.next, error)),
                Ok(None) => return Ok(()),
                Err(_) => return Err(timeout(call, self.limits.next)),
            }
        }
    }
}

/// Removing what is not there is done (F16).
fn gone_is_done(result: EngineResult<()>) -> EngineResult<()> {
    match result {
        Err(EngineError::NotFound { .. }) => Ok(()),
        other => other,
    }
}

fn hash_map(labels: &Labels) -> HashMap<String, String> {
    labels
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
