//! The egress log, as the gateway's role `log` tells it.

use std::pin::Pin;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader};

use super::{GatewayError, answer, command, role_text};
use crate::egress::PIPE_USER;
use crate::egress::record::{Ask, FORM, Told};
use crate::engine::{Ended, Engine, Pipe};

/// Longest line that is read: whatever runs in the gateway must not fill this process's memory.
const LINE_MAX: u64 = 64 * 1024;

/// The log, line by line.
pub struct EgressLog {
    gateway: String,
    output: BufReader<Pin<Box<dyn AsyncRead + Send>>>,
    /// A role that follows ends with it.
    _input: Pin<Box<dyn AsyncWrite + Send>>,
    ended: Option<Ended>,
}

/// Asks the gateway for its log.
pub async fn egress_log(
    engine: &dyn Engine,
    gateway: &str,
    ask: &Ask,
) -> Result<EgressLog, GatewayError> {
    let args = ask.args();
    let role: Vec<&str> = std::iter::once("log")
        .chain(args.iter().map(String::as_str))
        .collect();
    let Pipe {
        output,
        input,
        ended,
    } = engine.exec(gateway, PIPE_USER, &command(&role)).await?;
    Ok(EgressLog {
        gateway: gateway.to_owned(),
        output: BufReader::new(output),
        _input: input,
        ended: Some(ended),
    })
}

impl EgressLog {
    /// The next line; `None` at the end. It may be dropped only together with the log.
    pub async fn next(&mut self) -> Result<Option<Told>, GatewayError> {
        let mut line = Vec::new();
        let broken = |source| GatewayError::Streams {
            gateway: self.gateway.clone(),
            role: role_text(&["log"]),
            source,
        };
        (&mut self.output)
            .take(LINE_MAX)
            .read_until(b'\n', &mut line)
            .await
            .map_err(broken)?;
        if line.is_empty() {
            return self.end(&line).await;
        }
        match serde_json::from_slice(&line) {
            Ok(Told::Head(head)) if head.form != FORM => Err(self.nonsense(format!(
                "its log has form {}, this selu reads {FORM}; `selu apply` makes a gateway of this version",
                head.form
            ))),
            Ok(told) => Ok(Some(told)),
            Err(error) if line.ends_with(b"\n") && line.first() == Some(&b'{') => {
                Err(self.nonsense(error))
            }
            // Why a role could not even be started the engine says where the role would have spoken.
            Err(_) => self.end(&line).await,
        }
    }

    /// How the role has ended.
    async fn end(&mut self, last: &[u8]) -> Result<Option<Told>, GatewayError> {
        let Some(ended) = self.ended.take() else {
            return Ok(None);
        };
        let (code, message) = ended.await?;
        if code == 0 {
            return match last {
                [] => Ok(None),
                _ => Err(self.nonsense("its last line is not whole")),
            };
        }
        let message = match message.trim() {
            "" => String::from_utf8_lossy(last).trim().to_owned(),
            words => words.to_owned(),
        };
        Err(GatewayError::Role {
            gateway: self.gateway.clone(),
            role: role_text(&["log"]),
            code,
            message,
        })
    }

    fn nonsense(&self, message: impl ToString) -> GatewayError {
        answer(&self.gateway, &["log"], message)
    }
}
