//! A picture without another program: agents left, their capabilities beside them, and beside each capability what it is
//! the first to use. What another one uses close by is a line to the same box; far away it is drawn again, with how many
//! use it: lines across a whole project would hide everything.

use std::collections::BTreeMap;

use super::{Graph, Kind, Node};
use crate::report::html;
use crate::review::Grade;

/// Height of a row, and of what stands in it.
const ROW: usize = 28;
const BOX: usize = 22;
/// Between what one capability uses and what the next one does.
const GAP: usize = 10;
/// Around everything.
const MARGIN: usize = 16;
/// Height of the column's heads.
const HEAD: usize = 30;
/// Width of a letter on the average, of a word for the kind, and of the room for the curves.
const LETTER: usize = 7;
const WORD: usize = 74;
const CURVES: usize = 110;
/// The farthest that a line goes up.
const REACH: usize = 12 * ROW;
/// Room for how many use something.
const COUNT: usize = 44;
/// More letters are cut off; the whole is the node's title.
const LETTERS: usize = 46;

/// The picture's colours, for light and dark.
pub const SVG_STYLE: &str = "\
.selu-graph{--ink:#1f2328;--soft:#59636e;--line:#8c959f;--edge:#b6bec8;--paper:#ffffff;--agent:#ddf4ff;--capability:#f6f8fa;--image:#fff8c5;--host:#ffebe9;--credential:#fbefff;--wide:#cf222e;--narrow:#1a7f37;font:13px system-ui,-apple-system,'Segoe UI',sans-serif}\
@media (prefers-color-scheme:dark){.selu-graph{--ink:#e6edf3;--soft:#9198a1;--line:#656d76;--edge:#4d5663;--paper:#0d1117;--agent:#0c2d4a;--capability:#1b222c;--image:#322a09;--host:#3d1519;--credential:#2d1b45;--wide:#ff7b72;--narrow:#56d364}}\
.selu-graph .paper{fill:var(--paper)}\
.selu-graph text{fill:var(--ink)}\
.selu-graph .head,.selu-graph .kind{fill:var(--soft);font-size:11px}\
.selu-graph rect.node{stroke:var(--line);stroke-width:1}\
.selu-graph .agent{fill:var(--agent)}\
.selu-graph .capability{fill:var(--capability)}\
.selu-graph .image{fill:var(--image)}\
.selu-graph .host{fill:var(--host)}\
.selu-graph .credential{fill:var(--credential)}\
.selu-graph rect.again{stroke-dasharray:4 3}\
.selu-graph rect.widening{stroke:var(--wide);stroke-width:2.5}\
.selu-graph rect.narrowing{stroke:var(--narrow);stroke-width:2.5}\
.selu-graph path{fill:none;stroke:var(--edge);stroke-width:1.2}";

/// Where the nodes stand, from above.
#[cfg(test)]
pub(super) fn middles(graph: &Graph) -> BTreeMap<usize, usize> {
    Rows::of(graph).middle
}

/// Where a node stands.
#[derive(Clone, Copy)]
struct Spot {
    x: usize,
    /// Of its middle.
    y: usize,
    width: usize,
}

impl Graph {
    /// A file of its own.
    pub fn svg(&self) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}",
            draw(self, true)
        )
    }
}

/// For a page that has [`SVG_STYLE`] among its styles.
pub fn svg_inline(graph: &Graph) -> String {
    draw(graph, false)
}

fn draw(graph: &Graph, alone: bool) -> String {
    let rows = Rows::of(graph);
    let width = |kind: fn(Kind) -> bool, word: usize| {
        let of_kind = graph.nodes.iter().filter(|node| kind(node.kind));
        let longest = of_kind.map(|node| letters(&label(node))).max().unwrap_or(0);
        longest * LETTER + word + 20
    };
    let is_used = |kind: Kind| !matches!(kind, Kind::Agent | Kind::Capability);
    let columns = [
        width(|kind| kind == Kind::Agent, 0).max(90),
        width(|kind| kind == Kind::Capability, 0).max(110),
        width(is_used, WORD + COUNT).max(150),
    ];
    let mut x = [MARGIN, 0, 0];
    x[1] = x[0] + columns[0] + CURVES / 2;
    x[2] = x[1] + columns[1] + CURVES;
    let full_width = x[2] + columns[2] + MARGIN;
    let full_height = rows.height + MARGIN;
    let spot = |node: &Node, y: usize| {
        let column = match node.kind {
            Kind::Agent => 0,
            Kind::Capability => 1,
            Kind::Image | Kind::Host | Kind::Credential => 2,
        };
        Spot {
            x: x[column],
            y,
            width: columns[column],
        }
    };
    let middle = |at: usize| rows.middle.get(&at).copied().unwrap_or(0);
    let mut users: BTreeMap<usize, usize> = BTreeMap::new();
    for (_, to) in &graph.edges {
        *users.entry(*to).or_default() += 1;
    }

    let mut out = format!(
        "<svg class=\"selu-graph\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{full_width}\" height=\"{full_height}\" \
         viewBox=\"0 0 {full_width} {full_height}\" role=\"img\" aria-label=\"Graph of {}\">\n",
        graph.summary()
    );
    if alone {
        out.push_str(&format!("<style>{SVG_STYLE}</style>\n"));
        out.push_str(&format!(
            "<rect class=\"paper\" width=\"{full_width}\" height=\"{full_height}\"/>\n"
        ));
    }
    let heads = ["agents", "capabilities", "images, hosts, credentials"];
    for (x, head) in x.into_iter().zip(heads) {
        out.push_str(&format!(
            "<text class=\"head\" x=\"{x}\" y=\"{}\">{head}</text>\n",
            MARGIN + 8
        ));
    }
    // Lines first: boxes stand on them.
    for (from, to) in &graph.edges {
        if let (Some(a), Some(b)) = (graph.nodes.get(*from), graph.nodes.get(*to)) {
            let end = rows.ends.get(&(*from, *to)).copied();
            let end = end.unwrap_or_else(|| middle(*to));
            out.push_str(&curve(spot(a, middle(*from)), spot(b, end)));
        }
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        let users = users.get(&at).copied().unwrap_or_default();
        out.push_str(&drawn(node, spot(node, middle(at)), users, false));
    }
    for (at, y) in &rows.again {
        if let Some(node) = graph.nodes.get(*at) {
            let users = users.get(at).copied().unwrap_or_default();
            out.push_str(&drawn(node, spot(node, *y), users, true));
        }
    }
    out.push_str("</svg>\n");
    out
}

fn curve(from: Spot, to: Spot) -> String {
    let start = from.x + from.width;
    let bend = (to.x - start) / 2;
    format!(
        "<path d=\"M{start} {}C{} {} {} {} {} {}\"/>\n",
        from.y,
        start + bend,
        from.y,
        to.x - bend,
        to.y,
        to.x,
        to.y
    )
}

fn drawn(node: &Node, at: Spot, users: usize, again: bool) -> String {
    let Spot { x, y, width } = at;
    let kind = node.kind.word();
    let (round, text_at, word) = match node.kind {
        Kind::Agent => (BOX / 2, x + 10, String::new()),
        Kind::Capability => (4, x + 10, String::new()),
        Kind::Image | Kind::Host | Kind::Credential => {
            let mut word = format!(
                "<text class=\"kind\" x=\"{}\" y=\"{}\">{kind}</text>",
                x + 10,
                y + 4
            );
            if users > 1 {
                word.push_str(&format!(
                    "<text class=\"kind\" text-anchor=\"end\" x=\"{}\" y=\"{}\">×{users}</text>",
                    x + width - 8,
                    y + 4
                ));
            }
            (4, x + 10 + WORD, word)
        }
    };
    // Not by colour alone: a change is told in the title and by a sign, too.
    let (grade, sign, means) = match node.grade {
        Some(Grade::Widening) => (" widening", "▲ ", ", widening"),
        Some(Grade::Narrowing) => (" narrowing", "▼ ", ", narrowing"),
        Some(Grade::Neutral) => ("", "• ", ", changed"),
        None => ("", "", ""),
    };
    let shared = match (node.kind, users) {
        (Kind::Agent | Kind::Capability, _) | (_, 0 | 1) => String::new(),
        (_, users) => format!(", used by {users} capabilities"),
    };
    let again = if again { " again" } else { "" };
    format!(
        "<g><title>{kind} {}{means}{shared}</title><rect class=\"node {kind}{grade}{again}\" x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{BOX}\" \
         rx=\"{round}\"/>{word}<text x=\"{text_at}\" y=\"{}\">{sign}{}</text></g>\n",
        html(&node.name),
        y - BOX / 2,
        y + 4,
        html(&label(node)),
    )
}

/// What is written, shortened in the middle, where names differ least.
fn label(node: &Node) -> String {
    let safe = crate::report::escape(&node.label);
    let count = safe.chars().count();
    if count <= LETTERS {
        return safe;
    }
    let half = (LETTERS - 1) / 2;
    let start: String = safe.chars().take(half).collect();
    let end: String = safe.chars().skip(count - half).collect();
    format!("{start}…{end}")
}

/// Letters of other scripts are up to twice as wide.
fn letters(text: &str) -> usize {
    let of = |character: char| if character.is_ascii() { 1 } else { 2 };
    text.chars().map(of).sum()
}

/// The middles of all nodes.
struct Rows {
    middle: BTreeMap<usize, usize>,
    /// Boxes that are drawn once more.
    again: Vec<(usize, usize)>,
    /// Where the last box of a node is.
    last: BTreeMap<usize, usize>,
    /// Lines that end at another box than the first of their node.
    ends: BTreeMap<(usize, usize), usize>,
    height: usize,
}

impl Rows {
    fn of(graph: &Graph) -> Self {
        let mut rows = Self {
            middle: BTreeMap::new(),
            again: Vec::new(),
            last: BTreeMap::new(),
            ends: BTreeMap::new(),
            height: MARGIN + HEAD,
        };
        let mut users: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to) in &graph.edges {
            users.entry(*from).or_default().push(*to);
        }
        let used = |at: usize| users.get(&at).cloned().unwrap_or_default();
        let of_kind = |kind: Kind| {
            let nodes = graph.nodes.iter().enumerate();
            let mut found: Vec<(usize, &Node)> =
                nodes.filter(|(_, node)| node.kind == kind).collect();
            found.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
            found
        };
        for (agent, _) in of_kind(Kind::Agent) {
            let own = used(agent);
            let start = rows.height;
            for capability in &own {
                rows.block(graph, *capability, used(*capability));
            }
            if own.is_empty() {
                rows.height += ROW + GAP;
            }
            rows.middle.insert(agent, (start + rows.height - GAP) / 2);
        }
        // A capability that is compiled alone has no agent.
        for (capability, _) in of_kind(Kind::Capability) {
            if !rows.middle.contains_key(&capability) {
                rows.block(graph, capability, used(capability));
            }
        }
        rows
    }

    /// A capability, and what has no box close by already.
    fn block(&mut self, graph: &Graph, capability: usize, mut used: Vec<usize>) {
        let start = self.height;
        let order = |at: &usize| graph.nodes.get(*at).map(|node| (node.kind, &node.name));
        used.sort_by(|a, b| order(a).cmp(&order(b)));
        for at in used {
            let here = self.height + ROW / 2;
            let last = self.last.get(&at).copied();
            if let Some(last) = last.filter(|last| here - last <= REACH) {
                self.ends.insert((capability, at), last);
                continue;
            }
            match last {
                None => {
                    self.middle.insert(at, here);
                }
                Some(_) => self.again.push((at, here)),
            }
            self.ends.insert((capability, at), here);
            self.last.insert(at, here);
            self.height += ROW;
        }
        if self.height == start {
            self.height += ROW;
        }
        self.middle.insert(capability, (start + self.height) / 2);
        self.height += GAP;
    }
}
