use std::collections::BTreeMap;

use super::*;
use crate::check::nearest;
use crate::model::Credential;
use crate::resolve::testing::World;

/// Two agents that share an image, a host and a credential, and one without capabilities.
fn graph() -> Graph {
    let network = |hosts: &[&str]| Network {
        mode: NetworkMode::Allowlist,
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
    };
    let mut graph = Graph::default();
    let mut at = BTreeMap::new();
    graph.node(&mut at, Kind::Agent, "idle", "idle");
    for (key, hosts) in [
        ("home/api", network(&["api.example.com:443"])),
        (
            "home/files",
            Network {
                mode: NetworkMode::Any,
                hosts: Vec::new(),
            },
        ),
        (
            "work/api",
            network(&["*.example.com", "api.example.com:443"]),
        ),
    ] {
        graph.instance(
            &mut at,
            &Shown {
                key: &InstanceKey::parse(key).unwrap(),
                image: "ghcr.io/acme/api:1",
                local: false,
                network: &hosts,
                credentials: vec![("API_KEY", CredentialScope::User)],
            },
        );
    }
    graph
}

#[test]
fn what_several_use_is_one_node_and_an_agent_without_capabilities_is_one_too() {
    let graph = graph();
    assert_eq!(
        graph.summary(),
        "3 agents, 3 capabilities, 1 image, 3 hosts, 1 credential"
    );
    // Agent to capability: 3; image: 3; hosts: 4; credential: 3.
    assert_eq!(graph.edges.len(), 13);
}

#[test]
fn every_form_draws_every_node_and_edge() {
    let graph = graph();
    let (nodes, edges) = (graph.nodes.len(), graph.edges.len());
    let dot = graph.dot();
    assert_eq!(dot.matches(" [shape=").count(), nodes);
    assert_eq!(dot.matches(" -> ").count(), edges);
    let mermaid = graph.mermaid();
    assert_eq!(mermaid.matches("\n  n").count(), nodes + edges);
    let svg = graph.svg();
    assert_eq!(svg.matches("<rect class=\"node ").count(), nodes);
    assert_eq!(svg.matches("<path ").count(), edges);
    assert_eq!(svg, super::tests::graph().svg(), "the same every time");
}

#[test]
fn no_two_boxes_of_a_column_overlap() {
    let graph = graph();
    let rows = svg::middles(&graph);
    for used in [true, false] {
        let mut column: Vec<usize> = graph
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| (node.kind > Kind::Capability) == used && node.kind != Kind::Agent)
            .map(|(at, _)| rows[&at])
            .collect();
        column.sort_unstable();
        assert!(
            column.windows(2).all(|pair| pair[1] - pair[0] >= 22),
            "{column:?}"
        );
    }
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "\"];x[\"<script>alert(1)</script>\\\" -->\n]]>&{{}}\u{202e}'";
    let mut graph = Graph::default();
    let mut at = BTreeMap::new();
    let network = Network {
        mode: NetworkMode::Allowlist,
        hosts: vec![hostile.to_owned()],
    };
    graph.instance(
        &mut at,
        &Shown {
            key: &InstanceKey::new("a", "b"),
            image: hostile,
            local: true,
            network: &network,
            credentials: vec![(hostile, CredentialScope::System)],
        },
    );
    let svg = graph.svg();
    assert!(
        !svg.contains("<script") && !svg.contains('\u{202e}'),
        "{svg}"
    );
    assert_eq!(svg.matches("<g>").count(), 5, "{svg}");
    let mermaid = graph.mermaid();
    assert!(
        !mermaid.contains("<script") && !mermaid.contains('\u{202e}'),
        "{mermaid}"
    );
    // Five nodes and four edges, a line each, after the head.
    assert_eq!(mermaid.lines().count(), 10, "{mermaid}");
    assert!(
        mermaid
            .lines()
            .all(|line| line.matches('"').count() % 2 == 0),
        "{mermaid}"
    );
    let dot = graph.dot();
    let unescaped = dot.replace("\\\\", "").replace("\\\"", "");
    assert!(
        unescaped
            .lines()
            .all(|line| line.matches('"').count() % 2 == 0),
        "{dot}"
    );
}

#[test]
fn a_changed_capability_is_marked_with_the_worst_of_its_changes_and_shown_alone() {
    let mut graph = graph();
    let at = graph
        .nodes
        .iter()
        .position(|node| node.name == "work/api")
        .unwrap();
    graph.nodes[at].grade = Some(Grade::Widening);
    let shown = graph.marked_only();
    assert_eq!(
        shown.summary(),
        "1 agent, 1 capability, 1 image, 2 hosts, 1 credential"
    );
    assert!(shown.svg().contains("capability work/api, widening"));
}

/// A plan whose one capability reaches, holds and runs something.
fn plan() -> Plan {
    let mut world = World::new();
    let capability = world.capability("weather/api");
    capability.network = Network {
        mode: NetworkMode::Allowlist,
        hosts: vec!["*.example.com:443".to_owned(), "api.example.com".to_owned()],
    };
    capability.credentials = vec![Credential {
        name: "API_KEY".to_owned(),
        scope: CredentialScope::System,
        required: true,
        description: String::new(),
    }];
    world.plan()
}

fn asked(name: &str) -> Vec<String> {
    let role = |one: Use| match one.role {
        Role::Host { rule, .. } => rule,
        Role::Credential { .. } => "credential".to_owned(),
        Role::Image { .. } => "image".to_owned(),
    };
    why(&plan(), name).into_iter().map(role).collect()
}

#[test]
fn why_names_the_rules_that_let_a_host_through_and_no_other() {
    assert_eq!(
        asked("api.example.com"),
        ["*.example.com:443", "api.example.com"]
    );
    assert_eq!(
        asked("API.example.com.:443"),
        ["*.example.com:443", "api.example.com"]
    );
    assert_eq!(asked("api.example.com:80"), ["api.example.com"]);
    assert_eq!(asked("deep.cdn.example.com"), ["*.example.com:443"]);
    for nothing in [
        "example.com",
        "example.org",
        "evil-example.com",
        "*.com",
        "",
        "a b",
    ] {
        assert_eq!(asked(nothing), Vec::<String>::new(), "{nothing}");
    }
}

#[test]
fn why_finds_credentials_and_images_by_each_of_their_names() {
    assert_eq!(asked("API_KEY"), ["credential"]);
    assert_eq!(asked("API_KE"), Vec::<String>::new());
    let plan = plan();
    let names = names(&plan);
    let near = nearest("API_KE", names.iter().map(String::as_str));
    assert_eq!(near, Some("API_KEY"));
    let image = &plan.instances.values().next().unwrap().image;
    let digest = image.digest.clone().unwrap();
    let untagged = image.written.split(':').next().unwrap();
    for name in [image.written.as_str(), &digest, untagged] {
        assert_eq!(asked(name), ["image"], "{name}");
    }
}

#[test]
fn any_reaches_every_public_name_and_no_bare_address() {
    let mut plan = plan();
    for instance in plan.instances.values_mut() {
        instance.network_rules = Network {
            mode: NetworkMode::Any,
            hosts: Vec::new(),
        };
    }
    assert_eq!(why(&plan, "example.org:22").len(), 1);
    assert_eq!(why(&plan, "192.0.2.1").len(), 0);
    assert!(Graph::of_plan(&plan).mermaid().contains("any public name"));
}

#[test]
fn what_is_used_far_away_is_drawn_again_and_counted_and_no_line_crosses_the_whole_picture() {
    let mut graph = Graph::default();
    let mut at = BTreeMap::new();
    for number in 0..40 {
        graph.instance(
            &mut at,
            &Shown {
                key: &InstanceKey::new("a", &format!("c{number:02}")),
                image: &format!("image:{number}"),
                local: false,
                network: &Network {
                    mode: NetworkMode::Any,
                    hosts: Vec::new(),
                },
                credentials: Vec::new(),
            },
        );
    }
    let svg = graph.svg();
    let again = svg.matches(" again\"").count();
    assert!((1..10).contains(&again), "{again}");
    assert_eq!(svg.matches(">×40<").count(), again + 1);
    assert!(svg.contains("host any public name, used by 40 capabilities"));
    for path in svg.lines().filter(|line| line.starts_with("<path ")) {
        let numbers: Vec<i64> = path
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|word| word.parse().ok())
            .collect();
        let (from, to) = (numbers[1], numbers[7]);
        // An agent's lines go to all its capabilities.
        let of_agent = numbers[0] < 200;
        assert!(of_agent || (from - to).abs() <= 13 * 28, "{path}");
    }
}
