//! Which engines are taken, and that the others are refused by name before anything is made (product.md 17): the real one
//! through a door that gives its answers as another engine does.

use serde_json::{Value, json};

use crate::cutting::{Answering, Door};
use crate::project::{Run, TestProject};

const STATIC: &str = "tools:\n  - name: read\n    description: Reads a file.\n    recommended_policy: allow\n    input_schema: {type: object}\n";

fn one(topic: &str) -> TestProject {
    let project = TestProject::new(&format!("engines9-{topic}"));
    project.probe("a", "one", &["serve"], STATIC);
    project.selu(&["build"]).expect(0);
    project
}

/// Whatever is remembered of such an engine is forgotten with the project.
fn through(project: &TestProject, door: &Door, arguments: &[&str]) -> Run {
    let memory = project.path().join(".selu").display().to_string();
    let address = door.address();
    let all = [arguments, &["--host", &address]].concat();
    project.selu_with(&[("XDG_STATE_HOME", &memory)], &all)
}

/// Nothing but looks.
fn looks_only(door: &Door) -> bool {
    let calls = door.calls();
    !calls.is_empty()
        && calls
            .iter()
            .all(|call| !call.starts_with("POST") && !call.starts_with("DELETE"))
}

#[test]
fn an_engine_that_is_too_old_too_odd_or_no_docker_is_refused_by_name_and_only_looked_at() {
    let project = one("refused");
    let cases: [(Answering, &[&str]); 5] = [
        (
            |kind, answer| {
                if kind == "GET version" {
                    answer["Version"] = json!("19.03.15");
                    answer["ApiVersion"] = json!("1.40");
                }
            },
            &[
                "Docker 19.03.15 (API 1.40) is not supported",
                "older than Docker 20.10",
            ],
        ),
        (
            |kind, answer| {
                if kind == "GET version" {
                    answer["ApiVersion"] = Value::Null;
                }
            },
            &["which API it speaks"],
        ),
        // As Podman 4.9 answers, recorded, with what does not tell engines apart left out.
        (
            |kind, answer| match kind {
                "GET version" => {
                    *answer = json!({
                        "Platform": { "Name": "linux/amd64/debian-12" },
                        "Components": [
                            {
                                "Name": "Podman Engine", "Version": "4.9.3",
                                "Details": { "APIVersion": "4.9.3", "Arch": "amd64", "MinAPIVersion": "4.0.0", "Os": "linux" },
                            },
                            { "Name": "Conmon", "Version": "conmon version 2.1.10", "Details": { "Package": "conmon" } },
                            { "Name": "OCI Runtime (crun)", "Version": "crun version 1.14.1", "Details": { "Package": "crun" } },
                        ],
                        "Version": "4.9.3", "ApiVersion": "1.41", "MinAPIVersion": "1.24",
                        "GitCommit": "", "GoVersion": "go1.22.2", "Os": "linux", "Arch": "amd64",
                    });
                }
                "GET info" => {
                    answer["SecurityOptions"] =
                        json!(["name=seccomp,profile=default", "name=rootless"])
                }
                _ => {}
            },
            &["Podman 4.9.3 (API 1.41) is not supported", "never proven"],
        ),
        (
            |kind, answer| {
                if kind == "GET info" {
                    answer["SecurityOptions"] = json!([
                        "name=seccomp,profile=default",
                        "name=rootless",
                        "name=cgroupns"
                    ]);
                }
            },
            &["is not supported", "rootless"],
        ),
        // Without an id there is no telling whose its containers are.
        (
            |kind, answer| {
                if kind == "GET info" {
                    answer["ID"] = json!("");
                }
            },
            &["is not supported", "does not say which engine it is"],
        ),
    ];
    for (change, said) in cases {
        for arguments in [
            &["plan"][..],
            &["apply", "-y"],
            &["status"],
            &["destroy", "-y"],
            &["lock"],
        ] {
            let door = Door::answering(change);
            let refused = through(&project, &door, arguments).expect(1);
            for part in said
                .iter()
                .chain(&["hint: name a Docker engine from 20.10 on"])
            {
                assert!(
                    refused.stderr.contains(part),
                    "{arguments:?}: {part}: {}",
                    refused.stderr
                );
            }
            assert!(looks_only(&door), "{arguments:?}: {:?}", door.calls());
        }
    }
    assert!(!project.is_deployed());
}

/// A member that no version knows yet, in an answer and in the parts of it that we read.
fn with_more(value: &mut Value) {
    let Value::Object(members) = value else {
        return;
    };
    members.insert("OfALaterVersion".to_owned(), json!({ "Flag": true }));
    for part in [
        "Config",
        "HostConfig",
        "IPAM",
        "NetworkSettings",
        "RootFS",
        "State",
        "Swarm",
    ] {
        if let Some(part) = members.get_mut(part) {
            with_more(part);
        }
    }
}

#[test]
fn an_engine_that_is_newer_than_all_we_know_is_spoken_to_in_its_own_version() {
    let project = one("newer");
    let door = Door::answering(|kind, answer| {
        if kind == "GET version" {
            answer["Version"] = json!("99.0.1");
            answer["ApiVersion"] = json!("1.99");
            // It would refuse every version that this one of selu could name.
            answer["MinAPIVersion"] = json!("1.98");
        }
        match answer {
            Value::Array(listed) => listed.iter_mut().for_each(with_more),
            one => with_more(one),
        }
    });
    through(&project, &door, &["apply", "-y"]).expect(0);
    through(&project, &door, &["plan", "--detailed-exitcode"]).expect(0);
    through(&project, &door, &["status"]).expect(0);
    assert_eq!(
        door.versions(),
        Vec::<String>::new(),
        "calls that name a version"
    );
    through(&project, &door, &["destroy", "-y"]).expect(0);
    assert!(!project.is_deployed());
}

/// What `default-ulimits`, `log-opts`, `default-network-opts` and the like of daemon.json add to all that the engine makes.
fn with_defaults(kind: &str, answer: &mut Value) {
    let add = |to: &mut Value, name: &str, value: Value| {
        to.as_object_mut().unwrap().insert(name.to_owned(), value);
    };
    match kind {
        "GET containers/*/json" => {
            let host = &mut answer["HostConfig"];
            let ulimits = host["Ulimits"].as_array_mut().unwrap();
            for (name, bound) in [("core", 0), ("memlock", -1), ("nproc", 4096)] {
                ulimits.push(json!({ "Name": name, "Soft": bound, "Hard": bound }));
            }
            add(&mut host["LogConfig"]["Config"], "compress", json!("false"));
            add(host, "OomScoreAdj", json!(100));
            add(host, "Runtime", json!("crun"));
        }
        "GET networks/*" => {
            let mtu = "com.docker.network.driver.mtu";
            add(&mut answer["Options"], mtu, json!("1400"));
        }
        _ => {}
    }
}

#[test]
fn g05_what_the_engine_adds_to_everything_by_default_is_no_drift() {
    let project = one("defaults");
    let door = Door::answering(with_defaults);
    through(&project, &door, &["apply", "-y"]).expect(0);
    let again = through(&project, &door, &["plan", "--detailed-exitcode"]).expect(0);
    assert!(!again.stdout.contains("ulimit"), "{}", again.stdout);
    through(&project, &door, &["apply", "-y"]).expect(0);
    let kinds = door.calls();
    for kind in ["GET containers/*/json", "GET networks/*"] {
        assert!(kinds.iter().any(|k| k == kind), "{kind}: {kinds:?}");
    }
    // The bound that is ours is still compared.
    let loose = Door::answering(|kind, answer| {
        with_defaults(kind, answer);
        if kind == "GET containers/*/json" {
            answer["HostConfig"]["Ulimits"][0] =
                json!({ "Name": "nofile", "Soft": 1024, "Hard": 1_048_576 });
        }
    });
    let drifted = through(&project, &loose, &["plan", "--detailed-exitcode"]).expect(2);
    assert!(
        drifted.stdout.contains("ulimit nofile 1024:1048576"),
        "{}",
        drifted.stdout
    );
    project.selu(&["destroy", "-y"]).expect(0);
    assert!(!project.is_deployed());
}
