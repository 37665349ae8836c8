//! `selu mcp-bridge`: serve an MCP server as a capability.

use anyhow::Context;
use selu_runtime::bridge::{self, Options, Policies, Remote, Target};
use selu_runtime::stop::Stop;
use serde_json::json;

use crate::args::BridgeArgs;
use crate::exit::{Ending, Exit};
use crate::printer::{FORMAT_VERSION, Printer};

pub(crate) async fn run(printer: &Printer, stop: &Stop, args: &BridgeArgs) -> anyhow::Result<Exit> {
    // A signal ends what runs, and is what ends a container: no failure.
    stop.begin_work();
    let target = match &args.url {
        Some(url) => Target::Url(
            Remote::new(url, &args.headers).map_err(|error| Ending::usage(error.to_string()))?,
        ),
        None => Target::Command(args.command.clone()),
    };
    let options = Options {
        target,
        listen: args.listen,
        discovery_tool: args.discovery_tool.clone(),
        policies: policies(args)?,
        placeholders: args.placeholders.clone(),
        idle: args.idle,
    };
    if args.list {
        return Ok(list(printer, options).await);
    }
    bridge::serve(options, stop.clone()).await?;
    Ok(Exit::Done)
}

/// The answer is a document also where the server gives none: who asks from outside the container reads it.
async fn list(printer: &Printer, options: Options) -> Exit {
    match bridge::list(options).await {
        Ok(tools) => {
            printer.data(&format!("{tools:#}\n"));
            printer.json(&json!({ "format_version": FORMAT_VERSION, "tools": tools }));
            Exit::Done
        }
        Err(reason) => {
            printer.warn(&reason);
            printer.json(&json!({ "format_version": FORMAT_VERSION, "error": reason }));
            Exit::Failed
        }
    }
}

/// The file's and the command line's together; they must not contradict each other.
fn policies(args: &BridgeArgs) -> anyhow::Result<Policies> {
    let mut policies = Policies::default();
    if let Some(file) = &args.policy_file {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        policies
            .add_lines(&text)
            .with_context(|| file.to_string())?;
    }
    for policy in &args.policies {
        policies
            .add(policy)
            .map_err(|error| Ending::usage(format!("--policy: {error}")))?;
    }
    Ok(policies)
}
