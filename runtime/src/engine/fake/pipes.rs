//! The streams of the engine in memory: the gateway's roles as they are, and containers that serve.

use std::future;
use std::net::Ipv4Addr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex, empty, sink, split};

use super::world::{Container, World};
use super::{Call, Fake, lock};
use crate::egress::OPENED;
use crate::egress::policy::{PolicyError, Sealed};
use crate::engine::{EngineError, EngineResult, Pipe};

/// Room in a stream before its writer waits.
const ROOM: usize = 64 * 1024;

/// The one address that the host of this engine has.
pub const HOST_ADDRESS: &str = "192.0.2.1";

/// Streams that break off.
pub(super) fn broken(call: &Call) -> Pipe {
    let error = call.garbled();
    Pipe {
        output: Box::pin(empty()),
        input: Box::pin(sink()),
        ended: Box::pin(future::ready(Err(error))),
    }
}

/// A role that has ended, with its exit code and standard error.
fn ended(code: i64, message: impl Into<String>) -> Pipe {
    let message = message.into();
    Pipe {
        output: Box::pin(empty()),
        input: Box::pin(sink()),
        ended: Box::pin(future::ready(Ok((code, message)))),
    }
}

fn streams(
    output: impl AsyncRead + Send + 'static,
    input: impl AsyncWrite + Send + 'static,
    ended: impl Future<Output = EngineResult<(i64, String)>> + Send + 'static,
) -> Pipe {
    Pipe {
        output: Box::pin(output),
        input: Box::pin(input),
        ended: Box::pin(ended),
    }
}

impl Fake {
    /// What the gateway's roles do, on the policy of its volume.
    pub(super) fn role(
        &self,
        call: &Call,
        gateway: &str,
        command: &[String],
    ) -> EngineResult<Pipe> {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["/selu", "gateway", "policy"] => Ok(self.take_policy(gateway)),
            ["/selu", "gateway", "policy", "--show"] => Ok(self.show_policy(gateway)),
            ["/selu", "gateway", "pipe", network] => Ok(self.open(gateway, network)),
            _ => Err(call.refuse("this engine in memory runs the gateway's roles only")),
        }
    }

    fn take_policy(&self, gateway: &str) -> Pipe {
        let (near, far) = duplex(ROOM);
        let (mut answer, output) = duplex(ROOM);
        let fake = self.clone();
        let gateway = gateway.to_owned();
        let done = tokio::spawn(async move {
            let mut delivery = Vec::new();
            let mut far = far;
            if far.read_to_end(&mut delivery).await.is_err() {
                return (1, "the delivery broke off".to_owned());
            }
            let taken = deliver(&mut lock(&fake.world), &gateway, &delivery);
            match taken.and_then(|sealed| line(&sealed.ack())) {
                // A desk that has gone hears nothing; the policy is taken all the same.
                Ok(line) => {
                    let _ = answer.write_all(&line).await;
                    (0, String::new())
                }
                Err(error) => (1, error.to_string()),
            }
        });
        streams(output, near, async move {
            done.await.map_err(|error| EngineError::Protocol {
                call: "policy".to_owned(),
                message: error.to_string(),
            })
        })
    }

    fn show_policy(&self, gateway: &str) -> Pipe {
        let present = present(&lock(&self.world), gateway);
        match present.and_then(|sealed| line(&sealed.standing())) {
            Ok(line) => Pipe {
                output: Box::pin(std::io::Cursor::new(line)),
                ..ended(0, "")
            },
            Err(error) => ended(1, error.to_string()),
        }
    }

    fn open(&self, gateway: &str, network: &str) -> Pipe {
        let world = lock(&self.world);
        let serve = match served(&world, gateway, network) {
            Ok(serve) => serve,
            Err(message) => return ended(1, message),
        };
        drop(world);
        let (near, mut far) = duplex(ROOM);
        let (output, input) = split(near);
        tokio::spawn(async move {
            if far.write_all(OPENED).await.is_ok() {
                serve(far);
            }
        });
        streams(output, input, future::ready(Ok((0, String::new()))))
    }

    /// A container's input, which ends it if it was left open for this client.
    pub(super) fn attached(&self, call: &Call, name: &str) -> EngineResult<Pipe> {
        let world = lock(&self.world);
        let Some(container) = world.find(name) else {
            return Err(call.missing(format!("No such container: {name}")));
        };
        let asks = container.observed.spec.command.as_deref();
        if asks.is_some_and(|words| words == ["gateway", "host-addresses"]) {
            let line = format!("[\"{HOST_ADDRESS}\"]\n");
            return Ok(Pipe {
                output: Box::pin(std::io::Cursor::new(line)),
                ..ended(0, "")
            });
        }
        let id = container.observed.id.clone();
        let open_stdin = container.open_stdin;
        let mut code = container.ended.subscribe();
        drop(world);

        let (near, mut far) = duplex(ROOM);
        let fake = self.clone();
        tokio::spawn(async move {
            let mut ignored = Vec::new();
            let _ = far.read_to_end(&mut ignored).await;
            if open_stdin && let Some(container) = lock(&fake.world).find_mut(&id) {
                container.end(0);
            }
        });
        Ok(streams(empty(), near, async move {
            let code = code.wait_for(Option::is_some).await;
            let code = code.ok().and_then(|code| *code).unwrap_or(137);
            Ok((code, String::new()))
        }))
    }
}

fn line(answer: &impl serde::Serialize) -> Result<Vec<u8>, PolicyError> {
    serde_json::to_vec(answer).map_err(|error| PolicyError::Corrupt(error.to_string()))
}

fn volume_of<'a>(world: &'a World, gateway: &str) -> Option<&'a str> {
    let volumes = &world.find(gateway)?.observed.spec.volumes;
    volumes
        .get(crate::egress::POLICY_FOLDER)
        .map(String::as_str)
}

fn present(world: &World, gateway: &str) -> Result<Sealed, PolicyError> {
    volume_of(world, gateway)
        .and_then(|name| world.volumes.get(name))
        .and_then(|volume| volume.policy.clone())
        .ok_or(PolicyError::Missing)
}

fn deliver(world: &mut World, gateway: &str, delivery: &[u8]) -> Result<Sealed, PolicyError> {
    let offered = Sealed::read(delivery)?;
    let carries = world
        .find(gateway)
        .is_some_and(|found| !found.observed.spec.cap_add.is_empty());
    if offered.policy.is_open() && !carries {
        return Err(PolicyError::Closed);
    }
    offered.may_follow(present(world, gateway).ok().as_ref())?;
    let name = volume_of(world, gateway).map(str::to_owned);
    let volume = name.and_then(|name| world.volumes.get_mut(&name));
    volume.ok_or(PolicyError::Missing)?.policy = Some(offered.clone());
    Ok(offered)
}

/// Who answers in a network: by the policy, through the gateway's own attachment, if anything listens.
fn served(world: &World, gateway: &str, network: &str) -> Result<super::Serve, String> {
    let sealed = present(world, gateway).map_err(|error| error.to_string())?;
    let rule = sealed
        .policy
        .rule(network)
        .map_err(|error| error.to_string())?;
    let attached = world
        .find(gateway)
        .is_some_and(|found| found.observed.networks.contains_key(network));
    if !attached {
        return Err(format!("the gateway is not attached to network {network}"));
    }
    let at = |found: &&Container, address: Ipv4Addr| {
        found.runs() && found.observed.networks.get(network) == Some(&address.to_string())
    };
    world
        .containers
        .values()
        .find(|found| at(found, rule.capability))
        .and_then(|found| world.image_of(&found.observed.image_id))
        .and_then(|image| image.serve.clone())
        .ok_or_else(|| format!("cannot reach {}: Connection refused", rule.capability))
}
