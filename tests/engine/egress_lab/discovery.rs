//! `selu lock` runs what it discovers under the rules of the manifest, as `apply` does.

use serde_json::json;

use super::lab::{Lab, OTHER, WWW};
use super::scene::{FreeContainer, Scene};

const RULES: &str =
    "tool_source: dynamic\nnetwork: {mode: allowlist, hosts: [\"www.selu-lab.net:80\"]}\n";

#[test]
fn a_server_that_is_asked_for_its_tools_may_fetch_them_from_what_is_listed_and_from_nowhere_else() {
    let Some(lab) = Lab::take() else { return };
    let project = Scene::project("fetched");
    let denied = "denied.selu-other.net";
    project.probe("web", "listed", &["lists-of", "www.selu-lab.net"], RULES);
    project.selu(&["build"]).expect(0);
    let before = project.everything();
    project.selu(&["lock"]).expect(0);
    let lock = project.read("selu.lock");
    assert!(lock.contains(&format!("reached {WWW}")), "{lock}");
    assert_eq!(project.everything(), before, "nothing is left");

    project.probe("web", "denied", &["lists-of", denied], RULES);
    project.selu(&["build"]).expect(0);
    let free = FreeContainer::new("fetched", &project.image("web", "denied"));
    let asked = json!([{"send": format!("GET / HTTP/1.1\r\nHost: {denied}\r\n\r\n")}]);
    let said = free.probe("talk", &json!({"to": denied, "port": 80, "steps": asked}));
    assert!(
        said.to_string().contains(&format!("reached {OTHER}")),
        "{said}"
    );
    lab.fence();
    let mark = lab.mark();
    let refused = project.selu(&["lock"]);
    assert_ne!(refused.code, 0, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stderr.contains("web/denied"), "{}", refused.stderr);
    lab.fence();
    let arrived: Vec<_> = lab
        .since(mark)
        .into_iter()
        .filter(|line| {
            let text = line.to_string();
            text.contains(&format!("\"at\":\"{OTHER}")) || text.contains(denied)
        })
        .collect();
    assert!(arrived.is_empty(), "{arrived:?}");
    assert!(!project.read("selu.lock").contains(OTHER));
}
