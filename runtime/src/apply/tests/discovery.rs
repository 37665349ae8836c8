use selu_compiler::model::ToolSource;
use selu_proto::v1::InvokeResponse;

use super::*;

const TOOLS: &str = r#"[{"name": "t", "description": "d", "input_schema": {"type": "object"}}]"#;

fn dynamic(id: &str) -> Capability {
    Capability {
        tools: ToolSource::Dynamic {
            discovery_tool: "list_tools".to_owned(),
        },
        ..workspace(id)
    }
}

fn key() -> InstanceKey {
    InstanceKey::parse(KEY).unwrap()
}

fn lab(server: Scripted) -> Lab {
    let lab = Lab::new(vec![dynamic("weather")]);
    lab.image("weather:1", "1", serving(server));
    lab
}

#[tokio::test]
async fn what_was_created_is_discovered_and_what_is_unchanged_is_not_asked_again() {
    let server = Scripted::listing(TOOLS);
    let lab = lab(server.clone());
    let report = lab.apply().await;
    let Some(Discovery::Found(found)) = report.discoveries.get(&key()) else {
        panic!("{report:#?}");
    };
    assert_eq!(found.discovered.tools.len(), 1);
    assert!(lab.apply().await.discoveries.is_empty());
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn h14_the_order_of_a_list_and_of_its_keys_changes_no_byte_and_one_text_one_line() {
    let listings = [
        r#"[{"name": "a", "description": "x", "input_schema": {"type": "object", "properties": {"p": true, "q": {}}}},
            {"name": "b", "description": "y", "input_schema": {"type": "object"}}]"#,
        r#"[{"input_schema": {"type": "object"}, "description": "y", "name": "b"},
            {"input_schema": {"properties": {"q": {}, "p": true}, "type": "object"}, "name": "a", "description": "x"}]"#,
        r#"[{"name": "b", "description": "z", "input_schema": {"type": "object"}},
            {"name": "a", "description": "x", "input_schema": {"type": "object", "properties": {"p": true, "q": {}}}}]"#,
    ];
    let mut locks = Vec::new();
    for listing in listings {
        let lab = lab(Scripted::listing(listing));
        let report = lab.apply().await;
        let Some(Discovery::Found(found)) = report.discoveries.get(&key()) else {
            panic!("{report:#?}");
        };
        let found = selu_compiler::lock::DiscoveryOutcome::Found {
            tools: found.discovered.tools.clone(),
            credentials_present: BTreeSet::new(),
        };
        let (_, plan, _) = lab.plan().await;
        let found = BTreeMap::from([(key(), found)]);
        let merged = Lock::merge(None, &plan, &found, &lab.project.settings);
        locks.push(merged.lock.write(None));
    }
    assert_eq!(locks[0], locks[1]);
    let differ = locks[0].lines().zip(locks[2].lines());
    let differ: Vec<_> = differ.filter(|(old, new)| old != new).collect();
    assert_eq!(differ, [("description = \"y\"", "description = \"z\"")]);
}

#[tokio::test]
async fn a_discovery_that_is_due_runs_although_nothing_changes() {
    let server = Scripted::listing(TOOLS);
    let lab = lab(server.clone());
    lab.apply().await;
    let due = BTreeSet::from([key()]);
    let report = lab.apply_with(&Stop::default(), &due).await;
    assert!(matches!(report.discoveries[&key()], Discovery::Found(_)));
    assert_eq!(server.calls(), 2);
}

#[tokio::test]
async fn a_failed_discovery_is_reported_and_the_container_stays() {
    let broken = Scripted::answering(|_, _| {
        Ok(InvokeResponse {
            result_json: b"{}".to_vec(),
            error: String::new(),
        })
    });
    let lab = lab(broken.clone());
    let report = lab.apply().await;
    assert!(
        matches!(report.discoveries[&key()], Discovery::Failed(_)),
        "{report:#?}"
    );
    assert!(all_done(&report));
    assert_eq!(broken.calls(), 2, "tried once more (D2)");
    lab.assert_as_planned("container").await;
}

#[tokio::test]
async fn a_call_that_broke_quotes_the_containers_last_words_and_a_bad_list_does_not() {
    let words = async |answer: Result<InvokeResponse, tonic::Status>| {
        let lab = lab(Scripted::answering(move |_, _| answer.clone()));
        lab.apply().await;
        lab.fake.edit(|world| {
            for container in world.containers.values_mut() {
                container.log = "panicked at server.rs:1\n".to_owned();
            }
        });
        let due = BTreeSet::from([key()]);
        let mut report = lab.apply_with(&Stop::default(), &due).await;
        match report.discoveries.remove(&key()) {
            Some(Discovery::Failed(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let broke = words(Err(tonic::Status::internal("h2 went away"))).await;
    assert!(broke.contains("| panicked at server.rs:1"), "{broke}");
    let listed = words(Ok(InvokeResponse {
        result_json: b"{}".to_vec(),
        error: String::new(),
    }))
    .await;
    assert!(!listed.contains("panicked"), "{listed}");
}

/// Discovers in a container of its own, as `selu lock` does.
async fn try_out(lab: &Lab, had_gateway: bool) -> Report {
    let (observed, in_use, _) = lab.plan().await;
    let masked = without_residents(&observed);
    let alone = resolve(&lab.project, None, Some(&masked)).plan.unwrap();
    let (plan, changes) = trial(alone, &masked, &in_use, &[key()]);
    let job = Job {
        engine: &lab.fake,
        plan: &plan,
        changes: &changes,
        observed: &observed,
        due: &BTreeSet::new(),
        unpulled: &BTreeMap::new(),
        secrets: &lab.secrets,
        events: &Quiet,
        stop: &Stop::default(),
        ready_timeout: Duration::from_millis(400),
    };
    job.clear_trials(true).await.unwrap();
    let report = apply(&job).await;
    job.clear_trials(had_gateway).await.unwrap();
    report
}

#[tokio::test]
async fn a_trial_leaves_nothing_on_an_empty_engine() {
    let lab = lab(Scripted::listing(TOOLS));
    let report = try_out(&lab, false).await;
    assert!(
        matches!(report.discoveries[&key()], Discovery::Found(_)),
        "{report:#?}"
    );
    lab.fake.edit(|world| {
        assert!(world.containers.is_empty() && world.networks.is_empty());
        assert!(world.volumes.is_empty(), "{:?}", world.volumes.keys());
    });
}

#[tokio::test]
async fn a_trial_beside_a_resident_touches_neither_it_nor_its_volume() {
    let lab = lab(Scripted::listing(TOOLS));
    lab.apply().await;
    let names = |lab: &Lab| {
        lab.fake.edit(|world| {
            let ids = world.containers.values().map(|one| one.observed.id.clone());
            let volumes = world.volumes.keys().cloned();
            (ids.collect::<Vec<_>>(), volumes.collect::<Vec<_>>())
        })
    };
    let before = names(&lab);
    let report = try_out(&lab, true).await;
    assert!(
        matches!(report.discoveries[&key()], Discovery::Found(_)),
        "{report:#?}"
    );
    assert_eq!(names(&lab), before);
    lab.assert_as_planned("after the trial").await;
}

#[tokio::test]
async fn a_trials_second_attempt_is_in_a_fresh_container() {
    let flaky = Scripted::answering(|number, _| match number {
        0 => Err(tonic::Status::internal("state is bad")),
        _ => Ok(InvokeResponse {
            result_json: TOOLS.into(),
            error: String::new(),
        }),
    });
    let lab = lab(flaky);
    let report = try_out(&lab, false).await;
    assert!(
        matches!(report.discoveries[&key()], Discovery::Found(_)),
        "{report:#?}"
    );
    let creates = lab
        .fake
        .writes()
        .into_iter()
        .filter(|write| write.starts_with("create container") && write.contains("discovery"));
    assert_eq!(creates.count(), 2);
}
