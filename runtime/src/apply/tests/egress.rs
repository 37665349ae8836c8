//! Rules that open something: what the gateway is given, and when.

use selu_compiler::plan::spec::PROXY;

use super::*;
use crate::egress::policy::Policy;
use crate::engine::fake::HOST_ADDRESS;

/// Lets `agent/weather` reach these.
pub(super) fn open(lab: &mut Lab, hosts: &[&str]) {
    let agent = lab.project.agents.get_mut("agent").unwrap();
    let weather = agent.capabilities.get_mut("weather").unwrap();
    let network = &mut std::sync::Arc::make_mut(weather).network;
    network.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    network.mode = match hosts {
        [] => NetworkMode::None,
        _ => NetworkMode::Allowlist,
    };
}

/// What the gateway goes by.
fn delivered(lab: &Lab) -> Policy {
    let sealed = lab.fake.edit(|world| {
        let volume = &world.volumes["selu_test_gateway"];
        volume.policy.clone()
    });
    sealed.unwrap().policy
}

#[tokio::test]
async fn an_open_rule_is_delivered_with_the_hosts_own_addresses_and_a_second_apply_writes_nothing()
{
    let mut lab = Lab::new(vec![capability("weather")]);
    open(&mut lab, &["api.example.com:443"]);
    assert!(all_done(&lab.apply().await));
    lab.assert_as_planned("open").await;
    let policy = delivered(&lab);
    assert_eq!(
        policy.refused,
        [HOST_ADDRESS.parse::<std::net::IpAddr>().unwrap()]
    );
    let rule = &policy.networks["selu_test_agent_weather_1"];
    assert_eq!(rule.rules.hosts, ["api.example.com:443"]);
    assert!(
        policy
            .ranges
            .iter()
            .any(|range| range.contains(&rule.subnet))
    );
    let env = lab.fake.edit(|world| {
        let weather = &world.containers["selu_test_agent_weather_1"];
        weather.observed.spec.env.clone()
    });
    assert_eq!(env["https_proxy"], PROXY);

    lab.fake.writes();
    assert!(
        lab.apply()
            .await
            .outcomes
            .iter()
            .all(|(_, outcome)| outcome.is_success())
    );
    assert_eq!(lab.fake.writes(), [""; 0]);
}

#[tokio::test]
async fn a_project_that_opens_nothing_asks_for_no_address_and_has_no_way_out() {
    let lab = Lab::new(vec![capability("weather")]);
    assert!(all_done(&lab.apply().await));
    assert!(delivered(&lab).refused.is_empty());
    let asked = lab.fake.writes();
    assert!(
        asked.iter().all(|call| !call.contains("addresses")),
        "{asked:?}"
    );
    let (observed, plan, _) = lab.plan().await;
    assert!(observed.networks.values().all(|network| network.closed));
    assert!(plan.gateway.unwrap().spec.cap_add.is_empty());
}

#[tokio::test]
async fn an_old_generation_keeps_the_rules_that_it_was_made_under_until_its_successor_is_ready() {
    let mut lab = Lab::new(vec![capability("weather")]);
    open(&mut lab, &["old.example.com:443"]);
    lab.apply().await;
    open(&mut lab, &["new.example.com:443"]);
    lab.image("weather:1", "broken", |image| {
        image.ends = Some((3, "no such file".to_owned()));
    });
    assert!(!all_done(&lab.apply().await));
    let networks = delivered(&lab).networks;
    let hosts: Vec<_> = networks.values().map(|rule| &rule.rules.hosts).collect();
    assert_eq!(hosts, [&["old.example.com:443"]]);

    lab.image("weather:1", "mended", serving(Scripted::listing("[]")));
    assert!(all_done(&lab.apply().await));
    lab.assert_as_planned("mended").await;
    let networks = delivered(&lab).networks;
    let hosts: Vec<_> = networks.values().map(|rule| &rule.rules.hosts).collect();
    assert_eq!(hosts, [&["new.example.com:443"]]);
}

#[tokio::test]
async fn the_last_open_rule_takes_privilege_and_way_out_along() {
    let mut lab = Lab::new(vec![capability("weather"), capability("files")]);
    open(&mut lab, &["api.example.com:443"]);
    lab.apply().await;
    open(&mut lab, &[]);
    assert!(all_done(&lab.apply().await));
    lab.assert_as_planned("closed").await;
    let (observed, _, _) = lab.plan().await;
    assert!(observed.networks.values().all(|network| network.closed));
    let gateway = &observed.containers["selu_test_gateway"].spec;
    assert_eq!(
        (gateway.user.as_str(), gateway.cap_add.len()),
        ("65532:65532", 0)
    );
    assert!(!delivered(&lab).is_open());
}

#[tokio::test]
async fn an_engine_whose_host_keeps_its_addresses_to_itself_gets_no_rule_that_opens() {
    let mut lab = Lab::new(vec![capability("weather")]);
    open(&mut lab, &["api.example.com:443"]);
    let refused = crate::engine::fake::When::Before;
    lab.fake
        .fail("create container selu_test_addresses", refused);
    assert!(!all_done(&lab.apply().await));
    let policy = lab
        .fake
        .edit(|world| world.volumes["selu_test_gateway"].policy.clone());
    assert_eq!(policy, None);
}
