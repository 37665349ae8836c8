//! Tools and their schemas (T): SELU0401–SELU0499.

use crate::diag::{Code, Severity};

/// A name with other characters.
pub static NAME_INVALID: Code = Code {
    id: "SELU0401",
    name: "tool-name-invalid",
    severity: Severity::Error,
    rules: &["T2"],
    cause: "A tool's name has letters, digits, `_`, `-` and `.`, and at least one of them.",
    cure: "Rename it; write `_` for spaces.",
    example: r##"tools:
  - name: get weather"##,
};

/// A name that model providers refuse.
pub static NAME_FOR_MODELS: Code = Code {
    id: "SELU0402",
    name: "tool-name-for-models",
    severity: Severity::Warning,
    rules: &["T2"],
    cause: "The model sees `<capability>__<tool>`, and providers take only letters, digits, `_` and `-`, at most 64 of them.",
    cure: "Shorten the tool's name or the capability's id; write `_` for `.`.",
    example: r##"id: weather
tools:
  - name: get.forecast"##,
};

/// No description.
pub static DESCRIPTION_EMPTY: Code = Code {
    id: "SELU0403",
    name: "tool-description-empty",
    severity: Severity::Warning,
    rules: &["T2", "D1"],
    cause: "The description is all that a model knows of a tool before it calls it.",
    cure: "Say in a sentence what the tool does and when to use it.",
    example: r##"tools:
  - name: forecast
    description: """##,
};

/// Not a JSON Schema.
pub static SCHEMA_INVALID: Code = Code {
    id: "SELU0411",
    name: "schema-invalid",
    severity: Severity::Error,
    rules: &["T3"],
    cause: "A keyword has a value that its draft of JSON Schema does not allow.",
    cure: "Write the keyword as the message says.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: objekt}"##,
};

/// A root that takes no object.
pub static SCHEMA_ROOT: Code = Code {
    id: "SELU0412",
    name: "schema-root",
    severity: Severity::Error,
    rules: &["T3"],
    cause: "Arguments of a tool are a JSON object, so the root of its schema must accept one.",
    cure: "Begin with `type: object` and list the arguments under `properties`.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: array}"##,
};

/// A schema that says nothing.
pub static SCHEMA_EMPTY: Code = Code {
    id: "SELU0413",
    name: "schema-empty",
    severity: Severity::Warning,
    rules: &["T3"],
    cause: "`true` and `{}` accept anything: the model is told nothing about the arguments.",
    cure: "Write `{type: object, properties: {}}` for a tool without arguments.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {}"##,
};

/// An unknown `$schema`.
pub static SCHEMA_DRAFT_UNKNOWN: Code = Code {
    id: "SELU0414",
    name: "schema-draft-unknown",
    severity: Severity::Error,
    rules: &["T3"],
    cause: "`$schema` names a draft that is not known, so nothing can be said about the schema. It is never fetched.",
    cure: "Name one of the known drafts, or leave it out for 2020-12.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {$schema: "https://example.com/my-draft", type: object}"##,
};

/// Written for another draft.
pub static SCHEMA_OTHER_DRAFT: Code = Code {
    id: "SELU0415",
    name: "schema-other-draft",
    severity: Severity::Error,
    rules: &["T3"],
    cause: "The schema is valid in another draft of JSON Schema only, where it may mean something else.",
    cure: "Set `$schema` to that draft, or rewrite the place for this one.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: object, properties: {xs: {items: [{type: string}]}}}"##,
};

/// A reference out of the schema.
pub static SCHEMA_REF_REMOTE: Code = Code {
    id: "SELU0416",
    name: "schema-ref-remote",
    severity: Severity::Error,
    rules: &["T3"],
    cause: "Only local references are followed. Nothing is ever fetched, neither over HTTP nor from files.",
    cure: "Copy the definition into `$defs` and refer to `#/$defs/…`.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: object, properties: {x: {$ref: "https://example.com/x.json"}}}"##,
};

/// A reference to nothing.
pub static SCHEMA_REF_DANGLING: Code = Code {
    id: "SELU0417",
    name: "schema-ref-dangling",
    severity: Severity::Error,
    rules: &["T3"],
    cause: "The reference points to a place that does not exist in the schema or holds no schema.",
    cure: "Add the definition, or correct the pointer.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: object, properties: {x: {$ref: "#/$defs/Missing"}}}"##,
};

/// A reference that leads back to itself.
pub static SCHEMA_LOOP: Code = Code {
    id: "SELU0418",
    name: "schema-loop",
    severity: Severity::Error,
    rules: &["T3"],
    cause: "The reference comes back to where it began without going into the value, so checking a value would never end. Recursion through `properties` or `items` is fine.",
    cure: "Put the recursion below a property or an item.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {$ref: "#"}"##,
};

/// A regular expression that does not compile.
pub static SCHEMA_REGEX: Code = Code {
    id: "SELU0419",
    name: "schema-regex",
    severity: Severity::Error,
    rules: &["T3"],
    cause: "A pattern that does not compile would check nothing.",
    cure: "Correct the expression; the dialect is ECMA 262 without lookbehind of unknown length.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: object, properties: {x: {type: string, pattern: "["}}}"##,
};

/// Beyond the bounds.
pub static SCHEMA_TOO_LARGE: Code = Code {
    id: "SELU0420",
    name: "schema-too-large",
    severity: Severity::Error,
    rules: &["T3", "D7"],
    cause: "A schema has at most 64 levels, 10,000 values and 1 MiB of JSON.",
    cure: "Split the tool, or describe the argument as a string or free object.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {…}"##,
};

/// A default that its own schema refuses.
pub static SCHEMA_DEFAULT_MISMATCH: Code = Code {
    id: "SELU0421",
    name: "schema-default-mismatch",
    severity: Severity::Warning,
    rules: &["T3"],
    cause: "A model that sends the default would be refused.",
    cure: "Correct the default, allow its type, or remove it.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: object, properties: {n: {type: integer, default: null}}}"##,
};

/// A required name that is not declared.
pub static SCHEMA_REQUIRED_UNDECLARED: Code = Code {
    id: "SELU0422",
    name: "schema-required-undeclared",
    severity: Severity::Warning,
    rules: &["T3"],
    cause: "A name in `required` has no entry in `properties`: it is misspelt, or the model is told nothing about it.",
    cure: "Correct the name, or declare the property.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: object, required: [citty], properties: {city: {type: string}}}"##,
};

/// Nearly a keyword.
pub static SCHEMA_KEYWORD_MISSPELT: Code = Code {
    id: "SELU0423",
    name: "schema-keyword-misspelt",
    severity: Severity::Warning,
    rules: &["T3", "M6"],
    cause: "JSON Schema ignores unknown keywords, so a misspelt one checks nothing.",
    cure: "Write the keyword as suggested. Keywords of your own may begin with `x-`.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: object, propertis: {city: {type: string}}}"##,
};

/// A property outside `properties`.
pub static SCHEMA_KEYWORD_MISPLACED: Code = Code {
    id: "SELU0424",
    name: "schema-keyword-misplaced",
    severity: Severity::Warning,
    rules: &["T3", "M6"],
    cause: "The key is no keyword, but its value looks like a schema: it is ignored where it stands.",
    cure: "Put it below `properties`.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: object, city: {type: string}}"##,
};

/// A number where the type says string.
pub static SCHEMA_ENUM_TYPE: Code = Code {
    id: "SELU0425",
    name: "schema-enum-type",
    severity: Severity::Error,
    rules: &["T3", "L5"],
    cause: "The value can never match the type beside it. In YAML this comes from a missing pair of quotes, and `1.10` is the number 1.1 then.",
    cure: "Quote the value.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: object, properties: {v: {type: string, enum: [1.10]}}}"##,
};

/// A schema that model providers refuse.
pub static SCHEMA_FOR_MODELS: Code = Code {
    id: "SELU0426",
    name: "schema-for-models",
    severity: Severity::Warning,
    rules: &["T3"],
    cause: "The schema is valid, but providers of models take less than JSON Schema: a root with `type: object` and without `anyOf`, `oneOf`, `allOf`, `not` or `enum`, arrays with `items`, and argument names of at most 64 letters, digits, `_`, `-` and `.`. One such schema makes them refuse the request with all of its tools.",
    cure: "Rewrite the place as the message says.",
    example: r##"tools:
  - name: forecast
    description: Tomorrow's weather
    input_schema: {type: object, properties: {days: {type: array}}}"##,
};

/// The codes of this family.
pub static ALL: &[&Code] = &[
    &NAME_INVALID,
    &NAME_FOR_MODELS,
    &DESCRIPTION_EMPTY,
    &SCHEMA_INVALID,
    &SCHEMA_ROOT,
    &SCHEMA_EMPTY,
    &SCHEMA_DRAFT_UNKNOWN,
    &SCHEMA_OTHER_DRAFT,
    &SCHEMA_REF_REMOTE,
    &SCHEMA_REF_DANGLING,
    &SCHEMA_LOOP,
    &SCHEMA_REGEX,
    &SCHEMA_TOO_LARGE,
    &SCHEMA_DEFAULT_MISMATCH,
    &SCHEMA_REQUIRED_UNDECLARED,
    &SCHEMA_KEYWORD_MISSPELT,
    &SCHEMA_KEYWORD_MISPLACED,
    &SCHEMA_ENUM_TYPE,
    &SCHEMA_FOR_MODELS,
];
