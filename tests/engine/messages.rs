//! What a person is told when something fails: the message names the thing and the way out.

use crate::project::TestProject;

/// Applies a project whose one capability runs the given role; it must fail and leave nothing running.
fn failing(topic: &str, role: &[&str]) -> String {
    let project = TestProject::new(topic);
    project.probe("a", "probe", role, "");
    project.selu(&["build"]).expect(0);
    let failed = project.selu(&["apply", "-y", "--ready-timeout", "4"]);
    assert!(
        failed.code == 1 || failed.code == 3,
        "exit code {}\n{}",
        failed.code,
        failed.stderr
    );
    let resident = project.resident("a", "probe", 1);
    assert!(
        !project
            .everything()
            .iter()
            .any(|thing| thing.contains(&resident)),
        "undone: {}",
        failed.stderr
    );
    failed.stderr
}

#[track_caller]
fn assert_says(message: &str, words: &[&str]) {
    for word in words {
        assert!(
            message.to_lowercase().contains(&word.to_lowercase()),
            "{word:?} is missing in:\n{message}"
        );
    }
}

#[test]
fn f06_a_capability_that_exits_at_once_is_reported_with_its_exit_code_and_last_line() {
    let message = failing("exits", &["exit", "3", "cannot open the pod bay doors"]);
    assert_says(
        &message,
        &["a/probe", "exit code 3", "cannot open the pod bay doors"],
    );
}

#[test]
fn a_capability_that_is_never_ready_is_reported_with_its_own_words_and_log() {
    let message = failing("unready", &["never-ready"]);
    assert_says(
        &message,
        &[
            "a/probe",
            "the probe is never ready",
            "probe: serving on",
            "4 s",
        ],
    );
}

#[test]
fn j04_a_capability_that_does_not_listen_or_only_inside_gets_the_hint_about_its_address() {
    let message = failing("silent", &["silent"]);
    assert_says(&message, &["a/probe", "0.0.0.0:50051"]);
    let message = failing("loopback", &["serve-loopback"]);
    assert_says(&message, &["a/probe", "0.0.0.0:50051"]);
}

#[test]
fn j03_a_port_that_speaks_no_grpc_is_named_as_such() {
    let message = failing("banner", &["banner", "220 mail.example ESMTP ready\r\n"]);
    assert_says(&message, &["a/probe", "gRPC"]);
}

#[test]
fn a_missing_image_says_how_to_build_it() {
    let project = TestProject::new("missing");
    project.probe("a", "probe", &["serve"], "");
    let failed = project.selu(&["apply", "-y"]).expect(1);
    assert_says(
        &failed.stderr,
        &[&project.image("a", "probe"), "selu build"],
    );
}

#[test]
fn a_dynamic_capability_without_its_discovery_tool_says_so_by_name() {
    let project = TestProject::new("nolist");
    project.probe(
        "a",
        "probe",
        &["serve"],
        "tool_source: dynamic\ndiscovery_tool_name: list_everything\n",
    );
    project.selu(&["build"]).expect(0);
    let failed = project.selu(&["apply", "-y"]);
    assert_ne!(failed.code, 0);
    assert_says(&failed.stderr, &["a/probe", "list_everything"]);
}

#[test]
fn an_engine_that_is_down_lists_what_was_tried() {
    let project = TestProject::new("down");
    project.probe("a", "probe", &["serve"], "");
    let nowhere = format!("unix://{}/nothing.sock", project.path().display());
    for command in ["plan", "status"] {
        let failed = project.selu(&[command, "--host", &nowhere]).expect(1);
        assert_says(&failed.stderr, &["nothing.sock"]);
    }
    project.selu(&["check"]).expect(0);
    project.selu(&["plan", "--offline"]).expect(0);
}

#[test]
fn a_socket_without_permission_says_who_may() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = TestProject::new("closed");
    project.probe("a", "probe", &["serve"], "");
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let socket = folder.path().join("docker.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).unwrap();
    let selu = folder.path().join("selu");
    crate::program::copy(env!("CARGO_BIN_EXE_selu"), &selu);
    let copy = folder.path().join("project/agents/a");
    std::fs::create_dir_all(&copy).unwrap();
    std::fs::write(
        folder.path().join("project/selu.toml"),
        "[project]\nname = \"closed\"\n",
    )
    .unwrap();
    std::fs::write(copy.join("agent.yaml"), "id: a\nname: a\n").unwrap();
    let failed = crate::project::run(
        std::process::Command::new("setpriv")
            .args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "--inh-caps=-all",
                "--",
            ])
            .arg(&selu)
            .args(["status", "--host", &format!("unix://{}", socket.display())])
            .arg(folder.path().join("project")),
    )
    .expect(1);
    assert_says(&failed.stderr, &["permission", "docker.sock", "group"]);
}
