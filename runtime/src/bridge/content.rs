//! The result of `tools/call` as JSON.
//!
//! | the server answers | the caller gets |
//! |---|---|
//! | `isError` | the error of the call, in the texts' words |
//! | structured content, and nothing beside it but that as a text | the structured content |
//! | one text that is a JSON object or array | that JSON |
//! | one text | a JSON string |
//! | anything else | `{"content": […], "structured": …}` |
//!
//! Binaries (images, audio, embedded resources) become artifacts, and a block says which.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::artifacts::Artifacts;
use super::error::CallError;

const METHOD: &str = "tools/call";

/// Reads a result.
pub(super) fn read(result: Value, artifacts: &Artifacts) -> Result<Value, CallError> {
    let Value::Object(mut result) = result else {
        return Err(wrong("it is no object"));
    };
    let content = match result.remove("content") {
        Some(Value::Array(content)) => content,
        None | Some(Value::Null) => Vec::new(),
        Some(_) => return Err(wrong("`content` is no array")),
    };
    let structured = result
        .remove("structuredContent")
        .filter(|value| !value.is_null());
    match result.remove("isError") {
        None | Some(Value::Null | Value::Bool(false)) => {}
        Some(Value::Bool(true)) => {
            return Err(CallError::Tool {
                message: words(&content, structured.as_ref()),
            });
        }
        Some(_) => return Err(wrong("`isError` is no boolean")),
    }
    if let Some(value) = alone(&content, structured.as_ref()) {
        return Ok(value);
    }
    let mut blocks = Vec::new();
    for block in content {
        blocks.push(read_block(block, artifacts)?);
    }
    let mut all = Map::new();
    all.insert("content".to_owned(), Value::Array(blocks));
    if let Some(structured) = structured {
        all.insert("structured".to_owned(), structured);
    }
    Ok(Value::Object(all))
}

fn wrong(reason: &str) -> CallError {
    CallError::Answer {
        method: METHOD,
        reason: reason.to_owned(),
    }
}

/// The value of a result that is one.
fn alone(content: &[Value], structured: Option<&Value>) -> Option<Value> {
    let text = match content {
        [] => return structured.cloned(),
        [block] => plain_text(block)?,
        _ => return None,
    };
    let parsed = serde_json::from_str::<Value>(text)
        .ok()
        .filter(|value| value.is_object() || value.is_array());
    match (structured, parsed) {
        (None, Some(parsed)) => Some(parsed),
        (None, None) => Some(Value::from(text)),
        // The protocol asks for the same content as a text, for clients that know no other.
        (Some(structured), Some(parsed)) if *structured == parsed => Some(parsed),
        _ => None,
    }
}

/// A text block that says nothing else.
fn plain_text(block: &Value) -> Option<&str> {
    let block = block.as_object()?;
    if block.get("type")?.as_str()? != "text" {
        return None;
    }
    block.get("text")?.as_str()
}

/// What an error says.
fn words(content: &[Value], structured: Option<&Value>) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(plain_text)
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .collect();
    if !texts.is_empty() {
        return texts.join("\n");
    }
    match structured {
        Some(structured) => structured.to_string(),
        None => "the MCP server's tool failed and does not say why".to_owned(),
    }
}

/// A block, its binary put aside. A kind that is not known stays as it is.
fn read_block(block: Value, artifacts: &Artifacts) -> Result<Value, CallError> {
    let Value::Object(mut block) = block else {
        return Err(wrong("a content block is no object"));
    };
    let kind = block
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    match kind.as_str() {
        "image" | "audio" => put_aside(&mut block, "data", &kind, artifacts)?,
        "resource" => {
            if let Some(Value::Object(resource)) = block.get_mut("resource")
                && resource.contains_key("blob")
            {
                let name = resource
                    .get("uri")
                    .and_then(Value::as_str)
                    .and_then(|uri| uri.rsplit('/').next())
                    .filter(|name| !name.is_empty())
                    .unwrap_or("resource")
                    .to_owned();
                put_aside(resource, "blob", &name, artifacts)?;
            }
        }
        _ => {}
    }
    Ok(Value::Object(block))
}

/// Replaces a field in base64 by an artifact's id and size.
fn put_aside(
    block: &mut Map<String, Value>,
    field: &str,
    name: &str,
    artifacts: &Artifacts,
) -> Result<(), CallError> {
    let Some(Value::String(data)) = block.remove(field) else {
        return Err(wrong("a binary is no string"));
    };
    let Ok(bytes) = STANDARD.decode(data.trim()) else {
        return Err(wrong("a binary is not base64"));
    };
    let mime_type = block
        .get("mimeType")
        .and_then(Value::as_str)
        .unwrap_or("application/octet-stream")
        .to_owned();
    let size = bytes.len();
    let id = artifacts.keep(name, &mime_type, bytes)?;
    block.insert("capability_artifact_id".to_owned(), json!(id));
    block.insert("size_bytes".to_owned(), json!(size));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: Value) -> Value {
        read(result, &Artifacts::default()).unwrap()
    }

    fn error(result: Value) -> String {
        read(result, &Artifacts::default()).unwrap_err().to_string()
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn a_single_value_comes_as_that_value() {
        assert_eq!(of(json!({"content": [text("hello")]})), json!("hello"));
        assert_eq!(of(json!({"content": [text("42")]})), json!("42"));
        assert_eq!(
            of(json!({"content": [text(r#"{"a": 1}"#)]})),
            json!({"a": 1})
        );
        let structured = json!({"a": 1});
        let both = json!({"content": [text(r#"{"a": 1}"#)], "structuredContent": structured});
        assert_eq!(of(both), structured);
        assert_eq!(
            of(json!({"content": [], "structuredContent": structured})),
            structured
        );
    }

    #[test]
    fn nothing_that_says_more_is_dropped() {
        let result = json!({"content": [text("three found")], "structuredContent": {"n": 3}});
        assert_eq!(
            of(result),
            json!({"content": [text("three found")], "structured": {"n": 3}})
        );
        let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
        let odd = json!({"type": "hologram", "data": "?"});
        assert_eq!(
            of(json!({"content": [link, odd, text("x")]})),
            json!({"content": [link, odd, text("x")]})
        );
    }

    #[test]
    fn binaries_become_artifacts_and_texts_of_resources_stay() {
        let artifacts = Artifacts::default();
        let result = json!({"content": [
            {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png", "annotations": {"priority": 1}},
            {"type": "resource", "resource": {"uri": "x://d/plan.pdf", "mimeType": "application/pdf", "blob": "aGk="}},
            {"type": "resource", "resource": {"uri": "x://note", "text": "kept"}},
        ]});
        let read = read(result, &artifacts).unwrap();
        let image = &read["content"][0];
        assert_eq!(image["size_bytes"], 5);
        assert!(image.get("data").is_none());
        assert_eq!(image["annotations"]["priority"], 1);
        let id = image["capability_artifact_id"].as_str().unwrap();
        assert_eq!(artifacts.find(id).unwrap().bytes.as_ref(), b"hello");
        let pdf = &read["content"][1]["resource"];
        let pdf = artifacts
            .find(pdf["capability_artifact_id"].as_str().unwrap())
            .unwrap();
        assert_eq!(
            (pdf.name.as_str(), pdf.bytes.as_ref()),
            ("plan.pdf", b"hi".as_slice())
        );
        assert_eq!(read["content"][2]["resource"]["text"], "kept");
    }

    #[test]
    fn an_error_keeps_the_servers_words() {
        assert_eq!(
            error(json!({"isError": true, "content": [text("no such file"), text(" ")]})),
            "no such file"
        );
        assert_eq!(
            error(json!({"isError": true, "content": [], "structuredContent": {"code": 7}})),
            r#"{"code":7}"#
        );
        assert!(error(json!({"isError": true})).contains("does not say why"));
    }

    #[test]
    fn what_is_no_result_is_an_error() {
        for (result, words) in [
            (json!("x"), "no object"),
            (json!({"content": "x"}), "`content` is no array"),
            (
                json!({"content": [], "isError": "yes"}),
                "`isError` is no boolean",
            ),
            (
                json!({"content": ["x", "y"]}),
                "a content block is no object",
            ),
            (
                json!({"content": [{"type": "image", "data": "%%"}]}),
                "not base64",
            ),
            (json!({"content": [{"type": "image"}]}), "no string"),
        ] {
            assert!(error(result.clone()).contains(words), "{result}");
        }
    }
}
