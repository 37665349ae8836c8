//! Each field that we set is changed on the live object by hand, and plan names exactly that path (product.md 4). What an
//! engine cannot change live is changed by making the object anew with that one field different.

use std::collections::{BTreeMap, BTreeSet};

use bollard::models::{ContainerCreateBody, NetworkCreateRequest};
use bollard::query_parameters as query;
use serde_json::{Value, json};

use crate::daemon;
use crate::project::TestProject;
use crate::world::docker_text;

const ENVIRONMENT: &str = "class: environment\nfilesystem: workspace\ncache: {enabled: true}\n";

/// A change by hand.
enum By {
    /// `docker update` with these words.
    Update(&'static [&'static str]),
    /// The container is made anew with this edit of the create call's body.
    Making(Edit),
}

/// Of the body of a call that makes a container.
type Edit = fn(&mut Value);
/// Of the body of a call that makes a network.
type NetworkEdit<'a> = &'a dyn Fn(&mut Value);

/// Field of the container's settings, what is done, and the path that plan names.
type Row = (&'static str, By, &'static str);

fn rows() -> Vec<Row> {
    use By::{Making, Update};
    vec![
        (
            "image",
            Making(|body| {
                body["Image"] = body["OtherImage"].clone();
                body["Entrypoint"] = Value::Null;
            }),
            "spec.image",
        ),
        (
            "command",
            Making(|body| body["Cmd"] = json!(["other"])),
            "spec.command",
        ),
        (
            "user",
            Making(|body| body["User"] = json!("0:0")),
            "spec.user",
        ),
        (
            "env",
            // What is asked for comes first, and then what the image has.
            Making(|body| {
                let env = body["Env"].as_array_mut().unwrap();
                env.insert(0, "LD_PRELOAD=/x.so".into());
            }),
            "spec.env.LD_PRELOAD",
        ),
        (
            "read_only_root",
            Making(|body| body["HostConfig"]["ReadonlyRootfs"] = json!(false)),
            "spec.read_only_root",
        ),
        (
            "cap_drop",
            Making(|body| body["HostConfig"]["CapDrop"] = json!(["NET_RAW"])),
            "spec.cap_drop",
        ),
        (
            "cap_add",
            Making(|body| body["HostConfig"]["CapAdd"] = json!(["SYS_PTRACE"])),
            "spec.cap_add",
        ),
        (
            "no_new_privileges",
            Making(|body| drop_option(body, "no-new-privileges")),
            "spec.no_new_privileges",
        ),
        (
            "seccomp",
            Making(|body| {
                drop_option(body, "seccomp");
                push(&mut body["HostConfig"]["SecurityOpt"], "seccomp=unconfined");
            }),
            "spec.seccomp",
        ),
        (
            "memory_bytes",
            Making(|body| body["HostConfig"]["Memory"] = json!(64 << 20)),
            "spec.memory_bytes",
        ),
        (
            "memory_swap_bytes",
            Update(&["--memory-swap", "512m"]),
            "spec.memory_swap_bytes",
        ),
        ("nano_cpus", Update(&["--cpus", "1"]), "spec.nano_cpus"),
        ("pids", Update(&["--pids-limit", "999"]), "spec.pids"),
        (
            "nofile",
            Making(|body| {
                body["HostConfig"]["Ulimits"] = json!([{"Name": "nofile", "Soft": 99, "Hard": 99}]);
            }),
            "spec.nofile",
        ),
        (
            "shm_bytes",
            Making(|body| body["HostConfig"]["ShmSize"] = json!(1 << 20)),
            "spec.shm_bytes",
        ),
        (
            "tmpfs",
            Making(|body| body["HostConfig"]["Tmpfs"] = json!({"/opt": "rw,size=65536"})),
            "spec.tmpfs./opt",
        ),
        (
            "volumes",
            Making(|body| {
                let cache = body["HostConfig"]["Mounts"][0]["Source"].clone();
                body["HostConfig"]["Mounts"][1]["Source"] = cache;
            }),
            "spec.volumes./workspace",
        ),
        (
            "sysctls",
            Making(|body| {
                body["HostConfig"]["Sysctls"]["net.ipv6.conf.all.disable_ipv6"] = json!("0");
            }),
            "spec.sysctls.net.ipv6.conf.all.disable_ipv6",
        ),
        (
            "dns",
            Making(|body| body["HostConfig"]["Dns"] = json!(["8.8.8.8"])),
            "spec.dns",
        ),
        (
            "log_bytes",
            Making(|body| body["HostConfig"]["LogConfig"]["Config"]["max-size"] = json!("9m")),
            "spec.log_bytes",
        ),
        (
            "log_files",
            Making(|body| body["HostConfig"]["LogConfig"]["Config"]["max-file"] = json!("9")),
            "spec.log_files",
        ),
        ("restart", Update(&["--restart", "no"]), "spec.restart"),
        (
            "labels",
            Making(|body| body["Labels"]["dev.selu.generation"] = json!("7")),
            "spec.labels.dev.selu.generation",
        ),
        (
            "labels",
            Making(|body| body["Labels"]["dev.selu.spec"] = json!("v1:sha256:00")),
            "spec.labels.dev.selu.spec",
        ),
        (
            "labels",
            Making(|body| {
                let rules = body["Labels"]["dev.selu.rules"].as_str().unwrap();
                let rules = rules.replace("\"cpu_seconds\":30", "\"cpu_seconds\":31");
                body["Labels"]["dev.selu.rules"] = json!(rules);
            }),
            "rules.cpu_seconds",
        ),
        (
            "labels",
            Making(|body| body["Labels"]["dev.selu.limits"] = json!("{}")),
            "spec.labels.dev.selu.limits",
        ),
    ]
}

fn push(list: &mut Value, item: &str) {
    list.as_array_mut().unwrap().push(item.into());
}

fn drop_option(body: &mut Value, name: &str) {
    let options = body["HostConfig"]["SecurityOpt"].as_array_mut().unwrap();
    options.retain(|option| !option.as_str().unwrap().starts_with(name));
}

/// What a container was made with, as a create call takes it.
fn body_of(name: &str, network: &str, other_image: &str) -> Value {
    let found = daemon::inspect(name);
    let address =
        found["NetworkSettings"]["Networks"][network]["IPAMConfig"]["IPv4Address"].clone();
    let mut body = found["Config"].clone();
    body["HostConfig"] = found["HostConfig"].clone();
    body["NetworkingConfig"] =
        json!({"EndpointsConfig": {network: {"IPAMConfig": {"IPv4Address": address}}}});
    body["OtherImage"] = other_image.into();
    body
}

fn make(name: &str, body: &Value) {
    let mut body = body.clone();
    body.as_object_mut().unwrap().remove("OtherImage");
    let body: ContainerCreateBody = serde_json::from_value(body).unwrap();
    daemon::wait(async {
        let docker = daemon::connect();
        let force = query::RemoveContainerOptions {
            force: true,
            ..Default::default()
        };
        docker.remove_container(name, Some(force)).await.unwrap();
        let named = query::CreateContainerOptions {
            name: Some(name.to_owned()),
            ..Default::default()
        };
        docker.create_container(Some(named), body).await.unwrap();
        docker
            .start_container(name, None::<query::StartContainerOptions>)
            .await
            .unwrap();
    });
}

/// Every path that plan names, with the subject; what is as planned names none.
fn named(project: &TestProject) -> Vec<String> {
    let run = project.selu(&["plan", "--format", "json"]).expect(0);
    let changes = run.json()["changes"]["changes"].clone();
    let mut paths = Vec::new();
    for change in changes.as_array().unwrap() {
        for reason in change["reasons"].as_array().unwrap() {
            let subject = change["subject"]["kind"].as_str().unwrap();
            let cause = reason["cause"].as_str().unwrap();
            paths.push(format!(
                "{cause} {subject} {}",
                reason["path"].as_str().unwrap()
            ));
        }
    }
    paths
}

/// Whether the process ended, as one that was started differently may.
fn without_state(paths: Vec<String>) -> Vec<String> {
    let state = |path: &String| path.ends_with(" state");
    paths.into_iter().filter(|path| !state(path)).collect()
}

fn applied(topic: &str) -> TestProject {
    let project = TestProject::new(&format!("plan4-{topic}"));
    project.probe("a", "env", &["serve"], ENVIRONMENT);
    project.probe("b", "other", &["serve-after", "0"], "");
    project.up();
    assert_eq!(named(&project), Vec::<String>::new());
    project
}

#[test]
fn every_field_of_a_containers_settings_that_is_changed_by_hand_is_named_and_no_other() {
    let project = applied("fields");
    let name = project.resident("a", "env", 1);
    let other = docker_text(&[
        "image",
        "inspect",
        "-f",
        "{{.Id}}",
        &project.image("b", "other"),
    ]);
    let whole = body_of(&name, &name, &other);

    let rows = rows();
    let covered: BTreeSet<&str> = rows.iter().map(|(field, ..)| *field).collect();
    let plan = project.selu(&["plan", "--format", "json"]).expect(0).json();
    let spec = &plan["plan"]["instances"]["a/env"]["resident"]["spec"];
    let fields: BTreeSet<&str> = spec
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        covered, fields,
        "the table has a row for every field there is"
    );

    make(&name, &whole);
    assert_eq!(named(&project), Vec::<String>::new(), "made anew as it was");
    for (field, by, path) in &rows {
        match by {
            By::Update(words) => {
                docker_text(&[&["update"], *words, &[name.as_str()]].concat());
            }
            By::Making(edit) => {
                let mut body = whole.clone();
                edit(&mut body);
                make(&name, &body);
            }
        }
        let found = without_state(named(&project));
        assert_eq!(found, [format!("drift instance {path}")], "{field}");
        make(&name, &whole);
    }
    assert_eq!(named(&project), Vec::<String>::new());
}

#[test]
fn what_the_settings_cannot_express_is_named_as_a_violation() {
    let project = applied("violations");
    let name = project.resident("a", "env", 1);
    let whole = body_of(&name, &name, "");
    let edits: [(&str, Edit); 8] = [
        ("privileged", |body| {
            body["HostConfig"]["Privileged"] = json!(true);
            // It may not be said together with these.
            body["HostConfig"]["MaskedPaths"] = Value::Null;
            body["HostConfig"]["ReadonlyPaths"] = Value::Null;
        }),
        ("a bind", |body| {
            body["HostConfig"]["Binds"] = json!(["/etc:/host:ro"]);
        }),
        ("a device", |body| {
            body["HostConfig"]["Devices"] = json!([{
                "PathOnHost": "/dev/null", "PathInContainer": "/dev/x", "CgroupPermissions": "r",
            }]);
        }),
        ("the process namespace", |body| {
            body["HostConfig"]["PidMode"] = json!("host");
        }),
        ("extra hosts", |body| {
            body["HostConfig"]["ExtraHosts"] = json!(["x:1.2.3.4"]);
        }),
        ("groups", |body| {
            body["HostConfig"]["GroupAdd"] = json!(["0"]);
        }),
        ("a health check", |body| {
            body["Healthcheck"] = json!({"Test": ["CMD", "/probe"]});
        }),
        ("an entry point", |body| {
            body["Entrypoint"] = json!(["/probe", "serve", "x"]);
        }),
    ];
    for (what, edit) in edits {
        let mut body = whole.clone();
        edit(&mut body);
        make(&name, &body);
        let paths: BTreeSet<String> = without_state(named(&project)).into_iter().collect();
        let expected = BTreeSet::from(["drift instance violations".to_owned()]);
        assert_eq!(paths, expected, "{what}");
    }
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(named(&project), Vec::<String>::new());
}

/// The network of a container is made anew with one field different; everyone goes back in at the same address.
fn remake_network(name: &str, edit: impl FnOnce(&mut Value)) {
    let found = daemon::inspect_network(name);
    let members: BTreeMap<String, String> = found["Containers"]
        .as_object()
        .unwrap()
        .values()
        .map(|member| {
            let address = member["IPv4Address"].as_str().unwrap();
            let address = address.split('/').next().unwrap();
            (
                member["Name"].as_str().unwrap().to_owned(),
                address.to_owned(),
            )
        })
        .collect();
    let mut request = json!({
        "Name": name,
        "Driver": found["Driver"],
        "Internal": found["Internal"],
        "EnableIPv6": false,
        "IPAM": found["IPAM"],
        "Options": found["Options"],
        "Labels": found["Labels"],
    });
    edit(&mut request);
    let request: NetworkCreateRequest = serde_json::from_value(request).unwrap();
    for member in members.keys() {
        docker_text(&["network", "disconnect", name, member]);
    }
    docker_text(&["network", "rm", name]);
    daemon::wait(async { daemon::connect().create_network(request).await.unwrap() });
    for (member, address) in members {
        docker_text(&["network", "connect", "--ip", &address, name, &member]);
    }
}

#[test]
fn every_setting_of_a_network_that_is_changed_by_hand_is_named_and_no_other() {
    let project = applied("networks");
    let network = |generation| project.resident("a", "env", generation);
    let layout = |request: &Value, field: &str| {
        request["IPAM"]["Config"][0][field]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut generation = 1;
    let edits: [(&str, NetworkEdit<'_>); 6] = [
        ("closed", &|request| request["Internal"] = json!(false)),
        ("closed", &|request| {
            request["Options"] = json!({});
        }),
        ("bridge", &|request| {
            let range = layout(request, "IPRange");
            let first: std::net::Ipv4Addr = range.split('/').next().unwrap().parse().unwrap();
            // Before the dynamic range, and nobody's.
            let bridge = std::net::Ipv4Addr::from(u32::from(first) + 3);
            request["IPAM"]["Config"][0]["Gateway"] = json!(bridge.to_string());
        }),
        ("range", &|request| {
            request["IPAM"]["Config"][0]["IPRange"] = json!(layout(request, "Subnet"));
        }),
        ("labels.dev.selu.generation", &|request| {
            request["Labels"]["dev.selu.generation"] = json!("99");
        }),
        ("labels.dev.selu.instance", &|request| {
            request["Labels"]["dev.selu.instance"] = json!("a/another");
        }),
    ];
    for (path, edit) in edits {
        remake_network(&network(generation), edit);
        assert_eq!(
            named(&project),
            [format!("drift instance network.{path}")],
            "{path}"
        );
        project.selu(&["apply", "-y"]).expect(0);
        generation += 1;
        assert_eq!(named(&project), Vec::<String>::new(), "{path}, mended");
    }

    // Who stands in it.
    let name = network(generation);
    docker_text(&["network", "disconnect", &name, &project.gateway()]);
    assert_eq!(named(&project), [format!("drift gateway networks.{name}")]);
    project.selu(&["apply", "-y"]).expect(0);
    docker_text(&["network", "connect", "bridge", &name]);
    assert_eq!(
        named(&project),
        ["drift instance networks.bridge".to_owned()]
    );
    docker_text(&["network", "disconnect", "bridge", &name]);
    let stranger = format!("selu-plan4-stranger-{}", std::process::id());
    docker_text(&[
        "create",
        "--name",
        &stranger,
        "--network",
        &name,
        &project.image("a", "env"),
    ]);
    assert_eq!(
        named(&project),
        ["drift instance network.attached".to_owned()]
    );
    docker_text(&["rm", "-f", &stranger]);
    assert_eq!(named(&project), Vec::<String>::new());

    // The gateway's own network.
    let gateway = project.gateway();
    remake_network(&gateway, |request| {
        request["IPAM"]["Config"][0]["IPRange"] = json!(layout(request, "Subnet"));
    });
    assert_eq!(named(&project), ["drift gateway network.range".to_owned()]);
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(named(&project), Vec::<String>::new());
}

#[test]
fn a_volume_that_was_made_anew_differently_is_named_and_never_mounted() {
    let project = applied("volumes");
    let name = project.resident("a", "env", 1);
    let mounts = daemon::inspect(&name)["HostConfig"]["Mounts"].clone();
    let of = |path: &str| {
        let mounts = mounts.as_array().unwrap();
        let mount = mounts.iter().find(|mount| mount["Target"] == path);
        mount.unwrap()["Source"].as_str().unwrap().to_owned()
    };
    let (workspace, cache) = (of("/workspace"), of("/cache"));
    let owner = format!("dev.selu.project={}", project.name);
    let remake = |volume: &str, words: &[&str]| {
        let filters = [
            format!("label={owner}"),
            "label=dev.selu.instance=a/env".to_owned(),
        ];
        let filters = ["--filter", &filters[0], "--filter", &filters[1]];
        let resident = docker_text(&[&["ps", "-aq"], &filters[..]].concat());
        docker_text(&["rm", "-f", &resident]);
        docker_text(&["volume", "rm", volume]);
        docker_text(&[&["volume", "create"], words, &[volume]].concat());
        let refused = project.selu(&["plan"]).expect(1).stderr;
        assert!(refused.contains(volume), "{refused}");
        docker_text(&["volume", "rm", volume]);
        project.selu(&["apply", "-y"]).expect(0);
        refused
    };
    let labels = [
        "--label",
        &owner,
        "--label",
        "dev.selu.instance=a/env",
        "--label",
        "dev.selu.role=workspace",
    ];
    let host = [
        &labels[..],
        &[
            "--opt",
            "type=none",
            "--opt",
            "o=bind",
            "--opt",
            "device=/etc",
        ],
    ];
    let refused = remake(&workspace, &host.concat());
    assert!(refused.contains("option device=/etc"), "{refused}");
    let refused = remake(&cache, &labels);
    assert!(
        refused.contains("labelled as workspace of a/env"),
        "{refused}"
    );
    let refused = remake(&cache, &[]);
    assert!(refused.contains("is taken"), "{refused}");
}

#[test]
fn what_we_do_not_set_never_shows() {
    let project = applied("defaults");
    let name = project.resident("a", "env", 1);
    let whole = body_of(&name, &name, "");
    // Names of the engine's own choosing, and what others may hang on to an object without changing how it runs.
    let mut body = whole.clone();
    body["Hostname"] = json!("another");
    body["Labels"]["com.example.note"] = json!("of somebody else");
    body["StopTimeout"] = json!(3);
    make(&name, &body);
    assert_eq!(named(&project), Vec::<String>::new());
    let events = daemon::events_during(&project.name, || {
        project.selu(&["apply", "-y"]).expect(0);
    });
    assert_eq!(events, Vec::<String>::new());
}

/// What a later version of selu may have written into a container: nothing of it is unknown in silence, and nothing of it is
/// a difference by being unknown (product.md 7).
#[test]
fn what_a_later_selu_left_on_a_container_is_no_difference_or_named_by_its_path() {
    let project = applied("later");
    let name = project.resident("a", "env", 1);
    let whole = body_of(&name, &name, "");
    let later_hash = format!("v2:sha256:{}", "0".repeat(64));
    // Another version's hash, and a label for which this one has no use.
    let mut body = whole.clone();
    body["Labels"]["dev.selu.spec"] = json!(later_hash);
    body["Labels"]["dev.selu.later"] = json!("{}");
    make(&name, &body);
    assert_eq!(named(&project), Vec::<String>::new());
    let events = daemon::events_during(&project.name, || {
        project.selu(&["apply", "-y"]).expect(0);
    });
    assert_eq!(events, Vec::<String>::new());

    // A rule that it runs under and that this version cannot keep.
    let rules = whole["Labels"]["dev.selu.rules"].as_str().unwrap();
    let mut rules: Value = serde_json::from_str(rules).unwrap();
    rules["checkpoint"] = json!("never");
    let mut body = whole.clone();
    body["Labels"]["dev.selu.spec"] = json!(later_hash);
    body["Labels"]["dev.selu.rules"] = json!(rules.to_string());
    make(&name, &body);
    assert_eq!(named(&project), ["intent instance rules.checkpoint"]);
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(named(&project), Vec::<String>::new());
}
