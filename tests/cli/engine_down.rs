use std::io::Read;
use std::os::unix::net::UnixListener;

use crate::{Desk, Ran};

const NEED_AN_ENGINE: [&[&str]; 7] = [
    &["plan"],
    &["apply", "-y"],
    &["status"],
    &["destroy", "-y"],
    &["egress"],
    &["egress", "--suggest", "weather/api"],
    &["plan", "--detailed-exitcode"],
];

#[test]
fn an_engine_that_is_not_there_is_named_with_what_was_tried_and_how_to_start_one() {
    let desk = Desk::with_project();
    for arguments in NEED_AN_ENGINE {
        let ran = desk
            .run(arguments)
            .exits(1)
            .says("none.sock")
            .says("start the engine");
        assert_eq!(ran.out, "", "{arguments:?}");
        let json = [arguments, &["--format", "json"]].concat();
        let value = desk.run(&json).exits(1).json();
        assert_eq!(value["exit_code"], 1);
        assert!(
            value["error"]["message"]
                .as_str()
                .unwrap()
                .contains("none.sock")
        );
    }
}

#[test]
fn an_address_on_the_command_line_is_the_only_one_tried() {
    let desk = Desk::with_project();
    let ran = desk
        .run(&["plan", "--host", "unix:///nowhere/other.sock"])
        .exits(1);
    let ran = ran.says("other.sock");
    assert!(!ran.err.contains("none.sock"), "{}", ran.err);
}

#[test]
fn the_directory_names_no_engine_of_another_machine_and_the_environment_comes_first() {
    let desk = Desk::with_project();
    let settings = std::fs::read_to_string(desk.path().join("selu.toml")).unwrap_or_default();
    desk.write(
        "selu.toml",
        &format!("{settings}\n[engine]\nhost = \"tcp://127.0.0.1:1\"\n"),
    );
    let ran = desk
        .command(&["plan"])
        .env_remove("DOCKER_HOST")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(
        said.contains("not on this machine") && said.contains("--host"),
        "{said}"
    );
    let ran = desk
        .command(&["plan"])
        .env("DOCKER_HOST", "unix:///nowhere/mine.sock")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("mine.sock"), "{said}");
}

#[test]
fn an_interrupt_while_a_silent_engine_is_asked_ends_with_130() {
    let desk = Desk::with_project();
    let socket = desk.path().join("silent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    desk.write(
        "agents/weather/capabilities/api/manifest.yaml",
        "id: api\nimage: weather:1\ntool_source: dynamic\n",
    );
    for (arguments, signal) in [
        (["plan"].as_slice(), rustix::process::Signal::INT),
        (&["status"], rustix::process::Signal::TERM),
        (&["apply", "-y"], rustix::process::Signal::INT),
        (&["lock"], rustix::process::Signal::INT),
        (&["destroy", "-y"], rustix::process::Signal::TERM),
        (&["plan", "--format", "json"], rustix::process::Signal::INT),
    ] {
        let host = format!("unix://{}", socket.display());
        let child = desk
            .command(&[arguments, &["--host", &host]].concat())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Once a request has come, the command is in the middle of it.
        // A connection that only tries the socket says nothing.
        let asked = listener
            .incoming()
            .map(Result::unwrap)
            .find_map(|mut stream| {
                let mut first = [0];
                (stream.read(&mut first).unwrap() == 1).then_some(stream)
            });
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let ran = Ran::from(child.wait_with_output().unwrap()).exits(130);
        if arguments.contains(&"json") {
            assert_eq!(ran.json()["exit_code"], 130);
        }
        drop(asked);
    }
}
