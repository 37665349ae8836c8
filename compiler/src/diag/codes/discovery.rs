//! Discovery (D): SELU1201–SELU1299.

use crate::diag::{Code, Severity};

/// The result is no JSON array of tools.
pub static RESULT_INVALID: Code = Code {
    id: "SELU1201",
    name: "discovery-result-invalid",
    severity: Severity::Error,
    rules: &["D1"],
    cause: "The discovery tool must return a JSON array of `{name, description, input_schema, recommended_policy?}`.",
    cure: "Return the array itself as the result of the call, all tools in one answer.",
    example: r#"{"tools": []}"#,
};

/// Beyond the bounds.
pub static TOO_LARGE: Code = Code {
    id: "SELU1202",
    name: "discovery-too-large",
    severity: Severity::Error,
    rules: &["D7"],
    cause: "A discovery has at most 1,000 tools, 1 MiB a tool and 16 MiB in all.",
    cure: "Offer fewer tools, or shorten their schemas and descriptions.",
    example: "[…]",
};

/// A key twice in one object.
pub static DUPLICATE_KEY: Code = Code {
    id: "SELU1203",
    name: "discovery-duplicate-key",
    severity: Severity::Error,
    rules: &["D1"],
    cause: "Readers of JSON disagree which of the two counts.",
    cure: "Write the key once.",
    example: r#"[{"name": "a", "name": "b"}]"#,
};

/// An item that is no tool.
pub static ITEM_INVALID: Code = Code {
    id: "SELU1204",
    name: "discovery-item-invalid",
    severity: Severity::Error,
    rules: &["D1"],
    cause: "Each item needs a name, a description and an input_schema. One bad item fails the whole discovery, so that nothing is half known.",
    cure: "Correct the item in the capability.",
    example: r#"[{"name": "forecast"}]"#,
};

/// Two tools of one name.
pub static NAME_DUPLICATE: Code = Code {
    id: "SELU1205",
    name: "discovery-name-duplicate",
    severity: Severity::Error,
    rules: &["D1"],
    cause: "A call could not say which of them is meant.",
    cure: "Rename one of them in the capability.",
    example: r#"[{"name": "a", …}, {"name": "a", …}]"#,
};

/// The discovery tool in its own list.
pub static LISTS_ITSELF: Code = Code {
    id: "SELU1206",
    name: "discovery-lists-itself",
    severity: Severity::Error,
    rules: &["D1", "T4"],
    cause: "The discovery tool is never offered to a model, so it cannot be one of the tools.",
    cure: "Leave it out of the list.",
    example: r#"[{"name": "list_tools", …}]"#,
};

/// `required` beside the schema.
pub static REQUIRED_BESIDE: Code = Code {
    id: "SELU1207",
    name: "discovery-required-beside-schema",
    severity: Severity::Error,
    rules: &["D1"],
    cause: "Beside `input_schema` it would be ignored, and nothing would be required.",
    cure: "Move it into `input_schema`.",
    example: r#"[{"name": "a", "description": "A", "input_schema": {…}, "required": ["x"]}]"#,
};

/// An unknown recommendation.
pub static POLICY_UNKNOWN: Code = Code {
    id: "SELU1208",
    name: "discovery-policy-unknown",
    severity: Severity::Warning,
    rules: &["D1"],
    cause: "Only `allow`, `ask` and `block` are policies; anything else counts as absent, which means `block` for a new tool.",
    cure: "Correct it in the capability, or set the policy in selu.toml.",
    example: r#"[{"name": "a", "recommended_policy": "yes", …}]"#,
};

/// A field that discovery does not know.
pub static FIELD_DROPPED: Code = Code {
    id: "SELU1209",
    name: "discovery-field-dropped",
    severity: Severity::Note,
    rules: &["D1"],
    cause: "Unknown fields of an item are dropped.",
    cure: "Remove the field, or correct its name.",
    example: r#"[{"name": "a", "colour": "red", …}]"#,
};

/// The codes of this family.
pub static ALL: &[&Code] = &[
    &RESULT_INVALID,
    &TOO_LARGE,
    &DUPLICATE_KEY,
    &ITEM_INVALID,
    &NAME_DUPLICATE,
    &LISTS_ITSELF,
    &REQUIRED_BESIDE,
    &POLICY_UNKNOWN,
    &FIELD_DROPPED,
];
