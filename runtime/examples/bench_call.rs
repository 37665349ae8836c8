//! What a call costs: one kind of call to one container, or many to all, each as JSON. `scripts/bench call` compares the
//! kinds.
//!
//!   bench_call bare ADDRESS TOOL ARGUMENTS COUNT        a gRPC client and nothing else
//!   bench_call pipe DIR INSTANCE TOOL ARGUMENTS COUNT   through the gateway's pipe, as `selu invoke` calls, with limits
//!   bench_call stdio COUNT ARGUMENTS PROGRAM…           an MCP server over standard streams, and nothing between (`bench mcp`)
//!   bench_call open DIR INSTANCE COUNT                  opening a pipe, until the health answer
//!   bench_call many DIR TOOL COUNT                      so many calls at once over all instances, over one pipe each
#![allow(clippy::print_stdout, reason = "its output is what the script reads")]

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use camino::Utf8Path;
use selu_compiler::model::InstanceKey;
use selu_compiler::plan::{Plan, PlannedContainer};
use selu_compiler::{check, resolve, source};
use selu_proto::v1::InvokeRequest;
use selu_proto::v1::capability_client::CapabilityClient;
use selu_runtime::engine::docker::{Docker, connect};
use selu_runtime::invoke::{Bounds, Call, Client, Health};
use selu_runtime::lockfile::LockFile;
use selu_runtime::observe::observe;
use selu_runtime::secrets::{Config, Redactor, Secrets};
use selu_runtime::slots;
use selu_runtime::stop::Stop;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

const DEADLINE: Duration = Duration::from_secs(120);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let out = match words.as_slice() {
        ["bare", address, tool, args, count] => bare(address, tool, args, count.parse()?).await?,
        ["pipe", dir, instance, tool, args, count] => {
            let desk = Desk::open(dir).await?;
            desk.pipe(instance, tool, args, count.parse()?).await?
        }
        ["stdio", count, args, program @ ..] => stdio(count.parse()?, args, program).await?,
        ["open", dir, instance, count] => {
            Desk::open(dir)
                .await?
                .open_pipes(instance, count.parse()?)
                .await?
        }
        ["many", dir, tool, count] => Desk::open(dir).await?.many(tool, count.parse()?).await?,
        _ => bail!("bare, pipe, stdio, open or many; see the source"),
    };
    println!("{out}");
    Ok(())
}

/// Microseconds of each call and the bytes of one result. The first calls are not counted.
async fn timed(
    count: usize,
    mut call: impl AsyncFnMut() -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Value> {
    for _ in 0..count.div_ceil(10) {
        call().await?;
    }
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..count {
        let start = Instant::now();
        bytes = call().await?.len();
        times.push(micros(start));
    }
    Ok(json!({"us": times, "bytes": bytes}))
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

async fn bare(address: &str, tool: &str, args: &str, count: usize) -> anyhow::Result<Value> {
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{address}"))?
        .connect()
        .await?;
    let client = CapabilityClient::new(channel)
        .max_decoding_message_size(selu_proto::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(selu_proto::MAX_MESSAGE_BYTES);
    timed(count, async || {
        let request = InvokeRequest {
            tool_name: tool.to_owned(),
            args_json: args.as_bytes().to_vec(),
            config_json: b"{}".to_vec(),
            session_id: "default".to_owned(),
            ..InvokeRequest::default()
        };
        let answer = client.clone().invoke(request).await?.into_inner();
        ensure!(answer.error.is_empty(), "{}", answer.error);
        Ok(answer.result_json)
    })
    .await
}

/// The tool `look` of an MCP server, asked as the bridge asks it.
async fn stdio(count: usize, args: &str, program: &[&str]) -> anyhow::Result<Value> {
    let (program, arguments) = program.split_first().context("no program")?;
    let mut server = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = server.stdin.take().context("no standard input")?;
    let stdout = server.stdout.take().context("no standard output")?;
    let mut lines = BufReader::new(stdout).lines();
    let arguments: Value = serde_json::from_str(args)?;
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}});
    stdin.write_all(format!("{begin}\n").as_bytes()).await?;
    lines.next_line().await?.context("no answer")?;
    let mut times = Vec::new();
    let mut bytes = 0;
    for id in 1..=count {
        let start = Instant::now();
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                          "params": {"name": "look", "arguments": arguments}});
        stdin.write_all(format!("{call}\n").as_bytes()).await?;
        let answer = lines.next_line().await?.context("no answer")?;
        let answer: Value = serde_json::from_str(&answer)?;
        ensure!(answer["result"].is_object(), "{answer}");
        bytes = answer["result"].to_string().len();
        times.push(micros(start));
    }
    Ok(json!({"us": times, "bytes": bytes}))
}

/// A deployed project.
struct Desk {
    engine: Docker,
    plan: Plan,
    config: Config,
}

impl Desk {
    async fn open(dir: &str) -> anyhow::Result<Self> {
        let root = Utf8Path::new(dir);
        let project = check::check(&source::read(root)).project;
        let project = project.context("the directory has errors")?;
        let lock = LockFile::load(root)?;
        let engine = connect(None).await?;
        let observed = observe(&engine, &project, lock.lock()).await?;
        let plan = resolve::resolve(&project, lock.lock(), Some(&observed)).plan;
        let key = InstanceKey::new("none", "none");
        Ok(Self {
            engine,
            plan: plan.context("there is no plan")?,
            config: Secrets::default().call_config(&key, &[], None)?,
        })
    }

    fn gateway(&self) -> anyhow::Result<&str> {
        let gateway = self.plan.gateway.as_ref().context("no gateway")?;
        Ok(&gateway.name)
    }

    fn resident(&self, key: &InstanceKey) -> anyhow::Result<&PlannedContainer> {
        let instance = self.plan.instances.get(key).context("no such instance")?;
        instance.resident.as_ref().context("no resident")
    }

    async fn client(&self, key: &InstanceKey) -> anyhow::Result<Client> {
        let network = &self.resident(key)?.network.name;
        let client = Client::connect(&self.engine, self.gateway()?, network).await?;
        let health = client.health(DEADLINE).await?;
        ensure!(health == Health::Ready, "it is not ready");
        Ok(client)
    }

    fn call<'a>(&'a self, tool: &'a str, args: &'a Map<String, Value>) -> Call<'a> {
        Call {
            tool,
            args,
            config: &self.config,
            session: "default",
            capability: "probe",
            thread: "",
            user: "",
            deadline: DEADLINE,
        }
    }

    async fn pipe(
        &self,
        instance: &str,
        tool: &str,
        args: &str,
        count: usize,
    ) -> anyhow::Result<Value> {
        let key = InstanceKey::parse(instance).context("not an instance")?;
        let args: Map<String, Value> = serde_json::from_str(args)?;
        let client = self.client(&key).await?;
        let container = self.resident(&key)?;
        let limits = &self
            .plan
            .instances
            .get(&key)
            .context("no such instance")?
            .limits;
        let folder = tempfile::tempdir()?;
        let root = Utf8Path::from_path(folder.path()).context("a path that is no text")?;
        let slot = slots::take(root, &container.name, tool, 1, Duration::ZERO).await?;
        let redactor = Redactor::default();
        let bounds = Bounds {
            engine: &self.engine,
            gateway: self.gateway()?,
            instance: &key,
            container,
            limits,
            redactor: &redactor,
            slot: &slot,
            stop: &Stop::default(),
        };
        let call = self.call(tool, &args);
        timed(count, async || Ok(bounds.call(&client, &call).await?)).await
    }

    async fn open_pipes(&self, instance: &str, count: usize) -> anyhow::Result<Value> {
        let key = InstanceKey::parse(instance).context("not an instance")?;
        let mut times = Vec::new();
        for _ in 0..count {
            let start = Instant::now();
            self.client(&key).await?;
            times.push(micros(start));
        }
        Ok(json!({"us": times}))
    }

    /// Every call has an argument of its own, and every answer must be that of its call.
    async fn many(&self, tool: &str, count: usize) -> anyhow::Result<Value> {
        let mut clients = Vec::new();
        for key in self.plan.instances.keys() {
            clients.push(self.client(key).await?);
        }
        let start = Instant::now();
        let calls = (0..count)
            .zip(clients.iter().cycle())
            .map(async |(number, client)| {
                let args = Map::from_iter([("n".to_owned(), number.into())]);
                let answer = client.call(&self.call(tool, &args)).await?;
                let answer: Map<String, Value> = serde_json::from_slice(&answer)?;
                ensure!(answer == args, "another call's answer");
                anyhow::Ok(())
            });
        let results = futures_util::future::join_all(calls).await;
        let seconds = start.elapsed().as_secs_f64();
        let lost: Vec<String> = results
            .into_iter()
            .filter_map(Result::err)
            .map(|error| format!("{error:#}"))
            .collect();
        Ok(json!({"instances": clients.len(), "calls": count, "lost": lost, "seconds": seconds}))
    }
}
