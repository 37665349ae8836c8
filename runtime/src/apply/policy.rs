//! The gateway's policy while several instances change at once: one desk, one generation after the other (S8).

use std::collections::BTreeMap;

use selu_compiler::plan::{GatewayRule, PlannedGateway};
use tokio::sync::Mutex;

use crate::egress::policy::{Policy, Standing};
use crate::engine::Engine;
use crate::gateway::{self, GatewayError};

/// Changes the policy and waits for the acknowledgement, one change at a time.
pub(super) struct PolicyDesk<'a> {
    engine: &'a dyn Engine,
    gateway: &'a PlannedGateway,
    /// What the gateway acknowledged last.
    present: Mutex<Policy>,
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
        let name = &gateway.name;
        let standing = gateway::standing(engine, name).await;
        // Asked anew whenever there is something to do: they change without anybody's telling.
        let refused = match gateway.carries() {
            true => gateway::host_addresses(engine, project, gateway.range).await?,
            false => Vec::new(),
        };
        let mut wanted = Policy::new(project, 1, gateway.range, networks, refused);
        match standing {
            Ok(Standing { ack, problem, .. }) => {
                wanted.generation = ack.generation;
                if ack.hash != wanted.hash()? || problem.is_some() {
                    wanted.generation += 1;
                    gateway::push_policy(engine, name, &wanted).await?;
                }
            }
            Err(GatewayError::Role { message, .. }) => {
                tracing::debug!("the gateway has no policy to go by: {message}");
                gateway::push_policy(engine, name, &wanted).await?;
            }
            Err(error) => return Err(error),
        }
        Ok(Self {
            engine,
            gateway,
            present: Mutex::new(wanted),
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
            refused,
            ranges: _,
        } = present.clone();
        change(&mut networks);
        if networks == present.networks {
            return Ok(());
        }
        let next = Policy::new(
            &project,
            generation + 1,
            self.gateway.range,
            networks,
            refused,
        );
        gateway::push_policy(self.engine, &self.gateway.name, &next).await?;
        *present = next;
        Ok(())
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
