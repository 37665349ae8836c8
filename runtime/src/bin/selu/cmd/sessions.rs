//! `selu sessions`: containers of sessions and users, listed and closed.

use selu_compiler::plan::session::Who;
use selu_runtime::apply::Open;
use selu_runtime::slots::{self, Idle};
use selu_runtime::stop::Stop;
use serde_json::{Value, json};

use crate::args::{Cli, SessionsAction, SessionsArgs};
use crate::cmd::invoke::instance;
use crate::exit::{Ending, Exit};
use crate::outcome::counted;
use crate::printer::Printer;
use crate::project::{document, load};
use crate::sessions::{Desk, at_once, named};

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &SessionsArgs,
) -> anyhow::Result<Exit> {
    let (SessionsAction::List { dir } | SessionsAction::Close { dir, .. }) = &args.action;
    let Some(loaded) = load(cli, printer, dir)? else {
        return Ok(Exit::Failed);
    };
    let secrets = loaded.secrets(cli, printer)?;
    let engine = loaded.engine(cli).await?;
    let Some(planned) = loaded.plan(printer, engine.view(), false).await? else {
        return Ok(Exit::Failed);
    };
    let desk = Desk {
        printer,
        stop,
        loaded: &loaded,
        engine: engine.as_ref(),
        secrets: &secrets,
    };
    let closed = match &args.action {
        SessionsAction::List { .. } => {
            let mut sessions = Vec::new();
            for open in Open::all(&planned.observed) {
                let instance = planned.plan.instances.get(&open.instance);
                let most = instance.map_or(1, at_once);
                let idle = slots::idle(&loaded.root, &open.name, most)?;
                let idle = idle.map(|idle| idle.time);
                let state = match (open.running, idle) {
                    (false, _) => "stopped".to_owned(),
                    (true, None) => "in a call".to_owned(),
                    (true, Some(idle)) => format!("idle for {} s", idle.as_secs()),
                };
                let who = named(&open.who);
                printer.data(&format!("{} {who}: {state}\n", open.instance));
                sessions.push(json!({
                    "instance": open.instance,
                    "session": open.who.session,
                    "user": user(&open.who),
                    "container": open.name,
                    "running": open.running,
                    "idle_seconds": idle.map(|idle| idle.as_secs()),
                }));
            }
            if sessions.is_empty() {
                printer.say("No sessions are open.");
            }
            let mut document = document(&planned.plan.project);
            document.insert("sessions".to_owned(), sessions.into());
            document.insert("exit_code".to_owned(), Exit::Done.code().into());
            printer.json(&document.into());
            return Ok(Exit::Done);
        }
        SessionsAction::Close { all: true, .. } => {
            desk.close_all(&planned, async |_| Ok(Some(Idle::default())))
                .await?
        }
        SessionsAction::Close {
            capability,
            user,
            session,
            ..
        } => {
            let Some(capability) = capability else {
                let message = "say which session: AGENT/CAP with --session or --user, or --all";
                return Err(Ending::usage(message).into());
            };
            let key = instance(&planned.plan, capability)?;
            let planned_instance = planned.plan.instances.get(&key);
            let who = match planned_instance {
                Some(one) => Who::of(one, user.as_deref(), session.as_deref())
                    .map_err(|error| Ending::usage(error.to_string()))?,
                None => None,
            };
            let Some(who) = who else {
                let message = format!(
                    "{key} serves that from its resident, which `selu destroy` or a change of the directory removes"
                );
                return Err(Ending::usage(message).into());
            };
            let asked = |open: &Open| open.instance == key && open.who == who;
            let closed = desk
                .close_all(&planned, async |open| Ok(asked(open).then(Idle::default)))
                .await?;
            if closed.is_empty() {
                desk.close_rest(&planned, &key, &who).await?;
            }
            closed
        }
    };
    for open in &closed {
        printer.data(&format!("closed {} {}\n", open.instance, named(&open.who)));
    }
    printer.say(&format!("{} closed", counted(closed.len(), "session")));
    let sessions: Vec<Value> = closed
        .iter()
        .map(|open| {
            json!({
                "instance": open.instance,
                "session": open.who.session,
                "user": user(&open.who),
            })
        })
        .collect();
    let mut document = document(&planned.plan.project);
    document.insert("closed".to_owned(), sessions.into());
    document.insert("exit_code".to_owned(), Exit::Done.code().into());
    printer.json(&document.into());
    Ok(Exit::Done)
}

fn user(who: &Who) -> Option<&str> {
    Some(who.user.as_str()).filter(|user| !user.is_empty())
}
