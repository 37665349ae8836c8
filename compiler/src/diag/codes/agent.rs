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
    &STEP_WITHOUT_EFFECT,
    &STEP_DEFAULT,
    &LOCALE_FILES,
    &LOCALE_NAME,
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
    cause: "A schedule has six fields: second, minute, hour, day of the month, month, day of the week. Each is `*`, a number, a range `a-b`, a list `a,b`, or `*` or a range with a step `/n`; months and days of the week may be named by three letters, and both 0 and 7 are Sunday.",
    cure: "Write six such fields, such as `0 30 7 * * MON-FRI` for half past seven on weekdays.",
    example: "id: helper\nname: Helper\nautomation:\n  schedules:\n    - {id: morning, cron_expression: \"0 7 * * *\"}\n",
};

/// `step-without-effect`.
pub static STEP_WITHOUT_EFFECT: Code = Code {
    id: "SELU0808",
    name: "step-without-effect",
    severity: Severity::Warning,
    rules: &["A1"],
    cause: "An install step asks for a value that nothing stores or uses, tests nothing, or has a field that its type does not use.",
    cure: "Add `store_as`, name the step as `{{step_id}}` in a later request, add the `request`, or remove what has no effect.",
    example: "id: helper
name: Helper
install_steps:
  - {id: key, type: input, label: Key}
",
};

/// `step-default-refused`.
pub static STEP_DEFAULT: Code = Code {
    id: "SELU0809",
    name: "step-default-refused",
    severity: Severity::Warning,
    rules: &["A1"],
    cause: "The value that an install step offers is refused by its own `validation`.",
    cure: "Correct the default, or leave it out.",
    example: "id: helper
name: Helper
install_steps:
  - {id: server, type: input, label: Server, validation: url, default: example.com}
",
};

/// `locale-incomplete`.
pub static LOCALE_FILES: Code = Code {
    id: "SELU0810",
    name: "locale-incomplete",
    severity: Severity::Warning,
    rules: &["A3"],
    cause: "A supported locale lacks its files: `i18n/<locale>.yaml` and a translation of each prompt. Or the default locale is not a supported one, or one is listed twice.",
    cure: "Add the files, or take the locale from the list. A file of the language serves its regions: `de` for `de-AT`.",
    example: "id: helper
name: Helper
i18n: {default_locale: en, supported_locales: [en, de]}
",
};

/// `locale-names-nothing`.
pub static LOCALE_NAME: Code = Code {
    id: "SELU0811",
    name: "locale-names-nothing",
    severity: Severity::Warning,
    rules: &["A3"],
    cause: "A locale file translates an install step, schedule, capability, tool or credential that does not exist.",
    cure: "Correct the name, or remove the entry.",
    example: "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\nagents/helper/i18n/de.yaml:\n  install_steps:\n    key: {label: Schlüssel}\n",
};
