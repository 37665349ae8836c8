//! Pieces and files.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use selu_proto::v1::InvokeChunk;
use tokio::io::{AsyncRead, ReadBuf};

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

fn chunk(data: &str, done: bool, error: &str) -> InvokeChunk {
    InvokeChunk {
        data: data.as_bytes().to_vec(),
        done,
        error: error.to_owned(),
    }
}

async fn streamed(chunks: Vec<InvokeChunk>) -> (String, Result<(), CallError>) {
    let client = Scripted::streaming(chunks).client().await;
    let call = Call {
        tool: "t",
        args: &Map::new(),
        config: &no_config(),
        session: "default",
        capability: "b",
        thread: "",
        user: "",
        deadline: LIMIT,
    };
    let mut all = Vec::new();
    let result = client
        .call_stream(&call, |piece| {
            all.extend_from_slice(piece);
            Ok(())
        })
        .await;
    (String::from_utf8(all).unwrap(), result)
}

#[tokio::test]
async fn pieces_come_in_order_up_to_the_last_one() {
    let (all, result) = streamed(vec![
        chunk("a", false, ""),
        chunk("b", false, ""),
        chunk("c", true, ""),
        chunk("never", true, ""),
    ])
    .await;
    assert_eq!(all, "abc");
    result.unwrap();
}

#[tokio::test]
async fn a_stream_that_fails_or_ends_early_is_a_failure() {
    let (all, result) = streamed(vec![chunk("a", false, ""), chunk("", true, "out of ink")]).await;
    assert_eq!(all, "a");
    assert_eq!(
        result.unwrap_err().to_string(),
        "the tool failed: out of ink"
    );
    let (_, result) = streamed(vec![chunk("a", false, "")]).await;
    assert!(matches!(result.unwrap_err(), CallError::Broken { .. }));
}

#[tokio::test]
async fn a_file_goes_over_and_comes_back_byte_by_byte() {
    let server = Scripted::listing("[]");
    let client = server.client().await;
    for size in [0, 1, 700_000] {
        let content: Vec<u8> = (0..size).map(|n: u32| n.to_le_bytes()[0]).collect();
        let id = client
            .upload("a.bin", "x/y", std::io::Cursor::new(content.clone()), LIMIT)
            .await
            .unwrap();
        assert_eq!(id, "id-of-a.bin");
        assert_eq!(server.artifact(), content);
        let mut back = Vec::new();
        let received = client.download(&id, &mut back, LIMIT).await.unwrap();
        assert_eq!((received.bytes, back), (u64::from(size), content));
        assert_eq!(received.filename, "id-of-a.bin");
    }
}

#[tokio::test]
async fn a_file_of_which_another_size_arrived_is_not_handed_over() {
    let client = Scripted::listing("[]").client().await;
    let failed = client.upload("lossy", "x/y", &b"three"[..], LIMIT).await;
    let text = failed.unwrap_err().to_string();
    assert!(
        text.contains("5 bytes were sent, the capability took 1"),
        "{text}"
    );
}

/// Some bytes, then an error.
struct Breaking(bool);

impl AsyncRead for Breaking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0 {
            return Poll::Ready(Err(io::Error::other("the disk is on fire")));
        }
        self.0 = true;
        buffer.put_slice(&vec![7; buffer.remaining().min(100)]);
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_to_its_end_is_not_taken_for_a_short_one() {
    let server = Scripted::listing("[]");
    let client = server.client().await;
    let failed = client.upload("f", "x/y", Breaking(false), LIMIT).await;
    let text = failed.unwrap_err().to_string();
    assert!(text.contains("the disk is on fire"), "{text}");
    assert!(
        server.artifact().is_empty(),
        "the capability never saw an end"
    );
}

#[tokio::test]
async fn a_download_without_its_last_piece_is_a_failure() {
    let server = Scripted::listing("[]");
    let client = server.client().await;
    client
        .upload("f", "x/y", &b"content"[..], LIMIT)
        .await
        .unwrap();
    let failed = client.download("cut", Vec::new(), LIMIT).await.unwrap_err();
    assert!(matches!(failed, CallError::Broken { .. }), "{failed}");
}
