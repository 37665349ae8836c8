//! A Landlock domain for each MCP server (S3).
//!
//! Processes of one user may read each other's environment and memory, unless they stand in domains of which neither is
//! within the other. A domain is inherited by what a thread starts, so a thread that exists for this alone enters one and
//! starts the server; the bridge itself stays outside and above.

use std::io;
use std::thread;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    PathFdError, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};
use tokio::sync::oneshot;

/// Runs `start` on a thread of its own, within a new domain where the kernel has them.
pub(super) async fn within<T: Send + 'static>(
    start: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let runtime = tokio::runtime::Handle::current();
    let (done, result) = oneshot::channel();
    thread::Builder::new()
        .name("mcp-start".to_owned())
        .spawn(move || {
            let _runtime = runtime.enter();
            let outcome = match enter() {
                Ok(_) => start(),
                Err(error) => Err(io::Error::other(error)),
            };
            // Nobody waits any more: what was started is dropped, and so ended.
            let _ = done.send(outcome);
        })?;
    result
        .await
        .map_err(|_| io::Error::other("the thread that starts it was lost"))?
}

/// One sentence for the log: whether servers are walled off from each other here.
pub(super) fn what_the_kernel_has() -> String {
    let status = thread::spawn(enter).join();
    match status {
        Ok(Ok(RestrictionStatus {
            ruleset: RulesetStatus::FullyEnforced,
            ..
        })) => "each MCP server runs in a Landlock domain of its own".to_owned(),
        Ok(Ok(RestrictionStatus {
            landlock: LandlockStatus::Available { .. },
            ruleset,
            ..
        })) => format!(
            "each MCP server runs in a Landlock domain of its own, which this kernel enforces in part ({ruleset:?})"
        ),
        Ok(Ok(_)) => "this kernel has no Landlock: two MCP servers in this container, which only credentials of one user \
                      can start, could read each other's environment"
            .to_owned(),
        Ok(Err(error)) => format!("Landlock cannot be used: {error}"),
        Err(_) => "Landlock cannot be used".to_owned(),
    }
}

/// Enters a new domain. It takes nothing away that a server could use: device nodes, which nothing here may make anyway,
/// and, where the kernel can, signals and abstract sockets across its border. A domain with any rule for files also forbids
/// moving them between folders unless that is allowed by name.
fn enter() -> Result<RestrictionStatus, EnterError> {
    let root = PathFd::new("/")?;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::MakeBlock | AccessFs::MakeChar | AccessFs::Refer)?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        .add_rule(PathBeneath::new(root, AccessFs::Refer))?
        .restrict_self()?;
    Ok(status)
}

/// Why there is no domain.
#[derive(Debug, thiserror::Error)]
enum EnterError {
    #[error(transparent)]
    Root(#[from] PathFdError),
    #[error(transparent)]
    Ruleset(#[from] RulesetError),
}
