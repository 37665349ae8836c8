//! `selu egress`: what containers reached, and what they were refused.

mod rows;
mod suggest;

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::model::{InstanceKey, Network, Project};
use selu_compiler::plan::names;
use selu_compiler::report::escape;
use selu_runtime::egress::record::{Ask, Line, Told};
use selu_runtime::engine::EngineError;
use selu_runtime::gateway::{EgressLog, GatewayError, egress_log};
use serde_json::Value;

use crate::args::{Cli, EgressArgs};
use crate::exit::{Ending, Exit};
use crate::hints::Hinted;
use crate::outcome::counted;
use crate::printer::{FORMAT_VERSION, Printer};
use crate::project::{document, engine, guard, load_project};
use rows::{Row, Rows, Widths};
use suggest::{Advice, Suggestion, without_guesses};

/// What the log cannot know (S10).
const UNSEEN: &str = "not seen, because nothing carries it: connections to raw addresses outside of the proxy, UDP, ICMP \
                      and IPv6";

/// What is known of an instance from the directory.
struct Known {
    manifest: Utf8PathBuf,
    network: Network,
}

pub(crate) async fn run(cli: &Cli, printer: &Printer, args: &EgressArgs) -> anyhow::Result<Exit> {
    let Some(project) = load_project(cli, printer, &args.directory.dir)? else {
        return Ok(Exit::Failed);
    };
    let known = known(&project, &args.directory.dir);
    let wanted = args.suggest.as_ref().or(args.instance.as_ref());
    if let Some(instance) = wanted.filter(|instance| !known.contains_key(*instance)) {
        return Err(unknown(instance, &known).into());
    }
    // A name that was asked for may hold what a capability was given.
    guard(cli, printer)?;
    let engine = engine(cli, &project.settings).await?;
    let Some(name) = project.name else {
        let hint = "set `name` in selu.toml, or say --project NAME";
        return Err(Hinted::new("the project has no name, so it has no gateway", hint).into());
    };
    let ask = Ask {
        last_ms: args
            .since
            .map(|Since(since)| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        instance: wanted.cloned(),
        follow: args.follow,
    };
    let log = egress_log(engine.as_ref(), &names::gateway(&name), &ask)
        .await
        .map_err(|error| absent(error, &name))?;
    if args.follow {
        return follow(printer, &known, log).await;
    }
    let (rows, lines) = gather(printer, log)
        .await
        .map_err(|error| absent(error, &name))?;
    if let Some(instance) = &args.suggest {
        let allowed = known.get(instance);
        let suggestion = Suggestion::of(&lines, allowed.map(|known| &known.network));
        let manifest = allowed.map(|known| known.manifest.as_path());
        printer.data(&suggestion.text(instance, manifest));
        let mut document = document(&name);
        document.insert("instance".to_owned(), instance.as_str().into());
        document.extend(suggestion.data(manifest));
        printer.json(&document.into());
        return Ok(Exit::Done);
    }
    let rows = if args.live { rows.open() } else { rows.past() };
    show(printer, &known, &rows);
    let mut document = document(&name);
    let events: Vec<Value> = rows.iter().map(|row| data(&known, row)).collect();
    document.insert("events".to_owned(), events.into());
    printer.json(&document.into());
    Ok(Exit::Done)
}

/// Every instance of the directory.
fn known(project: &Project, root: &Utf8Path) -> BTreeMap<InstanceKey, Known> {
    project
        .instances()
        .map(|(key, _, capability)| {
            let known = Known {
                manifest: match root.as_str() {
                    "." => capability.origin.file.clone(),
                    _ => root.join(&capability.origin.file),
                },
                network: capability.network.clone(),
            };
            (key, known)
        })
        .collect()
}

fn unknown(instance: &InstanceKey, known: &BTreeMap<InstanceKey, Known>) -> Ending {
    let names: Vec<&str> = known.keys().map(InstanceKey::as_str).collect();
    Ending::usage(format!(
        "{instance} is no instance of this project; it has {}",
        names.join(", ")
    ))
}

/// A gateway that is not there is no fault: nothing was applied yet.
fn absent(error: GatewayError, project: &str) -> anyhow::Error {
    match error {
        GatewayError::Engine(EngineError::NotFound { .. }) => {
            let message = format!("project {project} has no gateway on this engine, and so no log");
            Hinted::new(message, "`selu apply` makes it").into()
        }
        error => error.into(),
    }
}

async fn gather(printer: &Printer, mut log: EgressLog) -> Result<(Rows, Vec<Line>), GatewayError> {
    let (mut rows, mut lines) = (Rows::default(), Vec::new());
    while let Some(told) = log.next().await? {
        match told {
            Told::Head(head) => rows.begin(head.run),
            Told::Line(line) => {
                let line = clean(printer, line);
                rows.add(&line);
                lines.push(line);
            }
        }
    }
    Ok((rows, lines))
}

/// Without credential values.
fn clean(printer: &Printer, mut line: Line) -> Line {
    let event = &mut line.event;
    event.name = event.name.take().map(|name| printer.clean(&name));
    if let Some(why) = &mut event.reason {
        why.text = printer.clean(&why.text);
    }
    line
}

/// Prints what happens until it is interrupted, or the gateway ends.
async fn follow(
    printer: &Printer,
    known: &BTreeMap<InstanceKey, Known>,
    mut log: EgressLog,
) -> anyhow::Result<Exit> {
    printer.say(UNSEEN);
    while let Some(told) = log.next().await? {
        let Told::Line(line) = told else {
            continue;
        };
        if line.carried {
            continue;
        }
        let row = Row::of(&clean(printer, line));
        let mut text = row.text(&Widths::default());
        if let Some((Advice { entry, .. }, manifest)) = advice(known, &row) {
            text.push_str(&format!(
                "  to allow it: `- \"{entry}\"` in network.hosts of {}\n",
                escape(manifest.as_str())
            ));
        }
        printer.data(&text);
        let mut data = data(known, &row);
        if let Some(fields) = data.as_object_mut() {
            fields.insert("format_version".to_owned(), FORMAT_VERSION.into());
        }
        printer.json_line(&data);
    }
    Err(Hinted::new(
        "the gateway has ended, and its log with it",
        "`selu status` says how it is",
    )
    .into())
}

/// The entry that would allow what was refused, and the file that it belongs into.
fn advice<'a>(
    known: &'a BTreeMap<InstanceKey, Known>,
    row: &Row,
) -> Option<(Advice, &'a Utf8Path)> {
    let known = known
        .get(&row.event.instance)
        .filter(|_| row.is_unlisted())?;
    let advice = Advice::on(&row.event, Some(&known.network))?;
    Some((advice, known.manifest.as_path()))
}

/// A row for programs.
fn data(known: &BTreeMap<InstanceKey, Known>, row: &Row) -> Value {
    let advice = advice(known, row);
    row.data(
        advice
            .as_ref()
            .map(|(advice, manifest)| (advice.entry.as_str(), *manifest)),
    )
}

fn show(printer: &Printer, known: &BTreeMap<InstanceKey, Known>, rows: &[Row]) {
    if rows.is_empty() {
        printer.say("Nothing was carried or refused.");
    } else {
        let widths = Widths::of(rows);
        let mut text = rows::head(&widths);
        for row in rows {
            text.push_str(&row.text(&widths));
        }
        printer.data(&text);
        printer.data(&allowing(known, rows));
        let denied = rows.iter().filter(|row| row.is_refusal()).count();
        printer.say(&format!(
            "{}, {denied} of them refused",
            counted(rows.len(), "event")
        ));
    }
    printer.say(UNSEEN);
}

/// The lines that would allow what was refused, file by file.
fn allowing(known: &BTreeMap<InstanceKey, Known>, rows: &[Row]) -> String {
    let mut files: BTreeMap<&Utf8Path, Vec<Advice>> = BTreeMap::new();
    for row in rows {
        if let Some((advice, manifest)) = advice(known, row) {
            files.entry(manifest).or_default().push(advice);
        }
    }
    let mut text = String::new();
    for (manifest, advice) in files {
        text.push_str(&format!(
            "\nwhat would allow what was refused, in {}:\nnetwork:\n  mode: allowlist\n  hosts:\n",
            escape(manifest.as_str())
        ));
        for (entry, remark) in without_guesses(advice) {
            text.push_str(&Advice::line(&entry, remark.as_ref()));
        }
    }
    text
}

/// A span of time as `--since` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since(Duration);

impl std::str::FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is no span of time: write 90s, 15m, 2h or 7d");
        let unit = text.chars().last().ok_or_else(wrong)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let digits = text.trim_end_matches(unit);
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let seconds = number.checked_mul(seconds).ok_or_else(wrong)?;
        if digits.len() + 1 == text.len() && number > 0 {
            Ok(Self(Duration::from_secs(seconds)))
        } else {
            Err(wrong())
        }
    }
}

/// `AGENT/CAPABILITY` as an argument.
pub(crate) fn parse_instance(text: &str) -> Result<InstanceKey, String> {
    InstanceKey::parse(text).ok_or_else(|| format!("`{text}` is not AGENT/CAPABILITY"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_have_one_number_and_one_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("2h", 7_200), ("7d", 604_800)] {
            assert_eq!(text.parse(), Ok(Since(Duration::from_secs(seconds))));
        }
        for text in [
            "",
            "h",
            "1",
            "0s",
            "-1h",
            "1.5h",
            "1hh",
            "1 h",
            "1w",
            "99999999999999999999d",
            "1e9d",
        ] {
            assert!(text.parse::<Since>().is_err(), "{text}");
        }
    }
}
