use crate::Desk;

#[test]
fn wrong_usage_ends_with_64_and_never_with_the_parsers_own_2() {
    let desk = Desk::with_project();
    for arguments in [
        &["nonsense"][..],
        &[],
        &["plan", "--nonsense"],
        &["plan", "--offline", "--detailed-exitcode"],
        &["apply", "--allow-local"],
        &["egress", "--since", "yesterday"],
        &["egress", "--follow", "--live"],
        &["egress", "--instance", "weather"],
        &["egress", "--suggest", "weather/nothing"],
        &["check", "--format", "xml"],
        &["schema", "nonsense"],
        &["plan", "--offline", "--project", "Not A Name"],
    ] {
        desk.run(arguments).exits(64);
    }
}

#[test]
fn usage_errors_are_json_when_json_was_asked_for() {
    let desk = Desk::new();
    for arguments in [
        &["plan", "--nonsense", "--format", "json"][..],
        &["--format=json", "nonsense"],
        &["schema", "nonsense", "--format", "json"],
    ] {
        let ran = desk.run(arguments).exits(64);
        assert_eq!(ran.json()["exit_code"], 64);
        assert_eq!(ran.json()["format_version"], "1.0");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    let desk = Desk::new();
    for arguments in [&["--help"][..], &["--version"], &["apply", "--help"]] {
        let ran = desk.run(arguments).exits(0);
        assert!(!ran.out.is_empty() && ran.err.is_empty());
    }
}

#[test]
fn every_schema_is_json_in_either_format() {
    let desk = Desk::new();
    for name in selu_compiler::model::schemas::NAMES {
        let text = desk.run(&["schema", name]).exits(0);
        let json = desk.run(&["schema", name, "--format", "json"]).exits(0);
        assert_eq!(text.json(), json.json());
    }
}
