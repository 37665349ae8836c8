//! W6, F1–F5, R4, W5: what the engine says of a container, field by field, and what the container sees of itself.

use serde_json::{Value, json};

use crate::call::call;
use crate::daemon;
use crate::project::TestProject;

const LIMITS: &str =
    "resources:\n  max_memory_mb: 96\n  max_cpu_fraction: 0.57\n  pids_limit: 48\n";

#[test]
fn inspect_of_every_container_shows_the_hardening_of_w6_field_by_field() {
    let project = TestProject::new("w6");
    project.probe("a", "none", &["serve"], LIMITS);
    project.probe(
        "a",
        "temp",
        &["serve"],
        &format!("filesystem: temp\n{LIMITS}"),
    );
    project.probe(
        "a",
        "space",
        &["serve"],
        &format!("class: environment\nfilesystem: workspace\ncache: {{enabled: true}}\n{LIMITS}"),
    );
    project.up();
    for capability in ["none", "temp", "space"] {
        let name = project.resident("a", capability, 1);
        let seen = daemon::inspect(&name);
        let host = &seen["HostConfig"];
        assert_common(&seen, &name);
        assert_eq!(host["Memory"], 96 << 20, "{name} Memory");
        assert_eq!(
            host["MemorySwap"],
            96 << 20,
            "{name} MemorySwap: swap is not extra (R4)"
        );
        assert_eq!(
            host["NanoCpus"], 570_000_000,
            "{name} NanoCpus: computed in integers (R5)"
        );
        assert_eq!(host["PidsLimit"], 48, "{name} PidsLimit");
        assert_eq!(seen["Config"]["User"], "1000:1000", "{name} User");
        let environment = seen["Config"]["Env"].as_array().unwrap();
        assert!(
            environment.contains(&json!(format!("SELU_CAPABILITY_ID={capability}"))),
            "{name} Env (W5)"
        );
        assert!(
            environment.contains(&json!("SELU_SESSION_ID=default")),
            "{name} Env (W5)"
        );
        let tmpfs = host["Tmpfs"].as_object().cloned().unwrap_or_default();
        let mounts: Vec<&str> = seen["Mounts"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|mount| mount["Destination"].as_str())
            .collect();
        match capability {
            "none" => {
                assert!(tmpfs.is_empty(), "{name} Tmpfs (F1): {tmpfs:?}");
                assert!(mounts.is_empty(), "{name} Mounts (F1): {mounts:?}");
            }
            "temp" => {
                let options = tmpfs["/tmp"].as_str().unwrap();
                for wanted in ["noexec", "nosuid", "nodev", "size=67108864", "mode=1777"] {
                    assert!(
                        options.split(',').any(|option| option == wanted),
                        "{name} /tmp (F2): {options}"
                    );
                }
            }
            _ => {
                assert!(
                    mounts.contains(&"/workspace") && mounts.contains(&"/cache"),
                    "{name} Mounts (F3): {mounts:?}"
                );
                assert!(
                    seen["Mounts"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .all(|mount| mount["Type"] == "volume")
                );
            }
        }
    }
    assert_common(&daemon::inspect(&project.gateway()), "gateway");
}

/// What holds for the gateway too.
fn assert_common(seen: &Value, name: &str) {
    let host = &seen["HostConfig"];
    assert_eq!(host["ReadonlyRootfs"], true, "{name} ReadonlyRootfs");
    assert_eq!(host["CapDrop"], json!(["ALL"]), "{name} CapDrop");
    assert!(is_empty(&host["CapAdd"]), "{name} CapAdd");
    assert_eq!(host["Privileged"], false, "{name} Privileged");
    let options: Vec<&str> = host["SecurityOpt"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        options
            .iter()
            .any(|option| option.starts_with("no-new-privileges")),
        "{name} SecurityOpt {options:?}"
    );
    let profile = options
        .iter()
        .find_map(|option| option.strip_prefix("seccomp="))
        .expect("a seccomp profile");
    let profile: Value = serde_json::from_str(profile).unwrap();
    let ours: Value = serde_json::from_str(selu_compiler::plan::SECCOMP_PROFILE).unwrap();
    assert_eq!(profile, ours, "{name} seccomp profile");
    for empty in [
        "Binds",
        "Devices",
        "DeviceRequests",
        "VolumesFrom",
        "Links",
        "ExtraHosts",
        "GroupAdd",
    ] {
        assert!(is_empty(&host[empty]), "{name} {empty}: {}", host[empty]);
    }
    assert!(is_empty(&host["PortBindings"]), "{name} PortBindings");
    for (namespace, own) in [("PidMode", ""), ("UTSMode", ""), ("UsernsMode", "")] {
        assert_eq!(host[namespace], own, "{name} {namespace}");
    }
    assert!(
        ["private", "none"].contains(&host["IpcMode"].as_str().unwrap()),
        "{name} IpcMode"
    );
    assert_eq!(host["PublishAllPorts"], false, "{name} PublishAllPorts");
    assert_eq!(host["AutoRemove"], false, "{name} AutoRemove (F06)");
    assert_eq!(host["LogConfig"]["Type"], "json-file", "{name} LogConfig");
    assert!(
        host["LogConfig"]["Config"]["max-size"].is_string(),
        "{name} LogConfig.max-size"
    );
    assert!(
        host["LogConfig"]["Config"]["max-file"].is_string(),
        "{name} LogConfig.max-file"
    );
    let nofile = host["Ulimits"]
        .as_array()
        .unwrap()
        .iter()
        .find(|limit| limit["Name"] == "nofile")
        .unwrap();
    assert!(nofile["Hard"].as_u64().unwrap() <= 65536, "{name} nofile");
    assert_eq!(
        host["Sysctls"]["net.ipv6.conf.all.disable_ipv6"], "1",
        "{name} IPv6 off"
    );
    assert_eq!(
        seen["Config"]["Healthcheck"]["Test"],
        json!(["NONE"]),
        "{name} Healthcheck"
    );
    assert!(
        seen["Config"]["Labels"]["dev.selu.project"].is_string(),
        "{name} ownership label"
    );
    let networks = seen["NetworkSettings"]["Networks"].as_object().unwrap();
    for network in networks.keys() {
        let network = daemon::inspect_network(network);
        assert_eq!(network["Internal"], true, "{name} network internal");
        assert_eq!(network["EnableIPv6"], false, "{name} network IPv6");
        assert_eq!(
            network["Options"]["com.docker.network.bridge.inhibit_ipv4"], "true",
            "{name} no address of the host on its network"
        );
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

#[test]
fn a_container_has_its_network_to_itself_and_nobody_elses() {
    let project = TestProject::new("alone");
    project.probe("a", "one", &["serve"], "");
    project.probe("a", "two", &["serve"], "");
    project.up();
    for capability in ["one", "two"] {
        let name = project.resident("a", capability, 1);
        let seen = daemon::inspect(&name);
        let networks: Vec<&String> = seen["NetworkSettings"]["Networks"]
            .as_object()
            .unwrap()
            .keys()
            .collect();
        assert_eq!(networks, [&name]);
        let attached = daemon::inspect_network(&name)["Containers"].clone();
        let mut attached: Vec<&str> = attached
            .as_object()
            .unwrap()
            .values()
            .filter_map(|container| container["Name"].as_str())
            .collect();
        attached.sort_unstable();
        let mut expected = [project.gateway(), name.clone()];
        expected.sort();
        assert_eq!(
            attached, expected,
            "the gateway and the capability, nobody else (S2)"
        );
    }
}

#[test]
fn nothing_is_writable_but_what_the_filesystem_mode_says() {
    let project = TestProject::new("write");
    project.probe("a", "none", &["serve"], "");
    project.probe("a", "temp", &["serve"], "filesystem: temp\n");
    project.probe(
        "a",
        "space",
        &["serve"],
        "class: environment\nfilesystem: workspace\ncache: {enabled: true}\n",
    );
    project.up();
    let writable = |capability: &str, path: &str| {
        let arguments = json!({"path": path, "content": "x"});
        call(
            &project.gateway(),
            &project.resident("a", capability, 1),
            "write",
            &arguments,
        )["ok"]
            == true
    };
    let everywhere = [
        "/x",
        "/tmp/x",
        "/dev/x",
        "/dev/shm/x",
        "/dev/mqueue/x",
        "/workspace/x",
        "/cache/x",
        "/proc/x",
        "/sys/x",
        "/etc/x",
    ];
    let allowed = |capability: &str| -> Vec<&str> {
        everywhere
            .into_iter()
            .filter(|path| writable(capability, path))
            .collect()
    };
    assert!(allowed("none").is_empty(), "F1: {:?}", allowed("none"));
    let temp = allowed("temp");
    assert!(temp.contains(&"/tmp/x"), "F2: {temp:?}");
    assert!(
        temp.iter()
            .all(|path| path.starts_with("/tmp/") || path.starts_with("/dev/shm/")),
        "F2: {temp:?}"
    );
    let space = allowed("space");
    assert!(
        space.contains(&"/workspace/x") && space.contains(&"/cache/x"),
        "F3, F4: {space:?}"
    );
    assert!(
        !space.contains(&"/x") && !space.contains(&"/tmp/x"),
        "F3: {space:?}"
    );
}

#[test]
fn the_process_has_no_rights_and_sees_no_foreign_address_families() {
    let project = TestProject::new("rights");
    project.probe("a", "probe", &["serve"], "");
    project.up();
    let gateway = project.gateway();
    let network = project.resident("a", "probe", 1);
    let status = call(
        &gateway,
        &network,
        "read",
        &json!({"path": "/proc/self/status"}),
    );
    let status = status["value"].as_str().unwrap();
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}:")))
            .map(str::trim)
            .unwrap()
            .to_owned()
    };
    assert_eq!(field("Uid").split_whitespace().next(), Some("1000"));
    assert_eq!(field("Gid").split_whitespace().next(), Some("1000"));
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(u64::from_str_radix(&field(set), 16), Ok(0), "{set}");
    }
    assert_eq!(field("NoNewPrivs"), "1");
    assert_eq!(field("Seccomp"), "2");
    let image = project.image("a", "probe");
    for (family, name, allowed) in [
        (1, "unix", true),
        (2, "inet", true),
        (10, "inet6", true),
        (16, "netlink", true),
        (40, "vsock", false),
        (17, "packet", false),
        (38, "alg", false),
    ] {
        let arguments = json!({"family": family});
        let opened = call(&gateway, &network, "family", &arguments);
        if !allowed {
            let refused = |answer: &Value| {
                answer["error"]
                    .as_str()
                    .is_some_and(|error| error.contains("not permitted"))
            };
            let free = daemon::unrestricted(&image, "bridge", "family", &arguments);
            assert!(
                family == 17 || !refused(&free),
                "nobody forbids {name} elsewhere: {free}"
            );
            assert!(refused(&opened), "{name}: {opened}");
        }
        assert_eq!(opened["ok"], allowed, "{name}: {opened}");
    }
}

#[test]
fn g07_the_images_own_user_volumes_healthcheck_and_labels_have_no_say() {
    let project = TestProject::new("image");
    project.probe("a", "probe", &["serve"], "");
    project.write(
        "agents/a/capabilities/probe/container/Dockerfile",
        "FROM scratch\nCOPY probe /probe\nUSER 0:0\nVOLUME /data\nLABEL org.example.colour=green\n\
         HEALTHCHECK --interval=1s CMD [\"/probe\", \"exit\", \"0\", \"x\"]\nENTRYPOINT [\"/probe\", \"serve\"]\n",
    );
    project.up();
    let name = project.resident("a", "probe", 1);
    let seen = daemon::inspect(&name);
    assert_eq!(seen["Config"]["User"], "1000:1000");
    assert_eq!(
        seen["Config"]["Labels"]["org.example.colour"], "",
        "image labels are blanked"
    );
    assert_eq!(
        seen["Config"]["Labels"]["dev.selu.source"], "",
        "the source label belongs to the image alone"
    );
    assert!(seen["State"]["Health"].is_null() || seen["State"]["Health"]["Status"] == "none");
    assert!(
        is_empty(&seen["Mounts"]),
        "a VOLUME makes no volume (F5): {}",
        seen["Mounts"]
    );
    let written = call(
        &project.gateway(),
        &name,
        "write",
        &json!({"path": "/data/x", "content": "x"}),
    );
    assert_eq!(written["ok"], false, "a VOLUME opens nothing (F5)");
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(
        daemon::inspect(&name)["Id"],
        seen["Id"],
        "what the image says is no drift (G07)"
    );
}

#[test]
fn an_image_that_bears_our_labels_is_refused() {
    let project = TestProject::new("forge");
    project.probe("a", "probe", &["serve"], "");
    project.write(
        "agents/a/capabilities/probe/container/Dockerfile",
        "FROM scratch\nCOPY probe /probe\nLABEL dev.selu.project=other\nENTRYPOINT [\"/probe\", \"serve\"]\n",
    );
    project.selu(&["build"]).expect(0);
    let refused = project.selu(&["apply", "-y"]).expect(1);
    assert!(
        refused.stderr.contains("dev.selu.project"),
        "{}",
        refused.stderr
    );
    assert!(!project.is_deployed(), "nothing was touched");
}
