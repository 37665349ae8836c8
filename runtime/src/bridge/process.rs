//! An MCP server as a subprocess.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio as Standard};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::credentials::CredentialSet;
use super::error::CallError;
use super::link::{END, LAST_WORDS, Link};
use super::said::Said;
use super::stdio::Stdio;
use super::{domain, reap};

/// Starts the subprocess and the tasks that watch it.
pub(super) async fn launch(
    command: &[String],
    credentials: &CredentialSet,
    said: &Arc<Said>,
) -> Result<(Link, Stdio), CallError> {
    let failed = |reason: String| CallError::Start { reason };
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| failed("there is no command".to_owned()))?;
    let mut process = Command::new(program);
    process
        .args(arguments)
        .envs(credentials.environment())
        // Lists of tools must not depend on where the container runs.
        .env("TZ", "UTC")
        .stdin(Standard::piped())
        .stdout(Standard::piped())
        .stderr(Standard::piped())
        // What it starts is ended with it.
        .process_group(0)
        .kill_on_drop(true);
    let (mut child, pid) = domain::within(move || reap::spawn(&mut process))
        .await
        .map_err(|error| failed(error.to_string()))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(failed("it has no standard streams".to_owned()));
    };
    let drained = Arc::clone(said);
    let mut drain = tokio::spawn(async move { drained.drain("stderr", stderr).await });
    let (tell, ended) = watch::channel(None);
    let end = CancellationToken::new();
    let wish = end.clone();
    tokio::spawn(async move {
        let status = tokio::select! {
            status = child.wait() => status,
            () = wish.cancelled() => stop(&mut child, pid).await,
        };
        // Whatever it left behind, which may hold its streams open.
        let _ = kill_process_group(pid, Signal::KILL);
        reap::gone(pid);
        if timeout(LAST_WORDS, &mut drain).await.is_err() {
            drain.abort();
        }
        let how = status.map_or_else(|error| format!("was lost ({error})"), described);
        tell.send_replace(Some(how));
    });
    let link = Link {
        said: Arc::clone(said),
        ended,
        end,
    };
    Ok((link, Stdio::new(stdin, stdout, Arc::clone(said))))
}

/// Standard input is closed by whoever wished this; then the usual signals follow.
async fn stop(child: &mut Child, pid: Pid) -> std::io::Result<ExitStatus> {
    for signal in [Signal::TERM, Signal::KILL] {
        if let Ok(status) = timeout(END, child.wait()).await {
            return status;
        }
        let _ = kill_process_group(pid, signal);
    }
    child.wait().await
}

fn described(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(9)) => {
            "was killed (signal 9; too little memory is the usual reason)".to_owned()
        }
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
