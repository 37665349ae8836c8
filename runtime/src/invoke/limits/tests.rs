use super::*;
use crate::engine::fake::Fake;
use crate::slots;
use selu_compiler::plan::spec::helper_spec;
use selu_compiler::plan::{ContainerSpec, PlannedNetwork};

const NAME: &str = "selu_t_a_b_1";

fn container(spec: ContainerSpec) -> PlannedContainer {
    PlannedContainer {
        generation: 1,
        name: NAME.to_owned(),
        network: PlannedNetwork::new(NAME.to_owned(), "10.0.0.0/28".parse().unwrap()),
        volumes: Default::default(),
        spec,
        spec_hash: String::new(),
    }
}

/// An engine with one running container in which nothing listens, and bounds for it.
async fn with_bounds<T>(cores: f64, test: impl AsyncFnOnce(&Fake, &Bounds<'_>) -> T) -> T {
    let engine = Fake::new();
    let spec = helper_spec("t", "resident", Vec::new());
    let facts = selu_compiler::observed::ImageFacts {
        id: Some("sha256:0".to_owned()),
        digest: None,
        volumes: Vec::new(),
        labels: Default::default(),
    };
    engine.edit(|world| {
        let image = crate::engine::fake::Image::new(facts);
        world.images.insert(spec.image.clone(), image);
    });
    let container = container(spec);
    let labels = Default::default();
    engine
        .create_network(&container.network, &labels)
        .await
        .unwrap();
    engine
        .create_container(NAME, &container.spec, NAME, None, false)
        .await
        .unwrap();
    engine.start(NAME).await.unwrap();
    let instance = InstanceKey::new("a", "b");
    let limits = Limits {
        memory_mb: 32,
        nano_cpus: (cores * 1e9) as u64,
        cpu_seconds: 2,
        pids: 16,
    };
    let redactor = Redactor::default();
    // Nothing in this engine is ever ready again, and nobody is to wait for that.
    let stop = Stop::default();
    stop.request();
    let folder = tempfile::tempdir().unwrap();
    let root = camino::Utf8Path::from_path(folder.path()).unwrap();
    let slot = slots::take(root, NAME, "t", 2, Duration::ZERO)
        .await
        .unwrap();
    let bounds = Bounds {
        slot: &slot,
        engine: &engine,
        gateway: "selu_t_gateway",
        instance: &instance,
        container: &container,
        limits: &limits,
        redactor: &redactor,
        stop: &stop,
    };
    engine.writes();
    test(&engine, &bounds).await
}

fn broken() -> CallError {
    CallError::Broken {
        reason: "reset".to_owned(),
    }
}

fn tool_failed() -> CallError {
    CallError::Tool {
        message: "cannot start".to_owned(),
    }
}

#[tokio::test]
async fn the_next_look_comes_when_the_rest_can_be_used_up() {
    with_bounds(0.5, async |_, bounds| {
        let pause = |millis| bounds.pause(Duration::from_millis(millis)).as_millis();
        assert_eq!(pause(30_000), 1_000, "never longer");
        assert_eq!(pause(200), 400, "half a core takes twice the time");
        assert_eq!(pause(0), 160, "never so often that the engine has no rest");
    })
    .await;
    with_bounds(4.0, async |_, bounds| {
        assert_eq!(bounds.pause(Duration::from_secs(2)).as_millis(), 500);
        assert_eq!(bounds.cores(Duration::from_secs(1)), Duration::from_secs(4));
    })
    .await;
}

#[tokio::test]
async fn a_call_is_charged_from_its_first_reading_on() {
    let watch = Watch {
        started: Instant::now(),
        first: OnceCell::new(),
    };
    let usage = |cpu_nanos| Usage { cpu_nanos, pids: 1 };
    assert_eq!(
        watch.used(usage(5_000)),
        Duration::ZERO,
        "earlier calls' share"
    );
    assert_eq!(watch.used(usage(7_000)), Duration::from_nanos(2_000));
    assert_eq!(
        watch.used(usage(300)),
        Duration::from_nanos(300),
        "started anew"
    );
}

#[tokio::test]
async fn a_call_that_has_used_up_its_time_is_ended_and_its_container_started_anew() {
    with_bounds(1.0, async |engine, bounds| {
        let busy = engine.clone();
        let over = tokio::spawn(async move {
            // Each look finds a second more.
            loop {
                busy.edit(|world| {
                    let container = world.containers.get_mut(NAME).unwrap();
                    container.usage.cpu_nanos += 1_000_000_000;
                });
                sleep(Duration::from_millis(20)).await;
            }
        });
        let never = std::future::pending::<Result<(), CallError>>();
        let failure = bounds.within(never).await.unwrap_err();
        over.abort();
        assert!(
            matches!(failure, Failure::CpuTime { limit: 2, .. }),
            "{failure}"
        );
        assert_eq!(engine.writes(), [format!("restart container {NAME}")]);
    })
    .await;
}

#[tokio::test]
async fn a_call_that_cannot_be_watched_goes_on_no_longer_than_it_may() {
    with_bounds(50.0, async |engine, bounds| {
        for _ in 0..100 {
            engine.fail("read the statistics", crate::engine::fake::When::Before);
        }
        let never = std::future::pending::<Result<(), CallError>>();
        let failure = bounds.within(never).await.unwrap_err();
        assert!(matches!(failure, Failure::Unwatched { .. }), "{failure}");
        assert_eq!(engine.writes(), [format!("restart container {NAME}")]);
    })
    .await;
}

#[tokio::test]
async fn an_engine_that_accounts_for_nothing_lets_no_call_go_on_for_ever() {
    with_bounds(50.0, async |engine, bounds| {
        engine.edit(|world| world.containers.get_mut(NAME).unwrap().usage.pids = 0);
        let never = std::future::pending::<Result<(), CallError>>();
        let failure = bounds.within(never).await.unwrap_err();
        assert!(matches!(failure, Failure::Unwatched { .. }), "{failure}");
    })
    .await;
}

#[tokio::test]
async fn a_container_that_ended_is_explained_in_its_grade_r3() {
    for (incidents, text) in [
        (
            vec![Incident::OutOfMemory, Incident::Ended { code: 137 }],
            "killed for memory: its limit of 32 MiB",
        ),
        (vec![Incident::Ended { code: 137 }], "likely for memory"),
        (vec![Incident::Ended { code: 3 }], "exit code 3"),
    ] {
        with_bounds(1.0, async |engine, bounds| {
            engine.edit(|world| {
                world.containers.get_mut(NAME).unwrap().incidents = incidents.clone();
            });
            let lost = async { Err::<(), _>(broken()) };
            let failure = bounds.within(lost).await.unwrap_err();
            assert!(matches!(failure, Failure::Ended { .. }), "{failure}");
            assert!(failure.to_string().contains(text), "{failure}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_broken_connection_alone_is_not_blamed_on_the_container() {
    with_bounds(1.0, async |engine, bounds| {
        let failure = bounds
            .within(async { Err::<(), _>(broken()) })
            .await
            .unwrap_err();
        assert!(
            matches!(failure, Failure::Call(CallError::Broken { .. })),
            "{failure}"
        );
        assert_eq!(engine.writes(), [""; 0], "nothing is done to it");
    })
    .await;
}

#[tokio::test]
async fn a_failing_tool_is_explained_by_the_limit_that_hindered_it() {
    with_bounds(1.0, async |engine, bounds| {
        let failed = || bounds.within(async { Err::<(), _>(tool_failed()) });
        let failure = failed().await.unwrap_err();
        assert_eq!(failure.to_string(), "the tool failed: cannot start");

        engine.edit(|world| {
            world.containers.get_mut(NAME).unwrap().incidents = vec![Incident::OutOfMemory];
        });
        let failure = failed().await.unwrap_err();
        assert!(failure.to_string().contains("max_memory_mb"), "{failure}");
        assert_eq!(engine.writes(), [""; 0]);

        engine.edit(|world| world.containers.get_mut(NAME).unwrap().usage.pids = 16);
        let failure = failed().await.unwrap_err();
        assert!(
            failure.to_string().contains("limit of 16 processes"),
            "{failure}"
        );
        assert_eq!(engine.writes(), [format!("restart container {NAME}")]);
    })
    .await;
}

#[tokio::test]
async fn a_call_that_ends_others_names_them_and_they_are_told_why_and_start_nothing_anew_r2() {
    with_bounds(1.0, async |engine, bounds| {
        let root = bounds.slot.root();
        let other = slots::take(root, NAME, "write", 2, Duration::ZERO);
        let other = other.await.unwrap();
        let beside = Bounds {
            slot: &other,
            ..*bounds
        };
        let pids = |engine: &Fake, pids| {
            engine.edit(|world| world.containers.get_mut(NAME).unwrap().usage.pids = pids);
        };
        pids(engine, 16);
        let failure = bounds
            .within(async { Err::<(), _>(tool_failed()) })
            .await
            .unwrap_err();
        assert!(failure.to_string().contains("write (process"), "{failure}");
        let failure = beside
            .within(async { Err::<(), _>(broken()) })
            .await
            .unwrap_err();
        let told = failure.to_string();
        assert!(told.contains("for another call: t (process"), "{told}");
        assert!(told.contains("resources.pids_limit"), "{told}");
        assert_eq!(
            engine.writes(),
            [format!("restart container {NAME}")],
            "once for both"
        );
    })
    .await;
}
