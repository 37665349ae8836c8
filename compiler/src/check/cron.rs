//! Cron expressions with six fields, seconds first (A2).

/// A field: what it is called, its bounds, and names for its numbers from the first on.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
    /// Whether `?`, "no matter", may stand for it.
    question: bool,
}

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: [Field; 6] = [
    Field::number("second", 0, 59),
    Field::number("minute", 0, 59),
    Field::number("hour", 0, 23),
    Field {
        question: true,
        ..Field::number("day of the month", 1, 31)
    },
    Field {
        names: &MONTHS,
        ..Field::number("month", 1, 12)
    },
    // 7 is Sunday again.
    Field {
        names: &DAYS,
        question: true,
        ..Field::number("day of the week", 0, 7)
    },
];

/// Why an expression does not parse.
pub(super) fn check(text: &str) -> Result<(), String> {
    let written: Vec<&str> = text.split_whitespace().collect();
    if written.len() != FIELDS.len() {
        return Err(format!(
            "a schedule has six fields, seconds first, and {text:?} has {}",
            written.len()
        ));
    }
    for (field, written) in FIELDS.iter().zip(written) {
        if !written.split(',').all(|part| field.takes(part)) {
            return Err(format!(
                "{written:?} is not a {}: numbers go from {} to {}",
                field.name, field.least, field.most
            ));
        }
    }
    Ok(())
}

impl Field {
    const fn number(name: &'static str, least: u32, most: u32) -> Self {
        Self {
            name,
            least,
            most,
            names: &[],
            question: false,
        }
    }

    /// `*`, `?`, `a`, `a-b`, each but `?` with an optional step.
    fn takes(&self, part: &str) -> bool {
        if part == "?" {
            return self.question;
        }
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let step_ok = step.is_none_or(|step| number(step).is_some_and(|step| step > 0));
        let range_ok = range == "*"
            || match range.split_once('-') {
                None => self.value(range).is_some(),
                Some((from, to)) => match (self.value(from), self.value(to)) {
                    (Some(from), Some(to)) => from <= to,
                    _ => false,
                },
            };
        step_ok && range_ok
    }

    fn value(&self, text: &str) -> Option<u32> {
        let named = self
            .names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text));
        match named {
            Some(index) => u32::try_from(index).ok().map(|index| index + self.least),
            None => number(text).filter(|value| (self.least..=self.most).contains(value)),
        }
    }
}

/// Digits only: no sign.
fn number(text: &str) -> Option<u32> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}
