//! Layout of the directory (L): SELU0101–SELU0199.

use crate::diag::{Code, Severity};

/// The codes of this family.
pub static ALL: &[&Code] = &[
    &NO_PROJECT,
    &AMBIGUOUS_ROOT,
    &NO_MANIFEST,
    &NO_AGENT_FILE,
    &UNREADABLE,
    &BAD_LINK,
    &NOT_UTF8,
    &NOT_A_FILE,
    &FILE_TOO_LARGE,
    &BAD_CONTEXT,
    &FOLDER_NAME,
    &NO_AGENTS,
    &UNUSED_SHARED,
    &NO_PROMPT,
    &FILE_NAME,
    &UNREAD_FILE,
];

/// `no-project`.
pub static NO_PROJECT: Code = Code {
    id: "SELU0101",
    name: "no-project",
    severity: Severity::Error,
    rules: &["L1"],
    cause: "Nothing that compiles is in this directory: no `agents/`, no `selu.toml`, no `agent.yaml`, no `manifest.yaml`. It is never taken for an empty project.",
    cure: "Go to the project's directory, or name it.",
    example: "notes.txt:\n",
};

/// `ambiguous-root`.
pub static AMBIGUOUS_ROOT: Code = Code {
    id: "SELU0102",
    name: "ambiguous-root",
    severity: Severity::Error,
    rules: &["L1"],
    cause: "The directory is a project and an agent or a capability at the same time.",
    cure: "Move `agent.yaml` or `manifest.yaml` into a folder of its own below `agents/` or `capabilities/`.",
    example: "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\nagent.yaml:\n  id: other\n  name: Other\n",
};

/// `capability-without-manifest`.
pub static NO_MANIFEST: Code = Code {
    id: "SELU0103",
    name: "capability-without-manifest",
    severity: Severity::Error,
    rules: &["L4"],
    cause: "A folder below `capabilities/` has no `manifest.yaml`. It is not skipped: an agent would run with fewer tools than its author thinks.",
    cure: "Add `manifest.yaml`, or move the folder away.",
    example: "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\nagents/helper/capabilities/weather/prompt.md:\n  Ask for the city first.\n",
};

/// `agent-without-file`.
pub static NO_AGENT_FILE: Code = Code {
    id: "SELU0104",
    name: "agent-without-file",
    severity: Severity::Error,
    rules: &["L4"],
    cause: "A folder below `agents/` has no `agent.yaml`.",
    cure: "Add `agent.yaml`, or move the folder away.",
    example: "agents/helper/agent.md:\n  You help.\n",
};

/// `unreadable`.
pub static UNREADABLE: Code = Code {
    id: "SELU0105",
    name: "unreadable",
    severity: Severity::Error,
    rules: &["L4"],
    cause: "A file or folder cannot be read.",
    cure: "Fix its permissions.",
    example: "a manifest.yaml that only another user may read\n",
};

/// `bad-symlink`.
pub static BAD_LINK: Code = Code {
    id: "SELU0106",
    name: "bad-symlink",
    severity: Severity::Error,
    rules: &["L4"],
    cause: "A symbolic link leads out of the root, in a circle, or nowhere. What it stands for may differ from machine to machine.",
    cure: "Replace it by what it leads to.",
    example: "agents/helper -> /srv/helper\n",
};

/// `not-utf-8`.
pub static NOT_UTF8: Code = Code {
    id: "SELU0107",
    name: "not-utf-8",
    severity: Severity::Error,
    rules: &["L4"],
    cause: "A file's text or name is not UTF-8.",
    cure: "Save the file as UTF-8, or rename it.",
    example: "a manifest.yaml saved as Latin-1, with an umlaut in it\n",
};

/// `not-a-regular-file`.
pub static NOT_A_FILE: Code = Code {
    id: "SELU0108",
    name: "not-a-regular-file",
    severity: Severity::Error,
    rules: &["L4"],
    cause: "A pipe, socket or device stands where a file is expected, or a file where a folder is.",
    cure: "Replace it by a regular file or folder.",
    example: "manifest.yaml/\n",
};

/// `file-too-large`.
pub static FILE_TOO_LARGE: Code = Code {
    id: "SELU0109",
    name: "file-too-large",
    severity: Severity::Error,
    rules: &["L4"],
    cause: "A text file is larger than 8 MiB.",
    cure: "Make it smaller.",
    example: "a manifest.yaml of 9 MiB\n",
};

/// `bad-build-context`.
pub static BAD_CONTEXT: Code = Code {
    id: "SELU0110",
    name: "bad-build-context",
    severity: Severity::Error,
    rules: &["L4"],
    cause: "The folder that builds the image cannot be hashed: it holds a symbolic link or a special file, more than 10,000 files, more than 256 MiB, or a pattern in `.dockerignore` is malformed.",
    cure: "Remove what the message names, or exclude it in `.dockerignore`.",
    example: "manifest.yaml:\n  id: weather\n  image: example.com/weather:1\ncontainer/Dockerfile:\n  FROM scratch\ncontainer/lib -> /usr/lib\n",
};

/// `folder-name-differs`.
pub static FOLDER_NAME: Code = Code {
    id: "SELU0111",
    name: "folder-name-differs",
    severity: Severity::Warning,
    rules: &["L4"],
    cause: "The folder is not named like the id of what it holds.",
    cure: "Rename the folder or change the id.",
    example: "agents/weather/agent.yaml:\n  id: helper\n  name: Helper\n",
};

/// `no-agents`.
pub static NO_AGENTS: Code = Code {
    id: "SELU0112",
    name: "no-agents",
    severity: Severity::Warning,
    rules: &["L1"],
    cause: "The project has no agent, so its plan is empty.",
    cure: "Add a folder with `agent.yaml` below `agents/`.",
    example: "agents/\n",
};

/// `unused-shared-capability`.
pub static UNUSED_SHARED: Code = Code {
    id: "SELU0113",
    name: "unused-shared-capability",
    severity: Severity::Warning,
    rules: &["L2"],
    cause: "No agent names this shared capability, so it never runs.",
    cure: "Name it under `capabilities:` in an `agent.yaml`, or remove it.",
    example: "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\ncapabilities/weather/manifest.yaml:\n  id: weather\n  image: example.com/weather:1\n",
};

/// `agent-without-prompt`.
pub static NO_PROMPT: Code = Code {
    id: "SELU0114",
    name: "agent-without-prompt",
    severity: Severity::Warning,
    rules: &["A5"],
    cause: "An agent that has capabilities has no `agent.md`, its system prompt.",
    cure: "Add `agent.md` beside `agent.yaml`.",
    example: "agents/helper/agent.yaml:\n  id: helper\n  name: Helper\nagents/helper/capabilities/weather/manifest.yaml:\n  id: weather\n  image: example.com/weather:1\n",
};

/// `file-name-misspelt`.
pub static FILE_NAME: Code = Code {
    id: "SELU0115",
    name: "file-name-misspelt",
    severity: Severity::Error,
    rules: &["L4"],
    cause: "A file or folder is named nearly like one that is read, such as `manifest.yml`, `Manifest.yaml` or `capability/`.",
    cure: "Rename it.",
    example: "agents/helper/agent.yml:\n  id: helper\n  name: Helper\n",
};

/// `unread-file`.
pub static UNREAD_FILE: Code = Code {
    id: "SELU0116",
    name: "unread-file",
    severity: Severity::Warning,
    rules: &["L4"],
    cause: "A YAML file lies directly in `agents/` or `capabilities/`, where only folders are read, or something else than `<locale>.yaml` in `i18n/`.",
    cure: "Move it into a folder of its own, as `agent.yaml` or `manifest.yaml`.",
    example: "agents/helper.yaml:\n  id: helper\n  name: Helper\n",
};
