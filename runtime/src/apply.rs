//! [`ChangeSet`] → idempotent steps, in an order that never takes a working capability down (product.md 10–16).
//!
//! Nothing is chosen here: names, addresses, limits and what is to be done come from the plan and the change set. The
//! gateway comes first, because a container whose policy was not acknowledged may not start (S8); instances and
//! leftovers follow, a few at a time; networks without a use go last.

mod destroy;
mod instance;
mod policy;
mod pull;
mod ready;

pub use destroy::{Destroyed, Removal, destroy, remove_gateway_image};
pub use pull::pull;
pub use ready::{DEFAULT_TIMEOUT, NotReady, explain_exit};

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use selu_compiler::diff::{Action, Change, ChangeSet, Subject};
use selu_compiler::model::{InstanceKey, Network, NetworkMode};
use selu_compiler::observed::Observed;
use selu_compiler::plan::{GatewayRule, Plan, PlannedGateway, PlannedNetwork, label};

use crate::discover::{self, Found, Wanted};
use crate::engine::{Engine, EngineError};
use crate::events::{Event, Events};
use crate::gateway::{self, GatewayError};
use crate::invoke::{Client, DEFAULT_DEADLINE};
use crate::secrets::Secrets;
use crate::stop::Stop;
use instance::Instance;
use policy::PolicyDesk;

/// How many instances are worked on at once: more gains nothing on a small machine, and loads a registry.
const CONCURRENCY: usize = 4;

/// How long a container may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);

/// One apply.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// Where.
    pub engine: &'a dyn Engine,
    /// What should be.
    pub plan: &'a Plan,
    /// What to do.
    pub changes: &'a ChangeSet,
    /// What it was made from.
    pub observed: &'a Observed,
    /// Dynamic instances whose discovery is due although nothing about them changes (D5).
    pub due: &'a BTreeSet<InstanceKey>,
    /// Images that could not be pulled: reference → why, secrets removed.
    pub unpulled: &'a BTreeMap<String, String>,
    /// For discovery, and to keep values out of what is reported.
    pub secrets: &'a Secrets,
    /// Who is told.
    pub events: &'a dyn Events,
    /// Whether to stop.
    pub stop: &'a Stop,
    /// W1.
    pub ready_timeout: Duration,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The engine refused.
    #[error("could not {step}")]
    Engine {
        /// What was tried.
        step: &'static str,
        /// Why.
        source: EngineError,
    },
    /// The gateway refused.
    #[error("could not {step}")]
    Gateway {
        /// What was tried.
        step: &'static str,
        /// Why.
        source: GatewayError,
    },
    /// W1, W2.
    #[error(transparent)]
    NotReady(NotReady),
    /// Something else was read back than was sent (product.md 9).
    #[error("the engine did not do what the plan says: {}", .differences.join("; "))]
    Differs {
        /// Each with its path.
        differences: Vec<String>,
    },
    /// Nothing else was touched (product.md 12, 16).
    #[error("could not pull {reference}: {message}")]
    Pull {
        /// Which image.
        reference: String,
        /// Why.
        message: String,
    },
    /// The plan leaves open what only the world knows.
    #[error("the plan does not say what to run; it was made without an engine")]
    Incomplete,
    /// A wish to stop came first.
    #[error("interrupted")]
    Interrupted,
}

impl StepError {
    fn engine(step: &'static str) -> impl FnOnce(EngineError) -> Self {
        move |source| Self::Engine { step, source }
    }

    fn gateway(step: &'static str) -> impl FnOnce(GatewayError) -> Self {
        move |source| Self::Gateway { step, source }
    }

    fn differs(differences: impl IntoIterator<Item = String>) -> Self {
        Self::Differs {
            differences: differences.into_iter().collect(),
        }
    }
}

/// How it went for one subject.
#[derive(Debug)]
pub enum Outcome {
    /// There was nothing to do.
    Unchanged,
    /// It is as planned.
    Done,
    /// It is not; secrets removed.
    Failed(String),
    /// Something that it depends on failed, or the work was interrupted first.
    NotStarted(String),
}

/// How a discovery went.
#[derive(Debug)]
pub enum Discovery {
    /// It listed its tools.
    Found(Found),
    /// It did not, twice or for lack of credentials; secrets removed (D4).
    Failed(String),
    /// The container was not made, or the work was interrupted first.
    NotStarted,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Report {
    /// In the order of the change set.
    pub outcomes: Vec<(Change, Outcome)>,
    /// For each instance whose discovery was due.
    pub discoveries: BTreeMap<InstanceKey, Discovery>,
    /// Whether a wish to stop ended it early.
    pub interrupted: bool,
}

/// Instances that this version may not apply, because nobody would enforce their network rules.
pub fn unenforceable(plan: &Plan) -> Vec<&InstanceKey> {
    let open = plan
        .instances
        .iter()
        .filter(|(_, instance)| match instance.network_rules.mode {
            NetworkMode::None => false,
            NetworkMode::Allowlist | NetworkMode::Any => true,
        });
    open.map(|(key, _)| key).collect()
}

/// Dynamic instances whose tools are to be asked for: those that change, and those that are due.
pub fn to_discover(
    plan: &Plan,
    changes: &ChangeSet,
    due: &BTreeSet<InstanceKey>,
) -> BTreeSet<InstanceKey> {
    let changed =
        changes
            .changes
            .iter()
            .filter_map(|change| match (&change.subject, change.action) {
                (Subject::Instance(key), Action::Create | Action::Replace) => Some(key),
                _ => None,
            });
    let dynamic = |key: &&InstanceKey| {
        plan.instances
            .get(*key)
            .is_some_and(|instance| instance.discovery_tool.is_some())
    };
    changed.chain(due).filter(dynamic).cloned().collect()
}

/// Does what the change set says, and discovers.
pub async fn apply(job: &Job<'_>) -> Report {
    let wanted = to_discover(job.plan, job.changes, job.due);
    let mut outcomes: BTreeMap<Subject, Outcome> = BTreeMap::new();
    let mut discoveries = BTreeMap::new();

    let ready = job.prepare_gateway().await;
    let (gateway_subject, desk) = match ready {
        Ok(Some((gateway, desk))) => {
            job.settle(
                &mut outcomes,
                Subject::Gateway(gateway.name.clone()),
                Ok(()),
            );
            (Some(gateway), Some(desk))
        }
        Ok(None) => (None, None),
        Err((gateway, error)) => {
            job.settle(
                &mut outcomes,
                Subject::Gateway(gateway.name.clone()),
                Err(error),
            );
            return job.report(
                outcomes,
                discoveries,
                &wanted,
                "the gateway is not as planned",
            );
        }
    };
    let gateway = gateway_subject.zip(desk.as_ref());

    let of_kind = |kind: fn(&Subject) -> bool| {
        job.changes
            .changes
            .iter()
            .filter(move |change| kind(&change.subject))
    };
    let first = of_kind(|subject| matches!(subject, Subject::Instance(_) | Subject::Container(_)));
    let work = first.map(|change| {
        let wanted = &wanted;
        async move {
            let result = job.one(gateway, change).await;
            let discovery = match &change.subject {
                Subject::Instance(key) if wanted.contains(key) => {
                    Some((key.clone(), job.discover(gateway, key, &result).await))
                }
                _ => None,
            };
            (change, result, discovery)
        }
    });
    let results: Vec<_> = stream::iter(work)
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;
    for (change, result, discovery) in results {
        job.settle(&mut outcomes, change.subject.clone(), result);
        discoveries.extend(discovery);
    }

    // A network is removed once nothing of ours is in it any more.
    for change in of_kind(|subject| matches!(subject, Subject::Network(_))) {
        let Subject::Network(name) = &change.subject else {
            continue;
        };
        let result = match job.blocked(name, &outcomes) {
            Some(why) => {
                outcomes.insert(change.subject.clone(), Outcome::NotStarted(why));
                continue;
            }
            None => job.remove_network(gateway, name).await,
        };
        job.settle(&mut outcomes, change.subject.clone(), result);
    }
    job.report(outcomes, discoveries, &wanted, "interrupted first")
}

type Desk<'d> = (&'d PlannedGateway, &'d PolicyDesk<'d>);

impl<'a> Job<'a> {
    /// The gateway as planned, with a policy for what runs now. `None` if the plan has none.
    async fn prepare_gateway(
        &self,
    ) -> Result<Option<(&'a PlannedGateway, PolicyDesk<'a>)>, (&'a PlannedGateway, StepError)> {
        let Some(gateway) = &self.plan.gateway else {
            return Ok(None);
        };
        let fail = |error| (gateway, error);
        if self.action(&Subject::Gateway(gateway.name.clone())) != Action::NoOp {
            self.step(
                &Subject::Gateway(gateway.name.clone()),
                "preparing the gateway",
            );
        }
        let networks = self.networks_in_use();
        let networks: Vec<&PlannedNetwork> = networks.iter().collect();
        gateway::ensure(self.engine, &self.plan.project, gateway, &networks)
            .await
            .map_err(StepError::gateway("prepare the gateway"))
            .map_err(fail)?;
        let rules = self.rules_in_use(gateway);
        let desk = PolicyDesk::open(self.engine, &gateway.name, &self.plan.project, rules)
            .await
            .map_err(StepError::gateway("deliver the gateway's policy"))
            .map_err(fail)?;
        Ok(Some((gateway, desk)))
    }

    async fn one(&self, gateway: Option<Desk<'_>>, change: &Change) -> Result<(), StepError> {
        if change.action == Action::NoOp {
            return Ok(());
        }
        if self.stop.requested() {
            return Err(StepError::Interrupted);
        }
        match &change.subject {
            Subject::Gateway(_) | Subject::Network(_) => Ok(()),
            Subject::Container(name) => {
                self.step(&change.subject, "removing");
                self.remove_generation(
                    gateway.map(|(planned, desk)| (desk, planned.name.as_str())),
                    name,
                )
                .await
            }
            Subject::Instance(key) if change.action == Action::Delete => {
                self.step(&change.subject, "removing");
                for name in old_generations(self.observed, key, "") {
                    let desk = gateway.map(|(planned, desk)| (desk, planned.name.as_str()));
                    self.remove_generation(desk, &name).await?;
                }
                Ok(())
            }
            Subject::Instance(key) => {
                let instance = self.instance(gateway, key).ok_or(StepError::Incomplete)?;
                match change.action {
                    Action::Create | Action::Replace => instance.bring_up().await,
                    Action::Start => {
                        let found = self.observed.containers.get(&instance.container.name);
                        let found = found.ok_or(StepError::Incomplete)?;
                        instance.start(&found.state).await
                    }
                    Action::Update => instance.update().await,
                    Action::Delete | Action::NoOp => Ok(()),
                }
            }
        }
    }

    fn instance<'i>(
        &'i self,
        gateway: Option<Desk<'i>>,
        key: &'i InstanceKey,
    ) -> Option<Instance<'i>> {
        let (gateway, desk) = gateway?;
        let container = self.plan.instances.get(key)?.resident.as_ref()?;
        Some(Instance {
            job: self,
            desk,
            gateway: &gateway.name,
            helper_image: &gateway.spec.image,
            key,
            container,
            rule: gateway.policy.get(&container.network.name)?,
        })
    }

    async fn discover(
        &self,
        gateway: Option<Desk<'_>>,
        key: &InstanceKey,
        result: &Result<(), StepError>,
    ) -> Discovery {
        let planned = self.plan.instances.get(key);
        let tool = planned.and_then(|planned| planned.discovery_tool.as_deref());
        let (Ok(()), Some(planned), Some(tool), Some(instance)) =
            (result, planned, tool, self.instance(gateway, key))
        else {
            return Discovery::NotStarted;
        };
        self.step(&Subject::Instance(key.clone()), "discovering tools");
        let wanted = Wanted {
            instance: key,
            tool,
            credentials: &planned.credentials,
            session: "default",
            deadline: DEFAULT_DEADLINE,
        };
        let connect = async |attempt| {
            // D2: fresh, if it is one of discovery's own.
            if attempt > 0 && !instance.is_resident() {
                instance.renew().await.map_err(|error| chain(&error))?;
            }
            let network = &instance.container.network.name;
            let client = Client::connect(self.engine, instance.gateway, network).await;
            client.map_err(|error| chain(&error))
        };
        tokio::select! {
            biased;
            () = self.stop.wait() => Discovery::NotStarted,
            found = discover::discover(wanted, self.secrets, connect) => match found {
                Ok(found) => Discovery::Found(found),
                Err(error) => Discovery::Failed(self.secrets.redactor().clean(&chain(&error))),
            },
        }
    }

    /// Removes a container of ours and the network of its own, its policy entry acknowledged as gone in between (S5).
    async fn remove_generation(
        &self,
        gateway: Option<(&PolicyDesk<'_>, &str)>,
        name: &str,
    ) -> Result<(), StepError> {
        if self.observed.containers.contains_key(name) {
            let stopped = self.engine.stop(name, GRACE).await;
            if let Err(error) = stopped {
                // Removal by force comes next, and its error is the one that counts.
                tracing::debug!("{name} did not stop: {error}");
            }
            let removed = self.engine.remove_container(name).await;
            removed.map_err(StepError::engine("remove the container"))?;
        }
        if self.observed.networks.contains_key(name) {
            self.take_network(gateway, name).await?;
        }
        Ok(())
    }

    async fn remove_network(&self, gateway: Option<Desk<'_>>, name: &str) -> Result<(), StepError> {
        self.step(&Subject::Network(name.to_owned()), "removing");
        let desk = gateway.map(|(planned, desk)| (desk, planned.name.as_str()));
        self.take_network(desk, name).await
    }

    async fn take_network(
        &self,
        gateway: Option<(&PolicyDesk<'_>, &str)>,
        name: &str,
    ) -> Result<(), StepError> {
        if let Some((desk, gateway)) = gateway {
            let revoked = desk.revoke(name).await;
            revoked.map_err(StepError::gateway(
                "take the network out of the gateway's policy",
            ))?;
            let detached = self.engine.disconnect(name, gateway).await;
            detached.map_err(StepError::engine("detach the gateway from the network"))?;
        }
        let removed = self.engine.remove_network(name).await;
        removed.map_err(StepError::engine("remove the network"))
    }

    /// Whether something that is still in a network keeps it.
    fn blocked(&self, network: &str, outcomes: &BTreeMap<Subject, Outcome>) -> Option<String> {
        if self.stop.requested() {
            return Some("interrupted first".to_owned());
        }
        let attached = self
            .observed
            .networks
            .get(network)
            .map(|found| &found.attached);
        attached.into_iter().flatten().find_map(|name| {
            let subject = Subject::Container(name.clone());
            match outcomes.get(&subject)? {
                Outcome::Failed(_) | Outcome::NotStarted(_) => {
                    Some(format!("container {name} is still in it"))
                }
                Outcome::Done | Outcome::Unchanged => None,
            }
        })
    }

    fn settle(
        &self,
        outcomes: &mut BTreeMap<Subject, Outcome>,
        subject: Subject,
        result: Result<(), StepError>,
    ) {
        let action = self.action(&subject);
        let outcome = match result {
            Ok(()) if action == Action::NoOp => Outcome::Unchanged,
            Ok(()) => {
                let text = done_word(action).to_owned();
                self.events.emit(Event::Done {
                    subject: subject.clone(),
                    text,
                });
                Outcome::Done
            }
            Err(StepError::Interrupted) => Outcome::NotStarted("interrupted first".to_owned()),
            Err(error) => {
                let text = self.secrets.redactor().clean(&chain(&error));
                self.events.emit(Event::Failed {
                    subject: subject.clone(),
                    text: text.clone(),
                });
                Outcome::Failed(text)
            }
        };
        outcomes.insert(subject, outcome);
    }

    fn report(
        &self,
        mut outcomes: BTreeMap<Subject, Outcome>,
        mut discoveries: BTreeMap<InstanceKey, Discovery>,
        wanted: &BTreeSet<InstanceKey>,
        otherwise: &str,
    ) -> Report {
        for key in wanted {
            discoveries
                .entry(key.clone())
                .or_insert(Discovery::NotStarted);
        }
        let changes = self.changes.changes.iter();
        let outcomes = changes.map(|change| {
            let outcome = outcomes
                .remove(&change.subject)
                .unwrap_or_else(|| match change.action {
                    Action::NoOp => Outcome::Unchanged,
                    _ => Outcome::NotStarted(otherwise.to_owned()),
                });
            (change.clone(), outcome)
        });
        Report {
            outcomes: outcomes.collect(),
            discoveries,
            interrupted: self.stop.requested(),
        }
    }

    /// What runs now or goes on running, by network: the planned ones that stay, and old generations until they are
    /// replaced.
    fn rules_in_use(&self, gateway: &PlannedGateway) -> BTreeMap<String, GatewayRule> {
        let mut rules = BTreeMap::new();
        for (name, network) in &self.observed.networks {
            if let Some(rule) = gateway.policy.get(name) {
                rules.insert(name.clone(), rule.clone());
                continue;
            }
            let (Some(subnet), Some(container)) =
                (network.subnet, self.observed.containers.get(name))
            else {
                continue;
            };
            let labels = &container.spec.labels;
            let instance = labels
                .get(label::INSTANCE)
                .and_then(|key| InstanceKey::parse(key));
            let address = container
                .networks
                .get(name)
                .and_then(|text| text.parse().ok());
            if let (Some(instance), Some(capability)) = (instance, address) {
                rules.insert(
                    name.clone(),
                    GatewayRule {
                        instance,
                        subnet,
                        capability,
                        // The only mode that is ever applied, so the one that an old generation runs under.
                        rules: Network {
                            mode: NetworkMode::None,
                            hosts: Vec::new(),
                        },
                    },
                );
            }
        }
        rules
    }

    /// Planned networks that exist already: a gateway that is made anew is attached to them again.
    fn networks_in_use(&self) -> Vec<PlannedNetwork> {
        let residents = self
            .plan
            .instances
            .values()
            .filter_map(|one| one.resident.as_ref());
        residents
            .map(|resident| resident.network.clone())
            .filter(|network| self.observed.networks.contains_key(&network.name))
            .collect()
    }

    fn action(&self, subject: &Subject) -> Action {
        let change = self
            .changes
            .changes
            .iter()
            .find(|change| change.subject == *subject);
        change.map_or(Action::NoOp, |change| change.action)
    }

    fn step(&self, subject: &Subject, text: &str) {
        self.events.emit(Event::Step {
            subject: subject.clone(),
            text: text.to_owned(),
        });
    }
}

fn done_word(action: Action) -> &'static str {
    match action {
        Action::Create => "created",
        Action::Update => "updated",
        Action::Replace => "replaced",
        Action::Start => "started",
        Action::Delete => "removed",
        Action::NoOp => "unchanged",
    }
}

/// Names of an instance's containers and networks other than `current`: each container has the network of its name.
fn old_generations(observed: &Observed, key: &InstanceKey, current: &str) -> BTreeSet<String> {
    let resident = |labels: &BTreeMap<String, String>| {
        labels
            .get(label::INSTANCE)
            .is_some_and(|of| of == key.as_str())
            && labels
                .get(label::ROLE)
                .is_some_and(|role| role == "resident")
    };
    let containers = observed
        .containers
        .iter()
        .filter(|(_, container)| resident(&container.spec.labels))
        .map(|(name, _)| name);
    let networks = observed
        .networks
        .iter()
        .filter(|(_, network)| resident(&network.labels))
        .map(|(name, _)| name);
    containers
        .chain(networks)
        .filter(|name| *name != current)
        .cloned()
        .collect()
}

/// An error with its sources, once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
