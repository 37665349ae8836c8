//! What a container uses, and what ended in it, by the engine's own statistics and events: cgroup versions 1 and 2 alike,
//! and of engines elsewhere.

use std::collections::HashMap;
use std::time::Instant;

use bollard::models::{ContainerStatsResponse, EventMessage};
use bollard::query_parameters::{EventsOptionsBuilder, StatsOptionsBuilder};
use futures_util::{StreamExt, TryStreamExt};

use super::Docker;
use super::call::plain;
use crate::engine::{EngineError, EngineResult, Incident, Usage};

/// The most events that are read: one container's, of a short time.
const MOST_EVENTS: usize = 1_000;

impl Docker {
    /// One reading; `None` if the container does not run.
    pub(super) async fn read_usage(&self, name: &str) -> EngineResult<Option<Usage>> {
        let call = format!("read the statistics of {name}");
        let options = StatsOptionsBuilder::default()
            .stream(false)
            .one_shot(true)
            .build();
        let mut stream = self.api.stats(plain(&call, name)?, Some(options)).boxed();
        let reading = self.call(&call, self.limits.look, stream.try_next());
        match reading.await {
            Ok(Some(stats)) => Ok(usage(&stats)),
            Ok(None) => Err(EngineError::Protocol {
                call,
                message: "the answer is empty".to_owned(),
            }),
            Err(EngineError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What ended in a container between a moment of this process's clock and now. The engine's own clock, which may be
    /// another one, is asked for: as long ago by it.
    pub(super) async fn read_incidents(
        &self,
        name: &str,
        since: Instant,
    ) -> EngineResult<Vec<Incident>> {
        let call = format!("read the events of {name}");
        let info = self.call(&call, self.limits.look, self.api.info()).await?;
        let now = info.system_time.as_deref().and_then(moment);
        let now = now.ok_or_else(|| EngineError::Protocol {
            call: call.clone(),
            message: "the engine does not say what time it is".to_owned(),
        })?;
        let ago = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let since = Moment(now.0.saturating_sub(ago));
        let filters = HashMap::from([
            ("container", vec![plain(&call, name)?]),
            ("type", vec!["container"]),
            ("event", vec!["oom", "die"]),
        ]);
        // An end in the past makes the engine answer with what it remembers and no more.
        let options = EventsOptionsBuilder::default()
            .since(&seconds(since))
            .until(&seconds(now))
            .filters(&filters)
            .build();
        let events = self.api.events(Some(options)).take(MOST_EVENTS);
        let events: Vec<EventMessage> = self
            .call(&call, self.limits.look, events.try_collect())
            .await?;
        Ok(events.iter().filter_map(incident).collect())
    }
}

/// Nanoseconds since 1970, by the engine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment(u64);

fn usage(stats: &ContainerStatsResponse) -> Option<Usage> {
    let cpu = stats.cpu_stats.as_ref()?.cpu_usage.as_ref()?.total_usage?;
    // A container that does not run has no processes.
    let pids = stats
        .pids_stats
        .as_ref()?
        .current
        .filter(|pids| *pids > 0)?;
    Some(Usage {
        cpu_nanos: cpu,
        pids,
    })
}

fn incident(event: &EventMessage) -> Option<Incident> {
    match event.action.as_deref()? {
        "oom" => Some(Incident::OutOfMemory),
        "die" => {
            let attributes = event.actor.as_ref()?.attributes.as_ref()?;
            let code = attributes.get("exitCode")?.parse().ok()?;
            Some(Incident::Ended { code })
        }
        _ => None,
    }
}

/// `1796047801.414175219`.
fn seconds(moment: Moment) -> String {
    let Moment(nanos) = moment;
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// From `2026-11-30T14:10:00.639398951Z`, or with an offset such as `+01:00`; `None` for any other form and for times
/// before 1970.
fn moment(text: &str) -> Option<Moment> {
    let (date, time) = text.split_once('T')?;
    let (time, offset) = match time.strip_suffix('Z') {
        Some(time) => (time, 0),
        None => {
            let sign = time.rfind(['+', '-'])?;
            let (time, offset) = time.split_at_checked(sign)?;
            let (hours, minutes) = offset.get(1..)?.split_once(':')?;
            let minutes = number(hours)? * 60 + number(minutes)?;
            let east = offset.starts_with('+');
            (time, if east { minutes * 60 } else { -minutes * 60 })
        }
    };
    let mut date = date.split('-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut time = time.split(':').map(number);
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let fraction = number(format!("{fraction:0<9}").get(..9)?)?;
    // Days since 1970 in a calendar whose years begin in March, so that leap days come last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days =
        365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset;
    let nanos = seconds.checked_mul(1_000_000_000)?.checked_add(fraction)?;
    u64::try_from(nanos).ok().map(Moment)
}

fn number(digits: &str) -> Option<i64> {
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_engines_times_are_read_to_the_nanosecond() {
        for (text, nanos) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:34:56.5Z", Some(951_827_696_500_000_000)),
            (
                "2026-11-30T14:10:01.414175219Z",
                Some(1_796_047_801_414_175_219),
            ),
            (
                "2026-11-30T15:10:01.414175219+01:00",
                Some(1_796_047_801_414_175_219),
            ),
            ("2024-12-31T23:59:59-00:30", Some(1_735_691_399_000_000_000)),
            ("0001-01-01T00:00:00Z", None),
            ("2026-11-30 14:10:01", None),
            ("2026-1x-30T14:10:01Z", None),
        ] {
            assert_eq!(moment(text), nanos.map(Moment), "{text}");
        }
        assert_eq!(
            seconds(Moment(1_796_047_801_014_175_219)),
            "1796047801.014175219"
        );
    }

    fn read(stats: serde_json::Value) -> Option<Usage> {
        usage(&serde_json::from_value(stats).unwrap())
    }

    /// What Docker 20.10 answered on a host with cgroup v1.
    const V1: &str = include_str!("usage/cgroup-v1.json");

    /// The same reading as Docker has it on a host with cgroup v2, after the reference of its API: the kernel counts in
    /// microseconds and not by CPU, nothing is known of the highest memory use, and without a limit of processes there
    /// is the largest number.
    const V2: &str = include_str!("usage/cgroup-v2.json");

    #[test]
    fn usage_is_read_from_both_versions_of_cgroups() {
        for (text, cpu_nanos) in [(V1, 31_715_024), (V2, 31_715_000)] {
            let expected = Usage { cpu_nanos, pids: 3 };
            assert_eq!(read(serde_json::from_str(text).unwrap()), Some(expected));
        }
    }

    #[test]
    fn a_reading_without_cpu_time_or_processes_is_none_and_not_zero() {
        for text in [V1, V2] {
            for field in ["/cpu_stats/cpu_usage", "/pids_stats"] {
                let mut stats: serde_json::Value = serde_json::from_str(text).unwrap();
                *stats.pointer_mut(field).unwrap() = json!({});
                assert_eq!(read(stats), None, "{field}");
            }
        }
    }

    #[test]
    fn a_container_that_does_not_run_uses_nothing() {
        let stopped = json!({
            "read": "0001-01-01T00:00:00Z",
            "pids_stats": {},
            "cpu_stats": {"cpu_usage": {"total_usage": 0}},
            "memory_stats": {},
        });
        assert_eq!(read(stopped), None);
    }

    #[test]
    fn an_end_and_a_lack_of_memory_are_told_apart() {
        let event = |action: &str| {
            let event = json!({"Action": action, "Actor": {"Attributes": {"exitCode": "137"}}});
            incident(&serde_json::from_value(event).unwrap())
        };
        assert_eq!(event("oom"), Some(Incident::OutOfMemory));
        assert_eq!(event("die"), Some(Incident::Ended { code: 137 }));
        assert_eq!(event("start"), None);
    }
}
