//! Every test is a script on an engine in memory: from a project to a plan, to steps, to what is there afterwards.

mod discovery;
mod egress;
mod faults;
mod removal;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use selu_compiler::diff;
use selu_compiler::lock::Lock;
use selu_compiler::model::{Capability, Filesystem, Limits, Project};
use selu_compiler::observed::{ContainerState, ImageFacts};
use selu_compiler::resolve::resolve;

use super::*;
use crate::engine::fake::{Fake, Image};
use crate::events::{Events, Quiet};
use crate::observe::observe;
use crate::testing::server::Scripted;
use crate::testing::{capability, project};

const KEY: &str = "agent/weather";

/// A project on an engine in memory.
struct Lab {
    fake: Fake,
    project: Project,
    secrets: Secrets,
    lock: Mutex<Option<Lock>>,
    events: Box<dyn Events>,
}

impl Lab {
    /// One agent with these capabilities, whose images are there and answer.
    fn new(capabilities: Vec<Capability>) -> Self {
        let fake = Fake::new();
        let tag = selu_compiler::plan::spec::gateway_image("test");
        fake.edit(|world| world.images.insert(tag, Image::new(facts("gateway"))));
        let lab = Self {
            fake,
            project: project(vec![("agent", capabilities)]),
            secrets: Secrets::default(),
            lock: Mutex::default(),
            events: Box::new(Quiet),
        };
        for (_, _, capability) in lab.project.instances() {
            lab.image(
                &capability.image.written,
                "1",
                serving(Scripted::listing("[]")),
            );
        }
        lab
    }

    /// Puts an image under a name, as a build would.
    fn image(&self, written: &str, content: &str, behave: impl FnOnce(&mut Image)) {
        let mut image = Image::new(facts(&format!("{written} {content}")));
        behave(&mut image);
        self.fake.edit(|world| {
            // The image that the name had before goes on existing under its id, as on an engine.
            if let Some(old) = world.images.remove(written)
                && old.facts.id != image.facts.id
            {
                let id = old.facts.id.clone().unwrap_or_default();
                world.images.insert(id, old);
            }
            world.images.insert(written.to_owned(), image);
        });
    }

    async fn plan(&self) -> (Observed, Plan, ChangeSet) {
        let lock = self.lock.lock().unwrap().clone();
        let observed = observe(&self.fake, &self.project, lock.as_ref())
            .await
            .unwrap();
        let resolved = resolve(&self.project, lock.as_ref(), Some(&observed));
        let plan = resolved
            .plan
            .unwrap_or_else(|| panic!("{:?}", resolved.diagnostics));
        let changes = diff::changes(&plan, &observed);
        (observed, plan, changes)
    }

    async fn apply(&self) -> Report {
        self.apply_with(&Stop::default(), &BTreeSet::new()).await
    }

    async fn apply_with(&self, stop: &Stop, due: &BTreeSet<InstanceKey>) -> Report {
        let (observed, plan, changes) = self.plan().await;
        let job = Job {
            engine: &self.fake,
            plan: &plan,
            changes: &changes,
            observed: &observed,
            due,
            unpulled: &BTreeMap::new(),
            secrets: &self.secrets,
            events: self.events.as_ref(),
            stop,
            ready_timeout: Duration::from_millis(400),
        };
        apply(&job).await
    }

    /// Names of what is there, without generations, and what is wrong with it.
    async fn assert_as_planned(&self, context: &str) {
        let (observed, plan, changes) = self.plan().await;
        assert!(changes.is_empty(), "{context}: {changes:#?}");
        let gateway = plan.gateway.as_ref().unwrap();
        assert_eq!(
            policy_state(&self.fake, "test", gateway).await,
            Ok(()),
            "{context}"
        );
        let containers = plan.instances.len() + 1;
        assert_eq!(observed.containers.len(), containers, "{context}");
        assert_eq!(observed.networks.len(), containers, "{context}");
        for (name, container) in &observed.containers {
            assert_eq!(
                container.state,
                ContainerState::Running,
                "{context}: {name}"
            );
            assert!(
                container.spec.restart,
                "{context}: {name} is not kept running"
            );
        }
    }
}

fn facts(content: &str) -> ImageFacts {
    let digest = selu_compiler::plan::hash::sha256(content.as_bytes());
    ImageFacts {
        id: Some(digest),
        digest: None,
        volumes: Vec::new(),
        labels: BTreeMap::new(),
    }
}

fn serving(server: Scripted) -> impl FnOnce(&mut Image) {
    move |image| image.serve = Some(std::sync::Arc::new(move |stream| server.serve(stream)))
}

fn workspace(id: &str) -> Capability {
    Capability {
        class: selu_compiler::model::Class::Environment,
        filesystem: Filesystem::Workspace,
        ..capability(id)
    }
}

fn failure(report: &Report) -> &str {
    report
        .outcomes
        .iter()
        .find_map(|(_, outcome)| match outcome {
            Outcome::Failed(why) => Some(why.as_str()),
            _ => None,
        })
        .unwrap_or_else(|| panic!("nothing failed: {report:#?}"))
}

fn all_done(report: &Report) -> bool {
    report
        .outcomes
        .iter()
        .all(|(_, outcome)| outcome.is_success())
}

#[tokio::test]
async fn a_second_apply_has_nothing_to_do_and_writes_nothing() {
    let lab = Lab::new(vec![capability("weather"), workspace("files")]);
    assert!(all_done(&lab.apply().await));
    lab.assert_as_planned("first").await;
    lab.fake.writes();
    let report = lab.apply().await;
    assert!(
        report
            .outcomes
            .iter()
            .all(|(_, outcome)| matches!(outcome, Outcome::Unchanged))
    );
    assert_eq!(lab.fake.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn changed_limits_are_set_on_the_running_container_and_then_nothing_is_left_to_do() {
    let mut lab = Lab::new(vec![capability("weather")]);
    lab.apply().await;
    let name = "selu_test_agent_weather_1";
    let before = lab.plan().await.0.containers[name].id.clone();
    let limits = |lab: &mut Lab, change: &dyn Fn(&mut Limits)| {
        let agent = lab.project.agents.get_mut("agent").unwrap();
        let weather = agent.capabilities.get_mut("weather").unwrap();
        change(&mut Arc::make_mut(weather).limits);
    };
    type Case<'a> = (&'a str, &'a dyn Fn(&mut Limits));
    let changes: [Case<'_>; 4] = [
        ("raised", &|limits| limits.memory_mb = 256),
        ("cpu", &|limits| limits.nano_cpus = 250_000_000),
        ("pids", &|limits| limits.pids = 32),
        ("lowered", &|limits| limits.memory_mb = 64),
    ];
    for (what, change) in changes {
        limits(&mut lab, change);
        lab.fake.writes();
        assert!(all_done(&lab.apply().await), "{what}");
        let writes = lab.fake.writes();
        let kinds = ["create", "remove", "start", "stop"];
        assert!(
            !writes
                .iter()
                .any(|write| kinds.iter().any(|kind| write.starts_with(kind))),
            "{what}: {writes:?}"
        );
        lab.assert_as_planned(what).await;
        lab.apply().await;
        assert_eq!(lab.fake.writes(), Vec::<String>::new(), "{what}, twice");
    }
    assert_eq!(lab.plan().await.0.containers[name].id, before);
}

#[tokio::test]
async fn a_container_is_created_only_after_its_policy_was_acknowledged() {
    let lab = Lab::new(vec![capability("weather")]);
    lab.apply().await;
    lab.image("weather:1", "2", serving(Scripted::listing("[]")));
    lab.fake.writes();
    // The first delivery of this apply is the new generation's.
    lab.fake.fail(
        "run /selu gateway policy in",
        crate::engine::fake::When::Before,
    );
    let report = lab.apply().await;
    assert!(failure(&report).contains("policy"), "{}", failure(&report));
    let writes = lab.fake.writes();
    assert!(
        !writes
            .iter()
            .any(|write| write.starts_with("create container")),
        "{writes:?}"
    );
}

#[tokio::test]
async fn an_image_that_ends_at_once_never_takes_the_working_one_down() {
    let lab = Lab::new(vec![capability("weather")]);
    lab.apply().await;
    lab.image("weather:1", "broken", |image| {
        image.ends = Some((3, "no such file: config".to_owned()));
    });
    let report = lab.apply().await;
    let why = failure(&report);
    assert!(
        why.contains("exit code 3") && why.contains("no such file: config"),
        "{why}"
    );

    let (observed, _, changes) = lab.plan().await;
    assert!(!changes.is_empty(), "what is left to do is planned again");
    let names: Vec<&String> = observed.containers.keys().collect();
    assert_eq!(names, ["selu_test_agent_weather_1", "selu_test_gateway"]);
    assert_eq!(observed.networks.len(), 2, "the new network is gone");
    let old = &observed.containers["selu_test_agent_weather_1"];
    assert_eq!(old.state, ContainerState::Running);
    let client = Client::connect(&lab.fake, "selu_test_gateway", "selu_test_agent_weather_1");
    client
        .await
        .unwrap()
        .health(Duration::from_secs(5))
        .await
        .unwrap();

    lab.image("weather:1", "mended", serving(Scripted::listing("[]")));
    assert!(all_done(&lab.apply().await));
    lab.assert_as_planned("mended").await;
}

/// Every container that runs has written a line by the next event.
struct Logging(Fake);

impl Events for Logging {
    fn emit(&self, _event: Event) {
        self.0.edit(|world| {
            for container in world.containers.values_mut() {
                container.log = "listening on 127.0.0.1 with hunter2-secret".to_owned();
            }
        });
    }
}

#[tokio::test]
async fn a_container_that_never_listens_says_where_it_should_and_quotes_its_log_without_secrets() {
    let mut weather = capability("weather");
    weather.credentials = vec![selu_compiler::model::Credential {
        name: "KEY".to_owned(),
        scope: selu_compiler::model::CredentialScope::System,
        required: true,
        description: String::new(),
    }];
    let mut lab = Lab::new(vec![weather]);
    let environment = [(
        "SELU_CRED__AGENT__WEATHER__KEY".into(),
        "hunter2-secret".into(),
    )];
    lab.secrets = Secrets::gather(&lab.project, environment, None).unwrap().0;
    lab.image("weather:1", "deaf", |image| image.serve = None);
    lab.events = Box::new(Logging(lab.fake.clone()));
    let report = lab.apply().await;
    let why = failure(&report);
    assert!(why.contains("0.0.0.0:50051"), "{why}");
    assert!(
        why.contains("listening on 127.0.0.1 with [secret]"),
        "{why}"
    );
    assert!(!why.contains("hunter2"), "{why}");
}

#[tokio::test]
async fn an_older_dialect_is_named_at_once() {
    let lab = Lab::new(vec![capability("weather")]);
    let older = Scripted::listing("[]").with_health(|| Err(tonic::Status::unimplemented("")));
    lab.image("weather:1", "older", serving(older));
    let report = lab.apply().await;
    assert!(
        failure(&report).contains("CapabilityService"),
        "{}",
        failure(&report)
    );
}

#[tokio::test]
async fn one_failure_leaves_the_others_done_and_is_the_only_remainder() {
    let lab = Lab::new(vec![
        capability("weather"),
        capability("mail"),
        capability("notes"),
    ]);
    lab.image("mail:1", "broken", |image| {
        image.ends = Some((1, String::new()))
    });
    let report = lab.apply().await;
    let states: Vec<(String, bool)> = report
        .outcomes
        .iter()
        .map(|(change, outcome)| {
            (
                crate::events::subject_name(&change.subject),
                outcome.is_success(),
            )
        })
        .collect();
    assert_eq!(states.iter().filter(|(_, ok)| !ok).count(), 1, "{states:?}");
    let (_, _, changes) = lab.plan().await;
    let left: Vec<&Change> = changes
        .changes
        .iter()
        .filter(|change| change.action != Action::NoOp)
        .collect();
    assert_eq!(left.len(), 1, "{left:#?}");
    assert_eq!(
        left[0].subject,
        Subject::Instance(InstanceKey::new("agent", "mail"))
    );
}

#[tokio::test]
async fn what_is_stopped_paused_or_limited_otherwise_is_mended_in_place() {
    let lab = Lab::new(vec![capability("weather")]);
    lab.apply().await;
    let name = "selu_test_agent_weather_1";
    type Edit = fn(&mut selu_compiler::observed::ObservedContainer);
    let edits: [(&str, Edit); 4] = [
        ("stopped", |found| {
            found.state = ContainerState::Exited {
                code: 0,
                oom_killed: false,
            };
        }),
        ("paused", |found| found.state = ContainerState::Paused),
        ("more memory", |found| found.spec.memory_bytes *= 2),
        ("not kept running", |found| found.spec.restart = false),
    ];
    for (what, edit) in edits {
        lab.fake
            .edit(|world| edit(&mut world.containers.get_mut(name).unwrap().observed));
        assert!(all_done(&lab.apply().await), "{what}");
        lab.assert_as_planned(what).await;
        let kept = lab.fake.edit(|world| world.containers.contains_key(name));
        assert!(kept, "{what}: mended, not replaced");
    }
}

#[tokio::test]
async fn what_a_killed_apply_left_is_kept_running_only_once_it_was_ready() {
    let lab = Lab::new(vec![capability("weather")]);
    lab.apply().await;
    let name = "selu_test_agent_weather_1";
    lab.image("weather:1", "1", |image| image.serve = None);
    lab.fake.edit(|world| {
        world
            .containers
            .get_mut(name)
            .unwrap()
            .observed
            .spec
            .restart = false;
    });
    let report = lab.apply().await;
    assert!(
        failure(&report).contains("not ready"),
        "{}",
        failure(&report)
    );
    let restart = lab.fake.edit(|world| {
        world
            .containers
            .get_mut(name)
            .unwrap()
            .observed
            .spec
            .restart
    });
    assert!(!restart, "W2");
    lab.image("weather:1", "1", serving(Scripted::listing("[]")));
    lab.apply().await;
    lab.assert_as_planned("ready at last").await;
}

#[tokio::test]
async fn an_interrupt_before_anything_was_begun_touches_nothing() {
    let lab = Lab::new(vec![capability("weather")]);
    lab.apply().await;
    lab.image("weather:1", "2", serving(Scripted::listing("[]")));
    lab.fake.writes();
    let stop = Stop::default();
    stop.request();
    let report = lab.apply_with(&stop, &BTreeSet::new()).await;
    assert!(report.interrupted);
    assert_eq!(lab.fake.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn an_interrupt_while_waiting_undoes_the_new_generation() {
    let lab = Lab::new(vec![capability("weather")]);
    lab.apply().await;
    let stop = Stop::default();
    let wish = stop.clone();
    let slow = Scripted::listing("[]").with_health(move || {
        wish.request();
        Ok(false)
    });
    lab.image("weather:1", "slow", serving(slow));
    let report = lab.apply_with(&stop, &BTreeSet::new()).await;
    assert!(report.interrupted);
    let (observed, _, _) = lab.plan().await;
    let names: Vec<&String> = observed.containers.keys().collect();
    assert_eq!(names, ["selu_test_agent_weather_1", "selu_test_gateway"]);
    assert_eq!(observed.networks.len(), 2);
}
