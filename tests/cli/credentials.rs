//! `selu credentials`: values into the store byte by byte, and never onto the screen (product.md 29, E04, E06).

use std::io::Write as _;
use std::process::Stdio;

use crate::invoke::{lock, locked};
use crate::{Desk, Ran};

const CANARY: &str = "canary-e1b2 ü/\"quoted\"";

/// Runs with something on standard input; no output may hold the canary.
fn with_input(desk: &Desk, arguments: &[&str], input: &[u8]) -> Ran {
    let mut command = desk.command(&[&["credentials"], arguments].concat());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses early reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(
        !ran.out.contains("canary") && !ran.err.contains("canary"),
        "{}{}",
        ran.out,
        ran.err
    );
    ran
}

fn run(desk: &Desk, arguments: &[&str]) -> Ran {
    with_input(desk, arguments, b"")
}

fn states(desk: &Desk) -> Vec<String> {
    let json = run(desk, &["list", "--format", "json"]).exits(0).json();
    let each = json["credentials"].as_array().unwrap().iter();
    each.map(|one| format!("{} {} {}", one["name"], one["user"], one["state"]).replace('"', ""))
        .collect()
}

#[test]
fn a_stored_value_reaches_calls_and_no_file_that_is_readable() {
    let desk = locked();
    desk.run(&["invoke", "api", "forecast", "city=x"])
        .exits(1)
        .says("credentials that are not set: KEY");
    run(&desk, &["check"]).exits(1);
    with_input(&desk, &["set", "api", "KEY"], CANARY.as_bytes())
        .exits(0)
        .says("granted to weather/api: image weather:1");
    desk.run(&["invoke", "api", "forecast", "city=x"])
        .exits(1)
        .says("none.sock");
    run(&desk, &["check"]).exits(0);
    assert_eq!(states(&desk), ["KEY null granted"]);
    let store = std::fs::read(desk.path().join(".selu/credentials.store")).unwrap();
    let text = String::from_utf8_lossy(&store);
    assert!(!text.contains("canary") && !text.contains("KEY"), "{text}");
    for arguments in [
        &["check"][..],
        &["plan", "--offline"],
        &["tools"],
        &["lock", "--check"],
    ] {
        let ran = desk.run(arguments);
        assert!(
            !ran.out.contains("canary") && !ran.err.contains("canary"),
            "{arguments:?}"
        );
    }
    run(&desk, &["rotate"]).exits(0);
    assert_eq!(states(&desk), ["KEY null granted"]);
    run(&desk, &["rm", "weather/api", "KEY"]).exits(0);
    assert_eq!(states(&desk), [""; 0]);
    run(&desk, &["rm", "weather/api", "KEY"])
        .exits(0)
        .says("is not in the store");
}

#[test]
fn values_are_withheld_from_what_has_changed_until_that_is_granted() {
    let desk = locked();
    with_input(&desk, &["set", "api", "KEY"], CANARY.as_bytes()).exits(0);
    let file = "agents/weather/capabilities/api/manifest.yaml";
    let manifest = std::fs::read_to_string(desk.path().join(file)).unwrap();
    // A description takes nothing back.
    desk.write(file, &manifest.replace("Tells it", "Tells it all"));
    lock(&desk);
    assert_eq!(states(&desk), ["KEY null granted"]);
    for change in [
        manifest.replace("weather:1", "weather:2"),
        format!("{manifest}network: {{mode: allowlist, hosts: [\"evil.example:443\"]}}\n"),
        manifest.replace("name: TOKEN, scope: user", "name: TOKEN, scope: system"),
    ] {
        desk.write(file, &change);
        lock(&desk);
        assert_eq!(states(&desk), ["KEY null withheld"]);
        desk.run(&["invoke", "api", "forecast", "city=x"])
            .exits(1)
            .says("stored values are withheld");
        // Another value renews no grant, and nobody is there to be asked.
        with_input(&desk, &["set", "api", "KEY"], b"other")
            .exits(0)
            .says("withheld until");
        run(&desk, &["grant", "api"])
            .exits(1)
            .says("nothing was granted");
        run(&desk, &["grant", "api", "-y"]).exits(0);
        assert_eq!(states(&desk), ["KEY null granted"]);
    }
}

#[test]
fn each_user_has_his_own_value_and_nobody_anothers() {
    let desk = locked();
    run(&desk, &["set", "api", "TOKEN"])
        .exits(64)
        .says("say --user");
    run(&desk, &["set", "api", "KEY", "--user", "anna"])
        .exits(64)
        .says("leave --user out");
    with_input(
        &desk,
        &["set", "api", "TOKEN", "--user", "anna"],
        b"canary-anna",
    )
    .exits(0);
    with_input(
        &desk,
        &["set", "api", "TOKEN", "--user", "ben"],
        b"canary-ben",
    )
    .exits(0);
    assert_eq!(states(&desk), ["TOKEN anna granted", "TOKEN ben granted"]);
    // Who lacks what, by name: everybody the one for all, and one user his own.
    let file = "agents/weather/capabilities/api/manifest.yaml";
    let manifest = std::fs::read_to_string(desk.path().join(file)).unwrap();
    let optional = "scope: user, required: false";
    let more = "scope: user}\n  - {name: EXTRA, scope: user";
    desk.write(file, &manifest.replace(optional, more));
    lock(&desk);
    run(&desk, &["grant", "api", "-y"]).exits(0);
    with_input(
        &desk,
        &["set", "api", "EXTRA", "--user", "ben"],
        b"canary-x",
    )
    .exits(0);
    let missing = run(&desk, &["check", "--format", "json"]).exits(1).json();
    let missing = missing["missing"].as_array().unwrap().iter();
    let missing: Vec<String> = missing
        .map(|one| format!("{} {}", one["name"], one["user"]).replace('"', ""))
        .collect();
    assert_eq!(missing, ["EXTRA anna", "KEY null"]);
    desk.write(file, &manifest);
    lock(&desk);
    run(&desk, &["grant", "api", "-y"]).exits(0);
    run(&desk, &["rm", "weather/api", "EXTRA", "--user", "ben"]).exits(0);
    run(&desk, &["rm", "weather/api", "TOKEN", "--user", "anna"]).exits(0);
    assert_eq!(states(&desk), ["TOKEN ben granted"]);
}

#[test]
fn e04_e06_what_cannot_be_a_value_is_refused_by_name_and_odd_ones_are_pointed_out() {
    let desk = locked();
    with_input(&desk, &["set", "api", "KEY"], b"canary\0x")
        .exits(1)
        .says("the value of weather/api KEY holds a NUL byte");
    with_input(&desk, &["set", "api", "KEY"], b"\n")
        .exits(1)
        .says("is empty");
    with_input(&desk, &["set", "api", "KEY"], b"\xff\xfe")
        .exits(1)
        .says("not UTF-8");
    with_input(&desk, &["set", "api", "KEY"], b" canary \n")
        .exits(0)
        .says("begins or ends with blanks");
    with_input(&desk, &["set", "api", "KEY"], b"canary\r\n").exits(0);
    with_input(&desk, &["set", "api", "KYE"], b"canary")
        .exits(1)
        .says("declares no credential `KYE`; it declares KEY, TOKEN");
    assert_eq!(states(&desk), ["KEY null granted"]);
}

#[test]
fn an_env_file_is_imported_whole_or_not_at_all() {
    let desk = locked();
    let known = format!("SELU_CRED__WEATHER__API__KEY={CANARY}\n");
    desk.write(
        "bad.env",
        &format!("{known}SELU_CRED__WEATHER__API__KYE=canary\n"),
    );
    run(&desk, &["import", "bad.env"])
        .exits(1)
        .says("SELU_CRED__WEATHER__API__KYE");
    desk.write(
        "user.env",
        &format!("{known}SELU_CRED__WEATHER__API__TOKEN=canary\n"),
    );
    run(&desk, &["import", "user.env"])
        .exits(1)
        .says("one per user");
    assert_eq!(states(&desk), [""; 0]);
    desk.write("good.env", &known);
    run(&desk, &["import", "good.env"]).exits(0);
    assert_eq!(states(&desk), ["KEY null granted"]);
}

#[test]
fn a_store_without_its_key_stops_what_needs_it() {
    let desk = locked();
    with_input(&desk, &["set", "api", "KEY"], CANARY.as_bytes()).exits(0);
    let keys = desk.path().join(".config/selu/keys");
    std::fs::remove_dir_all(&keys).unwrap();
    run(&desk, &["list"]).exits(1).says("there is no key");
    desk.run(&["invoke", "api", "forecast", "city=x"])
        .exits(1)
        .says("there is no key");
    desk.run(&["check"]).exits(0);
}
