//! Scenarios from bug reports of other projects that show at the binary: each test named by the scenario's id.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

use crate::{Desk, Ran};

#[test]
fn k01_an_exit_code_is_never_a_count() {
    let desk = Desk::with_project();
    desk.run(&["check"]).exits(0);
    for number in 0..256 {
        desk.write(
            &format!("agents/weather/capabilities/bad-{number}/manifest.yaml"),
            "id: 1\n",
        );
    }
    desk.run(&["check"]).exits(1);
    desk.run(&["check", "--no-such-option"]).exits(64);
}

#[test]
fn k06_a_wrong_directory_is_an_error_that_says_what_was_looked_for() {
    let desk = Desk::new();
    for command in [&["check"][..], &["plan", "--offline"], &["apply", "-y"]] {
        let ran = desk.run(command);
        assert_eq!(ran.code, Some(1), "{command:?}: {}{}", ran.out, ran.err);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains("looked for agents/"), "{command:?}: {said}");
    }
    let ran = desk.run(&["check", "no/such/directory"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
}

#[test]
fn a21_the_language_and_the_time_zone_change_no_byte() {
    let desk = Desk::with_project();
    desk.manifest("resources: {max_cpu_fraction: 0.5}\nnetwork: {mode: any}\n");
    for arguments in [
        &["check"][..],
        &["check", "--format", "json"],
        &["plan", "--offline"],
    ] {
        let plain = desk.run(arguments);
        let mut command = desk.command(arguments);
        command
            .env("LC_ALL", "de_DE.UTF-8")
            .env("LANG", "de_DE.UTF-8")
            .env("TZ", "Pacific/Kiritimati");
        let other = crate::Ran::from(command.output().unwrap());
        assert_eq!(other.code, plain.code);
        assert_eq!(other.out, plain.out, "{arguments:?}");
        assert_eq!(other.err, plain.err, "{arguments:?}");
    }
}

#[test]
fn e03_an_engine_that_answers_with_what_was_sent_makes_no_line_of_a_value_shown() {
    const VALUE: &str = "first\"of-e03\nwxyz\r\nlast/of-e03";
    let desk = Desk::with_project();
    desk.manifest("credentials:\n  - {name: KEY, scope: system}\n");
    let socket = desk.path().join("echo.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    // Everything is answered by 400 with a body that holds the value, whole and in pieces.
    let body = serde_json::json!({"message": format!("bad body: {{\"Env\": [\"KEY={VALUE}\"]}}, wxyz; first\\\"of-e03; last%2Fof-e03")});
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            // A connection that only tries the socket asks nothing.
            if stream.read(&mut request).is_ok_and(|read| read > 0) {
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    let host = format!("unix://{}", socket.display());
    for arguments in [
        &["plan"][..],
        &["apply", "-y"],
        &["apply", "-y", "--format", "json"],
        &["status", "-v"],
    ] {
        let mut command = desk.command(&[arguments, &["--host", &host]].concat());
        command.env("SELU_CRED__WEATHER__API__KEY", VALUE);
        let ran = Ran::from(command.output().unwrap()).exits(1);
        let said = format!("{}{}", ran.out, ran.err);
        for part in ["of-e03", "wxyz"] {
            assert!(!said.contains(part), "{arguments:?}: {part}: {said}");
        }
    }
    // The double does show it to whoever has not said that it is a secret.
    let plain = desk.run(&["plan", "--host", &host]).exits(1);
    assert!(plain.err.contains("of-e03"), "{}", plain.err);
}
