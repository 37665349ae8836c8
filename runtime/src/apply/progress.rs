//! Which changes are done, run, or wait for others.

use std::collections::{BTreeMap, BTreeSet};

use selu_compiler::diff::{self, Action, Change, Subject};
use selu_compiler::model::InstanceKey;

use super::{Discovery, Job, Outcome, Report, StepError, chain};
use crate::events::Event;

/// Which changes are done, run, or wait for others (product.md 11).
pub(super) struct Progress<'a> {
    job: &'a Job<'a>,
    wanted: &'a BTreeSet<InstanceKey>,
    dependencies: Vec<Vec<usize>>,
    started: Vec<bool>,
    outcomes: Vec<Option<Outcome>>,
    pub(super) discoveries: BTreeMap<InstanceKey, Discovery>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(job: &'a Job<'a>, wanted: &'a BTreeSet<InstanceKey>) -> Self {
        let count = job.changes.changes.len();
        Self {
            job,
            wanted,
            dependencies: diff::dependencies(job.plan, job.changes),
            started: vec![false; count],
            outcomes: (0..count).map(|_| None).collect(),
            discoveries: BTreeMap::new(),
        }
    }

    /// The next change whose dependencies all succeeded. Those that can't start any more are settled on the way.
    pub(super) fn next(&mut self) -> Option<usize> {
        for index in 0..self.started.len() {
            if self.started[index] {
                continue;
            }
            let before = self.dependencies[index].iter();
            let states: Vec<Option<bool>> = before
                .map(|&earlier| self.outcomes[earlier].as_ref().map(Outcome::is_success))
                .collect();
            if states.contains(&Some(false)) {
                self.started[index] = true;
                let why = "something that it depends on failed".to_owned();
                self.outcomes[index] = Some(Outcome::NotStarted(why));
            } else if states.iter().all(Option::is_some) {
                self.started[index] = true;
                return Some(index);
            }
        }
        None
    }

    pub(super) fn settle_subject(&mut self, subject: &Subject, result: Result<(), StepError>) {
        let changes = &self.job.changes.changes;
        if let Some(index) = changes.iter().position(|change| change.subject == *subject) {
            self.started[index] = true;
            self.settle(index, result);
        }
    }

    pub(super) fn settle(&mut self, index: usize, result: Result<(), StepError>) {
        let change = &self.job.changes.changes[index];
        let subject = change.subject.clone();
        let outcome = match result {
            Ok(()) if change.action == Action::NoOp => Outcome::Unchanged,
            Ok(()) => {
                let text = self.done_word(change).to_owned();
                self.job.events.emit(Event::Done { subject, text });
                Outcome::Done
            }
            Err(StepError::Interrupted) => {
                Outcome::NotStarted("interrupted, and undone where it was begun".to_owned())
            }
            Err(error) => {
                let text = self.job.secrets.redactor().clean(&chain(&error));
                self.job.events.emit(Event::Failed {
                    subject,
                    text: text.clone(),
                });
                Outcome::Failed(text)
            }
        };
        self.outcomes[index] = Some(outcome);
    }

    pub(super) fn report(mut self) -> Report {
        for key in self.wanted {
            self.discoveries
                .entry(key.clone())
                .or_insert(Discovery::NotStarted);
        }
        let changes = self.job.changes.changes.iter().cloned();
        let outcomes = changes.zip(self.outcomes).map(|(change, outcome)| {
            let outcome = outcome.unwrap_or_else(|| match change.action {
                Action::NoOp => Outcome::Unchanged,
                _ => Outcome::NotStarted("something that it depends on failed".to_owned()),
            });
            (change, outcome)
        });
        Report {
            outcomes: outcomes.collect(),
            discoveries: self.discoveries,
            interrupted: self.job.stop.requested(),
        }
    }

    fn done_word(&self, change: &Change) -> &'static str {
        let trial = match &change.subject {
            Subject::Instance(key) => self.job.is_trial(key),
            Subject::Gateway(_) | Subject::Container(_) | Subject::Network(_) => false,
        };
        match change.action {
            _ if trial => "its container is ready to be asked",
            Action::Create => "created",
            Action::Update => "updated",
            Action::Replace => "replaced",
            Action::Start => "started",
            Action::Delete => "removed",
            Action::NoOp => "unchanged",
        }
    }
}
