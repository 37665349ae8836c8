//! Containers of sessions and users from the desk's side: found or made for a call, listed, closed, and closed when
//! nobody has called them for long (X2–X4).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use selu_compiler::diff::{Action, Change, ChangeSet, Subject};
use selu_compiler::model::{InstanceKey, SharingMode};
use selu_compiler::observed::ContainerState;
use selu_compiler::plan::session::{Who, container};
use selu_compiler::plan::{Plan, PlannedContainer, PlannedInstance};
use selu_compiler::resolve::free_subnet;
use selu_runtime::apply::{self, DEFAULT_TIMEOUT, Job, Open, session_plan};
use selu_runtime::discover::Journal;
use selu_runtime::engine::Engine;
use selu_runtime::secrets::Secrets;
use selu_runtime::slots::{self, Idle};
use selu_runtime::stop::Stop;

use crate::exit::Ending;
use crate::held;
use crate::hints::Hinted;
use crate::leaks;
use crate::printer::{Printer, shown};
use crate::project::{Loaded, Planned};

/// How many seconds opening or closing waits for another selu's work.
const HOLD_WAIT: u64 = 60;

/// How long an idle container may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// What all of it is done with.
pub(crate) struct Desk<'a> {
    pub(crate) printer: &'a Printer,
    pub(crate) stop: &'a Stop,
    pub(crate) loaded: &'a Loaded,
    pub(crate) engine: &'a dyn Engine,
    pub(crate) secrets: &'a Secrets,
}

/// How many calls a container of an instance serves at once (X1, X2).
pub(crate) fn at_once(instance: &PlannedInstance) -> u32 {
    match instance.sharing.mode {
        SharingMode::Shared => instance.sharing.max_concurrent,
        SharingMode::Exclusive => 1,
    }
}

/// The resident, if it and the gateway are what the plan says.
pub(crate) fn resident<'a>(
    planned: &'a Planned,
    key: &InstanceKey,
) -> anyhow::Result<(&'a str, &'a PlannedContainer)> {
    let instance = planned.plan.instances.get(key);
    let resident = instance.and_then(|instance| instance.resident.as_ref());
    let (Some(gateway), Some(resident)) = (&planned.plan.gateway, resident) else {
        let message = format!("{key} does not run");
        return Err(Hinted::new(message, "`selu apply` makes it run").into());
    };
    for change in &planned.changes.changes {
        let whose = match &change.subject {
            Subject::Instance(instance) if instance == key => key.to_string(),
            Subject::Gateway(name) => name.clone(),
            _ => continue,
        };
        let state = match change.action {
            Action::NoOp => continue,
            Action::Create => "does not run",
            Action::Start => "is stopped",
            Action::Update | Action::Replace => "runs otherwise than planned",
            Action::Delete => "is to be removed",
        };
        let reasons: String = change
            .reasons
            .iter()
            .map(|reason| {
                let text = |value: &Option<String>| shown(value.as_deref().unwrap_or("nothing"));
                let (old, new) = (text(&reason.old), text(&reason.new));
                format!("\n  {}: {old} → {new}", reason.path)
            })
            .collect();
        let message = format!("{whose} {state}, so nothing was called{reasons}");
        return Err(Hinted::new(message, "`selu apply` makes it as planned").into());
    }
    Ok((&gateway.name, resident))
}

/// Whether an instance's resident runs; where `[runtime] idle_stop` is set, it need not.
pub(crate) fn runs(planned: &Planned, key: &InstanceKey) -> bool {
    let instance = planned.plan.instances.get(key);
    let resident = instance.and_then(|instance| instance.resident.as_ref());
    let found = resident.and_then(|one| planned.observed.containers.get(&one.name));
    found.is_some_and(|found| found.state == ContainerState::Running)
}

impl Desk<'_> {
    /// Starts a resident that was stopped while nobody called it (X4).
    pub(crate) async fn wake(&self, planned: &Planned, key: &InstanceKey) -> anyhow::Result<()> {
        if !self.loaded.project.settings.idle_stop {
            return Ok(());
        }
        // It may have been stopped since it was looked at.
        let (_, seen) = resident(planned, key)?;
        let found = self.engine.container(&seen.name).await?;
        if found.is_some_and(|found| found.state == ContainerState::Running) {
            return Ok(());
        }
        self.holding(planned, "invoke", async |boot: Option<String>| {
            let planned = self.look().await?;
            let Planned { plan, observed, .. } = &planned;
            leaks::ensure(self.printer, self.engine, boot.as_deref(), plan, observed).await?;
            let (_, resident) = resident(&planned, key)?;
            if runs(&planned, key) {
                return Ok(());
            }
            let (plan, changes) = session_plan(&planned.plan, key, resident.clone());
            let start = |mut change: Change| {
                change.action = Action::Start;
                change
            };
            let changes = ChangeSet {
                changes: changes.changes.into_iter().map(start).collect(),
            };
            self.carry_out(&planned, &plan, &changes).await
        })
        .await
    }

    /// A session's container, made if there is none that is right. A workspace from before is kept.
    pub(crate) async fn obtain(
        &self,
        planned: &Planned,
        key: &InstanceKey,
        who: &Who,
    ) -> anyhow::Result<PlannedContainer> {
        let wanted = self.draft(planned, key, who)?;
        if Open::is_right(&planned.observed, &wanted) {
            return Ok(wanted);
        }
        let made = self.holding(planned, "invoke", async |boot: Option<String>| {
            // Whoever had the hold before may have made it.
            let planned = self.look().await?;
            let Planned { plan, observed, .. } = &planned;
            leaks::ensure(self.printer, self.engine, boot.as_deref(), plan, observed).await?;
            let wanted = self.draft(&planned, key, who)?;
            if Open::is_right(&planned.observed, &wanted) {
                return Ok(wanted);
            }
            self.close(&planned, BTreeSet::from([wanted.name])).await?;
            let planned = self.look().await?;
            self.open(&planned, key, self.draft(&planned, key, who)?)
                .await
        });
        made.await
    }

    async fn open(
        &self,
        planned: &Planned,
        key: &InstanceKey,
        wanted: PlannedContainer,
    ) -> anyhow::Result<PlannedContainer> {
        let (plan, changes) = session_plan(&planned.plan, key, wanted.clone());
        self.carry_out(planned, &plan, &changes).await?;
        Ok(wanted)
    }

    async fn carry_out(
        &self,
        planned: &Planned,
        plan: &Plan,
        changes: &ChangeSet,
    ) -> anyhow::Result<()> {
        let (due, unpulled) = (BTreeSet::new(), BTreeMap::new());
        let job = Job {
            engine: self.engine,
            plan,
            changes,
            observed: &planned.observed,
            due: &due,
            unpulled: &unpulled,
            secrets: self.secrets,
            events: self.printer,
            stop: self.stop,
            ready_timeout: DEFAULT_TIMEOUT,
        };
        let report = apply::apply(&job).await;
        if report.interrupted {
            let message = "interrupted; the container was not made ready, and nothing was called";
            return Err(Ending::interrupted_in(message).into());
        }
        for (_, outcome) in report.outcomes {
            let why = match outcome {
                apply::Outcome::Unchanged | apply::Outcome::Done => continue,
                apply::Outcome::Failed(why) | apply::Outcome::NotStarted(why) => why,
            };
            return Err(anyhow::Error::msg(why).context("the container could not be made ready"));
        }
        Ok(())
    }

    /// Closes the sessions that are chosen, with their workspaces, and says which. What keeps one from being called
    /// meanwhile is kept until it is closed.
    pub(crate) async fn close_all(
        &self,
        planned: &Planned,
        chosen: impl AsyncFn(&Open) -> anyhow::Result<Option<Idle>>,
    ) -> anyhow::Result<Vec<Open>> {
        self.holding(planned, "close sessions", async |_| {
            let planned = self.look().await?;
            let mut closing = Vec::new();
            let mut uncalled = Vec::new();
            for open in Open::all(&planned.observed) {
                if let Some(idle) = chosen(&open).await? {
                    closing.push(open);
                    uncalled.push(idle);
                }
            }
            let names = closing.iter().map(|open| open.name.clone()).collect();
            self.close(&planned, names).await?;
            for open in &closing {
                self.remove_workspace(&planned, &open.instance, &open.who)
                    .await?;
                let most = planned
                    .plan
                    .instances
                    .get(&open.instance)
                    .map_or(1, at_once);
                slots::forget(&self.loaded.root, &open.name, most)?;
            }
            Ok(closing)
        })
        .await
    }

    /// Removes what is left of one session of which no container exists: its workspace.
    pub(crate) async fn close_rest(
        &self,
        planned: &Planned,
        key: &InstanceKey,
        who: &Who,
    ) -> anyhow::Result<()> {
        self.holding(planned, "close sessions", async |_| {
            let planned = self.look().await?;
            let name = who.container_name(&planned.plan.project, key);
            self.close(&planned, BTreeSet::from([name])).await?;
            self.remove_workspace(&planned, key, who).await
        })
        .await
    }

    /// Closes whatever nobody has called for as long as agent or manifest say (X4). What the command did is done, whether
    /// this succeeds or not.
    pub(crate) async fn sweep(&self, planned: &Planned) {
        if let Err(error) = self.close_idle(planned).await {
            self.printer.warn(&format!(
                "idle sessions were not closed: {}",
                shown(&self.printer.clean(&format!("{error:#}")))
            ));
        }
    }

    async fn close_idle(&self, planned: &Planned) -> anyhow::Result<()> {
        if self.loaded.project.settings.idle_stop {
            self.stop_idle(planned).await?;
        }
        let due = |open: &Open| self.is_due(planned, open);
        let mut any = false;
        for open in Open::all(&planned.observed) {
            any |= due(&open)?.is_some();
        }
        if !any {
            return Ok(());
        }
        for open in self.close_all(planned, async |open| due(open)).await? {
            self.printer.say(&format!(
                "{}: the session {} was idle and is closed",
                open.instance,
                named(&open.who)
            ));
        }
        Ok(())
    }

    /// Stops residents that nobody has called, where that is wished.
    async fn stop_idle(&self, planned: &Planned) -> anyhow::Result<()> {
        if self.idle_residents(planned)?.is_empty() {
            return Ok(());
        }
        self.holding(planned, "stop what is idle", async |_| {
            let planned = self.look().await?;
            // Whoever calls one meanwhile waits, finds it stopped, and starts it.
            for (key, name, _idle) in self.idle_residents(&planned)? {
                self.engine.stop(&name, GRACE).await?;
                let text = format!("{key} was idle and is stopped; the next call starts it");
                self.printer.say(&text);
            }
            Ok(())
        })
        .await
    }

    /// Those that run as planned and were not called for so long; none that is still to be asked for its tools.
    fn idle_residents(
        &self,
        planned: &Planned,
    ) -> anyhow::Result<Vec<(InstanceKey, String, Idle)>> {
        let asked = self
            .loaded
            .due(&planned.plan, &Journal::load(&self.loaded.root)?);
        let mut idle = Vec::new();
        for (key, instance) in &planned.plan.instances {
            let subject = Subject::Instance(key.clone());
            let mut changes = planned.changes.changes.iter();
            let right =
                changes.any(|change| change.subject == subject && change.action == Action::NoOp);
            let (Some(resident), true) = (&instance.resident, right && runs(planned, key)) else {
                continue;
            };
            if !asked.contains(key)
                && let Some(since) = self.idle_for(planned, key, &resident.name)?
            {
                idle.push((key.clone(), resident.name.clone(), since));
            }
        }
        Ok(idle)
    }

    fn is_due(&self, planned: &Planned, open: &Open) -> anyhow::Result<Option<Idle>> {
        self.idle_for(planned, &open.instance, &open.name)
    }

    /// How long a container has not been called, if that is as long as agent or manifest say.
    fn idle_for(
        &self,
        planned: &Planned,
        key: &InstanceKey,
        name: &str,
    ) -> anyhow::Result<Option<Idle>> {
        let agent = self.loaded.project.agents.get(key.agent());
        let instance = planned.plan.instances.get(key);
        let (Some(agent), Some(instance)) = (agent, instance) else {
            // What is not in the directory any more is for apply to remove.
            return Ok(None);
        };
        let limit = match instance.sharing.mode {
            SharingMode::Shared => Duration::from_secs(instance.sharing.idle_timeout_seconds),
            SharingMode::Exclusive => Duration::from_secs(agent.idle_timeout_minutes * 60),
        };
        let idle = slots::idle(&self.loaded.root, name, at_once(instance))?;
        Ok(idle.filter(|idle| idle.time >= limit))
    }

    async fn look(&self) -> anyhow::Result<Planned> {
        let planned = self
            .loaded
            .plan(self.printer, self.engine.view(), false)
            .await?;
        planned
            .ok_or_else(|| Ending::stale("the project has changed meanwhile; say it again").into())
    }

    /// What a session's container is to be; it keeps the subnet that it has.
    fn draft(
        &self,
        planned: &Planned,
        key: &InstanceKey,
        who: &Who,
    ) -> anyhow::Result<PlannedContainer> {
        let (_, resident) = resident(planned, key)?;
        let project = &self.loaded.project;
        let name = who.container_name(&planned.plan.project, key);
        let own = planned.observed.networks.get(&name);
        let subnet = own
            .and_then(|network| network.subnet)
            .or_else(|| free_subnet(project, &planned.observed, resident.network.subnet, &name));
        let Some(subnet) = subnet else {
            let message = format!("no subnet is left for the session {} of {key}", named(who));
            let hint = "close sessions with `selu sessions close`, or give [engine] subnets in selu.toml a larger range";
            return Err(Hinted::new(message, hint).into());
        };
        Ok(container(&planned.plan.project, key, resident, who, subnet))
    }

    async fn close(&self, planned: &Planned, names: BTreeSet<String>) -> anyhow::Result<()> {
        let (due, unpulled) = (BTreeSet::new(), BTreeMap::new());
        Ok(self.job(planned, &due, &unpulled).close(&names).await?)
    }

    async fn remove_workspace(
        &self,
        planned: &Planned,
        key: &InstanceKey,
        who: &Who,
    ) -> anyhow::Result<()> {
        let (due, unpulled) = (BTreeSet::new(), BTreeMap::new());
        let job = self.job(planned, &due, &unpulled);
        Ok(job.remove_workspace(key, who).await?)
    }

    fn job<'a>(
        &'a self,
        planned: &'a Planned,
        due: &'a BTreeSet<InstanceKey>,
        unpulled: &'a BTreeMap<String, String>,
    ) -> Job<'a> {
        Job {
            engine: self.engine,
            plan: &planned.plan,
            changes: &planned.changes,
            observed: &planned.observed,
            due,
            unpulled,
            secrets: self.secrets,
            events: self.printer,
            stop: self.stop,
            ready_timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Sessions are opened and closed under the project's hold, so that no apply goes on meanwhile.
    async fn holding<T>(
        &self,
        planned: &Planned,
        operation: &str,
        work: impl AsyncFnOnce(Option<String>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let Some(gateway) = &planned.plan.gateway else {
            return Err(anyhow::Error::msg(
                "the project has no gateway, so it has no sessions",
            ));
        };
        let project = &planned.plan.project;
        let image = &gateway.spec.image;
        let mut hold = held::take(self.engine, project, image, operation, HOLD_WAIT).await?;
        let boot = hold.boot().await;
        let result = held::under(&mut hold, self.printer, self.stop, work(boot)).await;
        held::release(hold, self.engine, self.printer).await;
        result
    }
}

/// `notes of anna`.
pub(crate) fn named(who: &Who) -> String {
    let session = shown(&who.session);
    match who.user.as_str() {
        "" => format!("`{session}`"),
        user => format!("`{session}` of user `{}`", shown(user)),
    }
}
