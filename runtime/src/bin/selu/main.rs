//! The `selu` binary: a thin shell over the runtime.

mod args;
mod cmd;
mod exit;
mod held;
mod hints;
mod leaks;
mod metrics;
mod outcome;
mod printer;
mod project;
mod saved;
mod sessions;
mod source;
mod targets;
mod templates;
mod usage;
mod watch;

use std::process::ExitCode;

use clap::Parser;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use selu_runtime::stop::Stop;
use tokio::signal::unix::{SignalKind, signal};

use args::{Cli, Command, Format};
use exit::{Ending, Exit};
use printer::Printer;

fn main() -> ExitCode {
    // The gateway's roles come before everything else: they run in an empty container, with no terminal and no threads
    // (S7).
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((role, rest)) = arguments.split_first()
        && role == "gateway"
    {
        return selu_runtime::egress::main(rest);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error, &arguments).into(),
    };
    // What the client of an MCP server logs holds arguments, results, and what a server echoes of its credentials (P3).
    if !matches!(cli.command, Command::McpBridge(_)) {
        start_tracing(cli.global.verbose);
    }
    let printer = Printer::new(cli.global.format);
    // Credential values are in this process's memory: no core file gets them, and no other process of the same user (C2).
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        printer.say(&format!(
            "error: this process cannot be kept from core files: {error}"
        ));
        return Exit::Failed.into();
    }
    let exit = match run(&cli, &printer) {
        Ok(exit) => exit,
        Err(error) => {
            let exit = Exit::of(&error);
            printer.error(&error, exit);
            exit
        }
    };
    if let Some(error) = printer.lost() {
        printer.say(&format!(
            "error: standard output could not be written: {error}"
        ));
        if exit == Exit::Done {
            return Exit::Failed.into();
        }
    }
    exit.into()
}

fn run(cli: &Cli, printer: &Printer) -> anyhow::Result<Exit> {
    let (taken, takers) = match cli.global.format {
        Format::Text | Format::Json => (true, ""),
        Format::Sarif => (
            matches!(cli.command, Command::Check(_) | Command::Diff(_)),
            "sarif is for `selu check` and `selu diff`",
        ),
        Format::Github => (
            matches!(cli.command, Command::Check(_)),
            "github is for `selu check`",
        ),
        Format::Markdown | Format::Html => (
            matches!(cli.command, Command::Plan(_) | Command::Diff(_)),
            "markdown and html are for `selu plan` and `selu diff`",
        ),
        Format::Svg | Format::Dot | Format::Mermaid => (
            matches!(cli.command, Command::Graph(_)),
            "svg, dot and mermaid are for `selu graph`",
        ),
    };
    if !taken {
        return Err(Ending::usage(format!("the format {takers} only")).into());
    }
    // The bridge lives beside a server in a container with little memory and few processes.
    let mut runtime = match cli.command {
        Command::McpBridge(_) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(2).enable_all().build()?;
    let stop = Stop::default();
    let result = runtime.block_on(async {
        let signals = listen(stop.clone())?;
        let result = dispatch(cli, printer, &stop).await;
        signals.abort();
        result
    });
    // A prompt may still wait for a line on standard input; it must not keep the process.
    runtime.shutdown_background();
    result
}

async fn dispatch(cli: &Cli, printer: &Printer, stop: &Stop) -> anyhow::Result<Exit> {
    let command = async {
        match &cli.command {
            Command::Check(args) => cmd::check::run(printer, args).await,
            Command::Explain(args) => cmd::explain::run(printer, args),
            Command::Plan(args) => cmd::plan::run(cli, printer, args).await,
            Command::Diff(args) => cmd::diff::run(cli, printer, args).await,
            Command::Show(args) => cmd::show::run(printer, args),
            Command::Apply(args) => cmd::apply::run(cli, printer, stop, args).await,
            Command::Lock(args) => cmd::lock::run(cli, printer, stop, args).await,
            Command::Git(args) => cmd::git::run(printer, args),
            Command::Sync(args) => cmd::sync::run(cli, printer, stop, args).await,
            Command::Logs(args) => cmd::logs::run(cli, printer, args).await,
            Command::Status(args) => cmd::status::run(cli, printer, args).await,
            Command::Destroy(args) => cmd::destroy::run(cli, printer, stop, args).await,
            Command::Egress(args) => cmd::egress::run(cli, printer, args).await,
            Command::Tools(args) => cmd::tools::run(cli, printer, args),
            Command::Invoke(args) => cmd::invoke::run(cli, printer, stop, args).await,
            Command::Sessions(args) => cmd::sessions::run(cli, printer, stop, args).await,
            Command::Policy(args) => cmd::policy::run(cli, printer, args),
            Command::Credentials(args) => cmd::credentials::run(cli, printer, args).await,
            Command::Build(args) => cmd::build::run(cli, printer, stop, args).await,
            Command::Graph(args) => cmd::graph::run(cli, printer, args),
            Command::Why(args) => cmd::why::run(cli, printer, args),
            Command::Package(args) => cmd::package::run(cli, printer, args),
            Command::Schema(args) => cmd::schema::run(printer, args),
            Command::McpBridge(args) => cmd::mcp_bridge::run(printer, stop, args).await,
            Command::New(args) => cmd::new::run(cli, printer, stop, args).await,
            Command::Import(args) => cmd::import::run(printer, args),
        }
    };
    tokio::select! {
        result = command => result,
        // Where nothing was begun there is nothing to be tidied up.
        () = stop.wait_idle() => Err(Ending::interrupted().into()),
    }
}

/// Turns the signals that ask a program to end into a wish that the work at hand sees.
fn listen(stop: Stop) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            stop.request();
        }
    }))
}

fn start_tracing(verbose: bool) {
    let fallback = if verbose {
        "selu_runtime=debug,selu=debug"
    } else {
        "off"
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("SELU_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(fallback));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .init();
}
