//! A capability in this very process, behind a pipe.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::{Stream, stream};
use hyper_util::rt::TokioIo;
use selu_proto::v1::capability_server::{Capability, CapabilityServer};
use selu_proto::v1::capability_service_server::{CapabilityService, CapabilityServiceServer};
use selu_proto::v1::{
    ArtifactChunk, DownloadOutputArtifactRequest, HealthRequest, HealthResponse, InvokeChunk,
    InvokeRequest, InvokeResponse, OlderHealthRequest, OlderHealthResponse, OlderInvokeRequest,
    OlderInvokeResponse, UploadInputArtifactChunk, UploadInputArtifactResponse,
};
use tokio::io::DuplexStream;
use tonic::transport::Uri;
use tonic::{Request, Response, Status, Streaming};

use crate::invoke::Client;

type Answer = dyn Fn(usize, InvokeRequest) -> Result<InvokeResponse, Status> + Send + Sync;

/// Answers health checks and calls as a test says.
#[derive(Clone)]
pub(crate) struct Scripted {
    health: Arc<dyn Fn() -> Result<bool, Status> + Send + Sync>,
    answer: Arc<Answer>,
    calls: Arc<AtomicUsize>,
    /// What a streamed call gives.
    chunks: Vec<InvokeChunk>,
    /// What was uploaded, and what every download gives.
    artifact: Arc<Mutex<Vec<u8>>>,
}

impl Scripted {
    /// Is ready, and answers the n-th call (from 0) so.
    pub(crate) fn answering(
        answer: impl Fn(usize, InvokeRequest) -> Result<InvokeResponse, Status> + Send + Sync + 'static,
    ) -> Self {
        Self {
            health: Arc::new(|| Ok(true)),
            answer: Arc::new(answer),
            calls: Arc::default(),
            chunks: Vec::new(),
            artifact: Arc::default(),
        }
    }

    /// Gives these pieces to a streamed call.
    pub(crate) fn streaming(chunks: Vec<InvokeChunk>) -> Self {
        Self {
            chunks,
            ..Self::listing("[]")
        }
    }

    /// What was uploaded.
    pub(crate) fn artifact(&self) -> Vec<u8> {
        self.artifact.lock().unwrap().clone()
    }

    /// Is ready, and lists these tools.
    pub(crate) fn listing(tools: &'static str) -> Self {
        Self::answering(move |_, _| {
            Ok(InvokeResponse {
                result_json: tools.into(),
                error: String::new(),
            })
        })
    }

    /// Answers health checks so.
    pub(crate) fn with_health(
        mut self,
        health: impl Fn() -> Result<bool, Status> + Send + Sync + 'static,
    ) -> Self {
        self.health = Arc::new(health);
        self
    }

    /// How many calls there were.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// A client of it.
    pub(crate) async fn client(&self) -> Client {
        let (client, server) = tokio::io::duplex(64 * 1024);
        self.serve(server);
        over(client).await
    }

    /// Serves one connection.
    pub(crate) fn serve(&self, server: DuplexStream) {
        let service = CapabilityServer::new(self.clone())
            .max_decoding_message_size(64 << 20)
            .max_encoding_message_size(64 << 20);
        let incoming = stream::iter([Ok::<_, std::io::Error>(server)]);
        let router = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(router.serve_with_incoming(incoming));
    }
}

/// A client over one end of a connection.
pub(crate) async fn over(near: DuplexStream) -> Client {
    let near = Arc::new(Mutex::new(Some(TokioIo::new(near))));
    let connector = tower::service_fn(move |_: Uri| {
        let near = near.lock().unwrap().take();
        async { near.ok_or_else(|| std::io::Error::other("ended")) }
    });
    let endpoint = crate::gateway::endpoint();
    Client::new(endpoint.connect_with_connector(connector).await.unwrap())
}

type Chunks<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Capability for Scripted {
    type StreamInvokeStream = Chunks<InvokeChunk>;
    type DownloadOutputArtifactStream = Chunks<ArtifactChunk>;

    async fn invoke(
        &self,
        request: Request<InvokeRequest>,
    ) -> Result<Response<InvokeResponse>, Status> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        (self.answer)(number, request.into_inner()).map(Response::new)
    }

    async fn stream_invoke(
        &self,
        _: Request<InvokeRequest>,
    ) -> Result<Response<Self::StreamInvokeStream>, Status> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let chunks: Vec<_> = self.chunks.clone().into_iter().map(Ok).collect();
        Ok(Response::new(Box::pin(stream::iter(chunks))))
    }

    async fn healthcheck(
        &self,
        _: Request<HealthRequest>,
    ) -> Result<Response<HealthResponse>, Status> {
        (self.health)().map(|ready| {
            Response::new(HealthResponse {
                ready,
                message: String::new(),
            })
        })
    }

    async fn upload_input_artifact(
        &self,
        request: Request<Streaming<UploadInputArtifactChunk>>,
    ) -> Result<Response<UploadInputArtifactResponse>, Status> {
        let mut chunks = request.into_inner();
        let mut name = String::new();
        let mut content = Vec::new();
        while let Some(chunk) = chunks.message().await? {
            name.push_str(&chunk.filename);
            content.extend_from_slice(&chunk.data);
        }
        let size_bytes = match name.as_str() {
            "lossy" => 1,
            _ => content.len() as u64,
        };
        *self.artifact.lock().unwrap() = content;
        Ok(Response::new(UploadInputArtifactResponse {
            capability_artifact_id: format!("id-of-{name}"),
            size_bytes,
            error: String::new(),
        }))
    }

    async fn download_output_artifact(
        &self,
        request: Request<DownloadOutputArtifactRequest>,
    ) -> Result<Response<Self::DownloadOutputArtifactStream>, Status> {
        let id = request.into_inner().capability_artifact_id;
        let piece = |data: &[u8], done| ArtifactChunk {
            data: data.to_vec(),
            filename: id.clone(),
            done,
            ..ArtifactChunk::default()
        };
        let content = self.artifact();
        let mut chunks: Vec<_> = content
            .chunks(1000)
            .map(|part| Ok(piece(part, false)))
            .collect();
        if id != "cut" {
            chunks.push(Ok(piece(b"", true)));
        }
        Ok(Response::new(Box::pin(stream::iter(chunks))))
    }
}

type OlderAnswer = dyn Fn(OlderInvokeRequest) -> OlderInvokeResponse + Send + Sync;

/// A capability in the older dialect (W4).
#[derive(Clone)]
pub(crate) struct Older(Arc<OlderAnswer>);

impl Older {
    /// Is healthy, and answers every call so.
    pub(crate) fn answering(
        answer: impl Fn(OlderInvokeRequest) -> OlderInvokeResponse + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(answer))
    }

    /// A client of it.
    pub(crate) async fn client(&self) -> Client {
        let (client, server) = tokio::io::duplex(64 * 1024);
        let incoming = stream::iter([Ok::<_, std::io::Error>(server)]);
        let service = CapabilityServiceServer::new(self.clone());
        let router = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(router.serve_with_incoming(incoming));
        over(client).await
    }
}

#[tonic::async_trait]
impl CapabilityService for Older {
    async fn invoke(
        &self,
        request: Request<OlderInvokeRequest>,
    ) -> Result<Response<OlderInvokeResponse>, Status> {
        Ok(Response::new((self.0)(request.into_inner())))
    }

    async fn health_check(
        &self,
        _: Request<OlderHealthRequest>,
    ) -> Result<Response<OlderHealthResponse>, Status> {
        Ok(Response::new(OlderHealthResponse { healthy: true }))
    }
}
