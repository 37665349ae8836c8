//! Instances: what runs, for how long, with which limits, doors and secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::{About, Grade, ImageSource, Kind, tool};
use crate::check::network::host::Entry;
use crate::lock::words::{class_word, filesystem_word, mode_word, scope_word, sharing_word};
use crate::lock::{LockedCredential, LockedDiscovery, LockedImage, LockedInstance};
use crate::model::{
    Class, CredentialScope, Filesystem, Limits, Network, NetworkMode, Policy, Sharing, SharingMode,
};
use crate::report::{cores, limits_line};

/// Compares everything of an instance that is on both sides.
pub(super) fn compare<'a>(about: &mut About<'a>, old: &'a LockedInstance, new: &'a LockedInstance) {
    let LockedInstance {
        image: new_image,
        class,
        filesystem,
        cache,
        sharing: new_sharing,
        limits: new_limits,
        network: new_network,
        credentials: new_credentials,
        prompts: new_prompts,
        discovery: new_discovery,
        tools,
    } = new;
    image(about, &old.image, new_image);
    if old.class != *class {
        let (grade, says) = match class {
            Class::Environment => (Grade::Widening, "it keeps state between calls now"),
            Class::Tool => (Grade::Narrowing, "it keeps no state between calls any more"),
        };
        about
            .add(Kind::Class, "class", grade, says)
            .between(Some(class_word(old.class)), Some(class_word(*class)));
    }
    written(about, old.filesystem, *filesystem);
    kept(about, old.cache, *cache);
    sharing(about, &old.sharing, new_sharing);
    limits(about, &old.limits, new_limits);
    network(about, &old.network, new_network);
    credentials(about, &old.credentials, new_credentials);
    prompts(about, &old.prompts, new_prompts);
    discovery(about, old.discovery.as_ref(), new_discovery.as_ref());
    tool::compare(about, &old.tools, tools);
}

/// A new instance, with its rights.
pub(super) fn added<'a>(about: &mut About<'a>, new: &'a LockedInstance) {
    let says = format!("a new instance: {}", limits_line(&new.limits));
    about
        .add(Kind::Instance, "", Grade::Widening, says)
        .between(None::<&str>, Some(&new.image.written));
    written(about, Filesystem::None, new.filesystem);
    kept(about, false, new.cache);
    let alone = Sharing {
        mode: SharingMode::Exclusive,
        ..new.sharing.clone()
    };
    sharing(about, &alone, &new.sharing);
    let closed = Network {
        mode: NetworkMode::None,
        hosts: Vec::new(),
    };
    network(about, &closed, &new.network);
    credentials(about, &BTreeMap::new(), &new.credentials);
    for (name, tool) in &new.tools {
        about.tool = Some(name);
        tool::added(about, tool, None);
    }
    about.tool = None;
}

/// An instance that is gone, with all its rights.
pub(super) fn removed(about: &mut About<'_>, old: &LockedInstance) {
    about
        .add(
            Kind::Instance,
            "",
            Grade::Narrowing,
            "the instance is gone with all its rights",
        )
        .between(Some(&old.image.written), None::<&str>);
}

/// Entries whose destinations may be private addresses (N8).
pub(super) fn private(about: &mut About<'_>, old: &[String], new: &[String]) {
    for entry in new.iter().filter(|entry| !old.contains(entry)) {
        let says = format!("`{entry}` may lead to private addresses now");
        about
            .add(Kind::Network, "private", Grade::Widening, says)
            .between(None::<&str>, Some(entry));
    }
    for entry in old.iter().filter(|entry| !new.contains(entry)) {
        let says = format!("`{entry}` may not lead to private addresses any more");
        about
            .add(Kind::Network, "private", Grade::Narrowing, says)
            .between(Some(entry), None::<&str>);
    }
}

/// More tools than `[review] max_tools` lets pass without a person.
pub(super) fn many(
    about: &mut About<'_>,
    most: u64,
    old: Option<&LockedInstance>,
    new: &LockedInstance,
) {
    let callable = |instance: &LockedInstance| {
        let tools = instance.tools.values();
        tools.filter(|tool| tool.policy != Policy::Block).count()
    };
    let (before, now) = (old.map_or(0, callable), callable(new));
    if now > before && u64::try_from(now).is_ok_and(|now| now > most) {
        let says =
            format!("it has {now} tools that may be called, and more than {most} need a person");
        let finding = about.add(Kind::Tool, "tools", Grade::Widening, says);
        finding.between(Some(before), Some(now));
        finding.person = true;
    }
}

/// What the new image says of its source. Where the rules ask for one, an image that says none needs a person, and so does
/// one that nobody could look at.
pub(super) fn source(about: &mut About<'_>, said: Option<&ImageSource>, wanted: bool) {
    let findings = about.findings.iter_mut();
    let other = findings.filter(|one| {
        let content = one.kind == Kind::Image || one.kind == Kind::Instance;
        content && one.grade == Grade::Widening
    });
    for finding in other {
        if let Some(ImageSource { source, revision }) = said {
            finding.says.push_str(&match (source, revision) {
                (Some(source), Some(revision)) => {
                    format!("; the image says it was built from {source} at {revision}")
                }
                (Some(source), None) => format!("; the image says it was built from {source}"),
                (None, _) => "; the image does not say what it was built from".to_owned(),
            });
        }
        finding.person |= wanted && said.is_none_or(|said| said.source.is_none());
    }
}

fn written(about: &mut About<'_>, old: Filesystem, new: Filesystem) {
    if old != new {
        let rank = |filesystem| match filesystem {
            Filesystem::None => 0,
            Filesystem::Temp => 1,
            Filesystem::Workspace => 2,
        };
        let grade = if rank(new) > rank(old) {
            Grade::Widening
        } else {
            Grade::Narrowing
        };
        let says = match new {
            Filesystem::None => "it may write nothing any more",
            Filesystem::Temp => "it may write to /tmp, which is emptied at a restart",
            Filesystem::Workspace => "it may write to a workspace, which stays",
        };
        about
            .add(Kind::Filesystem, "filesystem", grade, says)
            .between(Some(filesystem_word(old)), Some(filesystem_word(new)));
    }
}

fn kept(about: &mut About<'_>, old: bool, new: bool) {
    if old != new {
        let (grade, says) = if new {
            (Grade::Widening, "what it writes to /cache stays")
        } else {
            (
                Grade::Narrowing,
                "nothing that it writes to /cache stays any more",
            )
        };
        about
            .add(Kind::Cache, "cache", grade, says)
            .between(Some(old), Some(new));
    }
}

fn image(about: &mut About<'_>, old: &LockedImage, new: &LockedImage) {
    let content = |image: &LockedImage| image.digest.clone().or_else(|| image.source.clone());
    if old.kind != new.kind || content(old) != content(new) {
        let says = match content(new) {
            Some(_) => "other content runs, which nobody has compared",
            None => "it is not known what runs: the image is not pinned yet",
        };
        let path = if new.source.is_some() {
            "image.source"
        } else {
            "image.digest"
        };
        about
            .add(Kind::Image, path, Grade::Widening, says)
            .between(content(old), content(new));
    }
    if old.written != new.written {
        let says = "the manifest names another image";
        about
            .add(Kind::Image, "image.written", Grade::Neutral, says)
            .between(Some(&old.written), Some(&new.written));
    }
}

fn sharing(about: &mut About<'_>, old: &Sharing, new: &Sharing) {
    let Sharing {
        mode,
        max_concurrent,
        idle_timeout_seconds,
    } = new;
    if old.mode != *mode {
        let (grade, says) = match mode {
            SharingMode::Shared => (Grade::Widening, "sessions share one container now"),
            SharingMode::Exclusive => (
                Grade::Narrowing,
                "each session has a container of its own now",
            ),
        };
        about
            .add(Kind::Sharing, "sharing.mode", grade, says)
            .between(Some(sharing_word(old.mode)), Some(sharing_word(*mode)));
    }
    number(
        about,
        Kind::Sharing,
        "sharing.max_concurrent",
        "calls at once",
        old.max_concurrent.into(),
        (*max_concurrent).into(),
    );
    number(
        about,
        Kind::Sharing,
        "sharing.idle_timeout_seconds",
        "seconds of life without a call",
        old.idle_timeout_seconds,
        *idle_timeout_seconds,
    );
}

fn limits(about: &mut About<'_>, old: &Limits, new: &Limits) {
    let Limits {
        memory_mb,
        nano_cpus,
        cpu_seconds,
        pids,
    } = new;
    for (path, what, old, new) in [
        (
            "limits.memory_mb",
            "MiB of memory",
            old.memory_mb,
            *memory_mb,
        ),
        (
            "limits.cpu_seconds",
            "seconds of CPU time a call",
            old.cpu_seconds,
            *cpu_seconds,
        ),
        ("limits.pids", "processes and threads", old.pids, *pids),
    ] {
        number(about, Kind::Limit, path, what, old, new);
    }
    let (was, is) = (old.nano_cpus, *nano_cpus);
    if was != is {
        let (grade, says) = if is > was {
            (Grade::Widening, "it may have more of the processors")
        } else {
            (Grade::Narrowing, "it may have less of the processors")
        };
        about
            .add(Kind::Limit, "limits.nano_cpus", grade, says)
            .between(Some(cores(was)), Some(cores(is)));
    }
}

fn number(about: &mut About<'_>, kind: Kind, path: &str, what: &str, old: u64, new: u64) {
    if old == new {
        return;
    }
    let (grade, word) = if new > old {
        (Grade::Widening, "more")
    } else {
        (Grade::Narrowing, "fewer")
    };
    about
        .add(kind, path, grade, format!("it may have {word} {what}"))
        .between(Some(old), Some(new));
}

fn network(about: &mut About<'_>, old: &Network, new: &Network) {
    let rank = |mode| match mode {
        NetworkMode::None => 0,
        NetworkMode::Allowlist => 1,
        NetworkMode::Any => 2,
    };
    if old.mode != new.mode {
        let grade = if rank(new.mode) > rank(old.mode) {
            Grade::Widening
        } else {
            Grade::Narrowing
        };
        let says = match new.mode {
            NetworkMode::None => "it may reach nothing any more",
            NetworkMode::Allowlist => "it may reach what is listed, and nothing else",
            NetworkMode::Any => "it may reach any public name",
        };
        about
            .add(Kind::Network, "network.mode", grade, says)
            .between(Some(mode_word(old.mode)), Some(mode_word(new.mode)));
    }
    // Under `any` and `none` there is no list, so what comes and goes with the mode is said by the mode.
    let covered = |entry: &str, network: &Network| {
        network.mode == NetworkMode::Any
            || match Entry::parse_normalised(entry) {
                Ok(entry) => network.hosts.iter().any(|other| {
                    Entry::parse_normalised(other).is_ok_and(|other| other.covers(&entry))
                }),
                // Nobody can tell what it means.
                Err(_) => false,
            }
    };
    for host in new.hosts.iter().filter(|host| !old.hosts.contains(host)) {
        let (grade, says) = if covered(host, old) {
            (
                Grade::Neutral,
                format!("`{host}` is listed now, and was reachable before"),
            )
        } else {
            (Grade::Widening, format!("it may reach `{host}` now"))
        };
        about
            .add(Kind::Network, "network.hosts", grade, says)
            .between(None::<&str>, Some(host));
    }
    for host in old.hosts.iter().filter(|host| !new.hosts.contains(host)) {
        let (grade, says) = if covered(host, new) {
            (
                Grade::Neutral,
                format!("`{host}` is not listed any more, and still reachable"),
            )
        } else {
            (
                Grade::Narrowing,
                format!("it may not reach `{host}` any more"),
            )
        };
        about
            .add(Kind::Network, "network.hosts", grade, says)
            .between(Some(host), None::<&str>);
    }
}

fn credentials(
    about: &mut About<'_>,
    old: &BTreeMap<String, LockedCredential>,
    new: &BTreeMap<String, LockedCredential>,
) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let path = format!("credential.{name}");
        match (old.get(name), new.get(name)) {
            (None, Some(now)) => {
                let says = format!("it is handed the {} secret `{name}`", scope_word(now.scope));
                about.add(Kind::Credential, path, Grade::Widening, says);
            }
            (Some(_), None) => {
                let says = format!("it is not handed `{name}` any more");
                about.add(Kind::Credential, path, Grade::Narrowing, says);
            }
            (Some(before), Some(now)) => {
                if before.scope != now.scope {
                    let says = match now.scope {
                        CredentialScope::System => "one value serves all users now",
                        CredentialScope::User => "each user hands over a value of their own now",
                    };
                    about
                        .add(
                            Kind::Credential,
                            format!("{path}.scope"),
                            Grade::Widening,
                            says,
                        )
                        .between(Some(scope_word(before.scope)), Some(scope_word(now.scope)));
                }
                if before.required != now.required {
                    let (grade, says) = if now.required {
                        (
                            Grade::Widening,
                            format!("nothing runs without `{name}` any more"),
                        )
                    } else {
                        (
                            Grade::Narrowing,
                            format!("it runs without `{name}` as well"),
                        )
                    };
                    about
                        .add(Kind::Credential, format!("{path}.required"), grade, says)
                        .between(Some(before.required), Some(now.required));
                }
            }
            (None, None) => {}
        }
    }
}

fn prompts(about: &mut About<'_>, old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (before, now) = (old.get(name), new.get(name));
        if before != now {
            let says = prompt_says(name, before, now);
            about
                .add(Kind::Prompt, format!("prompt.{name}"), Grade::Neutral, says)
                .between(before, now);
        }
    }
}

/// What became of a text that a model reads.
pub(super) fn prompt_says(name: &str, before: Option<&String>, now: Option<&String>) -> String {
    match (before, now) {
        (None, _) => format!("a model reads `{name}` as well"),
        (_, None) => format!("a model does not read `{name}` any more"),
        _ => format!("`{name}`, which a model reads, is another text"),
    }
}

fn discovery(about: &mut About<'_>, old: Option<&LockedDiscovery>, new: Option<&LockedDiscovery>) {
    match (old, new) {
        (None, None) => {}
        (None, Some(now)) => {
            let says = "its container lists its tools now, not the manifest";
            about
                .add(Kind::Discovery, "discovery.tool", Grade::Widening, says)
                .between(None::<&str>, Some(&now.tool));
        }
        (Some(before), None) => {
            let says = "its manifest lists its tools now, not the container";
            about
                .add(Kind::Discovery, "discovery.tool", Grade::Narrowing, says)
                .between(Some(&before.tool), None::<&str>);
        }
        (Some(before), Some(now)) => {
            if before.tool != now.tool {
                about
                    .add(
                        Kind::Discovery,
                        "discovery.tool",
                        Grade::Neutral,
                        "another tool lists its tools",
                    )
                    .between(Some(&before.tool), Some(&now.tool));
            }
            if before.credentials_present != now.credentials_present {
                let names = |names: &Option<Vec<String>>| match names {
                    None => "never discovered".to_owned(),
                    Some(names) => format!("[{}]", names.join(", ")),
                };
                let says = "other secrets were present when it listed its tools";
                about
                    .add(
                        Kind::Discovery,
                        "discovery.credentials_present",
                        Grade::Neutral,
                        says,
                    )
                    .between(
                        Some(names(&before.credentials_present)),
                        Some(names(&now.credentials_present)),
                    );
            }
        }
    }
}
