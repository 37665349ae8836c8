use crate::{Desk, Ran};

const CANARY: &str = "canary-5f1d0c";

#[test]
fn a_value_is_in_no_output_and_no_file_whatever_is_run() {
    let desk = Desk::with_project();
    desk.manifest("credentials:\n  - {name: KEY, scope: system}\n");
    desk.write(
        "values.env",
        &format!("SELU_CRED__WEATHER__API__KEY={CANARY}\n"),
    );
    for arguments in [
        &["check"][..],
        &["plan", "--offline"],
        &["plan", "--offline", "--format", "json"],
        &["apply", "-y"],
        &["apply", "-y", "--format", "json"],
        &["lock"],
        &["lock", "--check"],
        &["apply", "-y", "--env-file", "values.env", "-v"],
    ] {
        let mut command = desk.command(arguments);
        command.env("SELU_CRED__WEATHER__API__KEY", CANARY);
        let ran = Ran::from(command.output().unwrap());
        assert!(
            !ran.out.contains(CANARY) && !ran.err.contains(CANARY),
            "{arguments:?}"
        );
    }
    for entry in std::fs::read_dir(desk.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && !path.ends_with("values.env") {
            assert!(
                !std::fs::read_to_string(&path).unwrap().contains(CANARY),
                "{path:?}"
            );
        }
    }
}

#[test]
fn a_malformed_env_file_names_its_line_and_a_missing_one_is_an_error() {
    let desk = Desk::with_project();
    desk.write("bad.env", &format!("# values\n{CANARY}\n"));
    let ran = desk.run(&["apply", "-y", "--env-file", "bad.env"]).exits(1);
    let ran = ran.says("bad.env:2: expected NAME=value");
    assert!(!ran.err.contains(CANARY), "{}", ran.err);
    desk.run(&["lock", "--env-file", "nowhere.env"])
        .exits(1)
        .says("nowhere.env");
}

#[test]
fn a_variable_that_fits_no_declared_credential_is_pointed_out() {
    let desk = Desk::with_project();
    desk.manifest("credentials:\n  - {name: KEY, scope: system}\n");
    let mut command = desk.command(&["apply", "-y"]);
    command.env("SELU_CRED__WEATHER__API__KYE", CANARY);
    let ran = Ran::from(command.output().unwrap());
    ran.exits(1)
        .says("SELU_CRED__WEATHER__API__KYE is set, but no capability declares");
}
