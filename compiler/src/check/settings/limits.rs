//! `[limits."agent/capability"]`: limits in place of a manifest's.

use std::collections::BTreeMap;

use super::{Check, Target};
use crate::check::capability::cores;
use crate::diag::codes::settings as codes;
use crate::model::settings::RawLimits;
use crate::model::{InstanceKey, LimitOverrides, Origin};
use crate::yaml::escape;

impl Check<'_> {
    pub(super) fn limits(&mut self, raw: BTreeMap<String, Option<RawLimits>>) {
        for (key, raw) in raw {
            let pointer = format!("/limits/{}", escape(&key));
            let place = self.document.key_place(&pointer);
            let Some(instance) = InstanceKey::parse(&key) else {
                self.bad_key(place, &key, "agent/capability");
                continue;
            };
            self.outcome.targets.push(Target {
                instance: instance.clone(),
                tool: None,
                place,
                // A limit is a guard: one that guards nothing is no warning.
                code: &codes::LIMITS_WITHOUT_INSTANCE,
            });
            let RawLimits {
                max_memory_mb,
                max_cpu_fraction,
                max_cpu_seconds,
                pids_limit,
            } = raw.unwrap_or_default();
            let nano_cpus = max_cpu_fraction.and_then(|_| {
                let pointer = format!("{pointer}/max_cpu_fraction");
                cores(self.document, &pointer, self.findings)
            });
            let limits = LimitOverrides {
                memory_mb: self.placed(&pointer, "max_memory_mb", max_memory_mb),
                nano_cpus: self.placed(&pointer, "max_cpu_fraction", nano_cpus),
                cpu_seconds: self.placed(&pointer, "max_cpu_seconds", max_cpu_seconds),
                pids: self.placed(&pointer, "pids_limit", pids_limit),
            };
            self.outcome.settings.limits.insert(instance, limits);
        }
    }

    /// A limit with where it is written.
    fn placed(&self, pointer: &str, field: &str, limit: Option<u64>) -> Option<(u64, Origin)> {
        let place = self.document.place(&format!("{pointer}/{field}"));
        limit.map(|limit| (limit, place.origin))
    }
}
