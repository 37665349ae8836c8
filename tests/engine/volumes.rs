//! Volumes are writable for whom they are for, with no process of root (F4).

use std::os::unix::fs::MetadataExt;

use selu_compiler::plan::PlannedVolume;
use selu_runtime::engine::{Engine, EngineError, EngineView};
use selu_runtime::gateway::prepare_volume;

use crate::world::{World, docker_text};

#[tokio::test]
async fn a_new_volume_belongs_to_its_user_and_its_content_is_never_touched_again() {
    let world = World::new("volume").await;
    let engine = &world.engine;
    let labels = world.labels("resident");
    for (purpose, owner) in [("workspace", 1000), ("cache", 1000), ("policy", 65532)] {
        let volume = PlannedVolume {
            name: format!("selu_{}_{purpose}", world.project),
            purpose: purpose.to_owned(),
        };
        prepare_volume(engine, &world.image, &volume, &labels)
            .await
            .unwrap();
        let folder = docker_text(&["volume", "inspect", "-f", "{{.Mountpoint}}", &volume.name]);
        let meta = std::fs::metadata(&folder).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (owner, owner), "{purpose}");
        assert_eq!(meta.mode() & 0o7777, 0o755, "{purpose}");

        std::fs::write(format!("{folder}/kept"), "data").unwrap();
        prepare_volume(engine, &world.image, &volume, &labels)
            .await
            .unwrap();
        assert_eq!(
            std::fs::read_to_string(format!("{folder}/kept")).unwrap(),
            "data"
        );
    }
    let observed = engine.observe(&world.project, &[]).await.unwrap();
    assert_eq!(observed.volumes.len(), 3);
    assert!(observed.containers.is_empty(), "no helper stays");
}

#[tokio::test]
async fn a_volume_of_someone_else_is_not_taken_over() {
    let world = World::new("foreign-volume").await;
    let name = format!("selu_{}_data", world.project);
    let mark = format!("test={}", world.project);
    docker_text(&["volume", "create", "--label", &mark, &name]);
    let error = world
        .engine
        .create_volume(&name, &world.labels("workspace"))
        .await
        .unwrap_err();
    assert!(matches!(error, EngineError::Conflict { .. }), "{error}");
    docker_text(&["volume", "rm", &name]);
}
