//! Scenarios from bug reports of other projects that show at the binary: each test named by the scenario's id.

use crate::Desk;

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
