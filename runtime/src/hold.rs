//! The hold: one apply per project and engine at a time (product.md 14).
//!
//! It is a container whose name excludes a second one, and whose only process waits for the end of its standard input.
//! That input is our connection to the engine: when we end in any way, killed or cut off, the container ends by itself,
//! also when the engine is on another machine. An ended hold is cleared by whoever comes next.

use std::time::Duration;

use selu_compiler::observed::{ContainerState, Observed, ObservedContainer};
use selu_compiler::plan::spec::helper_spec;
use selu_compiler::plan::{ContainerSpec, label};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::time::{Instant, sleep, timeout};

use crate::engine::{Engine, EngineError, EngineResult, Pipe};

/// How often a waiting taker looks again.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a hold may stay created without being started before it counts as left behind: between those two calls its
/// taker does nothing else. A taker whose hold is cleared in between fails at the start, so this is safe at any length.
const START_GRACE: Duration = Duration::from_secs(10);

/// Who holds, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The machine.
    pub host: String,
    /// The user, where known.
    pub user: Option<String>,
    /// The process.
    pub pid: u32,
    /// Such as `apply`.
    pub operation: String,
    /// Since when, as text for people.
    pub since: String,
}

/// How long the hold's process may take to start, and how much it may say.
const BOOT_LIMIT: Duration = Duration::from_secs(10);
const BOOT_LENGTH: u64 = 256;

const HOST: &str = "dev.selu.hold.host";
const USER: &str = "dev.selu.hold.user";
const PID: &str = "dev.selu.hold.pid";
const OPERATION: &str = "dev.selu.hold.operation";
const SINCE: &str = "dev.selu.hold.since";

/// Why the hold was not taken.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Somebody has it.
    #[error(
        "project {project} is held by `{}` on {}{}, process {}, since {}",
        .holder.operation,
        .holder.host,
        .holder.user.as_ref().map(|user| format!(" ({user})")).unwrap_or_default(),
        .holder.pid,
        .holder.since
    )]
    Held {
        /// The project.
        project: String,
        /// Who.
        holder: Box<Info>,
    },
    /// The name is taken by something that is no hold of ours.
    #[error("{name} exists and is no hold of project {project}: {what}")]
    Foreign {
        /// The name.
        name: String,
        /// The project.
        project: String,
        /// What it is.
        what: String,
    },
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A hold that is ours until it is released, dropped, or the connection breaks.
pub struct Hold {
    name: String,
    id: String,
    streams: Pipe,
}

/// Removes a hold that somebody left behind, where there is nothing to do and so no hold to take: nothing temporary stays
/// (product.md 13). One that is being taken in this moment fails at its start and is taken again.
pub async fn sweep(
    engine: &dyn Engine,
    project: &str,
    observed: &Observed,
) -> Result<(), HoldError> {
    let name = format!("selu_{project}_hold");
    let Some(found) = observed.containers.get(&name) else {
        return Ok(());
    };
    holder(&name, project, found)?;
    match found.state {
        ContainerState::Exited { .. } | ContainerState::Dead | ContainerState::Created => {
            engine.remove_ended(&found.id).await?;
        }
        ContainerState::Running | ContainerState::Paused | ContainerState::Restarting => {}
    }
    Ok(())
}

/// Takes the project's hold, waiting for up to `wait` while somebody else has it. `image` is the gateway's tag.
pub async fn take(
    engine: &dyn Engine,
    project: &str,
    image: &str,
    info: &Info,
    wait: Duration,
) -> Result<Hold, HoldError> {
    let name = format!("selu_{project}_hold");
    let spec = spec(project, image, info);
    let give_up = Instant::now() + wait;
    let mut unstarted: Option<(String, Instant)> = None;
    loop {
        match engine
            .create_container(&name, &spec, "none", None, true)
            .await
        {
            Ok(()) => {
                if let Some(hold) = start(engine, &name).await? {
                    return Ok(hold);
                }
                continue;
            }
            Err(EngineError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let Some(found) = engine.container(&name).await? else {
            continue;
        };
        let holder = holder(&name, project, &found)?;
        let left_behind = match found.state {
            ContainerState::Exited { .. } | ContainerState::Dead => true,
            ContainerState::Created => {
                let since = match &unstarted {
                    Some((id, since)) if *id == found.id => *since,
                    _ => Instant::now(),
                };
                unstarted = Some((found.id.clone(), since));
                if since.elapsed() < START_GRACE {
                    sleep(PAUSE).await;
                    continue;
                }
                true
            }
            ContainerState::Running | ContainerState::Paused | ContainerState::Restarting => false,
        };
        if left_behind {
            // By id, and only if it has ended: a hold that somebody took in this moment is not touched.
            engine.remove_ended(&found.id).await?;
            continue;
        }
        if Instant::now() >= give_up {
            return Err(HoldError::Held {
                project: project.to_owned(),
                holder: Box::new(holder),
            });
        }
        sleep(PAUSE).await;
    }
}

/// Attaches and starts what was just created; `None` if another taker cleared it meanwhile.
async fn start(engine: &dyn Engine, name: &str) -> Result<Option<Hold>, HoldError> {
    let created = match engine.container(name).await {
        Ok(Some(created)) => created,
        Ok(None) => return Ok(None),
        Err(error) => {
            // By name: another taker's that has not started either would be taken anew by it.
            engine.remove_ended(name).await?;
            return Err(error.into());
        }
    };
    let streams = match engine.attach(&created.id).await {
        Ok(streams) => streams,
        Err(EngineError::NotFound { .. }) => return Ok(None),
        Err(error) => {
            engine.remove_ended(&created.id).await?;
            return Err(error.into());
        }
    };
    match engine.start(&created.id).await {
        Ok(()) => Ok(Some(Hold {
            name: name.to_owned(),
            id: created.id,
            streams,
        })),
        Err(EngineError::NotFound { .. }) => Ok(None),
        Err(error) => {
            drop(streams);
            engine.remove_container(&created.id).await?;
            Err(error.into())
        }
    }
}

impl Hold {
    /// The container's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which boot of the engine's machine this is; `None` if the hold does not say so.
    pub async fn boot(&mut self) -> Option<String> {
        let mut lines = BufReader::new((&mut self.streams.output).take(BOOT_LENGTH));
        let mut line = String::new();
        let reading = timeout(BOOT_LIMIT, lines.read_line(&mut line)).await;
        reading.ok()?.ok()?;
        let line = line.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// Resolves when the hold is lost: the connection to the engine broke, or somebody removed the container. Whoever
    /// sees it must stop changing things.
    pub async fn lost(&mut self) -> EngineResult<()> {
        self.streams.ended.as_mut().await.map(|_| ())
    }

    /// Gives it back. Without this call it is freed when the value is dropped, and cleared by the next taker.
    pub async fn release(self, engine: &dyn Engine) -> EngineResult<()> {
        let Self {
            name: _,
            id,
            streams,
        } = self;
        drop(streams);
        engine.remove_container(&id).await
    }
}

fn holder(name: &str, project: &str, found: &ObservedContainer) -> Result<Info, HoldError> {
    let labels = &found.spec.labels;
    let ours = labels.get(label::PROJECT).is_some_and(|own| own == project)
        && labels.get(label::ROLE).is_some_and(|role| role == "hold");
    if !ours {
        return Err(HoldError::Foreign {
            name: name.to_owned(),
            project: project.to_owned(),
            what: format!("a container of image {}", found.spec.image),
        });
    }
    let text = |key: &str| labels.get(key).cloned();
    let known = |key: &str| text(key).unwrap_or_else(|| "unknown".to_owned());
    Ok(Info {
        host: known(HOST),
        user: text(USER),
        pid: text(PID).and_then(|pid| pid.parse().ok()).unwrap_or(0),
        operation: known(OPERATION),
        since: known(SINCE),
    })
}

fn spec(project: &str, image: &str, info: &Info) -> ContainerSpec {
    let Info {
        host,
        user,
        pid,
        operation,
        since,
    } = info;
    let command = ["gateway", "hold"].map(str::to_owned).to_vec();
    let mut spec = helper_spec(project, "hold", command);
    spec.image = image.to_owned();
    for (key, value) in [
        (HOST, host.clone()),
        (PID, pid.to_string()),
        (OPERATION, operation.clone()),
        (SINCE, since.clone()),
    ] {
        spec.labels.insert(key.to_owned(), value);
    }
    if let Some(user) = user {
        spec.labels.insert(USER.to_owned(), user.clone());
    }
    spec
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use selu_compiler::observed::ImageFacts;

    use super::*;
    use crate::engine::EngineView;
    use crate::engine::fake::{Fake, Image, When};

    #[tokio::test]
    async fn a_failure_between_creating_and_holding_leaves_the_hold_free() {
        let info = Info {
            host: "desk".to_owned(),
            user: None,
            pid: 1,
            operation: "apply".to_owned(),
            since: "now".to_owned(),
        };
        let image = Image::new(ImageFacts {
            id: Some("sha256:01".to_owned()),
            digest: None,
            volumes: Vec::new(),
            labels: BTreeMap::new(),
        });
        for call in [
            "inspect container",
            "attach to container",
            "start container",
        ] {
            for when in [When::Before, When::After] {
                let fake = Fake::new();
                fake.edit(|world| world.images.insert("gateway".to_owned(), image.clone()));
                fake.fail(call, when);
                let taken = take(&fake, "demo", "gateway", &info, Duration::ZERO).await;
                assert!(taken.is_err(), "{call} {when:?}");
                let left = fake.container("selu_demo_hold").await.unwrap();
                assert!(left.is_none(), "{call} {when:?}");
                let hold = take(&fake, "demo", "gateway", &info, Duration::ZERO).await;
                hold.unwrap().release(&fake).await.unwrap();
            }
        }
    }
}
