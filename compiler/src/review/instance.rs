//! Instances: what runs, for how long, with which limits, doors and secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::{About, Grade, Kind, tool};
use crate::check::network::host::Entry;
use crate::lock::words::{class_word, filesystem_word, mode_word, scope_word, sharing_word};
use crate::lock::{LockedCredential, LockedDiscovery, LockedImage, LockedInstance};
use crate::model::{
    Class, CredentialScope, Filesystem, Limits, Network, NetworkMode, Sharing, SharingMode,
};

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
            .from_to(Some(class_word(old.class)), Some(class_word(*class)));
    }
    if old.filesystem != *filesystem {
        let rank = |filesystem| match filesystem {
            Filesystem::None => 0,
            Filesystem::Temp => 1,
            Filesystem::Workspace => 2,
        };
        let (grade, says) = if rank(*filesystem) > rank(old.filesystem) {
            (Grade::Widening, "it may write more")
        } else {
            (Grade::Narrowing, "it may write less")
        };
        about
            .add(Kind::Filesystem, "filesystem", grade, says)
            .from_to(
                Some(filesystem_word(old.filesystem)),
                Some(filesystem_word(*filesystem)),
            );
    }
    if old.cache != *cache {
        let (grade, says) = if *cache {
            (Grade::Widening, "what it writes to /cache stays")
        } else {
            (
                Grade::Narrowing,
                "nothing that it writes to /cache stays any more",
            )
        };
        about
            .add(Kind::Cache, "cache", grade, says)
            .from_to(Some(old.cache), Some(cache));
    }
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
    about
        .add(Kind::Instance, "", Grade::Widening, "a new instance")
        .from_to(None::<&str>, Some(&new.image.written));
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
        .from_to(Some(&old.image.written), None::<&str>);
}

/// Entries whose destinations may be private addresses (N8).
pub(super) fn private(about: &mut About<'_>, old: &[String], new: &[String]) {
    for entry in new.iter().filter(|entry| !old.contains(entry)) {
        let says = format!("`{entry}` may lead to private addresses now");
        about
            .add(Kind::Network, "private", Grade::Widening, says)
            .from_to(None::<&str>, Some(entry));
    }
    for entry in old.iter().filter(|entry| !new.contains(entry)) {
        let says = format!("`{entry}` may not lead to private addresses any more");
        about
            .add(Kind::Network, "private", Grade::Narrowing, says)
            .from_to(Some(entry), None::<&str>);
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
            .from_to(content(old), content(new));
    }
    if old.written != new.written {
        let says = "the manifest names another image";
        about
            .add(Kind::Image, "image.written", Grade::Neutral, says)
            .from_to(Some(&old.written), Some(&new.written));
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
            .from_to(Some(sharing_word(old.mode)), Some(sharing_word(*mode)));
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
            "limits.nano_cpus",
            "billionths of a core",
            old.nano_cpus,
            *nano_cpus,
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
        .from_to(Some(old), Some(new));
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
            .from_to(Some(mode_word(old.mode)), Some(mode_word(new.mode)));
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
            .from_to(None::<&str>, Some(host));
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
            .from_to(Some(host), None::<&str>);
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
                        .from_to(Some(scope_word(before.scope)), Some(scope_word(now.scope)));
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
                        .from_to(Some(before.required), Some(now.required));
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
            let says = match (before, now) {
                (None, _) => format!("a model reads `{name}` as well"),
                (_, None) => format!("a model does not read `{name}` any more"),
                _ => format!("`{name}`, which a model reads, is another text"),
            };
            about
                .add(Kind::Prompt, format!("prompt.{name}"), Grade::Neutral, says)
                .from_to(before, now);
        }
    }
}

fn discovery(about: &mut About<'_>, old: Option<&LockedDiscovery>, new: Option<&LockedDiscovery>) {
    match (old, new) {
        (None, None) => {}
        (None, Some(now)) => {
            let says = "its container lists its tools now, not the manifest";
            about
                .add(Kind::Discovery, "discovery.tool", Grade::Widening, says)
                .from_to(None::<&str>, Some(&now.tool));
        }
        (Some(before), None) => {
            let says = "its manifest lists its tools now, not the container";
            about
                .add(Kind::Discovery, "discovery.tool", Grade::Narrowing, says)
                .from_to(Some(&before.tool), None::<&str>);
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
                    .from_to(Some(&before.tool), Some(&now.tool));
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
                    .from_to(
                        Some(names(&before.credentials_present)),
                        Some(names(&now.credentials_present)),
                    );
            }
        }
    }
}
