//! An MCP server elsewhere (`mcp-bridge --url`): reached over TLS by the rules of the capability's manifest, and only so.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::lab::{Lab, WWW};
use super::scene::Scene;
use crate::project::TestProject;

const HOST: &str = "www.selu-lab.net";
const KEY: &str = "key-of-the-far-server-81c";

/// tests/bridge/far.py at an address of the lab.
struct Far {
    process: Child,
    port: u16,
}

impl Far {
    fn start(lab: &Lab) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/bridge/far.py");
        let mut process = Lab::command("python3")
            .arg(script)
            .args(["at", WWW])
            .args(lab.certificate(WWW))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().parse().unwrap();
        Self { process, port }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `web/far`: nothing but `selu` and the authority that it trusts, for the server at this URL.
fn bridged(lab: &Lab, url: &str, hosts: &str) -> TestProject {
    let project = Scene::project("far");
    project.write("agents/web/agent.yaml", "id: web\nname: web\n");
    project.write("agents/web/agent.md", "Uses an MCP server elsewhere.\n");
    let folder = "agents/web/capabilities/far/container";
    let header = "Authorization: Bearer ${KEY}";
    let entry = ["/selu", "mcp-bridge", "--url", url, "--header", header];
    let entry = serde_json::to_string(&entry).unwrap();
    project.write(
        &format!("{folder}/Dockerfile"),
        &format!(
            "FROM scratch\nCOPY selu /selu\nCOPY ca.pem /etc/ssl/certs/ca-certificates.crt\nENTRYPOINT {entry}\n"
        ),
    );
    project.write(&format!("{folder}/ca.pem"), &lab.authority());
    let prepare = format!(
        "cp '{}' \"$SELU_BUILD_OUT/selu\"",
        env!("CARGO_BIN_EXE_selu")
    );
    let settings = project.read("selu.toml");
    project.write(
        "selu.toml",
        &format!("{settings}\n[build.\"web/far\"]\nprepare = [\"sh\", \"-c\", {prepare:?}]\n"),
    );
    allow(&project, hosts);
    project
}

fn allow(project: &TestProject, hosts: &str) {
    let image = project.image("web", "far");
    project.write(
        "agents/web/capabilities/far/manifest.yaml",
        &format!(
            "id: far\nimage: {image}\ntool_source: dynamic\n\
             network: {{mode: allowlist, hosts: [\"{hosts}\"]}}\n\
             credentials:\n  - {{name: KEY, scope: system, required: true, description: Its key}}\n"
        ),
    );
}

#[test]
fn a_server_elsewhere_is_asked_and_called_over_tls_by_the_rules_of_its_capability_and_not_beyond_them()
 {
    let Some(lab) = Lab::take() else { return };
    let far = Far::start(&lab);
    let url = format!("https://{HOST}:{}/mcp", far.port);
    let project = bridged(&lab, &url, &format!("{HOST}:{}", far.port));
    project.selu(&["build"]).expect(0);
    let variable = [("SELU_CRED__WEB__FAR__KEY", KEY)];
    let apply = || project.selu_with(&variable, &["apply", "-y"]);
    apply().expect(0);
    let lock = project.read("selu.lock");
    assert_eq!(lock.matches(".tool.\"").count(), 3, "{lock}");

    let consent = ["--yes-to", "web/far/t0", "--format", "json"];
    let call = [&["invoke", "web/far", "t0"], &consent[..]].concat();
    let called = project.selu_with(&variable, &call).expect(0).json();
    let sent = Sha256::digest(format!("Bearer {KEY}"));
    let sent: String = sent.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(called["result"]["hash"], sent.as_str(), "{called}");

    // The same server by a rule for another port of the same host: it is not even asked for its tools.
    allow(&project, &format!("{HOST}:443"));
    let refused = apply();
    assert_ne!(refused.code, 0, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stderr.contains("web/far"), "{}", refused.stderr);
    let seen = project
        .selu(&["egress", "--format", "json"])
        .expect(0)
        .json();
    let events = seen["events"].as_array().unwrap();
    let denied = |event: &Value| event["verdict"] == "denied" && event["port"] == far.port;
    assert!(events.iter().any(denied), "{seen:#}");
    assert!(!project.read("selu.lock").contains(KEY));
}
