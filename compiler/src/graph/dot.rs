//! For Graphviz.

use super::{Graph, Kind};
use crate::report::escape;

impl Graph {
    /// In the language of Graphviz.
    pub fn dot(&self) -> String {
        let mut out = String::from(
            "digraph selu {\n  rankdir=LR;\n  node [fontname=\"sans-serif\", fontsize=11];\n",
        );
        for (at, node) in self.nodes.iter().enumerate() {
            let shape = match node.kind {
                Kind::Agent => "ellipse",
                Kind::Capability => "box",
                Kind::Image => "box3d",
                Kind::Host => "hexagon",
                Kind::Credential => "note",
            };
            out.push_str(&format!(
                "  n{at} [shape={shape}, label={}];\n",
                quoted(&format!("{}\n{}", node.kind.word(), node.label))
            ));
        }
        for (from, to) in &self.edges {
            out.push_str(&format!("  n{from} -> n{to};\n"));
        }
        out.push_str("}\n");
        out
    }
}

/// A quoted string, whose backslashes mean something to labels.
fn quoted(text: &str) -> String {
    let lines: Vec<String> = text
        .splitn(2, '\n')
        .map(|line| escape(line).replace('\\', "\\\\").replace('"', "\\\""))
        .collect();
    format!("\"{}\"", lines.join("\\n"))
}
