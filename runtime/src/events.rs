//! What happens while something is done, for whoever shows it. The runtime never prints.

use selu_compiler::diff::Subject;
use tokio::sync::mpsc;

use crate::engine::Progress;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Work on a subject goes into its next step.
    Step {
        /// What it is about.
        subject: Subject,
        /// Such as `creating network`, without secrets.
        text: String,
    },
    /// A line of progress inside a step: a pull, a build.
    Progress {
        /// What it is about.
        subject: Subject,
        /// Secrets removed.
        text: String,
    },
    /// A subject is as planned.
    Done {
        /// What it is about.
        subject: Subject,
        /// Such as `created`, `replaced`.
        text: String,
    },
    /// A subject is not as planned.
    Failed {
        /// What it is about.
        subject: Subject,
        /// Why, secrets removed.
        text: String,
    },
    /// Something that a person should know and that stops nothing.
    Warning {
        /// What.
        text: String,
    },
}

/// Where events go. Implementations must not block for long: they are called in the middle of work.
pub trait Events: Send + Sync {
    /// Takes one.
    fn emit(&self, event: Event);
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Events for Quiet {
    fn emit(&self, _event: Event) {}
}

/// The name of a subject, for people.
pub fn subject_name(subject: &Subject) -> String {
    match subject {
        Subject::Gateway(name) => format!("gateway {name}"),
        Subject::Instance(key) => key.to_string(),
        Subject::Container(name) => format!("container {name}"),
        Subject::Network(name) => format!("network {name}"),
    }
}

/// Does `work`, whose lines of progress come out one by one while it goes on.
pub async fn with_progress<T>(
    work: impl AsyncFnOnce(&Progress) -> T,
    mut emit: impl FnMut(String),
) -> T {
    let (send, mut lines) = mpsc::unbounded_channel();
    // Nobody listens any more only once the work is over.
    let progress = move |line: &str| drop(send.send(line.to_owned()));
    let mut work = std::pin::pin!(work(&progress));
    loop {
        tokio::select! {
            done = &mut work => {
                while let Ok(line) = lines.try_recv() {
                    emit(line);
                }
                return done;
            }
            Some(line) = lines.recv() => emit(line),
        }
    }
}
