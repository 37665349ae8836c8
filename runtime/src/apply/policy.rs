//! The gateway's policy while several instances change at once: one desk, one generation after the other (S8).

use std::collections::BTreeMap;
use std::net::IpAddr;

use selu_compiler::plan::{GatewayRule, PlannedGateway};
use tokio::sync::Mutex;

use crate::egress::policy::{Policy, Standing};
use crate::engine::Engine;
use crate::gateway::{self, GatewayError};

/// Changes the policy and waits for the acknowledgement, one change at a time.
pub(super) struct PolicyDesk<'a> {
    engine: &'a dyn Engine,
    gateway: &'a PlannedGateway,
    present: Mutex<Present>,
}

struct Present {
    /// What the gateway acknowledged last.
    policy: Policy,
    /// Whether its refused addresses are those that the engine's host has by now.
    fresh: bool,
}

impl<'a> PolicyDesk<'a> {
    /// Brings the gateway to exactly `networks` and takes it from there. A gateway without a readable policy denies
    /// everything, and any generation may follow (S8).
    pub(super) async fn open(
        engine: &'a dyn Engine,
        gateway: &'a PlannedGateway,
        project: &str,
        networks: BTreeMap<String, GatewayRule>,
    ) -> Result<Self, GatewayError> {
        let wanted = |generation, refused| {
            Policy::new(
                project,
                generation,
                gateway.range,
                networks.clone(),
                refused,
            )
        };
        let generation = match gateway::standing(engine, &gateway.name).await {
            Ok(standing) => {
                let generation = standing.ack.generation;
                let policy = wanted(generation, standing.refused);
                if standing.ack.hash == policy.hash()? && standing.problem.is_none() {
                    let present = Mutex::new(Present {
                        policy,
                        fresh: false,
                    });
                    return Ok(Self {
                        engine,
                        gateway,
                        present,
                    });
                }
                generation + 1
            }
            Err(GatewayError::Role { message, .. }) => {
                tracing::debug!("the gateway has no policy to go by: {message}");
                1
            }
            Err(error) => return Err(error),
        };
        let refused = host_addresses(engine, gateway, project).await?;
        let policy = wanted(generation, refused);
        gateway::push_policy(engine, &gateway.name, &policy).await?;
        Ok(Self {
            engine,
            gateway,
            present: Mutex::new(Present {
                policy,
                fresh: true,
            }),
        })
    }

    /// Adds or replaces the rule of a network.
    pub(super) async fn allow(
        &self,
        network: &str,
        rule: &GatewayRule,
    ) -> Result<(), GatewayError> {
        self.change(|networks| {
            networks.insert(network.to_owned(), rule.clone());
        })
        .await
    }

    /// Takes a network's rule away. Acknowledged before the network may be removed (S5).
    pub(super) async fn revoke(&self, network: &str) -> Result<(), GatewayError> {
        self.change(|networks| {
            networks.remove(network);
        })
        .await
    }

    async fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, GatewayRule>),
    ) -> Result<(), GatewayError> {
        let mut present = self.present.lock().await;
        let Policy {
            project,
            generation,
            mut networks,
            mut refused,
            ranges: _,
        } = present.policy.clone();
        change(&mut networks);
        if networks == present.policy.networks {
            return Ok(());
        }
        if !present.fresh {
            refused = host_addresses(self.engine, self.gateway, &project).await?;
        }
        let range = self.gateway.range;
        let next = Policy::new(&project, generation + 1, range, networks, refused);
        gateway::push_policy(self.engine, &self.gateway.name, &next).await?;
        *present = Present {
            policy: next,
            fresh: true,
        };
        Ok(())
    }
}

/// Asked anew by each apply that delivers something: they change without anybody's telling. A gateway that carries
/// nothing dials nothing.
async fn host_addresses(
    engine: &dyn Engine,
    gateway: &PlannedGateway,
    project: &str,
) -> Result<Vec<IpAddr>, GatewayError> {
    match gateway.carries() {
        true => gateway::host_addresses(engine, project, gateway.range).await,
        false => Ok(Vec::new()),
    }
}

/// Whether the gateway goes by exactly what is planned; else, why not.
pub async fn policy_state(
    engine: &dyn Engine,
    project: &str,
    gateway: &PlannedGateway,
) -> Result<(), String> {
    let standing = gateway::standing(engine, &gateway.name).await;
    let Standing {
        ack,
        refused,
        unattached,
        problem,
    } = standing.map_err(|error| super::chain(&error))?;
    if let Some(problem) = problem {
        return Err(problem);
    }
    if !unattached.is_empty() {
        return Err(format!(
            "the gateway is not attached to {}",
            unattached.join(", ")
        ));
    }
    let networks = gateway.policy.clone();
    let planned = Policy::new(project, ack.generation, gateway.range, networks, refused);
    match planned.hash() {
        Ok(hash) if hash == ack.hash => Ok(()),
        Ok(_) => Err(format!(
            "generation {} is not what is planned",
            ack.generation
        )),
        Err(error) => Err(error.to_string()),
    }
}
