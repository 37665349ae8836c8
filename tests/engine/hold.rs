//! One apply at a time (product.md 14).

use std::process::{Command, Stdio};
use std::time::Duration;

use selu_runtime::engine::docker::connect;
use selu_runtime::engine::{Engine, EngineView};
use selu_runtime::hold::{HoldError, Info, take};

use crate::world::{World, docker, docker_text};

fn info(operation: &str) -> Info {
    Info {
        host: "desk".to_owned(),
        user: Some("ada".to_owned()),
        pid: std::process::id(),
        operation: operation.to_owned(),
        since: "2026-11-30 10:00:00".to_owned(),
    }
}

#[tokio::test]
async fn a_second_taker_hears_who_holds_and_gets_it_after_release() {
    let world = World::new("hold").await;
    let engine = &world.engine;
    let now = Duration::ZERO;
    let hold = take(engine, &world.project, &world.image, &info("apply"), now)
        .await
        .unwrap();
    let error = match take(engine, &world.project, &world.image, &info("destroy"), now).await {
        Err(error @ HoldError::Held { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("held twice"),
    };
    assert_eq!(
        error,
        format!(
            "project {} is held by `apply` on desk (ada), process {}, since 2026-11-30 10:00:00",
            world.project,
            std::process::id()
        )
    );

    let waiting = tokio::spawn({
        let (engine, project, image) = (engine.clone(), world.project.clone(), world.image.clone());
        async move {
            let long = Duration::from_secs(120);
            take(&engine, &project, &image, &info("destroy"), long)
                .await
                .map(|_| ())
        }
    });
    hold.release(engine).await.unwrap();
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_dropped_hold_is_free_and_leaves_nothing_behind_after_the_next_release() {
    let world = World::new("drop").await;
    let engine = &world.engine;
    let long = Duration::from_secs(60);
    let hold = take(engine, &world.project, &world.image, &info("apply"), long)
        .await
        .unwrap();
    let name = hold.name().to_owned();
    drop(hold);
    let again = take(engine, &world.project, &world.image, &info("apply"), long)
        .await
        .unwrap();
    again.release(engine).await.unwrap();
    assert!(engine.container(&name).await.unwrap().is_none());
}

#[tokio::test]
async fn a_hold_that_somebody_removes_is_known_to_be_lost() {
    let world = World::new("lost").await;
    let engine = &world.engine;
    let mut hold = take(
        engine,
        &world.project,
        &world.image,
        &info("apply"),
        Duration::ZERO,
    )
    .await
    .unwrap();
    docker_text(&["rm", "-f", hold.name()]);
    // Resolves at all; what it says does not matter.
    let _ = hold.lost().await;
}

#[tokio::test]
async fn a_hold_left_between_create_and_start_is_cleared() {
    let world = World::new("left").await;
    let engine = &world.engine;
    let hold = take(
        engine,
        &world.project,
        &world.image,
        &info("apply"),
        Duration::ZERO,
    )
    .await
    .unwrap();
    let name = hold.name().to_owned();
    let spec = engine.container(&name).await.unwrap().unwrap().spec;
    hold.release(engine).await.unwrap();
    engine
        .create_container(&name, &spec, "none", None, true)
        .await
        .unwrap();
    let hold = take(
        engine,
        &world.project,
        &world.image,
        &info("apply"),
        Duration::ZERO,
    )
    .await
    .unwrap();
    hold.release(engine).await.unwrap();
}

#[tokio::test]
async fn a_container_that_is_no_hold_is_never_cleared() {
    let world = World::new("foreign").await;
    let engine = &world.engine;
    let name = format!("selu_{}_hold", world.project);
    let label = format!("test={}", world.project);
    docker_text(&[
        "create",
        "--name",
        &name,
        "--label",
        &label,
        &world.image,
        "gateway",
        "hold",
    ]);
    let result = take(
        engine,
        &world.project,
        &world.image,
        &info("apply"),
        Duration::ZERO,
    )
    .await;
    assert!(matches!(result, Err(HoldError::Foreign { .. })));
    assert!(engine.container(&name).await.unwrap().is_some());
    docker(&["rm", "-f", &name]);
}

const PROJECT: &str = "TEST_HOLDER_PROJECT";

/// The other process of the test below.
#[tokio::test]
#[ignore = "is started by another test and killed by it"]
async fn holder() {
    let Ok(project) = std::env::var(PROJECT) else {
        return;
    };
    let engine = connect(None).await.unwrap();
    let image = format!("selu.local/{project}/gateway:1");
    let _hold = take(&engine, &project, &image, &info("apply"), Duration::ZERO)
        .await
        .unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_holder_that_is_killed_frees_the_hold() {
    let world = World::new("killed").await;
    let engine = &world.engine;
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "hold::holder"])
        .env(PROJECT, &world.project)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let name = format!("selu_{}_hold", world.project);
    loop {
        let state = docker(&["inspect", "-f", "{{.State.Status}}", &name]);
        if state.stdout == b"running\n" {
            break;
        }
        assert!(
            holder.try_wait().unwrap().is_none(),
            "the holder ended by itself"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let held = take(
        engine,
        &world.project,
        &world.image,
        &info("apply"),
        Duration::ZERO,
    )
    .await;
    assert!(matches!(held, Err(HoldError::Held { .. })));

    holder.kill().unwrap();
    holder.wait().unwrap();
    let hold = take(
        engine,
        &world.project,
        &world.image,
        &info("apply"),
        Duration::from_secs(60),
    )
    .await
    .unwrap();
    hold.release(engine).await.unwrap();
}
