//! What `sync --every` has done, as a text file that Prometheus' node_exporter collects: nothing listens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use camino::Utf8Path;
use selu_compiler::model::InstanceKey;
use selu_runtime::apply::{Discovery, Report};
use selu_runtime::lockfile::write_public;

use crate::exit::Exit;

/// One round.
#[derive(Debug)]
pub(crate) struct Round {
    /// Where it got that far.
    pub(crate) project: Option<String>,
    pub(crate) exit: Exit,
    pub(crate) took: Duration,
    /// How many tools each dynamic instance listed; `None` for one that did not.
    tools: BTreeMap<InstanceKey, Option<usize>>,
}

impl Default for Round {
    fn default() -> Self {
        Self {
            project: None,
            exit: Exit::Failed,
            took: Duration::ZERO,
            tools: BTreeMap::new(),
        }
    }
}

impl Round {
    /// Takes over what was found.
    pub(crate) fn count(&mut self, report: &Report) {
        for (key, discovery) in &report.discoveries {
            let tools = match discovery {
                Discovery::Found(found) => Some(found.discovered.tools.len()),
                Discovery::Failed(_) | Discovery::NotStarted => None,
            };
            self.tools.insert(key.clone(), tools);
        }
    }
}

/// All rounds of one process.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    project: String,
    rounds: u64,
    failed: u64,
    last: u64,
    last_good: u64,
    took: Duration,
    tools: BTreeMap<InstanceKey, Option<usize>>,
}

impl Metrics {
    /// Adds a round that ends now.
    pub(crate) fn note(&mut self, round: &Round) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        if let Some(project) = &round.project {
            self.project.clone_from(project);
        }
        self.rounds += 1;
        self.last = now;
        self.took = round.took;
        if round.exit == Exit::Done {
            self.last_good = now;
        } else {
            self.failed += 1;
        }
        self.tools.clone_from(&round.tools);
    }

    /// Replaces the file as a whole: a collector never sees half of it.
    pub(crate) fn write(&self, path: &Utf8Path) -> anyhow::Result<()> {
        write_public(path, self.text().as_bytes())
            .with_context(|| format!("the metrics {path} could not be written"))
    }

    /// In Prometheus' text format. Names of projects and instances need no escaping: they are ids.
    fn text(&self) -> String {
        let project = format!("project=\"{}\"", self.project);
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: Vec<(String, String)>| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{{{labels}}} {value}");
            }
        };
        let one = |value: String| vec![(project.clone(), value)];
        family(
            "selu_sync_rounds_total",
            "counter",
            "Rounds since the service began.",
            one(self.rounds.to_string()),
        );
        family(
            "selu_sync_failed_rounds_total",
            "counter",
            "Rounds that did not end well.",
            one(self.failed.to_string()),
        );
        family(
            "selu_sync_last_round_timestamp_seconds",
            "gauge",
            "When the last round ended.",
            one(self.last.to_string()),
        );
        family(
            "selu_sync_last_success_timestamp_seconds",
            "gauge",
            "When a round ended well last; 0 for never.",
            one(self.last_good.to_string()),
        );
        family(
            "selu_sync_duration_seconds",
            "gauge",
            "How long the last round took.",
            one(format!("{:.3}", self.took.as_secs_f64())),
        );
        let instance = |key: &InstanceKey| format!("{project},instance=\"{key}\"");
        let up = self.tools.iter();
        family(
            "selu_sync_discovered",
            "gauge",
            "Whether the instance listed its tools in the last round.",
            up.map(|(key, tools)| (instance(key), u8::from(tools.is_some()).to_string()))
                .collect(),
        );
        let known = self.tools.iter();
        family(
            "selu_sync_tools",
            "gauge",
            "How many tools the instance listed.",
            known
                .filter_map(|(key, tools)| Some((instance(key), (*tools)?.to_string())))
                .collect(),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_counts_rounds_and_says_per_instance_what_was_found() {
        let mut metrics = Metrics::default();
        let mut round = Round {
            project: Some("p".to_owned()),
            exit: Exit::Done,
            took: Duration::from_millis(1_500),
            ..Round::default()
        };
        round.tools.insert(InstanceKey::new("a", "b"), Some(3));
        round.tools.insert(InstanceKey::new("a", "c"), None);
        metrics.note(&round);
        round.exit = Exit::Partial;
        round.project = None;
        metrics.note(&round);
        let text = metrics.text();
        for line in [
            "# TYPE selu_sync_rounds_total counter",
            "selu_sync_rounds_total{project=\"p\"} 2",
            "selu_sync_failed_rounds_total{project=\"p\"} 1",
            "selu_sync_duration_seconds{project=\"p\"} 1.500",
            "selu_sync_discovered{project=\"p\",instance=\"a/b\"} 1",
            "selu_sync_discovered{project=\"p\",instance=\"a/c\"} 0",
            "selu_sync_tools{project=\"p\",instance=\"a/b\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with('\n'), "the format demands a last line feed");
        assert!(!text.contains("selu_sync_tools{project=\"p\",instance=\"a/c\"}"));
    }
}
