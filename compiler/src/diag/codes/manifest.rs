//! manifest.yaml: fields, limits, filesystem (M, F, R), and fields in general (M6, M7): SELU0301–SELU0399.

use crate::diag::{Code, Severity};

/// The codes of this family.
pub static ALL: &[&Code] = &[
    &MISSING_FIELD,
    &WRONG_TYPE,
    &OUT_OF_RANGE,
    &NOT_ONE_OF,
    &MISSPELT_FIELD,
    &MISPLACED_FIELD,
    &UNKNOWN_FIELD,
    &BAD_ID,
    &DYNAMIC_WITH_TOOLS,
    &WORKSPACE_CLASS,
    &CACHE_CLASS,
    &SHARED_STATEFUL,
    &NO_EFFECT,
    &DUPLICATE_TOOL,
    &POLICY_DISAGREES,
    &DUPLICATE_CREDENTIAL,
];

/// `missing-field`.
pub static MISSING_FIELD: Code = Code {
    id: "SELU0301",
    name: "missing-field",
    severity: Severity::Error,
    rules: &["M7"],
    cause: "A required field is not there.",
    cure: "Add it.",
    example: "id: weather
",
};

/// `wrong-type`.
pub static WRONG_TYPE: Code = Code {
    id: "SELU0302",
    name: "wrong-type",
    severity: Severity::Error,
    rules: &["M7"],
    cause: "A field holds a value of another type than it takes.",
    cure: "Write a value of the type that the message names.",
    example: "id: weather
image: example.com/weather:1
tools: forecast
",
};

/// `out-of-range`.
pub static OUT_OF_RANGE: Code = Code {
    id: "SELU0303",
    name: "out-of-range",
    severity: Severity::Error,
    rules: &["M7", "R1"],
    cause: "A number is below or above what the field allows. Zero never means unlimited.",
    cure: "Write a number in the range that the message names.",
    example: "id: weather
image: example.com/weather:1
resources:
  max_memory_mb: 4
",
};

/// `not-one-of`.
pub static NOT_ONE_OF: Code = Code {
    id: "SELU0304",
    name: "not-one-of",
    severity: Severity::Error,
    rules: &["M7", "N1"],
    cause: "A field takes one of a few words, and this is none of them.",
    cure: "Write one of the words that the message lists.",
    example: "id: weather
image: example.com/weather:1
filesystem: tmp
",
};

/// `misspelt-field`.
pub static MISSPELT_FIELD: Code = Code {
    id: "SELU0305",
    name: "misspelt-field",
    severity: Severity::Error,
    rules: &["M6"],
    cause: "The field is not known, but close to one that is. A misspelt limit or guard would be ignored, so this is an error. Close means: equal but for case, `-` and `_`, at edit distance 2 (1 for names below five letters), or one begins with the other.",
    cure: "Use the name that the message suggests, or begin the name with `x-` if it is your own.",
    example: "id: weather
image: example.com/weather:1
resourses:
  max_memory_mb: 64
",
};

/// `misplaced-field`.
pub static MISPLACED_FIELD: Code = Code {
    id: "SELU0306",
    name: "misplaced-field",
    severity: Severity::Error,
    rules: &["M6"],
    cause: "The field is known, but belongs one level up or down. Here it would be ignored.",
    cure: "Move it to where the message says.",
    example: r#"id: weather
image: example.com/weather:1
hosts: ["example.com:443"]
"#,
};

/// `unknown-field`.
pub static UNKNOWN_FIELD: Code = Code {
    id: "SELU0307",
    name: "unknown-field",
    severity: Severity::Warning,
    rules: &["M6"],
    cause: "The field is not part of the format. It has no effect.",
    cure: "Remove it, or begin its name with `x-` if it is your own.",
    example: "id: weather
image: example.com/weather:1
licence: MIT
",
};

/// `bad-id`.
pub static BAD_ID: Code = Code {
    id: "SELU0308",
    name: "bad-id",
    severity: Severity::Error,
    rules: &["L3"],
    cause: "Ids are lower-case letters, digits and hyphens, begin and end with a letter or digit, and have at most 63 characters.",
    cure: "Write an id of that form.",
    example: "id: My Weather
image: example.com/weather:1
",
};

/// `dynamic-with-tools`.
pub static DYNAMIC_WITH_TOOLS: Code = Code {
    id: "SELU0309",
    name: "dynamic-with-tools",
    severity: Severity::Error,
    rules: &["M1", "T4"],
    cause: "A dynamic capability lists its tools itself when it runs; tools in its manifest would contradict that.",
    cure: "Remove the tools, or `tool_source: dynamic`.",
    example: "id: weather
image: example.com/weather:1
tool_source: dynamic
tools:
  - name: forecast
    description: Tells the weather
    input_schema: {type: object}
",
};

/// `workspace-needs-environment`.
pub static WORKSPACE_CLASS: Code = Code {
    id: "SELU0310",
    name: "workspace-needs-environment",
    severity: Severity::Error,
    rules: &["M2"],
    cause: "Only a stateful capability, `class: environment`, may own a workspace.",
    cure: "Write `class: environment`, or `filesystem: temp`.",
    example: "id: weather
image: example.com/weather:1
filesystem: workspace
",
};

/// `cache-needs-environment`.
pub static CACHE_CLASS: Code = Code {
    id: "SELU0311",
    name: "cache-needs-environment",
    severity: Severity::Error,
    rules: &["M3"],
    cause: "Only a stateful capability, `class: environment`, may keep a cache.",
    cure: "Write `class: environment`, or remove the cache.",
    example: "id: weather
image: example.com/weather:1
cache:
  enabled: true
",
};

/// `shared-needs-stateless`.
pub static SHARED_STATEFUL: Code = Code {
    id: "SELU0312",
    name: "shared-needs-stateless",
    severity: Severity::Error,
    rules: &["M4"],
    cause: "A shared capability serves every session from one container, so it must be stateless: `class: tool`, and no workspace.",
    cure: "Write `class: tool` without a workspace, or `sharing: {mode: exclusive}`.",
    example: "id: weather
image: example.com/weather:1
class: environment
sharing:
  mode: shared
",
};

/// `no-effect`.
pub static NO_EFFECT: Code = Code {
    id: "SELU0313",
    name: "no-effect",
    severity: Severity::Warning,
    rules: &["M1", "M4"],
    cause: "The field has no effect beside the others: `discovery_tool_name` without `tool_source: dynamic`, `max_concurrent` without `sharing.mode: shared`.",
    cure: "Remove it, or set the field that gives it a meaning.",
    example: "id: weather
image: example.com/weather:1
discovery_tool_name: list_tools
",
};

/// `duplicate-tool`.
pub static DUPLICATE_TOOL: Code = Code {
    id: "SELU0314",
    name: "duplicate-tool",
    severity: Severity::Error,
    rules: &["T2"],
    cause: "Two tools of a capability have the same name.",
    cure: "Rename or remove one.",
    example: "id: weather
image: example.com/weather:1
tools:
  - name: forecast
    description: Tells the weather
    input_schema: {type: object}
  - name: forecast
    description: Tells it again
    input_schema: {type: object}
",
};

/// `policy-disagrees`.
pub static POLICY_DISAGREES: Code = Code {
    id: "SELU0315",
    name: "policy-disagrees",
    severity: Severity::Warning,
    rules: &["T1"],
    cause: "`recommended_policy` and the older `requires_confirmation` say different things. `recommended_policy` wins.",
    cure: "Remove `requires_confirmation`.",
    example: "id: weather
image: example.com/weather:1
tools:
  - name: forecast
    description: Tells the weather
    input_schema: {type: object}
    requires_confirmation: true
    recommended_policy: allow
",
};

/// `duplicate-credential`.
pub static DUPLICATE_CREDENTIAL: Code = Code {
    id: "SELU0316",
    name: "duplicate-credential",
    severity: Severity::Error,
    rules: &["C1"],
    cause: "Two credentials of a capability have the same name.",
    cure: "Rename or remove one.",
    example: "id: weather
image: example.com/weather:1
credentials:
  - name: API_KEY
    scope: system
  - name: API_KEY
    scope: user
",
};
