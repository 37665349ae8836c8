//! The texts of the files.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::{Source, Wrapper, as_id};

/// The bridge in the image.
pub(super) const BRIDGE: &str = "/usr/local/bin/selu";

/// Tools that a prompt names, of each kind.
const LISTED: usize = 12;

/// The Python that a wrapper of a package of PyPI runs on.
const PYTHON: &str = "3.12";

/// What stands where an image's own command belongs, which no catalogue tells.
const UNKNOWN_COMMAND: &str = "/the-command-of-the-image";

/// Everything below `agents/`.
pub(super) fn of(wrapper: &Wrapper) -> BTreeMap<Utf8PathBuf, String> {
    let id = &wrapper.id;
    let agent = Utf8PathBuf::from(format!("agents/{id}"));
    let capability = agent.join(format!("capabilities/{id}"));
    BTreeMap::from([
        (agent.join("agent.yaml"), agent_yaml(wrapper)),
        (agent.join("agent.md"), agent_md(wrapper)),
        (capability.join("manifest.yaml"), manifest(wrapper)),
        (capability.join("prompt.md"), prompt(wrapper)),
        (capability.join("container/Dockerfile"), dockerfile(wrapper)),
    ])
}

/// A project's settings, where there are none.
pub(super) fn settings(project: &Utf8Path) -> String {
    let folder = project.canonicalize_utf8().ok();
    let name = folder.as_deref().and_then(Utf8Path::file_name);
    let name = as_id(name.unwrap_or("agents"));
    format!(
        "[project]\nname = \"{name}\"\n\n[discovery]\n# Added and changed tools wait until `selu lock --accept`.\non_change = \"hold\"\n"
    )
}

/// How the image gets the bridge, and what it installs: images are built without a network.
pub(super) fn section(wrapper: &Wrapper) -> String {
    let id = &wrapper.id;
    let (what, fetch) = match &wrapper.source {
        Source::Npm { package, version } => (
            " The package and what it needs are fetched here and installed from there.",
            format!(
                " &&\n  npm install --cache \"$SELU_BUILD_OUT/npm\" --prefix \"$SELU_BUILD_OUT/tree\" --os=linux --ignore-scripts --omit=dev --no-audit --no-fund {} &&\n  \
                 echo \"registry=$(npm config get registry)\" >\"$SELU_BUILD_OUT/npm/npmrc\" &&\n  rm -r \"$SELU_BUILD_OUT/tree\"",
                with_version(package, "@", version.as_deref())
            ),
        ),
        Source::Pypi { package, version } => (
            " The package and what it needs are fetched here and installed from there.",
            format!(
                " &&\n  python3 -m pip download --only-binary=:all: --python-version {PYTHON} --dest \"$SELU_BUILD_OUT/wheels\" {}",
                with_version(package, "==", version.as_deref())
            ),
        ),
        Source::Image { .. } => ("", String::new()),
        Source::Url { .. } => (
            " It believes the TLS servers that this machine believes.",
            " &&\n  cp \"${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}\" \"$SELU_BUILD_OUT/ca-certificates.crt\""
                .to_owned(),
        ),
    };
    format!(
        "[build.\"{id}/{id}\"]\n# The bridge is `selu` itself, a static executable.{what}\nprepare = [\"sh\", \"-c\", '''\n  cp \"$(command -v selu)\" \"$SELU_BUILD_OUT/selu\"{fetch}\n''']\n"
    )
}

/// A text as YAML has it in double quotes, which JSON's strings are.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// On one line, for comments and headings.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn agent_yaml(wrapper: &Wrapper) -> String {
    format!(
        "id: {}\nname: {}\nsession:\n  trigger: mention\n  idle_timeout_minutes: 30\nmemory:\n  policy: none\n  top_k: 0\n",
        wrapper.id,
        quoted(&line(&wrapper.title))
    )
}

fn agent_md(wrapper: &Wrapper) -> String {
    format!(
        "You help with {}.\n\nUse the tools of `{}`. Say so when one fails, in its own words, and invent nothing.\n",
        line(&wrapper.title),
        wrapper.id
    )
}

fn prompt(wrapper: &Wrapper) -> String {
    let about = line(&wrapper.description);
    let order = order(wrapper);
    let about = if about.is_empty() {
        format!(
            "The tools of {} come from an MCP server.",
            line(&wrapper.title)
        )
    } else {
        about
    };
    format!("{about}\n\n{order}")
}

/// Which tools come first, and what is asked before a change (P6).
fn order(wrapper: &Wrapper) -> String {
    let names = |reads: bool| {
        let mut names = wrapper.tools.iter().filter(|tool| tool.reads == reads);
        let mut listed: Vec<String> = names
            .by_ref()
            .take(LISTED)
            .map(|tool| format!("`{}`", tool.name))
            .collect();
        if names.next().is_some() {
            listed.push("…".to_owned());
        }
        listed.join(", ")
    };
    let (reading, changing) = (names(true), names(false));
    let mut text = match (reading.as_str(), wrapper.tools.is_empty()) {
        ("", true) => "Look first: call the tools that only read before one that changes something, and take names and ids from their\n\
                       results, never from memory."
            .to_owned(),
        ("", false) => "Take names and ids from results, never from memory.".to_owned(),
        (reading, _) => format!(
            "Look first: these tools only read: {reading}. Take names and ids from their results, never from memory."
        ),
    };
    text.push_str(match changing.as_str() {
        "" => "",
        _ => "\n\nThe server does not say of these that they only read: ",
    });
    if !changing.is_empty() {
        text.push_str(&changing);
        text.push('.');
    }
    if changing.is_empty() && !wrapper.tools.is_empty() {
        text.push('\n');
        return text;
    }
    text.push_str(" Before a call that changes or deletes, say what will change and ask.\n");
    text
}

fn manifest(wrapper: &Wrapper) -> String {
    let id = &wrapper.id;
    let mut text = format!(
        "id: {id}\nclass: tool\nimage: selu-cap-{id}:1\n\n# The MCP server says which tools there are; `selu lock` writes them down.\n\
         tool_source: dynamic\ndiscovery_tool_name: list_tools\n\n"
    );
    if wrapper.hosts.is_empty() {
        text.push_str(
            "# Nothing is reachable. After a call that failed for this, `selu egress --suggest` proposes the rules.\nnetwork:\n  mode: none\n",
        );
    } else {
        text.push_str("network:\n  mode: allowlist\n  hosts:\n");
        for host in &wrapper.hosts {
            text.push_str(&format!("    - {}\n", quoted(host)));
        }
    }
    if !wrapper.proposed_hosts.is_empty() {
        text.push_str("  # The server named these when it was asked for its tools; allow what it has to reach.\n");
        for host in &wrapper.proposed_hosts {
            text.push_str(&format!("  # - {}\n", quoted(host)));
        }
    }
    text.push_str("\nfilesystem: temp\n");
    if !wrapper.credentials.is_empty() {
        text.push_str("\n# One value for all; `scope: user` asks every user for one, and runs a container for each.\ncredentials:\n");
        for credential in &wrapper.credentials {
            text.push_str(&format!(
                "  - name: {}\n    scope: system\n    required: {}\n    description: {}\n",
                credential.name,
                credential.required,
                quoted(&line(&credential.description))
            ));
        }
    }
    text.push_str("\nresources:\n  max_memory_mb: 256\n  max_cpu_fraction: 1.0\n  max_cpu_seconds: 30\n  pids_limit: 64\n");
    text
}

fn dockerfile(wrapper: &Wrapper) -> String {
    let (base, install) = match &wrapper.source {
        Source::Npm { package, version } => (
            "node:22-slim".to_owned(),
            format!(
                "COPY npm /tmp/npm\nRUN npm install --global --offline --cache=/tmp/npm --userconfig=/tmp/npm/npmrc --omit=dev --no-audit --no-fund {}\n",
                with_version(package, "@", version.as_deref())
            ),
        ),
        Source::Pypi { package, version } => (
            format!("python:{PYTHON}-slim"),
            format!(
                "COPY wheels /tmp/wheels\nRUN pip install --no-cache-dir --no-index --find-links=/tmp/wheels {}\n",
                with_version(package, "==", version.as_deref())
            ),
        ),
        Source::Image { image } => (image.clone(), String::new()),
        Source::Url { url, headers } => return dockerfile_of_url(url, headers),
    };
    let command = command(wrapper);
    let hint = if command
        .first()
        .is_some_and(|program| program == UNKNOWN_COMMAND)
    {
        format!(
            "# What the image runs by itself is not known here: put it in the place of {UNKNOWN_COMMAND}. It is what\n\
             # `docker image inspect --format '{{{{json .Config.Entrypoint}}}} {{{{json .Config.Cmd}}}}' {base}` prints.\n"
        )
    } else {
        String::new()
    };
    let entry = serde_json::Value::from(entry(&wrapper.placeholders, &command)).to_string();
    format!(
        "FROM {base}\n{install}COPY selu /usr/local/bin/selu\n# The container's root is read-only; /tmp is what is writable.\nENV HOME=/tmp\n{hint}ENTRYPOINT {entry}\n"
    )
}

/// Nothing is in it but the bridge.
fn dockerfile_of_url(url: &str, headers: &[String]) -> String {
    let mut entry = vec![BRIDGE, "mcp-bridge", "--url", url];
    for header in headers {
        entry.extend(["--header", header]);
    }
    let entry = serde_json::Value::from(entry).to_string();
    format!(
        "FROM scratch\nCOPY selu {BRIDGE}\nCOPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt\nENTRYPOINT {entry}\n"
    )
}

/// Program and arguments of the server.
pub(super) fn command(wrapper: &Wrapper) -> Vec<String> {
    let mut command = wrapper.command.clone();
    if command.first().is_none_or(String::is_empty) {
        let program = match &wrapper.source {
            // Most packages name their program after themselves.
            Source::Npm { package, .. } => package.rsplit('/').next().unwrap_or(package),
            Source::Pypi { package, .. } => package,
            Source::Image { .. } => UNKNOWN_COMMAND,
            Source::Url { .. } => return Vec::new(),
        };
        let arguments = command.split_off(command.len().min(1));
        command = [vec![program.to_owned()], arguments].concat();
    }
    command
}

/// What the image runs.
fn entry(placeholders: &[String], command: &[String]) -> Vec<String> {
    let mut entry = vec![BRIDGE.to_owned(), "mcp-bridge".to_owned()];
    for name in placeholders {
        entry.extend(["--placeholder".to_owned(), name.clone()]);
    }
    entry.push("--".to_owned());
    entry.extend(command.iter().cloned());
    entry
}

fn with_version(package: &str, between: &str, version: Option<&str>) -> String {
    match version {
        Some(version) => format!("{package}{between}{version}"),
        None => package.to_owned(),
    }
}
