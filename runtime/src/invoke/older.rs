//! The older dialect's messages (W4).

use std::collections::HashMap;

use selu_proto::v1::{OlderInvokeRequest, OlderInvokeResponse};
use serde_json::Value;

use super::{Call, CallError, shorten, to_json};

/// A call in its words. The credentials stand beside what the call says of itself and may not replace that.
pub(super) fn request(call: &Call<'_>) -> Result<OlderInvokeRequest, CallError> {
    let own = [
        ("session_id", call.session),
        ("user_id", call.user),
        ("capability_id", call.capability),
        ("thread_id", call.thread),
    ];
    let mut context: HashMap<String, String> = own
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    for (name, value) in call.config.expose() {
        if context.contains_key(name) {
            return Err(CallError::ContextName { name: name.clone() });
        }
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        context.insert(name.clone(), value);
    }
    Ok(OlderInvokeRequest {
        tool_name: call.tool.to_owned(),
        // A displayed JSON value is UTF-8.
        parameters: String::from_utf8_lossy(&to_json(call.args)).into_owned(),
        context,
    })
}

/// A result as the present dialect has it. The dialect says `string`: one that is no JSON is a plain text (ours).
pub(super) fn result(response: OlderInvokeResponse) -> Result<Vec<u8>, CallError> {
    let OlderInvokeResponse {
        result,
        success,
        error,
    } = response;
    match (success, error.as_str()) {
        (true, "") => Ok(
            match serde_json::from_str::<serde::de::IgnoredAny>(&result) {
                Ok(_) => result.into_bytes(),
                Err(_) => Value::from(result).to_string().into_bytes(),
            },
        ),
        (_, "") => Err(CallError::Tool {
            message: "it answers `success: false` and gives no reason".to_owned(),
        }),
        (_, error) => Err(CallError::Tool {
            message: shorten(error),
        }),
    }
}
