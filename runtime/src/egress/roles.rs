//! The roles' command lines. Standard output is what the desk reads, standard error is for people.

use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use rustix::process::{DumpableBehavior, WaitOptions, set_dumpable_behavior, wait};
use tokio::signal::unix::{SignalKind, signal};

use super::control::{self, CONTROL_FOLDER, Question};
use super::policy::{MAX_BYTES, Standing};
use super::record::{self, Ask};
use super::store::{POLICY_FOLDER, Store};
use super::{host, leaks, parent, pipe, worker};
use crate::chain;

/// Another one at every boot of the machine, the same in all its containers.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A role's failure, with the chain of its causes.
type Failure = Box<dyn std::error::Error>;

/// Runs the role that the arguments after `gateway` name.
pub fn main(args: &[String]) -> ExitCode {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = hide().and_then(|()| match args.as_slice() {
        ["run"] => run(),
        ["worker"] => worker::main().map_err(Failure::from),
        ["policy"] => take_policy(),
        ["policy", "--show"] => show_policy(),
        ["pipe", network] => pipe::run(&Store::new(POLICY_FOLDER), network).map_err(Failure::from),
        ["log", rest @ ..] => log(rest),
        ["hold"] => hold(),
        ["host-addresses"] => show_addresses(),
        ["leaks", "listen"] => leaks::listen().map_err(Failure::from),
        ["leaks", "try"] => leaks::attempt().map_err(Failure::from),
        _ => Err(format!(
            "`selu gateway {}` is no role; there are run, worker, policy, policy --show, pipe NETWORK, log, \
             host-addresses, leaks listen, leaks try and hold",
            args.join(" ")
        )
        .into()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(failure.as_ref());
            ExitCode::FAILURE
        }
    }
}

/// No other process of the same user reads this one's memory (S7).
fn hide() -> Result<(), Failure> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Process 1: it keeps the container and its networks alive, buries orphans and leaves when told. As root it has
/// something to carry.
fn run() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if rustix::process::geteuid().is_root() {
        return Ok(runtime.block_on(parent::run(Store::new(POLICY_FOLDER)))?);
    }
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut child = signal(SignalKind::child())?;
        loop {
            tokio::select! {
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                _ = child.recv() => while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {},
            }
        }
    })
}

fn take_policy() -> Result<(), Failure> {
    let mut delivery = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut delivery)?;
    if delivery.len() as u64 > MAX_BYTES {
        return Err(format!("the policy is larger than {MAX_BYTES} bytes").into());
    }
    let carries = carries_egress();
    let sealed = Store::new(POLICY_FOLDER).take(&delivery, carries)?;
    // What is acknowledged is what is gone by, and not only what is stored (S8).
    let ack = match carries {
        true => control::ask(Question::Reload)?.ack,
        false => sealed.ack(),
    };
    answer(&serde_json::to_vec(&ack)?)
}

fn show_policy() -> Result<(), Failure> {
    let standing = match carries_egress() {
        true => match control::ask(Question::Show) {
            Ok(standing) => standing,
            Err(error) => Standing {
                problem: Some(chain(&error)),
                ..Store::new(POLICY_FOLDER).load()?.standing()
            },
        },
        false => Store::new(POLICY_FOLDER).load()?.standing(),
    };
    answer(&serde_json::to_vec(&standing)?)
}

/// Whether this gateway was made to carry what leaves.
fn carries_egress() -> bool {
    Path::new(CONTROL_FOLDER).exists()
}

/// Prints what was carried and refused (N10). With `--follow` it ends with the desk's end of standard input.
fn log(args: &[&str]) -> Result<(), Failure> {
    let ask = Ask::parse(args)?;
    if ask.follow {
        thread::spawn(|| {
            // Whether it ended or broke: the desk is gone.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            std::process::exit(0);
        });
    }
    let mut out = BufWriter::new(io::stdout().lock());
    record::copy(Path::new(record::LOG_FOLDER), &ask, &mut out)?;
    Ok(out.flush()?)
}

fn show_addresses() -> Result<(), Failure> {
    answer(&serde_json::to_vec(&host::addresses()?)?)
}

/// Lives as long as the desk's end of standard input (product.md 14).
///
/// It says which boot of the engine's machine this is, which no API tells (S13).
fn hold() -> Result<(), Failure> {
    let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
    answer(boot.trim().as_bytes())?;
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(())
}

fn answer(line: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(line)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

fn complain(failure: &dyn std::error::Error) {
    complain_of(&chain(failure));
}

pub(super) fn complain_of(text: &str) {
    let text = format!("selu gateway: {text}\n");
    // With nobody listening on standard error the exit code is all that is left to say.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
