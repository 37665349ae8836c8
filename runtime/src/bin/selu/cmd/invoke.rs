//! `selu invoke`: one tool call, within policy, schema and credentials.

use std::io::Read;
use std::time::Duration;

use anyhow::Context;
use selu_compiler::check::arguments::{ArgumentProblem, Arguments};
use selu_compiler::diff::{Action, Subject};
use selu_compiler::lock::{Callable, callable, no_instance};
use selu_compiler::model::{InstanceKey, Policy};
use selu_compiler::plan::Plan;
use selu_compiler::report::{Called, call_json};
use selu_runtime::invoke::{Call, Client};
use selu_runtime::stop::Stop;
use serde_json::{Map, Value};

use crate::args::{Cli, Directory, InvokeArgs};
use crate::exit::{Ending, Exit};
use crate::held;
use crate::hints::Hinted;
use crate::printer::{Printer, shown};
use crate::project::{Planned, load};

/// The session of a resident (X1).
const RESIDENT: &str = "default";

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &InvokeArgs,
) -> anyhow::Result<Exit> {
    let directory = Directory {
        dir: args.dir.clone(),
    };
    let Some(loaded) = load(cli, printer, &directory)? else {
        return Ok(Exit::Failed);
    };
    // Everything that can be refused without an engine is.
    let Some(plan) = loaded.plan_offline(printer) else {
        return Ok(Exit::Failed);
    };
    let key = instance(&plan, &args.capability)?;
    let tool = args.tool.as_str();
    let called = callable(&plan, loaded.lock(), &key, tool)?;
    let secrets = loaded.secrets(cli, printer)?;
    let config = secrets.call_config(&key, &called.instance.credentials, None)?;
    let arguments = arguments(args, &called.tool.input_schema)?;
    consent(printer, args, &key, called, &arguments).await?;

    let engine = loaded.engine(cli).await?;
    let Some(planned) = loaded.plan(printer, engine.view(), false).await? else {
        return Ok(Exit::Failed);
    };
    let (gateway, network) = resident(&planned, &key)?;
    let call = Call {
        tool,
        args: &arguments,
        config: &config,
        session: RESIDENT,
        capability: key.capability(),
        thread: &args.thread,
        deadline: Duration::from_secs(args.deadline),
    };
    stop.begin_work();
    let work = async {
        let client = Client::connect(engine.as_ref(), gateway, network).await?;
        anyhow::Ok(client.call(&call).await?)
    };
    let result = tokio::select! {
        result = work => result.with_context(|| format!("{key} {tool} gave no result"))?,
        () = stop.wait() => {
            let message = "interrupted; whether the tool did its work is not known, and the call is not repeated";
            return Err(Ending::interrupted_in(message).into());
        }
    };
    let result = cleaned(printer, read(&result)?);
    printer.data(&format!("{}\n", text(&result)));
    printer.json(&call_json(Called {
        project: &planned.plan.project,
        instance: key.as_str(),
        tool,
        session: RESIDENT,
        result: &result,
        terminal_on_success: called.tool.terminal_on_success,
    }));
    Ok(Exit::Done)
}

/// `agent/capability`, or a capability's id alone where that is one instance.
fn instance(plan: &Plan, name: &str) -> anyhow::Result<InstanceKey> {
    let found: Vec<&InstanceKey> = plan
        .instances
        .keys()
        .filter(|key| key.as_str() == name || key.capability() == name)
        .collect();
    match found.as_slice() {
        [] => Err(no_instance(plan, name).into()),
        [key] => Ok((*key).clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|key| key.as_str()).collect();
            let message = format!("`{name}` is {}; say which", names.join(" and "));
            Err(Ending::usage(message).into())
        }
    }
}

/// Reads and judges the arguments against the locked schema.
fn arguments(args: &InvokeArgs, schema: &Value) -> anyhow::Result<Map<String, Value>> {
    let takes = Arguments::of(schema)?;
    let read = match args.args.as_deref() {
        None => takes.from_pairs(&args.pairs),
        Some("-") => {
            let mut text = Vec::new();
            let read = std::io::stdin().read_to_end(&mut text);
            read.context("the arguments cannot be read from standard input")?;
            takes.from_json(&text)
        }
        Some(source) => match source.strip_prefix('@') {
            Some(file) => {
                let text = std::fs::read(file)
                    .with_context(|| format!("the arguments cannot be read from {file}"))?;
                takes.from_json(&text)
            }
            None => takes.from_json(source.as_bytes()),
        },
    };
    read.map_err(|problems| refused(&problems, schema))
}

fn refused(problems: &[ArgumentProblem], schema: &Value) -> anyhow::Error {
    let lines: String = problems
        .iter()
        .map(|problem| format!("\n  {problem}"))
        .collect();
    let message = format!("the tool does not take these arguments:{lines}");
    let known = schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = known
        .into_iter()
        .flat_map(|known| known.keys().map(String::as_str))
        .collect();
    let hint = match names.as_slice() {
        [] => "its locked schema names no arguments".to_owned(),
        names => format!("by its locked schema it takes {}", names.join(", ")),
    };
    Hinted::new(message, hint).into()
}

/// `ask` asks a person, or takes the consent that was given beforehand for this very tool.
async fn consent(
    printer: &Printer,
    args: &InvokeArgs,
    key: &InstanceKey,
    called: Callable<'_>,
    arguments: &Map<String, Value>,
) -> anyhow::Result<()> {
    let name = format!("{key}/{}", args.tool);
    if let Some(other) = args.yes_to.iter().find(|yes| **yes != name) {
        let message = format!("--yes-to {other} is not what is called, which is {name}");
        return Err(Ending::usage(message).into());
    }
    match called.policy {
        Policy::Allow => return Ok(()),
        Policy::Ask if args.yes_to.contains(&name) => return Ok(()),
        Policy::Ask | Policy::Block => {}
    }
    let hint = format!("its policy is `ask`: agree to it with --yes-to {name}");
    if args.args.as_deref() == Some("-") || !held::can_ask() {
        let message = "there is no terminal to ask on, so nothing was called";
        return Err(Hinted::new(message, hint).into());
    }
    let shown_arguments = format!("{:#}", Value::Object(arguments.clone()));
    printer.say(&format!(
        "{key} {}: {}\n{}",
        args.tool,
        shown(called.tool.description.trim()),
        shown(&printer.clean(&shown_arguments)),
    ));
    if held::answer("Call it?").await? {
        Ok(())
    } else {
        Err(Hinted::new("not agreed to, so nothing was called", hint).into())
    }
}

/// Where the resident is called, if it is what the plan says.
fn resident<'a>(planned: &'a Planned, key: &InstanceKey) -> anyhow::Result<(&'a str, &'a str)> {
    let instance = planned.plan.instances.get(key);
    let resident = instance.and_then(|instance| instance.resident.as_ref());
    let (Some(gateway), Some(resident)) = (&planned.plan.gateway, resident) else {
        let message = format!("{key} does not run");
        return Err(Hinted::new(message, "`selu apply` makes it run").into());
    };
    for change in &planned.changes.changes {
        let whose = match &change.subject {
            Subject::Instance(instance) if instance == key => key.to_string(),
            Subject::Gateway(name) => name.clone(),
            _ => continue,
        };
        let state = match change.action {
            Action::NoOp => continue,
            Action::Create => "does not run",
            Action::Start => "is stopped",
            Action::Update | Action::Replace => "runs otherwise than planned",
            Action::Delete => "is to be removed",
        };
        let reasons: String = change
            .reasons
            .iter()
            .map(|reason| {
                let text = |value: &Option<String>| shown(value.as_deref().unwrap_or("nothing"));
                let (old, new) = (text(&reason.old), text(&reason.new));
                format!("\n  {}: {old} → {new}", reason.path)
            })
            .collect();
        let message = format!("{whose} {state}, so nothing was called{reasons}");
        return Err(Hinted::new(message, "`selu apply` makes it as planned").into());
    }
    Ok((&gateway.name, &resident.network.name))
}

/// A result must be JSON.
fn read(result: &[u8]) -> anyhow::Result<Value> {
    serde_json::from_slice(result).map_err(|error| {
        let start = String::from_utf8_lossy(result);
        let start: String = start.chars().take(200).collect();
        let message = format!(
            "the tool was called, and its result of {} bytes is not JSON ({error}): {start}",
            result.len()
        );
        anyhow::Error::msg(message)
    })
}

/// Without credential values. Text by text, so that what is left is JSON whatever a value looks like.
fn cleaned(printer: &Printer, value: Value) -> Value {
    match value {
        Value::String(text) => printer.clean(&text).into(),
        Value::Array(items) => items
            .into_iter()
            .map(|item| cleaned(printer, item))
            .collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (printer.clean(&key), cleaned(printer, value)))
            .collect(),
        Value::Number(number) => {
            let text = number.to_string();
            let clean = printer.clean(&text);
            if clean == text {
                number.into()
            } else {
                clean.into()
            }
        }
        plain @ (Value::Null | Value::Bool(_)) => plain,
    }
}

/// A text as it reads, anything else as JSON; nothing in it steers a terminal.
fn text(result: &Value) -> String {
    match result {
        Value::String(text) => shown(text),
        other => shown(&format!("{other:#}")),
    }
}
