//! A container's settings, field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use serde_json::Value;

use super::{Cause, Reason};
use crate::model::Limits;
use crate::plan::hash::{MadeLimits, VERSION_PREFIX};
use crate::plan::{ContainerSpec, label};

/// What a live container's spec label says about the planned hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// Made for exactly this.
    ForThis,
    /// Made for exactly this but for limits, which an engine changes in place and its labels do not follow.
    ForOtherLimits,
    /// Labelled by another version of `selu`: only the fields can tell (product.md 7).
    ByOtherVersion,
    /// Made for something else, or the label is missing.
    ForOther,
}

impl Made {
    /// Who is to blame for a difference in a setting that is made once.
    pub(super) fn cause(self) -> Cause {
        match self {
            Self::ForThis | Self::ForOtherLimits => Cause::Drift,
            Self::ByOtherVersion | Self::ForOther => Cause::Intent,
        }
    }
}

pub(super) fn made(planned: &ContainerSpec, planned_hash: &str, observed: &ContainerSpec) -> Made {
    match observed.labels.get(label::SPEC) {
        Some(hash) if hash == planned_hash => Made::ForThis,
        Some(hash) if is_other_version(hash) => Made::ByOtherVersion,
        Some(hash) if as_made(planned, observed).as_ref() == Some(hash) => Made::ForOtherLimits,
        _ => Made::ForOther,
    }
}

/// The hash that what is planned would have had with the limits that the container was made with.
fn as_made(planned: &ContainerSpec, observed: &ContainerSpec) -> Option<String> {
    made_limits(observed)?.hash(
        planned,
        planned.labels.get(label::RULES).map(String::as_str),
    )
}

fn made_limits(observed: &ContainerSpec) -> Option<MadeLimits> {
    MadeLimits::from_label(observed.labels.get(label::LIMITS)?)
}

/// Limits as they were applied last, by path.
pub(super) fn applied_limits(limits: &Limits) -> [(&'static str, u64); 4] {
    let Limits {
        memory_mb,
        nano_cpus,
        // In no setting of the container, but in its rules.
        cpu_seconds: _,
        pids,
    } = limits;
    let memory = memory_mb.saturating_mul(1 << 20);
    [
        (MEMORY, memory),
        (MEMORY_SWAP, memory),
        (NANO_CPUS, *nano_cpus),
        (PIDS, *pids),
    ]
}

const MEMORY: &str = "spec.memory_bytes";
const MEMORY_SWAP: &str = "spec.memory_swap_bytes";
const NANO_CPUS: &str = "spec.nano_cpus";
const PIDS: &str = "spec.pids";

/// `v7:…`.
fn is_other_version(hash: &str) -> bool {
    !hash.starts_with(VERSION_PREFIX)
        && hash
            .strip_prefix('v')
            .and_then(|rest| rest.split_once(':'))
            .is_some_and(|(version, _)| {
                !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
            })
}

/// The settings that the spec hash covers, and the rules that the container's label names. What the image itself sets is
/// in neither spec (G05, G07), so whatever one of them has beyond the other is a difference: a variable or a mount that
/// someone added opens something.
pub(super) fn settings(
    planned: &ContainerSpec,
    observed: &ContainerSpec,
    made: Made,
) -> Vec<Reason> {
    let ContainerSpec {
        image,
        command,
        user,
        env,
        read_only_root,
        cap_drop,
        cap_add,
        no_new_privileges,
        seccomp,
        memory_bytes,
        memory_swap_bytes,
        nano_cpus,
        pids,
        nofile,
        shm_bytes,
        tmpfs,
        volumes,
        sysctls,
        dns: _,
        log_bytes,
        log_files,
        restart,
        labels,
    } = planned;
    let mut found = Found::new(made.cause());
    // Without the limits that it was made with, its hash could not be judged once they were changed.
    let updatable = made != Made::ForOther || made_limits(observed).is_some();
    found.limits = match made {
        Made::ForThis => (Cause::Drift, false),
        Made::ForOtherLimits | Made::ByOtherVersion | Made::ForOther => (Cause::Intent, !updatable),
    };
    found.value("spec.image", &observed.image, image);
    let words = |command: &Option<Vec<String>>| command.as_ref().map(|words| words.join(" "));
    found.optional("spec.command", words(&observed.command), words(command));
    found.value("spec.user", &observed.user, user);
    found.all("spec.env", &observed.env, env);
    found.value(
        "spec.read_only_root",
        &observed.read_only_root,
        read_only_root,
    );
    found.set("spec.cap_drop", &observed.cap_drop, cap_drop);
    found.set("spec.cap_add", &observed.cap_add, cap_add);
    found.value(
        "spec.no_new_privileges",
        &observed.no_new_privileges,
        no_new_privileges,
    );
    found.value("spec.seccomp", &observed.seccomp, seccomp);
    found.limit(MEMORY, observed.memory_bytes, *memory_bytes);
    found.limit(MEMORY_SWAP, observed.memory_swap_bytes, *memory_swap_bytes);
    found.limit(NANO_CPUS, observed.nano_cpus, *nano_cpus);
    found.limit(PIDS, observed.pids, *pids);
    found.value("spec.nofile", &observed.nofile, nofile);
    let shm = |bytes: &Option<u64>| bytes.map(|bytes| bytes.to_string());
    found.optional("spec.shm_bytes", shm(&observed.shm_bytes), shm(shm_bytes));
    found.all("spec.tmpfs", &observed.tmpfs, tmpfs);
    found.all("spec.volumes", &observed.volumes, volumes);
    found.all("spec.sysctls", &observed.sysctls, sysctls);
    found.value("spec.log_bytes", &observed.log_bytes, log_bytes);
    found.value("spec.log_files", &observed.log_files, log_files);
    found.in_place("spec.restart", &observed.restart, restart);
    found.rules(
        observed.labels.get(label::RULES).map(String::as_str),
        labels.get(label::RULES).map(String::as_str),
    );
    found.reasons
}

/// What belongs to one generation: resolvers, and labels other than those that [`settings`] and [`made`] judge.
pub(super) fn bindings(
    planned: &ContainerSpec,
    observed: &ContainerSpec,
    made: Made,
) -> Vec<Reason> {
    let mut found = Found::new(made.cause());
    let list = |addresses: &[std::net::Ipv4Addr]| {
        let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        (!texts.is_empty()).then(|| texts.join(" "))
    };
    found.optional("spec.dns", list(&observed.dns), list(&planned.dns));
    let mut judged = vec![label::SPEC, label::RULES];
    // Containers that were made before there was such a label do without; after a change of limits it says what was.
    if made != Made::ForThis || !observed.labels.contains_key(label::LIMITS) {
        judged.push(label::LIMITS);
    }
    let ours = planned
        .labels
        .iter()
        .filter(|(name, _)| !judged.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    found.ours("spec.labels", &observed.labels, &ours);
    found.reasons
}

struct Found {
    cause: Cause,
    /// Of limits: the cause, and whether they force a replacement.
    limits: (Cause, bool),
    reasons: Vec<Reason>,
}

impl Found {
    fn new(cause: Cause) -> Self {
        Self {
            cause,
            limits: (cause, true),
            reasons: Vec::new(),
        }
    }

    fn push(&mut self, path: String, old: Option<String>, new: Option<String>, in_place: bool) {
        if old != new {
            self.reasons.push(Reason {
                path,
                old,
                new,
                cause: self.cause,
                forces_replace: !in_place,
            });
        }
    }

    fn optional(&mut self, path: &str, old: Option<String>, new: Option<String>) {
        self.push(path.to_owned(), old, new, false);
    }

    fn value<T: Display>(&mut self, path: &str, old: &T, new: &T) {
        self.optional(path, Some(old.to_string()), Some(new.to_string()));
    }

    fn limit(&mut self, path: &str, old: u64, new: u64) {
        let (cause, forces_replace) = self.limits;
        if old != new {
            self.reasons.push(Reason {
                path: path.to_owned(),
                old: Some(old.to_string()),
                new: Some(new.to_string()),
                cause,
                forces_replace,
            });
        }
    }

    fn in_place<T: Display>(&mut self, path: &str, old: &T, new: &T) {
        let (old, new) = (old.to_string(), new.to_string());
        self.push(path.to_owned(), Some(old), Some(new), true);
    }

    fn set(&mut self, path: &str, old: &[String], new: &[String]) {
        let text = |items: &[String]| {
            let sorted: BTreeSet<&str> = items.iter().map(String::as_str).collect();
            let sorted: Vec<&str> = sorted.into_iter().collect();
            (!sorted.is_empty()).then(|| sorted.join(" "))
        };
        self.optional(path, text(old), text(new));
    }

    /// Keys that we set; the engine may add others.
    fn ours(&mut self, path: &str, old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) {
        for (key, value) in new {
            self.optional(
                &format!("{path}.{key}"),
                old.get(key).cloned(),
                Some(value.clone()),
            );
        }
    }

    /// Every key.
    fn all(&mut self, path: &str, old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            self.optional(
                &format!("{path}.{key}"),
                old.get(key).cloned(),
                new.get(key).cloned(),
            );
        }
    }

    fn rules(&mut self, old: Option<&str>, new: Option<&str>) {
        if old == new {
            return;
        }
        let parse = |text: Option<&str>| {
            text.and_then(|text| serde_json::from_str::<Value>(text).ok())
                .filter(Value::is_object)
        };
        match (parse(old), parse(new)) {
            (Some(old), Some(new)) => self.json("rules", Some(&old), Some(&new)),
            _ => self.optional("rules", old.map(str::to_owned), new.map(str::to_owned)),
        }
    }

    fn json(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        if let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                self.json(&format!("{path}.{key}"), old.get(key), new.get(key));
            }
            return;
        }
        let text = |value: Option<&Value>| {
            value.map(|value| match value {
                Value::String(text) => text.clone(),
                Value::Array(items) if items.iter().all(Value::is_string) => {
                    let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                    items.join(" ")
                }
                other => other.to_string(),
            })
        };
        self.optional(path, text(old), text(new));
    }
}
