//! Results through the bridge, in every shape that MCP has.

use selu_proto::v1::{HealthRequest, InvokeRequest};
use serde_json::json;

use crate::desk::Bridge;

#[tokio::test]
async fn arguments_and_results_go_through_as_json() {
    let bridge = Bridge::of("plain").await;
    let arguments = json!({"city": "Köln", "days": 3, "nested": {"a": [1, 2.5, null]}});
    let result = bridge.call("look", arguments.clone()).await.unwrap();
    assert_eq!(result["arguments"], arguments);
    assert_eq!(
        bridge.call("structured", json!({})).await.unwrap(),
        json!({"content": [{"type": "text", "text": "3 found"}], "structured": {"found": 3}})
    );
}

#[tokio::test]
async fn an_image_becomes_an_artifact_that_can_be_fetched() {
    let bridge = Bridge::of("plain").await;
    let result = bridge.call("image", json!({})).await.unwrap();
    assert_eq!(result["content"][0]["text"], "a picture");
    let image = &result["content"][1];
    assert_eq!(image["size_bytes"], 8);
    let id = image["capability_artifact_id"].as_str().unwrap();
    let (bytes, kind) = bridge.download(id).await;
    assert_eq!(
        (bytes.as_slice(), kind.as_str()),
        (b"\x89PNG\r\n\x1a\n".as_slice(), "image/png")
    );
    let refused = bridge
        .client
        .clone()
        .download_output_artifact(selu_proto::v1::DownloadOutputArtifactRequest {
            capability_artifact_id: "0".repeat(32),
        })
        .await;
    assert_eq!(refused.unwrap_err().code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn a_stream_is_the_result_in_pieces() {
    let bridge = Bridge::of("plain").await;
    let request = InvokeRequest {
        tool_name: "large".to_owned(),
        args_json: b"{}".to_vec(),
        config_json: b"{}".to_vec(),
        ..InvokeRequest::default()
    };
    let mut chunks = bridge
        .client
        .clone()
        .stream_invoke(request)
        .await
        .unwrap()
        .into_inner();
    let (mut bytes, mut pieces, mut done) = (0, 0, false);
    while let Some(chunk) = chunks.message().await.unwrap() {
        assert!(!done && chunk.error.is_empty());
        bytes += chunk.data.len();
        pieces += 1;
        done = chunk.done;
    }
    assert!(done && pieces > 10);
    assert_eq!(bytes, 15 * 1024 * 1024 + 2);
}

#[tokio::test]
async fn an_unknown_tool_is_the_servers_error_and_bad_requests_are_named() {
    let bridge = Bridge::of("plain").await;
    let error = bridge.error("no_such").await;
    assert_eq!(error, "Unknown tool: no_such (MCP error -32602)");
    let error = bridge.call("look", json!([1])).await.unwrap_err();
    assert!(
        error.starts_with("args_json must be a JSON object"),
        "{error}"
    );
}

#[tokio::test]
async fn health_is_answered_at_once_and_files_are_refused() {
    let bridge = Bridge::of("deaf").await;
    let health = bridge.client.clone().healthcheck(HealthRequest {}).await;
    assert!(health.unwrap().into_inner().ready);
    let chunks = futures_util::stream::empty();
    let refused = bridge.client.clone().upload_input_artifact(chunks).await;
    assert_eq!(refused.unwrap_err().code(), tonic::Code::Unimplemented);
}
