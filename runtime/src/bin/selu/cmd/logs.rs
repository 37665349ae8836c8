//! `selu logs`: what a container wrote, made safe to look at.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use selu_compiler::model::InstanceKey;
use selu_compiler::observed::Observed;
use selu_compiler::plan::label;
use selu_runtime::engine::{LogRange, LogSource};
use serde_json::Value;

use crate::args::{Cli, Format, LogsArgs};
use crate::exit::{Ending, Exit};
use crate::hints::Hinted;
use crate::printer::{Printer, shown};
use crate::project::{document, owner};

/// A line is shown in pieces of this many bytes.
const LONGEST: usize = 64 << 10;

pub(crate) async fn run(cli: &Cli, printer: &Printer, args: &LogsArgs) -> anyhow::Result<Exit> {
    if args.follow && cli.global.format == Format::Json {
        let message = "--follow prints no JSON, because it has no end";
        return Err(Ending::usage(message).into());
    }
    let Some((name, settings)) = owner(cli, printer, &args.directory.dir)? else {
        return Ok(Exit::Failed);
    };
    crate::project::guard(cli, printer)?;
    let engine = crate::project::engine(cli, &settings).await?;
    let observed = engine.observe(&name, &[]).await?;
    let container = find(&observed, &args.name)?;
    let since = args.since.map(|ago| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |now| now.saturating_sub(ago).as_secs())
    });
    let range = LogRange {
        since,
        tail: args.tail,
        follow: args.follow,
    };
    let mut pieces = engine.log_stream(container, range).await?;
    let mut lines = Lines::default();
    let mut all = Vec::new();
    let mut show = |line: String| {
        let line = printer.clean(&line);
        printer.data(&format!("{}\n", shown(&line)));
        if printer.is_json() {
            all.push(Value::from(line));
        }
    };
    while let Some(piece) = pieces.next().await {
        let (source, bytes) = piece?;
        lines.add(source, &bytes).into_iter().for_each(&mut show);
        if printer.reader_is_gone() {
            return Ok(Exit::Done);
        }
    }
    lines.rest().into_iter().for_each(&mut show);
    let mut document = document(&name);
    document.insert("container".to_owned(), container.into());
    document.insert("lines".to_owned(), all.into());
    printer.json(&document.into());
    Ok(Exit::Done)
}

/// The container that is meant: the newest resident of an instance, or the gateway.
fn find<'a>(observed: &'a Observed, name: &str) -> anyhow::Result<&'a str> {
    let mut newest: BTreeMap<&str, (u64, &'a str)> = BTreeMap::new();
    for (container, found) in &observed.containers {
        let labels = &found.spec.labels;
        let text = |name: &str| labels.get(name).map(String::as_str);
        let (known_as, generation) = match text(label::ROLE) {
            Some("gateway") => ("gateway", 0),
            Some("resident") => {
                let generation = text(label::GENERATION).and_then(|text| text.parse().ok());
                let Some(instance) = text(label::INSTANCE) else {
                    continue;
                };
                (instance, generation.unwrap_or(0))
            }
            _ => continue,
        };
        let one = newest.entry(known_as).or_insert((generation, container));
        *one = (*one).max((generation, container));
    }
    let capability =
        |known: &str| InstanceKey::parse(known).is_some_and(|key| key.capability() == name);
    let meant: Vec<&str> = newest
        .keys()
        .filter(|known| **known == name || capability(known))
        .copied()
        .collect();
    let list = |names: Vec<&str>| names.join(", ");
    match (meant.as_slice(), newest.contains_key(name)) {
        (_, true) => Ok(newest[name].1),
        ([one], false) => Ok(newest[one].1),
        ([], false) if newest.is_empty() => Err(Hinted::new(
            "this project has no container on the engine",
            "`selu apply` makes them",
        )
        .into()),
        ([], false) => Err(Hinted::new(
            format!("`{}` has no container", shown(name)),
            format!("these have one: {}", list(newest.keys().copied().collect())),
        )
        .into()),
        (many, false) => Err(Hinted::new(
            format!("several instances are called `{}`", shown(name)),
            format!("say which: {}", list(many.to_vec())),
        )
        .into()),
    }
}

/// Pieces of two streams → whole lines, in the order of their ends.
#[derive(Default)]
struct Lines(BTreeMap<LogSource, Vec<u8>>);

impl Lines {
    fn add(&mut self, source: LogSource, bytes: &[u8]) -> Vec<String> {
        let open = self.0.entry(source).or_default();
        open.extend_from_slice(bytes);
        let mut lines = Vec::new();
        while let Some(end) = open.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = open.drain(..=end).collect();
            lines.push(text(&line[..end]));
        }
        // Whoever writes no line feed must not fill our memory.
        while open.len() > LONGEST {
            let line: Vec<u8> = open.drain(..LONGEST).collect();
            lines.push(text(&line));
        }
        lines
    }

    fn rest(&mut self) -> Vec<String> {
        let open = std::mem::take(&mut self.0);
        let open = open.into_values().filter(|bytes| !bytes.is_empty());
        open.map(|bytes| text(&bytes)).collect()
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line)
        .trim_end_matches('\r')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_lines_of_two_streams_come_out_whole_and_a_flood_in_pieces() {
        let mut lines = Lines::default();
        assert_eq!(lines.add(LogSource::Out, b"one\ntw"), ["one"]);
        assert_eq!(lines.add(LogSource::Error, b"oops\r\n"), ["oops"]);
        assert_eq!(lines.add(LogSource::Out, b"o\n"), ["two"]);
        let flood = vec![b'x'; LONGEST + 1];
        assert_eq!(lines.add(LogSource::Out, &flood).len(), 1);
        assert_eq!(lines.rest(), ["x"]);
        assert_eq!(lines.rest(), Vec::<String>::new());
    }
}
