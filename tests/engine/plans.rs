//! Plans in files, targets, limits in place, and locks that bind, through the binary and on a real engine.

use std::fs;

use crate::daemon;
use crate::project::TestProject;
use crate::registry::Registry;
use crate::world::docker_text;

const DYNAMIC: &str = "tool_source: dynamic\n";
const STATIC: &str = "tools:\n  - name: read\n    description: Reads a file.\n    recommended_policy: allow\n    input_schema: {type: object}\n";

fn two_agents(topic: &str) -> TestProject {
    let project = TestProject::new(&format!("plan4-{topic}"));
    project.probe("a", "live", &["serve"], DYNAMIC);
    project.probe("b", "fixed", &["serve"], STATIC);
    project.selu(&["build"]).expect(0);
    project
}

fn manifest(agent: &str, capability: &str) -> String {
    format!("agents/{agent}/capabilities/{capability}/manifest.yaml")
}

/// Adds to a manifest, and returns what it was.
fn add(project: &TestProject, agent: &str, capability: &str, more: &str) -> String {
    let path = manifest(agent, capability);
    let before = project.read(&path);
    project.write(&path, &format!("{before}{more}"));
    before
}

#[test]
fn a_saved_plan_is_applied_without_the_directory_once_and_shown_always() {
    let project = two_agents("saved");
    project.selu(&["plan", "--out", "p.json"]).expect(0);
    let mode = {
        use std::os::unix::fs::PermissionsExt;
        let file = fs::metadata(project.path().join("p.json")).unwrap();
        file.permissions().mode() & 0o777
    };
    assert_eq!(mode, 0o600);
    let printed = project.selu(&["plan"]).expect(0).stdout;
    let hidden = project.path().join("hidden");
    fs::rename(project.path().join("agents"), &hidden).unwrap();
    fs::rename(project.path().join("selu.toml"), project.path().join("x")).unwrap();
    assert_eq!(project.selu(&["show", "p.json"]).expect(0).stdout, printed);
    project.selu(&["apply", "-y", "--plan", "p.json"]).expect(0);
    let lock = project.read("selu.lock");
    assert!(
        lock.contains("a/live") && lock.contains("b/fixed"),
        "{lock}"
    );
    let again = project.selu(&["apply", "-y", "--plan", "p.json"]).expect(4);
    assert!(
        again.stderr.contains("was applied before"),
        "{}",
        again.stderr
    );
    project.selu(&["show", "p.json"]).expect(0);

    // From a working copy that knows nothing of the first use, what it was made from tells.
    fs::remove_dir_all(project.path().join(".selu")).unwrap();
    let again = project.selu(&["apply", "-y", "--plan", "p.json"]).expect(4);
    let name = project.resident("a", "live", 1);
    for moved in ["selu.lock exists now", &format!("container {name} is new")] {
        assert!(again.stderr.contains(moved), "{moved}: {}", again.stderr);
    }

    fs::rename(&hidden, project.path().join("agents")).unwrap();
    fs::rename(project.path().join("x"), project.path().join("selu.toml")).unwrap();
    project.selu(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn a_plan_that_is_stale_names_exactly_the_object_or_the_entry_that_changed() {
    let project = two_agents("stale");
    project.selu(&["apply", "-y"]).expect(0);
    let before = add(&project, "b", "fixed", "resources: {pids_limit: 32}\n");
    project.selu(&["plan", "--out", "p.json"]).expect(0);
    let refused = |moved: &str| {
        let run = project.selu(&["apply", "-y", "--plan", "p.json"]).expect(4);
        let named: Vec<&str> = run
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .collect();
        assert_eq!(named, [moved], "{}", run.stderr);
    };
    let name = project.resident("a", "live", 1);
    docker_text(&["update", "--pids-limit", "99", &name]);
    refused(&format!("container {name} has changed"));
    docker_text(&["update", "--pids-limit", "64", &name]);

    let lock = project.read("selu.lock");
    project.write(
        "selu.lock",
        &lock.replacen("limits.pids = 64", "limits.pids = 63", 1),
    );
    refused("selu.lock: the entry of a/live has changed");
    project.write("selu.lock", &lock);

    project.selu(&["apply", "-y", "--plan", "p.json"]).expect(0);
    project.write(&manifest("b", "fixed"), &before);
    assert_eq!(
        daemon::inspect(&project.resident("b", "fixed", 1))["HostConfig"]["PidsLimit"],
        32
    );
}

#[test]
fn limits_are_set_on_the_running_container_and_a_second_apply_does_nothing() {
    let project = two_agents("inplace");
    project.selu(&["apply", "-y"]).expect(0);
    let name = project.resident("b", "fixed", 1);
    let id = |name: &str| daemon::inspect(name)["Id"].clone();
    let (before, started) = (
        id(&name),
        daemon::inspect(&name)["State"]["StartedAt"].clone(),
    );
    let plain = project.read(&manifest("b", "fixed"));
    for (limits, field, value) in [
        ("max_memory_mb: 256", "Memory", 256 << 20),
        (
            "max_memory_mb: 256, max_cpu_fraction: 0.25",
            "NanoCpus",
            250_000_000,
        ),
        ("max_memory_mb: 96, pids_limit: 32", "PidsLimit", 32),
    ] {
        let text = format!("{plain}resources: {{{limits}}}\n");
        project.write(&manifest("b", "fixed"), &text);
        let planned = project.selu(&["plan", "--detailed-exitcode"]).expect(2);
        assert!(
            planned
                .stdout
                .contains("~ b/fixed will be changed in place"),
            "{}",
            planned.stdout
        );
        project.selu(&["apply", "-y"]).expect(0);
        assert_eq!(
            daemon::inspect(&name)["HostConfig"][field],
            value,
            "{limits}"
        );
        let events = daemon::events_during(&project.name, || {
            let run = project.selu(&["apply", "-y"]).expect(0);
            assert!(run.stderr.contains("Nothing to do"), "{}", run.stderr);
        });
        assert_eq!(events, Vec::<String>::new(), "{limits}");
    }
    assert_eq!(id(&name), before);
    assert_eq!(daemon::inspect(&name)["State"]["StartedAt"], started);

    // What no setting shows replaces; somebody else's change of a limit is drift, also after updates in place.
    docker_text(&["update", "--pids-limit", "33", &name]);
    let planned = project.selu(&["plan"]).expect(0).stdout;
    assert!(
        planned.contains("changed outside selu (drift):"),
        "{planned}"
    );
    let text =
        format!("{plain}resources: {{max_cpu_seconds: 7, max_memory_mb: 96, pids_limit: 32}}\n");
    project.write(&manifest("b", "fixed"), &text);
    let planned = project.selu(&["plan"]).expect(0).stdout;
    assert!(
        planned.contains("rules.cpu_seconds: 30 → 7  (forces replacement)"),
        "{planned}"
    );
}

#[test]
fn a_target_takes_what_it_depends_on_and_leaves_everything_else() {
    let project = two_agents("target");
    let wrong = project.selu(&["plan", "--target", "a/lvie"]).expect(64);
    assert!(wrong.stderr.contains("a/live, b/fixed"), "{}", wrong.stderr);
    project
        .selu(&["plan", "--target", "a", "--out", "p.json"])
        .expect(0);
    project
        .selu(&["apply", "-y", "--target", "a/live"])
        .expect(0);
    let there = project.everything().join("\n");
    assert!(there.contains(&project.resident("a", "live", 1)), "{there}");
    assert!(there.contains(&project.gateway()), "{there}");
    assert!(
        !there.contains(&project.resident("b", "fixed", 1)),
        "{there}"
    );
    let lock = project.read("selu.lock");
    assert!(
        lock.contains("a/live") && !lock.contains("b/fixed"),
        "{lock}"
    );

    // Everything else, then an orphan and a change of the other one.
    project.selu(&["apply", "-y"]).expect(0);
    let lock = project.read("selu.lock");
    fs::remove_dir_all(project.path().join("agents/a")).unwrap();
    let settings = project.read("selu.toml");
    let part = settings.find("[build.\"a/live\"]").unwrap();
    let end = settings[part..].find("[build.\"b/fixed\"]").unwrap() + part;
    project.write(
        "selu.toml",
        &format!("{}{}", &settings[..part], &settings[end..]),
    );
    add(&project, "b", "fixed", "resources: {pids_limit: 32}\n");
    let planned = project.selu(&["plan", "--target", "b"]).expect(0);
    assert!(!planned.stdout.contains("a_live"), "{}", planned.stdout);
    project.selu(&["apply", "-y", "--target", "b"]).expect(0);
    let there = project.everything().join("\n");
    assert!(there.contains(&project.resident("a", "live", 1)), "{there}");
    assert_eq!(
        project.read("selu.lock"),
        lock.replace(
            "limits.pids = 64\nnetwork.mode = \"none\"\nnetwork.hosts = []\n\n[instance.\"b/fixed\".tool.",
            "limits.pids = 32\nnetwork.mode = \"none\"\nnetwork.hosts = []\n\n[instance.\"b/fixed\".tool."
        ),
        "the lock keeps the rest"
    );
    assert_ne!(project.read("selu.lock"), lock);
    let orphan = project.selu(&["plan", "--target", "a"]).expect(64);
    assert!(
        orphan.stderr.contains("no such instance or agent"),
        "{}",
        orphan.stderr
    );
}

#[test]
fn frozen_and_locked_write_nothing_and_list_every_stale_entry_with_code_and_place() {
    let project = two_agents("frozen");
    project.selu(&["apply", "-y"]).expect(0);
    let lock = project.path().join("selu.lock");
    let written = fs::metadata(&lock).unwrap().modified().unwrap();
    project.selu(&["destroy", "-y"]).expect(0);
    let refused = project.selu(&["apply", "-y", "--frozen"]).expect(1);
    assert!(
        refused.stderr.contains("a/live, b/fixed") && refused.stderr.contains("--allow-local"),
        "{}",
        refused.stderr
    );
    project
        .selu(&["apply", "-y", "--frozen", "--allow-local"])
        .expect(0);
    assert_eq!(fs::metadata(&lock).unwrap().modified().unwrap(), written);

    add(&project, "a", "live", "resources: {pids_limit: 32}\n");
    add(&project, "b", "fixed", "filesystem: temp\n");
    let stale = project
        .selu(&["apply", "-y", "--frozen", "--allow-local"])
        .expect(2);
    for part in [
        "SELU1005",
        "agents/a/capabilities/live/manifest.yaml:1",
        "limits.pids is `64` in the lock but `32` in the directory",
        "agents/b/capabilities/fixed/manifest.yaml:1",
        "filesystem is `none` in the lock but `temp` in the directory",
    ] {
        assert!(stale.stdout.contains(part), "{part}: {}", stale.stdout);
    }
    assert_eq!(fs::metadata(&lock).unwrap().modified().unwrap(), written);
}

#[test]
fn h13_an_upgrade_follows_one_tag_and_leaves_every_other_byte() {
    let registry = Registry::new();
    let other = registry.push("2", "another image");
    let project = TestProject::new("plan4-upgrade");
    for (capability, tag) in [("one", "1"), ("two", "2")] {
        let image = format!("{}/x:{tag}", registry.address);
        project.write(
            &manifest("a", capability),
            &format!("id: {capability}\nimage: {image}\n{STATIC}"),
        );
    }
    project.write("agents/a/agent.yaml", "id: a\nname: a\n");
    project.write("agents/a/agent.md", "Does.\n");
    project.selu(&["lock"]).expect(0);
    let lock = project.read("selu.lock");
    assert!(
        lock.contains(&registry.digest) && lock.contains(&other),
        "{lock}"
    );

    let (moved, other_moved) = (
        registry.push("1", "newer"),
        registry.push("2", "newer, too"),
    );
    project.selu(&["lock"]).expect(0);
    assert_eq!(
        project.read("selu.lock"),
        lock,
        "a moved tag is not followed"
    );
    let live = project.selu(&["lock", "--check", "--live"]).expect(0);
    assert!(
        live.stderr.contains("tag-moved") || live.stderr.contains(&moved),
        "{}",
        live.stderr
    );

    let dry = project
        .selu(&["lock", "--upgrade", "one", "--dry-run"])
        .expect(0);
    let said = format!("image.digest: {} → {moved}", registry.digest);
    assert!(dry.stdout.contains(&said), "{}", dry.stdout);
    assert_eq!(project.read("selu.lock"), lock);

    let upgraded = project.selu(&["lock", "--upgrade", "one"]).expect(0);
    let said = format!("{} → {moved}", registry.digest);
    assert!(upgraded.stderr.contains(&said), "{}", upgraded.stderr);
    let expected = lock.replace(&registry.digest, &moved);
    assert_eq!(project.read("selu.lock"), expected);
    project.selu(&["lock", "--upgrade"]).expect(0);
    assert_eq!(
        project.read("selu.lock"),
        expected.replace(&other, &other_moved)
    );
    project.selu(&["lock", "--check"]).expect(0);
    project.selu(&["lock", "--upgrade", "three"]).expect(64);
}

#[test]
fn a_live_check_without_the_credentials_of_the_lock_is_not_verified_and_never_fine() {
    let project = TestProject::new("plan4-live");
    let more =
        format!("{DYNAMIC}credentials:\n  - {{name: API_KEY, scope: system, required: false}}\n");
    project.probe("a", "live", &["serve"], &more);
    project.selu(&["build"]).expect(0);
    let key = [("SELU_CRED__A__LIVE__API_KEY", "c4n4ry-for-live-checks")];
    project.selu_with(&key, &["lock"]).expect(0);
    let lock = project.read("selu.lock");
    project
        .selu_with(&key, &["lock", "--check", "--live"])
        .expect(0);
    let run = project.selu(&["lock", "--check", "--live"]).expect(1);
    assert!(
        run.stderr.contains("a/live: not verified") && run.stderr.contains("API_KEY"),
        "{}",
        run.stderr
    );
    assert_eq!(project.read("selu.lock"), lock);
    assert!(!project.is_deployed());

    let crlf = lock.replace("# Written by `selu`.", "# written by `selu`.");
    project.write("selu.lock", &crlf);
    project.selu(&["lock", "--migrate", "--dry-run"]).expect(0);
    assert_eq!(project.read("selu.lock"), crlf);
    project.selu(&["lock", "--migrate"]).expect(0);
    assert_eq!(project.read("selu.lock"), lock);
}
