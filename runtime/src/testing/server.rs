//! A capability in this very process, behind a pipe.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::{Stream, stream};
use hyper_util::rt::TokioIo;
use selu_proto::v1::capability_server::{Capability, CapabilityServer};
use selu_proto::v1::{
    ArtifactChunk, DownloadOutputArtifactRequest, HealthRequest, HealthResponse, InvokeChunk,
    InvokeRequest, InvokeResponse, UploadInputArtifactChunk, UploadInputArtifactResponse,
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
        }
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
        Err(Status::unimplemented("StreamInvoke"))
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
        _: Request<Streaming<UploadInputArtifactChunk>>,
    ) -> Result<Response<UploadInputArtifactResponse>, Status> {
        Err(Status::unimplemented("UploadInputArtifact"))
    }

    async fn download_output_artifact(
        &self,
        _: Request<DownloadOutputArtifactRequest>,
    ) -> Result<Response<Self::DownloadOutputArtifactStream>, Status> {
        Err(Status::unimplemented("DownloadOutputArtifact"))
    }
}
