//! Credential values: where they come from, and how they are kept out of everything that is shown (product.md 29, C2).
//!
//! A value is looked up under one name only, `SELU_CRED__AGENT__CAPABILITY__NAME`, which names the instance that may
//! have it: a manifest that declares `AWS_SECRET_ACCESS_KEY` does not get the operator's (S4).

mod env_file;
mod grant;
mod redact;
mod store;

pub use env_file::EnvFileError;
pub use grant::grant;
pub use redact::Redactor;
pub use store::{Entry, KEY_FILE_VARIABLE, KEY_VARIABLE, Store, StoreError, Stored};

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use secrecy::{ExposeSecret, SecretString};
use selu_compiler::diag::shown;
use selu_compiler::model::{Credential, CredentialScope, InstanceKey, Project};
use serde_json::{Map, Value};

/// What every variable that holds a credential begins with.
pub const PREFIX: &str = "SELU_CRED__";

/// Instances with the credentials that they declare.
pub type Declaring<'a> = BTreeMap<InstanceKey, &'a [Credential]>;

/// Values that were found, by instance and credential name.
#[derive(Debug, Default)]
pub struct Secrets {
    values: BTreeMap<(InstanceKey, String), SecretString>,
    /// What the store has, of every user.
    stored: BTreeMap<Entry, SecretString>,
    /// Instances that are not what their stored values were granted to.
    withheld: BTreeSet<InstanceKey>,
    redactor: Redactor,
}

/// Why values could not be gathered. Never holds a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// Two declared credentials would be read from one variable.
    #[error(
        "{variable} would be the value of both `{first}` and `{second}`; rename one of the two credentials or capabilities"
    )]
    Ambiguous {
        /// The variable.
        variable: String,
        /// Instance and name.
        first: String,
        /// Instance and name.
        second: String,
    },
    /// A variable that names nothing.
    #[error("{variable} is no credential that a capability declares")]
    Undeclared {
        /// The variable.
        variable: String,
    },
    /// A value that is not text.
    #[error("the value of {variable} is not UTF-8")]
    NotUtf8 {
        /// The variable.
        variable: String,
    },
    /// E04: no variable and no call can carry it.
    #[error("the value of {variable} holds a NUL byte")]
    Nul {
        /// The variable.
        variable: String,
    },
    /// Two sources disagree.
    #[error(
        "{variable} has one value in the environment and another one in {file}; keep one of the two"
    )]
    Conflict {
        /// The variable.
        variable: String,
        /// The env file.
        file: String,
    },
    /// The env file is malformed.
    #[error("{file}:{line}: {problem}")]
    EnvFile {
        /// The env file.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong.
        problem: EnvFileError,
    },
}

/// An env file that was read.
#[derive(Debug, Clone, Copy)]
pub struct EnvFile<'a> {
    /// For messages.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl Secrets {
    /// Looks every declared credential up, in the environment and in the env file. The second part of the answer names
    /// variables that were meant for this project and fit nothing that it declares.
    pub fn gather(
        project: &Project,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        file: Option<EnvFile<'_>>,
    ) -> Result<(Self, Vec<String>), SecretsError> {
        let instances = project
            .instances()
            .map(|(key, _, capability)| (key, capability.credentials.as_slice()));
        Self::gather_for(&instances.collect(), environment, file)
    }

    /// [`Self::gather`] for what a plan declares.
    pub fn gather_for(
        instances: &Declaring<'_>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        file: Option<EnvFile<'_>>,
    ) -> Result<(Self, Vec<String>), SecretsError> {
        let declared = declared(instances)?;
        let mut found: BTreeMap<String, SecretString> = BTreeMap::new();
        let mut unused = Vec::new();

        for (name, value) in environment {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            let name = name.to_owned();
            if !declared.contains_key(&name) {
                if of_this_project(instances, &name) {
                    unused.push(name);
                }
                continue;
            }
            let Ok(value) = value.into_string() else {
                return Err(SecretsError::NotUtf8 { variable: name });
            };
            found.insert(name, SecretString::from(value));
        }
        if let Some(file) = file {
            for (name, value) in env_file::parse(file)? {
                if !declared.contains_key(&name) {
                    unused.push(name);
                    continue;
                }
                if let Some(other) = found.get(&name)
                    && other.expose_secret() != value.expose_secret()
                {
                    return Err(SecretsError::Conflict {
                        variable: name,
                        file: file.name.to_owned(),
                    });
                }
                found.insert(name, value);
            }
        }

        if let Some((variable, _)) = found
            .iter()
            .find(|(_, value)| value.expose_secret().contains('\0'))
        {
            return Err(SecretsError::Nul {
                variable: variable.clone(),
            });
        }
        unused.sort();
        // An empty variable is how a shell says that there is none.
        found.retain(|_, value| !value.expose_secret().is_empty());
        let redactor = Redactor::new(found.values().map(ExposeSecret::expose_secret));
        let values = found
            .into_iter()
            .filter_map(|(name, value)| Some((declared.get(&name)?.clone(), value)))
            .collect();
        let secrets = Self {
            values,
            redactor,
            ..Self::default()
        };
        Ok((secrets, unused))
    }

    /// Adds what the store has; the environment and the env file, which are said for one run, come before it. Values of
    /// instances that are not in `granted` are withheld. All of them are kept out of what is shown.
    #[must_use]
    pub fn with_store(mut self, stored: Stored, granted: &BTreeSet<InstanceKey>) -> Self {
        let Stored { values, grants: _ } = stored;
        let all = self.values.values().chain(values.values());
        self.redactor = Redactor::new(all.map(ExposeSecret::expose_secret));
        let instances = values.keys().map(|entry| entry.instance.clone());
        self.withheld = instances.filter(|key| !granted.contains(key)).collect();
        self.stored = values;
        self
    }

    /// A value that may be used, from wherever it comes.
    fn value(
        &self,
        instance: &InstanceKey,
        name: &str,
        user: Option<&str>,
    ) -> Option<&SecretString> {
        let given = self.values.get(&(instance.clone(), name.to_owned()));
        given.or_else(|| {
            let entry = Entry {
                instance: instance.clone(),
                name: name.to_owned(),
                user: user.map(str::to_owned),
            };
            let stored = self.stored.get(&entry);
            stored.filter(|_| !self.withheld.contains(instance))
        })
    }

    /// What removes every value that any variable or the env file holds, declared or not: for texts that are shown without
    /// knowing what is declared.
    pub fn redactor_of_all(
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        file: Option<EnvFile<'_>>,
    ) -> Result<Redactor, SecretsError> {
        let set = environment.into_iter().filter_map(|(name, value)| {
            let ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
            ours.then(|| value.to_string_lossy().into_owned())
        });
        let mut values: Vec<String> = set.collect();
        if let Some(file) = file {
            let read = env_file::parse(file)?;
            values.extend(
                read.iter()
                    .map(|(_, value)| value.expose_secret().to_owned()),
            );
        }
        Ok(Redactor::new(values.iter().map(String::as_str)))
    }

    /// What removes every known value from a text.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The sorted names of declared system credentials that a discovery would get (product.md 22).
    pub fn present(&self, instance: &InstanceKey, credentials: &[Credential]) -> Vec<String> {
        let mut names: Vec<String> = credentials
            .iter()
            .filter(|credential| credential.scope == CredentialScope::System)
            .map(|credential| credential.name.clone())
            .filter(|name| self.value(instance, name, None).is_some())
            .collect();
        names.sort();
        names
    }

    /// The `config_json` of a discovery: declared system credentials and nothing else (C3, C4). Missing required ones
    /// are named.
    pub fn discovery_config(
        &self,
        instance: &InstanceKey,
        credentials: &[Credential],
    ) -> Result<Config, MissingCredentials> {
        let system = credentials
            .iter()
            .filter(|credential| credential.scope == CredentialScope::System);
        self.config(instance, system, None)
    }

    /// The `config_json` of a call: declared credentials and nothing else (C3), those of one user among them if the call
    /// is for a user. Missing required ones are named.
    pub fn call_config(
        &self,
        instance: &InstanceKey,
        credentials: &[Credential],
        user: Option<&str>,
    ) -> Result<Config, MissingCredentials> {
        self.config(instance, credentials.iter(), user)
    }

    /// What an instance needs and has no value of, and for whom: for everybody, for each user of whom any of its values is
    /// known, or for whatever user there will be. `None` if nothing is missing.
    pub fn missing(
        &self,
        instance: &InstanceKey,
        credentials: &[Credential],
    ) -> Option<MissingCredentials> {
        let known = self
            .stored
            .keys()
            .filter(|entry| entry.instance == *instance);
        let users: BTreeSet<&str> = known.filter_map(|entry| entry.user.as_deref()).collect();
        let mut missing: Vec<Missing> = Vec::new();
        let whose: Vec<Option<&str>> = match users.is_empty() {
            true => vec![None],
            false => users.into_iter().map(Some).collect(),
        };
        for user in whose {
            if let Err(found) = self.config(instance, credentials.iter(), user) {
                missing.extend(found.missing);
            }
        }
        // What is one for all is missing once.
        let mut seen = BTreeSet::new();
        missing.retain(|one| {
            let user = match &one.whose {
                Whose::User(user) => Some(user.clone()),
                Whose::All | Whose::Nobody => None,
            };
            seen.insert((one.name.clone(), user))
        });
        (!missing.is_empty()).then(|| MissingCredentials {
            instance: instance.clone(),
            missing,
            withheld: self.withheld.contains(instance),
        })
    }

    fn config<'a>(
        &self,
        instance: &InstanceKey,
        credentials: impl Iterator<Item = &'a Credential>,
        user: Option<&str>,
    ) -> Result<Config, MissingCredentials> {
        let mut values = Map::new();
        let mut missing = Vec::new();
        for credential in credentials {
            let (whose, value) = match (credential.scope, user) {
                (CredentialScope::System, _) => {
                    (Whose::All, self.value(instance, &credential.name, None))
                }
                (CredentialScope::User, Some(user)) => (
                    Whose::User(user.to_owned()),
                    self.value(instance, &credential.name, Some(user)),
                ),
                (CredentialScope::User, None) => (Whose::Nobody, None),
            };
            match value {
                Some(value) => {
                    let value = Value::String(value.expose_secret().to_owned());
                    values.insert(credential.name.clone(), value);
                }
                None if credential.required => missing.push(Missing {
                    variable: variable(instance, &credential.name),
                    name: credential.name.clone(),
                    description: credential.description.clone(),
                    whose,
                }),
                None => {}
            }
        }
        if missing.is_empty() {
            Ok(Config { values })
        } else {
            Err(MissingCredentials {
                instance: instance.clone(),
                missing,
                withheld: self.withheld.contains(instance),
            })
        }
    }
}

/// Values for one call; its `Debug` form shows names only.
pub struct Config {
    values: Map<String, Value>,
}

impl Config {
    /// The sorted names of what is present (product.md 22).
    pub fn names(&self) -> Vec<String> {
        self.values.keys().cloned().collect()
    }

    /// For the wire, and for nothing else.
    pub fn expose(&self) -> &Map<String, Value> {
        &self.values
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

/// A credential without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Where a value is looked for.
    pub variable: String,
    /// From the manifest.
    pub description: String,
    /// Whose value is missing.
    pub whose: Whose,
}

/// Whose value a credential has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// One for all.
    All,
    /// This user's.
    User(String),
    /// A user's, and no user was named.
    Nobody,
}

/// Required credentials without a value (C4).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{instance} needs credentials that are not set: {}{}", list(.missing), hint(*.withheld, .instance))]
pub struct MissingCredentials {
    /// Whose they are.
    pub instance: InstanceKey,
    /// Each of them.
    pub missing: Vec<Missing>,
    /// Whether the store has values for the instance that are withheld.
    pub withheld: bool,
}

fn hint(withheld: bool, instance: &InstanceKey) -> String {
    if withheld {
        format!(
            "; stored values are withheld, because image, network rules or credential names are not those that they were \
             granted to: look at them, then `selu credentials grant {instance}`"
        )
    } else {
        String::new()
    }
}

fn list(missing: &[Missing]) -> String {
    let each: Vec<String> = missing
        .iter()
        .map(|one| {
            let Missing {
                name,
                variable,
                description: _,
                whose,
            } = one;
            match whose {
                Whose::All => format!("{name} (set {variable})"),
                Whose::User(user) => format!("{name} of user {} (set {variable})", shown(user)),
                Whose::Nobody => format!("{name} (one per user: say --user)"),
            }
        })
        .collect();
    each.join(", ")
}

/// What an env file has for the credentials that a project declares, as the store has it for all users. A name that fits
/// none is an error.
pub fn entries_of(
    project: &Project,
    name: &str,
    text: &str,
) -> Result<Vec<(Entry, SecretString)>, SecretsError> {
    let instances = project
        .instances()
        .map(|(key, _, capability)| (key, capability.credentials.as_slice()));
    let declared = declared(&instances.collect())?;
    let parsed = env_file::parse(EnvFile { name, text })?;
    let entry = |(variable, value): (String, SecretString)| match declared.get(&variable) {
        Some((instance, name)) => Ok((
            Entry {
                instance: instance.clone(),
                name: name.clone(),
                user: None,
            },
            value,
        )),
        None => Err(SecretsError::Undeclared { variable }),
    };
    parsed.into_iter().map(entry).collect()
}

/// The variable that holds a credential: upper case, `-` as `_`.
pub fn variable(instance: &InstanceKey, name: &str) -> String {
    format!("{}{}", instance_prefix(instance), upper(name))
}

fn instance_prefix(instance: &InstanceKey) -> String {
    let (agent, capability) = (upper(instance.agent()), upper(instance.capability()));
    format!("{PREFIX}{agent}__{capability}__")
}

fn upper(text: &str) -> String {
    text.to_ascii_uppercase().replace('-', "_")
}

fn of_this_project(instances: &Declaring<'_>, name: &str) -> bool {
    instances
        .keys()
        .any(|key| name.starts_with(&instance_prefix(key)))
}

/// Variable → instance and credential name. Upper case and `_` for `-` can make two names one; guessing which is meant
/// could hand one capability another one's secret.
fn declared(
    instances: &Declaring<'_>,
) -> Result<BTreeMap<String, (InstanceKey, String)>, SecretsError> {
    let mut declared: BTreeMap<String, (InstanceKey, String)> = BTreeMap::new();
    for (key, credentials) in instances {
        for credential in *credentials {
            let variable = variable(key, &credential.name);
            let entry = (key.clone(), credential.name.clone());
            if let Some(first) = declared.insert(variable.clone(), entry) {
                return Err(SecretsError::Ambiguous {
                    variable,
                    first: format!("{} {}", first.0, first.1),
                    second: format!("{key} {}", credential.name),
                });
            }
        }
    }
    Ok(declared)
}

#[cfg(test)]
mod tests;
