//! selu.toml: SELU0901–SELU0999.

use crate::diag::{Code, Severity};

/// The codes of this family.
pub static ALL: &[&Code] = &[
    &SYNTAX,
    &UNKNOWN_SETTING,
    &BAD_KEY,
    &NOT_AN_INSTANCE,
    &BAD_SUBNETS,
    &BAD_HOST,
    &BAD_PREPARE,
    &UNKNOWN_CODE,
    &ERROR_LOWERED,
    &LEVEL_TWICE,
    &BAD_RESOLVER,
    &PRIVATE_NEVER,
    &PRIVATE_NOT_LISTED,
    &LIMITS_WITHOUT_INSTANCE,
    &ACCEPTED_WITHOUT_REASON,
];

/// `toml-syntax`.
pub static SYNTAX: Code = Code {
    id: "SELU0901",
    name: "toml-syntax",
    severity: Severity::Error,
    rules: &[],
    cause: "The text is not TOML.",
    cure: "Fix the line that the message names.",
    example: "[project
",
};

/// `unknown-setting`.
pub static UNKNOWN_SETTING: Code = Code {
    id: "SELU0902",
    name: "unknown-setting",
    severity: Severity::Error,
    rules: &[],
    cause: "selu.toml holds a key that is not known. A misspelt policy or setting would be ignored.",
    cure: "Use the name that the message suggests, or remove it.",
    example: r#"[project]
nam = "demo"
"#,
};

/// `bad-instance-key`.
pub static BAD_KEY: Code = Code {
    id: "SELU0903",
    name: "bad-instance-key",
    severity: Severity::Error,
    rules: &["L3"],
    cause: "An instance is named `agent/capability`, and a tool in `[policy]` `agent/capability/tool`.",
    cure: "Write the key in that form, in quotes.",
    example: r#"[policy]
"weather" = "ask"
"#,
};

/// `setting-without-target`.
pub static NOT_AN_INSTANCE: Code = Code {
    id: "SELU0904",
    name: "setting-without-target",
    severity: Severity::Warning,
    rules: &["L3"],
    cause: "A setting names an instance or a tool that the project does not have. It has no effect.",
    cure: "Correct the name, or remove the line.",
    example: r#"[policy]
"helper/wether/forecast" = "ask"
"#,
};

/// `bad-subnets`.
pub static BAD_SUBNETS: Code = Code {
    id: "SELU0905",
    name: "bad-subnets",
    severity: Severity::Error,
    rules: &[],
    cause: "`[engine] subnets` is the private IPv4 range that the networks of containers are cut from, such as `10.213.0.0/16`, with a prefix between 8 and 24.",
    cure: "Write such a range.",
    example: r#"[engine]
subnets = "10.0.0.1"
"#,
};

/// `bad-engine-host`.
pub static BAD_HOST: Code = Code {
    id: "SELU0906",
    name: "bad-engine-host",
    severity: Severity::Error,
    rules: &[],
    cause: "`[engine] host` is an engine's address: `unix://`, `tcp://`, `http://`, `https://`, `ssh://` or `npipe://` and what follows.",
    cure: "Write such an address.",
    example: r#"[engine]
host = "localhost"
"#,
};

/// `empty-command`.
pub static BAD_PREPARE: Code = Code {
    id: "SELU0907",
    name: "empty-command",
    severity: Severity::Error,
    rules: &[],
    cause: "`prepare` is a command and its words; it is empty.",
    cure: "Write the command, or remove the line.",
    example: r#"[build."helper/weather"]
prepare = []
"#,
};

/// `unknown-code`.
pub static UNKNOWN_CODE: Code = Code {
    id: "SELU0910",
    name: "unknown-code",
    severity: Severity::Error,
    rules: &[],
    cause: "`[diagnostics]` gives a level to a code that does not exist.",
    cure: "Write the code, such as `SELU0702`, or its name, such as `image-latest`; `selu explain` knows both.",
    example: r#"[diagnostics]
"folder-name-difers" = "allow"
"#,
};

/// `error-lowered`.
pub static ERROR_LOWERED: Code = Code {
    id: "SELU0911",
    name: "error-lowered",
    severity: Severity::Error,
    rules: &[],
    cause: "`[diagnostics]` lowers an error. An error says that what is written cannot be carried out as it is, or that a guard would be ignored: no project can allow that. Only notes and warnings have levels.",
    cure: "Correct what the error names, and remove the line.",
    example: r#"[diagnostics]
"SELU0305" = "warning"
"#,
};

/// `level-given-twice`.
pub static LEVEL_TWICE: Code = Code {
    id: "SELU0912",
    name: "level-given-twice",
    severity: Severity::Error,
    rules: &[],
    cause: "`[diagnostics]` gives the same code a level twice, by its id and by its name.",
    cure: "Keep one of the two lines.",
    example: r#"[diagnostics]
"SELU0111" = "allow"
"folder-name-differs" = "error"
"#,
};

/// `bad-resolver`.
pub static BAD_RESOLVER: Code = Code {
    id: "SELU0913",
    name: "bad-resolver",
    severity: Severity::Error,
    rules: &["N8"],
    cause: "`[engine] resolvers` are the IPv4 addresses of the DNS servers that the gateway asks when a connection is made. A loopback address would be the gateway's own.",
    cure: "Write addresses that a container on the engine's host can reach, or remove the setting to use the engine's own.",
    example: r#"[engine]
resolvers = ["localhost"]
"#,
};

/// `private-never`.
pub static PRIVATE_NEVER: Code = Code {
    id: "SELU0914",
    name: "private-never",
    severity: Severity::Error,
    rules: &["N8"],
    cause: "`private` permits a destination that no setting opens: loopback, link-local and metadata addresses, and the containers' own networks.",
    cure: "Remove the entry.",
    example: r#"[network."helper/weather"]
private = ["169.254.169.254:80"]
"#,
};

/// `private-not-listed`.
pub static PRIVATE_NOT_LISTED: Code = Code {
    id: "SELU0915",
    name: "private-not-listed",
    severity: Severity::Error,
    rules: &["N8"],
    cause: "`private` permits private addresses for a host that the capability's manifest does not let it reach. The permission adds to the manifest's rules and never replaces them.",
    cure: "List the host in the manifest's `network.hosts`, or remove the entry.",
    example: r#"[network."helper/weather"]
private = ["db.corp.example:5432"]
"#,
};

/// `limits-without-instance`.
pub static LIMITS_WITHOUT_INSTANCE: Code = Code {
    id: "SELU0916",
    name: "limits-without-instance",
    severity: Severity::Error,
    rules: &["L3", "R1"],
    cause: "`[limits]` names an instance that the project does not have. A limit is a guard: one that guards nothing is never ignored.",
    cure: "Correct the name, or remove the table.",
    example: r#"[limits."helper/wether"]
max_memory_mb = 64
"#,
};

/// `accepted-without-reason`.
pub static ACCEPTED_WITHOUT_REASON: Code = Code {
    id: "SELU0917",
    name: "accepted-without-reason",
    severity: Severity::Error,
    rules: &[],
    cause: "`[[review.accepted]]` lets a change pass that would need a person. It names the change by its path, and says why it is right, for whoever reviews the acceptance.",
    cure: "Write `path` and `new` as `selu diff --format json` shows them, and a `reason`.",
    example: r#"[[review.accepted]]
instance = "helper/weather"
path = "network.hosts"
new = "api.example.com:443"
"#,
};
