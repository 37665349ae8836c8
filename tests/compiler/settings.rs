//! selu.toml.

use selu_compiler::model::{InstanceKey, Limits, OnChange, Policy, schemas};
use selu_compiler::plan::PlannedInstance;
use selu_compiler::report;
use selu_compiler::resolve::resolve;

use crate::fixture::{Fixture, PROJECT, WEATHER, check_settings};

#[test]
fn every_setting_is_read() {
    let fixture = Fixture::new(PROJECT);
    fixture.write(
        "selu.toml",
        br#"
[project]
name = "demo"

[engine]
host = "unix:///run/docker.sock"
subnets = "10.213.0.0/16"
resolvers = ["192.0.2.53"]

[policy]
"helper/weather/forecast" = "ask"

[build."helper/weather"]
prepare = ["make", "server"]

[discovery]
on_change = "hold"

[runtime]
idle_stop = true
"#,
    );
    let checked = fixture.check();
    assert_eq!(checked.diagnostics, []);
    let project = checked.project.unwrap();
    assert_eq!(project.name.as_deref(), Some("demo"));
    let settings = project.settings;
    let weather = InstanceKey::new("helper", "weather");
    let (policy, origin) = &settings.policies[&(weather.clone(), "forecast".to_owned())];
    assert_eq!((*policy, origin.line, origin.column), (Policy::Ask, 11, 1));
    assert_eq!(
        settings.engine_host.as_deref(),
        Some("unix:///run/docker.sock")
    );
    assert_eq!(settings.subnets.unwrap().to_string(), "10.213.0.0/16");
    assert_eq!(
        settings.resolvers,
        ["192.0.2.53".parse::<std::net::Ipv4Addr>().unwrap()]
    );
    assert_eq!(settings.prepare[&weather], ["make", "server"]);
    assert_eq!(settings.on_change, OnChange::Hold);
    assert!(settings.idle_stop);
}

#[test]
fn a_project_without_settings_has_no_name_and_a_lone_agent_has_its_id() {
    assert_eq!(Fixture::new(PROJECT).check().project.unwrap().name, None);
    let lone = Fixture::new([("agent.yaml", "id: helper\nname: Helper\n")]);
    assert_eq!(
        lone.check().project.unwrap().name.as_deref(),
        Some("helper")
    );
}

#[test]
fn private_permissions_are_normalised_and_only_for_hosts_that_the_manifest_lists() {
    let manifest = format!(
        "{WEATHER}network: {{mode: allowlist, hosts: [\"*.corp.example:5432\", \"10.1.2.3:443\"]}}\n"
    );
    let settings = |private: &str| {
        let mut files = Vec::from(PROJECT);
        files[2].1 = &manifest;
        let toml = format!("[network.\"helper/weather\"]\nprivate = [{private}]\n");
        files.push(("selu.toml", &toml));
        Fixture::new(files).check()
    };
    let checked = settings("\"DB.Corp.Example.:5432\", \"10.1.2.3:443\", \"db.corp.example:5432\"");
    let project = checked.project.unwrap();
    let weather = InstanceKey::new("helper", "weather");
    assert_eq!(
        project.settings.private[&weather],
        ["10.1.2.3:443", "db.corp.example:5432"]
    );
    for (entry, code) in [
        ("corp.example:5432", "SELU0915"),
        ("db.corp.example", "SELU0915"),
        ("localhost:5432", "SELU0914"),
        ("10.231.7.7:443", "SELU0914"),
        ("[fd00:ec2::254]:80", "SELU0914"),
        ("[::ffff:169.254.169.254]:80", "SELU0914"),
        ("http://db.corp.example", "SELU0501"),
    ] {
        let checked = settings(&format!("\"{entry}\""));
        let found: Vec<_> = checked.diagnostics.iter().map(|one| one.code.id).collect();
        assert!(found.contains(&code), "{entry}: {found:?}");
        assert!(checked.project.is_none(), "{entry} is refused");
    }
}

#[test]
fn unknown_keys_are_errors_with_their_place() {
    assert_eq!(
        check_settings(
            "[project]\nname = \"demo\"\n\n[polcy]\n\"helper/weather/forecast\" = \"block\"\n"
        ),
        ["4:2 error unknown-setting"]
    );
    assert_eq!(
        check_settings("x-mine = 1\n"),
        ["1:1 error unknown-setting"]
    );
    assert_eq!(
        check_settings("[discovery]\non_chang = \"hold\"\n"),
        ["2:1 error unknown-setting"]
    );
}

#[test]
fn broken_toml_and_wrong_values_have_their_place() {
    assert_eq!(check_settings("[project\n"), ["1:9 error toml-syntax"]);
    assert_eq!(
        check_settings("[project]\nname = 3\n"),
        ["2:8 error unquoted-string"]
    );
    assert_eq!(
        check_settings("[project]\nname = \"My Demo\"\n"),
        ["2:8 error bad-id"]
    );
    assert_eq!(
        check_settings("[policy]\n\"helper/weather/forecast\" = \"deny\"\n"),
        ["2:29 error not-one-of"]
    );
}

#[test]
fn keys_name_instances_and_tools_that_exist() {
    assert_eq!(
        check_settings("[policy]\n\"helper/weather\" = \"ask\"\n"),
        ["2:1 error bad-instance-key"]
    );
    assert_eq!(
        check_settings("[build.weather]\nprepare = [\"make\"]\n"),
        ["1:8 error bad-instance-key"]
    );
    assert_eq!(
        check_settings(
            "[policy]\n\"helper/wether/forecast\" = \"ask\"\n\"helper/weather/forcast\" = \"ask\"\n"
        ),
        [
            "2:1 warning setting-without-target",
            "3:1 warning setting-without-target"
        ]
    );
}

#[test]
fn subnets_are_a_private_range_of_a_useful_size() {
    for bad in [
        "10.0.0.1",
        "10.0.0.1/16",
        "8.0.0.0/8",
        "10.0.0.0/25",
        "172.0.0.0/8",
        "fd00::/8",
        "",
    ] {
        assert_eq!(
            check_settings(&format!("[engine]\nsubnets = \"{bad}\"\n")),
            ["2:11 error bad-subnets"],
            "{bad}"
        );
    }
}

#[test]
fn an_engine_host_is_an_address() {
    assert_eq!(
        check_settings("[engine]\nhost = \"/run/docker.sock\"\n"),
        ["2:8 error bad-engine-host"]
    );
    assert_eq!(
        check_settings("[engine]\nhost = \"tcp://10.0.0.5:2375\"\n"),
        Vec::<String>::new()
    );
}

/// The limits of every instance, in key order.
fn limits(fixture: &Fixture) -> Vec<(String, Limits)> {
    let project = fixture.check().project.unwrap();
    project
        .instances()
        .map(|(key, _, capability)| (key.to_string(), capability.limits.clone()))
        .collect()
}

#[test]
fn limits_of_one_instance_stand_in_place_of_the_manifests() {
    let fixture = Fixture::new([
        (
            "agents/a/agent.yaml",
            "id: a\nname: A\ncapabilities: [{id: disk}]\n",
        ),
        ("agents/a/agent.md", "You help.\n"),
        (
            "agents/b/agent.yaml",
            "id: b\nname: B\ncapabilities: [{id: disk}]\n",
        ),
        ("agents/b/agent.md", "You help.\n"),
        (
            "capabilities/disk/manifest.yaml",
            "id: disk\nimage: a/b:1\nresources: {max_memory_mb: 256, pids_limit: 10}\n",
        ),
        (
            "selu.toml",
            "[project]\nname = \"demo\"\n\n[limits.\"b/disk\"]\nmax_memory_mb = 512\nmax_cpu_fraction = 0.57\n",
        ),
    ]);
    assert_eq!(fixture.lines(), [""; 0]);
    let manifest = Limits {
        memory_mb: 256,
        nano_cpus: 500_000_000,
        cpu_seconds: 30,
        pids: 10,
    };
    let overridden = Limits {
        memory_mb: 512,
        nano_cpus: 570_000_000,
        ..manifest
    };
    assert_eq!(
        limits(&fixture),
        [
            ("a/disk".to_owned(), manifest),
            ("b/disk".to_owned(), overridden)
        ]
    );
}

#[test]
fn the_plan_shows_which_limits_are_overridden_and_where() {
    let fixture = Fixture::new(PROJECT);
    fixture.write(
        "selu.toml",
        b"[project]\nname = \"demo\"\n[limits.\"helper/weather\"]\nmax_memory_mb = 512\nmax_cpu_seconds = 5\n",
    );
    let project = fixture.check().project.unwrap();
    let plan = resolve(&project, None, None).plan.unwrap();
    let text = report::plan_text(&plan, None, None).unwrap();
    let limits: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains("limits"))
        .take(3)
        .map(str::trim)
        .collect();
    assert_eq!(
        limits,
        [
            "limits      512 MiB memory, 0.5 CPU, 5 s CPU a call, 64 processes",
            "CPU time as set in selu.toml:5",
            "memory as set in selu.toml:4",
        ]
    );
    let instance = &plan.instances[&InstanceKey::new("helper", "weather")];
    let json = serde_json::to_value(instance).unwrap();
    assert_eq!(
        json["limit_overrides"]["memory_mb"],
        serde_json::json!({ "file": "selu.toml", "line": 4, "column": 17 })
    );
    assert_eq!(
        serde_json::from_value::<PlannedInstance>(json).unwrap(),
        *instance
    );
}

#[test]
fn a_limit_that_guards_nothing_is_an_error_with_its_place() {
    let check = |key: &str, line: &str| check_settings(&format!("[limits.\"{key}\"]\n{line}\n"));
    for (key, line, found) in [
        (
            "helper/wether",
            "pids_limit = 9",
            "1:9 error limits-without-instance",
        ),
        ("weather", "pids_limit = 9", "1:9 error bad-instance-key"),
        (
            "helper/weather",
            "max_memory = 9",
            "2:1 error unknown-setting",
        ),
        (
            "helper/weather",
            "max_memory_mb = 5",
            "2:17 error out-of-range",
        ),
        (
            "helper/weather",
            "pids_limit = 0",
            "2:14 error out-of-range",
        ),
        (
            "helper/weather",
            "max_cpu_fraction = 10001",
            "2:20 error out-of-range",
        ),
        (
            "helper/weather",
            "max_cpu_fraction = 0.1234567891",
            "2:20 error number-form",
        ),
        (
            "helper/weather",
            "max_cpu_seconds = \"9\"",
            "2:19 error number-form",
        ),
    ] {
        assert_eq!(check(key, line), [found], "{key} {line}");
    }
    let text = {
        let fixture = Fixture::new(PROJECT);
        fixture.write("selu.toml", b"[limits.\"helper/wether\"]\npids_limit = 9\n");
        fixture.text()
    };
    assert!(text.contains("did you mean `helper/weather`?"), "{text}");
}

/// Of two schemas, the fields with their bounds.
fn bounds(schema: &serde_json::Value) -> Vec<(String, [serde_json::Value; 3])> {
    let fields = schema["properties"].as_object().unwrap();
    let bounds =
        |field: &serde_json::Value| ["type", "minimum", "maximum"].map(|key| field[key].clone());
    fields
        .iter()
        .map(|(name, field)| (name.clone(), bounds(field)))
        .collect()
}

#[test]
fn overridden_limits_have_the_bounds_of_the_manifests() {
    let manifest = schemas::schema("manifest").unwrap();
    let settings = schemas::schema("settings").unwrap();
    let own = bounds(&settings["properties"]["limits"]["additionalProperties"]);
    assert_eq!(own.len(), 4);
    assert_eq!(own, bounds(&manifest["properties"]["resources"]));
}
