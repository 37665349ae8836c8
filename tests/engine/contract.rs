//! The engine in memory behaves as the real one: one script, twice, and every outcome compared.

use std::time::Duration;

use selu_compiler::observed::ContainerState;
use selu_runtime::engine::fake::Fake;
use selu_runtime::engine::{Engine, EngineError, EngineResult};
use selu_runtime::gateway::{self, GatewayError, push_policy, standing};
use selu_runtime::hold::{HoldError, Info, take};

use crate::world::World;

/// The script's record, a line a step.
#[derive(Default)]
struct Record(Vec<String>);

impl Record {
    fn note<T>(&mut self, step: &str, result: &EngineResult<T>) {
        let outcome = match result {
            Ok(_) => "done",
            Err(error) => kind(error),
        };
        self.0.push(format!("{step}: {outcome}"));
    }

    fn say(&mut self, step: &str, outcome: impl std::fmt::Debug) {
        self.0.push(format!("{step}: {outcome:?}"));
    }
}

fn kind(error: &EngineError) -> &'static str {
    match error {
        EngineError::Unreachable { .. } => "unreachable",
        EngineError::Permission { .. } => "permission",
        EngineError::Timeout { .. } => "timeout",
        EngineError::Conflict { .. } => "conflict",
        EngineError::NotFound { .. } => "not found",
        EngineError::RateLimited { .. } => "rate limited",
        EngineError::Unsupported { .. } => "unsupported",
        EngineError::Unauthorized { .. } => "unauthorized",
        EngineError::Tls { .. } => "no tls",
        EngineError::Refused { .. } => "refused",
        EngineError::Protocol { .. } => "protocol",
    }
}

async fn state(engine: &dyn Engine, name: &str) -> Option<ContainerState> {
    engine
        .container(name)
        .await
        .unwrap()
        .map(|found| found.state)
}

async fn objects(world: &World, engine: &dyn Engine) -> Vec<String> {
    let mut r = Record::default();
    let (a, b) = (world.network("a", 1), world.network("b", 2));
    let labels = world.labels("resident");
    let mut spec = world.spec(&world.image, "resident");
    spec.command = Some(vec!["gateway".to_owned(), "hold".to_owned()]);
    let (first, second) = (a.name.as_str(), b.name.as_str());

    r.note("network", &engine.create_network(&a, &labels).await);
    r.note("network again", &engine.create_network(&a, &labels).await);
    let mut overlapping = b.clone();
    overlapping.subnet = a.subnet;
    overlapping.bridge = a.bridge;
    r.note(
        "overlap",
        &engine.create_network(&overlapping, &labels).await,
    );
    r.note("other network", &engine.create_network(&b, &labels).await);

    let at = Some(a.capability);
    r.note(
        "create",
        &engine.create_container(first, &spec, first, at, true).await,
    );
    r.say("created", state(engine, first).await);
    r.note(
        "create again",
        &engine.create_container(first, &spec, first, at, true).await,
    );
    let mut imageless = spec.clone();
    imageless.image = "selu.local/nothing:1".to_owned();
    r.note(
        "no image",
        &engine
            .create_container("selu_x", &imageless, "none", None, false)
            .await,
    );
    r.note("start", &engine.start(first).await);
    r.note("start again", &engine.start(first).await);
    r.say("started", state(engine, first).await);
    r.note("start nothing", &engine.start("selu_nothing").await);
    let id = engine.container(first).await.unwrap().unwrap().id;
    r.say("remove if ended", engine.remove_ended(&id).await.unwrap());

    r.note("attach", &engine.connect(second, first, b.capability).await);
    r.note(
        "attach again",
        &engine.connect(second, first, b.capability).await,
    );
    r.note(
        "attach elsewhere",
        &engine.connect(second, first, b.gateway).await,
    );
    r.note(
        "attach to nothing",
        &engine.connect("selu_nothing", first, b.gateway).await,
    );
    r.note(
        "attach nothing",
        &engine.connect(second, "selu_nothing", b.gateway).await,
    );
    r.note("remove used network", &engine.remove_network(second).await);
    let mut taken = spec.clone();
    taken.labels.insert("n".to_owned(), "2".to_owned());
    r.note(
        "create beside",
        &engine
            .create_container(second, &taken, first, at, true)
            .await,
    );
    r.note("address taken", &engine.start(second).await);
    r.note("detach", &engine.disconnect(second, first).await);
    r.note("detach again", &engine.disconnect(second, first).await);

    let mut wider = spec.clone();
    wider.memory_bytes *= 2;
    wider.memory_swap_bytes *= 2;
    wider.restart = true;
    r.note("update", &engine.update_container(first, &wider).await);
    let found = engine.container(first).await.unwrap().unwrap();
    r.say("updated", found.spec == wider);
    r.note(
        "update nothing",
        &engine.update_container("selu_nothing", &wider).await,
    );

    r.note(
        "exec in stopped",
        &engine.exec(second, "1:1", &["/selu".to_owned()]).await,
    );
    r.note("stop", &engine.stop(first, Duration::ZERO).await);
    let ended = matches!(
        state(engine, first).await,
        Some(ContainerState::Exited { .. })
    );
    r.say("stopped", ended);
    r.note("stop again", &engine.stop(first, Duration::ZERO).await);
    r.note(
        "stop nothing",
        &engine.stop("selu_nothing", Duration::ZERO).await,
    );
    r.say("remove if ended", engine.remove_ended(&id).await.unwrap());
    r.say("gone", state(engine, first).await);
    r.note("remove", &engine.remove_container(second).await);
    r.note("remove again", &engine.remove_container(second).await);

    let volume = format!("selu_{}_data", world.project);
    let seeding = engine.seed_volume(&volume, "selu.local/nothing:1", "/workspace", &labels);
    r.note("hand over without image", &seeding.await);
    r.note("volume", &engine.create_volume(&volume, &labels).await);
    r.note(
        "volume again",
        &engine.create_volume(&volume, &labels).await,
    );
    let mut foreign = labels.clone();
    foreign.insert("dev.selu.project".to_owned(), "other".to_owned());
    r.note(
        "volume of others",
        &engine.create_volume(&volume, &foreign).await,
    );
    let seeding = engine.seed_volume(&volume, &world.image, "/workspace", &labels);
    r.note("hand over", &seeding.await);
    spec.volumes = [("/workspace".to_owned(), volume.clone())].into();
    r.note(
        "create with it",
        &engine
            .create_container(first, &spec, "none", None, false)
            .await,
    );
    r.note("remove used volume", &engine.remove_volume(&volume).await);
    r.note("remove", &engine.remove_container(first).await);
    r.note("remove volume", &engine.remove_volume(&volume).await);

    for name in [first, second] {
        r.note("remove network", &engine.remove_network(name).await);
    }
    let observed = engine.observe(&world.project, &[]).await.unwrap();
    r.say(
        "left",
        observed.containers.len() + observed.networks.len() + observed.volumes.len(),
    );
    r.0
}

async fn roles(world: &World, engine: &dyn Engine) -> Vec<String> {
    let mut r = Record::default();
    let planned = world.gateway();
    let gateway = planned.name.as_str();
    let a = world.network("a", 1);
    let role = |result: Result<_, GatewayError>| match result {
        Ok(generation) => format!("generation {generation}"),
        Err(GatewayError::Role { code, .. }) => format!("code {code}"),
        Err(GatewayError::Engine(error)) => kind(&error).to_owned(),
        Err(error) => error.to_string(),
    };
    let ack = standing(engine, gateway)
        .await
        .map(|found| found.ack.generation);
    r.say("no gateway", role(ack));
    let made = gateway::ensure(engine, &world.project, &planned, &[]).await;
    r.say("made", made.unwrap());
    let made = gateway::ensure(engine, &world.project, &planned, &[]).await;
    r.say("made again", made.unwrap());
    let ack = standing(engine, gateway)
        .await
        .map(|found| found.ack.generation);
    r.say("no policy", role(ack));
    for generation in [4, 4, 5, 5, 9, 4] {
        let pushed = push_policy(engine, gateway, &world.policy(generation, &[&a])).await;
        r.say("push", role(pushed.map(|ack| ack.generation)));
    }
    let pipe = gateway::pipe(engine, gateway, &a.name).await.map(|_| 0);
    r.say("pipe without network", role(pipe));
    let pipe = gateway::pipe(engine, gateway, "selu_nothing")
        .await
        .map(|_| 0);
    r.say("pipe without rule", role(pipe));
    engine.remove_container(gateway).await.unwrap();
    let made = gateway::ensure(engine, &world.project, &planned, &[]).await;
    r.say("made anew", made.unwrap());
    let ack = standing(engine, gateway)
        .await
        .map(|found| found.ack.generation);
    r.say("kept", role(ack));
    r.0
}

async fn holding(world: &World, engine: &dyn Engine) -> Vec<String> {
    let mut r = Record::default();
    let info = Info {
        host: "desk".to_owned(),
        user: None,
        pid: 7,
        operation: "apply".to_owned(),
        since: "now".to_owned(),
    };
    let get = || take(engine, &world.project, &world.image, &info, Duration::ZERO);
    let hold = get().await.unwrap();
    let name = hold.name().to_owned();
    let held = get().await.map(|_| ());
    r.say(
        "held",
        held.map_err(|error| error.to_string().replace(&world.project, "P")),
    );
    r.say("running", state(engine, &name).await);
    hold.release(engine).await.unwrap();
    r.say("released", state(engine, &name).await);
    let hold = get().await.unwrap();
    drop(hold);
    let long = Duration::from_secs(60);
    let hold = take(engine, &world.project, &world.image, &info, long).await;
    r.say(
        "after a drop",
        hold.as_ref().map(|_| ()).map_err(HoldError::to_string),
    );
    let mut hold = hold.unwrap();
    engine.remove_container(&name).await.unwrap();
    let _ = hold.lost().await;
    r.say("lost", state(engine, &name).await);
    r.0
}

fn fake(world: &World) -> Fake {
    let fake = Fake::new();
    fake.edit(|there| {
        let facts = selu_compiler::observed::ImageFacts {
            id: Some(format!("sha256:{}", "ab".repeat(32))),
            digest: None,
            volumes: Vec::new(),
            labels: world.labels("gateway"),
        };
        let image = selu_runtime::engine::fake::Image::new(facts);
        there.images.insert(world.image.clone(), image);
    });
    fake
}

#[tokio::test]
async fn objects_follow_the_same_rules_in_memory() {
    let world = World::new("objects").await;
    let real = objects(&world, &world.engine).await;
    assert_eq!(objects(&world, &fake(&world)).await, real);
}

#[tokio::test]
async fn the_gateways_roles_answer_the_same_in_memory() {
    let world = World::new("answers").await;
    let real = roles(&world, &world.engine).await;
    assert_eq!(roles(&world, &fake(&world)).await, real);
}

#[tokio::test]
async fn holds_exclude_the_same_in_memory() {
    let world = World::new("holding").await;
    let real = holding(&world, &world.engine).await;
    assert_eq!(holding(&world, &fake(&world)).await, real);
}
