//! Cron expressions with six fields, seconds first; weekdays 0 and 7 are Sunday (A2).

use croner::parser::{CronParser, Seconds, Year};

use crate::diag::shown;

/// What each field is called, and the numbers that it takes.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31"),
    ("month", "1 to 12"),
    ("day of the week", "0 to 7, where 0 and 7 are Sunday"),
];

/// Why an expression does not parse.
pub(super) fn check(text: &str) -> Result<(), String> {
    let written: Vec<&str> = text.split_whitespace().collect();
    if written.len() != FIELDS.len() {
        return Err(format!(
            "a schedule has six fields, seconds first, and `{}` has {}",
            shown(text),
            written.len()
        ));
    }
    // One field at a time beside five that are right, so that the message can name the one that is wrong.
    for (index, (name, numbers)) in FIELDS.iter().enumerate() {
        let field = written[index];
        let mut alone = ["*"; FIELDS.len()];
        alone[index] = field;
        if has_an_empty_part(field) || !parses(&alone.join(" ")) {
            return Err(format!(
                "`{}` is not a {name}: numbers go from {numbers}",
                shown(field)
            ));
        }
    }
    if parses(&written.join(" ")) {
        Ok(())
    } else {
        Err(format!("`{}` is not a schedule", shown(text)))
    }
}

/// The parser takes `1,,2` for `1,2`.
fn has_an_empty_part(field: &str) -> bool {
    field
        .split(',')
        .any(|part| part.is_empty() || part.starts_with(['-', '/']) || part.ends_with(['-', '/']))
}

fn parses(text: &str) -> bool {
    CronParser::builder()
        .seconds(Seconds::Required)
        .year(Year::Disallowed)
        .build()
        .parse(text)
        .is_ok()
}
