//! JSON Schemas of the files that people write, made from the Raw types: for editors, and for
//! `check/shape.rs`, so that the two cannot differ.

use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::agent::RawAgent;
use super::capability::RawCapability;
use super::locale::RawLocale;
use super::settings::RawSettings;
use crate::plan::saved::{PlanDocument, SavedPlan};
use crate::review::Review;

/// Names that [`schema`] knows.
pub const NAMES: [&str; 9] = [
    "agent",
    "diagnostics",
    "invoke",
    "locale",
    "manifest",
    "plan",
    "review",
    "saved-plan",
    "settings",
];

static AGENT: LazyLock<Value> = LazyLock::new(generate::<RawAgent>);
static LOCALE: LazyLock<Value> = LazyLock::new(generate::<RawLocale>);
static MANIFEST: LazyLock<Value> = LazyLock::new(generate::<RawCapability>);
static SETTINGS: LazyLock<Value> = LazyLock::new(generate::<RawSettings>);

/// Marks a list for which its only item may stand alone.
pub(crate) const ONE_OR_MORE: &str = "x-one-or-more";

/// The JSON Schema (draft-07) of one of [`NAMES`]: of a file, or of what `check --format json` (`diagnostics`),
/// `invoke --format json` (`invoke`), `plan --format json` (`plan`) and `diff --format json` (`review`) print and
/// `plan --out` (`saved-plan`) writes.
/// `None` for any other name.
pub fn schema(name: &str) -> Option<Value> {
    let mut schema = match name {
        "agent" => closed(AGENT.clone(), true),
        "diagnostics" => crate::diag::render::json_schema(),
        "invoke" => crate::report::call::json_schema(),
        "locale" => closed(LOCALE.clone(), true),
        "manifest" => closed(MANIFEST.clone(), true),
        "plan" => return Some(printed::<PlanDocument>()),
        "review" => return Some(printed::<Review>()),
        "saved-plan" => return Some(printed::<SavedPlan>()),
        "settings" => closed(SETTINGS.clone(), false),
        _ => return None,
    };
    spell_out(&mut schema);
    Some(schema)
}

/// [`ONE_OR_MORE`] in words that an editor knows.
fn spell_out(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(spell_out);
            if map.remove(ONE_OR_MORE).is_some()
                && let Some(list) = map.remove("type")
                && let Some(each) = map.remove("items")
            {
                let list = json!({"type": list, "items": each.clone()});
                map.insert("anyOf".to_owned(), json!([each, list]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(spell_out),
        _ => {}
    }
}

/// Says that what has known fields has no others, so that an editor shows a misspelt one; `own` allows those that begin
/// with `x-`. The compiler itself judges unknown fields with more care (M6).
fn closed(mut schema: Value, own: bool) -> Value {
    close(&mut schema, own);
    schema
}

fn close(schema: &mut Value, own: bool) {
    match schema {
        Value::Object(map) => {
            if map.get("properties").is_some_and(Value::is_object)
                && !map.contains_key("additionalProperties")
            {
                map.insert("additionalProperties".to_owned(), Value::Bool(false));
                if own {
                    map.insert("patternProperties".to_owned(), json!({ "^x-": true }));
                }
            }
            map.values_mut().for_each(|value| close(value, own));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| close(item, own)),
        _ => {}
    }
}

/// Of agent.yaml.
pub(crate) fn agent() -> &'static Value {
    &AGENT
}

/// Of `i18n/LOCALE.yaml`.
pub(crate) fn locale() -> &'static Value {
    &LOCALE
}

/// Of manifest.yaml.
pub(crate) fn manifest() -> &'static Value {
    &MANIFEST
}

/// Of selu.toml.
pub(crate) fn settings() -> &'static Value {
    &SETTINGS
}

/// Of what is printed: unlike in a file that people write, what is absent is `null`, and a reader passes over fields that
/// a later minor version adds.
fn printed<T: JsonSchema>() -> Value {
    SchemaSettings::draft07()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

fn generate<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    without_null(&mut schema);
    schema
}

/// An `Option` means that a field may be absent, never that it may be null: what schemars says about null goes.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
                if choices.len() == 1
                    && let Some(Value::Object(only)) = choices.pop()
                {
                    map.remove("anyOf");
                    for (key, value) in only {
                        map.entry(key).or_insert(value);
                    }
                }
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|kind| kind != "null");
                if types.len() == 1
                    && let Some(only) = types.pop()
                {
                    map.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(words)) = map.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            map.remove("format");
            map.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}
