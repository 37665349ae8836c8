//! [`ChangeSet`] → idempotent steps, in an order that never takes a working capability down (product.md 10–16).
//!
//! Nothing is chosen here: names, addresses, limits and what is to be done come from the plan and the change set. The
//! gateway comes first, because a container whose policy was not acknowledged may not start (S8); instances and
//! leftovers follow, a few at a time; networks without a use go last.

mod destroy;
mod instance;
mod policy;
mod progress;
mod pull;
mod ready;
mod session;
mod trial;

pub use destroy::{Destroyed, Removal, destroy, remove_gateway_image};
pub use policy::policy_state;
pub use pull::pull;
pub(crate) use ready::Wait;
pub use ready::{DEFAULT_TIMEOUT, NotReady, explain_exit};
pub use session::{Open, session_plan, session_rules};
pub use trial::{trial, without_residents};

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use selu_compiler::diff::{Action, Change, ChangeSet, Subject};
use selu_compiler::model::{InstanceKey, Network, NetworkMode};
use selu_compiler::observed::{ContainerState, Observed};
use selu_compiler::plan::hash::RunRules;
use selu_compiler::plan::{GatewayRule, Plan, PlannedGateway, PlannedNetwork, label, names};

use crate::chain;
use crate::discover::{self, Found, Wanted};
use crate::engine::{Engine, EngineError};
use crate::events::{Event, Events};
use crate::gateway::{self, GatewayError};
use crate::invoke::{Client, DEFAULT_DEADLINE};
use crate::secrets::Secrets;
use crate::stop::Stop;
use instance::Instance;
use policy::PolicyDesk;
use progress::Progress;

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
    /// Somebody else's containers keep a network of ours in use; they are not ours to take out (product.md 10).
    #[error(
        "could not remove network {network}: containers that are not ours are in it: {}; disconnect them",
        .strangers.join(", ")
    )]
    Strangers {
        /// The network.
        network: String,
        /// Their names.
        strangers: Vec<String>,
        /// The engine's words.
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

impl Outcome {
    /// Whether what depends on it may start.
    pub fn is_success(&self) -> bool {
        match self {
            Self::Unchanged | Self::Done => true,
            Self::Failed(_) | Self::NotStarted(_) => false,
        }
    }
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

impl Report {
    /// Everything is as it should be.
    pub fn unchanged(changes: &ChangeSet) -> Self {
        Self::all(changes, || Outcome::Unchanged)
    }

    /// A person said no.
    pub fn not_begun(changes: &ChangeSet) -> Self {
        Self::all(changes, || Outcome::NotStarted("not agreed to".to_owned()))
    }

    fn all(changes: &ChangeSet, outcome: impl Fn() -> Outcome) -> Self {
        let outcomes = changes.changes.iter().map(|change| match change.action {
            Action::NoOp => (change.clone(), Outcome::Unchanged),
            _ => (change.clone(), outcome()),
        });
        Self {
            outcomes: outcomes.collect(),
            ..Self::default()
        }
    }
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
    let mut progress = Progress::new(job, &wanted);
    let gateway = match job.prepare_gateway().await {
        Ok(ready) => {
            if let Some((gateway, _)) = &ready {
                progress.settle_subject(&Subject::Gateway(gateway.name.clone()), Ok(()));
            }
            ready
        }
        Err((gateway, error)) => {
            progress.settle_subject(&Subject::Gateway(gateway.name.clone()), Err(error));
            return progress.report();
        }
    };
    let gateway = gateway.as_ref().map(|(planned, desk)| (*planned, desk));

    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < CONCURRENCY {
            let Some(index) = progress.next() else { break };
            let change = &job.changes.changes[index];
            let wanted = &wanted;
            running.push(async move {
                let result = job.one(gateway, change).await;
                let discovery = match &change.subject {
                    Subject::Instance(key) if wanted.contains(key) => {
                        Some((key.clone(), job.discover(gateway, key, &result).await))
                    }
                    _ => None,
                };
                (index, result, discovery)
            });
        }
        match running.next().await {
            Some((index, result, discovery)) => {
                progress.settle(index, result);
                progress.discoveries.extend(discovery);
            }
            None => break,
        }
    }
    progress.report()
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
        let desk = PolicyDesk::open(self.engine, gateway, &self.plan.project, rules)
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
        let desk = gateway.map(|(planned, desk)| (desk, planned.name.as_str()));
        match &change.subject {
            Subject::Gateway(_) => Ok(()),
            Subject::Container(name) => {
                self.step(&change.subject, "removing");
                self.remove_generation(desk, name).await
            }
            Subject::Network(name) => {
                self.step(&change.subject, "removing");
                self.take_network(desk, name).await
            }
            Subject::Instance(key) => {
                let instance = self.instance(gateway, key).ok_or(StepError::Incomplete)?;
                match change.action {
                    Action::Create | Action::Replace => instance.bring_up().await,
                    Action::Start | Action::Update => {
                        let found = self.observed.containers.get(&instance.container.name);
                        instance.mend(found.ok_or(StepError::Incomplete)?).await
                    }
                    // The plan has it, so it is not deleted.
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
            session: names::RESIDENT_SESSION,
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
                Err(error) => {
                    let mut text = self.secrets.redactor().clean(&chain(&error));
                    if error.may_be_explained_by_the_container() {
                        text.push_str(&self.aftermath(&instance.container.name).await);
                    }
                    Discovery::Failed(text)
                }
            },
        }
    }

    /// How a container is after a call that broke, and its last words; secrets removed (product.md 16).
    async fn aftermath(&self, name: &str) -> String {
        let how = match self.engine.container(name).await {
            Ok(Some(found)) => match found.state {
                ContainerState::Running | ContainerState::Created => String::new(),
                ContainerState::Exited { code, oom_killed } => {
                    let how = explain_exit(code, oom_killed, found.spec.memory_bytes);
                    format!("\nthe container has ended: {how}")
                }
                ContainerState::Restarting => {
                    "\nthe container has ended, and the engine is about to start it again"
                        .to_owned()
                }
                ContainerState::Paused => "\nthe container is paused".to_owned(),
                ContainerState::Dead => "\nthe engine reports the container as dead".to_owned(),
            },
            Ok(None) => return "\nthe container is gone".to_owned(),
            // The error of the call is the one that counts.
            Err(_) => String::new(),
        };
        how + &ready::last_words(self.engine, name, self.secrets.redactor()).await
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
        let Err(source) = self.engine.remove_network(name).await else {
            return Ok(());
        };
        let strangers = destroy::strangers(self.observed, name);
        Err(match strangers.is_empty() {
            true => StepError::engine("remove the network")(source),
            false => StepError::Strangers {
                network: name.to_owned(),
                strangers,
                source,
            },
        })
    }

    /// What runs now or goes on running, by network: the planned ones that stay, and old generations until they are
    /// replaced.
    fn rules_in_use(&self, gateway: &PlannedGateway) -> BTreeMap<String, GatewayRule> {
        let mut rules = BTreeMap::new();
        let sessions = session_rules(self.plan, self.observed);
        for (name, network) in &self.observed.networks {
            if let Some(rule) = gateway.policy.get(name).or(sessions.get(name)) {
                rules.insert(name.clone(), rule.clone());
                continue;
            }
            let (Some(subnet), Some(container)) =
                (network.subnet, self.observed.containers.get(name))
            else {
                continue;
            };
            let labels = &container.spec.labels;
            let (old, private) = old_rules(labels, gateway.carries());
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
                        rules: old,
                        private,
                    },
                );
            }
        }
        rules
    }

    /// Networks of residents and sessions that exist already, old generations too: a gateway that is made anew is attached to them
    /// again, so that what works goes on being reachable.
    fn networks_in_use(&self) -> Vec<PlannedNetwork> {
        let rules = self.observed.networks.iter();
        rules
            .filter(|(name, _)| self.observed.containers.contains_key(*name))
            .filter(|(_, network)| {
                network
                    .labels
                    .get(label::ROLE)
                    .is_some_and(|role| role == "resident" || role == session::ROLE)
            })
            .filter_map(|(name, network)| Some(PlannedNetwork::new(name.clone(), network.subnet?)))
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

/// The rules that an old generation was made under, as its label says. A gateway that carries nothing can't go by them:
/// such a generation is cut off a moment before it is replaced.
fn old_rules(labels: &BTreeMap<String, String>, carries: bool) -> (Network, Vec<String>) {
    let run_rules = labels
        .get(label::RULES)
        .filter(|_| carries)
        .and_then(|text| RunRules::from_label(text));
    match run_rules {
        Some(rules) => (rules.network, rules.private),
        None => {
            let closed = Network {
                mode: NetworkMode::None,
                hosts: Vec::new(),
            };
            (closed, Vec::new())
        }
    }
}

#[cfg(test)]
mod tests;
