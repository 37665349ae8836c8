//! A capability for the tests: this very test binary, in an image, told to serve.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use selu_proto::PORT;
use selu_proto::v1::capability_server::{Capability, CapabilityServer};
use selu_proto::v1::{
    ArtifactChunk, DownloadOutputArtifactRequest, HealthRequest, HealthResponse, InvokeChunk,
    InvokeRequest, InvokeResponse, UploadInputArtifactChunk, UploadInputArtifactResponse,
};
use tonic::codegen::tokio_stream::Empty;
use tonic::{Request, Response, Status, Streaming};

/// What the container runs.
pub(crate) fn command() -> Vec<String> {
    ["--ignored", "--exact", "capability::serve", "--nocapture"]
        .map(str::to_owned)
        .to_vec()
}

/// Asks this test binary to serve; without it the server below is an empty test.
pub(crate) const SERVE: &str = "TEST_CAPABILITY_MESSAGE";

#[test]
#[ignore = "runs inside the tests' containers"]
fn serve() {
    let Ok(message) = std::env::var(SERVE) else {
        return;
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(
            tonic::transport::Server::builder()
                .add_service(
                    CapabilityServer::new(Server { message })
                        .max_decoding_message_size(selu_proto::MAX_MESSAGE_BYTES)
                        .max_encoding_message_size(selu_proto::MAX_MESSAGE_BYTES),
                )
                .serve(([0, 0, 0, 0], PORT).into()),
        )
        .unwrap();
}

/// Asks this test binary to try these addresses, separated by spaces.
pub(crate) const PROBE: &str = "TEST_PROBE_ADDRESSES";

/// What a probing container runs.
pub(crate) fn probe_command() -> Vec<String> {
    ["--ignored", "--exact", "capability::probe", "--nocapture"]
        .map(str::to_owned)
        .to_vec()
}

/// Prints what each address answers: `open`, or the error. Names are looked up first.
#[test]
#[ignore = "runs inside the tests' containers"]
#[allow(
    clippy::print_stdout,
    reason = "its output is read from the container's log"
)]
fn probe() {
    let Ok(addresses) = std::env::var(PROBE) else {
        return;
    };
    for address in addresses.split(' ') {
        let answer = address.to_socket_addrs().and_then(|mut found| {
            let found = found.next().ok_or(std::io::ErrorKind::NotFound)?;
            TcpStream::connect_timeout(&found, Duration::from_secs(2)).map(|_| ())
        });
        match answer {
            Ok(()) => println!("probe {address} open"),
            Err(error) => println!("probe {address} {:?}", error.kind()),
        }
    }
    // An image's VOLUME must not be a place to write to (F5).
    let written = std::fs::write("/data/file", "x");
    println!("probe write {:?}", written.map_err(|error| error.kind()));
}

struct Server {
    message: String,
}

#[tonic::async_trait]
impl Capability for Server {
    type StreamInvokeStream = Empty<Result<InvokeChunk, Status>>;
    type DownloadOutputArtifactStream = Empty<Result<ArtifactChunk, Status>>;

    async fn healthcheck(
        &self,
        _: Request<HealthRequest>,
    ) -> Result<Response<HealthResponse>, Status> {
        Ok(Response::new(HealthResponse {
            ready: true,
            message: self.message.clone(),
        }))
    }

    /// `echo` gives its arguments back, `sleep` never answers, anything else is unknown.
    async fn invoke(
        &self,
        request: Request<InvokeRequest>,
    ) -> Result<Response<InvokeResponse>, Status> {
        let InvokeRequest {
            tool_name,
            args_json,
            ..
        } = request.into_inner();
        match tool_name.as_str() {
            "echo" => Ok(Response::new(InvokeResponse {
                result_json: args_json,
                error: String::new(),
            })),
            "sleep" => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Err(Status::deadline_exceeded("slept"))
            }
            _ => Err(Status::not_found("unknown tool")),
        }
    }

    async fn stream_invoke(
        &self,
        _: Request<InvokeRequest>,
    ) -> Result<Response<Self::StreamInvokeStream>, Status> {
        Err(Status::unimplemented("not offered"))
    }

    async fn upload_input_artifact(
        &self,
        _: Request<Streaming<UploadInputArtifactChunk>>,
    ) -> Result<Response<UploadInputArtifactResponse>, Status> {
        Err(Status::unimplemented("not offered"))
    }

    async fn download_output_artifact(
        &self,
        _: Request<DownloadOutputArtifactRequest>,
    ) -> Result<Response<Self::DownloadOutputArtifactStream>, Status> {
        Err(Status::unimplemented("not offered"))
    }
}
