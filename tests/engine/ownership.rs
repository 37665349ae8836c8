//! S12 and product.md 10: what is ours is told by name, labels and a mark that nobody else can make. G03, G04, G12.

use std::process::Command;

use crate::daemon;
use crate::project::{Run, TestProject, run};
use crate::world::{docker, docker_text};

const STATIC: &str = "tools:\n  - name: read\n    description: Reads a file.\n    recommended_policy: allow\n    input_schema: {type: object}\n";

fn one(topic: &str) -> TestProject {
    let project = TestProject::new(&format!("own9-{topic}"));
    project.probe("a", "live", &["serve"], STATIC);
    project.selu(&["build"]).expect(0);
    project
}

/// Every label of ours as a container of this project would have it, but for the mark.
fn labels(project: &TestProject, role: &str, generation: u64) -> Vec<String> {
    let labels = [
        ("project", project.name.as_str()),
        ("instance", "a/live"),
        ("role", role),
        ("generation", &generation.to_string()),
        ("spec", "v1:sha256:00"),
    ];
    labels
        .iter()
        .flat_map(|(key, value)| ["--label".to_owned(), format!("dev.selu.{key}={value}")])
        .collect()
}

/// A container that selu did not make, removed with its owner.
struct Foreign(String);

impl Foreign {
    fn make(name: &str, labels: &[String], image: &str) -> Self {
        let mut words = vec!["create", "--name", name];
        words.extend(labels.iter().map(String::as_str));
        words.push(image);
        docker_text(&words);
        Self(name.to_owned())
    }

    fn is_there(&self) -> bool {
        docker(&["inspect", &self.0]).status.success()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        docker(&["rm", "-f", &self.0]);
    }
}

#[test]
fn a_container_with_forged_labels_is_never_taken_for_ours_and_named_where_it_stands_in_the_way() {
    let project = one("forged");
    let image = project.image("a", "live");
    let (wanted, orphan) = (
        project.resident("a", "live", 1),
        project.resident("a", "live", 9),
    );
    let in_the_way = Foreign::make(&wanted, &labels(&project, "resident", 1), &image);
    let aside = Foreign::make(&orphan, &labels(&project, "resident", 9), &image);
    for arguments in [&["plan"][..], &["apply", "-y"]] {
        let refused = project.selu(arguments).expect(1);
        for part in [
            format!("`{wanted}` is taken"),
            format!("docker rm -f {wanted}"),
        ] {
            assert!(refused.stderr.contains(&part), "{part}: {}", refused.stderr);
        }
    }
    docker_text(&["rm", &wanted]);
    drop(in_the_way);
    project.selu(&["apply", "-y"]).expect(0);
    let planned = project.selu(&["plan", "--detailed-exitcode"]).expect(0);
    assert!(!planned.stdout.contains(&orphan), "{}", planned.stdout);
    project.selu(&["destroy", "-y", "--volumes"]).expect(0);
    assert!(aside.is_there(), "a label and a name remove nothing");
}

#[test]
fn a_container_with_the_labels_of_a_hold_is_not_cleared() {
    let project = one("forged-hold");
    let name = format!("selu_{}_hold", project.name);
    let image = project.image("a", "live");
    let hold = Foreign::make(&name, &labels(&project, "hold", 1), &image);
    let refused = project.selu(&["apply", "-y"]);
    assert_ne!(refused.code, 0, "{}", refused.stderr);
    assert!(refused.stderr.contains(&name), "{}", refused.stderr);
    assert!(hold.is_there());
}

#[test]
fn g12_a_copy_by_commit_has_our_labels_and_the_mark_of_another_and_stays_as_it_is() {
    let project = one("commit");
    project.selu(&["apply", "-y"]).expect(0);
    let ours = project.resident("a", "live", 1);
    let committed = format!("selu-test/{}-committed:1", project.name);
    docker_text(&["commit", &ours, &committed]);
    // A newer generation of the same instance, by its name and by every label.
    let label = ["--label".to_owned(), "dev.selu.generation=2".to_owned()];
    let copy = Foreign::make(&project.resident("a", "live", 2), &label, &committed);
    let labels = &daemon::inspect(&copy.0)["Config"]["Labels"];
    let of_ours = &daemon::inspect(&ours)["Config"]["Labels"];
    for inherited in ["dev.selu.project", "dev.selu.owner"] {
        assert_eq!(labels[inherited], of_ours[inherited], "{labels}");
        assert!(labels[inherited].is_string(), "{labels}");
    }
    project.selu(&["plan", "--detailed-exitcode"]).expect(0);
    project.selu(&["status"]).expect(0);
    project.selu(&["destroy", "-y", "--volumes"]).expect(0);
    assert!(copy.is_there());
    drop(copy);
    docker_text(&["image", "rm", "-f", &committed]);
}

#[test]
fn g04_two_work_trees_of_one_project_share_its_containers_and_one_of_another_name_has_its_own() {
    let project = one("trees");
    project.selu(&["apply", "-y"]).expect(0);
    let tree = tempfile::tempdir().unwrap();
    run(Command::new("cp")
        .arg("-r")
        .arg(project.path().join("."))
        .arg(tree.path()))
    .expect(0);
    let other = |arguments: &[&str]| -> Run {
        run(Command::new(env!("CARGO_BIN_EXE_selu"))
            .current_dir(tree.path())
            .args(arguments))
    };
    // The same content from elsewhere is nothing to do: whose folder it is does not matter.
    other(&["plan", "--detailed-exitcode"]).expect(0);

    let image = project.image("a", "live");
    let limited = |pids: u32| {
        let manifest = tree.path().join("agents/a/capabilities/live/manifest.yaml");
        let text = format!("id: live\nimage: {image}\n{STATIC}resources: {{pids_limit: {pids}}}\n");
        std::fs::write(manifest, text).unwrap();
        other(&["apply", "-y"]).expect(0);
    };
    limited(33);
    let of_instance = || {
        let label = format!("label=dev.selu.project={}", project.name);
        let words = ["ps", "-a", "--format", "{{.Names}}", "--filter", &label];
        let all = docker_text(&words);
        let residents = all.lines().filter(|name| name.contains("_a_live_"));
        residents.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of_instance(), [project.resident("a", "live", 1)]);
    // The first tree hears of it, path by path, and is not asked to go back by anything but its own apply.
    let planned = project.selu(&["plan", "--detailed-exitcode"]).expect(2);
    let said = "spec.pids: 33 → 64";
    assert!(planned.stdout.contains(said), "{}", planned.stdout);
    let saved = project.path().join("saved").display().to_string();
    project.selu(&["plan", "--out", &saved]).expect(0);
    limited(34);
    // What was planned from this tree before is not done over it.
    project.selu(&["apply", "-y", "--plan", &saved]).expect(4);
    project.selu(&["status"]).expect(2);

    // Under a name of its own the second tree has everything of its own.
    let name = format!("{}-tree", project.name);
    other(&["--project", &name, "apply", "-y"]).expect(0);
    project.selu(&["apply", "-y"]).expect(0);
    other(&["--project", &name, "plan", "--detailed-exitcode"]).expect(0);
    other(&["--project", &name, "destroy", "-y", "--volumes"]).expect(0);
    project.selu(&["plan", "--detailed-exitcode"]).expect(0);
    project.selu(&["status"]).expect(0);
}
