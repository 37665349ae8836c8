//! Reports stay usable where a whole catalogue is added at once.

use std::fs;

use camino::Utf8PathBuf;
use selu_compiler::graph::Graph;
use selu_compiler::model::InstanceKey;
use selu_compiler::plan::Plan;
use selu_compiler::report::page::{Facts, page};
use selu_compiler::report::{review_markdown, review_text};
use selu_compiler::review::{Review, Snapshot};
use selu_compiler::{check, resolve, source};

/// Every agent that compiles, in one plan.
fn everything(corpus: &Utf8PathBuf) -> Plan {
    let mut all: Option<Plan> = None;
    let mut folders = Vec::new();
    for tree in super::TREES {
        for entry in fs::read_dir(corpus.join(tree).join("agents")).unwrap() {
            folders.push(Utf8PathBuf::from_path_buf(entry.unwrap().path()).unwrap());
        }
    }
    folders.sort();
    for (number, folder) in folders.iter().enumerate() {
        let Some(project) = check::check(&source::read(folder)).project else {
            continue;
        };
        let Some(plan) = resolve::resolve(&project, None, None).plan else {
            continue;
        };
        let into = all.get_or_insert_with(|| Plan {
            instances: Default::default(),
            agents: Default::default(),
            ..plan.clone()
        });
        // Several catalogues have the same agents.
        let renamed = |agent: &str| format!("{agent}-{number}");
        for (id, agent) in plan.agents {
            into.agents.insert(renamed(&id), agent);
        }
        for (key, instance) in plan.instances {
            let key = InstanceKey::new(&renamed(key.agent()), key.capability());
            into.instances.insert(key, instance);
        }
    }
    all.unwrap()
}

#[test]
fn a_whole_catalogue_added_at_once_is_a_page_a_comment_and_a_picture_of_bearable_size() {
    let Some(corpus) = std::env::var_os("SELU_CORPUS") else {
        println!("skipped: SELU_CORPUS is not set");
        return;
    };
    let plan = everything(&Utf8PathBuf::from_os_string(corpus).unwrap());
    assert!(plan.agents.len() > 230, "{}", plan.agents.len());
    let new = Snapshot::of_plan(&plan, None);
    let review = Review::new(&Snapshot::empty(), &new);
    let mut graph = Graph::of_snapshot(&new);
    graph.mark(&review);
    let facts = Facts {
        plan: Some((&plan, None)),
        review: Some(&review),
        graph: &graph,
    };
    let page = page(&facts).unwrap();
    let comment = review_markdown(&review).unwrap();
    let text = review_text(&review).unwrap();
    let svg = graph.svg();
    println!(
        "{} agents: page {} bytes, comment {}, text {}, picture {}",
        plan.agents.len(),
        page.len(),
        comment.len(),
        text.len(),
        svg.len()
    );
    assert!(page.len() < 2 << 20 && svg.len() < 1 << 20);
    // What the usual forges take for a comment.
    assert!(comment.len() < 65_536);
    for agent in plan.agents.keys() {
        assert!(
            page.contains(agent.as_str()) && svg.contains(agent.as_str()),
            "{agent}"
        );
    }
    for made in [&page, &comment, &text, &svg] {
        let hidden =
            |c: char| c.is_control() && c != '\n' || ('\u{200b}'..='\u{200f}').contains(&c);
        assert!(!made.contains(hidden));
    }
    assert!(!page.contains("<script"));
}
