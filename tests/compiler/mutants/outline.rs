//! The lines of a block-style manifest with their paths. Written anew, so that the places to find do not come from the
//! compiler that must find them.

/// One key with its value, or one item of a list.
#[derive(Debug)]
pub(super) struct Spot {
    /// From 0.
    pub(super) line: usize,
    /// The first line after it.
    pub(super) end: usize,
    /// Blanks before the key; before the dash of an item.
    pub(super) indent: usize,
    /// Such as `tools.0.input_schema.type`.
    pub(super) path: Vec<String>,
    /// What follows the colon or the dash on the same line.
    pub(super) value: String,
    /// An item of a list.
    pub(super) is_item: bool,
}

impl Spot {
    /// Whether it fits a pattern such as `tools.*.input_schema.**.type=string`: `*` is one step, `**` any number.
    pub(super) fn matches(&self, pattern: &str) -> bool {
        let (path, value) = match pattern.split_once('=') {
            Some((path, value)) => (path, Some(value)),
            None => (pattern, None),
        };
        let pattern: Vec<&str> = path.split('.').collect();
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        value.is_none_or(|value| value == self.value) && fits(&pattern, &path)
    }
}

fn fits(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], _) => {
            fits(rest, path) || (!path.is_empty() && fits(pattern, &path[1..]))
        }
        (["*", rest @ ..], [_, path @ ..]) => fits(rest, path),
        ([first, rest @ ..], [name, path @ ..]) => first == name && fits(rest, path),
        _ => false,
    }
}

/// Every key and item of a text.
pub(super) fn outline(text: &str) -> Vec<Spot> {
    let lines: Vec<&str> = text.lines().collect();
    let mut spots: Vec<Spot> = Vec::new();
    // Open spots, outermost first, each with the count of its items so far.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut number = 0;
    while number < lines.len() {
        let line = lines[number];
        let mut indent = line.len() - line.trim_start().len();
        let mut rest = line.trim_start();
        if rest.is_empty() || rest.starts_with('#') {
            number += 1;
            continue;
        }
        while let Some(item) = rest.strip_prefix("- ") {
            // An item may stand as far left as the key of its list.
            open.retain(|(spot, _)| {
                let spot: &Spot = &spots[*spot];
                spot.indent < indent || (spot.indent == indent && !spot.is_item)
            });
            let mut path = Vec::new();
            if let Some((spot, items)) = open.last_mut() {
                path.clone_from(&spots[*spot].path);
                path.push(items.to_string());
                *items += 1;
            }
            spots.push(Spot {
                line: number,
                end: end(&lines, number, indent, false),
                indent,
                path,
                value: item.to_owned(),
                is_item: true,
            });
            open.push((spots.len() - 1, 0));
            indent += 2;
            rest = item;
        }
        let mut last = number + 1;
        if let Some((key, value)) = key(rest) {
            open.retain(|(spot, _)| spots[*spot].indent < indent);
            let mut path = open
                .last()
                .map_or_else(Vec::new, |(spot, _)| spots[*spot].path.clone());
            path.push(key.to_owned());
            let end = end(&lines, number, indent, value.is_empty());
            spots.push(Spot {
                line: number,
                end,
                indent,
                path,
                value: value.to_owned(),
                is_item: false,
            });
            open.push((spots.len() - 1, 0));
            if !value.is_empty() {
                last = end;
            }
        } else if let Some(spot) = spots.last() {
            last = spot.end.max(last);
        }
        number = last;
    }
    spots
}

/// The key of `key: value` or `key:`.
fn key(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text
        .split_once(": ")
        .or_else(|| text.strip_suffix(':').map(|key| (key, "")))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$' | '.');
    (!key.is_empty() && key.chars().all(plain)).then_some((key, value))
}

/// The first line after what begins on a line: all that is indented deeper, and items beside their list's key.
fn end(lines: &[&str], number: usize, indent: usize, list: bool) -> usize {
    let mut end = number + 1;
    while let Some(line) = lines.get(end) {
        let deeper = line.len() - line.trim_start().len() > indent;
        let item = list && line[..].starts_with(&format!("{}- ", " ".repeat(indent)));
        if !(deeper || item || line.trim().is_empty()) {
            break;
        }
        end += 1;
    }
    end
}
