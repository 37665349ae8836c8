//! Egress rules (N): SELU0501–SELU0599.

use crate::diag::{Code, Severity};

/// An entry that is no host.
pub static HOST_INVALID: Code = Code {
    id: "SELU0501",
    name: "host-invalid",
    severity: Severity::Error,
    rules: &["N2", "N5"],
    cause: "An entry is `host`, `host:port`, `*.host` or `*.host:port`. Anything else would have to be dropped or guessed, and an allowlist must do neither.",
    cure: "Write the host as the message shows it.",
    example: r#"network:
  mode: allowlist
  hosts: ["https://api.example.com/v1"]"#,
};

/// An entry whose port is no port.
pub static HOST_PORT: Code = Code {
    id: "SELU0502",
    name: "host-port-invalid",
    severity: Severity::Error,
    rules: &["N2", "N5"],
    cause: "A port is one plain decimal number from 1 to 65535.",
    cure: "Write one entry for each port; leave the port out where any port is meant.",
    example: r#"network:
  mode: allowlist
  hosts: ["api.example.com:https"]"#,
};

/// `*` for every host.
pub static HOST_BARE_WILDCARD: Code = Code {
    id: "SELU0503",
    name: "host-bare-wildcard",
    severity: Severity::Error,
    rules: &["N3", "N5"],
    cause: "A lone `*` would allow everything and make the list pointless.",
    cure: "List the hosts. Where every public name is really meant, write `mode: any`.",
    example: r#"network:
  mode: allowlist
  hosts: ["*:443"]"#,
};

/// A wildcard that is not a leading `*.`.
pub static HOST_WILDCARD: Code = Code {
    id: "SELU0504",
    name: "host-wildcard-invalid",
    severity: Severity::Error,
    rules: &["N3", "N5"],
    cause: "Only a leading `*.` is a wildcard: it covers every subdomain at any depth, and never the apex.",
    cure: "Write `*.example.com`, and `example.com` besides where the apex is needed.",
    example: r#"network:
  mode: allowlist
  hosts: ["api.*.com"]"#,
};

/// The container itself.
pub static HOST_LOCAL: Code = Code {
    id: "SELU0505",
    name: "host-local",
    severity: Severity::Warning,
    rules: &["N5", "N8"],
    cause: "`localhost` and loopback addresses mean the container itself there, which needs no rule, and never the machine that it runs on.",
    cure: "Remove the entry, or name the real host.",
    example: r#"network:
  mode: allowlist
  hosts: ["localhost:5432"]"#,
};

/// A wildcard over names that anyone can register.
pub static HOST_PUBLIC_SUFFIX: Code = Code {
    id: "SELU0506",
    name: "host-public-suffix",
    severity: Severity::Warning,
    rules: &["N5"],
    cause: "Below a public suffix anyone can register a name, so the wildcard allows more or less everybody.",
    cure: "List the domains that are needed.",
    example: r#"network:
  mode: allowlist
  hosts: ["*.com:443"]"#,
};

/// A wildcard over a suffix that a provider shares out.
pub static HOST_SHARED_SUFFIX: Code = Code {
    id: "SELU0513",
    name: "host-shared-suffix",
    severity: Severity::Note,
    rules: &["N5"],
    cause: "A provider gives names below this suffix to all of its customers, so data can be sent to an account of anyone's there.",
    cure: "List the names of your own accounts.",
    example: r#"network:
  mode: allowlist
  hosts: ["*.github.io:443"]"#,
};

/// An entry without a port.
pub static HOST_ANY_PORT: Code = Code {
    id: "SELU0507",
    name: "host-any-port",
    severity: Severity::Note,
    rules: &["N2", "N5"],
    cause: "An entry without a port allows every TCP port of the host.",
    cure: "Add the port, usually `:443`.",
    example: r#"network:
  mode: allowlist
  hosts: ["api.example.com"]"#,
};

/// An entry that changes nothing.
pub static HOST_COVERED: Code = Code {
    id: "SELU0508",
    name: "host-covered",
    severity: Severity::Warning,
    rules: &["N4", "N6"],
    cause: "Another entry allows all that this one allows.",
    cure: "Remove it, or remove the wider one.",
    example: r#"network:
  mode: allowlist
  hosts: ["*.example.com", "api.example.com:443"]"#,
};

/// No allowlist.
pub static ANY: Code = Code {
    id: "SELU0509",
    name: "network-any",
    severity: Severity::Warning,
    rules: &["M5", "N9"],
    cause: "`mode: any` lets the container speak to every public name on every TCP port.",
    cure: "Write `mode: allowlist` with the hosts that it needs.",
    example: r#"network:
  mode: any"#,
};

/// Hosts that `mode: any` ignores.
pub static ANY_WITH_HOSTS: Code = Code {
    id: "SELU0510",
    name: "network-any-with-hosts",
    severity: Severity::Warning,
    rules: &["M5"],
    cause: "`hosts` restricts nothing under `mode: any`.",
    cure: "Write `mode: allowlist`, or remove `hosts`.",
    example: r#"network:
  mode: any
  hosts: ["api.example.com:443"]"#,
};

/// Hosts that `mode: none` ignores.
pub static NONE_WITH_HOSTS: Code = Code {
    id: "SELU0511",
    name: "network-none-with-hosts",
    severity: Severity::Warning,
    rules: &["M5"],
    cause: "`hosts` opens nothing under `mode: none`, which is the default.",
    cure: "Write `mode: allowlist`, or remove `hosts`.",
    example: r#"network:
  hosts: ["api.example.com:443"]"#,
};

/// An allowlist without hosts.
pub static ALLOWLIST_EMPTY: Code = Code {
    id: "SELU0512",
    name: "network-allowlist-empty",
    severity: Severity::Warning,
    rules: &["M5"],
    cause: "An empty allowlist allows nothing, as `mode: none` does.",
    cure: "List the hosts, or write `mode: none`.",
    example: r#"network:
  mode: allowlist"#,
};

/// The codes of this family.
pub static ALL: &[&Code] = &[
    &HOST_INVALID,
    &HOST_PORT,
    &HOST_BARE_WILDCARD,
    &HOST_WILDCARD,
    &HOST_LOCAL,
    &HOST_PUBLIC_SUFFIX,
    &HOST_SHARED_SUFFIX,
    &HOST_ANY_PORT,
    &HOST_COVERED,
    &ANY,
    &ANY_WITH_HOSTS,
    &NONE_WITH_HOSTS,
    &ALLOWLIST_EMPTY,
];
