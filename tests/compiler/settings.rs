//! selu.toml.

use selu_compiler::model::{InstanceKey, OnChange, Policy};

use crate::fixture::{Fixture, PROJECT, check_settings};

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
