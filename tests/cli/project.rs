use crate::Desk;

#[test]
fn a_directory_without_a_project_is_an_error_for_every_command() {
    let desk = Desk::new();
    for arguments in [
        &["check"][..],
        &["plan"],
        &["plan", "--offline"],
        &["apply", "-y"],
        &["destroy", "-y"],
        &["status"],
        &["tools"],
        &["lock"],
        &["lock", "--check"],
        &["build"],
    ] {
        desk.run(arguments).exits(1).says("no project in .");
        let json = [arguments, &["--format", "json"]].concat();
        assert_eq!(desk.run(&json).exits(1).json()["exit_code"], 1);
    }
}

#[test]
fn a_mistyped_directory_and_a_file_are_named() {
    let desk = Desk::with_project();
    desk.run(&["plan", "nowhere"])
        .exits(1)
        .says("nowhere cannot be read");
    desk.run(&["check", "selu.toml"])
        .exits(1)
        .says("selu.toml is a file");
}

#[test]
fn a_sound_project_checks_plans_and_lists_its_tools_without_an_engine() {
    let desk = Desk::with_project();
    desk.run(&["check"]).exits(0);
    let plan = desk
        .run(&["plan", "--offline", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(plan["format_version"], "1.0");
    let tools = desk.run(&["tools", "--format", "json"]).exits(0).json();
    assert_eq!(tools["agents"]["weather"][0]["name"], "api__forecast");
    let text = desk.run(&["tools"]).exits(0);
    assert!(text.out.contains("api__forecast (allow)"), "{}", text.out);
}

#[test]
fn what_is_blocked_is_not_offered_and_is_named() {
    let desk = Desk::with_project();
    desk.write(
        "selu.toml",
        "[project]\nname = \"demo\"\n[policy]\n\"weather/api/forecast\" = \"block\"\n",
    );
    let tools = desk.run(&["tools", "--format", "json"]).exits(0).json();
    assert_eq!(tools["agents"]["weather"], serde_json::json!([]));
    assert_eq!(
        tools["blocked"],
        serde_json::json!(["weather/api forecast"])
    );
}

#[test]
fn every_fault_of_a_project_comes_in_one_run_with_1_never_a_count() {
    let desk = Desk::with_project();
    desk.manifest("resourses: {max_memory_mb: 64}\nclass: toool\nnetwork: {mode: allowlst}\n");
    let ran = desk.run(&["check", "--format", "json"]).exits(1);
    assert!(ran.json()["errors"].as_u64().unwrap() >= 3, "{}", ran.out);
    let text = desk.run(&["check"]).exits(1);
    assert!(text.out.contains("manifest.yaml:"), "{}", text.out);
    // Findings are the data of `check` alone.
    let plan = desk
        .run(&["plan", "--offline"])
        .exits(1)
        .says("manifest.yaml:");
    assert_eq!(plan.out, "");
    let plan = desk
        .run(&["plan", "--offline", "--format", "json"])
        .exits(1);
    assert_eq!(plan.json()["exit_code"], 1);
}

#[test]
fn a_missing_lock_is_a_difference_and_so_is_a_locked_apply_before_any_engine_is_asked() {
    let desk = Desk::with_project();
    for arguments in [&["lock", "--check"][..], &["apply", "-y", "--locked"]] {
        let ran = desk.run(arguments).exits(2);
        assert!(ran.out.contains("no selu.lock"), "{}", ran.out);
        let json = [arguments, &["--format", "json"]].concat();
        assert_eq!(desk.run(&json).exits(2).json()["exit_code"], 2);
    }
    assert!(!desk.path().join("selu.lock").exists(), "neither writes");
}

#[test]
fn a_damaged_lock_is_an_error_with_its_place() {
    let desk = Desk::with_project();
    desk.write("selu.lock", "version = 1\n<<<<<<< ours\n");
    let ran = desk.run(&["lock", "--check"]).exits(1);
    let ran = ran.says("SELU1002").says("selu.lock:2:1");
    assert_eq!(ran.out, "");
    let json = desk
        .run(&["lock", "--check", "--format", "json"])
        .exits(1)
        .json();
    assert_eq!(json["diagnostics"][0]["code"], "SELU1002", "{json}");
}

#[test]
fn a_build_without_a_folder_says_so_and_one_that_cannot_be_meant_is_refused() {
    let desk = Desk::with_project();
    desk.run(&["build"])
        .exits(1)
        .says("no capability has a container/ folder");
    desk.run(&["build", "api"])
        .exits(1)
        .says("weather/api has no container/ folder");
    desk.write(
        "agents/weather/capabilities/api/container/Dockerfile",
        "FROM scratch\n",
    );
    desk.run(&["build", "apj"])
        .exits(1)
        .says("these can be built: weather/api");
}

#[test]
fn nothing_in_a_pipe_moves_the_cursor_or_has_a_colour() {
    let desk = Desk::with_project();
    desk.manifest("class: toool\n");
    for arguments in [
        &["check"][..],
        &["plan"],
        &["plan", "--offline"],
        &["nonsense"],
    ] {
        let ran = desk.run(arguments);
        assert!(
            !ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_crash() {
    let desk = Desk::with_project();
    let mut child = desk
        .command(&["plan", "--offline", "--format", "json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_damaged_lock_stops_what_needs_it_with_the_way_out_and_destroy_goes_on() {
    let desk = Desk::with_project();
    desk.write("selu.lock", "version = 1\n<<<<<<< ours\n");
    for arguments in [&["plan", "--offline"][..], &["lock", "--check"], &["tools"]] {
        desk.run(arguments)
            .exits(1)
            .says("conflict markers")
            .says("version control");
    }
    // It gets as far as the engine, which is not there.
    desk.run(&["destroy", "-y"])
        .exits(1)
        .says("no container engine answered");
    desk.manifest("class: toool\n");
    desk.run(&["destroy", "-y"])
        .exits(1)
        .says("only its name is used")
        .says("no container engine answered");
    // But where selu.toml itself is wrong, neither owner nor engine is guessed.
    desk.write("selu.toml", "[project]\nname = \"demo\"\n[engin]\n");
    let ran = desk.run(&["destroy", "-y"]).exits(1);
    assert!(!ran.err.contains("no container engine"), "{}", ran.err);
}

#[test]
fn standard_output_that_cannot_be_written_is_no_success() {
    let desk = Desk::with_project();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = desk
        .command(&["plan", "--offline", "--format", "json"])
        .stdout(full)
        .output()
        .unwrap();
    crate::Ran::from(output)
        .exits(1)
        .says("standard output could not be written");
}
