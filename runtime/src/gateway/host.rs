//! The addresses of the engine's host, wherever it is (N8): asked by a container of our own image in the host's network
//! namespace, which has no right to do anything there.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::Ipv4Net;
use selu_compiler::plan::spec::helper_spec;
use tokio::io::AsyncReadExt;

use super::{GatewayError, LONGEST_ANSWER, answer, silent};
use crate::engine::{Engine, Pipe};

/// The engine's name for its host's network namespace.
pub(super) const HOST_NETWORK: &str = "host";

const ROLE: &str = "host-addresses";

/// How long the answer may take, with the start of its container.
const LIMIT: Duration = Duration::from_secs(30);

/// Every address of the engine's host outside `range`, which is never dialled anyway.
pub async fn host_addresses(
    engine: &dyn Engine,
    project: &str,
    range: Ipv4Net,
) -> Result<Vec<IpAddr>, GatewayError> {
    let name = format!("selu_{project}_addresses");
    // One that a killed run left behind.
    engine.remove_container(&name).await?;
    let asked = tokio::time::timeout(LIMIT, ask(engine, project, &name)).await;
    let removed = engine.remove_container(&name).await;
    let answered = asked.unwrap_or_else(|_| Err(silent(&name, &[ROLE], LIMIT)))?;
    removed?;
    let mut addresses: Vec<IpAddr> =
        serde_json::from_slice(&answered).map_err(|error| answer(&name, &[ROLE], error))?;
    addresses.retain(|address| match address {
        IpAddr::V4(address) => !range.contains(address),
        IpAddr::V6(_) => true,
    });
    if addresses.is_empty() {
        return Err(answer(&name, &[ROLE], "the engine's host has no address"));
    }
    Ok(addresses)
}

async fn ask(engine: &dyn Engine, project: &str, name: &str) -> Result<Vec<u8>, GatewayError> {
    let mut spec = helper_spec(
        project,
        "helper",
        ["gateway", ROLE].map(str::to_owned).to_vec(),
    );
    // Kernel settings of the namespace are the host's own here.
    spec.sysctls = BTreeMap::new();
    engine
        .create_container(name, &spec, HOST_NETWORK, None, false)
        .await?;
    let Pipe {
        output,
        input,
        ended,
    } = engine.attach(name).await?;
    engine.start(name).await?;
    drop(input);
    let mut answered = Vec::new();
    let heard = output.take(LONGEST_ANSWER).read_to_end(&mut answered).await;
    let (code, message) = ended.await?;
    if code != 0 {
        return Err(GatewayError::Role {
            gateway: name.to_owned(),
            role: format!("gateway {ROLE}"),
            code,
            message: message.trim().to_owned(),
        });
    }
    heard.map_err(|source| GatewayError::Streams {
        gateway: name.to_owned(),
        role: format!("gateway {ROLE}"),
        source,
    })?;
    Ok(answered)
}
