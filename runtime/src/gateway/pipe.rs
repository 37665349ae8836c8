//! A pipe to one container: gRPC over the streams of one exec in the gateway (S1).

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, join};
use tokio::sync::watch;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::{GatewayError, answer, command, role_text, silent};
use crate::egress::{OPENED, PIPE_USER};
use crate::engine::{Engine, EngineResult};

/// How long a pipe may take to open: longer than the gateway itself waits for the container.
const OPEN_LIMIT: Duration = Duration::from_secs(20);

/// How long a broken pipe's end may take to become known.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Opens a channel to the container in `network`, through the gateway. One exec serves all its calls, multiplexed. A
/// pipe that breaks stays broken: calls fail with the reason, and nothing reconnects behind the caller's back (W3).
///
/// Message limits are the client's matter.
pub async fn pipe(
    engine: &dyn Engine,
    gateway: &str,
    network: &str,
) -> Result<Channel, GatewayError> {
    let role = ["pipe", network];
    let mut streams = engine.exec(gateway, PIPE_USER, &command(&role)).await?;

    let mut opened = vec![0; OPENED.len()];
    let first = streams.output.read_exact(&mut opened);
    let first = tokio::time::timeout(OPEN_LIMIT, first)
        .await
        .map_err(|_| silent(gateway, &role, OPEN_LIMIT))?;
    if let Err(source) = first {
        drop(streams.input);
        let (code, message) = streams.ended.await?;
        return Err(if code == 0 {
            GatewayError::Streams {
                gateway: gateway.to_owned(),
                role: role_text(&role),
                source,
            }
        } else {
            GatewayError::Role {
                gateway: gateway.to_owned(),
                role: role_text(&role),
                code,
                message: message.trim().to_owned(),
            }
        });
    }
    if opened != OPENED {
        return Err(answer(
            gateway,
            &role,
            "it does not begin with the line that an open pipe begins with; was the gateway's image made by another \
             version?",
        ));
    }

    let (end, ended) = watch::channel(None);
    let how = streams.ended;
    tokio::spawn(async move {
        let text = end_text(how.await);
        end.send_replace(Some(text));
    });
    let once = Arc::new(Mutex::new(Some(TokioIo::new(join(
        streams.output,
        streams.input,
    )))));
    let name = network.to_owned();
    let connector = service_fn(move |_: Uri| {
        let once = Arc::clone(&once);
        let mut ended = ended.clone();
        let name = name.clone();
        async move {
            let first = once.lock().ok().and_then(|mut streams| streams.take());
            match first {
                Some(streams) => Ok(streams),
                None => Err(io::Error::new(
                    io::ErrorKind::BrokenPipe,
                    format!("the pipe to {name} has ended{}", why(&mut ended).await),
                )),
            }
        }
    });
    endpoint()
        .connect_with_connector(connector)
        .await
        .map_err(|source| GatewayError::Transport {
            network: network.to_owned(),
            source,
        })
}

/// How a container is spoken to. An error's text travels in a header, percent-encoded: the library's 16 KiB would turn a
/// long one into a broken stream (J02).
pub(crate) fn endpoint() -> Endpoint {
    Endpoint::from_static("http://capability").http2_max_header_list_size(1 << 20)
}

fn end_text(ended: EngineResult<(i64, String)>) -> String {
    match ended {
        Ok((0, _)) => ": the container closed it".to_owned(),
        Ok((code, message)) => format!(" with exit code {code}: {}", message.trim()),
        Err(error) => format!(": {error}"),
    }
}

async fn why(ended: &mut watch::Receiver<Option<String>>) -> String {
    match tokio::time::timeout(END_LIMIT, ended.wait_for(Option::is_some)).await {
        Ok(Ok(text)) => text.clone().unwrap_or_default(),
        _ => String::new(),
    }
}
