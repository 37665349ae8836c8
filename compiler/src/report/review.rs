//! What a change means, for a terminal and for a comment at a pull request.

mod sarif;

use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;

use super::{ReportError, environment, escape};
use crate::review::text::{Piece, Suspicion, words};
use crate::review::{Finding, Grade, Kind, Review};

pub use sarif::review_sarif;

const TEXT: &str = include_str!("review.txt");
const MARKDOWN: &str = include_str!("review.md");

/// Forges take comments of 65,536 characters and more; a table of so many rows stays well below.
const ROWS_MAX: usize = 100;
/// What stands above the folds.
const SHORT_MAX: usize = 10;
/// How much of one value is shown in a comment.
const VALUE_MAX: usize = 120;
/// How much of a plan is shown in a comment.
const PLAN_MAX: usize = 20_000;

/// For a terminal or a log: widening first, descriptions word by word, nothing hidden.
///
/// # Errors
/// When the template fails.
pub fn review_text(review: &Review) -> Result<String, ReportError> {
    let form = Form {
        safe: escape,
        removed: ["[-", "-]"],
        added: ["{+", "+}"],
        rows_max: usize::MAX,
        value_max: usize::MAX,
    };
    render("review.txt", TEXT, &form.view(review))
}

/// For a comment at a pull request: short first, details folded, bounded in size, the same for the same review, so that
/// it can be written in place of the last one.
///
/// # Errors
/// When the template fails.
pub fn review_markdown(review: &Review) -> Result<String, ReportError> {
    let form = Form {
        safe: markdown,
        removed: ["~~", "~~"],
        added: ["**", "**"],
        rows_max: ROWS_MAX,
        value_max: VALUE_MAX,
    };
    render("review.md", MARKDOWN, &form.view(review))
}

/// One line: `2 widening, 1 narrowing, 3 neutral.`, and what is to be done about them where that is another number.
pub fn review_summary(review: &Review) -> String {
    if review.findings.is_empty() {
        return "No difference.".to_owned();
    }
    let counts = [Grade::Widening, Grade::Narrowing, Grade::Neutral]
        .map(|grade| format!("{} {}", review.count(grade), word(grade)));
    let mut summary = format!("{}.", counts.join(", "));
    let accepted = review.findings.iter().filter(|one| !one.is_open()).count();
    if accepted > 0 {
        summary.push_str(&format!(" {accepted} accepted beforehand."));
    }
    let open = review.open().count();
    if open != review.count(Grade::Widening) {
        let need = if open == 1 { "needs" } else { "need" };
        summary.push_str(&format!(" {open} {need} a person."));
    }
    summary
}

/// A plan as a comment at a pull request: what it means first, the plan itself folded.
///
/// # Errors
/// When the template fails.
pub fn plan_markdown(summary: &str, plan: &str, review: &Review) -> Result<String, ReportError> {
    let body = review_markdown(review)?;
    let body = body.split_once('\n').map_or("", |(_, body)| body);
    let mut shown = shortened(plan, PLAN_MAX);
    // Nothing in it ends the block that it stands in, or is more than text.
    for (character, entity) in [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;")] {
        shown = shown.replace(character, entity);
    }
    Ok(format!(
        "<!-- selu plan -->\n**{}**\n\n{}\n<details><summary>the plan</summary>\n\n<pre>\n{}\n</pre>\n\n</details>\n",
        markdown(summary),
        body.trim_end_matches('\n'),
        shown.trim_end()
    ))
}

/// The most lines of [`rights`].
const LINES_MAX: usize = 40;

/// What a plan means for rights, for whoever is about to apply it; empty where nothing differs.
pub(super) fn rights(review: &Review) -> Vec<String> {
    let told = |finding: &&Finding| finding.grade != Grade::Neutral;
    let mut lines: Vec<String> = review
        .findings
        .iter()
        .filter(told)
        .take(LINES_MAX)
        .map(|finding| {
            let subject = finding.subject();
            let path = match finding.path.as_str() {
                "" => String::new(),
                path => format!(" {path}"),
            };
            escape(&format!(
                "{} {subject}{path}: {}",
                sign(finding.grade),
                finding.says
            ))
        })
        .collect();
    let all = review.findings.iter().filter(told).count();
    if all > LINES_MAX {
        lines.push(format!("… and {} more", all - LINES_MAX));
    }
    if !lines.is_empty() {
        lines.insert(
            0,
            format!("For rights this means: {}", review_summary(review)),
        );
    }
    lines
}

fn render(name: &str, template: &str, view: &View) -> Result<String, ReportError> {
    let mut environment = environment()?;
    environment.add_template_owned(name.to_owned(), template.to_owned())?;
    Ok(environment
        .get_template(name)?
        .render(Value::from(Serde(view)))?)
}

#[derive(Serialize)]
struct View {
    summary: String,
    short: Vec<Item>,
    more: usize,
    groups: Vec<Group>,
}

#[derive(Serialize)]
struct Group {
    title: String,
    findings: Vec<Item>,
    more: usize,
}

#[derive(Serialize, Clone)]
struct Item {
    sign: &'static str,
    subject: String,
    path: String,
    says: String,
    old: Option<String>,
    new: Option<String>,
    /// A changed text, with what was removed and added marked; empty for everything else.
    words: String,
    hidden: Vec<String>,
    /// Whether somebody still has to look at it.
    person: bool,
    /// Why somebody has accepted it.
    accepted: Option<String>,
}

/// How values get into a report.
struct Form {
    safe: fn(&str) -> String,
    removed: [&'static str; 2],
    added: [&'static str; 2],
    rows_max: usize,
    value_max: usize,
}

impl Form {
    fn view(&self, review: &Review) -> View {
        let of = |grade: Grade| review.findings.iter().filter(move |one| one.grade == grade);
        let widening = review.count(Grade::Widening);
        let groups = [Grade::Widening, Grade::Narrowing, Grade::Neutral]
            .into_iter()
            .filter(|grade| review.count(*grade) > 0)
            .map(|grade| Group {
                title: format!("{} {}", review.count(grade), word(grade)),
                findings: of(grade)
                    .take(self.rows_max)
                    .map(|one| self.item(one))
                    .collect(),
                more: review.count(grade).saturating_sub(self.rows_max),
            });
        View {
            summary: review_summary(review),
            short: of(Grade::Widening)
                .take(SHORT_MAX)
                .map(|one| self.item(one))
                .collect(),
            more: widening.saturating_sub(SHORT_MAX),
            groups: groups.collect(),
        }
    }

    fn item(&self, finding: &Finding) -> Item {
        let Finding {
            instance: _,
            tool: _,
            kind,
            path,
            grade,
            says,
            old,
            new,
            hidden,
            person,
            accepted,
        } = finding;
        let safe = |text: &str| (self.safe)(&shortened(text, self.value_max));
        let words = match (kind, old, new) {
            (Kind::Description, Some(old), Some(new)) => self.words(old, new),
            _ => String::new(),
        };
        Item {
            sign: sign(*grade),
            subject: (self.safe)(&finding.subject()),
            path: (self.safe)(path),
            says: (self.safe)(says),
            old: old.as_deref().map(safe),
            new: new.as_deref().map(safe),
            words,
            hidden: suspicions(hidden, self.safe),
            person: *person && accepted.is_none(),
            accepted: accepted.as_deref().map(safe),
        }
    }

    fn words(&self, old: &str, new: &str) -> String {
        let piece = |piece| {
            let (mark, text) = match piece {
                Piece::Same(text) => (["", ""], text),
                Piece::Removed(text) => (self.removed, text),
                Piece::Added(text) => (self.added, text),
            };
            // Marks stand at the words, not at the spaces around them.
            let inner = text.trim();
            if inner.is_empty() {
                return " ".to_owned();
            }
            let safe = (self.safe)(&shortened(inner, self.value_max));
            let space = |is: bool| if is { " " } else { "" };
            format!(
                "{}{}{safe}{}{}",
                space(text.starts_with(char::is_whitespace)),
                mark[0],
                mark[1],
                space(text.ends_with(char::is_whitespace)),
            )
        };
        words(old, new).into_iter().map(piece).collect()
    }
}

/// What hides, in words.
pub(super) fn suspicions(hidden: &[Suspicion], safe: fn(&str) -> String) -> Vec<String> {
    let says = |one: &Suspicion| match one {
        Suspicion::Character(point) => format!("{point} is not seen and not as it seems"),
        Suspicion::LookAlike(word) => {
            format!("{} mixes alphabets that look alike", safe(word))
        }
    };
    hidden.iter().map(says).collect()
}

pub(super) fn sign(grade: Grade) -> &'static str {
    match grade {
        Grade::Widening => "▲",
        Grade::Narrowing => "▼",
        Grade::Neutral => "•",
    }
}

fn word(grade: Grade) -> &'static str {
    match grade {
        Grade::Widening => "widening",
        Grade::Narrowing => "narrowing",
        Grade::Neutral => "neutral",
    }
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Text that stays text in Markdown: no markup, no HTML, no mention of a person, no link, one line.
pub(super) fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in escape(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            // A mention calls people, `#` calls issues, `:` begins links and signs.
            '@' | '#' | ':' => safe.push_str(&format!("&#{};", u32::from(character))),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '!' | '|' | '~' | '+'
            | '-' | '$' => {
                safe.push('\\');
                safe.push(character);
            }
            _ => safe.push(character),
        }
    }
    safe
}
