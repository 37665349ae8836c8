//! What is set is what is read back, and what someone else set is seen.

use std::collections::BTreeMap;

use selu_compiler::observed::ContainerState;
use selu_compiler::plan::ContainerSpec;
use selu_runtime::engine::{Engine, EngineError, EngineView};

use crate::world::{World, docker_text};

fn full_spec(world: &World) -> ContainerSpec {
    let mut spec = world.spec(&world.image, "resident");
    spec.command = Some(vec!["gateway".to_owned(), "hold".to_owned()]);
    spec.env = BTreeMap::from([
        ("SELU_CAPABILITY_ID".to_owned(), "weather".to_owned()),
        ("SELU_SESSION_ID".to_owned(), "default=1".to_owned()),
    ]);
    spec.shm_bytes = Some(8 << 20);
    spec.tmpfs = BTreeMap::from([(
        "/tmp".to_owned(),
        "rw,noexec,nosuid,nodev,size=67108864,mode=1777".to_owned(),
    )]);
    spec.volumes = BTreeMap::from([(
        "/workspace".to_owned(),
        format!("selu_{}_data", world.project),
    )]);
    spec.dns = vec![world.network("a", 1).gateway];
    spec.restart = true;
    spec
}

#[tokio::test]
async fn a_full_spec_reads_back_field_by_field_before_and_after_start() {
    let world = World::new("full").await;
    let engine = &world.engine;
    let network = world.network("a", 1);
    engine
        .create_network(&network, &world.labels("resident"))
        .await
        .unwrap();
    let spec = full_spec(&world);
    let volume = &spec.volumes["/workspace"];
    engine
        .create_volume(volume, &world.labels("workspace"))
        .await
        .unwrap();
    engine
        .create_container(
            &network.name,
            &spec,
            &network.name,
            Some(network.capability),
            true,
        )
        .await
        .unwrap();

    let created = engine.container(&network.name).await.unwrap().unwrap();
    assert_eq!(created.spec, spec);
    assert_eq!(created.violations, Vec::<String>::new());
    assert_eq!(created.state, ContainerState::Created);
    assert_eq!(
        created.networks,
        BTreeMap::from([(network.name.clone(), network.capability.to_string())])
    );

    engine.start(&network.name).await.unwrap();
    engine
        .start(&network.name)
        .await
        .expect("started already is done");
    let observed = engine.observe(&world.project, &[]).await.unwrap();
    let running = &observed.containers[&network.name];
    assert_eq!(running.spec, spec);
    assert_eq!(running.violations, Vec::<String>::new());
    assert_eq!(running.state, ContainerState::Running);
    let seen = &observed.networks[&network.name];
    assert!(seen.closed);
    assert_eq!(seen.subnet, Some(network.subnet));
    assert_eq!(seen.attached, std::slice::from_ref(&network.name));
    assert!(observed.volumes.contains_key(volume));
    assert!(!observed.foreign_subnets.contains(&network.subnet));
}

#[tokio::test]
async fn the_hardening_is_in_force_by_the_engines_own_account() {
    let world = World::new("hard").await;
    let engine = &world.engine;
    let network = world.network("a", 1);
    engine
        .create_network(&network, &world.labels("resident"))
        .await
        .unwrap();
    let mut spec = full_spec(&world);
    spec.volumes.clear();
    spec.shm_bytes = None;
    engine
        .create_container(
            &network.name,
            &spec,
            &network.name,
            Some(network.capability),
            true,
        )
        .await
        .unwrap();
    engine.start(&network.name).await.unwrap();

    let field = |template: &str| docker_text(&["inspect", "-f", template, &network.name]);
    for (template, expected) in [
        ("{{.HostConfig.ReadonlyRootfs}}", "true"),
        ("{{json .HostConfig.CapDrop}}", r#"["ALL"]"#),
        ("{{json .HostConfig.CapAdd}}", "null"),
        ("{{.HostConfig.Privileged}}", "false"),
        ("{{.HostConfig.Memory}}", "67108864"),
        ("{{.HostConfig.MemorySwap}}", "67108864"),
        ("{{.HostConfig.NanoCpus}}", "570000000"),
        ("{{.HostConfig.PidsLimit}}", "64"),
        ("{{.HostConfig.IpcMode}}", "none"),
        ("{{.HostConfig.AutoRemove}}", "false"),
        ("{{.HostConfig.LogConfig.Type}}", "json-file"),
        (
            "{{json .HostConfig.LogConfig.Config}}",
            r#"{"max-file":"2","max-size":"1048576"}"#,
        ),
        ("{{.HostConfig.RestartPolicy.Name}}", "unless-stopped"),
        ("{{json .HostConfig.PortBindings}}", "null"),
        ("{{json .NetworkSettings.Ports}}", "{}"),
        ("{{json .Config.Healthcheck.Test}}", r#"["NONE"]"#),
        ("{{.Config.User}}", "1000:1000"),
        ("{{json .Mounts}}", "[]"),
    ] {
        let found = field(template);
        let empty = expected == "null" && (found == "[]" || found == "{}");
        assert!(found == expected || empty, "{template}: {found}");
    }
    let pid = field("{{.State.Pid}}");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .trim()
            .to_owned()
    };
    assert_eq!(line("CapEff:"), "0000000000000000");
    assert_eq!(line("CapBnd:"), "0000000000000000");
    assert_eq!(line("NoNewPrivs:"), "1");
    assert_eq!(line("Seccomp:"), "2", "filtered");
    assert_eq!(line("Uid:"), "1000\t1000\t1000\t1000");
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    assert_eq!(
        files.split_whitespace().skip(3).take(2).collect::<Vec<_>>(),
        ["1024", "1024"]
    );
}

#[tokio::test]
async fn what_someone_else_changed_or_opened_is_seen() {
    let world = World::new("drift").await;
    let engine = &world.engine;
    let name = format!("selu_{}_changed_1", world.project);
    let spec = world.spec(&world.image, "resident");
    engine
        .create_container(&name, &spec, "none", None, false)
        .await
        .unwrap();
    docker_text(&["update", "--memory", "128m", "--memory-swap", "256m", &name]);
    let changed = engine.container(&name).await.unwrap().unwrap();
    assert_eq!(changed.spec.memory_bytes, 128 << 20);
    assert_eq!(changed.spec.memory_swap_bytes, 256 << 20);
    engine.update_container(&name, &spec).await.unwrap();
    let restored = engine.container(&name).await.unwrap().unwrap();
    assert_eq!(restored.spec, spec);

    // Made by hand in the place of ours, with all its labels.
    let open = format!("selu_{}_open_1", world.project);
    engine
        .create_container(&open, &spec, "none", None, false)
        .await
        .unwrap();
    let labels = docker_text(&["inspect", "--format", "{{json .Config.Labels}}", &open]);
    let labels: BTreeMap<String, String> = serde_json::from_str(&labels).unwrap();
    let labels: String = labels
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), labels).unwrap();
    engine.remove_container(&open).await.unwrap();
    docker_text(&[
        "create",
        "--name",
        &open,
        "--label-file",
        file.path().to_str().unwrap(),
        "--privileged",
        "-p",
        "127.0.0.1::80",
        "-v",
        "/etc:/host",
        "--pid",
        "host",
        "--device",
        "/dev/null",
        &world.image,
        "gateway",
        "hold",
    ]);
    let observed = engine.observe(&world.project, &[]).await.unwrap();
    let violations = observed.containers[&open].violations.join("; ");
    for expected in [
        "privileged",
        "host mount or bind /etc:/host",
        "published port 80/tcp",
        "process namespace host",
        "something else is mounted at /host",
    ] {
        assert!(violations.contains(expected), "{expected}: {violations}");
    }
}

#[tokio::test]
async fn names_that_are_taken_are_told_apart_from_ours() {
    let world = World::new("names").await;
    let other = World::new("names-other").await;
    let engine = &world.engine;
    let name = format!("selu_{}_taken_1", world.project);
    // Our name, another project's label.
    let spec = world.spec(&world.image, "resident");
    let mut foreign = spec.clone();
    foreign.labels = other.labels("resident");
    engine
        .create_container(&name, &foreign, "none", None, false)
        .await
        .unwrap();

    let observed = engine
        .observe(&world.project, std::slice::from_ref(&name))
        .await
        .unwrap();
    assert!(!observed.containers.contains_key(&name));
    assert_eq!(
        observed.foreign_names[&name],
        format!(
            "a container of image {} of project {}",
            world.image, other.project
        )
    );
    let error = engine
        .create_container(&name, &spec, "none", None, false)
        .await
        .unwrap_err();
    assert!(matches!(error, EngineError::Conflict { .. }), "{error}");
}

#[tokio::test]
async fn what_is_gone_already_is_removed_already() {
    let world = World::new("gone").await;
    let engine = &world.engine;
    let name = format!("selu_{}_nothing", world.project);
    engine.remove_container(&name).await.unwrap();
    engine.remove_network(&name).await.unwrap();
    engine.remove_volume(&name).await.unwrap();
    engine.remove_image("selu.local/nothing:1").await.unwrap();
    engine.disconnect(&name, &name).await.unwrap();
    assert!(engine.remove_ended(&name).await.unwrap());
    assert!(engine.container(&name).await.unwrap().is_none());
    assert!(
        engine
            .image("selu.local/nothing:1")
            .await
            .unwrap()
            .is_none()
    );
    let error = engine.start(&name).await.unwrap_err();
    assert!(matches!(error, EngineError::NotFound { .. }), "{error}");
}
