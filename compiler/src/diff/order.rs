//! The order of changes: gateway, then instances, then what is left to delete.

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{EdgeRef, Topo};

use super::{Action, Change, ChangeSet, Subject};
use crate::model::InstanceKey;
use crate::plan::{Plan, names};

/// For each change, the indexes of those that must have succeeded before it starts (product.md 11). All are smaller than
/// its own.
pub fn dependencies(plan: &Plan, changes: &ChangeSet) -> Vec<Vec<usize>> {
    let graph = graph(plan, &changes.changes);
    graph
        .node_indices()
        .map(|node| {
            let mut before: Vec<usize> = graph
                .edges_directed(node, petgraph::Direction::Incoming)
                .map(|edge| edge.source().index())
                .collect();
            before.sort_unstable();
            before
        })
        .collect()
}

/// Sorted so that every change comes after what it depends on, and deletions last; ties by subject.
pub(super) fn in_order(plan: &Plan, changes: Vec<Change>) -> Vec<Change> {
    let graph = graph(plan, &changes);
    let mut depth = vec![0_usize; changes.len()];
    let mut walk = Topo::new(&graph);
    while let Some(node) = walk.next(&graph) {
        depth[node.index()] = graph
            .neighbors_directed(node, petgraph::Direction::Incoming)
            .map(|before| depth[before.index()] + 1)
            .max()
            .unwrap_or(0);
    }
    let mut ranked: Vec<(usize, Change)> = depth.into_iter().zip(changes).collect();
    ranked.sort_by(|(a_depth, a), (b_depth, b)| {
        let deletes = |change: &Change| change.action == Action::Delete;
        (deletes(a), a_depth, &a.subject).cmp(&(deletes(b), b_depth, &b.subject))
    });
    ranked.into_iter().map(|(_, change)| change).collect()
}

/// Edges lead from a lower [`Rank`] to a higher one only, so there is no cycle.
fn graph(plan: &Plan, changes: &[Change]) -> DiGraph<(), ()> {
    let mut graph = DiGraph::new();
    let nodes: Vec<NodeIndex> = changes.iter().map(|_| graph.add_node(())).collect();
    for (later, change) in nodes.iter().zip(changes) {
        for (earlier, other) in nodes.iter().zip(changes) {
            if rank(&other.subject) < rank(&change.subject)
                && depends(plan, &change.subject, &other.subject)
            {
                graph.add_edge(*earlier, *later, ());
            }
        }
    }
    graph
}

/// What a thing may depend on has a lower rank.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Gateway,
    Instance,
    Container,
    Network,
}

fn rank(subject: &Subject) -> Rank {
    match subject {
        Subject::Gateway(_) => Rank::Gateway,
        Subject::Instance(_) => Rank::Instance,
        Subject::Container(_) => Rank::Container,
        Subject::Network(_) => Rank::Network,
    }
}

fn depends(plan: &Plan, subject: &Subject, other: &Subject) -> bool {
    match (subject, other) {
        // Calls and egress go through the gateway.
        (Subject::Instance(_), Subject::Gateway(_)) => true,
        // A left-over resident may be the one that works until its successor does.
        (Subject::Container(name) | Subject::Network(name), Subject::Instance(key)) => {
            is_of(plan, name, key)
        }
        // A network is removed once nobody stands in it.
        (Subject::Network(network), Subject::Container(container)) => network == container,
        _ => false,
    }
}

fn is_of(plan: &Plan, name: &str, key: &InstanceKey) -> bool {
    names::generation(name, &plan.project, key).is_some()
}
