//! A page that needs nothing else, and reports from templates of the user's own (S14).
//!
//! A template gets values that are safe in its form already, so that it can't forget to escape one, and runs without
//! filters, without other templates, and within bounds. What it makes stands below a summary that it can't touch.

use std::io::{self, Write};

use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::review::{markdown, sign, suspicions};
use super::{ReportError, environment, escape, html, review_summary, view};
use crate::diff::ChangeSet;
use crate::graph::{Graph, SVG_STYLE, svg_inline};
use crate::plan::Plan;
use crate::review::text::{Piece, words};
use crate::review::{Finding, Grade, Kind, Review};

const BODY: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// The largest template of a user's own, in bytes.
pub const TEMPLATE_MAX: usize = 64 << 10;
/// The largest report that it may make.
const OUTPUT_MAX: usize = 16 << 20;
/// Steps that it may take; what it puts together costs steps, too, and so is bounded.
const FUEL: u64 = 4_000_000;
/// More findings of a grade are folded, each instance's by itself: then its names are an overview.
const FINDINGS_OPEN: usize = 100;
/// A graph of more is folded.
const GRAPH_OPEN: usize = 60;

/// What a report is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For a terminal.
    Text,
    /// For a comment at a pull request.
    Markdown,
    /// For a browser.
    Html,
}

impl Form {
    fn safe(self) -> fn(&str) -> String {
        match self {
            Self::Text => escape,
            Self::Markdown => markdown,
            Self::Html => html,
        }
    }
}

/// What a report is about.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// What would be done, for a plan.
    pub plan: Option<(&'a Plan, Option<&'a ChangeSet>)>,
    /// What it means for rights.
    pub review: Option<&'a Review>,
    /// A picture of the new state.
    pub graph: &'a Graph,
}

impl Facts<'_> {
    fn title(&self) -> &'static str {
        match self.plan {
            Some(_) => "Plan",
            None => "Review",
        }
    }

    /// What no template touches.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        match self.plan {
            Some((_, Some(changes))) => parts.push(view::summary(changes)),
            Some((_, None)) => parts.push("Offline: compared with selu.lock only.".to_owned()),
            None => {}
        }
        parts.extend(self.review.map(review_summary));
        parts.join(" ")
    }
}

/// A page that fetches nothing, runs no script, and can be read by keyboard, in light and dark.
///
/// # Errors
/// When the template fails.
pub fn page(facts: &Facts<'_>) -> Result<String, ReportError> {
    let mut environment = environment()?;
    environment.add_template("page.html", BODY)?;
    let view = View::new(facts, Form::Html)?;
    let body = environment
        .get_template("page.html")?
        .render(Value::from(Serde(view)))?;
    Ok(shell(facts, &body))
}

/// A report from a template of the user's own, below a summary that is not the template's. Values are safe in `form`
/// already.
///
/// # Errors
/// When the template is too large, fails, or does not come to an end within its bounds.
pub fn custom(facts: &Facts<'_>, form: Form, template: &str) -> Result<String, ReportError> {
    if template.len() > TEMPLATE_MAX {
        return Err(ReportError::TemplateSize);
    }
    let mut environment = environment()?;
    environment.set_fuel(Some(FUEL));
    environment.add_template("template", template)?;
    let view = View::new(facts, form)?;
    let mut out = Bounded::default();
    let rendered = environment
        .get_template("template")?
        .render_captured_to(Value::from(Serde(view)), &mut out);
    if out.over {
        return Err(ReportError::OutputSize);
    }
    rendered?;
    let body = String::from_utf8_lossy(&out.bytes);
    let summary = (form.safe())(&facts.summary());
    Ok(match form {
        // Whatever the template's own words would do to a terminal, they are words.
        Form::Text => {
            let lines: Vec<String> = body.lines().map(escape).collect();
            format!("{summary}\n\n{}\n", lines.join("\n"))
        }
        Form::Markdown => format!(
            "<!-- selu {} -->\n**{summary}**\n\n{body}",
            facts.title().to_lowercase()
        ),
        Form::Html => shell(facts, &body),
    })
}

/// Everything of a page but its body.
fn shell(facts: &Facts<'_>, body: &str) -> String {
    let style = format!("{STYLE}{SVG_STYLE}");
    let hash = base64(&Sha256::digest(style.as_bytes()));
    let title = facts.title();
    let project = facts.plan.map_or("", |(plan, _)| plan.project.as_str());
    let heading = match project {
        "" => title.to_owned(),
        project => format!("{title} of {}", html(project)),
    };
    let summary = html(&facts.summary());
    // No script at all may run, and nothing may be fetched, whatever gets into the page.
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>selu: {heading}</title>\n<style>{style}</style>\n</head>\n<body>\n\
         <header>\n<h1>{heading}</h1>\n<p class=\"summary\" role=\"status\">{summary}</p>\n</header>\n\
         <main>\n{body}</main>\n</body>\n</html>\n"
    )
}

#[derive(Serialize)]
struct View {
    /// `Plan` or `Review`.
    title: &'static str,
    summary: String,
    grades: Vec<GradeView>,
    /// What the plan itself says; `None` where only two states were compared.
    plan: Option<serde_json::Value>,
    graph: GraphView,
}

#[derive(Serialize)]
struct GradeView {
    /// `widening`, `narrowing`, `neutral`.
    name: &'static str,
    sign: &'static str,
    means: &'static str,
    count: usize,
    /// Whether they are shown from the beginning.
    open: bool,
    subjects: Vec<SubjectView>,
}

#[derive(Serialize)]
struct SubjectView {
    name: String,
    count: usize,
    findings: Vec<FindingView>,
}

#[derive(Serialize)]
struct FindingView {
    tool: Option<String>,
    kind: &'static str,
    path: String,
    says: String,
    old: Option<String>,
    new: Option<String>,
    /// A changed text word by word; empty for everything else.
    words: Vec<WordView>,
    hidden: Vec<String>,
    person: bool,
    accepted: Option<String>,
}

#[derive(Serialize)]
struct WordView {
    /// `same`, `removed`, `added`.
    what: &'static str,
    text: String,
}

#[derive(Serialize)]
struct GraphView {
    /// Drawn, for a page; empty in other forms.
    svg: String,
    summary: String,
    open: bool,
    empty: bool,
}

impl View {
    fn new(facts: &Facts<'_>, form: Form) -> Result<Self, ReportError> {
        let safe = form.safe();
        let plan = match facts.plan {
            Some((plan, changes)) => {
                let mut value = serde_json::to_value(view::View::new(plan, changes, Vec::new()))?;
                each_text(&mut value, safe);
                Some(value)
            }
            None => None,
        };
        let grades = match facts.review {
            Some(review) => [Grade::Widening, Grade::Narrowing, Grade::Neutral]
                .into_iter()
                .map(|grade| grade_view(review, grade, safe))
                .collect(),
            None => Vec::new(),
        };
        let graph = facts.graph;
        Ok(Self {
            title: facts.title(),
            summary: safe(&facts.summary()),
            grades,
            plan,
            graph: GraphView {
                svg: match form {
                    Form::Html => svg_inline(graph),
                    Form::Text | Form::Markdown => String::new(),
                },
                summary: graph.summary(),
                open: graph.size() <= GRAPH_OPEN,
                empty: graph.is_empty(),
            },
        })
    }
}

fn grade_view(review: &Review, grade: Grade, safe: fn(&str) -> String) -> GradeView {
    let (name, means) = match grade {
        Grade::Widening => (
            "widening",
            "more is possible than before, or it can't be told",
        ),
        Grade::Narrowing => ("narrowing", "less is possible than before"),
        Grade::Neutral => ("neutral", "no right came or went"),
    };
    let mut subjects: Vec<(&str, SubjectView)> = Vec::new();
    for finding in review.findings.iter().filter(|one| one.grade == grade) {
        let whose = finding.whose();
        let shown = finding_view(finding, safe);
        match subjects.last_mut() {
            // Findings come by instance.
            Some((last, subject)) if *last == whose => subject.findings.push(shown),
            _ => subjects.push((
                whose,
                SubjectView {
                    name: safe(whose),
                    count: 0,
                    findings: vec![shown],
                },
            )),
        }
    }
    let mut subjects: Vec<SubjectView> = subjects.into_iter().map(|(_, one)| one).collect();
    for subject in &mut subjects {
        subject.count = subject.findings.len();
    }
    let count = review.count(grade);
    GradeView {
        name,
        sign: sign(grade),
        means,
        count,
        open: count <= FINDINGS_OPEN,
        subjects,
    }
}

fn finding_view(finding: &Finding, safe: fn(&str) -> String) -> FindingView {
    let Finding {
        instance: _,
        tool,
        kind,
        path,
        grade: _,
        says,
        old,
        new,
        hidden,
        person,
        accepted,
    } = finding;
    let words = match (kind, old, new) {
        (Kind::Description, Some(old), Some(new)) => words(old, new)
            .into_iter()
            .map(|piece| {
                let (what, text) = match piece {
                    Piece::Same(text) => ("same", text),
                    Piece::Removed(text) => ("removed", text),
                    Piece::Added(text) => ("added", text),
                };
                WordView {
                    what,
                    text: safe(&text),
                }
            })
            .collect(),
        _ => Vec::new(),
    };
    let some = |text: &str| match text {
        "" => "(empty)".to_owned(),
        text => safe(text),
    };
    FindingView {
        tool: tool.as_deref().map(safe),
        kind: kind.word(),
        path: safe(path),
        says: safe(says),
        old: old.as_deref().map(some),
        new: new.as_deref().map(some),
        words,
        hidden: suspicions(hidden, safe),
        person: *person && accepted.is_none(),
        accepted: accepted.as_deref().map(safe),
    }
}

/// Makes every text in a value safe. Names of fields are ours.
fn each_text(value: &mut serde_json::Value, safe: fn(&str) -> String) {
    match value {
        serde_json::Value::String(text) => *text = safe(text),
        serde_json::Value::Array(items) => {
            for item in items {
                each_text(item, safe);
            }
        }
        serde_json::Value::Object(map) => {
            for item in map.values_mut() {
                each_text(item, safe);
            }
        }
        _ => {}
    }
}

/// Takes so much and no more.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    over: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > OUTPUT_MAX {
            self.over = true;
            return Err(io::Error::other("the report is too large"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// As a content security policy writes a hash (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for at in 0..4_usize {
            if at <= chunk.len() {
                let six = (bits >> (18 - 6 * at)) & 63;
                text.push(char::from(LETTERS[six as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
