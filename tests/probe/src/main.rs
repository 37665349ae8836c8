//! A capability for tests. As `probe serve` it is a well-behaved server whose tools say what the container can reach,
//! read and write; the other roles fail in one chosen way each, or listen where a probe should arrive.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is its purpose"
)]

mod dns;
mod hello;
mod listen;
mod packet;
mod talk;
mod tools;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use selu_proto::v1::capability_server::{Capability, CapabilityServer};
use selu_proto::v1::{
    ArtifactChunk, DownloadOutputArtifactRequest, HealthRequest, HealthResponse, InvokeChunk,
    InvokeRequest, InvokeResponse, UploadInputArtifactChunk, UploadInputArtifactResponse,
};
use tonic::{Request, Response, Status, Streaming};

const ROLES: &str = "roles: serve | serve-loopback | serve-after SECONDS | lists KIND | never-ready | silent | \
                     exit CODE LINE | flood BYTES | banner TEXT | \
                     listen-tcp ADDRESS… | listen-udp ADDRESS… | call TOOL ARGUMENTS";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve"] => serve(Ipv4Addr::UNSPECIFIED, Probe::new(true)),
        ["serve-loopback"] => serve(Ipv4Addr::LOCALHOST, Probe::new(true)),
        ["serve-after", seconds] => {
            std::thread::sleep(Duration::from_secs(seconds.parse().unwrap_or(5)));
            serve(Ipv4Addr::UNSPECIFIED, Probe::new(true))
        }
        ["lists", kind] => {
            let list = Some((*kind).to_owned());
            serve(Ipv4Addr::UNSPECIFIED, Probe { ready: true, list })
        }
        ["never-ready"] => serve(Ipv4Addr::UNSPECIFIED, Probe::new(false)),
        ["flood", bytes] => {
            let line = "x".repeat(bytes.parse().unwrap_or(1));
            loop {
                println!("{line}");
            }
        }
        ["silent"] => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        ["exit", code, line] => {
            println!("{line}");
            ExitCode::from(code.parse::<u8>().unwrap_or(1))
        }
        ["banner", text] => listen::banner(text),
        ["listen-tcp", addresses @ ..] => listen::tcp(addresses),
        ["listen-udp", addresses @ ..] => listen::udp(addresses),
        ["call", tool, arguments] => {
            let arguments = serde_json::from_str(arguments).unwrap_or_default();
            match tools::call(tool, &arguments, &serde_json::json!({})) {
                Ok(result) => {
                    println!("{result}");
                    ExitCode::SUCCESS
                }
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::FAILURE
                }
            }
        }
        _ => {
            eprintln!("{ROLES}");
            ExitCode::from(64)
        }
    }
}

fn serve(address: Ipv4Addr, probe: Probe) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("probe: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("probe: serving on {address}:{}", selu_proto::PORT);
    let service = CapabilityServer::new(probe)
        .max_decoding_message_size(selu_proto::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(2 * selu_proto::MAX_MESSAGE_BYTES);
    let served = runtime.block_on(
        tonic::transport::Server::builder()
            .add_service(service)
            .serve(SocketAddr::from((address, selu_proto::PORT))),
    );
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("probe: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Probe {
    ready: bool,
    /// What is wrong with its list of tools, if anything.
    list: Option<String>,
}

impl Probe {
    fn new(ready: bool) -> Self {
        Self { ready, list: None }
    }
}

type Answer<T> = Result<Response<T>, Status>;
type Stream<T> =
    std::pin::Pin<Box<dyn tonic::codegen::tokio_stream::Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Capability for Probe {
    type StreamInvokeStream = Stream<InvokeChunk>;
    type DownloadOutputArtifactStream = Stream<ArtifactChunk>;

    async fn invoke(&self, request: Request<InvokeRequest>) -> Answer<InvokeResponse> {
        let request = request.into_inner();
        let object = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes);
        let (Ok(arguments), Ok(config)) =
            (object(&request.args_json), object(&request.config_json))
        else {
            return Err(Status::invalid_argument(
                "args_json and config_json must be JSON",
            ));
        };
        if let Some(kind) = self
            .list
            .clone()
            .filter(|_| request.tool_name == "list_tools")
        {
            let result_json = tokio::task::spawn_blocking(move || tools::wrong_list(&kind)).await;
            return result_json
                .map(|result_json| {
                    Response::new(InvokeResponse {
                        result_json,
                        error: String::new(),
                    })
                })
                .map_err(|error| Status::internal(error.to_string()));
        }
        let outcome = tokio::task::spawn_blocking(move || {
            tools::call(&request.tool_name, &arguments, &config)
        })
        .await;
        let response = match outcome {
            Ok(Ok(result)) => InvokeResponse {
                result_json: result.to_string().into_bytes(),
                error: String::new(),
            },
            Ok(Err(error)) => InvokeResponse {
                result_json: Vec::new(),
                error,
            },
            Err(error) => return Err(Status::internal(error.to_string())),
        };
        Ok(Response::new(response))
    }

    async fn healthcheck(&self, _: Request<HealthRequest>) -> Answer<HealthResponse> {
        let message = if self.ready {
            ""
        } else {
            "the probe is never ready"
        };
        Ok(Response::new(HealthResponse {
            ready: self.ready,
            message: message.to_owned(),
        }))
    }

    async fn stream_invoke(&self, _: Request<InvokeRequest>) -> Answer<Self::StreamInvokeStream> {
        Err(Status::unimplemented("the probe has no streaming tools"))
    }

    async fn upload_input_artifact(
        &self,
        _: Request<Streaming<UploadInputArtifactChunk>>,
    ) -> Answer<UploadInputArtifactResponse> {
        Err(Status::unimplemented("the probe takes no artifacts"))
    }

    async fn download_output_artifact(
        &self,
        _: Request<DownloadOutputArtifactRequest>,
    ) -> Answer<Self::DownloadOutputArtifactStream> {
        Err(Status::unimplemented("the probe makes no artifacts"))
    }
}
