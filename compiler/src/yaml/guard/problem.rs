//! What the guard refuses, in words.

use camino::Utf8Path;
use saphyr_parser::{ScanError, Span as EventSpan, Tag};

use super::{Fatal, Guard, Key, MAX_DEPTH, place};
use crate::diag::codes::yaml as codes;
use crate::diag::{Code, Diagnostic};
use crate::yaml::node::{Entry, Node, Span};
use crate::yaml::scalar::Kind;

impl Guard<'_> {
    pub(super) fn bad_tag(&mut self, tag: &Tag, span: Span) {
        let shown = if tag.is_yaml_core_schema() {
            format!("!!{}", tag.suffix)
        } else {
            tag.to_string()
        };
        let mut at = place(self.file, span);
        at.path = self.path(None);
        self.findings.push(
            Diagnostic::new(
                &codes::TAG,
                at,
                format!("the tag `{shown}` does not fit here"),
            )
            .help("only YAML's own tags such as `!!str` are read; leave the tag out"),
        );
    }

    pub(super) fn complex_key(&self, span: Span) -> Fatal {
        Box::new(
            Diagnostic::new(
                &codes::KEY_NOT_STRING,
                place(self.file, span),
                "a mapping or list cannot be a key; keys are strings",
            )
            .help(if self.rest(span).starts_with("{{") {
                "a `{{ placeholder }}` needs quotes around it"
            } else {
                "quote it if it is a key, or put the missing key in front of it"
            }),
        )
    }

    pub(super) fn too_deep(&self, span: Span) -> Fatal {
        self.fatal(
            &codes::TOO_DEEP,
            span,
            format!("values are nested deeper than {MAX_DEPTH} levels"),
        )
    }

    pub(super) fn syntax(&self, error: &ScanError) -> Fatal {
        let marker = error.marker();
        let span = self.span(EventSpan::empty(*marker));
        let line = self.line(span.line);
        let rest = self.rest(span);
        if error.info().contains("unknown anchor") {
            let word = rest
                .trim_start()
                .split([' ', '\t', ',', ']', '}'])
                .next()
                .unwrap_or_default()
                .to_owned();
            let mut finding = self.fatal(
                &codes::BAD_ALIAS,
                Span {
                    length: (word.chars().count() as u32).max(1),
                    ..span
                },
                format!("`{word}` starts a YAML alias, and no anchor of that name comes before it"),
            );
            if word.starts_with("*.") || word == "*" || word.starts_with("*:") {
                finding.help = Some(format!("quote it: \"{word}\""));
                finding.suggestion = Some(format!("\"{word}\""));
            }
            return finding;
        }
        // The scanner counts flow brackets in a byte and looks ahead of our own count.
        if error.info().contains("recursion limit") {
            return self.too_deep(span);
        }
        if line
            .chars()
            .take_while(|c| c.is_whitespace())
            .any(|c| c == '\t')
        {
            return self.tab(span.line);
        }
        let below = self.line(span.line + 1);
        if below.trim_start_matches(' ').starts_with('\t') {
            return self.tab(span.line + 1);
        }
        // The scanner points behind it.
        let tab = line.chars().take(span.column as usize - 1).last() == Some('\t');
        if tab && error.info().contains("whitespace") {
            let span = Span {
                column: span.column - 1,
                ..span
            };
            return self.fatal(&codes::TAB, span, "a tab follows the colon; write a space");
        }
        self.not_closed(span)
            .or_else(|| self.no_colon(span))
            .or_else(|| self.indicator(span, &rest, error.info()))
            .or_else(|| self.second_colon(span, error.info()))
            .or_else(|| self.quotes(span, error.info()))
            .unwrap_or_else(|| {
                self.fatal(
                    &codes::SYNTAX,
                    span,
                    format!("this is not YAML: {}", error.info()),
                )
            })
    }

    /// What the line holds from a span on.
    fn rest(&self, span: Span) -> String {
        let line = self.line(span.line).chars();
        line.skip((span.column as usize).saturating_sub(1))
            .collect()
    }

    fn tab(&self, line: u32) -> Fatal {
        let column = self.line(line).chars().take_while(|c| *c != '\t').count() as u32 + 1;
        let span = Span {
            line,
            column,
            length: 1,
        };
        self.fatal(
            &codes::TAB,
            span,
            "a tab indents this line; YAML takes spaces",
        )
    }

    /// A text that begins with a character that YAML keeps for itself.
    fn indicator(&self, span: Span, rest: &str, info: &str) -> Option<Fatal> {
        let first = rest.chars().next()?;
        if !info.contains("unexpected character") {
            return None;
        }
        let text = rest.split(" #").next().unwrap_or(rest).trim_end();
        let flow = self.bracket().is_some();
        let whole = Span {
            length: (text.chars().count() as u32).max(1),
            ..span
        };
        let span = if flow { span } else { whole };
        let mut finding = self.fatal(
            &codes::SYNTAX,
            span,
            format!("a text without quotes cannot begin with `{first}`"),
        );
        if flow || text.contains(['"', '\\']) {
            finding.help = Some("put the text into quotes".to_owned());
        } else {
            finding.help = Some(format!("quote it: \"{text}\""));
            finding.suggestion = Some(format!("\"{text}\""));
        }
        Some(finding)
    }

    /// A key where none can be: behind another one, or deeper than a line above that has its value already.
    fn second_colon(&self, span: Span, info: &str) -> Option<Fatal> {
        if !info.contains("mapping values are not allowed") {
            return None;
        }
        let line = self.line(span.line);
        let before: String = line.chars().take(span.column as usize - 1).collect();
        let mut finding = self.fatal(
            &codes::SYNTAX,
            span,
            "a key cannot be here: its line, or the one above, already holds a key with a value",
        );
        finding.help = Some(match before.split_once(": ") {
            Some((_, value)) => {
                let value = value.trim_start();
                format!(
                    "a text with a colon and a blank in it needs quotes, from before `{value}` to its end"
                )
            }
            None => "begin the line in the same column as the key above it, or end that line after its colon".to_owned(),
        });
        Some(finding)
    }

    /// What is wrong inside quotes.
    fn quotes(&self, span: Span, info: &str) -> Option<Fatal> {
        if !info.contains("quoted") {
            return None;
        }
        let (message, help) = if info.contains("trailing content") {
            (
                "something follows the closing quote",
                "put all of it into the quotes, or end the line there",
            )
        } else if info.contains("found unexpected") {
            (
                "this quote is not closed",
                "end the text with the same quote",
            )
        } else if info.contains("escape") {
            (
                "in double quotes a backslash begins an escape, and YAML does not know one in this text",
                "double the backslash, or put the text into single quotes",
            )
        } else {
            return None;
        };
        let mut finding = self.fatal(&codes::SYNTAX, span, message);
        finding.help = Some(help.to_owned());
        Some(finding)
    }

    /// What opens the innermost collection, where that is a bracket.
    fn bracket(&self) -> Option<char> {
        let opened = self.stack.last()?.span;
        let first = self.rest(opened).chars().next();
        first.filter(|c| matches!(c, '[' | '{'))
    }

    /// A bracket above an error that is not indented deeper: the scanner notices it lines too late.
    fn not_closed(&self, error: Span) -> Option<Fatal> {
        let opened = self.stack.last()?.span;
        let bracket = self.bracket()?;
        let outside = indentation(self.line(error.line)) <= indentation(self.line(opened.line));
        (error.line > opened.line && outside).then(|| {
            let opened = Span {
                length: 1,
                ..opened
            };
            self.fatal(
                &codes::SYNTAX,
                opened,
                format!("this `{bracket}` is not closed before line {}", error.line),
            )
        })
    }

    /// A line among keys that has none: the scanner takes it for a key that goes on, and notices it below.
    fn no_colon(&self, error: Span) -> Option<Fatal> {
        let indent = indentation(self.line(error.line));
        let number = (1..error.line).rev().find(|number| {
            let line = self.line(*number).trim();
            !line.is_empty() && !line.starts_with('#')
        })?;
        let line = self.line(number);
        let text = line.trim_start_matches([' ', '-']).trim_end();
        let same = line.len() - line.trim_start_matches([' ', '-']).len() == indent;
        let plain = text.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if !same || !plain || text.contains(": ") || text.ends_with(':') {
            return None;
        }
        let span = Span {
            line: number,
            column: indent as u32 + 1,
            length: text.chars().count() as u32,
        };
        let mut finding = self.fatal(
            &codes::SYNTAX,
            span,
            "this line has no key: a colon and a blank after it are missing",
        );
        let parts = text.split_once(':').or_else(|| text.split_once(' '));
        if let Some((key, value)) = parts {
            let meant = format!("{key}: {}", value.trim());
            finding.help = Some(format!("write `{meant}`"));
            finding.suggestion = Some(meant);
        }
        Some(finding)
    }

    pub(super) fn fatal(
        &self,
        code: &'static Code,
        span: Span,
        message: impl Into<String>,
    ) -> Fatal {
        Box::new(Diagnostic::new(code, place(self.file, span), message))
    }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A key such as `1` or `true`, and what was probably meant by it.
pub(super) fn key_not_string(
    file: &Utf8Path,
    key: &Key,
    value: &Node,
    before: Option<&Entry>,
) -> Diagnostic {
    let shown = if key.text.is_empty() {
        "an empty key".to_owned()
    } else {
        format!("the key `{}`", key.text)
    };
    // `{max_cpu_fraction: 0,5}` is a number, a comma, and a key without value.
    if key.kind == Kind::Int
        && value.is_null()
        && let Some(Entry { value: whole, .. }) = before
        && let Some(whole) = whole.scalar()
        && whole.kind == Kind::Int
    {
        return Diagnostic::new(
            &codes::KEY_NOT_STRING,
            place(file, key.span),
            format!("{shown} is not a string; a comma ends the value before it"),
        )
        .help(format!("use a point: {}.{}", whole.text, key.text));
    }
    Diagnostic::new(
        &codes::KEY_NOT_STRING,
        place(file, key.span),
        format!("{shown} is not a string"),
    )
    .help(format!("quote it: \"{}\"", key.text))
    .suggest(format!("\"{}\"", key.text))
}
