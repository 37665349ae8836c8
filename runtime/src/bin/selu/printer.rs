//! Standard output is data, standard error is talk.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use selu_compiler::report::{escape, json_text};
use selu_runtime::events::{Event, Events, subject_name};
use selu_runtime::secrets::Redactor;
use serde_json::{Value, json};

use crate::args::Format;
use crate::exit::Exit;
use crate::hints;

/// Version of every JSON form that the commands print themselves.
pub(crate) const FORMAT_VERSION: &str = "1.0";

/// The one way out to the terminal.
pub(crate) struct Printer {
    format: Format,
    answered: AtomicBool,
    lost: OnceLock<io::Error>,
    /// One for each time that values were gathered: those that were replaced meanwhile are no less secret.
    redactors: Mutex<Vec<Redactor>>,
    gone: AtomicBool,
    terminal: bool,
    lines: MultiProgress,
    bars: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Printer {
    /// Looks at the terminal once.
    pub(crate) fn new(format: Format) -> Self {
        let terminal = io::stderr().is_terminal();
        let target = if terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self {
            format,
            answered: AtomicBool::new(false),
            lost: OnceLock::new(),
            redactors: Mutex::default(),
            gone: AtomicBool::new(false),
            terminal,
            lines: MultiProgress::with_draw_target(target),
            bars: Mutex::default(),
        }
    }

    /// Whether standard output is to be JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether texts on standard output may be coloured: a terminal, and no `NO_COLOR`.
    pub(crate) fn color_out(&self) -> bool {
        colors_allowed() && io::stdout().is_terminal()
    }

    /// Whether texts on standard error may be coloured.
    pub(crate) fn color_err(&self) -> bool {
        colors_allowed() && self.terminal
    }

    /// Columns of the terminal that standard output is; `None` where it is none.
    pub(crate) fn width_out(&self) -> Option<usize> {
        columns(io::stdout())
    }

    /// Columns of the terminal that standard error is.
    pub(crate) fn width_err(&self) -> Option<usize> {
        columns(io::stderr())
    }

    /// Which form standard output has.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Tells which values never may be shown.
    pub(crate) fn guard(&self, redactor: &Redactor) {
        let mut redactors = self
            .redactors
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !redactors.contains(redactor) {
            redactors.push(redactor.clone());
        }
    }

    /// Data as text; nothing if standard output is to be JSON.
    pub(crate) fn data(&self, text: &str) {
        if !self.is_json() {
            self.write_out(text);
        }
    }

    /// Data as JSON; nothing if standard output is to be text.
    pub(crate) fn json(&self, value: &Value) {
        if self.is_json() && !self.answered.swap(true, Ordering::SeqCst) {
            self.write_out(&format!("{}\n", json_text(value)));
        }
    }

    /// One of many JSON documents, on a line of its own; nothing if standard output is to be text.
    pub(crate) fn json_line(&self, value: &Value) {
        if self.is_json() {
            self.answered.store(true, Ordering::SeqCst);
            self.write_out(&format!("{value}\n"));
        }
    }

    /// Leaves an empty terminal; does nothing in a pipe.
    pub(crate) fn clear_screen(&self) {
        if io::stdout().is_terminal() {
            self.write_out("\u{1b}[2J\u{1b}[3J\u{1b}[H");
        }
    }

    /// A line of talk, as it is.
    pub(crate) fn say(&self, text: &str) {
        let write = || {
            let mut stderr = io::stderr().lock();
            // Nobody is left to be told that talking failed.
            let _ = writeln!(stderr, "{}", text.trim_end_matches('\n'));
        };
        if self.terminal {
            self.lines.suspend(write);
        } else {
            write();
        }
    }

    /// A warning; it may quote what somebody else wrote.
    pub(crate) fn warn(&self, text: &str) {
        self.say(&format!("{} {}", self.paint("33", "warning:"), shown(text)));
    }

    /// A hint on what to do next; it may quote what somebody else wrote.
    pub(crate) fn hint(&self, text: &str) {
        self.say(&format!("{} {}", self.paint("36", "hint:"), shown(text)));
    }

    /// An error with its chain, once, and with its hints; as JSON too when that is asked for.
    pub(crate) fn error(&self, error: &anyhow::Error, exit: Exit) {
        let clean = |text: String| self.clean(&text);
        let message = clean(error.to_string());
        let causes: Vec<String> = error
            .chain()
            .skip(1)
            .map(|e| clean(e.to_string()))
            .collect();
        let hints = hints::of(error);
        self.say(&format!(
            "{} {}",
            self.paint("31;1", "error:"),
            shown(&message)
        ));
        for cause in &causes {
            self.say(&format!("  because: {}", shown(cause)));
        }
        for hint in &hints {
            self.hint(hint);
        }
        self.json(&json!({
            "format_version": FORMAT_VERSION,
            "error": { "message": message, "causes": causes, "hints": hints },
            "exit_code": exit.code(),
        }));
    }

    /// Text from outside without secrets.
    pub(crate) fn clean(&self, text: &str) -> String {
        let redactors = self
            .redactors
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        redactors
            .iter()
            .fold(text.to_owned(), |text, redactor| redactor.clean(&text))
    }

    /// Why standard output is not whole, if it is not: a full disk, for one.
    pub(crate) fn lost(&self) -> Option<&io::Error> {
        self.lost.get()
    }

    /// Whether whoever read standard output has gone: nothing more needs to be found out for them.
    pub(crate) fn reader_is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// A reader that went away (`selu plan | head`) is no failure.
    fn write_out(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        let written = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                // The first one says enough.
                let _ = self.lost.set(error);
            }
            Err(_) => self.gone.store(true, Ordering::SeqCst),
            Ok(()) => {}
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.color_err() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn spin(&self, name: &str, text: &str) {
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = bars.entry(name.to_owned()).or_insert_with(|| {
            let bar = self.lines.add(ProgressBar::new_spinner());
            // The template is a constant; a bar in the default style is no reason to fail.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        bar.set_message(text.to_owned());
    }

    fn stop(&self, name: &str) {
        let bar = self
            .bars
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name);
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    }
}

impl Events for Printer {
    fn emit(&self, event: Event) {
        match event {
            Event::Step { subject, text } => {
                let name = subject_name(&subject);
                if self.terminal {
                    self.spin(&name, &shown(&text));
                } else {
                    self.say(&format!("{name}: {}", shown(&text)));
                }
            }
            // In a pipe, a pull's hundred lines would drown what matters.
            Event::Progress { subject, text } => {
                if self.terminal {
                    self.spin(&subject_name(&subject), &shown(&text));
                }
            }
            Event::Done { subject, text } => {
                let name = subject_name(&subject);
                self.stop(&name);
                self.say(&format!("{name}: {}", self.paint("32", &shown(&text))));
            }
            Event::Failed { subject, text } => {
                let name = subject_name(&subject);
                self.stop(&name);
                self.say(&format!(
                    "{name}: {} {}",
                    self.paint("31;1", "failed:"),
                    shown(&text)
                ));
            }
            Event::Warning { text } => self.warn(&text),
        }
    }
}

/// Line by line, with what could steer a terminal made visible.
pub(crate) fn shown(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| escape(line).to_string()).collect();
    lines.join("\n")
}

fn columns(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

fn colors_allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
