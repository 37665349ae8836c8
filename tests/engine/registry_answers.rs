//! What `selu` makes of a registry's answers, whole: resolving by ourselves, pulling by the engine (product.md 18 and 20).

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::project::{Run, TestProject, probe_binary};
use crate::registry::{Registry, architecture};
use crate::world::{docker, docker_text};

const STATIC: &str = "tools:\n  - name: read\n    description: Reads a file.\n    recommended_policy: allow\n    input_schema: {type: object}\n";

/// A project whose capabilities have tags of `x`.
fn project(topic: &str, registry: &Registry, capabilities: &[(&str, &str)]) -> TestProject {
    let project = TestProject::new(&format!("images5-{topic}"));
    project.write("agents/a/agent.yaml", "id: a\nname: a\n");
    project.write("agents/a/agent.md", "Does.\n");
    for (capability, tag) in capabilities {
        let image = format!("{}/x:{tag}", registry.address);
        project.write(
            &format!("agents/a/capabilities/{capability}/manifest.yaml"),
            &format!("id: {capability}\nimage: {image}\n{STATIC}"),
        );
    }
    project
}

/// An image that serves, for what really runs.
fn push_probe(registry: &Registry, tag: &str) -> String {
    let mut program = fs::read(probe_binary()).unwrap();
    // Content of its own: what an engine has from another registry it pulls from nobody.
    program.extend(registry.address.as_bytes());
    registry.push_program(tag, &program, &["serve"])
}

/// Docker's configuration of a test's own.
struct Configuration(tempfile::TempDir);

impl Configuration {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.json"), text).unwrap();
        Self(folder)
    }

    /// With a credential helper named `test` that runs a script.
    fn with_helper(script: &str) -> Self {
        let configuration = Self::new(r#"{"credsStore":"test"}"#);
        let program = configuration.0.path().join("docker-credential-test");
        crate::program::write(&program, &format!("#!/bin/sh\n{script}\n"));
        configuration
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn selu(&self, project: &TestProject, arguments: &[&str]) -> Run {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.folder().display());
        let folder = self.folder().display().to_string();
        project.selu_with(&[("DOCKER_CONFIG", &folder), ("PATH", &path)], arguments)
    }
}

fn remove_pulled(registry: &Registry, digest: &str) {
    let reference = format!("{}/x@{digest}", registry.address);
    docker(&["image", "rm", "-f", &reference]);
}

#[test]
fn one_head_for_two_instances_of_a_tag_and_no_registry_at_all_once_it_is_locked_and_pulled() {
    let registry = Registry::new();
    let digest = push_probe(&registry, "1");
    let project = project("once", &registry, &[("one", "1"), ("two", "1")]);
    project.selu(&["plan"]).expect(0);
    let asked = registry.asked(false);
    let of_tag: Vec<&String> = asked
        .iter()
        .filter(|line| line.contains("manifests/1"))
        .collect();
    assert_eq!(of_tag, ["HEAD /v2/x/manifests/1"], "{asked:?}");
    assert_eq!(
        registry.asked(true),
        Vec::<String>::new(),
        "the engine was not needed"
    );

    project.selu(&["apply", "-y"]).expect(0);
    let asked = registry.asked(false);
    let heads = asked
        .iter()
        .filter(|line| *line == "HEAD /v2/x/manifests/1");
    assert_eq!(
        heads.count(),
        1,
        "also when it is looked at again under the hold: {asked:?}"
    );
    assert!(!registry.asked(true).is_empty(), "the engine pulls");

    project.selu(&["plan", "--detailed-exitcode"]).expect(0);
    project.selu(&["lock", "--check"]).expect(0);
    project.selu(&["apply", "-y"]).expect(0);
    assert_eq!(registry.asked(false), Vec::<String>::new());
    assert_eq!(registry.asked(true), Vec::<String>::new());
    project.selu(&["destroy", "-y"]).expect(0);
    remove_pulled(&registry, &digest);
}

#[test]
fn a_password_serves_to_resolve_and_to_pull_and_whose_it_is_is_named_where_it_is_wrong() {
    for tokens in [false, true] {
        let registry = Registry::new();
        let digest = push_probe(&registry, "1");
        registry.lock_up("me:c4n4ry-password", tokens);
        let project = project("password", &registry, &[("one", "1")]);
        let address = &registry.address;

        let none = Configuration::new("{}");
        let refused = none.selu(&project, &["plan"]).expect(1);
        for part in [
            address.as_str(),
            "no credentials",
            "docker login",
            "config.json has none for",
        ] {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }

        let login = |password: &str| {
            let auth = STANDARD.encode(format!("me:{password}"));
            Configuration::new(&format!(
                r#"{{"auths":{{"{address}":{{"auth":"{auth}"}}}}}}"#
            ))
        };
        let wrong = login("c4n4ry-wrong");
        let refused = wrong.selu(&project, &["plan"]).expect(1);
        assert!(
            refused.stderr.contains("the credentials of"),
            "{}",
            refused.stderr
        );
        assert!(!refused.stderr.contains("c4n4ry"), "{}", refused.stderr);

        let right = login("c4n4ry-password");
        let applied = right
            .selu(&project, &["apply", "-y", "--verbose"])
            .expect(0);
        for text in [&applied.stdout, &applied.stderr, &project.read("selu.lock")] {
            assert!(!text.contains("c4n4ry"), "{text}");
        }
        right.selu(&project, &["destroy", "-y"]).expect(0);
        remove_pulled(&registry, &digest);

        // The lock holds, the login does not: the pull names both as well. The gateway is made all the same.
        let refused = none.selu(&project, &["apply", "-y"]).expect(3);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(said.contains("no credentials"), "{said}");
    }
}

#[test]
fn b13_a_missing_helper_is_asked_without_and_named_a_slow_one_is_waited_for_and_a_broken_one_is_an_error()
 {
    let registry = Registry::new();
    let open = project("helper", &registry, &[("one", "1")]);
    let missing = Configuration::new(r#"{"credsStore":"selu-is-not-there"}"#);
    missing.selu(&open, &["plan"]).expect(0);

    registry.lock_up("me:c4n4ry-helped", true);
    let refused = missing.selu(&open, &["plan"]).expect(1);
    let named = "docker-credential-selu-is-not-there is not installed";
    assert!(refused.stderr.contains(named), "{}", refused.stderr);

    let none = Configuration::with_helper(
        "cat >/dev/null; echo 'credentials not found in native keychain'; exit 1",
    );
    let refused = none.selu(&open, &["plan"]).expect(1);
    let named = "docker-credential-test has none for";
    assert!(refused.stderr.contains(named), "{}", refused.stderr);

    let count = "echo asked >>\"$DOCKER_CONFIG/count\"";
    let answer = r#"echo '{"Username":"me","Secret":"c4n4ry-helped"}'"#;
    let slow = Configuration::with_helper(&format!("{count}; sleep 1; {answer}; echo odd >&2"));
    let planned = slow.selu(&open, &["plan"]).expect(0);
    assert!(!planned.stderr.contains("c4n4ry"), "{}", planned.stderr);
    let asked = fs::read_to_string(slow.folder().join("count")).unwrap();
    assert_eq!(
        asked.lines().count(),
        1,
        "one helper call per registry and command"
    );

    let odd = Configuration::with_helper("echo c4n4ry-helped");
    let refused = odd.selu(&open, &["plan"]).expect(1);
    assert!(
        refused.stderr.contains("its answer makes no sense"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("c4n4ry"), "{}", refused.stderr);
}

#[test]
fn a_digest_that_was_deleted_is_said_before_anything_happens_with_what_the_tag_is_now() {
    let registry = Registry::new();
    let project = project("gone", &registry, &[("one", "1")]);
    project.selu(&["lock"]).expect(0);
    let lock = project.read("selu.lock");
    remove_pulled(&registry, &registry.digest);
    project.selu(&["plan"]).expect(0);

    let moved = registry.push("1", "newer");
    registry.forget(&registry.digest);
    for command in [&["plan"][..], &["apply", "-y"]] {
        let refused = project.selu(command).expect(1);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        for part in [
            "SELU1113",
            &registry.digest,
            &format!("is {moved} now"),
            "--upgrade",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    assert!(!project.is_deployed());
    registry.forget("1");
    let refused = project.selu(&["plan"]).expect(1);
    assert!(
        refused.stderr.contains("nor anything else as"),
        "{}",
        refused.stderr
    );
    assert_eq!(project.read("selu.lock"), lock);
    assert_eq!(
        registry.asked(true),
        Vec::<String>::new(),
        "nothing was pulled"
    );
}

#[test]
fn an_index_is_pinned_as_a_whole_and_one_without_this_platform_is_refused_at_the_plan() {
    let registry = Registry::new();
    let index = registry.push_index("both", &["s390x", architecture()]);
    let fits = project("index", &registry, &[("one", "both")]);
    fits.selu(&["lock"]).expect(0);
    assert!(
        fits.read("selu.lock").contains(&index),
        "{}",
        fits.read("selu.lock")
    );
    let planned = fits.selu(&["plan"]).expect(0);
    assert!(planned.stdout.contains(&index[..15]), "{}", planned.stdout);

    registry.push_index("other", &["s390x", "riscv64"]);
    let lacks = project("platform", &registry, &[("one", "other")]);
    let refused = lacks.selu(&["plan"]).expect(1);
    for part in [
        "SELU1114",
        "is for linux/s390x, linux/riscv64",
        &format!("the engine is linux/{}", architecture()),
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!(
        registry.asked(true),
        Vec::<String>::new(),
        "nothing was pulled"
    );
}

#[test]
fn b11_a_limited_registry_is_left_alone_as_long_as_it_asks_and_no_longer_than_is_bearable() {
    let registry = Registry::new();
    let project = project("limited", &registry, &[("one", "1")]);
    registry.limit(2, "1");
    project.selu(&["plan"]).expect(0);
    let asked = registry.asked(false);
    let heads = asked
        .iter()
        .filter(|line| *line == "HEAD /v2/x/manifests/1");
    assert_eq!(heads.count(), 3, "{asked:?}");

    for (after, said) in [
        ("3600", "for 3600 s"),
        ("Fri, 31 Dec 1999 23:59:59 GMT", "until \"Fri, 31 Dec"),
    ] {
        registry.limit(9, after);
        let refused = project.selu(&["plan"]).expect(1);
        assert!(
            refused.stderr.contains("limits requests"),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
        assert_eq!(registry.asked(false).len(), 1, "it is not hammered");
        assert_eq!(
            registry.asked(true),
            Vec::<String>::new(),
            "the engine does not hammer it either"
        );
    }
}

/// An address of this machine that engines do not take for loopback: their default bridge's, the first of its subnet. That
/// they name it themselves cannot be relied on: after a restart 20.10 does not.
fn no_loopback() -> String {
    let subnet = docker_text(&[
        "network",
        "inspect",
        "bridge",
        "--format",
        "{{(index .IPAM.Config 0).Subnet}}",
    ]);
    let subnet: ipnet::Ipv4Net = subnet.parse().unwrap();
    subnet.hosts().next().unwrap().to_string()
}

#[test]
fn a_registry_without_tls_that_is_not_this_machines_is_refused_by_name() {
    let registry = Registry::at(&no_loopback());
    let project = project("tls", &registry, &[("one", "1")]);
    let refused = project.selu(&["plan"]).expect(1);
    for part in [
        registry.address.as_str(),
        "no trusted TLS",
        "/etc/docker/certs.d",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!(
        registry.asked(false),
        Vec::<String>::new(),
        "nothing was asked in the clear"
    );
}

#[test]
fn a_certificate_that_nobody_signed_is_refused_by_name_with_its_cure_and_hears_no_password() {
    let registry = Registry::self_signed(&no_loopback());
    registry.lock_up("me:c4n4ry-password", false);
    let address = &registry.address;
    let project = project("self-signed", &registry, &[("one", "1")]);
    let auth = STANDARD.encode("me:c4n4ry-password");
    let login = Configuration::new(&format!(
        r#"{{"auths":{{"{address}":{{"auth":"{auth}"}}}}}}"#
    ));
    // The plan resolves, the apply would pull, the lock is asked for by hand.
    for arguments in [&["plan"][..], &["apply", "-y"], &["lock"]] {
        let refused = login.selu(&project, arguments).expect(1);
        for part in [
            address.as_str(),
            "no trusted TLS",
            "x509: certificate signed by unknown authority",
            "/etc/docker/certs.d",
        ] {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }
        assert!(!refused.stderr.contains("c4n4ry"), "{}", refused.stderr);
    }
    for by_engine in [false, true] {
        let asked = registry.asked(by_engine);
        assert_eq!(asked, Vec::<String>::new(), "nothing got through TLS");
    }
    assert!(!project.is_deployed());
}

#[test]
fn a_certificate_that_nobody_signed_serves_on_loopback_as_it_does_to_engines() {
    let registry = Registry::self_signed("127.0.0.1");
    let digest = push_probe(&registry, "1");
    let project = project("self-signed-here", &registry, &[("one", "1")]);
    project.selu(&["apply", "-y"]).expect(0);
    let lock = project.read("selu.lock");
    assert!(lock.contains(&digest), "{lock}");
    project.selu(&["plan", "--detailed-exitcode"]).expect(0);
    project.selu(&["destroy", "-y"]).expect(0);
    remove_pulled(&registry, &digest);
}
