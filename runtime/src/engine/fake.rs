//! An engine in memory, for tests of what is built on the trait: it behaves as the adapter does where that matters
//! (names, states, addresses, the gateway's roles), notes every call, and fails where it is told to.

mod pipes;
mod world;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use selu_compiler::model::ImageReference;
use selu_compiler::observed::{ImageFacts, Observed, ObservedContainer};
use selu_compiler::plan::hash::sha256;
use selu_compiler::plan::{ContainerSpec, PlannedNetwork, label};
use tokio::io::DuplexStream;

use super::{
    Engine, EngineError, EngineResult, EngineView, Incident, Labels, LogRange, LogSource,
    LogStream, Pipe, Progress, Usage,
};

pub use pipes::HOST_ADDRESS;
pub use world::{Container, Image, Volume, World};

/// Serves one pipe to a container, as the process in it would.
pub type Serve = Arc<dyn Fn(DuplexStream) + Send + Sync>;

/// Where in a call a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The call never arrives: nothing is done.
    Before,
    /// It is done, and the answer never comes.
    After,
    /// It is done, and the answer, or the stream that it opens, is broken.
    InAnswer,
}

struct Fault {
    call: String,
    when: When,
}

/// The engine; clones are the same one.
#[derive(Clone, Default)]
pub struct Fake {
    world: Arc<Mutex<World>>,
    faults: Arc<Mutex<Vec<Fault>>>,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// An empty engine of two cores that runs what this machine runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at or changes what is there, as somebody else would.
    pub fn edit<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut lock(&self.world))
    }

    /// The next call whose text begins with `call` (such as `start container selu_x`) fails.
    pub fn fail(&self, call: &str, when: When) {
        lock(&self.faults).push(Fault {
            call: call.to_owned(),
            when,
        });
    }

    /// The faults that have not struck yet, by the call that they wait for.
    pub fn waiting_faults(&self) -> Vec<String> {
        let faults = lock(&self.faults);
        faults.iter().map(|fault| fault.call.clone()).collect()
    }

    /// The calls that change something, in order, since the last time this was asked.
    pub fn writes(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.calls))
    }

    /// Starts a call: notes it, and fails it if it is to fail before anything is done.
    fn enter(&self, call: String) -> EngineResult<Call> {
        let mut faults = lock(&self.faults);
        let fault = faults
            .iter()
            .position(|fault| call.starts_with(&fault.call))
            .map(|index| faults.remove(index).when);
        drop(faults);
        let call = Call { text: call, fault };
        match fault {
            Some(When::Before) => Err(call.silent()),
            _ => Ok(call),
        }
    }

    fn enter_write(&self, call: String) -> EngineResult<Call> {
        lock(&self.calls).push(call.clone());
        self.enter(call)
    }
}

/// One call under way.
struct Call {
    text: String,
    fault: Option<When>,
}

impl Call {
    fn silent(&self) -> EngineError {
        EngineError::Timeout {
            call: self.text.clone(),
            limit: Duration::from_secs(60),
        }
    }

    fn leave<T>(self, result: EngineResult<T>) -> EngineResult<T> {
        match self.fault {
            Some(When::After) => Err(self.silent()),
            Some(When::InAnswer) => Err(self.garbled()),
            Some(When::Before) | None => result,
        }
    }

    fn garbled(&self) -> EngineError {
        EngineError::Protocol {
            call: self.text.clone(),
            message: "the answer breaks off".to_owned(),
        }
    }

    fn refuse(&self, message: impl Into<String>) -> EngineError {
        EngineError::Refused {
            call: self.text.clone(),
            status: 400,
            message: message.into(),
        }
    }

    fn missing(&self, message: impl Into<String>) -> EngineError {
        EngineError::NotFound {
            call: self.text.clone(),
            message: message.into(),
        }
    }

    fn conflict(&self, message: impl Into<String>) -> EngineError {
        EngineError::Conflict {
            call: self.text.clone(),
            message: message.into(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl EngineView for Fake {
    async fn observe(&self, project: &str, wanted_names: &[String]) -> EngineResult<Observed> {
        let call = self.enter(format!("observe {project}"))?;
        let observed = lock(&self.world).observe(project, wanted_names);
        call.leave(Ok(observed))
    }

    async fn image(&self, reference: &str) -> EngineResult<Option<ImageFacts>> {
        let call = self.enter(format!("inspect image {reference}"))?;
        let facts = lock(&self.world)
            .images
            .get(reference)
            .map(|image| image.facts.clone());
        call.leave(Ok(facts))
    }

    async fn registry_digest(&self, reference: &ImageReference) -> EngineResult<Option<String>> {
        let name = reference.in_full();
        let call = self.enter(format!("ask for {name}"))?;
        let digest = lock(&self.world).registry_digest(reference);
        call.leave(Ok(digest))
    }

    async fn registry_platforms(
        &self,
        reference: &ImageReference,
        digest: &str,
    ) -> EngineResult<Vec<String>> {
        let call = self.enter(format!("ask for the platforms of {}", reference.at(digest)))?;
        call.leave(Ok(Vec::new()))
    }

    async fn container(&self, name: &str) -> EngineResult<Option<ObservedContainer>> {
        let call = self.enter(format!("inspect container {name}"))?;
        let found = lock(&self.world)
            .find(name)
            .map(|container| container.observed.clone());
        call.leave(Ok(found))
    }

    async fn logs(&self, name: &str, _lines: u32) -> EngineResult<String> {
        let call = self.enter(format!("read the log of {name}"))?;
        let log = lock(&self.world)
            .find(name)
            .map(|container| container.log.clone())
            .ok_or_else(|| call.missing(format!("No such container: {name}")));
        call.leave(log)
    }

    async fn usage(&self, name: &str) -> EngineResult<Option<Usage>> {
        let call = self.enter(format!("read the statistics of {name}"))?;
        let usage = lock(&self.world)
            .find(name)
            .filter(|container| container.runs())
            .map(|container| container.usage)
            // As an engine that has no accounting answers.
            .filter(|usage| usage.pids > 0);
        call.leave(Ok(usage))
    }

    async fn incidents(&self, name: &str, _since: Instant) -> EngineResult<Vec<Incident>> {
        let call = self.enter(format!("read the events of {name}"))?;
        let incidents = lock(&self.world)
            .find(name)
            .map(|container| container.incidents.clone());
        call.leave(Ok(incidents.unwrap_or_default()))
    }

    async fn log_stream(&self, name: &str, _range: LogRange) -> EngineResult<LogStream> {
        let log = self.logs(name, u32::MAX).await?;
        let piece = Ok((LogSource::Out, Bytes::from(log)));
        Ok(Box::pin(futures_util::stream::iter([piece])))
    }
}

#[async_trait]
impl Engine for Fake {
    fn view(&self) -> &dyn EngineView {
        self
    }

    async fn create_network(&self, network: &PlannedNetwork, labels: &Labels) -> EngineResult<()> {
        let call = self.enter_write(format!("create network {}", network.name))?;
        let result = lock(&self.world).create_network(&call, network, labels);
        call.leave(result)
    }

    async fn remove_network(&self, name: &str) -> EngineResult<()> {
        let call = self.enter_write(format!("remove network {name}"))?;
        let result = lock(&self.world).remove_network(&call, name);
        call.leave(result)
    }

    async fn connect(&self, network: &str, container: &str, address: Ipv4Addr) -> EngineResult<()> {
        let call = self.enter_write(format!("connect {container} to network {network}"))?;
        let result = lock(&self.world).connect(&call, network, container, address);
        call.leave(result)
    }

    async fn disconnect(&self, network: &str, container: &str) -> EngineResult<()> {
        let call = self.enter_write(format!("disconnect {container} from network {network}"))?;
        if let Some(found) = lock(&self.world).find_mut(container) {
            found.observed.networks.remove(network);
        }
        call.leave(Ok(()))
    }

    async fn create_volume(&self, name: &str, labels: &Labels) -> EngineResult<()> {
        let call = self.enter_write(format!("create volume {name}"))?;
        let mut world = lock(&self.world);
        let volume = world
            .volumes
            .entry(name.to_owned())
            .or_insert_with(|| Volume::new(labels));
        let key = label::PROJECT;
        let result = if volume.observed.labels.get(key) == labels.get(key) {
            Ok(())
        } else {
            Err(call.conflict("a volume of that name exists that this project did not make"))
        };
        drop(world);
        call.leave(result)
    }

    async fn remove_volume(&self, name: &str) -> EngineResult<()> {
        let call = self.enter_write(format!("remove volume {name}"))?;
        let mut world = lock(&self.world);
        let used = world.containers.values().any(|container| {
            container
                .observed
                .spec
                .volumes
                .values()
                .any(|own| own == name)
        });
        let result = if used {
            Err(call.refuse("volume is in use"))
        } else {
            world.volumes.remove(name);
            Ok(())
        };
        drop(world);
        call.leave(result)
    }

    async fn seed_volume(
        &self,
        volume: &str,
        image: &str,
        path: &str,
        _labels: &Labels,
    ) -> EngineResult<()> {
        let call = self.enter_write(format!("hand over volume {volume}"))?;
        let mut world = lock(&self.world);
        let known = world.images.contains_key(image);
        let result = match world.volumes.get_mut(volume) {
            Some(found) if known => {
                found.seeded.get_or_insert_with(|| path.to_owned());
                Ok(())
            }
            Some(_) => Err(call.missing(format!("No such image: {image}"))),
            None => Err(call.missing(format!("No such volume: {volume}"))),
        };
        drop(world);
        call.leave(result)
    }

    async fn create_container(
        &self,
        name: &str,
        spec: &ContainerSpec,
        network: &str,
        address: Option<Ipv4Addr>,
        open_stdin: bool,
    ) -> EngineResult<()> {
        let call = self.enter_write(format!("create container {name}"))?;
        let result =
            lock(&self.world).create_container(&call, name, spec, network, address, open_stdin);
        call.leave(result)
    }

    async fn start(&self, name: &str) -> EngineResult<()> {
        let call = self.enter_write(format!("start container {name}"))?;
        let result = lock(&self.world).start(&call, name);
        call.leave(result)
    }

    async fn stop(&self, name: &str, _grace: Duration) -> EngineResult<()> {
        let call = self.enter_write(format!("stop container {name}"))?;
        let result = match lock(&self.world).find_mut(name) {
            Some(container) => {
                container.end(0);
                Ok(())
            }
            None => Err(call.missing(format!("No such container: {name}"))),
        };
        call.leave(result)
    }

    async fn restart(&self, name: &str) -> EngineResult<()> {
        let call = self.enter_write(format!("restart container {name}"))?;
        let mut world = lock(&self.world);
        if let Some(container) = world.find_mut(name) {
            container.end(137);
        }
        let result = world.start(&call, name);
        drop(world);
        call.leave(result)
    }

    async fn remove_container(&self, name: &str) -> EngineResult<()> {
        let call = self.enter_write(format!("remove container {name}"))?;
        lock(&self.world).remove(name);
        call.leave(Ok(()))
    }

    async fn remove_ended(&self, id: &str) -> EngineResult<bool> {
        let call = self.enter_write(format!("remove container {id}"))?;
        let mut world = lock(&self.world);
        let runs = world.find(id).is_some_and(Container::runs);
        if !runs {
            world.remove(id);
        }
        drop(world);
        call.leave(Ok(!runs))
    }

    async fn update_container(&self, name: &str, spec: &ContainerSpec) -> EngineResult<()> {
        let call = self.enter_write(format!("update container {name}"))?;
        let result = match lock(&self.world).find_mut(name) {
            Some(container) => {
                let own = &mut container.observed.spec;
                own.memory_bytes = spec.memory_bytes;
                own.memory_swap_bytes = spec.memory_swap_bytes;
                own.nano_cpus = spec.nano_cpus;
                own.pids = spec.pids;
                own.restart = spec.restart;
                Ok(())
            }
            None => Err(call.missing(format!("No such container: {name}"))),
        };
        call.leave(result)
    }

    async fn exec(&self, container: &str, _user: &str, command: &[String]) -> EngineResult<Pipe> {
        let call = self.enter(format!("run {} in {container}", command.join(" ")))?;
        let runs = lock(&self.world).find(container).map(Container::runs);
        match runs {
            Some(true) => {}
            Some(false) => {
                return Err(call.refuse(format!("Container {container} is not running")));
            }
            None => return Err(call.missing(format!("No such container: {container}"))),
        }
        if call.fault == Some(When::InAnswer) {
            return Ok(pipes::broken(&call));
        }
        let pipe = self.role(&call, container, command);
        call.leave(pipe)
    }

    async fn attach(&self, container: &str) -> EngineResult<Pipe> {
        let call = self.enter(format!("attach to container {container}"))?;
        if call.fault == Some(When::InAnswer) {
            return Ok(pipes::broken(&call));
        }
        let pipe = self.attached(&call, container);
        call.leave(pipe)
    }

    async fn load_image(&self, archive: Bytes) -> EngineResult<()> {
        let call = self.enter_write("load an image".to_owned())?;
        let result = world::read_archive(&archive)
            .map(|(tag, image)| {
                lock(&self.world).images.insert(tag, image);
            })
            .map_err(|error| call.refuse(error.to_string()));
        call.leave(result)
    }

    async fn remove_image(&self, reference: &str) -> EngineResult<()> {
        let call = self.enter_write(format!("remove image {reference}"))?;
        lock(&self.world).images.remove(reference);
        call.leave(Ok(()))
    }

    async fn pull(&self, reference: &str, progress: &Progress<'_>) -> EngineResult<()> {
        let call = self.enter_write(format!("pull {reference}"))?;
        progress("pulling");
        let result = lock(&self.world).pull(&call, reference);
        call.leave(result)
    }

    async fn build(
        &self,
        context: Bytes,
        _dockerfile: &str,
        tag: &str,
        labels: &Labels,
        progress: &Progress<'_>,
    ) -> EngineResult<()> {
        let call = self.enter_write(format!("build {tag}"))?;
        progress("building");
        let image = Image::new(ImageFacts {
            id: Some(sha256(&context)),
            digest: None,
            volumes: Vec::new(),
            labels: labels.clone(),
        });
        lock(&self.world).images.insert(tag.to_owned(), image);
        call.leave(Ok(()))
    }
}
