//! One call: the tool's name, its arguments and the credentials that came with it.

use selu_proto::v1::InvokeRequest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A tool call whose JSON is known to be two objects. It has no `Debug`: credentials are in it.
pub struct Call {
    tool: String,
    arguments: Value,
    credentials: Map<String, Value>,
}

impl Call {
    /// Reads a request of the wire.
    pub(crate) fn read(request: InvokeRequest) -> Result<Self, ToolError> {
        Ok(Self {
            arguments: object(&request.args_json, "args_json")?.into(),
            credentials: object(&request.config_json, "config_json")?,
            tool: request.tool_name,
        })
    }

    /// A call as a test makes it.
    pub fn new(tool: &str, arguments: Value, credentials: Map<String, Value>) -> Self {
        Self {
            tool: tool.to_owned(),
            arguments,
            credentials,
        }
    }

    /// Which tool is asked for.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments as a type of the tool's own. Derive it with `deny_unknown_fields`, so that a misspelt argument is
    /// an error and not a default.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        T::deserialize(&self.arguments).map_err(|error| ToolError::Arguments {
            tool: self.tool.clone(),
            reason: error.to_string(),
        })
    }

    /// A credential by the name that the manifest declares. It comes with the call and never from the environment (C3).
    pub fn credential(&self, name: &'static str) -> Result<&str, ToolError> {
        self.credentials
            .get(name)
            .and_then(Value::as_str)
            .filter(|value| !value.is_empty())
            .ok_or(ToolError::MissingCredential { name })
    }
}

/// A result as JSON.
pub fn reply(result: impl Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(result)
        .map_err(|error| ToolError::failed(format!("the result is not JSON: {error}")))
}

/// Why a call failed. The text goes to the caller as `InvokeResponse.error`; no credential's value is ever in it.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The capability has no such tool.
    #[error("unknown tool `{name}`")]
    UnknownTool {
        /// As it was asked for.
        name: String,
    },
    /// One of the request's two JSON fields is not an object.
    #[error("{field} must be a JSON object: {reason}")]
    Request {
        /// The field of `InvokeRequest`.
        field: &'static str,
        /// What was found.
        reason: String,
    },
    /// The arguments do not fit the tool.
    #[error("arguments of {tool}: {reason}")]
    Arguments {
        /// The tool.
        tool: String,
        /// What is wrong with them.
        reason: String,
    },
    /// A credential that the tool needs was not passed.
    #[error("the credential {name} is missing; without it nothing is answered")]
    MissingCredential {
        /// As the manifest declares it.
        name: &'static str,
    },
    /// The tool ran and could not do it.
    #[error("{0}")]
    Failed(String),
}

impl ToolError {
    /// For the last arm of a dispatch over [`Call::tool`].
    pub fn unknown(call: &Call) -> Self {
        Self::UnknownTool {
            name: call.tool.clone(),
        }
    }

    /// For arguments that fit their type and still make no sense.
    pub fn arguments(call: &Call, reason: impl Into<String>) -> Self {
        Self::Arguments {
            tool: call.tool.clone(),
            reason: reason.into(),
        }
    }

    /// For a tool that could not do what it was asked.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

fn object(bytes: &[u8], field: &'static str) -> Result<Map<String, Value>, ToolError> {
    // The value is not quoted in the error: config_json holds secrets.
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(ToolError::Request {
            field,
            reason: "it is JSON of another type".to_owned(),
        }),
        Err(error) => Err(ToolError::Request {
            field,
            reason: format!("line {}, column {}", error.line(), error.column()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn request(arguments: &str, config: &str) -> InvokeRequest {
        InvokeRequest {
            tool_name: "greet".to_owned(),
            args_json: arguments.into(),
            config_json: config.into(),
            ..InvokeRequest::default()
        }
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Greet {
        name: String,
    }

    #[test]
    fn arguments_become_the_tools_own_type() {
        let call = Call::read(request(r#"{"name": "Ada"}"#, "{}")).unwrap();
        let greet: Greet = call.arguments().unwrap();
        assert_eq!(greet.name, "Ada");
    }

    #[test]
    fn a_misspelt_argument_is_an_error_that_names_it() {
        let call = Call::read(request(r#"{"nmae": "Ada"}"#, "{}")).unwrap();
        let error = call.arguments::<Greet>().unwrap_err().to_string();
        assert!(
            error.starts_with("arguments of greet: unknown field `nmae`"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_object_is_refused_and_not_quoted() {
        for bad in ["", "[]", "\"s3cret\"", "{\"KEY\": \"s3cret\""] {
            let error = Call::read(request("{}", bad)).err().unwrap().to_string();
            assert!(
                error.starts_with("config_json must be a JSON object"),
                "{error}"
            );
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn an_empty_credential_is_a_missing_one() {
        for config in [json!({}), json!({"KEY": ""}), json!({"KEY": 7})] {
            let call = Call::read(request("{}", &config.to_string())).unwrap();
            let error = call.credential("KEY").unwrap_err().to_string();
            assert!(error.contains("KEY"), "{error}");
        }
    }
}
