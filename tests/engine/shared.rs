//! Shared capabilities (X1): so many calls at once, those beyond wait, and what ends one call names the others (R2).

use std::process::{Child, Output};

use serde_json::{Value, json};

use crate::invoke::tools;
use crate::project::TestProject;

fn shared(topic: &str, most: u32) -> TestProject {
    let project = TestProject::new(topic);
    let tools = tools(&["never", "echo", "burn", "environment"]);
    let manifest = format!(
        "sharing: {{mode: shared, max_concurrent: {most}}}\nresources: {{max_memory_mb: 48, max_cpu_fraction: 1.0, max_cpu_seconds: 2}}\n{tools}"
    );
    project.probe("a", "probe", &["serve"], &manifest);
    project.up();
    project
}

/// Calls that never end by themselves, all of them under way.
fn under_way(project: &TestProject, count: usize) -> Vec<Child> {
    let each =
        (0..count).map(|_| project.start(&["invoke", "a/probe", "never", "--deadline", "600"]));
    let each = each.collect();
    let resident = project.resident("a", "probe", 1);
    crate::daemon::wait_for_log(&resident, "probe: never ends", count);
    each
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_shared_tool_serves_max_concurrent_calls_and_those_beyond_wait_and_then_fail_x1() {
    let project = shared("shared-most", 2);
    let told = project.selu(&["invoke", "a/probe", "environment", "--format", "json"]);
    assert_eq!(told.expect(0).json()["result"]["SELU_SHARED"], "true");
    let mut busy = under_way(&project, 2);

    let refused = project.selu(&["invoke", "a/probe", "echo"]).expect(1);
    assert!(
        refused.stderr.contains("all 2 calls") && refused.stderr.contains("30 s"),
        "{}",
        refused.stderr
    );
    // One that waits gets the place that is given back.
    let waiting = project.start(&[
        "invoke",
        "a/probe",
        "echo",
        "--args",
        r#"{"came": "through"}"#,
    ]);
    let mut first = busy.remove(0);
    first.kill().unwrap();
    first.wait().unwrap();
    let came = waiting.wait_with_output().unwrap();
    assert_eq!(came.status.code(), Some(0), "{}", said(&came));
    assert!(String::from_utf8_lossy(&came.stdout).contains("through"));
    for mut child in busy {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_call_that_uses_up_the_cpu_time_names_those_that_end_with_it_and_they_say_why_r2() {
    let project = shared("shared-burn", 4);
    let mut calls: Vec<(&str, Child)> = Vec::new();
    calls.extend(
        under_way(&project, 2)
            .into_iter()
            .map(|child| ("never", child)),
    );
    calls.push((
        "burn",
        project.start(&["invoke", "a/probe", "burn", "seconds=600"]),
    ));
    let ended: Vec<(String, String)> = calls
        .into_iter()
        .map(|(tool, child)| {
            let name = format!("{tool} (process {})", child.id());
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{name}");
            (name, said(&output))
        })
        .collect();
    for (name, said) in &ended {
        assert!(said.contains("resources.max_cpu_seconds"), "{name}: {said}");
        assert!(said.contains("is ready"), "{name}: {said}");
    }
    // The time is counted for the container: whichever sees first that it is over ends them all, by name.
    let names_all = |(own, said): &&(String, String)| {
        let mut others = ended.iter().filter(|(name, _)| name != own);
        others.all(|(name, _)| said.contains(name.as_str()))
    };
    assert_eq!(ended.iter().filter(names_all).count(), 1, "{ended:#?}");
    project.selu(&["invoke", "a/probe", "echo"]).expect(0);
    project.selu(&["status"]).expect(0);
}

#[test]
fn a_thousand_calls_at_once_over_four_instances_come_each_with_its_own_answer() {
    let project = TestProject::new("shared-many");
    let agents = ["a", "b", "c", "d"];
    for agent in agents {
        let manifest = format!(
            "sharing: {{mode: shared, max_concurrent: 250}}\n{}",
            tools(&["echo"])
        );
        project.probe(agent, "probe", &["serve"], &manifest);
    }
    project.up();
    let gateway = project.gateway();
    let results = crate::daemon::wait(async {
        let mut pipes = Vec::new();
        for agent in agents {
            let network = project.resident(agent, "probe", 1);
            pipes.push(crate::call::open_pipe(&gateway, &network).await.unwrap());
        }
        let calls = (0..1000)
            .zip(pipes.iter().cycle())
            .map(async |(number, pipe)| {
                let arguments = json!({"number": number});
                let answer: Result<Value, String> =
                    crate::call::invoke(pipe.clone(), "echo", &arguments, &json!({}))
                        .await
                        .and_then(|answer| answer);
                match answer {
                    Ok(answer) if answer == arguments => None,
                    other => Some(format!("{number}: {other:?}")),
                }
            });
        futures_util::future::join_all(calls).await
    });
    let lost: Vec<String> = results.into_iter().flatten().collect();
    assert_eq!(lost, [""; 0]);
}
