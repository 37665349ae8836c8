//! `selu invoke`: one tool call, within policy, schema and credentials.

mod output;
mod request;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use selu_compiler::lock::{Callable, Refusal, callable};
use selu_compiler::model::{InstanceKey, Policy};
use selu_compiler::plan::names::RESIDENT_SESSION;
use selu_compiler::plan::session::Who;
use selu_compiler::report::{Called, call_json};
use selu_runtime::invoke::{Bounds, Call, Client, mime_type};
use selu_runtime::secrets::Config;
use selu_runtime::slots;
use selu_runtime::stop::Stop;
use serde_json::{Map, Value};

use crate::args::{Cli, InvokeArgs};
use crate::exit::{Ending, Exit};
use crate::held;
use crate::hints::Hinted;
use crate::printer::{Printer, shown};
use crate::project::load_planned;
use crate::sessions::{Desk, at_once, resident};
use output::Pieces;
use request::Request;
pub(crate) use request::instance;

pub(crate) async fn run(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    args: &InvokeArgs,
) -> anyhow::Result<Exit> {
    // Everything that can be refused without an engine is.
    let Some((loaded, plan)) = load_planned(cli, printer, &args.dir)? else {
        return Ok(Exit::Failed);
    };
    let key = instance(&plan, &args.capability)?;
    let called = match callable(&plan, loaded.lock(), &key, &args.tool) {
        Err(refusal @ Refusal::NoTool { .. }) => {
            let name = format!("{key}/{}", args.tool);
            if loaded.waiting()?.contains(&name) {
                let message = format!("{key} `{}` is new and not in use yet", shown(&args.tool));
                let hint = format!("`selu lock --accept {name}` shows it and accepts it");
                return Err(Hinted::new(message, hint).into());
            }
            return Err(refusal.into());
        }
        other => other?,
    };
    let secrets = loaded.secrets(cli, printer)?;
    let (user, session) = (args.user.as_deref(), args.session.as_deref());
    let who = Who::of(called.instance, user, session)
        .map_err(|error| Ending::usage(error.to_string()))?;
    let config = secrets.call_config(&key, &called.instance.credentials, user)?;
    let request = Request::read(args, &called.tool.input_schema)?;
    consent(printer, args, &key, called, &request.preview()).await?;

    let engine = loaded.engine(cli).await?;
    let most = at_once(called.instance);
    let place =
        async |name: &str| slots::take(&loaded.root, name, &args.tool, most, slots::PATIENCE).await;
    // Taken before anybody looks: what is called is not idle, so nobody closes what was seen.
    let own = match &who {
        Some(who) => Some(place(&who.container_name(&plan.project, &key)).await?),
        None => None,
    };
    let Some(planned) = loaded.plan(printer, engine.view(), false).await? else {
        return Ok(Exit::Failed);
    };
    let (gateway, resident) = resident(&planned, &key)?;
    let slot = match own {
        Some(slot) => slot,
        None => place(&resident.name).await?,
    };
    stop.begin_work();
    let desk = Desk {
        printer,
        stop,
        loaded: &loaded,
        engine: engine.as_ref(),
        secrets: &secrets,
    };
    let container = match &who {
        Some(who) => desk.obtain(&planned, &key, who).await?,
        None => {
            desk.wake(&planned, &key).await?;
            resident.clone()
        }
    };
    let bounds = Bounds {
        engine: engine.as_ref(),
        gateway,
        instance: &key,
        container: &container,
        limits: &called.instance.limits,
        redactor: secrets.redactor(),
        slot: &slot,
        stop,
    };
    let work = async {
        let network = &container.network.name;
        let client = Client::connect(engine.as_ref(), gateway, network).await?;
        let job = Job {
            printer,
            args,
            bounds: &bounds,
            client: &client,
            config: &config,
        };
        job.run(request).await
    };
    let result = tokio::select! {
        result = work => result.with_context(|| format!("{key} {} gave no result", args.tool))?,
        () = stop.wait() => {
            let message = "interrupted; whether the tool did its work is not known, and the call is not repeated";
            return Err(Ending::interrupted_in(message).into());
        }
    };
    printer.json(&call_json(Called {
        project: &planned.plan.project,
        instance: key.as_str(),
        tool: &args.tool,
        session: session.unwrap_or(RESIDENT_SESSION),
        result: &result,
        terminal_on_success: called.tool.terminal_on_success,
    }));
    desk.sweep(&planned).await;
    Ok(Exit::Done)
}

/// What is done on an open pipe.
struct Job<'a> {
    printer: &'a Printer,
    args: &'a InvokeArgs,
    bounds: &'a Bounds<'a>,
    client: &'a Client,
    config: &'a Config,
}

impl Job<'_> {
    /// Files in, the one call, files out. The result is shown as text where text is asked for.
    async fn run(&self, mut request: Request<'_>) -> anyhow::Result<Value> {
        let deadline = Duration::from_secs(self.args.deadline);
        let downloads = std::mem::take(&mut request.downloads);
        let mut ids = Vec::new();
        for (key, path, file) in std::mem::take(&mut request.uploads) {
            let id = self.upload(&path, file, deadline).await?;
            ids.push((key, id));
        }
        let arguments = request.complete(ids)?;
        let call = Call {
            tool: &self.args.tool,
            args: &arguments,
            config: self.config,
            session: self.args.session.as_deref().unwrap_or(RESIDENT_SESSION),
            capability: self.bounds.instance.capability(),
            thread: &self.args.thread,
            user: self.args.user.as_deref().unwrap_or_default(),
            deadline,
        };
        if self.args.stream {
            let mut pieces = Pieces::new(self.printer);
            let streamed = self
                .bounds
                .call_stream(self.client, &call, |piece| pieces.take(piece))
                .await;
            let result = pieces.end();
            streamed?;
            return Ok(result);
        }
        let result = output::read(&self.bounds.call(self.client, &call).await?)?;
        let shown = output::cleaned(self.printer, result.clone());
        self.printer.data(&format!("{}\n", output::text(&shown)));
        for (pointer, path) in &downloads {
            self.download(&result, pointer, path, deadline).await?;
        }
        Ok(shown)
    }

    async fn upload(
        &self,
        path: &Path,
        file: std::fs::File,
        deadline: Duration,
    ) -> anyhow::Result<String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = tokio::fs::File::from_std(file);
        let id = self.client.upload(&name, mime_type(path), file, deadline);
        id.await
            .with_context(|| format!("{} was not handed over", path.display()))
    }

    /// Whole or not at all: the file gets its name once it is complete.
    async fn download(
        &self,
        result: &Value,
        pointer: &str,
        path: &PathBuf,
        deadline: Duration,
    ) -> anyhow::Result<()> {
        let place = path.display();
        let Some(id) = result.pointer(pointer).and_then(Value::as_str) else {
            let message = format!(
                "{place} was not fetched: the result has no text at {}",
                shown(pointer)
            );
            return Err(anyhow::Error::msg(message));
        };
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let draft = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
        let draft = draft.with_context(|| format!("{place} cannot be written"))?;
        let to = tokio::fs::File::from_std(draft.reopen()?);
        let received = self.client.download(id, to, deadline).await;
        let received = received.with_context(|| format!("{place} was not fetched"))?;
        let named = draft.persist_noclobber(path);
        named.with_context(|| format!("{place} cannot be written"))?;
        let about = self
            .printer
            .clean(&format!("`{}`, {}", received.filename, received.mime_type));
        self.printer.say(&format!(
            "{place}: {} bytes ({})",
            received.bytes,
            shown(&about)
        ));
        Ok(())
    }
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
