//! Calls a deployed capability's tool the way the runtime does: through the gateway's pipe.

use std::collections::HashMap;
use std::sync::Mutex;

use selu_proto::v1::InvokeRequest;
use selu_proto::v1::capability_client::CapabilityClient;
use serde_json::Value;
use tonic::transport::Channel;

use crate::daemon::wait;

/// Opens a pipe to a container's network and calls one tool.
pub(crate) fn call_with(
    gateway: &str,
    network: &str,
    tool: &str,
    arguments: &Value,
    config: &Value,
) -> Result<Value, String> {
    wait(async {
        let channel = open_pipe(gateway, network).await?;
        invoke(channel, tool, arguments, config).await?
    })
}

/// [`call_with`] without credentials; the call must succeed.
#[track_caller]
pub(crate) fn call(gateway: &str, network: &str, tool: &str, arguments: &Value) -> Value {
    call_with(gateway, network, tool, arguments, &serde_json::json!({}))
        .unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"))
}

/// Calls over pipes that stay open from one to the next.
pub(crate) struct Calls {
    runtime: tokio::runtime::Runtime,
    pipes: Mutex<HashMap<String, Channel>>,
}

impl Calls {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        Self {
            runtime: runtime.unwrap(),
            pipes: Mutex::default(),
        }
    }

    /// Calls one tool. A pipe that broke since the last call is opened anew.
    pub(crate) fn call(
        &self,
        gateway: &str,
        network: &str,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, String> {
        let none = serde_json::json!({});
        self.runtime.block_on(async {
            let open = self.pipes.lock().unwrap().remove(network);
            if let Some(channel) = open
                && let Ok(answer) = invoke(channel.clone(), tool, arguments, &none).await
            {
                self.pipes
                    .lock()
                    .unwrap()
                    .insert(network.to_owned(), channel);
                return answer;
            }
            let channel = open_pipe(gateway, network).await?;
            let answer = invoke(channel.clone(), tool, arguments, &none).await?;
            self.pipes
                .lock()
                .unwrap()
                .insert(network.to_owned(), channel);
            answer
        })
    }
}

pub(crate) async fn open_pipe(gateway: &str, network: &str) -> Result<Channel, String> {
    let engine = selu_runtime::engine::docker::connect(None)
        .await
        .map_err(|error| error.to_string())?;
    selu_runtime::gateway::pipe(&engine, gateway, network)
        .await
        .map_err(|error| error.to_string())
}

/// The outer error is the call's, the inner one the tool's.
pub(crate) async fn invoke(
    channel: Channel,
    tool: &str,
    arguments: &Value,
    config: &Value,
) -> Result<Result<Value, String>, String> {
    let request = InvokeRequest {
        tool_name: tool.to_owned(),
        args_json: arguments.to_string().into_bytes(),
        config_json: config.to_string().into_bytes(),
        session_id: "default".to_owned(),
        ..Default::default()
    };
    let answer = CapabilityClient::new(channel)
        .max_decoding_message_size(selu_proto::MAX_MESSAGE_BYTES)
        .invoke(request)
        .await
        .map_err(|status| format!("{:?}: {}", status.code(), status.message()))?
        .into_inner();
    if answer.error.is_empty() {
        serde_json::from_slice(&answer.result_json)
            .map(Ok)
            .map_err(|error| error.to_string())
    } else {
        Ok(Err(answer.error))
    }
}
