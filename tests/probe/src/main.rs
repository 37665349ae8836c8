//! A capability for tests. As `probe serve` it is a well-behaved server whose tools say what the container can reach,
//! read and write; the other roles fail in one chosen way each, or listen where a probe should arrive.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is its purpose"
)]

mod artifacts;
mod dns;
mod hello;
mod limits;
mod listen;
mod older;
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

const ROLES: &str = "roles: serve | serve-older | serve-loopback | serve-after SECONDS | lists KIND | lists-of HOST | never-ready | silent | \
                     exit CODE LINE | flood BYTES | banner TEXT | \
                     listen-tcp ADDRESS… | listen-udp ADDRESS… | call TOOL ARGUMENTS";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve"] => serve(Ipv4Addr::UNSPECIFIED, Probe::new(true)),
        ["serve-older"] => older::serve(),
        ["serve-loopback"] => serve(Ipv4Addr::LOCALHOST, Probe::new(true)),
        ["serve-after", seconds] => {
            std::thread::sleep(Duration::from_secs(seconds.parse().unwrap_or(5)));
            serve(Ipv4Addr::UNSPECIFIED, Probe::new(true))
        }
        ["lists", kind] => {
            let list = Some((*kind).to_owned());
            let probe = Probe {
                list,
                ..Probe::new(true)
            };
            serve(Ipv4Addr::UNSPECIFIED, probe)
        }
        ["lists-of", host] => {
            let list = Some(format!("of {host}"));
            let probe = Probe {
                list,
                ..Probe::new(true)
            };
            serve(Ipv4Addr::UNSPECIFIED, probe)
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
    /// What was handed over, by id.
    artifacts: artifacts::Artifacts,
}

impl Probe {
    fn new(ready: bool) -> Self {
        Self {
            ready,
            list: None,
            artifacts: artifacts::Artifacts::default(),
        }
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
        let artifacts = self.artifacts.clone();
        let outcome = tokio::task::spawn_blocking(move || match request.tool_name.as_str() {
            "shout" => artifacts.shout(&arguments),
            "context" => Ok(serde_json::json!({
                "session": request.session_id,
                "thread": request.thread_id,
                "capability": request.capability_id,
            })),
            tool => tools::call(tool, &arguments, &config),
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

    /// `count` gives a line for each number, `fail` breaks off after the first.
    async fn stream_invoke(
        &self,
        request: Request<InvokeRequest>,
    ) -> Answer<Self::StreamInvokeStream> {
        let request = request.into_inner();
        let arguments: serde_json::Value =
            serde_json::from_slice(&request.args_json).unwrap_or_default();
        let config: serde_json::Value =
            serde_json::from_slice(&request.config_json).unwrap_or_default();
        let piece = |text: String, done, error: &str| {
            Ok(InvokeChunk {
                data: text.into_bytes(),
                done,
                error: error.to_owned(),
            })
        };
        let pieces = match request.tool_name.as_str() {
            // Torn in the middle of what must not be shown.
            "count" => {
                let line = format!("1 {config}\n2\n");
                let middle = line.len() / 2;
                let (first, second) = line.split_at(middle);
                let last = format!("{}\n", arguments["to"]);
                vec![
                    piece(first.to_owned(), false, ""),
                    piece(second.to_owned(), false, ""),
                    piece(last, true, ""),
                ]
            }
            "fail" => vec![
                piece("1\n".to_owned(), false, ""),
                piece(String::new(), true, "out of ink"),
            ],
            other => return Err(Status::unimplemented(format!("no stream of {other}"))),
        };
        Ok(Response::new(Box::pin(artifacts::stream(pieces))))
    }

    async fn upload_input_artifact(
        &self,
        request: Request<Streaming<UploadInputArtifactChunk>>,
    ) -> Answer<UploadInputArtifactResponse> {
        self.artifacts.take(request.into_inner()).await
    }

    async fn download_output_artifact(
        &self,
        request: Request<DownloadOutputArtifactRequest>,
    ) -> Answer<Self::DownloadOutputArtifactStream> {
        let pieces = self.artifacts.give(&request.into_inner())?;
        Ok(Response::new(Box::pin(artifacts::stream(pieces))))
    }
}
