use tokio::io::{AsyncReadExt, AsyncWriteExt};

mod carried;
mod older;

use super::*;
use crate::secrets::Secrets;
use crate::testing::server::{Scripted, over};
use selu_compiler::model::InstanceKey;
use selu_proto::v1::InvokeResponse;

fn no_config() -> Config {
    Secrets::default()
        .discovery_config(&InstanceKey::new("a", "b"), &[])
        .unwrap()
}

async fn call(client: &Client, args: Map<String, Value>) -> Result<Vec<u8>, CallError> {
    let call = Call {
        tool: "t",
        args: &args,
        config: &no_config(),
        session: "default",
        capability: "b",
        thread: "",
        user: "",
        deadline: Duration::from_secs(20),
    };
    client.call(&call).await
}

#[tokio::test]
async fn a_call_carries_json_objects_and_brings_the_result_back_unchanged() {
    let echo = Scripted::answering(|_, request| {
        assert_eq!(request.config_json, b"{}");
        assert_eq!(request.session_id, "default");
        Ok(InvokeResponse {
            result_json: request.args_json,
            error: String::new(),
        })
    });
    let client = echo.client().await;
    assert_eq!(call(&client, Map::new()).await.unwrap(), b"{}");
}

#[tokio::test]
async fn j01_a_result_between_4_and_16_mib_passes_and_a_larger_one_names_both_sizes() {
    let big = Scripted::answering(|number, _| {
        let size = [3_900_000, 4_100_000, 5 << 20, 17 << 20][number];
        Ok(InvokeResponse {
            result_json: vec![b'1'; size],
            error: String::new(),
        })
    });
    let client = big.client().await;
    for size in [3_900_000, 4_100_000, 5 << 20] {
        assert_eq!(call(&client, Map::new()).await.unwrap().len(), size);
    }
    let error = call(&client, Map::new()).await.unwrap_err();
    assert!(matches!(error, CallError::ResultTooLarge { .. }), "{error}");
    assert!(error.to_string().contains("16777216"), "{error}");
    assert_eq!(big.calls(), 4, "never retried (W3)");
}

#[tokio::test]
async fn j01_a_request_of_5_mib_is_sent_and_one_that_is_too_large_never() {
    let idle = Scripted::listing("[]");
    let client = idle.client().await;
    let mut args = Map::new();
    args.insert("x".to_owned(), "y".repeat(5 << 20).into());
    call(&client, args.clone()).await.unwrap();
    args.insert("x".to_owned(), "y".repeat(17 << 20).into());
    let error = call(&client, args).await.unwrap_err();
    assert!(
        matches!(error, CallError::RequestTooLarge { .. }),
        "{error}"
    );
    assert_eq!(idle.calls(), 1);
}

#[tokio::test]
async fn a_non_empty_error_is_a_failure_even_with_a_result() {
    let failing = Scripted::answering(|_, _| {
        Ok(InvokeResponse {
            result_json: b"{}".to_vec(),
            error: "no such city".to_owned(),
        })
    });
    let client = failing.client().await;
    let error = call(&client, Map::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "the tool failed: no such city");
}

#[tokio::test]
async fn j02_a_huge_status_message_is_shortened_and_keeps_its_code() {
    let loud = Scripted::answering(|_, _| Err(Status::internal("ü\n".repeat(22_000))));
    let client = loud.client().await;
    let text = call(&client, Map::new()).await.unwrap_err().to_string();
    assert!(text.contains("Internal") && text.len() < 5_000, "{text}");
}

#[tokio::test]
async fn a_health_check_that_is_not_implemented_is_another_service() {
    let older = Scripted::listing("[]").with_health(|| Err(Status::unimplemented("")));
    let client = older.client().await;
    let answer = client.health(Duration::from_secs(5)).await;
    assert!(matches!(answer, Err(CallError::OtherService)));
}

#[tokio::test]
async fn j03_what_speaks_something_else_is_said_not_to_speak_plaintext_grpc_and_asked_once() {
    // An HTTP/1.1 server, a TLS server that refuses a plaintext hello, a mail server, and one that hangs up at once.
    for said in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(),
        b"\x15\x03\x03\x00\x02\x02\x46",
        b"220 mail.example ESMTP ready\r\n",
        b"",
    ] {
        let (near, mut far) = tokio::io::duplex(1024);
        tokio::spawn(async move {
            far.write_all(said).await.ok();
            if !said.is_empty() {
                let mut sink = Vec::new();
                far.read_to_end(&mut sink).await.ok();
            }
        });
        let name = String::from_utf8_lossy(said).into_owned();
        // The connection is given once: whoever tried again would be told that it has ended.
        let answer = over(near).await.health(Duration::from_secs(5)).await;
        let error = answer.unwrap_err();
        assert!(
            matches!(error, CallError::NotGrpc { .. }),
            "{name:?}: {error}"
        );
        let text = error.to_string();
        assert!(text.contains("port 50051"), "{text}");
        assert!(text.contains("does not speak plaintext gRPC"), "{text}");
    }
}

#[tokio::test]
async fn j15_fields_of_a_later_version_are_ignored_and_another_major_is_named_with_ours() {
    let mut answer = InvokeResponse {
        result_json: b"1".to_vec(),
        error: String::new(),
    }
    .encode_to_vec();
    // Field 15, a number, which no message of ours has.
    answer.extend([15 << 3, 7]);
    let read = InvokeResponse::decode(answer.as_slice()).unwrap();
    assert_eq!(read.result_json, b"1");
    // A server of another package answers UNIMPLEMENTED to every method of ours.
    let other = Scripted::listing("[]").with_health(|| Err(Status::unimplemented("")));
    let client = other.client().await;
    let error = client.health(Duration::from_secs(5)).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("selu.capability.v1.Capability"), "{text}");
    assert!(
        text.contains("selu.capability.v1.CapabilityService"),
        "{text}"
    );
}

#[tokio::test]
async fn a_connection_that_breaks_after_it_answered_is_broken_and_not_another_protocol() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server = Scripted::listing("[]");
    // What the server writes passes through here, so that the test can cut it off.
    let (inner, outer) = tokio::io::duplex(64 * 1024);
    server.serve(outer);
    let relay = tokio::spawn(async move {
        let (mut far, mut inner) = (far, inner);
        tokio::io::copy_bidirectional(&mut far, &mut inner)
            .await
            .ok();
    });
    let client = over(near).await;
    assert_eq!(
        client.health(Duration::from_secs(5)).await.unwrap(),
        Health::Ready
    );
    relay.abort();
    let error = call(&client, Map::new()).await.unwrap_err();
    assert!(matches!(error, CallError::Broken { .. }), "{error}");
}
