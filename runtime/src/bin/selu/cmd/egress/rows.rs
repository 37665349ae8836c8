//! Events as a person reads them: one row for a connection from begin to end.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use camino::Utf8Path;
use selu_compiler::report::escape;
use selu_runtime::egress::record::{Event, Line, Phase};
use serde_json::{Value, json};

use crate::held::utc_ms;

/// Most columns that an instance or a target gets; what is longer moves its row.
const WIDEST: usize = 48;

/// What became of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Connected, and ended by one of its sides.
    Allowed,
    /// Connected, and still open.
    Open,
    /// Connected, and ended by the gateway.
    Cut,
    /// Connected; the gateway was ended before the connection was.
    Unfinished,
    /// Refused.
    Denied,
    /// Allowed, but the destination did not answer.
    Failed,
    /// A name below a wildcard, or of mode `any`, that was asked for the first time.
    Named,
    /// Events that were not kept.
    Lost,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Open => "open",
            Self::Cut => "cut",
            Self::Unfinished => "unfinished",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Named => "named",
            Self::Lost => "lost",
        }
    }
}

/// One row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) event: Event,
    pub(super) verdict: Verdict,
    times: u64,
}

/// Rows in the making.
#[derive(Default)]
pub(super) struct Rows {
    run: Option<u64>,
    rows: Vec<Row>,
    /// Where the row of a connection is, by run and number.
    opened: HashMap<(u64, u64), usize>,
    /// Connections whose row is made of a line that was carried over: they began before what is kept.
    carried: HashSet<usize>,
}

impl Rows {
    /// The present run: connections of others are not open any more.
    pub(super) fn begin(&mut self, run: Option<u64>) {
        self.run = run;
    }

    pub(super) fn add(&mut self, line: &Line) {
        let key = (line.run, line.event.id);
        match line.event.phase {
            Phase::Opened => {
                if self.opened.contains_key(&key) {
                    return;
                }
                let place = self.rows.len();
                self.opened.insert(key, place);
                if line.carried {
                    self.carried.insert(place);
                }
                let mut row = Row::of(line);
                if self.run != Some(line.run) {
                    row.verdict = Verdict::Unfinished;
                }
                self.rows.push(row);
            }
            Phase::Closed => match self.opened.get(&key) {
                Some(place) => {
                    let began = self.rows[*place].event.time_ms;
                    let mut row = Row::of(line);
                    row.event.time_ms = began;
                    self.rows[*place] = row;
                }
                None => self.rows.push(Row::of(line)),
            },
            Phase::Denied | Phase::Named | Phase::Lost => self.rows.push(Row::of(line)),
        }
    }

    /// Connections that are open.
    pub(super) fn open(self) -> Vec<Row> {
        let open = |row: &Row| row.verdict == Verdict::Open;
        self.rows.into_iter().filter(open).collect()
    }

    /// Everything that was asked for.
    pub(super) fn past(self) -> Vec<Row> {
        let Self { rows, carried, .. } = self;
        let rows = rows.into_iter().enumerate();
        // An end that was not met beside a begin that is older than the log says nothing new.
        rows.filter(|(place, row)| !carried.contains(place) || row.verdict != Verdict::Unfinished)
            .map(|(_, row)| row)
            .collect()
    }
}

/// Columns of the parts that vary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Widths {
    instance: usize,
    target: usize,
    address: usize,
}

impl Default for Widths {
    fn default() -> Self {
        Self {
            instance: 20,
            target: 32,
            address: 15,
        }
    }
}

impl Widths {
    pub(super) fn of(rows: &[Row]) -> Self {
        let widest = |least: usize, text: &dyn Fn(&Row) -> String| {
            let widths = rows.iter().map(|row| text(row).chars().count());
            widths.fold(least, usize::max).min(WIDEST)
        };
        Self {
            instance: widest(8, &|row| row.event.instance.to_string()),
            target: widest(6, &Row::target),
            address: widest(7, &Row::address),
        }
    }
}

/// The names of the columns.
pub(super) fn head(widths: &Widths) -> String {
    line(
        widths,
        [
            "time (UTC)",
            "instance",
            "via",
            "target",
            "address",
            "sent",
            "received",
            "verdict",
        ],
        "reason",
    )
}

fn line(widths: &Widths, columns: [&str; 8], reason: &str) -> String {
    let [
        time,
        instance,
        via,
        target,
        address,
        sent,
        received,
        verdict,
    ] = columns;
    let text = format!(
        "{time:19}  {instance:iw$}  {via:5}  {target:tw$}  {address:aw$}  {sent:>9}  {received:>9}  {verdict:10}  {reason}",
        iw = widths.instance,
        tw = widths.target,
        aw = widths.address,
    );
    format!("{}\n", text.trim_end())
}

impl Row {
    pub(super) fn of(line: &Line) -> Self {
        let code = line.event.reason.as_ref().map(|why| why.code.as_str());
        let verdict = match (line.event.phase, code) {
            (Phase::Opened, _) => Verdict::Open,
            (Phase::Closed, None) => Verdict::Allowed,
            (Phase::Closed, Some(_)) => Verdict::Cut,
            (
                Phase::Denied,
                Some("no-such-name" | "lookup-failed" | "connect-failed" | "timed-out"),
            ) => Verdict::Failed,
            (Phase::Denied, _) => Verdict::Denied,
            (Phase::Named, _) => Verdict::Named,
            (Phase::Lost, _) => Verdict::Lost,
        };
        Self {
            event: line.event.clone(),
            verdict,
            times: line.times,
        }
    }

    /// Whether the rules, or what was found behind an allowed name, kept it from being carried.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.verdict, Verdict::Denied | Verdict::Cut)
    }

    /// Whether it was the list that refused it.
    pub(super) fn is_unlisted(&self) -> bool {
        let code = self.event.reason.as_ref().map(|why| why.code.as_str());
        matches!(code, Some("not-listed" | "port-not-listed"))
    }

    fn target(&self) -> String {
        target(&self.event).unwrap_or_else(|| "-".to_owned())
    }

    fn address(&self) -> String {
        let named = self.event.name.is_some();
        let address = self.event.address.filter(|_| named);
        address.map_or_else(|| "-".to_owned(), |address| address.to_string())
    }

    fn reason(&self) -> String {
        let why = self.event.reason.as_ref();
        let mut text = why.map(|why| escape(&why.text)).unwrap_or_default();
        match (self.verdict, self.times) {
            (Verdict::Lost, 0) => text.push_str("events were not kept"),
            (Verdict::Lost, times) => text.push_str(&format!("{times} events were not kept")),
            (_, 0 | 1) => {}
            (_, times) => text.push_str(&format!(" ({times} times)")),
        }
        text
    }

    /// One line.
    pub(super) fn text(&self, widths: &Widths) -> String {
        let Event {
            time_ms,
            instance,
            via,
            sent,
            received,
            ..
        } = &self.event;
        let counted = matches!(self.verdict, Verdict::Allowed | Verdict::Cut);
        let bytes = |count: u64| match counted {
            true => size(count),
            false => "-".to_owned(),
        };
        line(
            widths,
            [
                &utc_ms(*time_ms),
                &escape(instance.as_str()),
                &via.to_string(),
                &self.target(),
                &self.address(),
                &bytes(*sent),
                &bytes(*received),
                self.verdict.word(),
            ],
            &self.reason(),
        )
    }

    /// For programs.
    pub(super) fn data(&self, allow: Option<(&str, &Utf8Path)>) -> Value {
        let Event {
            time_ms,
            instance,
            network,
            id,
            via,
            phase: _,
            name,
            address,
            port,
            reason,
            sent,
            received,
            millis,
        } = &self.event;
        let (allow, manifest) = allow.unzip();
        json!({
            "time": format!("{}Z", utc_ms(*time_ms).replace(' ', "T")),
            "time_ms": time_ms,
            "instance": instance,
            "network": network,
            "id": id,
            "via": via,
            "name": name,
            "address": address,
            "port": port,
            "verdict": self.verdict.word(),
            "times": self.times,
            "code": reason.as_ref().map(|why| &why.code),
            "reason": reason.as_ref().map(|why| &why.text),
            "sent": sent,
            "received": received,
            "millis": millis,
            "allow": allow,
            "manifest": manifest,
        })
    }
}

/// `name:port`, as much of it as is known, escaped.
pub(super) fn target(event: &Event) -> Option<String> {
    let host = match (&event.name, event.address) {
        (Some(name), _) => escape(name),
        (None, Some(IpAddr::V6(address))) => format!("[{address}]"),
        (None, address) => address?.to_string(),
    };
    Some(match event.port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

/// `512 B`, `1.5 kB`, `20 MB`.
fn size(bytes: u64) -> String {
    let mut rest = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if rest < 999.5 {
            let digits = usize::from(rest < 9.95 && unit != "B");
            return format!("{rest:.digits$} {unit}");
        }
        rest /= 1000.0;
    }
    format!("{rest:.1} TB")
}

#[cfg(test)]
mod tests;
