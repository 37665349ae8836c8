//! Credentials (C): SELU0601–SELU0699.

use crate::diag::{Code, Severity};

/// A name that is no environment variable.
pub static NAME_INVALID: Code = Code {
    id: "SELU0601",
    name: "cred-name-invalid",
    severity: Severity::Error,
    rules: &["C1"],
    cause: "A credential reaches programs as an environment variable, so its name has letters, digits and underscores and does not begin with a digit.",
    cure: "Rename it, usually in upper case: `API_KEY`.",
    example: r#"credentials:
  - name: api.key
    scope: system"#,
};

/// A name that steers the process itself.
pub static NAME_RESERVED: Code = Code {
    id: "SELU0602",
    name: "cred-name-reserved",
    severity: Severity::Error,
    rules: &["C1"],
    cause: "A variable of this name changes how programs start, load code or speak gRPC, so a value given to it would be more than a secret.",
    cure: "Choose a name of the service, such as `ACME_TOKEN`.",
    example: r#"credentials:
  - name: LD_PRELOAD
    scope: system"#,
};

/// A proxy variable.
pub static NAME_PROXY: Code = Code {
    id: "SELU0603",
    name: "cred-name-proxy",
    severity: Severity::Warning,
    rules: &["C1", "N7"],
    cause: "Proxy variables have no effect on what is reachable: the egress gateway decides anyway.",
    cure: "Declare the hosts under `network`, and remove the credential.",
    example: r#"credentials:
  - name: HTTPS_PROXY
    scope: system"#,
};

/// The codes of this family.
pub static ALL: &[&Code] = &[&NAME_INVALID, &NAME_RESERVED, &NAME_PROXY];
