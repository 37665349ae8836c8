//! Dockerfile → the commands that it runs, with the defaults of ARG and ENV filled in.

use std::collections::BTreeMap;

use super::shell::{self, Written};
use super::{At, Word};

/// What is known of variables; `None` for a value that only the build knows.
pub(super) type Variables = BTreeMap<String, Option<String>>;

/// Arguments that the builder sets by itself.
const PREDEFINED: [&str; 8] = [
    "BUILDARCH",
    "BUILDOS",
    "BUILDPLATFORM",
    "BUILDVARIANT",
    "TARGETARCH",
    "TARGETOS",
    "TARGETPLATFORM",
    "TARGETVARIANT",
];

/// One instruction; continuation lines are joined, comments between them left out.
struct Instruction {
    keyword: String,
    rest: Vec<Written>,
}

/// Every command of RUN, CMD and ENTRYPOINT.
pub(super) fn commands(text: &str) -> Vec<Vec<Word>> {
    // What stands before the first FROM is seen by a stage only where it declares the name again.
    let mut global = Variables::new();
    let mut stage: Option<Variables> = None;
    let mut commands = Vec::new();
    for Instruction { keyword, rest } in instructions(text) {
        let known = stage.as_ref().unwrap_or(&global).clone();
        match keyword.as_str() {
            "FROM" => stage = Some(Variables::new()),
            "ARG" => {
                for word in shell::words(&rest, &known) {
                    let (name, value) = match word.text.split_once('=') {
                        Some((name, value)) => (name, (!word.open).then(|| value.to_owned())),
                        None if PREDEFINED.contains(&word.text.as_str()) => {
                            (word.text.as_str(), None)
                        }
                        // Without a default and without an argument of the build it is empty.
                        None => (
                            word.text.as_str(),
                            global
                                .get(&word.text)
                                .cloned()
                                .unwrap_or(Some(String::new())),
                        ),
                    };
                    let name = name.to_owned();
                    stage.as_mut().unwrap_or(&mut global).insert(name, value);
                }
            }
            "ENV" => {
                let words = shell::words(&rest, &known);
                let variables = stage.as_mut().unwrap_or(&mut global);
                // The old form: `ENV NAME all the rest`.
                if let [name, values @ ..] = words.as_slice()
                    && !name.text.contains('=')
                {
                    let open = values.iter().any(|word| word.open);
                    let texts: Vec<&str> = values.iter().map(|word| word.text.as_str()).collect();
                    variables.insert(name.text.clone(), (!open).then(|| texts.join(" ")));
                    continue;
                }
                for word in &words {
                    if let Some((name, value)) = word.text.split_once('=') {
                        variables.insert(name.to_owned(), (!word.open).then(|| value.to_owned()));
                    }
                }
            }
            "RUN" | "CMD" | "ENTRYPOINT" => match list(&rest) {
                Some(words) => commands.push(words),
                None => commands.extend(shell::commands(&rest, &known)),
            },
            _ => {}
        }
    }
    commands
}

fn instructions(text: &str) -> Vec<Instruction> {
    let escape = if text
        .lines()
        .take_while(|line| line.starts_with('#'))
        .any(|line| line.replace(' ', "").eq_ignore_ascii_case("#escape=`"))
    {
        '`'
    } else {
        '\\'
    };
    let mut lines = text.lines().zip(1_u32..);
    let mut instructions = Vec::new();
    while let Some((line, number)) = lines.next() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let mut joined = Vec::new();
        let mut open = append(&mut joined, line, number, escape);
        while open {
            let Some((line, number)) = lines.next() else {
                break;
            };
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                open = append(&mut joined, line, number, escape);
            }
        }
        let start = joined
            .iter()
            .position(|(c, _)| !c.is_whitespace())
            .unwrap_or(joined.len());
        let end = joined[start..]
            .iter()
            .position(|(c, _)| c.is_whitespace())
            .map_or(joined.len(), |length| start + length);
        let keyword: String = joined[start..end]
            .iter()
            .flat_map(|(c, _)| c.to_uppercase())
            .collect();
        let mut rest = joined.split_off(end);
        for word in here_documents(&rest) {
            for (line, number) in lines.by_ref() {
                if line.trim_start_matches('\t') == word {
                    break;
                }
                if keyword == "RUN" {
                    rest.push((
                        '\n',
                        At {
                            line: number,
                            column: 1,
                        },
                    ));
                    append(&mut rest, line, number, escape);
                }
            }
        }
        instructions.push(Instruction { keyword, rest });
    }
    instructions
}

/// Adds a line; says whether it goes on in the next.
fn append(to: &mut Vec<Written>, line: &str, number: u32, escape: char) -> bool {
    let trimmed = line.trim_end();
    let (body, open) = match trimmed.strip_suffix(escape) {
        Some(body) => (body, true),
        None => (trimmed, false),
    };
    to.extend(body.chars().zip(1..).map(|(c, column)| {
        let at = At {
            line: number,
            column,
        };
        (c, at)
    }));
    open
}

/// The end words of `<<WORD`, `<<-WORD` and their quoted forms.
fn here_documents(rest: &[Written]) -> Vec<String> {
    let text: String = rest.iter().map(|(c, _)| c).collect();
    text.split("<<")
        .skip(1)
        .filter_map(|after| {
            let after = after.strip_prefix('-').unwrap_or(after);
            let word: String = after
                .trim_start_matches(['"', '\''])
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            (!word.is_empty()).then_some(word)
        })
        .collect()
}

/// The words of the JSON form, `["npx", "-y", "…"]`; variables are not filled in there.
fn list(rest: &[Written]) -> Option<Vec<Word>> {
    let text: String = rest.iter().map(|(c, _)| c).collect();
    let words: Vec<String> = serde_json::from_str(text.trim()).ok()?;
    let mut from = 0;
    Some(
        words
            .into_iter()
            .map(|text| {
                // A word that was written with escapes is placed where the last one ended.
                let needle: Vec<char> = text.chars().collect();
                let found = rest[from..]
                    .windows(needle.len().max(1))
                    .position(|window| window.iter().map(|(c, _)| *c).eq(needle.iter().copied()));
                if let Some(offset) = found {
                    from += offset;
                }
                let at = rest
                    .get(from)
                    .map_or(At { line: 1, column: 1 }, |(_, at)| *at);
                if found.is_some() {
                    from += needle.len();
                }
                Word {
                    length: u32::try_from(needle.len()).unwrap_or(u32::MAX).max(1),
                    text,
                    open: false,
                    at,
                }
            })
            .collect(),
    )
}
