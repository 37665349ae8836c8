//! Public catalogues and clients' settings, read into wrappers. What an entry has and a capability cannot is a note; what
//! cannot be a capability is refused by name.

use camino::Utf8Path;
use selu_compiler::check::credential;
use selu_compiler::diag::Diagnostic;
use selu_compiler::yaml;
use selu_compiler::yaml::node::{Data, Node};
use selu_compiler::yaml::scalar::Kind;
use serde_json::{Map, Value};

use super::{Credential, Source, Wrapper, as_id, command};

/// Which shape a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Catalogue {
    /// `{"mcpServers": {NAME: {command, args, env}}}`, as clients have it.
    McpJson,
    /// A `server.yaml` of the Docker MCP registry.
    DockerMcp,
    /// A `spec.yaml` of the ToolHive registry, or its `registry.json`.
    Toolhive,
}

/// An entry that becomes a capability.
#[derive(Debug)]
pub struct Imported {
    /// The capability.
    pub wrapper: Wrapper,
    /// What was left out, and what is still to be done.
    pub notes: Vec<String>,
}

/// An entry that does not.
#[derive(Debug)]
pub struct Refused {
    /// Its name in the catalogue.
    pub name: String,
    /// Why.
    pub reason: String,
}

type Outcome = Result<Imported, Refused>;

/// Reads a file: every entry, or why it is no such file.
pub fn import(catalogue: Catalogue, file: &Utf8Path, text: &str) -> Result<Vec<Outcome>, String> {
    let document = document(file, text)?;
    match catalogue {
        Catalogue::McpJson => {
            let servers = document
                .get("mcpServers")
                .or_else(|| document.get("servers"))
                .and_then(Value::as_object)
                .ok_or("it has no object `mcpServers`")?;
            Ok(servers
                .iter()
                .map(|(name, entry)| mcp_json(name, entry))
                .collect())
        }
        Catalogue::DockerMcp => {
            let name =
                text_of(&document, "name").ok_or("it has no `name`, so it is no server.yaml")?;
            Ok(vec![docker_mcp(&name, &document)])
        }
        Catalogue::Toolhive => match document.get("servers").and_then(Value::as_object) {
            Some(servers) => Ok(servers
                .iter()
                .map(|(name, entry)| toolhive(name, entry))
                .collect()),
            None => {
                let folder = file.parent().and_then(Utf8Path::file_name);
                let name = text_of(&document, "name")
                    .or_else(|| folder.map(str::to_owned))
                    .ok_or("it has no `name`, so it is no spec.yaml")?;
                Ok(vec![toolhive(&name, &document)])
            }
        },
    }
}

/// JSON and YAML alike, through the guard that reads all YAML here.
fn document(file: &Utf8Path, text: &str) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let (document, findings) = yaml::read(file, text);
    match document {
        Some(document) => Ok(plain(&document.root)),
        None => Err(findings
            .first()
            .map_or_else(|| "it is empty".to_owned(), place_and_message)),
    }
}

fn place_and_message(finding: &Diagnostic) -> String {
    format!("line {}: {}", finding.place.origin.line, finding.message)
}

/// Values without places. Numbers stay texts: nothing here counts.
fn plain(node: &Node) -> Value {
    match &node.data {
        Data::Scalar(scalar) => match scalar.kind {
            Kind::Null => Value::Null,
            Kind::Bool => Value::Bool(scalar.text.eq_ignore_ascii_case("true")),
            Kind::Int | Kind::Float | Kind::String => Value::from(scalar.text.clone()),
        },
        Data::List(items) => items.iter().map(plain).collect(),
        Data::Map(map) => {
            let entries = map.entries().iter();
            let entries = entries.map(|entry| (entry.key.clone(), plain(&entry.value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}

fn text_of(value: &Value, field: &str) -> Option<String> {
    match value.get(field)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        _ => None,
    }
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn texts(value: &Value, pointer: &str) -> Vec<String> {
    list(value, pointer)
        .map(|item| {
            item.as_str()
                .map_or_else(|| item.to_string(), str::to_owned)
        })
        .collect()
}

fn refused(name: &str, reason: impl Into<String>) -> Refused {
    Refused {
        name: name.to_owned(),
        reason: reason.into(),
    }
}

fn finish(name: &str, wrapper: Wrapper, mut notes: Vec<String>) -> Outcome {
    let (wrapper, more) = wrapper
        .settle()
        .map_err(|error| refused(name, error.to_string()))?;
    notes.extend(more);
    if wrapper.hosts.is_empty() {
        notes.push("no host is known, so it reaches nothing yet; see its manifest".to_owned());
    }
    Ok(Imported { wrapper, notes })
}

/// Values of `env` are secrets as often as not: none is copied.
fn mcp_json(name: &str, entry: &Value) -> Outcome {
    let Some(program) = text_of(entry, "command") else {
        let Some(url) = text_of(entry, "url") else {
            return Err(refused(name, "it has no `command` and no `url`"));
        };
        let kind = text_of(entry, "type").or_else(|| text_of(entry, "transport"));
        if kind.is_some_and(|kind| kind.contains("sse")) {
            return Err(refused(name, SSE));
        }
        let mut notes = Vec::new();
        let headers = headers(entry, &mut notes);
        return far(name, name, "", &url, &headers, Vec::new(), notes);
    };
    let started =
        command::read(&program, &texts(entry, "/args")).map_err(|reason| refused(name, reason))?;
    let mut notes = started.notes;
    if let Source::Npm { package, .. } = &started.source
        && started.command.first().is_none_or(String::is_empty)
    {
        notes.push(format!(
            "its program is taken to be called as the package is; `npm view {package} bin` says what it is called"
        ));
    }
    let variables = entry.get("env").and_then(Value::as_object);
    let variables = variables.into_iter().flat_map(Map::keys).cloned();
    let credentials: Vec<Credential> = variables
        .chain(started.variables)
        .map(|name| Credential {
            description: format!("The client's setting {name}"),
            name,
            required: true,
        })
        .collect();
    if !credentials.is_empty() {
        notes.push("values of `env` are not copied; `selu credentials set` takes them".to_owned());
    }
    if started.command.len() > 1 {
        notes.push("its arguments are in its Dockerfile: none of them may be a secret".to_owned());
    }
    let wrapper = Wrapper {
        id: as_id(name),
        title: name.to_owned(),
        description: String::new(),
        source: started.source,
        command: started.command,
        credentials,
        hosts: Vec::new(),
        placeholders: Vec::new(),
        proposed_hosts: Vec::new(),
        tools: Vec::new(),
    };
    finish(name, wrapper, notes)
}

fn docker_mcp(name: &str, entry: &Value) -> Outcome {
    match entry.get("type").and_then(Value::as_str) {
        Some("server") => {}
        Some("remote") => return docker_remote(name, entry),
        other => {
            return Err(refused(
                name,
                format!("its type is {}", other.unwrap_or("missing")),
            ));
        }
    }
    let image = text_of(entry, "image").ok_or_else(|| refused(name, "it has no `image`"))?;
    let source = Source::image(&image).map_err(|error| refused(name, error.to_string()))?;
    let (title, description) = about(name, entry);
    let mut notes = Vec::new();
    if list(entry, "/run/volumes").next().is_some() {
        notes.push(
            "its volumes are left out: a container gets none of the machine's folders".to_owned(),
        );
    }
    let mut arguments = texts(entry, "/run/command");
    if arguments.iter().any(|word| word.contains("{{")) {
        arguments.retain(|word| !word.contains("{{"));
        notes.push("arguments with settings of the catalogue ({{…}}) are left out".to_owned());
    }
    let wrapper = Wrapper {
        id: as_id(name),
        title,
        description,
        source,
        command: std::iter::once(String::new()).chain(arguments).collect(),
        credentials: docker_credentials(entry),
        hosts: texts(entry, "/run/allowHosts"),
        placeholders: Vec::new(),
        proposed_hosts: Vec::new(),
        tools: Vec::new(),
    };
    finish(name, wrapper, notes)
}

fn about(name: &str, entry: &Value) -> (String, String) {
    let text = |pointer| entry.pointer(pointer).and_then(Value::as_str);
    (
        text("/about/title").unwrap_or(name).to_owned(),
        text("/about/description").unwrap_or_default().to_owned(),
    )
}

fn docker_credentials(entry: &Value) -> Vec<Credential> {
    let secrets = list(entry, "/config/secrets").map(|secret| (secret, true));
    let variables = list(entry, "/config/env").map(|variable| (variable, false));
    secrets
        .chain(variables)
        .filter_map(|(item, secret)| {
            let name = text_of(item, if secret { "env" } else { "name" })?;
            let required = secret && item.get("required") != Some(&Value::Bool(false));
            let description = text_of(item, "description").unwrap_or_default();
            Some(Credential {
                name,
                required,
                description,
            })
        })
        .collect()
}

fn docker_remote(name: &str, entry: &Value) -> Outcome {
    let remote = entry.get("remote").unwrap_or(&Value::Null);
    match text_of(remote, "transport_type").as_deref() {
        Some("streamable-http") => {}
        _ => return Err(refused(name, SSE)),
    }
    let url = text_of(remote, "url").ok_or_else(|| refused(name, "it has no `url`"))?;
    let mut notes = Vec::new();
    if list(entry, "/oauth").next().is_some() {
        notes.push(
            "it wants a log-in by OAuth, which a capability has not; a token of another kind goes into a header"
                .to_owned(),
        );
    }
    let headers = headers(remote, &mut notes);
    let (title, description) = about(name, entry);
    far(
        name,
        &title,
        &description,
        &url,
        &headers,
        docker_credentials(entry),
        notes,
    )
}

/// What is said of servers by the transport that the protocol had before.
const SSE: &str = "it is reached by SSE, which the protocol gave up; only standard streams and Streamable HTTP are bridged";

/// `headers` of an entry. A value is a secret as often as not: what is no reference to a credential becomes one.
fn headers(entry: &Value, notes: &mut Vec<String>) -> Vec<String> {
    let headers = entry.get("headers").and_then(Value::as_object);
    let mut lines = Vec::new();
    for (name, value) in headers.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let (scheme, secret) = value.split_once(' ').unwrap_or(("", value));
        let inner = secret
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'));
        let inner = inner.filter(|inner| credential::name(inner).is_empty());
        let own = name.to_ascii_uppercase().replace('-', "_");
        if inner.is_none() {
            notes.push(format!("the value of the header {name} is not copied; `selu credentials set` takes it as {own}"));
        }
        let credential = inner.unwrap_or(&own);
        let known = ["Bearer", "Basic", "Token"].contains(&scheme);
        let scheme = if known {
            format!("{scheme} ")
        } else {
            String::new()
        };
        lines.push(format!("{name}: {scheme}${{{credential}}}"));
    }
    lines
}

/// A server that runs elsewhere. `known` says more of credentials than its headers do.
fn far(
    name: &str,
    title: &str,
    description: &str,
    url: &str,
    headers: &[String],
    known: Vec<Credential>,
    mut notes: Vec<String>,
) -> Outcome {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    if plain != url {
        notes.push("the URL's query is left out: it may hold a key".to_owned());
    }
    let (source, rule, credentials) =
        Source::url(plain, headers).map_err(|error| refused(name, error.to_string()))?;
    let credentials = credentials
        .into_iter()
        .map(|own| {
            known
                .iter()
                .find(|one| one.name == own.name)
                .cloned()
                .unwrap_or(own)
        })
        .collect();
    let wrapper = Wrapper {
        id: as_id(name),
        title: title.to_owned(),
        description: description.to_owned(),
        source,
        command: Vec::new(),
        credentials,
        hosts: vec![rule],
        placeholders: Vec::new(),
        proposed_hosts: Vec::new(),
        tools: Vec::new(),
    };
    finish(name, wrapper, notes)
}

fn toolhive(name: &str, entry: &Value) -> Outcome {
    match text_of(entry, "transport").as_deref() {
        Some("stdio") => {}
        Some("streamable-http") if entry.get("url").is_some() => {
            let url = text_of(entry, "url").unwrap_or_default();
            let headers: Vec<String> = list(entry, "/headers")
                .filter_map(|header| text_of(header, "name"))
                .map(|name| {
                    let own = name.to_ascii_uppercase().replace('-', "_");
                    format!("{name}: ${{{own}}}")
                })
                .collect();
            let description = text_of(entry, "description").unwrap_or_default();
            return far(
                name,
                name,
                &description,
                &url,
                &headers,
                Vec::new(),
                Vec::new(),
            );
        }
        Some("sse") => return Err(refused(name, SSE)),
        other => {
            let other = other.unwrap_or("missing");
            return Err(refused(
                name,
                format!(
                    "its transport is {other} inside its own container; only standard streams and servers at a URL are bridged"
                ),
            ));
        }
    }
    let image = text_of(entry, "image").ok_or_else(|| refused(name, "it has no `image`"))?;
    let source = Source::image(&image).map_err(|error| refused(name, error.to_string()))?;
    let mut notes = Vec::new();
    let credentials = list(entry, "/env_vars")
        .filter_map(|variable| {
            Some(Credential {
                name: text_of(variable, "name")?,
                required: variable.get("required") == Some(&Value::Bool(true)),
                description: text_of(variable, "description").unwrap_or_default(),
            })
        })
        .collect();
    let ports = texts(entry, "/permissions/network/outbound/allow_port");
    let mut hosts = Vec::new();
    for host in texts(entry, "/permissions/network/outbound/allow_host") {
        // A leading dot means every subdomain there.
        let host = host
            .strip_prefix('.')
            .map_or_else(|| host.clone(), |rest| format!("*.{rest}"));
        if ports.is_empty() {
            hosts.push(host);
        } else {
            hosts.extend(ports.iter().map(|port| format!("{host}:{port}")));
        }
    }
    if entry.pointer("/permissions/network/outbound/insecure_allow_all") == Some(&Value::Bool(true))
    {
        notes.push(
            "the catalogue allows it every host; here it gets none until you say which".to_owned(),
        );
    }
    let wrapper = Wrapper {
        id: as_id(name),
        title: name.to_owned(),
        description: text_of(entry, "description").unwrap_or_default(),
        source,
        command: std::iter::once(String::new())
            .chain(texts(entry, "/args"))
            .collect(),
        credentials,
        hosts,
        placeholders: Vec::new(),
        proposed_hosts: Vec::new(),
        tools: Vec::new(),
    };
    finish(name, wrapper, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(catalogue: Catalogue, text: &str) -> Outcome {
        import(catalogue, "x/spec.yaml".into(), text)
            .unwrap()
            .remove(0)
    }

    #[test]
    fn a_clients_settings_become_wrappers_without_a_value() {
        let text = r#"{"mcpServers": {
            "Brave Search": {"command": "npx", "args": ["-y", "@x/brave@1.0.0"], "env": {"KEY": "hunter2-hunter2", "PATH": "/x"}},
            "far": {"url": "https://example.com/mcp?key=hunter2-hunter2", "headers": {"Authorization": "Bearer hunter2-hunter2", "X-Org": "${ORG}"}},
            "old": {"url": "https://example.com/sse", "type": "sse"},
            "local": {"command": "node", "args": ["/home/me/x.js"]}
        }}"#;
        let all = import(Catalogue::McpJson, "c.json".into(), text).unwrap();
        let far = all
            .iter()
            .flatten()
            .find(|one| one.wrapper.id == "far")
            .unwrap();
        assert_eq!(far.wrapper.hosts, ["example.com:443"]);
        let Source::Url { url, headers } = &far.wrapper.source else {
            panic!("{:?}", far.wrapper.source);
        };
        assert_eq!(url, "https://example.com/mcp");
        assert_eq!(
            headers,
            &["Authorization: Bearer ${AUTHORIZATION}", "X-Org: ${ORG}"]
        );
        let imported = all.iter().flatten().next().unwrap();
        assert_eq!(imported.wrapper.id, "brave-search");
        let names: Vec<&str> = imported
            .wrapper
            .credentials
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["KEY"]);
        assert!(
            imported
                .notes
                .iter()
                .any(|note| note.contains("`PATH` is reserved"))
        );
        assert!(!format!("{all:?}").contains("hunter2"));
        assert_eq!(all.iter().filter(|one| one.is_err()).count(), 2);
    }

    #[test]
    fn an_entry_of_docker_keeps_its_hosts_and_secrets() {
        let text = "name: a\nimage: mcp/a\ntype: server\nabout: {title: A}\nrun:\n  command: [--stdio, \"{{a.level}}\"]\n  allowHosts: [\"api.example.com:443\", \"http://no\"]\n\
                    config:\n  secrets: [{name: a.key, env: A_KEY}]\n  env: [{name: MODE, value: x}]\n";
        let Imported { wrapper, notes } = one(Catalogue::DockerMcp, text).unwrap();
        assert_eq!(wrapper.hosts, ["api.example.com:443"]);
        assert_eq!(wrapper.command, ["", "--stdio"]);
        let required: Vec<bool> = wrapper.credentials.iter().map(|one| one.required).collect();
        assert_eq!(required, [true, false]);
        assert_eq!(notes.len(), 2, "{notes:?}");
        let text = "name: a\ntype: remote\nremote:\n  transport_type: streamable-http\n  url: https://x.example.com/mcp\n  headers: {Authorization: 'Bearer ${K}'}\n\
                    config:\n  secrets: [{name: a.k, env: K, required: false}]\n";
        let remote = one(Catalogue::DockerMcp, text).unwrap().wrapper;
        assert_eq!(remote.hosts, ["x.example.com:443"]);
        assert!(!remote.credentials[0].required);
        let old = one(
            Catalogue::DockerMcp,
            "name: a\ntype: remote\nremote: {transport_type: sse, url: 'https://x'}\n",
        );
        assert!(old.unwrap_err().reason.contains("by SSE"));
    }

    #[test]
    fn an_entry_of_toolhive_gets_a_rule_for_each_host_and_port() {
        let text = "image: ghcr.io/x/y:1.0.0\ntransport: stdio\nenv_vars: [{name: K, required: true}]\n\
                    permissions: {network: {outbound: {allow_host: [.example.com, a.org], allow_port: [443, 80]}}}\n";
        let wrapper = one(Catalogue::Toolhive, text).unwrap().wrapper;
        assert_eq!(wrapper.id, "x");
        assert_eq!(
            wrapper.hosts,
            [
                "*.example.com:443",
                "*.example.com:80",
                "a.org:443",
                "a.org:80"
            ]
        );
        assert!(one(Catalogue::Toolhive, "name: a\nimage: b\ntransport: sse\n").is_err());
        assert!(import(Catalogue::Toolhive, "s.yaml".into(), "a: [").is_err());
    }
}
