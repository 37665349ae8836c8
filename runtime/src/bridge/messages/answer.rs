//! JSON-RPC, as loosely as real servers need it and no looser.

use std::borrow::Cow;

use rmcp::model::{ErrorCode, ErrorData};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::bridge::stdio::line::ENDS;

/// The fields that tell the kinds of messages apart. A `result` of null is one; unknown fields do not matter.
#[derive(Deserialize)]
pub(super) struct Envelope {
    pub(super) id: Option<Value>,
    pub(super) method: Option<String>,
    pub(super) params: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    pub(super) result: Option<Value>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// An id of ours: a number, which some servers give back as a text.
pub(super) fn number(id: &Value) -> Option<i64> {
    match id {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// An error with whatever it has: a server that fails should not fail a second time for its code's type.
pub(super) fn error_data(error: Value) -> ErrorData {
    let code = error.get("code").and_then(Value::as_i64);
    let message = match error.get("message") {
        Some(Value::String(message)) => message.clone(),
        _ => error.to_string(),
    };
    let code = code.and_then(|code| i32::try_from(code).ok());
    ErrorData {
        code: code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode),
        message: Cow::Owned(message),
        data: error.get("data").cloned(),
    }
}

/// The id of a message of which only both ends are there, or that is no JSON: where the usual writers put it, first or
/// last, and nowhere else, since the text between may say anything.
pub(in crate::bridge) fn id_in(head: &[u8], tail: &[u8]) -> Option<i64> {
    first(head).or_else(|| last(tail))
}

fn first(head: &[u8]) -> Option<i64> {
    let head = compact(head.get(..ENDS).unwrap_or(head));
    let rest = head.strip_prefix('{')?;
    let rest = rest.strip_prefix(r#""jsonrpc":"2.0","#).unwrap_or(rest);
    let rest = rest.strip_prefix(r#""id":"#)?;
    let (id, _) = rest.split_once(',')?;
    id.parse().ok()
}

fn last(tail: &[u8]) -> Option<i64> {
    let tail = compact(tail.get(tail.len().saturating_sub(ENDS)..).unwrap_or(tail));
    let rest = tail.strip_suffix('}')?;
    let (_, id) = rest.rsplit_once(r#","jsonrpc":"2.0","id":"#)?;
    id.parse().ok()
}

fn compact(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .filter(|c| !c.is_ascii_whitespace())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_taken_from_the_usual_places_only() {
        let of = |text: &str| id_in(text.as_bytes(), text.as_bytes());
        assert_eq!(of(r#"{"jsonrpc": "2.0", "id": 7, "result": {"#), Some(7));
        assert_eq!(of(r#"{"id":7,"result""#), Some(7));
        assert_eq!(of(r#"xx"},"jsonrpc":"2.0","id":12}"#), Some(12));
        assert_eq!(of(r#"{"result":{"id":7,"#), None);
        assert_eq!(of(r#"{"result":{},"id":7}"#), None);
    }

    #[test]
    fn an_error_of_any_shape_keeps_its_words() {
        assert_eq!(
            error_data(json!({"code": "E1", "message": "no"})).message,
            "no"
        );
        assert_eq!(error_data(json!("broken")).message, "\"broken\"");
        let far = error_data(json!({"code": 99_999_999_999_i64, "message": "far"}));
        assert_eq!(far.code, ErrorCode::INTERNAL_ERROR);
    }

    #[test]
    fn a_result_of_null_is_a_result() {
        let envelope: Envelope = serde_json::from_str(r#"{"id":1,"result":null}"#).unwrap();
        assert_eq!(envelope.result, Some(Value::Null));
        let envelope: Envelope = serde_json::from_str(r#"{"id":1}"#).unwrap();
        assert_eq!(envelope.result, None);
    }
}
