//! Reports by templates of the user's own (S14).

use std::io::Read;

use anyhow::Context;
use camino::Utf8Path;
use selu_compiler::report::page::{self, Facts, Form, TEMPLATE_MAX};

use crate::args::Format;
use crate::exit::Ending;

/// The template's text, no more of it than a template may have.
pub(crate) fn read(path: &Utf8Path) -> anyhow::Result<String> {
    let failed = || format!("the template {path} cannot be read");
    let file = std::fs::File::open(path).with_context(failed)?;
    let mut text = String::new();
    // One byte more tells that it is too large.
    file.take(TEMPLATE_MAX as u64 + 1)
        .read_to_string(&mut text)
        .with_context(failed)?;
    Ok(text)
}

/// The report in the form that is asked for.
pub(crate) fn custom(facts: &Facts<'_>, format: Format, template: &str) -> anyhow::Result<String> {
    let form = match format {
        Format::Text => Form::Text,
        Format::Markdown => Form::Markdown,
        Format::Html => Form::Html,
        Format::Json
        | Format::Sarif
        | Format::Github
        | Format::Svg
        | Format::Dot
        | Format::Mermaid => {
            let message =
                "--template makes text, Markdown or HTML: say --format text, markdown or html";
            return Err(Ending::usage(message).into());
        }
    };
    Ok(page::custom(facts, form, template)?)
}
