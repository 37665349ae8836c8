//! Names of fields and words: what is close to what, and where a field belongs (M6).

use serde_json::{Map, Value as Schema};

/// Names that many things have. Beside a list of such things they are labels of the whole, not fields that slipped.
const LABELS: [&str; 5] = ["description", "id", "label", "name", "type"];

/// Keywords of JSON Schema that are often written beside `input_schema`.
const SCHEMA_KEYWORDS: [&str; 12] = [
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "definitions",
    "enum",
    "oneOf",
    "properties",
    "required",
    "type",
];

/// The words that a schema allows, if it lists them.
pub(super) fn words(schema: &Schema) -> Option<Vec<&str>> {
    if let Some(words) = schema.get("enum").and_then(Schema::as_array) {
        return Some(words.iter().filter_map(Schema::as_str).collect());
    }
    // Documented variants are a choice of constants, or of enumerations.
    let choices = schema.get("oneOf").and_then(Schema::as_array)?;
    let mut all = Vec::new();
    for choice in choices {
        match choice.get("const").and_then(Schema::as_str) {
            Some(word) => all.push(word),
            None => all.extend(words(choice)?),
        }
    }
    Some(all)
}

/// Whether a schema takes a list or an object with known fields.
pub(super) fn is_collection(schema: &Schema) -> bool {
    matches!(
        schema.get("type").and_then(Schema::as_str),
        Some("array" | "object")
    )
}

/// Where a field that is not known here belongs, in words. Blanks and what cannot be seen do not make it another.
pub(super) fn belongs(
    name: &str,
    here: &Map<String, Schema>,
    outer: Option<&Map<String, Schema>>,
) -> Option<String> {
    let seen: String = name
        .chars()
        .filter(|c| !c.is_whitespace() && !crate::report::hidden(*c))
        .collect();
    let name = seen.as_str();
    if here.contains_key("input_schema") && SCHEMA_KEYWORDS.contains(&name) {
        return Some("inside `input_schema`, one level down".to_owned());
    }
    if LABELS.contains(&name) {
        return None;
    }
    for (field, schema) in here {
        if has_field(schema, name) {
            return Some(format!("inside `{field}`, one level down"));
        }
        if schema
            .get("items")
            .is_some_and(|each| has_field(each, name))
        {
            return Some(format!("inside an item of `{field}`, one level down"));
        }
    }
    outer
        .filter(|outer| outer.contains_key(name))
        .map(|_| "one level up".to_owned())
}

fn has_field(schema: &Schema, name: &str) -> bool {
    schema
        .get("properties")
        .and_then(Schema::as_object)
        .is_some_and(|properties| properties.contains_key(name))
}

/// The known name that is closest to a written one, if any is close (M6).
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .filter_map(|name| closeness(written, name).map(|distance| (distance, name)))
        .min()
        .map(|(_, name)| name)
}

/// How far apart two names are; `None` if they are not close.
fn closeness(written: &str, known: &str) -> Option<usize> {
    let plain = |text: &str| -> String {
        text.chars()
            .filter(|c| !matches!(c, '-' | '_') && !c.is_whitespace() && !crate::report::hidden(*c))
            .flat_map(char::to_lowercase)
            .collect()
    };
    let (a, b) = (plain(written), plain(known));
    if a.is_empty() {
        return None;
    }
    if a == b {
        return Some(0);
    }
    let limit = if a.chars().count().min(b.chars().count()) < 5 {
        1
    } else {
        2
    };
    let distance = strsim::osa_distance(&a, &b);
    if distance <= limit {
        return Some(distance);
    }
    (a.starts_with(&b) || b.starts_with(&a)).then_some(limit + distance)
}

/// Words for a message: `a`, `b` or `c`.
pub(super) fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn close_names_are_found_and_distant_ones_are_not() {
        let known = [
            "hosts",
            "mode",
            "max_memory_mb",
            "recommended_policy",
            "required",
            "id",
        ];
        for (written, expected) in [
            ("host", Some("hosts")),
            ("Hosts", Some("hosts")),
            ("max-memory-mb", Some("max_memory_mb")),
            ("maxMemoryMb", Some("max_memory_mb")),
            ("max_memory", Some("max_memory_mb")),
            ("recomended_policy", Some("recommended_policy")),
            ("requried", Some("required")),
            ("moed", Some("mode")),
            ("made", Some("mode")),
            ("made_up", None),
            ("licence", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), expected, "{written}");
        }
    }
}
