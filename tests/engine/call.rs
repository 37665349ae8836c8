//! Calls a deployed capability's tool the way the runtime does: through the gateway's pipe.

use selu_proto::v1::InvokeRequest;
use selu_proto::v1::capability_client::CapabilityClient;
use serde_json::Value;

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
        let engine = selu_runtime::engine::docker::connect(None)
            .await
            .map_err(|error| error.to_string())?;
        let channel = selu_runtime::gateway::pipe(&engine, gateway, network)
            .await
            .map_err(|error| error.to_string())?;
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
            serde_json::from_slice(&answer.result_json).map_err(|error| error.to_string())
        } else {
            Err(answer.error)
        }
    })
}

/// [`call_with`] without credentials; the call must succeed.
#[track_caller]
pub(crate) fn call(gateway: &str, network: &str, tool: &str, arguments: &Value) -> Value {
    call_with(gateway, network, tool, arguments, &serde_json::json!({}))
        .unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"))
}
