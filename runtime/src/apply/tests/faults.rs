//! House rule 9: every step is failed once, in every way, and a rerun converges.

use super::*;
use crate::engine::fake::When;

/// From nothing; from an older image; from a project that had more; from one whose rules opened nothing.
#[derive(Debug, Clone, Copy)]
enum From {
    Nothing,
    OlderImage,
    More,
    Closed,
}

async fn lab(from: From) -> Lab {
    let mut lab = Lab::new(vec![capability("weather"), workspace("files")]);
    match from {
        From::Nothing => {}
        From::OlderImage => {
            lab.apply().await;
            lab.image("files:1", "2", serving(Scripted::listing("[]")));
        }
        From::More => {
            lab.apply().await;
            let agent = lab.project.agents.get_mut("agent").unwrap();
            agent.capabilities.remove("weather");
        }
        From::Closed => {
            lab.apply().await;
            super::egress::open(&mut lab, &["api.example.com:443"]);
        }
    }
    lab.fake.writes();
    lab
}

/// What a run without a fault calls; the execs are not writes, and named here.
async fn calls(from: From) -> Vec<String> {
    let lab = lab(from).await;
    assert!(all_done(&lab.apply().await), "{from:?}");
    lab.assert_as_planned(&format!("{from:?}")).await;
    let mut calls: BTreeSet<String> = lab.fake.writes().into_iter().collect();
    calls.insert("run /selu gateway policy in".to_owned());
    calls.insert("run /selu gateway policy --show".to_owned());
    match from {
        From::Nothing | From::OlderImage | From::Closed => {
            calls.insert("run /selu gateway pipe".to_owned());
            calls.insert("inspect container".to_owned());
        }
        // Nothing comes up that would be asked or read back.
        From::More => {}
    }
    calls.into_iter().collect()
}

async fn every_fault(from: From) {
    for call in calls(from).await {
        for when in [When::Before, When::After, When::InAnswer] {
            let context = format!("{from:?}, {when:?}: {call}");
            let lab = lab(from).await;
            lab.fake.fail(&call, when);
            lab.apply().await;
            assert_eq!(lab.fake.waiting_faults(), [""; 0], "{context}: never came");
            // One rerun makes good what failed; a second one may be needed for what could not be undone.
            for _ in 0..2 {
                let (_, _, changes) = lab.plan().await;
                if !changes.is_empty() {
                    lab.apply().await;
                }
            }
            lab.assert_as_planned(&context).await;
        }
    }
}

#[tokio::test]
async fn a_first_apply_converges_after_any_fault() {
    every_fault(From::Nothing).await;
}

#[tokio::test]
async fn a_replacement_converges_after_any_fault() {
    every_fault(From::OlderImage).await;
}

#[tokio::test]
async fn a_removal_converges_after_any_fault() {
    every_fault(From::More).await;
}

#[tokio::test]
async fn the_first_rule_that_opens_something_converges_after_any_fault() {
    every_fault(From::Closed).await;
}

#[tokio::test]
async fn what_works_goes_on_working_through_any_fault_of_its_replacement() {
    for call in calls(From::OlderImage).await {
        // What is removed or detached after the switch is the old one itself.
        if call.contains("_files_1") {
            continue;
        }
        for when in [When::Before, When::After, When::InAnswer] {
            let lab = lab(From::OlderImage).await;
            lab.fake.fail(&call, when);
            lab.apply().await;
            let running = lab.fake.edit(|world| {
                let of_files = world.containers.iter().filter(|(name, container)| {
                    name.contains("_files_") && container.observed.state == ContainerState::Running
                });
                of_files.count()
            });
            assert!(running >= 1, "{when:?}: {call}");
        }
    }
}
