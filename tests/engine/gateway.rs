//! Calls through the gateway, and everything that must not go through it (S1, S2, S5, S8).

use std::time::Instant;

use selu_compiler::plan::PlannedNetwork;
use selu_proto::v1::capability_client::CapabilityClient;
use selu_proto::v1::{HealthRequest, InvokeRequest};
use selu_runtime::engine::{Engine, EngineView};
use selu_runtime::gateway::{GatewayError, attach, ensure, pipe, push_policy, standing};
use tonic::transport::Channel;

use crate::capability;
use crate::world::{World, docker, docker_text};

async fn capability(world: &World, image: &str, network: &PlannedNetwork) {
    let engine = &world.engine;
    engine
        .create_network(network, &world.labels("resident"))
        .await
        .unwrap();
    let mut spec = world.spec(image, "resident");
    spec.command = Some(capability::command());
    spec.env
        .insert(capability::SERVE.to_owned(), network.name.clone());
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
}

/// A pipe to a container that is about to serve.
async fn patient_pipe(world: &World, gateway: &str, network: &str) -> Channel {
    for _ in 0..100 {
        match pipe(&world.engine, gateway, network).await {
            Ok(channel) => return channel,
            Err(GatewayError::Role { message, .. }) if message.contains("refused") => {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let log = world.engine.logs(network, 50).await.unwrap();
    panic!("{network} never served: {log}");
}

async fn health(channel: &Channel) -> Result<String, tonic::Status> {
    CapabilityClient::new(channel.clone())
        .healthcheck(HealthRequest {})
        .await
        .map(|answer| answer.into_inner().message)
}

#[tokio::test]
async fn calls_reach_the_container_of_the_named_network_and_no_other() {
    let world = World::new("pipe").await;
    let engine = &world.engine;
    let planned = world.gateway();
    let gateway = planned.name.as_str();
    let (a, b) = (world.network("a", 1), world.network("b", 2));
    let image = world.capability_image().await;
    assert!(ensure(engine, &world.project, &planned, &[]).await.unwrap());
    for network in [&a, &b] {
        capability(&world, &image, network).await;
        attach(engine, gateway, network).await.unwrap();
        attach(engine, gateway, network)
            .await
            .expect("attached already is done");
    }

    // Without a policy everything is refused.
    let refused = |result: Result<Channel, GatewayError>| match result {
        Err(GatewayError::Role { message, .. }) => message,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the pipe opened"),
    };
    let message = refused(pipe(engine, gateway, &a.name).await);
    assert!(message.contains("has no policy yet"), "{message}");
    assert!(matches!(
        standing(engine, gateway).await,
        Err(GatewayError::Role { .. })
    ));

    let ack = push_policy(engine, gateway, &world.policy(1, &[&a, &b]))
        .await
        .unwrap();
    assert_eq!(standing(engine, gateway).await.unwrap().ack, ack);
    for network in [&a, &b] {
        let channel = patient_pipe(&world, gateway, &network.name).await;
        assert_eq!(health(&channel).await.unwrap(), network.name);
    }

    // The same container, served above, is out of reach once the policy does not name it.
    push_policy(engine, gateway, &world.policy(2, &[&b]))
        .await
        .unwrap();
    let message = refused(pipe(engine, gateway, &a.name).await);
    assert!(
        message.contains("is not in policy generation 2"),
        "{message}"
    );
    let channel = patient_pipe(&world, gateway, &b.name).await;
    assert_eq!(health(&channel).await.unwrap(), b.name);

    // Another project's network name is no more in it than any other.
    let message = refused(pipe(engine, gateway, "selu_other_a_b_1").await);
    assert!(message.contains("is not in policy"), "{message}");

    // A policy out of turn changes nothing.
    let error = push_policy(engine, gateway, &world.policy(9, &[&a]))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("out of turn"), "{error}");
    assert_eq!(standing(engine, gateway).await.unwrap().ack.generation, 2);

    // Nothing is published, and the gateway listens nowhere.
    for name in [gateway, &a.name, &b.name] {
        assert_eq!(docker_text(&["port", name]), "");
    }
    let pid = docker_text(&["inspect", "-f", "{{.State.Pid}}", gateway]);
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let path = format!("/proc/{pid}/net/{table}");
        let Ok(sockets) = std::fs::read_to_string(&path) else {
            continue;
        };
        // The engine's own resolver listens on 127.0.0.11 in every container; nothing else may.
        let open: Vec<&str> = sockets
            .lines()
            .skip(1)
            .filter(|line| {
                let mut fields = line.split_ascii_whitespace().skip(1);
                let local = fields.next().unwrap_or_default();
                let state = fields.nth(1).unwrap_or_default();
                let listens = state == "0A" || table.starts_with("udp");
                listens && !local.starts_with("0B00007F:")
            })
            .collect();
        assert_eq!(open, Vec::<&str>::new(), "{table}");
    }
}

#[tokio::test]
async fn large_messages_pass_both_ways_and_a_broken_pipe_stays_broken() {
    let world = World::new("break").await;
    let engine = &world.engine;
    let planned = world.gateway();
    let gateway = planned.name.as_str();
    let network = world.network("a", 1);
    let image = world.capability_image().await;
    ensure(engine, &world.project, &planned, &[]).await.unwrap();
    capability(&world, &image, &network).await;
    attach(engine, gateway, &network).await.unwrap();
    push_policy(engine, gateway, &world.policy(1, &[&network]))
        .await
        .unwrap();

    let channel = patient_pipe(&world, gateway, &network.name).await;
    let mut client = CapabilityClient::new(channel.clone())
        .max_decoding_message_size(selu_proto::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(selu_proto::MAX_MESSAGE_BYTES);
    let echo = |size: usize| InvokeRequest {
        tool_name: "echo".to_owned(),
        args_json: (0..size).map(|at| (at % 251) as u8).collect(),
        ..InvokeRequest::default()
    };
    for size in [0, 1, 65_537, 15 << 20] {
        let sent = echo(size);
        let got = client.invoke(sent.clone()).await.unwrap().into_inner();
        assert!(
            got.result_json == sent.args_json,
            "{size} bytes came back changed"
        );
    }

    let calling = tokio::spawn({
        let mut client = client.clone();
        async move {
            let request = InvokeRequest {
                tool_name: "sleep".to_owned(),
                ..InvokeRequest::default()
            };
            client.invoke(request).await
        }
    });
    // The call is under way once a later one has been answered on the same connection.
    health(&channel).await.unwrap();
    engine.remove_container(&network.name).await.unwrap();
    let broken = calling.await.unwrap().unwrap_err();
    assert_ne!(broken.code(), tonic::Code::Ok);
    let after = health(&channel).await.unwrap_err();
    let mut text = after.to_string();
    let mut source = std::error::Error::source(&after);
    while let Some(cause) = source {
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    assert!(text.contains("has ended"), "{text}");
}

#[tokio::test]
async fn ensuring_twice_changes_nothing_and_a_changed_gateway_is_made_right() {
    let world = World::new("ensure").await;
    let engine = &world.engine;
    let planned = world.gateway();
    let network = world.network("a", 1);
    engine
        .create_network(&network, &world.labels("resident"))
        .await
        .unwrap();
    let all = [&network];
    assert!(
        ensure(engine, &world.project, &planned, &all)
            .await
            .unwrap()
    );
    push_policy(engine, &planned.name, &world.policy(1, &all))
        .await
        .unwrap();
    let id = |world: &World| {
        let engine = world.engine.clone();
        let name = planned.name.clone();
        async move { engine.container(&name).await.unwrap().unwrap().id }
    };
    let first = id(&world).await;
    assert!(
        !ensure(engine, &world.project, &planned, &all)
            .await
            .unwrap()
    );
    assert_eq!(id(&world).await, first);

    docker_text(&["network", "disconnect", &network.name, &planned.name]);
    docker_text(&["stop", "-t", "5", &planned.name]);
    assert!(
        ensure(engine, &world.project, &planned, &all)
            .await
            .unwrap()
    );
    assert_eq!(id(&world).await, first, "a stopped one is started");
    let seen = engine.container(&planned.name).await.unwrap().unwrap();
    assert_eq!(seen.networks[&network.name], network.gateway.to_string());

    docker_text(&["update", "--pids-limit", "7", &planned.name]);
    assert!(
        ensure(engine, &world.project, &planned, &all)
            .await
            .unwrap()
    );
    assert_ne!(id(&world).await, first, "a changed one is made anew");
    let seen = engine.container(&planned.name).await.unwrap().unwrap();
    assert_eq!(seen.spec, planned.spec);
    assert_eq!(seen.networks[&network.name], network.gateway.to_string());
    let ack = standing(engine, &planned.name).await.unwrap().ack;
    assert_eq!(ack.generation, 1, "the policy outlives its container");
}

#[tokio::test]
async fn the_gateway_obeys_a_stop_at_once_and_its_pipes_can_neither_write_nor_look() {
    let world = World::new("roles").await;
    let engine = &world.engine;
    let planned = world.gateway();
    let gateway = planned.name.as_str();
    ensure(engine, &world.project, &planned, &[]).await.unwrap();
    // A pipe's user cannot deliver a policy.
    let output = docker(&[
        "exec",
        "-i",
        "-u",
        "65533:65533",
        gateway,
        "/selu",
        "gateway",
        "policy",
    ]);
    assert!(!output.status.success());
    let output = docker(&["exec", gateway, "/selu", "gateway", "serve"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is no role"));

    let pid = docker_text(&["inspect", "-f", "{{.State.Pid}}", gateway]);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
    // The kernel gives the files of a process that hides its memory to root.
    let owner = std::os::unix::fs::MetadataExt::uid(
        &std::fs::metadata(format!("/proc/{pid}/mem")).unwrap(),
    );
    assert_eq!(owner, 0);

    docker_text(&["stop", "-t", "600", gateway]);
    let code = docker_text(&["inspect", "-f", "{{.State.ExitCode}}", gateway]);
    assert_eq!(code, "0", "not killed");
}

/// Not a proof: prints what one pipe costs here.
#[tokio::test]
#[ignore = "measures"]
#[allow(clippy::print_stderr, reason = "printing is all that it does")]
async fn measure_a_pipe() {
    let world = World::new("measure").await;
    let engine = &world.engine;
    let planned = world.gateway();
    let network = world.network("a", 1);
    let image = world.capability_image().await;
    ensure(engine, &world.project, &planned, &[]).await.unwrap();
    capability(&world, &image, &network).await;
    attach(engine, &planned.name, &network).await.unwrap();
    push_policy(engine, &planned.name, &world.policy(1, &[&network]))
        .await
        .unwrap();
    patient_pipe(&world, &planned.name, &network.name).await;
    for _ in 0..3 {
        let start = Instant::now();
        let channel = pipe(engine, &planned.name, &network.name).await.unwrap();
        let opened = start.elapsed();
        health(&channel).await.unwrap();
        let first = start.elapsed();
        let start = Instant::now();
        for _ in 0..500 {
            health(&channel).await.unwrap();
        }
        eprintln!(
            "open {opened:?}, first answer {first:?}, round trip {:?}",
            start.elapsed() / 500
        );
        let mut client = CapabilityClient::new(channel)
            .max_decoding_message_size(selu_proto::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(selu_proto::MAX_MESSAGE_BYTES);
        let start = Instant::now();
        for _ in 0..10 {
            let request = InvokeRequest {
                tool_name: "echo".to_owned(),
                args_json: vec![7; 15 << 20],
                ..InvokeRequest::default()
            };
            client.invoke(request).await.unwrap();
        }
        let seconds = start.elapsed().as_secs_f64();
        eprintln!("{:.0} MB/s both ways together", 2.0 * 10.0 * 15.7 / seconds);
    }
}
