//! Networks, addresses and mounts as the adapter makes them (S2, S9, S10, F5). Each target is first shown to answer the
//! very same probe from an unrestricted place: a refusal by something that never answers proves nothing.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;

use ipnet::Ipv4Net;
use selu_compiler::observed::ContainerState;
use selu_compiler::plan::PlannedNetwork;
use selu_proto::PORT;
use selu_runtime::engine::{Engine, EngineError, EngineView};
use selu_runtime::gateway::{attach, ensure, push_policy};

use crate::capability::{self, PROBE, probe_command};
use crate::world::{World, docker, docker_text};

/// Runs the probe in a container of ours and gives its lines back: target → outcome.
async fn probe(
    world: &World,
    image: &str,
    network: &PlannedNetwork,
    targets: &[String],
) -> BTreeMap<String, String> {
    let engine = &world.engine;
    engine
        .create_network(network, &world.labels("resident"))
        .await
        .unwrap();
    let mut spec = world.spec(image, "resident");
    spec.command = Some(probe_command());
    spec.env.insert(PROBE.to_owned(), targets.join(" "));
    spec.dns = vec![network.gateway];
    engine
        .create_container(
            &network.name,
            &spec,
            &network.name,
            Some(network.capability),
            false,
        )
        .await
        .unwrap();
    engine.start(&network.name).await.unwrap();
    docker_text(&["wait", &network.name]);
    outcomes(&engine.logs(&network.name, 100).await.unwrap())
}

fn outcomes(log: &str) -> BTreeMap<String, String> {
    log.lines()
        .filter_map(|line| line.rsplit_once("probe ")?.1.split_once(' '))
        .map(|(target, outcome)| (target.to_owned(), outcome.to_owned()))
        .collect()
}

/// A service of the engine's host on all its addresses.
fn host_service() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || for _ in listener.incoming() {});
    port
}

#[tokio::test]
async fn host_and_neighbours_are_out_of_reach_directly_and_through_the_gateway() {
    let world = World::new("closed").await;
    let engine = &world.engine;
    let image = world.capability_image().await;
    let planned = world.gateway();
    ensure(engine, &world.project, &planned, &[]).await.unwrap();
    let (mine, neighbour) = (world.network("mine", 1), world.network("neighbour", 2));

    // A neighbour that serves.
    engine
        .create_network(&neighbour, &world.labels("resident"))
        .await
        .unwrap();
    let mut spec = world.spec(&image, "resident");
    spec.command = Some(capability::command());
    spec.env
        .insert(capability::SERVE.to_owned(), "x".to_owned());
    engine
        .create_container(
            &neighbour.name,
            &spec,
            &neighbour.name,
            Some(neighbour.capability),
            false,
        )
        .await
        .unwrap();
    engine.start(&neighbour.name).await.unwrap();

    // A service on the host, reached by the default bridge's address and by that of our own network's bridge.
    let port = host_service();
    let template = "{{(index .IPAM.Config 0).Subnet}}";
    let default: Ipv4Net = docker_text(&["network", "inspect", "-f", template, "bridge"])
        .parse()
        .unwrap();
    let host = default.hosts().next().unwrap();
    let at = |address: Ipv4Addr, port: u16| SocketAddr::from((address, port)).to_string();
    let on_host = at(host, port);
    let on_bridge = at(mine.bridge, port);
    let near = at(neighbour.capability, PORT);

    // The same probe from where nothing is closed: the host service answers, and so does the neighbour to a container
    // that is in its network.
    let mark = format!("dev.selu.project={}", world.project);
    let free = |name: &str, network: &str, target: &str| {
        let name = format!("selu_{}_{name}", world.project);
        let variable = format!("{PROBE}={target}");
        let command = probe_command();
        let mut args = vec![
            "run",
            "--name",
            &name,
            "--label",
            &mark,
            "--network",
            network,
        ];
        args.extend(["-e", &variable, image.as_str()]);
        args.extend(command.iter().map(String::as_str));
        outcomes(&docker_text(&args))
    };
    assert_eq!(free("free", "bridge", &on_host)[&on_host], "open");
    for attempt in 0.. {
        let name = format!("beside{attempt}");
        if free(&name, &neighbour.name, &near)[&near] == "open" {
            break;
        }
        assert!(attempt < 20, "the neighbour never served");
    }

    let targets = [on_host, on_bridge, near];
    let found = probe(&world, &image, &mine, &targets).await;
    for target in &targets {
        assert_ne!(found[target], "open", "{target}");
    }

    // Nor through the gateway, once it is attached to both and carries calls for both: it routes nothing and listens
    // nowhere, not even at the engine's own ports.
    for network in [&mine, &neighbour] {
        attach(engine, &planned.name, network).await.unwrap();
    }
    let policy = world.policy(1, &[&mine, &neighbour]);
    push_policy(engine, &planned.name, &policy).await.unwrap();
    engine.remove_container(&mine.name).await.unwrap();
    let mut targets = targets.to_vec();
    targets.extend([53, 80, 443, PORT].map(|port| at(mine.gateway, port)));
    targets.push(at(neighbour.gateway, PORT));
    spec.command = Some(probe_command());
    spec.env = BTreeMap::from([(PROBE.to_owned(), targets.join(" "))]);
    spec.dns = vec![mine.gateway];
    engine
        .create_container(&mine.name, &spec, &mine.name, Some(mine.capability), false)
        .await
        .unwrap();
    engine.start(&mine.name).await.unwrap();
    docker_text(&["wait", &mine.name]);
    let found = outcomes(&engine.logs(&mine.name, 100).await.unwrap());
    for target in &targets {
        assert_ne!(found[target], "open", "{target}");
    }
    assert_eq!(
        found[&at(mine.gateway, PORT)],
        "ConnectionRefused",
        "the gateway is there"
    );
}

#[tokio::test]
async fn whoever_joins_a_network_never_gets_the_gateways_address() {
    let world = World::new("range").await;
    let engine = &world.engine;
    let network = world.network("a", 1);
    engine
        .create_network(&network, &world.labels("resident"))
        .await
        .unwrap();
    let mark = format!("dev.selu.project={}", world.project);
    let mut given = Vec::new();
    for number in 0..16 {
        let name = format!("selu_{}_guest{number}", world.project);
        let output = docker(&[
            "run",
            "-d",
            "--name",
            &name,
            "--label",
            &mark,
            "-i",
            "--network",
            &network.name,
            &world.image,
            "gateway",
            "hold",
        ]);
        if !output.status.success() {
            break;
        }
        let found = engine.container(&name).await.unwrap().unwrap();
        given.push(found.networks[&network.name].parse::<Ipv4Addr>().unwrap());
    }
    assert!(!given.is_empty() && given.len() < 16, "{given:?}");
    for address in given {
        assert!(network.dynamic_range().contains(&address), "{address}");
        assert_ne!(address, network.gateway);
    }
}

#[tokio::test]
async fn an_images_volume_is_no_place_to_write_to() {
    let world = World::new("declared").await;
    let engine = &world.engine;
    let base = world.capability_image().await;
    let tag = format!("selu.local/{}/declared:1", world.project);
    let dockerfile = format!(
        "FROM {base}\nVOLUME /data\nENV A=1 SELU_X=2\nHEALTHCHECK CMD [\"/selu\"]\nLABEL some=thing\n"
    );
    let mut context = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(dockerfile.len() as u64);
    header.set_mode(0o644);
    context
        .append_data(&mut header, "Dockerfile", dockerfile.as_bytes())
        .unwrap();
    let lines = std::sync::Mutex::new(Vec::new());
    engine
        .build(
            context.into_inner().unwrap().into(),
            "Dockerfile",
            &tag,
            &BTreeMap::from([("dev.selu.source".to_owned(), "sha256:00".to_owned())]),
            &|line| lines.lock().unwrap().push(line.to_owned()),
        )
        .await
        .unwrap();
    assert!(!lines.lock().unwrap().is_empty(), "no progress was told");
    let facts = engine.image(&tag).await.unwrap().unwrap();
    assert_eq!(facts.volumes, ["/data"]);
    assert_eq!(facts.labels["dev.selu.source"], "sha256:00");
    assert_eq!(facts.digest, None);

    let run = |name: &'static str, tmpfs: bool| {
        let world = &world;
        let facts = &facts;
        let tag = &tag;
        async move {
            let name = format!("selu_{}_{name}", world.project);
            let mut spec = world.spec(tag, "resident");
            spec.command = Some(probe_command());
            spec.env.insert(PROBE.to_owned(), "127.0.0.1:1".to_owned());
            // The image sets the same: still ours.
            spec.env.insert("SELU_X".to_owned(), "2".to_owned());
            for label in facts.labels.keys() {
                spec.labels.entry(label.clone()).or_default();
            }
            if tmpfs {
                let options = "ro,noexec,nosuid,nodev,size=65536,mode=0555";
                spec.tmpfs = BTreeMap::from([("/data".to_owned(), options.to_owned())]);
            } else {
                spec.user = "0:0".to_owned();
            }
            world
                .engine
                .create_container(&name, &spec, "none", None, false)
                .await
                .unwrap();
            world.engine.start(&name).await.unwrap();
            docker_text(&["wait", &name]);
            let found = world.engine.container(&name).await.unwrap().unwrap();
            assert_eq!(found.spec, spec);
            assert!(matches!(
                found.state,
                ContainerState::Exited { code: 0, .. }
            ));
            let log = world.engine.logs(&name, 100).await.unwrap();
            (outcomes(&log)["write"].clone(), found.violations)
        }
    };
    // Without the tmpfs it is writable, and that is told.
    let (written, violations) = run("open", false).await;
    assert_eq!(written, "Ok(())");
    assert_eq!(violations, ["something else is mounted at /data"]);
    let (written, violations) = run("closed", true).await;
    assert!(written.starts_with("Err("), "{written}");
    assert_eq!(violations, Vec::<String>::new());
}

#[tokio::test]
async fn a_spec_that_this_version_cannot_carry_out_is_refused() {
    let world = World::new("unknown").await;
    let mut spec = world.spec(&world.image, "resident");
    spec.seccomp = "sha256:00".to_owned();
    let name = format!("selu_{}_x", world.project);
    let error = world
        .engine
        .create_container(&name, &spec, "none", None, false)
        .await
        .unwrap_err();
    assert!(matches!(error, EngineError::Refused { .. }), "{error}");
    assert!(
        error.to_string().contains("seccomp profile sha256:00"),
        "{error}"
    );
    assert!(world.engine.container(&name).await.unwrap().is_none());
}
