//! What `selu new mcp` and `selu import` write: an agent with one capability that wraps an MCP server (P6).

mod catalogue;
mod command;
mod files;
mod wishes;

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::check::{credential, image, network};
use selu_compiler::diag::{Severity, shown};
use selu_compiler::model::NetworkMode;

pub use catalogue::{Catalogue, Imported, Refused, import};
pub use wishes::Wishes;

use crate::bridge::Remote;
use crate::lockfile;

/// Hosts that are proposed at most.
const PROPOSED: usize = 10;

/// Where an MCP server comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A package of npm.
    Npm {
        /// Its name, with the scope.
        package: String,
        /// Its version, if one is given.
        version: Option<String>,
    },
    /// A package of PyPI.
    Pypi {
        /// Its name.
        package: String,
        /// Its version, if one is given.
        version: Option<String>,
    },
    /// An image that somebody built.
    Image {
        /// Its reference.
        image: String,
    },
    /// A server that runs elsewhere and speaks Streamable HTTP.
    Url {
        /// Where.
        url: String,
        /// `NAME: VALUE`, with `${CREDENTIAL}` for what a call brings.
        headers: Vec<String>,
    },
}

/// A value that the server needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The variable.
    pub name: String,
    /// Whether the server cannot do without it.
    pub required: bool,
    /// For the person who enters it.
    pub description: String,
}

/// An MCP server to be wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    /// Id of the agent and of its capability.
    pub id: String,
    /// For people.
    pub title: String,
    /// One sentence.
    pub description: String,
    /// Where it comes from.
    pub source: Source,
    /// Its program and arguments. Without a program, the package's name is one.
    pub command: Vec<String>,
    /// What it needs.
    pub credentials: Vec<Credential>,
    /// Hosts that it must reach; none means no network.
    pub hosts: Vec<String>,
    /// Credentials without which it does not even list its tools.
    pub placeholders: Vec<String>,
    /// Hosts that it named and that nobody allowed; a comment in the manifest.
    pub proposed_hosts: Vec<String>,
    /// Its tools, once it was asked.
    pub tools: Vec<Tool>,
}

/// A tool, as far as a prompt needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Whether the server says that it only reads.
    pub reads: bool,
}

/// Why nothing is written.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// The id is none.
    #[error("`{id}` is no id: small letters, digits and `-`, at most 63, such as `{better}`")]
    Id {
        /// As given.
        id: String,
        /// What it could be.
        better: String,
    },
    /// The package is not written as its registry does.
    #[error("{problem}")]
    Package {
        /// What is wrong, and the right form.
        problem: String,
    },
    /// Something of this name is there already. It is somebody's work.
    #[error("{path} exists already; nothing was written")]
    Exists {
        /// The file.
        path: Utf8PathBuf,
    },
    /// selu.toml has a section for it already, or cannot be read as text.
    #[error("selu.toml has a section [build.\"{id}/{id}\"] already; nothing was written")]
    Section {
        /// The capability.
        id: String,
    },
    /// A file could not be written.
    #[error("cannot write {path}")]
    Write {
        /// Which.
        path: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Source {
    /// `@scope/name@1.2.3`, with a version that cannot move.
    pub fn npm(text: &str) -> Result<Self, ScaffoldError> {
        let (package, version) = split_npm(text);
        let version = pinned(
            text,
            version,
            "@modelcontextprotocol/server-memory@2026.8.31",
        )?;
        Ok(Self::Npm {
            package: package.to_owned(),
            version: Some(version),
        })
    }

    /// `name==1.2.3`, with a version that cannot move.
    pub fn pypi(text: &str) -> Result<Self, ScaffoldError> {
        let (package, version) = match text.split_once("==") {
            Some((package, version)) => (package, Some(version)),
            None => (text, None),
        };
        let version = pinned(text, version, "mcp-server-time==2026.10.19")?;
        Ok(Self::Pypi {
            package: package.to_owned(),
            version: Some(version),
        })
    }

    /// An image by the reference's grammar (I1).
    pub fn image(text: &str) -> Result<Self, ScaffoldError> {
        match image::image(text) {
            (Some(_), _) => Ok(Self::Image {
                image: text.to_owned(),
            }),
            (None, problems) => Err(ScaffoldError::Package {
                problem: problems.first().map_or_else(
                    || "this is no image".to_owned(),
                    |first| first.message.clone(),
                ),
            }),
        }
    }

    /// A server elsewhere. What it needs for that, a rule for its host and the credentials in its headers, comes with it.
    pub fn url(
        url: &str,
        headers: &[String],
    ) -> Result<(Self, String, Vec<Credential>), ScaffoldError> {
        let remote = Remote::new(url, headers).map_err(|error| ScaffoldError::Package {
            problem: error.to_string(),
        })?;
        let credentials = remote.credentials().into_iter().map(|name| Credential {
            name: name.to_owned(),
            required: true,
            description: format!("Sent to {} in a header", remote.rule()),
        });
        let credentials = credentials.collect();
        let source = Self::Url {
            url: url.to_owned(),
            headers: headers.to_vec(),
        };
        Ok((source, remote.rule(), credentials))
    }
}

/// Name and version; the first character of a scope is no separator.
fn split_npm(text: &str) -> (&str, Option<&str>) {
    match text.rfind('@') {
        None | Some(0) => (text, None),
        Some(at) => {
            let (package, version) = text.split_at(at);
            (package, version.strip_prefix('@'))
        }
    }
}

/// A version is digits and what may follow them; `latest`, ranges and nothing are none (P5).
fn pinned(text: &str, version: Option<&str>, example: &str) -> Result<String, ScaffoldError> {
    let version = version.unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-+_!".contains(c);
    if version.starts_with(|c: char| c.is_ascii_digit())
        && version.contains('.')
        && version.chars().all(plain)
        && !version.contains(".x")
    {
        return Ok(version.to_owned());
    }
    Err(ScaffoldError::Package {
        problem: format!(
            "`{}` has no version that stays the same; write one, such as {example}",
            shown(text)
        ),
    })
}

/// A name of somebody else's as an id of ours.
pub fn as_id(name: &str) -> String {
    let mut id = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            id.push(c.to_ascii_lowercase());
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    id.truncate(63);
    let id = id.trim_end_matches('-');
    if id.is_empty() {
        "server".to_owned()
    } else {
        id.to_owned()
    }
}

impl Wrapper {
    /// Takes what the format takes and says what it does not: a credential that would steer the process, a host that is
    /// none.
    pub fn settle(mut self) -> Result<(Self, Vec<String>), ScaffoldError> {
        let better = as_id(&self.id);
        if better != self.id {
            return Err(ScaffoldError::Id {
                id: shown(&self.id),
                better,
            });
        }
        let mut notes = Vec::new();
        let mut seen = Vec::new();
        self.credentials.retain(|credential| {
            if let Some(problem) = credential::name(&credential.name).into_iter().next() {
                notes.push(format!("left out: {}", problem.message));
                return false;
            }
            let new = !seen.contains(&credential.name);
            seen.push(credential.name.clone());
            new
        });
        self.hosts.retain(|host| {
            let (_, problems) =
                network::network(NetworkMode::Allowlist, std::slice::from_ref(host));
            match problems
                .into_iter()
                .find(|problem| problem.code.severity == Severity::Error)
            {
                Some(problem) => {
                    notes.push(format!("left out: {}", problem.message));
                    false
                }
                None => true,
            }
        });
        self.hosts.sort();
        self.hosts.dedup();
        Ok((self, notes))
    }

    /// The command, in the built image, that prints the server's tools and ends.
    pub fn listing(&self) -> Vec<String> {
        let mut words = vec![
            files::BRIDGE.to_owned(),
            "--format=json".to_owned(),
            "mcp-bridge".to_owned(),
            "--list".to_owned(),
        ];
        for name in &self.placeholders {
            words.extend(["--placeholder".to_owned(), name.clone()]);
        }
        words.push("--".to_owned());
        words.extend(files::command(self));
        words
    }

    /// Whether the server can be asked in a container without a network.
    pub fn is_here(&self) -> bool {
        !matches!(self.source, Source::Url { .. })
    }

    /// Takes up what the server said of what it needs, as far as the format takes it: credentials and hosts that nobody
    /// declared. Gives the names of the credentials that are new.
    pub fn propose(&mut self, wishes: &Wishes) -> Vec<String> {
        let mut new = Vec::new();
        for name in &wishes.credentials {
            if self.placeholders.contains(name) || !credential::name(name).is_empty() {
                continue;
            }
            self.placeholders.push(name.clone());
            new.push(name.clone());
            if self.credentials.iter().all(|known| known.name != *name) {
                self.credentials.push(Credential {
                    name: name.clone(),
                    required: true,
                    description: "The server asked for it at its start".to_owned(),
                });
            }
        }
        for host in &wishes.hosts {
            let rule = std::slice::from_ref(host);
            let known = self.hosts.iter().chain(&self.proposed_hosts);
            if known.clone().any(|known| known == host)
                || known.count() >= PROPOSED
                || !network::network(NetworkMode::Allowlist, rule).1.is_empty()
            {
                continue;
            }
            self.proposed_hosts.push(host.clone());
        }
        new
    }

    /// Writes anew what differs from `before`, which was written a moment ago; a file that somebody changed since is left.
    pub fn rewrite(&self, before: &Self, project: &Utf8Path) -> Result<bool, ScaffoldError> {
        let old = files::of(before);
        let mut image = false;
        for (path, text) in files::of(self) {
            let failed = |source| ScaffoldError::Write {
                path: path.clone(),
                source,
            };
            let full = project.join(&path);
            if old.get(&path) == Some(&text)
                || std::fs::read_to_string(&full).map_err(failed)?.as_str()
                    != old.get(&path).map_or("", String::as_str)
            {
                continue;
            }
            lockfile::replace(&full, text.as_bytes()).map_err(failed)?;
            image |= path.file_name() == Some("Dockerfile");
        }
        Ok(image)
    }

    /// Writes the agent's files below a project's folder, all or none, and gives their paths.
    pub fn write(&self, project: &Utf8Path) -> Result<Vec<Utf8PathBuf>, ScaffoldError> {
        let files: BTreeMap<Utf8PathBuf, String> = files::of(self);
        for path in files.keys() {
            if project.join(path).symlink_metadata().is_ok() {
                return Err(ScaffoldError::Exists { path: path.clone() });
            }
        }
        let settings = Utf8PathBuf::from("selu.toml");
        let before = match std::fs::read_to_string(project.join(&settings)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => files::settings(project),
            Err(source) => {
                return Err(ScaffoldError::Write {
                    path: settings,
                    source,
                });
            }
        };
        let section = files::section(self);
        let title = section.lines().next().unwrap_or_default();
        if before.lines().any(|line| line.trim() == title) {
            return Err(ScaffoldError::Section {
                id: self.id.clone(),
            });
        }
        let mut written = Vec::new();
        for (path, text) in files {
            put(project, &path, &text)?;
            written.push(path);
        }
        let end = if before.ends_with('\n') { "" } else { "\n" };
        let text = format!("{before}{end}\n{section}");
        lockfile::replace(&project.join(&settings), text.as_bytes()).map_err(|source| {
            ScaffoldError::Write {
                path: settings.clone(),
                source,
            }
        })?;
        written.push(settings);
        Ok(written)
    }
}

/// Writes a file that must not be there, whoever made it in between.
fn put(project: &Utf8Path, path: &Utf8Path, text: &str) -> Result<(), ScaffoldError> {
    let failed = |source| ScaffoldError::Write {
        path: path.to_owned(),
        source,
    };
    let full = project.join(path);
    if let Some(folder) = full.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = std::fs::File::create_new(&full).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_needs_a_version_that_stays_the_same() {
        let npm = Source::npm("@scope/name@1.2.3").unwrap();
        assert_eq!(
            npm,
            Source::Npm {
                package: "@scope/name".to_owned(),
                version: Some("1.2.3".to_owned())
            }
        );
        for text in [
            "@scope/name",
            "name@latest",
            "name@^1.2.0",
            "name@1",
            "name@1.x",
            "name@",
        ] {
            assert!(Source::npm(text).is_err(), "{text}");
        }
        assert!(Source::pypi("mcp-server-time==2026.10.19").is_ok());
        for text in ["mcp-server-time", "a==", "a>=1.0", "a==1.*"] {
            assert!(Source::pypi(text).is_err(), "{text}");
        }
    }

    #[test]
    fn any_name_becomes_an_id() {
        assert_eq!(as_id("GitHub MCP (official)"), "github-mcp-official");
        assert_eq!(as_id("@scope/Brave_Search"), "scope-brave-search");
        assert_eq!(as_id("日本"), "server");
        assert_eq!(as_id(&"a".repeat(80)).len(), 63);
    }
}
