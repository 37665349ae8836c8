//! `selu new`: the files of a new capability.

mod ask;

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use camino::Utf8PathBuf;
use selu_runtime::scaffold::{Credential, Source, Wrapper};
use selu_runtime::stop::Stop;
use serde_json::{Value, json};

use crate::args::{Cli, NewArgs, NewKind, NewMcpArgs};
use crate::exit::{Ending, Exit};
use crate::outcome::counted;
use crate::printer::{FORMAT_VERSION, Printer};

/// How long npm may take to say what a package's program is called.
const NPM: Duration = Duration::from_secs(30);

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &NewArgs,
) -> anyhow::Result<Exit> {
    match &args.kind {
        NewKind::Mcp(args) => mcp(cli, printer, stop, args).await,
    }
}

async fn mcp(cli: &Cli, printer: &Printer, stop: &Stop, args: &NewMcpArgs) -> anyhow::Result<Exit> {
    let (source, rule, of_headers) = source(args)?;
    let mut command = args.command.clone();
    if command.is_empty()
        && let Source::Npm { package, version } = &source
    {
        match program(package, version.as_deref()).await {
            Ok(program) => command = vec![program],
            Err(reason) => printer.warn(&format!(
                "what {package} calls its program is not known ({reason:#}); its Dockerfile takes the package's name"
            )),
        }
    }
    let wrapper = Wrapper {
        id: args.name.clone(),
        title: args.name.clone(),
        description: String::new(),
        source,
        command,
        credentials: args
            .credentials
            .iter()
            .map(|name| Credential {
                name: name.clone(),
                required: true,
                description: String::new(),
            })
            .chain(of_headers)
            .collect(),
        hosts: args.hosts.iter().cloned().chain(rule).collect(),
        // Whoever needs a value is listed without one.
        placeholders: args.credentials.clone(),
        proposed_hosts: Vec::new(),
        tools: Vec::new(),
    };
    let (mut wrapper, notes) = wrapper.settle()?;
    // What a person wrote on this line is meant; leaving it out would be a surprise.
    if let Some(note) = notes.first() {
        return Err(Ending::usage(note.clone()).into());
    }
    let written = wrapper.write(&args.dir)?;
    stop.begin_work();
    let asked = ask::ask(cli, printer, stop, &args.dir, &mut wrapper).await;
    let id = &args.name;
    let reason = asked
        .err()
        .map(|error| printer.clean(&format!("{error:#}")));
    match &reason {
        None => printer.say(&format!(
            "the server lists {}; next: read manifest.yaml, `selu apply`, then `selu tools`",
            counted(wrapper.tools.len(), "tool")
        )),
        Some(reason) => {
            printer.warn(&format!("the server was not asked for its tools: {reason}"));
            printer.say(&format!(
                "next: `selu check`, `selu build {id}/{id}`, `selu apply`, which asks it, then `selu tools`"
            ));
        }
    }
    printer.data(&listed(&written));
    let tools = wrapper.tools.iter();
    let tools: Vec<Value> = tools
        .map(|tool| json!({ "name": tool.name, "reads": tool.reads }))
        .collect();
    printer.json(&json!({
        "format_version": FORMAT_VERSION,
        "written": written,
        "tools": tools,
        "proposed_credentials": wrapper.placeholders.iter().filter(|name| !args.credentials.contains(name)).collect::<Vec<_>>(),
        "proposed_hosts": wrapper.proposed_hosts,
        "not_asked": reason,
    }));
    Ok(if stop.requested() {
        Exit::Interrupted
    } else {
        Exit::Done
    })
}

/// Where the server comes from, and what it needs for that.
fn source(args: &NewMcpArgs) -> anyhow::Result<(Source, Option<String>, Vec<Credential>)> {
    let of = &args.source;
    let source = match (&of.npm, &of.pypi, &of.image, &of.url) {
        (Some(npm), None, None, None) => Source::npm(npm),
        (None, Some(pypi), None, None) => Source::pypi(pypi),
        (None, None, Some(image), None) => Source::image(image),
        (None, None, None, Some(url)) => {
            let source = Source::url(url, &args.headers);
            let (source, rule, credentials) =
                source.map_err(|error| Ending::usage(error.to_string()))?;
            return Ok((source, Some(rule), credentials));
        }
        _ => return Err(Ending::usage("one of --npm, --pypi, --image and --url").into()),
    };
    let source = source.map_err(|error| Ending::usage(error.to_string()))?;
    Ok((source, None, Vec::new()))
}

/// One path a line.
pub(crate) fn listed(written: &[Utf8PathBuf]) -> String {
    written.iter().map(|path| format!("{path}\n")).collect()
}

/// What a package of npm calls its program, as npm itself says.
async fn program(package: &str, version: Option<&str>) -> anyhow::Result<String> {
    let named = match version {
        Some(version) => format!("{package}@{version}"),
        None => package.to_owned(),
    };
    let asked = tokio::process::Command::new("npm")
        .args(["view", "--json", &named, "bin"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(NPM, asked)
        .await
        .context("npm does not answer")?
        .context("npm cannot be run")?;
    if !output.status.success() {
        anyhow::bail!("npm has no {named}");
    }
    let bin: Value = serde_json::from_slice(&output.stdout).context("npm says nothing about it")?;
    match &bin {
        Value::Object(bin) => bin.keys().next().cloned(),
        // The program has the package's name, without its scope.
        Value::String(_) => package.rsplit('/').next().map(str::to_owned),
        _ => None,
    }
    .context("it has no program")
}
