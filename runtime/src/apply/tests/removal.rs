use super::*;

async fn remove(lab: &Lab, with_data: bool) -> (Removal, Destroyed) {
    let observed = crate::engine::EngineView::observe(&lab.fake, "test", &[])
        .await
        .unwrap();
    let removal = Removal::of(&observed, with_data);
    let report = destroy(&lab.fake, &observed, &removal, &Stop::default()).await;
    (removal, report)
}

#[tokio::test]
async fn everything_goes_and_data_stays_unless_it_is_asked_for() {
    let lab = Lab::new(vec![capability("weather"), workspace("files")]);
    lab.apply().await;
    let (removal, report) = remove(&lab, false).await;
    assert!(report.failed.is_empty(), "{report:?}");
    assert_eq!(removal.kept_volumes.len(), 1);
    lab.fake.edit(|world| {
        assert!(world.containers.is_empty() && world.networks.is_empty());
        assert_eq!(world.volumes.len(), 1);
    });
    let (_, report) = remove(&lab, true).await;
    assert_eq!(report.done.len(), 1, "{report:?}");
    lab.fake.edit(|world| assert!(world.volumes.is_empty()));
    let (removal, _) = remove(&lab, true).await;
    assert!(removal.is_empty());
}

#[tokio::test]
async fn a_failure_is_reported_and_the_rest_goes_nevertheless() {
    let lab = Lab::new(vec![capability("weather"), workspace("files")]);
    lab.apply().await;
    let name = "remove container selu_test_agent_weather_1";
    lab.fake.fail(name, crate::engine::fake::When::Before);
    let (_, report) = remove(&lab, false).await;
    assert!(
        report
            .failed
            .iter()
            .any(|(what, _)| what.contains("weather")),
        "{report:?}"
    );
    let left = lab.fake.edit(|world| world.containers.len());
    assert_eq!(left, 1);
    let (_, report) = remove(&lab, false).await;
    assert!(report.failed.is_empty(), "{report:?}");
}

#[tokio::test]
async fn a_stranger_in_a_network_that_should_go_is_named_and_not_touched() {
    let mut lab = Lab::new(vec![capability("weather"), workspace("files")]);
    lab.apply().await;
    let network = "selu_test_agent_weather_1";
    lab.fake.edit(|world| {
        let mut stranger = world.containers[network].clone();
        stranger.observed.spec.labels.clear();
        world.containers.insert("stranger".to_owned(), stranger);
    });
    let agent = lab.project.agents.get_mut("agent").unwrap();
    agent.capabilities.remove("weather");
    let report = lab.apply().await;
    let failed: Vec<&String> = report
        .outcomes
        .iter()
        .filter_map(|(_, outcome)| match outcome {
            Outcome::Failed(why) => Some(why),
            _ => None,
        })
        .collect();
    assert_eq!(failed.len(), 1, "{report:?}");
    assert!(failed[0].contains("in it: stranger"), "{failed:?}");
    lab.fake.edit(|world| {
        let stranger = world.containers.remove("stranger").unwrap();
        assert!(stranger.observed.networks.contains_key(network));
    });
    lab.apply().await;
    lab.assert_as_planned("once the stranger has left").await;
}
