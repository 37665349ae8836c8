//! agent.yaml (A) and its capabilities (L2, L3): SELU0801–SELU0899.

use crate::diag::{Code, Severity};

/// The codes of this family.
pub static ALL: &[&Code] = &[
    &CAPABILITY_NOT_FOUND,
    &CAPABILITY_TWICE,
    &DUPLICATE_AGENT,
    &DUPLICATE_ENTRY,
    &STEP_NOT_FOUND,
    &STORE_AS,
    &BAD_CRON,
];

/// `capability-not-found`.
pub static CAPABILITY_NOT_FOUND: Code = Code {
    id: "SELU0801",
    name: "capability-not-found",
    severity: Severity::Error,
    rules: &["L2"],
    cause: "The agent names a capability that exists neither in its own `capabilities/` nor in the project's.",
    cure: "Correct the id, or add the capability.",
    example: "id: helper
name: Helper
capabilities:
  - id: wether
",
};

/// `capability-in-both-places`.
pub static CAPABILITY_TWICE: Code = Code {
    id: "SELU0802",
    name: "capability-in-both-places",
    severity: Severity::Error,
    rules: &["L2", "L3"],
    cause: "The agent has two capabilities with the same id: one of its own and a shared one, two of its own, or a shared one named twice.",
    cure: "Rename or remove one of them.",
    example: "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\n  capabilities: [{id: weather}]\nagents/helper/capabilities/weather/manifest.yaml:\n  id: weather\n  image: example.com/weather:1\ncapabilities/weather/manifest.yaml:\n  id: weather\n  image: example.com/weather:2\n",
};

/// `duplicate-agent`.
pub static DUPLICATE_AGENT: Code = Code {
    id: "SELU0803",
    name: "duplicate-agent",
    severity: Severity::Error,
    rules: &["L3"],
    cause: "Two agents of the project have the same id.",
    cure: "Change one of the ids.",
    example: "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\nagents/other/agent.yaml:\n  id: helper\n  name: Other\n",
};

/// `duplicate-entry`.
pub static DUPLICATE_ENTRY: Code = Code {
    id: "SELU0804",
    name: "duplicate-entry",
    severity: Severity::Error,
    rules: &["A1"],
    cause: "Two install steps, or two schedules, have the same id.",
    cure: "Change one of the ids.",
    example: "id: helper
name: Helper
install_steps:
  - {id: key, type: input, label: Key}
  - {id: key, type: input, label: Other key}
",
};

/// `step-not-found`.
pub static STEP_NOT_FOUND: Code = Code {
    id: "SELU0805",
    name: "step-not-found",
    severity: Severity::Error,
    rules: &["A1"],
    cause: "`depends_on` or a `{{placeholder}}` in a request URL names no step, or one that comes later.",
    cure: "Name an earlier step.",
    example: "id: helper
name: Helper
install_steps:
  - {id: key, type: input, label: Key, depends_on: [url]}
",
};

/// `store-as-not-found`.
pub static STORE_AS: Code = Code {
    id: "SELU0806",
    name: "store-as-not-found",
    severity: Severity::Error,
    rules: &["A1"],
    cause: "`store_as` names a capability or credential that the agent does not have, or one of the other scope.",
    cure: "Name a credential that the capability's manifest declares, with its scope.",
    example: "id: helper
name: Helper
install_steps:
  - id: key
    type: input
    label: Key
    store_as: {scope: system_credential, capability_id: weather, credential_name: API_KEY}
",
};

/// `bad-cron-expression`.
pub static BAD_CRON: Code = Code {
    id: "SELU0807",
    name: "bad-cron-expression",
    severity: Severity::Error,
    rules: &["A2"],
    cause: "A schedule has six fields: second, minute, hour, day of the month, month, day of the week. Each is `*`, a number, a range `a-b`, a list `a,b`, or one of these with a step `/n`; months and days of the week may be named by three letters.",
    cure: "Write six such fields, such as `0 30 7 * * MON-FRI` for half past seven on weekdays.",
    example: "id: helper\nname: Helper\nautomation:\n  schedules:\n    - {id: morning, cron_expression: \"0 7 * * *\"}\n",
};
