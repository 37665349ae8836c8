//! `[policy]` of selu.toml, one entry at a time: every other byte stays, comments and layout too.
//!
//! The text is edited at the places that the parser tells, and read again: what then says anything else than what was asked
//! for is not given out.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::model::Policy;

/// Why a text is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// Not TOML.
    #[error("it is not TOML: {0}")]
    Syntax(String),
    /// Written in a form whose entries can't be told apart by lines.
    #[error("`policy` is not written as a table `[policy]` with one entry a line")]
    Form,
    /// No such entry.
    #[error("`[policy]` has no \"{0}\"")]
    Absent(String),
}

/// The table's name.
const TABLE: &str = "policy";

/// With `"key" = "policy"` in `[policy]`.
///
/// # Errors
/// When the text is no TOML, or its `policy` is no table of lines.
pub fn set(text: &str, key: &str, policy: Policy) -> Result<String, EditError> {
    let word = format!("\"{policy}\"");
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let entries = entries(text)?;
    let edited = if let Some(entry) = entries.iter().find(|entry| entry.key == key) {
        replaced(text, entry.value.clone(), &word)
    } else {
        let name = toml::Value::String(key.to_owned());
        let (at, line) = match (entries.last(), header(text)) {
            (Some(last), header) => {
                let (line, _) = line_of(text, last)?;
                let start = &text[line.start..last.name.start];
                // `policy."a/b/c" = …` without a header goes on in its own form.
                if header.is_none() && start.trim_start().is_empty() {
                    return Err(EditError::Form);
                }
                (line.end, format!("{start}{name} = {word}{line_end}"))
            }
            (None, Some(end)) => (end, format!("{name} = {word}{line_end}")),
            (None, None) if table(text)?.contains_key(TABLE) => return Err(EditError::Form),
            (None, None) => {
                let gap = if text.is_empty() { "" } else { line_end };
                let line = format!("{gap}[{TABLE}]{line_end}{name} = {word}{line_end}");
                (text.len(), line)
            }
        };
        let mut before = text[..at].to_owned();
        if !before.is_empty() && !before.ends_with('\n') {
            before.push_str(line_end);
        }
        format!("{before}{line}{}", &text[at..])
    };
    let mut expected = table(text)?;
    let policies = expected
        .entry(TABLE)
        .or_insert_with(|| toml::Table::new().into());
    let policies = policies.as_table_mut().ok_or(EditError::Form)?;
    policies.insert(key.to_owned(), toml::Value::String(policy.to_string()));
    checked(edited, &expected)
}

/// Without the entry; its line goes, with what is said on it.
///
/// # Errors
/// When the text is no TOML, has no such entry, or its `policy` is no table of lines.
pub fn remove(text: &str, key: &str) -> Result<String, EditError> {
    let entries = entries(text)?;
    let entry = entries.iter().find(|entry| entry.key == key);
    let entry = entry.ok_or_else(|| EditError::Absent(key.to_owned()))?;
    let (line, rest) = line_of(text, entry)?;
    let rest = rest.trim();
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err(EditError::Form);
    }
    let edited = replaced(text, line, "");
    let mut expected = table(text)?;
    let policies = expected.get_mut(TABLE).and_then(toml::Value::as_table_mut);
    let policies = policies.ok_or(EditError::Form)?;
    policies.remove(key);
    // The last of those that are written without a header takes the table along.
    if policies.is_empty() && !table(&edited)?.contains_key(TABLE) {
        expected.remove(TABLE);
    }
    checked(edited, &expected)
}

struct Entry {
    key: String,
    name: Range<usize>,
    value: Range<usize>,
}

/// In the order of the text.
fn entries(text: &str) -> Result<Vec<Entry>, EditError> {
    let table =
        DeTable::parse(text).map_err(|error| EditError::Syntax(error.message().to_owned()))?;
    let policies = table
        .get_ref()
        .iter()
        .find(|(name, _)| name.get_ref() == TABLE);
    let Some((_, policies)) = policies else {
        return Ok(Vec::new());
    };
    let DeValue::Table(policies) = policies.get_ref() else {
        return Err(EditError::Form);
    };
    let entry = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let name: &Spanned<std::borrow::Cow<'_, str>> = name;
        Entry {
            key: name.get_ref().clone().into_owned(),
            name: name.span(),
            value: value.span(),
        }
    };
    let mut entries: Vec<Entry> = policies.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.name.start);
    Ok(entries)
}

/// The whole line of an entry, and what stands on it behind the value.
fn line_of<'t>(text: &'t str, entry: &Entry) -> Result<(Range<usize>, &'t str), EditError> {
    let start = text[..entry.name.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[entry.value.end..]
        .find('\n')
        .map_or(text.len(), |at| entry.value.end + at + 1);
    let before = text[start..entry.name.start].trim();
    let own_line = before.is_empty()
        || before.trim_end_matches(|c: char| c == '.' || c.is_whitespace()) == TABLE;
    if !own_line {
        return Err(EditError::Form);
    }
    Ok((start..end, &text[entry.value.end..end]))
}

/// The end of the line `[policy]`.
fn header(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let line = line.split('#').next().unwrap_or_default().trim();
        let name = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if name.is_some_and(|name| name.trim() == TABLE) {
            return Some(at);
        }
    }
    None
}

fn table(text: &str) -> Result<toml::Table, EditError> {
    toml::from_str(text)
        .map_err(|error: toml::de::Error| EditError::Syntax(error.message().to_owned()))
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

/// Only what says exactly what was asked for.
fn checked(edited: String, expected: &toml::Table) -> Result<String, EditError> {
    match table(&edited) {
        Ok(found) if found == *expected => Ok(edited),
        _ => Err(EditError::Form),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# ours
[project]
name = \"demo\" # keep

[policy]
# the outer world
\"a/b/x\"   =  'ask'   # why
\"a/b/y\" = \"block\"

[discovery]
on_change = \"hold\"
";

    #[test]
    fn an_entry_is_changed_added_and_removed_and_every_other_byte_stays() {
        let changed = set(TEXT, "a/b/x", Policy::Allow).unwrap();
        assert_eq!(changed, TEXT.replace("'ask'", "\"allow\""));
        let added = set(TEXT, "a/b/z", Policy::Ask).unwrap();
        let line = "\"a/b/y\" = \"block\"\n";
        assert_eq!(
            added,
            TEXT.replace(line, &format!("{line}\"a/b/z\" = \"ask\"\n"))
        );
        assert_eq!(remove(&added, "a/b/z").unwrap(), TEXT);
        assert_eq!(
            remove(TEXT, "a/b/x").unwrap(),
            TEXT.replace("\"a/b/x\"   =  'ask'   # why\n", "")
        );
    }

    #[test]
    fn a_table_is_made_where_there_is_none_and_line_ends_stay() {
        let bare = "[project]\r\nname = \"demo\"";
        assert_eq!(
            set(bare, "a/b/c", Policy::Block).unwrap(),
            "[project]\r\nname = \"demo\"\r\n\r\n[policy]\r\n\"a/b/c\" = \"block\"\r\n"
        );
        assert_eq!(
            set("", "a/b/c", Policy::Ask).unwrap(),
            "[policy]\n\"a/b/c\" = \"ask\"\n"
        );
        let empty = "[policy] # none yet\n[runtime]\n";
        assert_eq!(
            set(empty, "a/b/c", Policy::Ask).unwrap(),
            "[policy] # none yet\n\"a/b/c\" = \"ask\"\n[runtime]\n"
        );
        let dotted = "policy.\"a/b/c\" = \"ask\"\nruntime.idle_stop = true\n";
        assert_eq!(
            set(dotted, "a/b/d", Policy::Block).unwrap(),
            "policy.\"a/b/c\" = \"ask\"\npolicy.\"a/b/d\" = \"block\"\nruntime.idle_stop = true\n"
        );
        assert_eq!(
            remove(dotted, "a/b/c").unwrap(),
            "runtime.idle_stop = true\n"
        );
    }

    #[test]
    fn what_cannot_be_edited_by_lines_is_left_alone() {
        let inline = "policy = { \"a/b/c\" = \"ask\", \"a/b/d\" = \"ask\" }\n";
        assert_eq!(set(inline, "a/b/e", Policy::Ask), Err(EditError::Form));
        assert_eq!(remove(inline, "a/b/c"), Err(EditError::Form));
        // A value is one place wherever it stands.
        let changed = set(inline, "a/b/d", Policy::Block).unwrap();
        assert_eq!(
            changed,
            inline.replace("\"a/b/d\" = \"ask\"", "\"a/b/d\" = \"block\"")
        );
        assert_eq!(
            set("policy = {}\n", "a/b/c", Policy::Ask),
            Err(EditError::Form)
        );
        // What only looks like a header is none.
        let inside = "[project]\nname = '''\n[policy]\n'''\n";
        assert_eq!(set(inside, "a/b/c", Policy::Ask), Err(EditError::Form));
        assert!(matches!(
            set("[policy", "a/b/c", Policy::Ask),
            Err(EditError::Syntax(_))
        ));
        assert_eq!(
            remove(TEXT, "a/b/q"),
            Err(EditError::Absent("a/b/q".to_owned()))
        );
    }
}
