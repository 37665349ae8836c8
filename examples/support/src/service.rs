//! The gRPC side: health, both forms of a call, and an end on SIGTERM.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use futures_util::{Stream, stream};
use selu_proto::v1::capability_server::{Capability, CapabilityServer};
use selu_proto::v1::{
    ArtifactChunk, DownloadOutputArtifactRequest, HealthRequest, HealthResponse, InvokeChunk,
    InvokeRequest, InvokeResponse, UploadInputArtifactChunk, UploadInputArtifactResponse,
};
use selu_proto::{MAX_MESSAGE_BYTES, PORT};
use tokio::signal::unix::{SignalKind, signal};
use tonic::{Request, Response, Status, Streaming};

use crate::{Call, ToolError, Tools};

/// Threads that run calls at once. Threads count as processes against the manifest's `pids_limit`.
const WORKERS: usize = 8;

/// Serves until SIGTERM or SIGINT. For `main`: the exit code says whether it ended as asked.
pub fn serve(tools: impl Tools) -> ExitCode {
    match run(tools) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("cannot serve: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(tools: impl Tools) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(WORKERS)
        .build()?;
    runtime.block_on(async {
        // Process 1 of a container gets no default action for a signal: without a handler SIGTERM would do nothing.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let service = CapabilityServer::new(Service {
            tools: Arc::new(tools),
        })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
        say(&format!("serving on {address}"));
        tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_shutdown(address, async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            })
            .await?;
        Ok(())
    })
}

/// A line in the container's log. A log that nobody takes is no reason to stop serving.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

struct Service<T> {
    tools: Arc<T>,
}

impl<T: Tools> Service<T> {
    async fn answer(&self, request: InvokeRequest) -> Result<Vec<u8>, ToolError> {
        let call = Call::read(request)?;
        let tools = Arc::clone(&self.tools);
        let result = tokio::task::spawn_blocking(move || tools.call(&call))
            .await
            .map_err(|_| ToolError::failed("the tool crashed; the server still runs"))??;
        Ok(result.to_string().into_bytes())
    }
}

type Chunks<C> = Pin<Box<dyn Stream<Item = Result<C, Status>> + Send>>;

#[tonic::async_trait]
impl<T: Tools> Capability for Service<T> {
    async fn invoke(
        &self,
        request: Request<InvokeRequest>,
    ) -> Result<Response<InvokeResponse>, Status> {
        let (result_json, error) = split(self.answer(request.into_inner()).await);
        Ok(Response::new(InvokeResponse { result_json, error }))
    }

    type StreamInvokeStream = Chunks<InvokeChunk>;

    /// The tools here answer at once, so the stream is one piece.
    async fn stream_invoke(
        &self,
        request: Request<InvokeRequest>,
    ) -> Result<Response<Self::StreamInvokeStream>, Status> {
        let (data, error) = split(self.answer(request.into_inner()).await);
        let chunk = InvokeChunk {
            data,
            done: true,
            error,
        };
        Ok(Response::new(Box::pin(stream::iter([Ok(chunk)]))))
    }

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
        Err(Status::unimplemented("this capability takes no files"))
    }

    type DownloadOutputArtifactStream = Chunks<ArtifactChunk>;

    async fn download_output_artifact(
        &self,
        _: Request<DownloadOutputArtifactRequest>,
    ) -> Result<Response<Self::DownloadOutputArtifactStream>, Status> {
        Err(Status::unimplemented("this capability makes no files"))
    }
}

/// A result as the two fields of the wire: exactly one of them is filled.
fn split(answer: Result<Vec<u8>, ToolError>) -> (Vec<u8>, String) {
    match answer {
        Ok(json) => (json, String::new()),
        Err(error) => (Vec::new(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    struct Sample;

    impl Tools for Sample {
        fn call(&self, call: &Call) -> Result<Value, ToolError> {
            match call.tool() {
                "echo" => call.arguments(),
                "crash" => panic!("as asked"),
                _ => Err(ToolError::unknown(call)),
            }
        }
    }

    fn invoke(service: &Service<Sample>, tool: &str, arguments: &Value) -> InvokeResponse {
        let request = InvokeRequest {
            tool_name: tool.to_owned(),
            args_json: arguments.to_string().into_bytes(),
            config_json: b"{}".to_vec(),
            ..InvokeRequest::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(service.invoke(Request::new(request)))
            .unwrap()
            .into_inner()
    }

    fn sample() -> Service<Sample> {
        Service {
            tools: Arc::new(Sample),
        }
    }

    #[test]
    fn a_result_comes_back_as_json_without_an_error() {
        let answer = invoke(&sample(), "echo", &json!({"a": [1, "zwei"]}));
        assert_eq!(answer.error, "");
        assert_eq!(answer.result_json, br#"{"a":[1,"zwei"]}"#);
    }

    #[test]
    fn an_unknown_tool_is_an_error_in_the_words_that_callers_look_for() {
        let answer = invoke(&sample(), "list_tools", &json!({}));
        assert_eq!(answer.error, "unknown tool `list_tools`");
        assert!(answer.result_json.is_empty());
    }

    #[test]
    fn a_crash_fails_its_own_call_and_the_next_one_works() {
        let service = sample();
        assert!(
            invoke(&service, "crash", &json!({}))
                .error
                .contains("crashed")
        );
        assert_eq!(invoke(&service, "echo", &json!({})).error, "");
    }
}
