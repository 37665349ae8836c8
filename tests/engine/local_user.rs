//! S1, C2: another local user, without access to the engine, cannot call a tool and finds no secret.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::json;

use crate::call::call;
use crate::daemon;
use crate::project::{TestProject, probe_binary, run};

/// Runs a command as `nobody`, without root's groups.
fn as_nobody(program: &std::path::Path, arguments: &[&str]) -> crate::project::Run {
    run(Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
            "--",
        ])
        .arg(program)
        .args(arguments))
}

#[test]
fn another_local_user_reaches_no_capability_and_finds_no_secret() {
    // Made here, so that no file of the sources holds it.
    let canary = &format!(
        "canary{}{:?}",
        std::process::id(),
        std::time::SystemTime::now()
    )
    .replace(|c: char| !c.is_alphanumeric(), "");
    let project = TestProject::new("user");
    project.probe(
        "a",
        "probe",
        &["serve"],
        "tool_source: dynamic\ncredentials:\n  - {name: API_KEY, scope: system}\n",
    );
    project.selu(&["build"]).expect(0);
    project
        .selu_with(
            &[("SELU_CRED__A__PROBE__API_KEY", canary)],
            &["apply", "-y"],
        )
        .expect(0);
    let network = project.resident("a", "probe", 1);
    let answer = call(
        &project.gateway(),
        &network,
        "read",
        &json!({"path": "/proc/self/comm"}),
    );
    assert_eq!(
        answer["value"], "probe\n",
        "who may use the engine can call"
    );

    // A copy that everybody may run: the build folder may be closed to others.
    let public = tempfile::tempdir().unwrap();
    let probe = public.path().join("probe");
    crate::program::copy(probe_binary(), &probe);
    let selu = public.path().join("selu");
    crate::program::copy(env!("CARGO_BIN_EXE_selu"), &selu);
    // And a value that everybody may read: the search below must find this one, and no other.
    let planted = public.path().join("planted");
    std::fs::write(&planted, canary).unwrap();
    open_to_all(public.path());

    let can = as_nobody(&probe, &["call", "read", r#"{"path": "/etc/hostname"}"#])
        .expect(0)
        .json();
    assert_eq!(can["ok"], true, "nobody can run the probe: {can}");
    for name in [&network, &project.gateway()] {
        for attached in daemon::inspect(name)["NetworkSettings"]["Networks"]
            .as_object()
            .unwrap()
            .values()
        {
            let address = attached["IPAddress"].as_str().unwrap();
            let arguments = json!({"address": address, "port": 50051}).to_string();
            let refused = as_nobody(&probe, &["call", "tcp", &arguments])
                .expect(0)
                .json();
            assert_eq!(refused["ok"], false, "{name} at {address}: {refused}");
        }
    }
    // A project that nobody may read, so that what refuses is the engine's socket.
    let readable = public.path().join("project");
    std::fs::create_dir_all(readable.join("agents/a")).unwrap();
    std::fs::write(
        readable.join("selu.toml"),
        format!("[project]\nname = \"{}\"\n", project.name),
    )
    .unwrap();
    std::fs::write(readable.join("agents/a/agent.yaml"), "id: a\nname: a\n").unwrap();
    let status = [
        "status",
        "--host",
        "unix:///run/docker.sock",
        readable.to_str().unwrap(),
    ];
    let status = as_nobody(&selu, &status).expect(1);
    assert!(
        status.stderr.contains("no permission to open"),
        "{}",
        status.stderr
    );
    // No socket can be opened as a file, but only who has no right to it is told so in these words.
    let socket = json!({"path": "/run/docker.sock"}).to_string();
    let refused = as_nobody(&probe, &["call", "device", &socket])
        .expect(0)
        .json();
    assert!(
        refused["error"]
            .as_str()
            .is_some_and(|error| error.contains("Permission denied")),
        "{refused}"
    );

    // Everything that nobody can read of our processes, and of the engine's files.
    let searched = as_nobody(
        std::path::Path::new("/bin/sh"),
        &[
            "-c",
            &format!(
                "grep -rlsa --exclude-dir=self --exclude-dir=thread-self {canary} /proc/[0-9]*/cmdline /proc/[0-9]*/environ \
             /var/lib/docker /run/docker /var/log /tmp {} 2>/dev/null || true",
                public.path().display()
            ),
        ],
    );
    let found: BTreeSet<&str> = searched.stdout.lines().filter(|line| !own(line)).collect();
    assert_eq!(found, BTreeSet::from([planted.to_str().unwrap()]));
}

/// Whether a path under /proc is of the search itself, whose command line holds what it looks for.
fn own(path: &str) -> bool {
    path.ends_with("/cmdline")
        && std::fs::read_to_string(path).map_or(true, |text| {
            text.contains("grep") && text.contains("exclude-dir")
        })
}

fn open_to_all(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, mode.clone()).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        std::fs::set_permissions(entry.unwrap().path(), mode.clone()).unwrap();
    }
}
