//! Plans for people and for programs.

pub(crate) mod call;
mod escape;
mod html;
pub mod page;
mod review;
mod view;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use crate::diff::ChangeSet;
use crate::plan::Plan;
use crate::plan::saved::PlanDocument;
use crate::review::Review;

pub use call::{Called, call_json};
pub(crate) use escape::hidden;
pub use escape::{escape, json_text};
pub(crate) use html::html;
pub use review::{plan_markdown, review_markdown, review_sarif, review_summary, review_text};
pub(crate) use view::{cores, limits_line};

const PLAN_TEXT: &str = include_str!("report/plan.txt");

/// Steps that a template may take: far more than the largest plan needs, and an end all the same.
const FUEL: u64 = 50_000_000;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A template failed.
    #[error("the report's template failed")]
    Template(#[from] minijinja::Error),
    /// A template of the user's own is too large.
    #[error("the template has more than {} bytes", page::TEMPLATE_MAX)]
    TemplateSize,
    /// What it makes is too large.
    #[error("the template makes more than a report can have")]
    OutputSize,
    /// A value has no JSON form.
    #[error("the report has no JSON form")]
    Json(#[from] serde_json::Error),
}

/// The plan as text for a terminal or a log: no colour, no cursor movement, control and zero-width characters escaped.
/// Without `changes` (offline) it says what is planned and that nothing was compared.
///
/// # Errors
/// When the template fails.
pub fn plan_text(
    plan: &Plan,
    changes: Option<&ChangeSet>,
    review: Option<&Review>,
) -> Result<String, ReportError> {
    let mut environment = environment()?;
    environment.add_template("plan.txt", PLAN_TEXT)?;
    let rights = review.map(review::rights).unwrap_or_default();
    let view = view::View::new(plan, changes, rights);
    Ok(environment
        .get_template("plan.txt")?
        .render(Value::from(Serde(view)))?)
}

/// What every template runs in (S14).
fn environment() -> Result<Environment<'static>, ReportError> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Values are escaped for a terminal where the view is built, which no template can forget.
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    let mut syntax = SyntaxConfig::builder();
    syntax
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true);
    environment.set_syntax(syntax.build()?);
    environment.set_fuel(Some(FUEL));
    Ok(environment)
}

/// The plan as JSON, with a `format_version` (see [`crate::plan::FORMAT_VERSION`]); its schema is `plan`.
pub fn plan_json(document: &PlanDocument) -> Result<serde_json::Value, ReportError> {
    Ok(serde_json::to_value(document)?)
}

/// One line that counts: `Plan: 2 to create, 1 to replace.`, or that there is nothing to do.
pub fn summary(changes: &ChangeSet) -> String {
    view::summary(changes)
}

#[cfg(test)]
mod tests;
