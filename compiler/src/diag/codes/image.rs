//! Images (I): SELU0701–SELU0799.

use crate::diag::{Code, Severity};

/// Not an image reference.
pub static INVALID: Code = Code {
    id: "SELU0701",
    name: "image-invalid",
    severity: Severity::Error,
    rules: &["I0", "I1"],
    cause: "The text is not in the grammar of OCI image references: `[registry[:port]/]path[:tag][@sha256:…]`, with a path in lower case.",
    cure: "Write the reference as `docker pull` takes it. A package of npm or PyPI is not an image: name the image that contains it.",
    example: r#"image: "@acme/weather:1.0.0""#,
};

/// A package without a version.
pub static UNPINNED: Code = Code {
    id: "SELU0710",
    name: "package-unpinned",
    severity: Severity::Warning,
    rules: &["P5"],
    cause: "The image's Dockerfile or requirements file installs a package in no version, in a moving one such as `latest`, or in a range. The same source builds another program next week. Defaults of ARG and ENV are filled in.",
    cure: "Name one version: `npm install x@1.2.3`, `pip install x==1.2.3`, or install from a lock file.",
    example: "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\nagents/helper/agent.md:\n  You help.\nagents/helper/capabilities/weather/manifest.yaml:\n  id: weather\n  image: weather:1.0\nagents/helper/capabilities/weather/container/Dockerfile:\n  FROM node:22.1.0\n  ARG V=latest\n  RUN npm install weather-server@${V}\n",
};

/// Neither tag nor digest.
pub static UNTAGGED: Code = Code {
    id: "SELU0702",
    name: "image-untagged",
    severity: Severity::Warning,
    rules: &["I2"],
    cause: "Without tag and digest the reference means `:latest`. The lock pins what that is today, but a rebuild cannot know what it was.",
    cure: "Add a version as tag, and best a digest.",
    example: "image: ghcr.io/acme/weather",
};

/// A tag that moves by design.
pub static LATEST: Code = Code {
    id: "SELU0703",
    name: "image-latest",
    severity: Severity::Warning,
    rules: &["I2"],
    cause: "`latest` is another image tomorrow. The lock pins what it is today, but a rebuild cannot know what it was.",
    cure: "Write the version.",
    example: "image: ghcr.io/acme/weather:latest",
};

/// The codes of this family.
pub static ALL: &[&Code] = &[&UNPINNED, &INVALID, &UNTAGGED, &LATEST];
