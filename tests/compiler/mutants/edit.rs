//! One fault put into a text.

use super::outline::Spot;

/// What is done at a spot. In texts `{v}` is the value that stands there. Lines are indented as the spot is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Edit {
    /// Another value, on one line.
    Value(&'static str),
    /// Another key.
    Key(&'static str),
    /// The line as a whole, which is the spot's only one.
    Line(&'static str),
    /// The line with another indentation.
    Indent(&'static str),
    /// Other lines below the key; the fault is on this one, the key's being 0.
    Body(&'static str, usize),
    /// An allowlist with this one entry below `network`.
    Host(&'static str),
    /// More lines after the spot; the fault is on this one of them, from 0.
    After(&'static str, usize),
    /// The spot once more.
    Twice,
    /// Nothing instead; what lacks it is shown by the first line of its item or file.
    Drop,
}

/// A text with a fault.
pub(super) struct Mutant {
    pub(super) text: String,
    /// Where the fault must be found, from 1.
    pub(super) line: usize,
}

/// `None` where the edit would change nothing or cannot be made.
pub(super) fn apply(text: &str, spots: &[Spot], spot: &Spot, edit: &Edit) -> Option<Mutant> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let old = lines[spot.line].clone();
    let key = spot.path.last()?;
    // All before the key: blanks, and dashes where items begin.
    let (lead, _) = if spot.is_item {
        old.split_at(spot.indent + 2)
    } else {
        old.split_at(spot.indent)
    };
    let blanks = " ".repeat(spot.indent);
    let mut fault = spot.line;
    match edit {
        Edit::Value(value) => {
            let value = value.replace("{v}", &spot.value);
            let new = if spot.is_item {
                format!("{lead}{value}")
            } else {
                format!("{lead}{key}: {value}")
            };
            lines.splice(spot.line..spot.end, [new]);
        }
        Edit::Key(new) => lines[spot.line] = old.replacen(key, new, 1),
        Edit::Line(new) => {
            if spot.end != spot.line + 1 {
                return None;
            }
            lines[spot.line] = format!("{lead}{}", new.replace("{v}", &spot.value));
        }
        Edit::Indent(new) => lines[spot.line] = format!("{new}{}", old.trim_start()),
        Edit::Body(body, at) => {
            let mut new = vec![format!("{lead}{key}:")];
            new.extend(body.lines().map(|line| format!("{blanks}  {line}")));
            fault = spot.line + at;
            lines.splice(spot.line..spot.end, new);
        }
        Edit::Host(host) => {
            let body = ["mode: allowlist", "hosts:", &format!("- {host}")]
                .map(|line| format!("{blanks}  {line}"));
            fault = spot.line + 3;
            lines.splice(
                spot.line..spot.end,
                std::iter::once(format!("{lead}{key}:")).chain(body),
            );
        }
        Edit::After(more, at) => {
            let (parent, new) = (&spot.path[..spot.path.len() - 1], more.split(':').next()?);
            if spots
                .iter()
                .any(|other| other.path.split_last() == Some((&new.to_owned(), parent)))
            {
                return None; // that would be another fault: a key twice
            }
            let new: Vec<String> = more
                .lines()
                .map(|line| format!("{blanks}{}", line.replace("{v}", &spot.value)))
                .collect();
            fault = spot.end + at;
            lines.splice(spot.end..spot.end, new);
        }
        Edit::Twice => {
            let mut copy = lines[spot.line..spot.end].to_vec();
            if !spot.is_item {
                copy[0] = format!("{blanks}{}", &copy[0][spot.indent..]);
            }
            fault = spot.end;
            lines.splice(spot.end..spot.end, copy);
        }
        Edit::Drop => {
            let first = lead.contains('-');
            lines.drain(spot.line..spot.end);
            if first {
                let next = lines.get_mut(spot.line)?;
                next.strip_prefix(&blanks)?;
                next.replace_range(..lead.len(), lead);
            }
            let item = spots
                .iter()
                .find(|other| other.is_item && spot.path.starts_with(&other.path));
            fault = match item {
                Some(item) => item.line,
                None => lines.iter().position(|line| !line.starts_with('#'))?,
            };
        }
    }
    let new = lines.join("\n") + "\n";
    (new != text).then_some(Mutant {
        text: new,
        line: fault + 1,
    })
}
