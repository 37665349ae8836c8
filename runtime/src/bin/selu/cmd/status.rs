//! `selu status`: running, healthy, drifted?

use std::time::Duration;

use selu_compiler::diff::{Action, Change, Subject};
use selu_compiler::plan::PlannedGateway;
use selu_compiler::report::{escape, summary};
use selu_runtime::apply::{policy_state, session_rules};
use selu_runtime::chain;
use selu_runtime::engine::Engine;
use selu_runtime::events::subject_name;
use selu_runtime::invoke::{Client, Health};
use serde_json::{Value, json};

use crate::args::{Cli, Directory};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::project::{Planned, document, load};
use crate::sessions::runs;

/// How long one health check may take.
const HEALTH: Duration = Duration::from_secs(5);

/// One thing and how it is.
struct Line {
    name: String,
    state: String,
    right: bool,
    differences: Vec<String>,
}

pub(crate) async fn run(cli: &Cli, printer: &Printer, args: &Directory) -> anyhow::Result<Exit> {
    let Some(loaded) = load(cli, printer, &args.dir)? else {
        return Ok(Exit::Failed);
    };
    // What a capability says of its health may hold what it was given.
    loaded.secrets(cli, printer)?;
    let engine = loaded.engine(cli).await?;
    let Some(planned) = loaded.plan(printer, engine.view(), true).await? else {
        return Ok(Exit::Failed);
    };
    let mut lines = Vec::new();
    for change in &planned.changes.changes {
        lines.push(line(engine.as_ref(), printer, &planned, change).await);
    }
    if let Some(gateway) = &planned.plan.gateway
        && planned.observed.containers.contains_key(&gateway.name)
    {
        let mut expected = gateway.clone();
        let sessions = session_rules(&planned.plan, &planned.observed);
        expected.policy.extend(sessions);
        let line = policy_line(engine.as_ref(), &planned, &expected).await;
        if !line.right && planned.changes.is_empty() {
            // Listing and inspecting cannot show it, so apply finds nothing to do.
            printer.hint(&format!(
                "remove the container {} and run `selu apply`: it is made anew and gets the planned policy",
                gateway.name
            ));
        }
        lines.push(line);
    }
    let waiting = loaded.tell_waiting(printer)?;
    let right = lines.iter().all(|line| line.right);
    let exit = if right { Exit::Done } else { Exit::Differs };
    for line in &lines {
        printer.data(&format!("{}: {}\n", line.name, escape(&line.state)));
        for difference in &line.differences {
            printer.data(&format!("  {}\n", escape(difference)));
        }
    }
    printer.data(&format!("{}\n", summary(&planned.changes)));
    let objects: Vec<Value> = lines
        .iter()
        .map(|line| {
            json!({
                "name": line.name,
                "state": line.state,
                "as_planned": line.right,
                "differences": line.differences,
            })
        })
        .collect();
    let mut document = document(&planned.plan.project);
    document.insert(
        "engine".to_owned(),
        planned.observed.engine.version.clone().into(),
    );
    document.insert("objects".to_owned(), objects.into());
    document.insert("waiting".to_owned(), waiting.into());
    document.insert("as_planned".to_owned(), right.into());
    document.insert("exit_code".to_owned(), exit.code().into());
    printer.json(&document.into());
    Ok(exit)
}

async fn line(engine: &dyn Engine, printer: &Printer, planned: &Planned, change: &Change) -> Line {
    let name = subject_name(&change.subject);
    let state = match change.action {
        Action::NoOp => None,
        Action::Create => Some("missing"),
        Action::Update => Some("changed"),
        Action::Replace => Some("to be replaced"),
        Action::Start => Some("stopped"),
        Action::Delete => Some("not in the directory"),
    };
    if let Some(state) = state {
        let differences = change.reasons.iter().map(|reason| {
            let text =
                |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
            format!(
                "{}: {} → {}",
                reason.path,
                text(&reason.old),
                text(&reason.new)
            )
        });
        return Line {
            name,
            state: state.to_owned(),
            right: false,
            differences: differences.collect(),
        };
    }
    if asleep(planned, change) {
        return Line {
            name,
            state: "stopped, because nobody called it; the next call starts it".to_owned(),
            right: true,
            differences: Vec::new(),
        };
    }
    match health(engine, planned, change).await {
        Ok(()) => Line {
            name,
            state: "running".to_owned(),
            right: true,
            differences: Vec::new(),
        },
        Err(why) => Line {
            name,
            state: printer.clean(&format!("running, but not healthy: {why}")),
            right: false,
            differences: Vec::new(),
        },
    }
}

/// Whether it does not run and need not (`[runtime] idle_stop`).
fn asleep(planned: &Planned, change: &Change) -> bool {
    match &change.subject {
        Subject::Instance(key) => !runs(planned, key),
        Subject::Gateway(_) | Subject::Container(_) | Subject::Network(_) => false,
    }
}

async fn health(engine: &dyn Engine, planned: &Planned, change: &Change) -> Result<(), String> {
    let Subject::Instance(key) = &change.subject else {
        return Ok(());
    };
    let resident = planned
        .plan
        .instances
        .get(key)
        .and_then(|one| one.resident.as_ref());
    let (Some(gateway), Some(resident)) = (&planned.plan.gateway, resident) else {
        return Ok(());
    };
    let client = Client::connect(engine, &gateway.name, &resident.network.name).await;
    let client = client.map_err(|error| chain(&error))?;
    match client.health(HEALTH).await {
        Ok(Health::Ready) => Ok(()),
        Ok(Health::NotReady { message }) => Err(format!("it answers `ready: false` {message}")),
        Err(error) => Err(chain(&error)),
    }
}

async fn policy_line(engine: &dyn Engine, planned: &Planned, gateway: &PlannedGateway) -> Line {
    let state = policy_state(engine, &planned.plan.project, gateway).await;
    let right = state.is_ok();
    Line {
        name: "gateway policy".to_owned(),
        state: match state {
            Ok(()) => "acknowledged".to_owned(),
            Err(why) => why,
        },
        right,
        differences: Vec::new(),
    }
}
