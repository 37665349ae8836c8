//! As much of the shell's grammar as tells commands, words and variables apart.

use super::dockerfile::Variables;
use super::{At, Word};

/// A character and where it is written.
pub(super) type Written = (char, At);

/// The words of a text without regard to commands.
pub(super) fn words(text: &[Written], variables: &Variables) -> Vec<Word> {
    Reader::new(text, variables.clone(), false)
        .commands()
        .into_iter()
        .flatten()
        .collect()
}

/// The commands of a shell's text. What one of them assigns is known to those after it.
pub(super) fn commands(text: &[Written], variables: &Variables) -> Vec<Vec<Word>> {
    Reader::new(text, variables.clone(), true).commands()
}

struct Reader<'a> {
    text: &'a [Written],
    at: usize,
    variables: Variables,
    /// Whether `;`, `&&` and the like end a command.
    operators: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [Written], variables: Variables, operators: bool) -> Self {
        Self {
            text,
            at: 0,
            variables,
            operators,
        }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).map(|(c, _)| *c)
    }

    fn commands(mut self) -> Vec<Vec<Word>> {
        let mut commands = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        while let Some(c) = self.peek() {
            if self.operators && matches!(c, ';' | '&' | '|' | '(' | ')' | '\n') {
                self.at += 1;
                self.end(&mut words, &mut commands);
            } else if c.is_whitespace() {
                self.at += 1;
            } else if self.operators && c == '#' {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
            } else {
                let word = self.word();
                words.push(word);
            }
        }
        self.end(&mut words, &mut commands);
        commands
    }

    fn end(&mut self, words: &mut Vec<Word>, commands: &mut Vec<Vec<Word>>) {
        if words.is_empty() {
            return;
        }
        let words = std::mem::take(words);
        let assigned = match words.as_slice() {
            [first, rest @ ..] if first.text == "export" => rest,
            all => all,
        };
        if self.operators && assigned.iter().all(|word| assignment(&word.text).is_some()) {
            for word in assigned {
                if let Some((name, value)) = assignment(&word.text) {
                    let value = (!word.open).then(|| value.to_owned());
                    self.variables.insert(name.to_owned(), value);
                }
            }
        } else {
            commands.push(words);
        }
    }

    fn word(&mut self) -> Word {
        let start = self.at;
        let (mut text, mut open) = (String::new(), false);
        let mut quote = None;
        while let Some(c) = self.peek() {
            match (quote, c) {
                (None, c) if c.is_whitespace() => break,
                (None, ';' | '&' | '|' | '(' | ')') if self.operators => break,
                (None, '"' | '\'') => {
                    quote = Some(c);
                    self.at += 1;
                }
                (Some(open), c) if open == c => {
                    quote = None;
                    self.at += 1;
                }
                (None | Some('"'), '\\') => {
                    self.at += 1;
                    if let Some(c) = self.peek() {
                        text.push(c);
                        self.at += 1;
                    }
                }
                (None | Some('"'), '`') => {
                    open = true;
                    self.at += 1;
                    while self.peek().is_some_and(|c| c != '`') {
                        self.at += 1;
                    }
                    self.at += 1;
                }
                (None | Some('"'), '$') => {
                    self.at += 1;
                    match self.variable() {
                        Some(value) => text.push_str(&value),
                        None => open = true,
                    }
                }
                (_, c) => {
                    text.push(c);
                    self.at += 1;
                }
            }
        }
        // A place is on one line; what goes on in the next is left out of the underlining.
        let first = self.text[start].1;
        let end = self.at.min(self.text.len());
        let length = self.text[start..end]
            .iter()
            .filter(|(_, at)| at.line == first.line)
            .count();
        Word {
            text,
            open,
            at: first,
            length: u32::try_from(length).unwrap_or(u32::MAX).max(1),
        }
    }

    /// What stands after a `$`; `None` for what only the build knows.
    fn variable(&mut self) -> Option<String> {
        match self.peek() {
            Some('(') => {
                let mut depth = 0_usize;
                while let Some(c) = self.peek() {
                    self.at += 1;
                    match c {
                        '(' => depth += 1,
                        ')' if depth == 1 => break,
                        ')' => depth -= 1,
                        _ => {}
                    }
                }
                None
            }
            Some('{') => {
                self.at += 1;
                let mut inner = String::new();
                while let Some(c) = self.peek() {
                    self.at += 1;
                    if c == '}' {
                        break;
                    }
                    inner.push(c);
                }
                let name: String = inner.chars().take_while(|c| is_name(*c)).collect();
                let value = self.variables.get(&name);
                let set = value.is_some_and(|value| value.as_deref() != Some(""));
                match &inner[name.len()..] {
                    "" => value.cloned().flatten(),
                    modifier => {
                        let default = modifier
                            .strip_prefix(":-")
                            .or_else(|| modifier.strip_prefix('-'))?;
                        if set {
                            value.cloned().flatten()
                        } else {
                            (!default.contains('$')).then(|| default.to_owned())
                        }
                    }
                }
            }
            Some(c) if is_name(c) => {
                let mut name = String::new();
                while let Some(c) = self.peek().filter(|c| is_name(*c)) {
                    name.push(c);
                    self.at += 1;
                }
                self.variables.get(&name).cloned().flatten()
            }
            _ => None,
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `NAME=value`.
pub(super) fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let is_variable =
        name.chars().all(is_name) && name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    is_variable.then_some((name, value))
}
