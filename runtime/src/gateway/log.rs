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
    let pipe = engine.exec(gateway, PIPE_USER, &command(&role)).await?;
    Ok(EgressLog::new(gateway, pipe))
}

impl EgressLog {
    fn new(gateway: &str, pipe: Pipe) -> Self {
        let Pipe {
            output,
            input,
            ended,
        } = pipe;
        Self {
            gateway: gateway.to_owned(),
            output: BufReader::new(output),
            _input: input,
            ended: Some(ended),
        }
    }

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

#[cfg(test)]
mod tests {
    use std::future;
    use std::io::Cursor;

    use super::*;

    const HEAD: &str = "{\"head\":{\"form\":1,\"run\":7,\"now_ms\":9}}\n";
    const LINE: &str = "{\"line\":{\"run\":7,\"times\":1,\"event\":{\"time_ms\":8,\"instance\":\"a/b\",\"network\":\"n\",\"id\":0,\"via\":\"dns\",\"phase\":\"denied\",\"name\":\"x.example\",\"new\":1}}}\n";

    /// What the desk reads of a role that printed this and ended so.
    async fn read(printed: &str, code: i64, message: &str) -> (usize, Result<(), String>) {
        let ended = Ok((code, message.to_owned()));
        let mut log = EgressLog::new(
            "selu_demo_gateway",
            Pipe {
                output: Box::pin(Cursor::new(printed.to_owned())),
                input: Box::pin(tokio::io::sink()),
                ended: Box::pin(future::ready(ended)),
            },
        );
        let mut told = 0;
        loop {
            match log.next().await {
                Ok(Some(_)) => told += 1,
                Ok(None) => return (told, Ok(())),
                Err(error) => return (told, Err(error.to_string())),
            }
        }
    }

    #[tokio::test]
    async fn lines_are_read_to_the_end_and_fields_of_a_later_version_are_no_trouble() {
        let printed = format!("{HEAD}{LINE}{LINE}");
        assert_eq!(read(&printed, 0, "").await, (3, Ok(())));
        assert_eq!(read("", 0, "").await, (0, Ok(())));
    }

    #[tokio::test]
    async fn what_is_no_log_is_refused_with_the_reason() {
        let other = HEAD.replace("\"form\":1", "\"form\":2");
        let long = format!("{HEAD}{{{}", "x".repeat(100_000));
        for (printed, code, message, said) in [
            (other.as_str(), 0, "", "form 2"),
            ("{\"nonsense\":1}\n", 0, "", "makes no sense"),
            (&LINE[..40], 0, "", "not whole"),
            (long.as_str(), 0, "", "not whole"),
            ("", 1, "selu gateway: no permission", "no permission"),
            ("OCI runtime exec failed: gone\n", 126, "", "gone"),
        ] {
            let (_, ended) = read(printed, code, message).await;
            let refusal = ended.unwrap_err();
            assert!(refusal.contains(said), "{said}: {refusal}");
        }
    }
}
