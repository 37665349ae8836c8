//! Limits in integers (R1, R5).

use super::Check;
use crate::diag::Diagnostic;
use crate::diag::codes::yaml as codes;
use crate::model::Limits;
use crate::model::capability::RawResources;
use crate::yaml::Document;

impl Check<'_> {
    pub(super) fn limits(&mut self, raw: &RawResources) -> Option<Limits> {
        let nano_cpus = match raw.max_cpu_fraction {
            Some(_) => cores(self.document, "/resources/max_cpu_fraction", self.findings),
            None => self.or("/resources/max_cpu_fraction", None, 500_000_000),
        };
        Some(Limits {
            memory_mb: self.or("/resources/max_memory_mb", raw.max_memory_mb, 128)?,
            nano_cpus: nano_cpus?,
            cpu_seconds: self.or("/resources/max_cpu_seconds", raw.max_cpu_seconds, 30)?,
            pids: self.or("/resources/pids_limit", raw.pids_limit, 64)?,
        })
    }
}

/// R5: from the written digits, never through a float.
pub(in crate::check) fn cores(
    document: &Document,
    pointer: &str,
    findings: &mut Vec<Diagnostic>,
) -> Option<u64> {
    let text = &document.at(pointer)?.scalar()?.text;
    let nano = nano_cpus(text);
    if nano.is_none() {
        let finding = Diagnostic::new(
            &codes::NUMBER_FORM,
            document.place(pointer),
            format!("{text} has more than nine digits after the point"),
        )
        .help("a billionth of a core is the smallest part there is");
        findings.push(finding);
    }
    nano
}

/// Billionths of a core of a plain decimal; `None` if it has finer parts.
fn nano_cpus(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 9 {
        return None;
    }
    let padded = format!("{fraction:0<9}");
    let whole: u64 = whole.parse().ok()?;
    whole
        .checked_mul(1_000_000_000)?
        .checked_add(padded.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::nano_cpus;

    #[test]
    fn cores_become_integers_without_rounding() {
        for (text, nano) in [
            ("0.57", Some(570_000_000)),
            ("0.1", Some(100_000_000)),
            ("2", Some(2_000_000_000)),
            ("1.50", Some(1_500_000_000)),
            ("0.123456789", Some(123_456_789)),
            ("0.1234567891", None),
            ("0.12345678900", Some(123_456_789)),
        ] {
            assert_eq!(nano_cpus(text), nano, "{text}");
        }
    }
}
