//! One instance: a new generation is made and made ready, and only then the old one goes (product.md 12).

use std::collections::BTreeSet;

use selu_compiler::diff::{self, Subject};
use selu_compiler::model::InstanceKey;
use selu_compiler::observed::{ContainerState, ObservedContainer};
use selu_compiler::plan::{ContainerSpec, GatewayRule, PlannedContainer, label};

use super::policy::PolicyDesk;
use super::ready::{NotReady, Wait};
use super::{Job, StepError};
use crate::engine::{EngineError, Labels};
use crate::events::Event;
use crate::gateway;

/// What is needed to change one instance.
pub(super) struct Instance<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) desk: &'a PolicyDesk<'a>,
    pub(super) gateway: &'a str,
    /// The image that volumes are prepared with.
    pub(super) helper_image: &'a str,
    pub(super) key: &'a InstanceKey,
    pub(super) container: &'a PlannedContainer,
    pub(super) rule: &'a GatewayRule,
}

/// What a new generation has got so far, so that exactly that can be undone.
#[derive(Default)]
struct Made {
    network: bool,
    attached: bool,
    allowed: bool,
    container: bool,
}

impl Instance<'_> {
    /// Makes the planned generation beside what exists, and then removes what it replaces.
    pub(super) async fn bring_up(&self) -> Result<(), StepError> {
        self.is_pulled()?;
        let mut made = Made::default();
        if let Err(error) = self.make(&mut made).await {
            self.undo(&made).await;
            return Err(error);
        }
        self.retire_old().await
    }

    /// Brings what may stay back to what is planned, in place, and to run.
    pub(super) async fn mend(&self, found: &ObservedContainer) -> Result<(), StepError> {
        let engine = self.job.engine;
        let PlannedContainer { name, spec, .. } = self.container;
        if found.state == ContainerState::Paused {
            // An engine starts no paused container, and what was frozen in the middle is better begun anew.
            self.step("stopping the paused container");
            let stop = engine.stop(name, super::GRACE).await;
            stop.map_err(StepError::engine("stop the paused container"))?;
        }
        let mended = as_it_can_be(spec, found);
        // It may be what a killed apply left behind, and was never ready: whether it is kept running is decided below.
        let limited = ContainerSpec {
            restart: found.spec.restart,
            ..mended.clone()
        };
        if limited != found.spec {
            self.step("setting limits");
            let updated = engine.update_container(name, &limited).await;
            updated.map_err(StepError::engine("set the container's limits"))?;
        }
        if found.state != ContainerState::Running {
            self.step("starting container");
            let start = engine.start(name).await;
            start.map_err(StepError::engine("start the container"))?;
        }
        self.wait_until_ready().await?;
        if spec.restart != found.spec.restart {
            self.keep_running().await?;
        }
        self.read_back(&mended).await
    }

    /// Images are pulled before anything is touched; one that could not be is the end of this instance's way.
    fn is_pulled(&self) -> Result<(), StepError> {
        let image = self.job.plan.instances.get(self.key).map(|one| &one.image);
        let Some(reference) = image
            .filter(|image| image.pull)
            .and_then(|image| image.reference.as_ref())
        else {
            return Ok(());
        };
        match self.job.unpulled.get(reference) {
            Some(message) => Err(StepError::Pull {
                reference: reference.clone(),
                message: message.clone(),
            }),
            None => Err(StepError::Incomplete),
        }
    }

    async fn make(&self, made: &mut Made) -> Result<(), StepError> {
        let Job { engine, stop, .. } = *self.job;
        let container = self.container;
        let network = &container.network;
        let go_on = || match stop.requested() {
            true => Err(StepError::Interrupted),
            false => Ok(()),
        };

        go_on()?;
        self.step("creating network");
        let created = engine.create_network(network, &self.labels()).await;
        created.map_err(StepError::engine("create the network"))?;
        made.network = true;

        go_on()?;
        self.step("attaching the gateway");
        made.attached = true;
        let attached = gateway::attach(engine, self.gateway, network).await;
        attached.map_err(StepError::gateway("attach the gateway to the network"))?;

        self.step("delivering the gateway's policy");
        made.allowed = true;
        let allowed = self.desk.allow(&network.name, self.rule).await;
        allowed.map_err(StepError::gateway("deliver the gateway's policy"))?;

        self.prepare_volumes().await?;

        go_on()?;
        self.make_container(&mut made.container).await
    }

    async fn make_container(&self, made: &mut bool) -> Result<(), StepError> {
        let container = self.container;
        let engine = self.job.engine;
        self.step("creating container");
        let spec = ContainerSpec {
            // A container that never was ready must not be started again and again (W2).
            restart: false,
            ..container.spec.clone()
        };
        let address = Some(container.network.capability);
        let created = engine
            .create_container(
                &container.name,
                &spec,
                &container.network.name,
                address,
                false,
            )
            .await;
        // A name that is someone else's is not ours to undo.
        *made = !matches!(created, Err(EngineError::Conflict { .. }));
        created.map_err(StepError::engine("create the container"))?;

        if self.job.stop.requested() {
            return Err(StepError::Interrupted);
        }
        self.step("starting container");
        let started = engine.start(&container.name).await;
        started.map_err(StepError::engine("start the container"))?;
        self.wait_until_ready().await?;
        self.keep_running().await?;
        self.read_back(&container.spec).await
    }

    /// Makes the container of a discovery anew, in the network that it has (D2).
    pub(super) async fn renew(&self) -> Result<(), StepError> {
        let removed = self.job.engine.remove_container(&self.container.name).await;
        removed.map_err(StepError::engine("remove the container"))?;
        // Whoever made the first one removes this one, too.
        let mut made = true;
        self.make_container(&mut made).await
    }

    /// Whether it stays; a discovery's own container is gone afterwards (D6).
    pub(super) fn is_resident(&self) -> bool {
        self.role() == "resident"
    }

    fn role(&self) -> &str {
        let labels = &self.container.spec.labels;
        labels.get(label::ROLE).map_or("", String::as_str)
    }

    async fn prepare_volumes(&self) -> Result<(), StepError> {
        // One that exists is prepared too: a crash may have left it between creation and handing over (product.md 13).
        for volume in self.container.volumes.values() {
            self.step(&format!("preparing the {} volume", volume.purpose));
            let labels = Labels::from([
                (label::PROJECT.to_owned(), self.job.plan.project.clone()),
                (label::INSTANCE.to_owned(), self.key.to_string()),
            ]);
            gateway::prepare_volume(self.job.engine, self.helper_image, volume, &labels)
                .await
                .map_err(StepError::gateway("prepare a volume"))?;
        }
        Ok(())
    }

    async fn wait_until_ready(&self) -> Result<(), StepError> {
        self.step("waiting for the health answer");
        let wait = Wait {
            engine: self.job.engine,
            gateway: self.gateway,
            instance: self.key,
            container: self.container,
            limit: self.job.ready_timeout,
            redactor: self.job.secrets.redactor(),
            stop: self.job.stop,
        };
        wait.ready().await.map_err(|error| match error {
            NotReady::Interrupted => StepError::Interrupted,
            other => StepError::NotReady(other),
        })
    }

    /// From here on the engine starts it again after a crash or a reboot.
    async fn keep_running(&self) -> Result<(), StepError> {
        let engine = self.job.engine;
        engine
            .update_container(&self.container.name, &self.container.spec)
            .await
            .map_err(StepError::engine(
                "have the engine keep the container running",
            ))
    }

    /// Success is what was observed, not what was sent (product.md 9).
    async fn read_back(&self, planned: &ContainerSpec) -> Result<(), StepError> {
        let container = self.container;
        let found = self.job.engine.container(&container.name).await;
        let found = found
            .map_err(StepError::engine("read the container back"))?
            .ok_or_else(|| StepError::differs(["the container is gone".to_owned()]))?;
        let mut differences = spec_differences(planned, &found.spec);
        if found.state != ContainerState::Running {
            differences.push(format!("state: planned running, found {:?}", found.state));
        }
        let address = container.network.capability.to_string();
        match found.networks.get(&container.network.name) {
            Some(actual) if *actual == address => {}
            Some(actual) => differences.push(format!("address: planned {address}, found {actual}")),
            None => differences.push(format!("network: not in {}", container.network.name)),
        }
        let others = found
            .networks
            .keys()
            .filter(|name| **name != container.network.name);
        differences.extend(others.map(|name| format!("network: also in {name}")));
        differences.extend(found.violations);
        if differences.is_empty() {
            Ok(())
        } else {
            Err(StepError::differs(differences))
        }
    }

    /// Takes away what a failed generation has left; the old one was not touched.
    async fn undo(&self, made: &Made) {
        let engine = self.job.engine;
        let PlannedContainer { name, network, .. } = self.container;
        self.step("undoing");
        let mut left = Vec::new();
        let mut note = |what: &str, error: String| left.push(format!("{what}: {error}"));
        if made.container
            && let Err(error) = engine.remove_container(name).await
        {
            note(&format!("container {name}"), error.to_string());
        }
        if made.allowed
            && let Err(error) = self.desk.revoke(&network.name).await
        {
            note("policy entry", super::chain(&error));
        }
        if made.attached
            && let Err(error) = engine.disconnect(&network.name, self.gateway).await
        {
            note("the gateway's attachment", error.to_string());
        }
        if made.network
            && let Err(error) = engine.remove_network(&network.name).await
        {
            note(&format!("network {}", network.name), error.to_string());
        }
        if !left.is_empty() {
            let text = format!(
                "{}: not everything could be undone, the next apply removes it: {}",
                self.key,
                left.join("; ")
            );
            self.job.events.emit(Event::Warning {
                text: self.job.secrets.redactor().clean(&text),
            });
        }
    }

    async fn retire_old(&self) -> Result<(), StepError> {
        if !self.is_resident() {
            return Ok(());
        }
        let old = diff::predecessors(self.job.plan, self.key, self.job.observed);
        if !old.is_empty() {
            self.step("removing the old generation");
        }
        for name in old {
            self.job
                .remove_generation(Some((self.desk, self.gateway)), &name)
                .await?;
        }
        Ok(())
    }

    fn labels(&self) -> Labels {
        Labels::from([
            (label::PROJECT.to_owned(), self.job.plan.project.clone()),
            (label::INSTANCE.to_owned(), self.key.to_string()),
            (
                label::GENERATION.to_owned(),
                self.container.generation.to_string(),
            ),
            (label::ROLE.to_owned(), self.role().to_owned()),
        ])
    }

    fn subject(&self) -> Subject {
        Subject::Instance(self.key.clone())
    }

    fn step(&self, text: &str) {
        self.job.events.emit(Event::Step {
            subject: self.subject(),
            text: text.to_owned(),
        });
    }
}

/// What a live container is once it was changed in place: as planned, with labels that still say what it was made as.
fn as_it_can_be(planned: &ContainerSpec, found: &ObservedContainer) -> ContainerSpec {
    let mut spec = planned.clone();
    for name in [label::SPEC, label::LIMITS] {
        match found.spec.labels.get(name) {
            Some(value) => spec.labels.insert(name.to_owned(), value.clone()),
            None => spec.labels.remove(name),
        };
    }
    spec
}

/// Fields that differ, each with both values. The serialized form names every field there is, so that a new one cannot
/// be forgotten here.
fn spec_differences(planned: &ContainerSpec, found: &ContainerSpec) -> Vec<String> {
    if planned == found {
        return Vec::new();
    }
    let fields = |spec: &ContainerSpec| match serde_json::to_value(spec) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (planned, found) = (fields(planned), fields(found));
    let names: BTreeSet<&String> = planned.keys().chain(found.keys()).collect();
    let text =
        |value: Option<&serde_json::Value>| value.map_or("nothing".to_owned(), ToString::to_string);
    names
        .into_iter()
        .filter(|name| planned.get(*name) != found.get(*name))
        .map(|name| {
            let (planned, found) = (text(planned.get(name)), text(found.get(name)));
            format!("{name}: planned {planned}, found {found}")
        })
        .collect()
}
