//! selu.toml: each edit of what guards the project itself. What an edit does to an instance's or a tool's effective rights
//! is said there, once.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::{Accepted, Rules};
use super::{About, Grade, Kind, Snapshot};
use crate::diag::codes;
use crate::model::{InstanceKey, LimitOverrides, OnChange, Origin, Policy, Settings};

/// Compares what both sides know of selu.toml; a lock knows nothing of it.
pub(super) fn compare(about: &mut About<'_>, old: &Snapshot, new: &Snapshot) {
    if let (Some(before), Some(now)) = (&old.project, &new.project)
        && before != now
    {
        let says = "it owns other objects on the engine";
        setting(about, "project.name", Grade::Widening, says).between(Some(before), Some(now));
    }
    let (Some(before), Some(now)) = (&old.settings, &new.settings) else {
        return;
    };
    let Settings {
        policies,
        engine_host,
        subnets,
        resolvers,
        // Compared with the instance.
        private: _,
        prepare,
        limits,
        on_change,
        idle_stop,
        levels: _,
        review,
    } = now;
    if before.engine_host != *engine_host {
        let says = "another engine is asked, and given credentials";
        setting(about, "engine.host", Grade::Widening, says)
            .between(before.engine_host.as_ref(), engine_host.as_ref());
    }
    if before.subnets != *subnets {
        let says = "networks of containers have other addresses";
        setting(about, "engine.subnets", Grade::Neutral, says).between(before.subnets, *subnets);
    }
    if before.resolvers != *resolvers {
        let list = |servers: &[std::net::Ipv4Addr]| {
            let words: Vec<String> = servers.iter().map(ToString::to_string).collect();
            (!words.is_empty()).then(|| words.join(", "))
        };
        let says = "others say what a name leads to";
        setting(about, "engine.resolvers", Grade::Widening, says)
            .between(list(&before.resolvers), list(resolvers));
    }
    if before.on_change != *on_change {
        let word = |it| match it {
            OnChange::Update => "update",
            OnChange::Hold => "hold",
        };
        let (grade, says) = match on_change {
            OnChange::Update => (
                Grade::Widening,
                "tools that a container adds or changes take effect by themselves",
            ),
            OnChange::Hold => (
                Grade::Narrowing,
                "tools that a container adds or changes wait for a person",
            ),
        };
        setting(about, "discovery.on_change", grade, says)
            .between(Some(word(before.on_change)), Some(word(*on_change)));
    }
    if before.idle_stop != *idle_stop {
        let (grade, says) = match idle_stop {
            true => (Grade::Narrowing, "what nobody calls is stopped"),
            false => (Grade::Widening, "what nobody calls goes on running"),
        };
        setting(about, "runtime.idle_stop", grade, says)
            .between(Some(before.idle_stop), Some(idle_stop));
    }
    overrides(about, old, new, &before.policies, policies);
    commands(about, &before.prepare, prepare);
    same_limits(about, old, new, &before.limits, limits);
    levels(about, before, now);
    rules(about, &before.review, review);
}

fn setting<'f>(
    about: &'f mut About<'_>,
    path: impl Into<String>,
    grade: Grade,
    says: impl Into<String>,
) -> &'f mut super::Finding {
    about.add(Kind::Setting, path, grade, says)
}

type Policies = BTreeMap<(InstanceKey, String), (Policy, Origin)>;

/// Overrides that change no policy now, and may later.
fn overrides(
    about: &mut About<'_>,
    old: &Snapshot,
    new: &Snapshot,
    before: &Policies,
    now: &Policies,
) {
    let keys: BTreeSet<&(InstanceKey, String)> = before.keys().chain(now.keys()).collect();
    for key in keys {
        let (instance, tool) = key;
        let policy = |all: &Policies| all.get(key).map(|(policy, _)| *policy);
        let (was, is) = (policy(before), policy(now));
        if was == is {
            continue;
        }
        let effective = |snapshot: &Snapshot| {
            let instance = snapshot.instances.get(instance)?;
            instance.tools.get(tool).map(|tool| tool.policy)
        };
        let (grade, says) = match (effective(old), effective(new)) {
            (Some(old), Some(new)) if old == new => {
                (Grade::Neutral, "the policy of the tool stays what it was")
            }
            (None, None) => match (was, is) {
                // What the tool would recommend itself nobody knows.
                (Some(Policy::Allow), None) | (None, Some(Policy::Block)) => (
                    Grade::Narrowing,
                    "no such tool is known; should it come, it may less",
                ),
                (Some(was), Some(is)) if is < was => (
                    Grade::Narrowing,
                    "no such tool is known; should it come, it may less",
                ),
                _ => (
                    Grade::Widening,
                    "no such tool is known; should it come, it may more",
                ),
            },
            // The tool came, went, or has another policy, and that is said at the tool.
            _ => continue,
        };
        setting(about, format!("policy.\"{instance}/{tool}\""), grade, says).between(was, is);
    }
}

/// Commands that `selu build` runs on the machine of whoever says it.
fn commands(
    about: &mut About<'_>,
    before: &BTreeMap<InstanceKey, Vec<String>>,
    now: &BTreeMap<InstanceKey, Vec<String>>,
) {
    let keys: BTreeSet<&InstanceKey> = before.keys().chain(now.keys()).collect();
    for key in keys {
        let (was, is) = (before.get(key), now.get(key));
        if was == is {
            continue;
        }
        let (grade, says) = match is {
            Some(_) => (
                Grade::Widening,
                "`selu build` runs this on the machine of whoever builds",
            ),
            None => (Grade::Narrowing, "`selu build` runs no command any more"),
        };
        let words = |words: Option<&Vec<String>>| words.map(|words| format!("{words:?}"));
        setting(about, format!("build.\"{key}\".prepare"), grade, says)
            .between(words(was), words(is));
    }
}

/// Limits that are written now and limit what was limited before.
fn same_limits(
    about: &mut About<'_>,
    old: &Snapshot,
    new: &Snapshot,
    before: &BTreeMap<InstanceKey, LimitOverrides>,
    now: &BTreeMap<InstanceKey, LimitOverrides>,
) {
    let values = |all: &BTreeMap<InstanceKey, LimitOverrides>, key: &InstanceKey| {
        let LimitOverrides {
            memory_mb,
            nano_cpus,
            cpu_seconds,
            pids,
        } = all.get(key).cloned().unwrap_or_default();
        [memory_mb, nano_cpus, cpu_seconds, pids].map(|limit| limit.map(|(value, _)| value))
    };
    let keys: BTreeSet<&InstanceKey> = before.keys().chain(now.keys()).collect();
    for key in keys {
        let limits = |snapshot: &Snapshot| {
            let instance = snapshot.instances.get(key);
            instance.map(|instance| instance.limits.clone())
        };
        if values(before, key) != values(now, key) && limits(old) == limits(new) {
            let says = "its limits stay what they were";
            setting(about, format!("limits.\"{key}\""), Grade::Neutral, says);
        }
    }
}

/// What becomes of findings.
fn levels(about: &mut About<'_>, before: &Settings, now: &Settings) {
    for code in codes::all() {
        let (was, is) = (before.levels.of(code), now.levels.of(code));
        if was == is {
            continue;
        }
        let (grade, says) = if is < was {
            (Grade::Widening, "less is made of this finding")
        } else {
            (Grade::Narrowing, "more is made of this finding")
        };
        setting(about, format!("diagnostics.{}", code.name), grade, says)
            .between(Some(was), Some(is));
    }
}

/// The gates themselves.
fn rules(about: &mut About<'_>, before: &Rules, now: &Rules) {
    let Rules {
        person,
        max_tools,
        image_source,
        accepted,
    } = now;
    if before.person != *person {
        let all: BTreeSet<Kind> = Kind::ALL.into_iter().collect();
        let kinds = |kinds: &Option<BTreeSet<Kind>>| kinds.clone().unwrap_or_else(|| all.clone());
        let (grade, says) = if kinds(&before.person).is_subset(&kinds(person)) {
            (Grade::Narrowing, "more kinds of changes need a person")
        } else {
            (
                Grade::Widening,
                "some kinds of changes need no person any more",
            )
        };
        let words = |kinds: &Option<BTreeSet<Kind>>| {
            let words = |kinds: &BTreeSet<Kind>| {
                let words: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
                format!("[{}]", words.join(", "))
            };
            kinds.as_ref().map(words)
        };
        setting(about, "review.person", grade, says).between(words(&before.person), words(person));
    }
    if before.max_tools != *max_tools {
        let most = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        let (grade, says) = if most(*max_tools) > most(before.max_tools) {
            (
                Grade::Widening,
                "a capability may have more tools without a person",
            )
        } else {
            (
                Grade::Narrowing,
                "a capability may have fewer tools without a person",
            )
        };
        setting(about, "review.max_tools", grade, says).between(before.max_tools, *max_tools);
    }
    if before.image_source != *image_source {
        let (grade, says) = match image_source {
            true => (
                Grade::Narrowing,
                "an image that says no source needs a person",
            ),
            false => (
                Grade::Widening,
                "an image that says no source needs no person for that any more",
            ),
        };
        setting(about, "review.image_source", grade, says)
            .between(Some(before.image_source), Some(image_source));
    }
    for one in accepted.difference(&before.accepted) {
        let says = "it is accepted from now on, without a person who looks";
        setting(about, "review.accepted", Grade::Widening, says)
            .between(None::<&str>, Some(accepted_text(one)));
    }
    for one in before.accepted.difference(accepted) {
        let says = "it is not accepted any more";
        setting(about, "review.accepted", Grade::Narrowing, says)
            .between(Some(accepted_text(one)), None::<&str>);
    }
}

fn accepted_text(one: &Accepted) -> String {
    let Accepted {
        instance,
        tool,
        path,
        new,
        reason,
    } = one;
    let subject = instance.as_ref().map_or("selu.toml", InstanceKey::as_str);
    let tool = tool
        .as_ref()
        .map(|tool| format!(" {tool}"))
        .unwrap_or_default();
    let new = new.as_deref().unwrap_or("(absent)");
    format!("{subject}{tool} {path} → {new}: {reason}")
}
