//! The older dialect (W4): the same tools behind `CapabilityService`.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use selu_proto::v1::capability_service_server::{CapabilityService, CapabilityServiceServer};
use selu_proto::v1::{
    OlderHealthRequest, OlderHealthResponse, OlderInvokeRequest, OlderInvokeResponse,
};
use tonic::{Request, Response, Status};

use crate::tools;

/// Serves until it is ended.
pub(crate) fn serve() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return ExitCode::FAILURE;
    };
    let served = runtime.block_on(
        tonic::transport::Server::builder()
            .add_service(CapabilityServiceServer::new(Older))
            .serve((Ipv4Addr::UNSPECIFIED, selu_proto::PORT).into()),
    );
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

struct Older;

#[tonic::async_trait]
impl CapabilityService for Older {
    async fn invoke(
        &self,
        request: Request<OlderInvokeRequest>,
    ) -> Result<Response<OlderInvokeResponse>, Status> {
        let request = request.into_inner();
        let arguments = serde_json::from_str(&request.parameters).unwrap_or_default();
        let context = request
            .context
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect();
        let outcome = match request.tool_name.as_str() {
            "context" => Ok(serde_json::Value::Object(context)),
            tool => tools::call(tool, &arguments, &context.into()),
        };
        Ok(Response::new(match outcome {
            Ok(result) => OlderInvokeResponse {
                result: result.to_string(),
                success: true,
                error: String::new(),
            },
            Err(error) => OlderInvokeResponse {
                result: String::new(),
                success: false,
                error,
            },
        }))
    }

    async fn health_check(
        &self,
        _: Request<OlderHealthRequest>,
    ) -> Result<Response<OlderHealthResponse>, Status> {
        Ok(Response::new(OlderHealthResponse { healthy: true }))
    }
}
