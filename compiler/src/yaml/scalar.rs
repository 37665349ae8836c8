//! Scalars by the YAML 1.2 core schema: only `true` and `false` are booleans, and the written text is never lost.

use saphyr_parser::ScalarStyle;

/// A scalar: its text and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// As written, without quotes and with escapes resolved.
    pub text: String,
    /// Decided by the core schema, by quotes or by a core tag.
    pub kind: Kind,
    /// Whether it is written without quotes and without a tag.
    pub plain: bool,
}

/// What a scalar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `~`, `null` or nothing at all.
    Null,
    /// `true`, `false` and their capitals.
    Bool,
    /// Decimal, `0o…` or `0x…`.
    Int,
    /// With a point or an exponent, `.inf`, `.nan`.
    Float,
    /// Everything else.
    String,
}

impl Scalar {
    /// Decides a scalar without a tag.
    pub fn new(text: String, style: ScalarStyle) -> Self {
        let plain = style == ScalarStyle::Plain;
        let kind = if plain { resolve(&text) } else { Kind::String };
        Self { text, kind, plain }
    }

    /// How a message names it: its text in backticks, `nothing` where nothing is written.
    pub fn shown(&self) -> String {
        match self.kind {
            Kind::Null if self.text.is_empty() => "nothing".to_owned(),
            Kind::Null => format!("the null `{}`", self.text),
            Kind::Bool => format!("the boolean `{}`", self.text),
            Kind::Float if !self.text.contains(|c: char| c.is_ascii_digit()) => {
                format!("`{}`, which is no finite number,", self.text)
            }
            Kind::Int | Kind::Float => format!("the number `{}`", self.text),
            Kind::String => format!("the string {}", shorten(&self.text)),
        }
    }
}

/// A string in double quotes, cut where it is long.
pub fn shorten(text: &str) -> String {
    const LIMIT: usize = 60;
    if text.chars().count() <= LIMIT {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(LIMIT).collect();
    format!("{:?}", format!("{head}…"))
}

/// The core schema's resolution of a plain scalar (YAML 1.2.2, 10.3.2).
pub fn resolve(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => return Kind::Bool,
        ".nan" | ".NaN" | ".NAN" => return Kind::Float,
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Kind::Float;
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits(unsigned) {
        return Kind::Int;
    }
    if let Some(octal) = text.strip_prefix("0o")
        && !octal.is_empty()
        && octal.bytes().all(|b| (b'0'..=b'7').contains(&b))
    {
        return Kind::Int;
    }
    if let Some(hex) = text.strip_prefix("0x")
        && !hex.is_empty()
        && hex.bytes().all(|b| b.is_ascii_hexdigit())
    {
        return Kind::Int;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent_ok = exponent
        .is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    let mantissa_ok = match mantissa.split_once('.') {
        None => digits(mantissa),
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
    };
    if exponent_ok && mantissa_ok {
        Kind::Float
    } else {
        Kind::String
    }
}

/// Whether YAML 1.1 would take this word for a boolean: what one reader takes for a word is `true` to another.
pub fn is_yaml_1_1_bool(text: &str) -> bool {
    ["yes", "no", "on", "off"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::{Kind, resolve};

    #[test]
    fn plain_scalars_resolve_by_the_core_schema() {
        for (text, kind) in [
            ("", Kind::Null),
            ("~", Kind::Null),
            ("NULL", Kind::Null),
            ("True", Kind::Bool),
            ("yes", Kind::String),
            ("off", Kind::String),
            ("nULL", Kind::String),
            ("0128", Kind::Int),
            ("-7", Kind::Int),
            ("0o17", Kind::Int),
            ("0o18", Kind::String),
            ("0xFf", Kind::Int),
            ("1_024", Kind::String),
            ("22:22", Kind::String),
            ("1.10", Kind::Float),
            ("1.", Kind::Float),
            (".5", Kind::Float),
            (".", Kind::String),
            ("1e3", Kind::Float),
            ("1e", Kind::String),
            ("1.2.3", Kind::String),
            ("-.inf", Kind::Float),
            (".nan", Kind::Float),
            ("0,5", Kind::String),
        ] {
            assert_eq!(resolve(text), kind, "{text:?}");
        }
    }
}
