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
            .help("a `{{ placeholder }}` needs quotes around it"),
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
        let rest: String = line.chars().skip(span.column as usize - 1).collect();
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
        if let Some(finding) = self.not_closed(span).or_else(|| self.no_colon(span)) {
            return finding;
        }
        self.fatal(
            &codes::SYNTAX,
            span,
            format!("this is not YAML: {}", error.info()),
        )
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

    /// A bracket above an error that is not indented deeper: the scanner notices it lines too late.
    fn not_closed(&self, error: Span) -> Option<Fatal> {
        let opened = self.stack.last()?.span;
        let bracket = self
            .line(opened.line)
            .chars()
            .nth(opened.column as usize - 1);
        let bracket = bracket.filter(|c| matches!(c, '[' | '{'))?;
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
