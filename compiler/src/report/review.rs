//! What a change means, for a terminal and for a comment at a pull request.

use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;

use super::{ReportError, environment, escape};
use crate::review::text::{Piece, Suspicion, words};
use crate::review::{Finding, Grade, Kind, Review};

const TEXT: &str = include_str!("review.txt");
const MARKDOWN: &str = include_str!("review.md");

/// Forges take comments of 65,536 characters and more; a table of so many rows stays well below.
const ROWS_MAX: usize = 100;
/// What stands above the folds.
const SHORT_MAX: usize = 10;
/// How much of one value is shown in a comment.
const VALUE_MAX: usize = 120;

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

/// One line: `2 widening, 1 narrowing, 3 neutral.`
pub fn review_summary(review: &Review) -> String {
    if review.findings.is_empty() {
        return "No difference.".to_owned();
    }
    let counts = [Grade::Widening, Grade::Narrowing, Grade::Neutral]
        .map(|grade| format!("{} {}", review.count(grade), word(grade)));
    format!("{}.", counts.join(", "))
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
            instance,
            tool,
            kind,
            path,
            grade,
            says,
            old,
            new,
            hidden,
        } = finding;
        let safe = |text: &str| (self.safe)(&shortened(text, self.value_max));
        let subject = match tool {
            Some(tool) => format!("{instance} {tool}"),
            None => instance.to_string(),
        };
        let words = match (kind, old, new) {
            (Kind::Description, Some(old), Some(new)) => self.words(old, new),
            _ => String::new(),
        };
        Item {
            sign: sign(*grade),
            subject: (self.safe)(&subject),
            path: (self.safe)(path),
            says: (self.safe)(says),
            old: old.as_deref().map(safe),
            new: new.as_deref().map(safe),
            words,
            hidden: hidden.iter().map(|one| self.suspicion(one)).collect(),
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

    fn suspicion(&self, suspicion: &Suspicion) -> String {
        match suspicion {
            Suspicion::Character(point) => format!("{point} is not seen and not as it seems"),
            Suspicion::LookAlike(word) => {
                let word = (self.safe)(word);
                format!("{word} mixes alphabets that look alike")
            }
        }
    }
}

fn sign(grade: Grade) -> &'static str {
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
fn markdown(text: &str) -> String {
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
