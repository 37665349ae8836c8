//! For Mermaid, which forges draw in their Markdown.

use super::{Graph, Kind};
use crate::report::escape;

impl Graph {
    /// A flowchart in the language of Mermaid.
    pub fn mermaid(&self) -> String {
        let mut out = String::from("flowchart LR\n");
        for (at, node) in self.nodes.iter().enumerate() {
            let (open, close) = match node.kind {
                Kind::Agent => ("([", "])"),
                Kind::Capability => ("[", "]"),
                Kind::Image => ("[[", "]]"),
                Kind::Host => ("{{", "}}"),
                Kind::Credential => (">", "]"),
            };
            out.push_str(&format!(
                "  n{at}{open}\"{} {}\"{close}\n",
                node.kind.word(),
                entities(&node.label)
            ));
        }
        for (from, to) in &self.edges {
            out.push_str(&format!("  n{from} --> n{to}\n"));
        }
        out
    }
}

/// Everything that could be markup as a number.
fn entities(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in escape(text).chars() {
        if character.is_alphanumeric() || " ./-_@".contains(character) {
            safe.push(character);
        } else {
            safe.push_str(&format!("#{};", u32::from(character)));
        }
    }
    safe
}
