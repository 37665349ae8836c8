//! Asking a server that was just wrapped for its tools: its image is built, and it runs once under the limits of its
//! manifest, without any network and without a value of a credential.

use std::time::Duration;

use anyhow::Context;
use camino::Utf8Path;
use selu_compiler::model::Policy;
use selu_compiler::plan::{ContainerSpec, label};
use selu_runtime::engine::{Engine, EngineResult, Labels};
use selu_runtime::scaffold::{Tool, Wishes, Wrapper};
use selu_runtime::stop::Stop;
use serde_json::Value;
use tokio::io::AsyncReadExt;

use crate::args::Cli;
use crate::cmd::build;
use crate::printer::Printer;
use crate::project::{Loaded, load};

/// How long a server may take to start and to list its tools.
const LIMIT: Duration = Duration::from_secs(90);

/// Most that is read of its answer.
const LONGEST: u64 = 16 << 20;

/// How often a server may name another credential that it cannot start without.
const ROUNDS: usize = 5;

/// Builds and asks. The wrapper gets what the server said, and its files are written anew.
pub(super) async fn ask(
    cli: &Cli,
    printer: &Printer,
    stop: &Stop,
    project: &Utf8Path,
    wrapper: &mut Wrapper,
) -> anyhow::Result<()> {
    if !wrapper.is_here() {
        anyhow::bail!(
            "it runs elsewhere, and nothing is sent there before its network rules are applied"
        );
    }
    let before = wrapper.clone();
    let loaded = load(cli, printer, project)?.context("the project has errors")?;
    let engine = loaded.engine(cli).await?;
    let name = format!("{0}/{0}", wrapper.id);
    until(stop, build::one(&loaded, engine.as_ref(), printer, &name)).await??;
    let said = converse(printer, stop, &loaded, engine.as_ref(), &name, wrapper).await;
    // What it named is worth writing down also where it listed nothing.
    if wrapper.rewrite(&before, project)? {
        let loaded = load(cli, printer, project)?.context("the project has errors")?;
        until(stop, build::one(&loaded, engine.as_ref(), printer, &name)).await??;
    }
    said
}

/// What comes first: the end of some work, or the wish to stop.
async fn until<T>(stop: &Stop, work: impl Future<Output = T>) -> anyhow::Result<T> {
    tokio::select! {
        biased;
        () = stop.wait() => Err(anyhow::anyhow!("it was stopped")),
        done = work => Ok(done),
    }
}

async fn converse(
    printer: &Printer,
    stop: &Stop,
    loaded: &Loaded,
    engine: &dyn Engine,
    name: &str,
    wrapper: &mut Wrapper,
) -> anyhow::Result<()> {
    let planned = loaded.plan(printer, engine.view(), false).await?;
    let plan = planned.context("the project has errors")?.plan;
    let instance = plan.instances.iter().find(|(key, _)| key.as_str() == name);
    let resident = instance.and_then(|(_, instance)| instance.resident.as_ref());
    let resident = resident.context("its image is not known")?;
    let container = format!("{}_asked", resident.name);
    let spec = ContainerSpec {
        volumes: Default::default(),
        dns: Vec::new(),
        restart: false,
        labels: Labels::from([
            (label::PROJECT.to_owned(), plan.project.clone()),
            (label::ROLE.to_owned(), "helper".to_owned()),
        ]),
        ..resident.spec.clone()
    };
    engine.remove_container(&container).await?;
    let said = async {
        start(engine, &container, &spec).await?;
        for _ in 0..ROUNDS {
            let answer = listed(engine, &container, &spec.user, &wrapper.listing()).await?;
            if let Some(tools) = answer.get("tools").and_then(Value::as_array) {
                wrapper.tools = tools.iter().filter_map(tool).collect();
                return Ok(());
            }
            let words = answer
                .get("error")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let new = wrapper.propose(&Wishes::of(words));
            if new.is_empty() {
                anyhow::bail!("{words}");
            }
            printer.say(&format!(
                "the server wants {}; it is asked again with placeholders",
                new.join(", ")
            ));
        }
        anyhow::bail!("it names another credential each time it is asked")
    };
    let said = until(stop, tokio::time::timeout(LIMIT, said)).await;
    // Whatever came of it.
    engine.remove_container(&container).await?;
    said?.unwrap_or_else(|_| {
        Err(anyhow::anyhow!(
            "it did not answer within {} s",
            LIMIT.as_secs()
        ))
    })
}

async fn start(engine: &dyn Engine, container: &str, spec: &ContainerSpec) -> EngineResult<()> {
    engine
        .create_container(container, spec, "none", None, false)
        .await?;
    engine.start(container).await
}

/// Runs the bridge beside the one that the image runs, in the same container and under the same limits.
async fn listed(
    engine: &dyn Engine,
    container: &str,
    user: &str,
    command: &[String],
) -> anyhow::Result<Value> {
    let pipe = engine.exec(container, user, command).await?;
    let mut answer = Vec::new();
    pipe.output.take(LONGEST).read_to_end(&mut answer).await?;
    match serde_json::from_slice(&answer) {
        Ok(answer) => Ok(answer),
        Err(_) => {
            let log = engine.logs(container, 5).await.unwrap_or_default();
            anyhow::bail!("the bridge in its image gave no answer: {}", log.trim())
        }
    }
}

fn tool(listed: &Value) -> Option<Tool> {
    Some(Tool {
        name: listed.get("name")?.as_str()?.to_owned(),
        reads: listed.get("recommended_policy")?.as_str()? == Policy::Allow.to_string(),
    })
}
