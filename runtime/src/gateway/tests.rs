//! Every step of the gateway's making fails once, each way, and a second attempt converges (product.md 13).

use std::collections::BTreeMap;

use selu_compiler::model::{InstanceKey, Network, NetworkMode};
use selu_compiler::observed::ImageFacts;
use selu_compiler::plan::spec::helper_spec;
use selu_compiler::plan::{GatewayRule, PlannedGateway, PlannedNetwork};

use super::{GatewayError, attach, ensure, labels, pipe, push_policy, standing};
use crate::egress::policy::Policy;
use crate::engine::fake::{Fake, Image, When};
use crate::engine::{Engine, EngineView};

const PROJECT: &str = "demo";

fn planned() -> PlannedGateway {
    let name = format!("selu_{PROJECT}_gateway");
    let command = ["gateway", "run"].map(str::to_owned).to_vec();
    let mut spec = helper_spec(PROJECT, "gateway", command);
    spec.volumes = BTreeMap::from([("/policy".to_owned(), name.clone())]);
    PlannedGateway {
        network: PlannedNetwork::new(name.clone(), "10.9.0.0/28".parse().unwrap()),
        volume: name.clone(),
        log_volume: None,
        name,
        spec,
        spec_hash: "v1:sha256:00".to_owned(),
        range: "10.9.0.0/16".parse().unwrap(),
        policy: BTreeMap::new(),
    }
}

fn network() -> PlannedNetwork {
    let name = format!("selu_{PROJECT}_a_b_1");
    PlannedNetwork::new(name, "10.9.0.16/28".parse().unwrap())
}

fn policy(generation: u64) -> Policy {
    let network = network();
    let rule = GatewayRule {
        instance: InstanceKey::new("a", "b"),
        subnet: network.subnet,
        capability: network.capability,
        rules: Network {
            mode: NetworkMode::None,
            hosts: Vec::new(),
        },
        private: Vec::new(),
    };
    Policy {
        project: PROJECT.to_owned(),
        generation,
        networks: BTreeMap::from([(network.name, rule)]),
        refused: Vec::new(),
        ranges: Vec::new(),
    }
}

/// An engine that has the gateway's image and one instance's network.
async fn engine() -> Fake {
    let fake = Fake::new();
    let image = Image::new(ImageFacts {
        id: Some("sha256:01".to_owned()),
        digest: None,
        volumes: Vec::new(),
        labels: BTreeMap::new(),
    });
    fake.edit(|world| world.images.insert(planned().spec.image, image));
    fake.create_network(&network(), &labels(PROJECT))
        .await
        .unwrap();
    fake.writes();
    fake
}

/// Whether everything is as planned, and a further attempt does nothing.
async fn assert_converged(fake: &Fake, why: &str) {
    let (planned, network) = (planned(), network());
    fake.writes();
    assert!(
        !ensure(fake, PROJECT, &planned, &[&network]).await.unwrap(),
        "{why}"
    );
    assert_eq!(fake.writes(), Vec::<String>::new(), "{why}");
    let found = fake.container(&planned.name).await.unwrap().unwrap();
    assert_eq!(found.spec, planned.spec, "{why}");
    assert_eq!(
        found.networks,
        BTreeMap::from([
            (
                planned.network.name.clone(),
                planned.network.gateway.to_string()
            ),
            (network.name.clone(), network.gateway.to_string()),
        ]),
        "{why}"
    );
    let seeded = fake.edit(|world| world.volumes[&planned.volume].seeded.clone());
    assert_eq!(seeded.as_deref(), Some("/policy"), "{why}");
}

#[tokio::test]
async fn each_step_may_fail_before_or_after_it_is_done_and_the_next_attempt_converges() {
    let fake = engine().await;
    assert!(
        ensure(&fake, PROJECT, &planned(), &[&network()])
            .await
            .unwrap()
    );
    let steps = fake.writes();
    assert_eq!(steps.len(), 6, "{steps:?}");
    assert_converged(&fake, "undisturbed").await;

    for step in &steps {
        for when in [When::Before, When::After, When::InAnswer] {
            let fake = engine().await;
            fake.fail(step, when);
            let why = format!("{step} failed {when:?}");
            assert!(
                ensure(&fake, PROJECT, &planned(), &[&network()])
                    .await
                    .is_err(),
                "{why}"
            );
            ensure(&fake, PROJECT, &planned(), &[&network()])
                .await
                .unwrap();
            assert_converged(&fake, &why).await;
        }
    }
}

#[tokio::test]
async fn a_foreign_name_is_never_taken_over() {
    let fake = engine().await;
    let foreign = BTreeMap::new();
    fake.create_volume(&planned().volume, &foreign)
        .await
        .unwrap();
    fake.writes();
    let error = ensure(&fake, PROJECT, &planned(), &[]).await.unwrap_err();
    assert!(matches!(error, GatewayError::Foreign { .. }), "{error}");
    assert_eq!(fake.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_gateway_where_it_should_not_be_is_brought_back() {
    let (own, other) = (planned().network.name, network().name);
    for (network_name, address) in [
        ("bridge", "172.17.0.2"),
        (own.as_str(), "10.9.0.7"),
        (other.as_str(), "10.9.0.20"),
    ] {
        let fake = engine().await;
        ensure(&fake, PROJECT, &planned(), &[&network()])
            .await
            .unwrap();
        fake.edit(|world| {
            let gateway = world.containers.get_mut(&planned().name).unwrap();
            let networks = &mut gateway.observed.networks;
            networks.insert(network_name.to_owned(), address.to_owned());
        });
        let done = ensure(&fake, PROJECT, &planned(), &[&network()])
            .await
            .unwrap();
        assert!(done, "{network_name}");
        assert_converged(&fake, network_name).await;
    }
}

#[tokio::test]
async fn a_stranger_in_the_gateways_network_is_named_and_not_touched() {
    let fake = engine().await;
    ensure(&fake, PROJECT, &planned(), &[]).await.unwrap();
    let spec = helper_spec("other", "gateway", Vec::new());
    fake.edit(|world| {
        world.images.insert(
            spec.image.clone(),
            world.images[&planned().spec.image].clone(),
        )
    });
    fake.create_container("stranger", &spec, &planned().network.name, None, false)
        .await
        .unwrap();
    fake.writes();
    let error = ensure(&fake, PROJECT, &planned(), &[]).await.unwrap_err();
    assert!(error.to_string().contains("stranger"), "{error}");
    assert_eq!(fake.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn an_acknowledgement_that_was_not_heard_is_asked_for_again() {
    let fake = engine().await;
    let name = planned().name;
    ensure(&fake, PROJECT, &planned(), &[&network()])
        .await
        .unwrap();
    for when in [When::Before, When::After, When::InAnswer] {
        fake.fail("run /selu gateway policy", when);
        assert!(
            push_policy(&fake, &name, &policy(1)).await.is_err(),
            "{when:?}"
        );
        push_policy(&fake, &name, &policy(1)).await.unwrap();
    }
    assert_eq!(standing(&fake, &name).await.unwrap().ack.generation, 1);
}

#[tokio::test]
async fn a_pipe_that_breaks_while_it_opens_is_a_clear_error() {
    let fake = engine().await;
    let name = planned().name;
    ensure(&fake, PROJECT, &planned(), &[&network()])
        .await
        .unwrap();
    push_policy(&fake, &name, &policy(1)).await.unwrap();
    let refused = pipe(&fake, &name, &network().name).await.unwrap_err();
    assert!(
        refused.to_string().contains("Connection refused"),
        "{refused}"
    );
    fake.fail("run /selu gateway pipe", When::InAnswer);
    let broken = pipe(&fake, &name, &network().name).await.unwrap_err();
    assert!(matches!(broken, GatewayError::Engine(_)), "{broken}");
}

#[tokio::test]
async fn attaching_twice_is_attaching_once() {
    let fake = engine().await;
    ensure(&fake, PROJECT, &planned(), &[]).await.unwrap();
    for _ in 0..2 {
        attach(&fake, &planned().name, &network()).await.unwrap();
    }
    let found = fake.container(&planned().name).await.unwrap().unwrap();
    assert_eq!(
        found.networks[&network().name],
        network().gateway.to_string()
    );
}
