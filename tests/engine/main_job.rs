//! check → plan → apply → discover → lock on a real engine, and back to nothing.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::call::call;
use crate::daemon;
use crate::project::TestProject;

const DYNAMIC: &str = "tool_source: dynamic\n";
const STATIC: &str = "tools:\n  - name: read\n    description: Reads a file.\n    recommended_policy: allow\n    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}\n";

fn two_agents(topic: &str) -> TestProject {
    let project = TestProject::new(topic);
    project.probe("a", "live", &["serve"], DYNAMIC);
    project.probe("b", "fixed", &["serve"], STATIC);
    project
}

#[test]
fn a_directory_becomes_containers_whose_tools_are_discovered_locked_and_callable() {
    let project = two_agents("job");
    project.selu(&["check"]).expect(0);
    project.selu(&["build"]).expect(0);
    let planned = project.selu(&["plan", "--detailed-exitcode"]).expect(2);
    assert!(
        planned.stdout.contains("a/live") && planned.stdout.contains("b/fixed"),
        "{}",
        planned.stdout
    );
    assert!(!project.is_deployed(), "plan touches nothing");
    project.selu(&["apply", "-y"]).expect(0);

    let lock = project.read("selu.lock");
    for tool in ["udp", "tcp", "read", "exit"] {
        assert!(
            lock.contains(&format!("[instance.\"a/live\".tool.{tool}]"))
                || lock.contains(&format!("tool.\"{tool}\"")),
            "{tool} in {lock}"
        );
    }
    let tools = project.selu(&["tools", "--format", "json"]).expect(0);
    assert!(
        tools.stdout.contains("live__tcp") && tools.stdout.contains("fixed__read"),
        "{}",
        tools.stdout
    );
    assert!(
        !tools.stdout.contains("list_tools"),
        "the discovery tool is never offered (T4)"
    );
    assert!(
        !tools.stdout.contains("live__exit"),
        "a tool without a recommendation is blocked (D3)"
    );

    let answer = call(
        &project.gateway(),
        &project.resident("b", "fixed", 1),
        "read",
        &json!({"path": "/proc/self/comm"}),
    );
    assert_eq!(answer["value"], "probe\n");
    project.selu(&["status"]).expect(0);
    project.selu(&["lock", "--check"]).expect(0);
    project.selu(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn a_second_apply_makes_no_mutation() {
    let project = two_agents("twice");
    project.up();
    let lock = project.path().join("selu.lock");
    let written = std::fs::metadata(&lock).unwrap().modified().unwrap();
    let first = daemon::events_during(&project.name, || {
        daemon::unrestricted(
            &project.image("a", "live"),
            "none",
            "environment",
            &json!({}),
        );
    });
    assert!(
        !first.is_empty(),
        "the event stream shows what a test itself does with this project's image"
    );
    let events = daemon::events_during(&project.name, || {
        let run = project.selu(&["apply", "-y"]).expect(0);
        assert!(
            format!("{}{}", run.stdout, run.stderr)
                .to_lowercase()
                .contains("nothing to do"),
            "{}{}",
            run.stdout,
            run.stderr
        );
    });
    assert_eq!(events, Vec::<String>::new());
    assert_eq!(
        std::fs::metadata(&lock).unwrap().modified().unwrap(),
        written,
        "the lock keeps its mtime"
    );
}

#[test]
fn lock_pins_and_discovers_and_leaves_nothing_running() {
    let project = two_agents("lock");
    project.selu(&["build"]).expect(0);
    let before = project.everything();
    project.selu(&["lock"]).expect(0);
    assert_eq!(project.everything(), before);
    project.selu(&["lock", "--check"]).expect(0);
    let written = project.read("selu.lock");
    project.selu(&["lock"]).expect(0);
    assert_eq!(
        project.read("selu.lock"),
        written,
        "a second lock gives the same bytes (H07)"
    );
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(
        project.read("selu.lock"),
        written,
        "apply finds what lock found"
    );
}

#[test]
fn lock_check_names_what_is_stale_and_changes_nothing() {
    let project = two_agents("stale");
    project.selu(&["build"]).expect(0);
    project.selu(&["lock"]).expect(0);
    let written = project.read("selu.lock");
    let manifest = "agents/b/capabilities/fixed/manifest.yaml";
    let text = project.read(manifest);
    project.write(
        manifest,
        &format!("{text}resources: {{max_memory_mb: 64}}\n"),
    );
    let stale = project.selu(&["lock", "--check"]).expect(2);
    let said = format!("{}{}", stale.stdout, stale.stderr);
    assert!(
        said.contains("b/fixed") && said.contains("128") && said.contains("64"),
        "{said}"
    );
    let refused = project
        .selu(&["apply", "-y", "--locked", "--allow-local"])
        .expect(2);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("b/fixed") && said.contains("64"), "{said}");
    assert_eq!(project.read("selu.lock"), written, "neither writes (H02)");
    assert!(!project.is_deployed());
}

#[test]
fn destroy_leaves_nothing_of_ours_and_everything_else_untouched() {
    let project = TestProject::new("destroy");
    project.probe(
        "a",
        "space",
        &["serve"],
        "class: environment\nfilesystem: workspace\n",
    );
    let bystander = two_agents("bystander");
    bystander.up();
    let everything = || daemon::everything(&[&project.name, &bystander.name]);
    project.selu(&["build"]).expect(0);
    let before = everything();
    project.selu(&["apply", "-y"]).expect(0);
    let network = project.resident("a", "space", 1);
    call(
        &project.gateway(),
        &network,
        "write",
        &json!({"path": "/workspace/kept", "content": "data"}),
    );
    assert_ne!(everything(), before);

    project.selu(&["destroy"]).expect(1);
    assert!(
        everything().iter().any(|thing| thing.contains(&network)),
        "no terminal and no -y: refused"
    );
    project.selu(&["destroy", "-y"]).expect(0);
    let left: Vec<String> = everything()
        .into_iter()
        .filter(|thing| !before.contains(thing))
        .collect();
    assert_eq!(
        left.len(),
        1,
        "the workspace holds data and stays (product.md 15): {left:?}"
    );
    assert!(left[0].starts_with("volume "), "{left:?}");

    project.selu(&["apply", "-y"]).expect(0);
    let kept = call(
        &project.gateway(),
        &project.resident("a", "space", 1),
        "read",
        &json!({"path": "/workspace/kept"}),
    );
    assert_eq!(kept["value"], "data");
    project.selu(&["destroy", "-y", "--volumes"]).expect(0);
    assert_eq!(everything(), before);
    bystander.selu(&["status"]).expect(0);
}

#[test]
fn a_changed_manifest_replaces_the_container_and_names_the_changed_path() {
    let project = TestProject::new("change");
    project.probe("a", "probe", &["serve"], STATIC);
    project.up();
    let manifest = "agents/a/capabilities/probe/manifest.yaml";
    let text = project.read(manifest);
    let first = daemon::inspect(&project.resident("a", "probe", 1))["Id"].clone();

    project.write(manifest, &format!("{text}filesystem: temp\n"));
    let plan = project.selu(&["plan"]).expect(0);
    assert!(
        plan.stdout.contains("replace") && plan.stdout.contains("tmpfs"),
        "never changed without a path: {}",
        plan.stdout
    );
    project.selu(&["apply", "-y"]).expect(0);
    let replaced = daemon::inspect(&project.resident("a", "probe", 2));
    assert_ne!(replaced["Id"], first);
    assert!(
        !project
            .everything()
            .iter()
            .any(|thing| thing.contains(&project.resident("a", "probe", 1))),
        "the old one is gone"
    );
    let written = call(
        &project.gateway(),
        &project.resident("a", "probe", 2),
        "write",
        &json!({"path": "/tmp/x", "content": ""}),
    );
    assert_eq!(written["ok"], true);

    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(
        daemon::inspect(&project.resident("a", "probe", 2))["Id"],
        replaced["Id"]
    );
}

#[test]
fn a_bad_new_version_never_takes_a_working_capability_down() {
    let project = TestProject::new("bad");
    project.probe("a", "probe", &["serve"], STATIC);
    project.up();
    let before = project.everything();
    let working = daemon::inspect(&project.resident("a", "probe", 1))["Id"].clone();
    project.write(
        "agents/a/capabilities/probe/container/Dockerfile",
        "FROM scratch\nCOPY probe /probe\nENTRYPOINT [\"/probe\", \"exit\", \"3\", \"no such flag\"]\n",
    );
    project.selu(&["build"]).expect(0);
    let failed = project.selu(&["apply", "-y"]);
    assert!(
        failed.code == 1 || failed.code == 3,
        "{} {}",
        failed.code,
        failed.stderr
    );
    assert!(failed.stderr.contains("no such flag"), "{}", failed.stderr);
    let seen = daemon::inspect(&project.resident("a", "probe", 1));
    assert_eq!(seen["Id"], working);
    assert_eq!(seen["State"]["Running"], true);
    let after: Vec<String> = project
        .everything()
        .into_iter()
        .filter(|thing| !thing.starts_with("image "))
        .collect();
    let before: Vec<String> = before
        .into_iter()
        .filter(|thing| !thing.starts_with("image "))
        .collect();
    assert_eq!(after, before, "the failed generation left nothing behind");
    let answer = call(
        &project.gateway(),
        &project.resident("a", "probe", 1),
        "read",
        &json!({"path": "/proc/self/comm"}),
    );
    assert_eq!(answer["value"], "probe\n");
}

#[test]
fn what_somebody_changed_on_a_live_object_is_named_by_its_path_and_repaired() {
    let project = TestProject::new("drift");
    project.probe("a", "probe", &["serve"], STATIC);
    project.up();
    let name = project.resident("a", "probe", 1);
    daemon::wait(async {
        let body = bollard::models::ContainerUpdateBody {
            memory: Some(256 << 20),
            memory_swap: Some(256 << 20),
            ..Default::default()
        };
        daemon::connect()
            .update_container(&name, body)
            .await
            .unwrap();
    });
    assert_eq!(daemon::inspect(&name)["HostConfig"]["Memory"], 256 << 20);
    let plan = project.selu(&["plan", "--detailed-exitcode"]).expect(2);
    assert!(plan.stdout.contains("spec.memory_bytes"), "{}", plan.stdout);
    assert!(
        plan.stdout.to_lowercase().contains("drift"),
        "{}",
        plan.stdout
    );
    project.selu(&["status"]).expect(2);
    project.selu(&["apply", "-y"]).expect(0);
    let repaired = daemon::inspect(&name);
    assert_eq!(repaired["HostConfig"]["Memory"], 128 << 20);
    assert_eq!(repaired["RestartCount"], 0, "memory is changed in place");
    project.selu(&["status"]).expect(0);
}

#[test]
fn a_declared_system_credential_arrives_in_discovery_and_appears_nowhere_else() {
    let project = TestProject::new("secret");
    let credential = format!(
        "{DYNAMIC}credentials:\n  - {{name: API_KEY, scope: system}}\n  - {{name: PIN, scope: user}}\n"
    );
    project.probe("a", "live", &["serve"], &credential);
    let canary = "c4n4ry-value-that-must-not-show";
    let variables = [
        ("SELU_CRED__A__LIVE__API_KEY", canary),
        ("API_KEY", "the operator's own, never looked up"),
    ];
    // The directory's own code gets none of it either: `prepare` fails if it does.
    let settings = project.read("selu.toml");
    let watching = settings.replace("\"cp ", "\"! env | grep -q SELU_CRED__ && cp ");
    assert_ne!(watching, settings);
    project.write("selu.toml", &watching);
    project.selu_with(&variables, &["build"]).expect(0);
    let missing = project.selu(&["apply", "-y"]);
    assert_ne!(missing.code, 0);
    assert!(missing.stderr.contains("API_KEY"), "{}", missing.stderr);

    let applied = project
        .selu_with(&variables, &["apply", "-y", "--verbose"])
        .expect(0);
    let everything = format!(
        "{}{}{}{}{}",
        applied.stdout,
        applied.stderr,
        project.read("selu.lock"),
        daemon::inspect(&project.resident("a", "live", 1)),
        daemon::inspect(&project.gateway()),
    );
    assert!(!everything.contains(canary));
    assert!(
        project.read("selu.lock").contains("API_KEY"),
        "its name is locked"
    );
    let arrived: String = Sha256::digest(canary)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let tools = project
        .selu(&["tools", "--format", "json"])
        .expect(0)
        .stdout;
    assert!(
        tools.contains(&arrived),
        "the capability proves by a hash that it received the value: {tools}"
    );
    assert!(
        !tools.contains("PIN"),
        "a user's value has no place in discovery (C4)"
    );
}

#[test]
fn open_rules_are_applied_and_gone_by_and_a_second_apply_does_nothing() {
    for (mode, rules) in [
        (
            "allowlist",
            "network: {mode: allowlist, hosts: [\"api.example.com:443\"]}\n",
        ),
        ("any", "network: {mode: any}\n"),
    ] {
        let project = TestProject::new(mode);
        project.probe("a", "probe", &["serve"], rules);
        project.selu(&["build"]).expect(0);
        project.selu(&["check"]).expect(0);
        let planned = project.selu(&["plan"]).expect(0);
        assert!(planned.stdout.contains(mode), "{}", planned.stdout);
        project.selu(&["apply", "-y"]).expect(0);
        let status = project.selu(&["status"]).expect(0);
        assert!(status.stdout.contains("acknowledged"), "{}", status.stdout);
        let events = daemon::events_during(&project.name, || {
            project.selu(&["apply", "-y"]).expect(0);
        });
        assert_eq!(events, Vec::<String>::new());
    }
}

#[test]
fn two_projects_on_one_engine_do_not_touch_each_other() {
    let one = two_agents("one");
    let two = two_agents("two");
    one.up();
    two.up();
    one.selu(&["destroy", "-y"]).expect(0);
    two.selu(&["status"]).expect(0);
    let answer = call(
        &two.gateway(),
        &two.resident("b", "fixed", 1),
        "read",
        &json!({"path": "/proc/self/comm"}),
    );
    assert_eq!(answer["value"], "probe\n");
}
