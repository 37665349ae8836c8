//! `selu credentials`: values into the store and out of it, never onto the screen.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Read, Write};

use anyhow::Context;
use camino::Utf8Path;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::{ExposeSecret, SecretString};
use selu_compiler::diag::shown;
use selu_compiler::model::{CredentialScope, InstanceKey};
use selu_compiler::plan::{Plan, PlannedInstance};
use selu_runtime::secrets::{Entry, Store, Stored, Whose, entries_of, grant};
use serde_json::{Value, json};

use crate::args::{Cli, CredentialsAction, CredentialsArgs};
use crate::cmd::invoke::instance;
use crate::exit::{Ending, Exit};
use crate::held;
use crate::hints::Hinted;
use crate::printer::Printer;
use crate::project::{Loaded, document, load_planned, store};

/// The largest value that is taken, in bytes.
const LARGEST: u64 = 1 << 20;

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    args: &CredentialsArgs,
) -> anyhow::Result<Exit> {
    let Some((loaded, plan)) = load_planned(cli, printer, &args.dir)? else {
        return Ok(Exit::Failed);
    };
    let store = store(&loaded.root)?;
    let desk = Desk {
        printer,
        loaded: &loaded,
        plan: &plan,
        store: &store,
    };
    match &args.action {
        CredentialsAction::Set {
            capability,
            name,
            user,
            file,
        } => {
            desk.set(capability, name, user.as_deref(), file.as_deref())
                .await
        }
        CredentialsAction::Rm {
            capability,
            name,
            user,
        } => desk.remove(capability, name, user.as_deref()),
        CredentialsAction::List => desk.list(),
        CredentialsAction::Import { file } => desk.import(file),
        CredentialsAction::Check { user } => desk.check(cli, user.as_deref()),
        CredentialsAction::Grant { capability, yes } => desk.grant(capability, *yes).await,
        CredentialsAction::Rotate => desk.rotate(),
    }
}

struct Desk<'a> {
    printer: &'a Printer,
    loaded: &'a Loaded,
    plan: &'a Plan,
    store: &'a Store,
}

impl Desk<'_> {
    async fn set(
        &self,
        capability: &str,
        name: &str,
        user: Option<&str>,
        file: Option<&Utf8Path>,
    ) -> anyhow::Result<Exit> {
        let entry = self.entry(capability, name, user)?;
        let value = match file {
            Some(file) => {
                let opened = std::fs::File::open(file);
                read(opened.with_context(|| format!("{file} cannot be read"))?)?
            }
            None if std::io::stdin().is_terminal() => ask(&entry).await?,
            None => read(std::io::stdin())?,
        };
        let value = self.checked(&entry, value)?;
        self.put(vec![(entry.clone(), value)])?;
        self.printer.data(&format!("set {}\n", about(&entry)));
        self.done("set", &[entry])
    }

    fn remove(&self, capability: &str, name: &str, user: Option<&str>) -> anyhow::Result<Exit> {
        let entry = Entry {
            instance: self.key(capability)?,
            name: name.to_owned(),
            user: user.map(str::to_owned),
        };
        let there = self.store.read()?.values.contains_key(&entry);
        if !there {
            self.printer
                .say(&format!("{} is not in the store", about(&entry)));
            return self.done("removed", &[]);
        }
        self.store.change(|stored| stored.values.remove(&entry))?;
        self.printer.data(&format!("removed {}\n", about(&entry)));
        self.done("removed", &[entry])
    }

    fn list(&self) -> anyhow::Result<Exit> {
        let stored = self.store.read()?;
        let mut entries = Vec::new();
        for entry in stored.values.keys() {
            let state = self.state(&stored, entry);
            self.printer.data(&format!("{}: {state}\n", about(entry)));
            entries.push(json!({
                "instance": entry.instance,
                "name": entry.name,
                "user": entry.user,
                "state": state,
            }));
        }
        if entries.is_empty() {
            self.printer.say("The store holds no credentials.");
        }
        let mut document = document(&self.plan.project);
        document.insert("credentials".to_owned(), entries.into());
        document.insert("exit_code".to_owned(), Exit::Done.code().into());
        self.printer.json(&document.into());
        Ok(Exit::Done)
    }

    fn state(&self, stored: &Stored, entry: &Entry) -> &'static str {
        let instance = self.plan.instances.get(&entry.instance);
        let declared = instance.is_some_and(|one| {
            one.credentials.iter().any(|credential| {
                let of_user = credential.scope == CredentialScope::User;
                credential.name == entry.name && of_user == entry.user.is_some()
            })
        });
        match instance {
            Some(one) if declared && stored.grants.get(&entry.instance) == grant(one).as_ref() => {
                "granted"
            }
            Some(_) if declared => "withheld",
            _ => "not declared",
        }
    }

    /// From an env file: values that are for all.
    fn import(&self, file: &Utf8Path) -> anyhow::Result<Exit> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("{file} cannot be read"))?;
        let text = SecretString::from(text);
        let entries = entries_of(&self.loaded.project, file.as_str(), text.expose_secret())?;
        let mut values = Vec::new();
        for (entry, value) in entries {
            let instance = self.plan.instances.get(&entry.instance);
            let of_user = instance.is_some_and(|one| {
                one.credentials.iter().any(|credential| {
                    credential.name == entry.name && credential.scope == CredentialScope::User
                })
            });
            if of_user {
                let message = format!(
                    "{} is one per user, and an env file names no user",
                    about(&entry)
                );
                return Err(
                    Hinted::new(message, "set it with `selu credentials set --user`").into(),
                );
            }
            let value = self.checked(&entry, value.expose_secret().to_owned())?;
            values.push((entry, value));
        }
        let entries: Vec<Entry> = values.iter().map(|(entry, _)| entry.clone()).collect();
        self.put(values)?;
        for entry in &entries {
            self.printer.data(&format!("set {}\n", about(entry)));
        }
        self.done("set", &entries)
    }

    /// Whether everything that is required is there.
    fn check(&self, cli: &Cli, user: Option<&str>) -> anyhow::Result<Exit> {
        let secrets = self.loaded.secrets(cli, self.printer)?;
        let mut missing = Vec::new();
        for (key, one) in &self.plan.instances {
            let found = match user {
                Some(_) => secrets.call_config(key, &one.credentials, user).err(),
                None => secrets.missing(key, &one.credentials),
            };
            if let Some(error) = found {
                self.printer.data(&format!("{error}\n"));
                missing.extend(error.missing.iter().map(|credential| {
                    let user = match &credential.whose {
                        Whose::User(user) => Some(user),
                        Whose::All | Whose::Nobody => None,
                    };
                    json!({
                        "instance": key,
                        "name": credential.name,
                        "user": user,
                        "withheld": error.withheld,
                    })
                }));
            }
        }
        let exit = if missing.is_empty() {
            self.printer.say("Every required credential has a value.");
            Exit::Done
        } else {
            Exit::Failed
        };
        let mut document = document(&self.plan.project);
        document.insert("missing".to_owned(), missing.into());
        document.insert("exit_code".to_owned(), exit.code().into());
        self.printer.json(&document.into());
        Ok(exit)
    }

    /// Accepts what an instance has become.
    async fn grant(&self, capability: &str, yes: bool) -> anyhow::Result<Exit> {
        let key = self.key(capability)?;
        let Some(one) = self.plan.instances.get(&key) else {
            return Err(Ending::usage(format!("there is no capability `{capability}`")).into());
        };
        let granted = pinned(&key, one)?;
        self.printer.say(&described(&key, one));
        if !yes {
            if !held::can_ask() {
                let message = "there is no terminal to ask on, so nothing was granted";
                return Err(Hinted::new(message, "look at it, then say -y").into());
            }
            if !held::answer("May it have its stored values?").await? {
                self.printer.say("Nothing was granted.");
                return Ok(Exit::Failed);
            }
        }
        self.store
            .change(|stored| stored.grants.insert(key.clone(), granted))?;
        self.printer.data(&format!("granted {key}\n"));
        let mut document = document(&self.plan.project);
        document.insert("granted".to_owned(), json!([key]));
        document.insert("exit_code".to_owned(), Exit::Done.code().into());
        self.printer.json(&document.into());
        Ok(Exit::Done)
    }

    fn rotate(&self) -> anyhow::Result<Exit> {
        if !self.store.path().exists() {
            self.printer.say("There is no store yet.");
            return self.done("set", &[]);
        }
        self.store.rotate()?;
        self.printer.data("the store has a new key\n");
        self.done("set", &[])
    }

    fn key(&self, capability: &str) -> anyhow::Result<InstanceKey> {
        // What the directory has lost can still be removed from the store.
        match InstanceKey::parse(capability) {
            Some(key) => Ok(key),
            None => instance(self.plan, capability),
        }
    }

    /// What is to be set: declared, and with a user exactly where it is one per user.
    fn entry(&self, capability: &str, name: &str, user: Option<&str>) -> anyhow::Result<Entry> {
        let key = instance(self.plan, capability)?;
        let credentials = match self.plan.instances.get(&key) {
            Some(one) => one.credentials.as_slice(),
            None => &[],
        };
        let Some(declared) = credentials
            .iter()
            .find(|credential| credential.name == name)
        else {
            let names: Vec<&str> = credentials.iter().map(|one| one.name.as_str()).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            let message = format!(
                "{key} declares no credential `{}`; it declares {names}",
                shown(name)
            );
            return Err(anyhow::Error::msg(message));
        };
        match (declared.scope, user) {
            (CredentialScope::System, Some(_)) => {
                let message = format!("{key} {name} is one for all users; leave --user out");
                return Err(Ending::usage(message).into());
            }
            (CredentialScope::User, None) => {
                let message = format!("{key} {name} is one per user; say --user");
                return Err(Ending::usage(message).into());
            }
            _ => {}
        }
        let named = |user: &str| !user.is_empty() && user.trim() == user && user.len() <= 128;
        if user.is_some_and(|user| !named(user) || user.chars().any(char::is_control)) {
            let message = "the name of a user has 1 to 128 bytes, no control characters and no blanks at its ends";
            return Err(Ending::usage(message).into());
        }
        Ok(Entry {
            instance: key,
            name: name.to_owned(),
            user: user.map(str::to_owned),
        })
    }

    /// E04, E06: byte by byte, but for what no value can hold.
    fn checked(&self, entry: &Entry, value: String) -> anyhow::Result<SecretString> {
        if value.contains('\0') {
            return Err(anyhow::Error::msg(format!(
                "the value of {} holds a NUL byte",
                about(entry)
            )));
        }
        if value.is_empty() {
            return Err(anyhow::Error::msg(format!(
                "the value of {} is empty",
                about(entry)
            )));
        }
        if value.trim() != value {
            self.printer.warn(&format!(
                "the value of {} begins or ends with blanks or line ends; they are part of it",
                about(entry)
            ));
        }
        Ok(value.into())
    }

    /// A first value is granted to what the person sees now; a later one does not renew a grant.
    fn put(&self, values: Vec<(Entry, SecretString)>) -> anyhow::Result<()> {
        let keys: BTreeSet<InstanceKey> = values
            .iter()
            .map(|(entry, _)| entry.instance.clone())
            .collect();
        let mut grants = Vec::new();
        for key in &keys {
            if let Some(one) = self.plan.instances.get(key) {
                grants.push((key.clone(), pinned(key, one)?, described(key, one)));
            }
        }
        let said = self.store.change(|stored| {
            stored.values.extend(values);
            let mut said = Vec::new();
            for (key, now, described) in grants {
                let before = stored.grants.entry(key.clone()).or_insert_with(|| {
                    said.push(format!("granted to {described}"));
                    now.clone()
                });
                if *before != now {
                    said.push(format!(
                        "{key} is not what its values were granted to, so they are withheld until `selu credentials grant {key}`"
                    ));
                }
            }
            said
        })?;
        for line in said {
            self.printer.say(&line);
        }
        Ok(())
    }

    fn done(&self, what: &str, entries: &[Entry]) -> anyhow::Result<Exit> {
        let entries: Vec<Value> = entries
            .iter()
            .map(|entry| json!({ "instance": entry.instance, "name": entry.name, "user": entry.user }))
            .collect();
        let mut document = document(&self.plan.project);
        document.insert(what.to_owned(), entries.into());
        document.insert("exit_code".to_owned(), Exit::Done.code().into());
        self.printer.json(&document.into());
        Ok(Exit::Done)
    }
}

fn about(entry: &Entry) -> String {
    let Entry {
        instance,
        name,
        user,
    } = entry;
    match user {
        Some(user) => format!("{instance} {} of user {}", shown(name), shown(user)),
        None => format!("{instance} {}", shown(name)),
    }
}

fn pinned(key: &InstanceKey, one: &PlannedInstance) -> anyhow::Result<String> {
    grant(one).ok_or_else(|| {
        let message =
            format!("the image of {key} is not pinned yet, so there is nothing to grant values to");
        Hinted::new(message, "`selu lock` or `selu apply` pins it").into()
    })
}

fn described(key: &InstanceKey, one: &PlannedInstance) -> String {
    let image = one.image.digest.as_deref().or(one.image.source.as_deref());
    let names: Vec<&str> = one
        .credentials
        .iter()
        .map(|credential| credential.name.as_str())
        .collect();
    let hosts = match one.network_rules.hosts.as_slice() {
        [] => String::new(),
        hosts => format!(" ({})", hosts.join(", ")),
    };
    let mode = serde_json::to_value(one.network_rules.mode).unwrap_or_default();
    format!(
        "{key}: image {} ({}), network {}{hosts}, credentials {}",
        shown(&one.image.written),
        image.unwrap_or("not pinned"),
        mode.as_str().unwrap_or_default(),
        names.join(", ")
    )
}

/// One line end at the very end is the file's, not the value's (E06).
fn read(from: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .context("the value cannot be read")?;
    if bytes.len() as u64 > LARGEST {
        return Err(anyhow::Error::msg(format!(
            "the value is larger than {LARGEST} bytes"
        )));
    }
    // What is not UTF-8 is not quoted: it may be a part of a secret.
    let text =
        String::from_utf8(bytes).map_err(|_| anyhow::Error::msg("the value is not UTF-8"))?;
    Ok(match text.strip_suffix('\n') {
        Some(text) => text.strip_suffix('\r').unwrap_or(text).to_owned(),
        None => text,
    })
}

/// The terminal, not showing what is typed until this is dropped: also when the command is interrupted.
struct Quiet(Termios);

impl Quiet {
    fn new() -> anyhow::Result<Self> {
        let context = "the terminal cannot be kept from showing the value";
        let before = tcgetattr(std::io::stdin()).context(context)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &hidden).context(context)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that went away shows nothing either.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// One line from the terminal.
async fn ask(entry: &Entry) -> anyhow::Result<String> {
    let quiet = Quiet::new()?;
    let _ = write!(std::io::stderr(), "Value of {}: ", about(entry));
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = line.await?.context("the value cannot be read")?;
    drop(quiet);
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
