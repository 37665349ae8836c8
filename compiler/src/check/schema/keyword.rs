//! The keywords of all drafts, and where they hold further schemas.

/// How a keyword holds schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// Its value is a schema.
    One,
    /// Its value is a list of schemas.
    List,
    /// Its value is a schema or a list of them.
    OneOrList,
    /// Its value is an object whose values are schemas.
    Map,
    /// As a map, whose values may be lists of names as well.
    MapOrNames,
}

/// Keywords that hold schemas; the second part says whether they apply to the same value as the schema around them.
pub(super) fn holds(keyword: &str) -> Option<(Holds, bool)> {
    Some(match keyword {
        "allOf" | "anyOf" | "oneOf" => (Holds::List, true),
        "not" | "if" | "then" | "else" => (Holds::One, true),
        "dependentSchemas" => (Holds::Map, true),
        "dependencies" => (Holds::MapOrNames, true),
        "properties" | "patternProperties" | "$defs" | "definitions" => (Holds::Map, false),
        "prefixItems" => (Holds::List, false),
        "items" => (Holds::OneOrList, false),
        "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "contentSchema" => (Holds::One, false),
        _ => return None,
    })
}

/// Longer words are no misspelt keyword; distances are not measured for them.
const LONGEST: usize = 32;

/// The names of types.
pub(super) const TYPES: &[&str] = &[
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// What people write who come from other languages.
pub(super) fn type_meant(text: &str) -> Option<&'static str> {
    if text.len() > LONGEST {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let meant = match lower.as_str() {
        "str" | "text" | "char" | "varchar" => "string",
        "int" | "long" | "int32" | "int64" | "uint" => "integer",
        "float" | "double" | "decimal" | "numeric" => "number",
        "bool" => "boolean",
        "dict" | "map" | "mapping" | "struct" | "hash" => "object",
        "list" | "tuple" | "set" | "vector" => "array",
        "none" | "nil" => "null",
        _ => TYPES
            .iter()
            .copied()
            .filter(|name| strsim::osa_distance(name, &lower) <= 2)
            .min_by_key(|name| strsim::osa_distance(name, &lower))?,
    };
    Some(meant)
}

/// What a keyword's value must be, in words.
pub(super) fn expects(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "type" => {
            "a type (array, boolean, integer, null, number, object, string) or a list of types"
        }
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            "an object whose values are schemas"
        }
        "dependencies" => "an object whose values are schemas or lists of names",
        "dependentRequired" => "an object whose values are lists of names",
        "required" => "a list of distinct property names",
        "enum" => "a list of distinct values",
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => "a list of schemas that is not empty",
        "items"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "contentSchema"
        | "not"
        | "if"
        | "then"
        | "else" => "a schema: an object, true or false",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => "a number",
        "multipleOf" => "a number above 0",
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => "a whole number from 0",
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => "true or false",
        "pattern" => "a regular expression in a string",
        "title" | "description" | "$comment" | "format" | "contentEncoding"
        | "contentMediaType" | "$id" | "$ref" | "$dynamicRef" | "$recursiveRef" | "$anchor"
        | "$dynamicAnchor" => "a string",
        "examples" => "a list",
        _ => return None,
    })
}

/// Every keyword of any draft.
pub(super) const ALL: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];

/// Annotations of other tools that look like misspelt keywords but are not.
const ELSEWHERE: &[&str] = &[
    "example",
    "id",
    "options",
    "item",
    "note",
    "notes",
    "order",
    "propertyOrder",
    "enumNames",
    "required_if",
    "unit",
    "units",
    "optional",
    "hidden",
    "label",
    "placeholder",
    "constraint",
    "constraints",
    "formatMinimum",
    "formatMaximum",
    "titles",
    "extends",
    "override",
];

/// The keyword that an unknown key most likely means.
pub(super) fn meant(key: &str) -> Option<&'static str> {
    if key.len() > LONGEST || key.starts_with("x-") || ELSEWHERE.contains(&key) {
        return None;
    }
    let plain = |text: &str| {
        text.chars()
            .filter(|c| !matches!(c, '-' | '_' | '$'))
            .collect::<String>()
            .to_ascii_lowercase()
    };
    let key_plain = plain(key);
    let limit = if key.chars().count() < 5 { 1 } else { 2 };
    let distance = |keyword: &str| {
        let keyword_plain = plain(keyword);
        if keyword_plain == key_plain {
            0
        } else if keyword.len() >= 4
            && key_plain.len() >= 4
            && keyword_plain.starts_with(&key_plain)
        {
            1
        } else {
            strsim::osa_distance(&keyword_plain, &key_plain)
        }
    };
    ALL.iter()
        .copied()
        // `if` and `not` are at distance 1 from too many words.
        .filter(|keyword| keyword.len() >= 4)
        .map(|keyword| (distance(keyword), keyword))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, keyword)| keyword)
}
