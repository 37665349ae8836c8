//! The capability service (section 4 of the format) in front of the MCP servers.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use selu_proto::MAX_MESSAGE_BYTES;
use selu_proto::v1::capability_server::Capability;
use selu_proto::v1::{
    ArtifactChunk, DownloadOutputArtifactRequest, HealthRequest, HealthResponse, InvokeChunk,
    InvokeRequest, InvokeResponse, UploadInputArtifactChunk, UploadInputArtifactResponse,
};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use super::artifacts::Artifacts;
use super::credentials::{CredentialSet, object};
use super::error::CallError;
use super::pool::Pool;
use super::{Options, content, tools};
use crate::chain;

/// Bytes in one piece of a stream.
const PIECE: usize = 256 * 1024;

/// Room for the other fields of a response.
const AROUND: usize = 4 * 1024;

/// Longest error: a caller shows it to a model, and what is longer is a dump.
const LONGEST_ERROR: usize = 8_000;

/// What is served.
pub(super) struct Service {
    options: Options,
    pool: Arc<Pool>,
    artifacts: Artifacts,
}

type Chunks<C> = Pin<Box<dyn Stream<Item = Result<C, Status>> + Send>>;

impl Service {
    /// The service, and the servers that it starts, for their end.
    pub(super) fn new(options: Options) -> (Self, Arc<Pool>) {
        let pool = Pool::new(options.target.clone(), options.idle);
        let service = Self {
            pool: Arc::clone(&pool),
            options,
            artifacts: Artifacts::default(),
        };
        (service, pool)
    }

    /// One call as the two fields of the wire: exactly one of them is filled.
    async fn answer(&self, request: Request<InvokeRequest>) -> (Vec<u8>, String) {
        let limit = deadline(request.metadata());
        let request = request.into_inner();
        let credentials = match CredentialSet::read(&request.config_json) {
            Ok(credentials) => credentials,
            Err(error) => return (Vec::new(), error.to_string()),
        };
        let redactor = credentials.redactor().clone();
        let outcome = match limit {
            Some(limit) => {
                let call = self.call(request, credentials);
                // A little earlier than the caller gives up: he should hear why.
                let margin = (limit / 10).min(Duration::from_millis(200));
                tokio::time::timeout(limit - margin, call)
                    .await
                    .unwrap_or(Err(CallError::Deadline { limit }))
            }
            None => self.call(request, credentials).await,
        };
        match outcome {
            Ok(result) => (result, String::new()),
            // The whole text is cleaned before it is cut: half a secret is one, too.
            Err(error) => (Vec::new(), shorten(redactor.clean(&chain(&error)))),
        }
    }

    async fn call(
        &self,
        request: InvokeRequest,
        credentials: CredentialSet,
    ) -> Result<Vec<u8>, CallError> {
        let InvokeRequest {
            tool_name,
            args_json,
            ..
        } = request;
        let arguments = object(&args_json, "args_json")?;
        let placeholders = &self.options.placeholders;
        let result = if tool_name == self.options.discovery_tool {
            let stands_in = placeholders.iter().any(|name| credentials.lacks(name));
            let mut lease = self
                .pool
                .lease(credentials.with_placeholders(placeholders))
                .await?;
            if stands_in {
                lease.is_the_last();
            }
            tools::list(&lease, &self.options.policies).await?
        } else {
            if let Some(name) = placeholders.iter().find(|name| credentials.lacks(name)) {
                return Err(CallError::MissingCredential { name: name.clone() });
            }
            let lease = self.pool.lease(credentials).await?;
            let params = CallToolRequestParams::new(tool_name).with_arguments(arguments);
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let result = lease.request("tools/call", request).await?;
            content::read(result, &self.artifacts)?
        };
        let result = result.to_string().into_bytes();
        let limit = MAX_MESSAGE_BYTES - AROUND;
        if result.len() > limit {
            return Err(CallError::TooLarge {
                bytes: result.len(),
                limit,
            });
        }
        Ok(result)
    }
}

fn shorten(mut text: String) -> String {
    if text.len() > LONGEST_ERROR {
        let end = text.floor_char_boundary(LONGEST_ERROR);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// How long the caller waits, as gRPC says it: at most eight digits and a unit.
fn deadline(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let unit = text.chars().last()?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(number.checked_mul(3_600)?),
        'M' => Duration::from_secs(number.checked_mul(60)?),
        'S' => Duration::from_secs(number),
        'm' => Duration::from_millis(number),
        'u' => Duration::from_micros(number),
        'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[tonic::async_trait]
impl Capability for Service {
    async fn invoke(
        &self,
        request: Request<InvokeRequest>,
    ) -> Result<Response<InvokeResponse>, Status> {
        let (result_json, error) = self.answer(request).await;
        Ok(Response::new(InvokeResponse { result_json, error }))
    }

    type StreamInvokeStream = Chunks<InvokeChunk>;

    /// MCP has no results in pieces: the pieces are those of one result.
    async fn stream_invoke(
        &self,
        request: Request<InvokeRequest>,
    ) -> Result<Response<Self::StreamInvokeStream>, Status> {
        let (result, error) = self.answer(request).await;
        let chunks = pieces(result.into(), move |data, done| InvokeChunk {
            data,
            done,
            error: if done { error.clone() } else { String::new() },
        });
        Ok(Response::new(chunks))
    }

    /// Ready from the start: the program is there, and whether it runs depends on credentials that only a call brings.
    async fn healthcheck(
        &self,
        _: Request<HealthRequest>,
    ) -> Result<Response<HealthResponse>, Status> {
        Ok(Response::new(HealthResponse {
            ready: true,
            message: String::new(),
        }))
    }

    async fn upload_input_artifact(
        &self,
        _: Request<Streaming<UploadInputArtifactChunk>>,
    ) -> Result<Response<UploadInputArtifactResponse>, Status> {
        Err(Status::unimplemented(
            "an MCP server takes no files; its tools take arguments only",
        ))
    }

    type DownloadOutputArtifactStream = Chunks<ArtifactChunk>;

    async fn download_output_artifact(
        &self,
        request: Request<DownloadOutputArtifactRequest>,
    ) -> Result<Response<Self::DownloadOutputArtifactStream>, Status> {
        let id = request.into_inner().capability_artifact_id;
        let Some(artifact) = self.artifacts.find(&id) else {
            return Err(Status::not_found(
                "there is no such artifact, or newer ones took its room",
            ));
        };
        let chunks = pieces(artifact.bytes.clone(), move |data, done| ArtifactChunk {
            data,
            filename: artifact.name.clone(),
            mime_type: artifact.mime_type.clone(),
            done,
            error: String::new(),
        });
        Ok(Response::new(chunks))
    }
}

/// A stream of pieces, one at least; the last one is marked.
fn pieces<C: Send + 'static>(
    bytes: Bytes,
    chunk: impl Fn(Vec<u8>, bool) -> C + Send + 'static,
) -> Chunks<C> {
    let pieces = stream::unfold(Some(bytes), move |rest| {
        let next = rest.map(|mut rest| {
            let piece = rest.split_to(PIECE.min(rest.len()));
            let done = rest.is_empty();
            (Ok(chunk(piece.to_vec(), done)), (!done).then_some(rest))
        });
        std::future::ready(next)
    });
    Box::pin(pieces)
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[test]
    fn a_deadline_is_read_in_each_unit_and_nonsense_is_none() {
        let of = |text: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().unwrap());
            deadline(&metadata)
        };
        assert_eq!(of("120S"), Some(Duration::from_secs(120)));
        assert_eq!(of("1500m"), Some(Duration::from_millis(1_500)));
        assert_eq!(of("2M"), Some(Duration::from_secs(120)));
        assert_eq!(of("99999999u"), Some(Duration::from_micros(99_999_999)));
        for wrong in ["", "S", "12", "-1S", "1.5S"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn pieces_are_the_whole_and_only_the_last_one_is_done() {
        for length in [0, 1, PIECE, PIECE + 1] {
            let bytes: Vec<u8> = (0..length)
                .map(|n| u8::try_from(n % 251).unwrap())
                .collect();
            let pieces: Vec<(Vec<u8>, bool)> =
                pieces(bytes.clone().into(), |data, done| (data, done))
                    .map(Result::unwrap)
                    .collect()
                    .await;
            let done: Vec<bool> = pieces.iter().map(|(_, done)| *done).collect();
            assert_eq!(done.iter().filter(|done| **done).count(), 1);
            assert_eq!(done.last(), Some(&true));
            let joined: Vec<u8> = pieces.into_iter().flat_map(|(data, _)| data).collect();
            assert_eq!(joined, bytes);
        }
    }
}
