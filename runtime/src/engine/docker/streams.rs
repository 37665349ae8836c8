//! The streams of an exec or an attached container as a [`Pipe`].

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::io::StreamReader;

use super::Docker;
use crate::engine::{EngineError, EngineResult, Pipe};

/// How much of standard error is kept.
const KEPT: usize = 4096;

/// Pieces of standard output that may wait for the reader before the engine is made to wait.
const WAITING: usize = 16;

/// How long a process may still count as running after its streams have ended.
const SETTLE: Duration = Duration::from_secs(10);

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;
type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// Whose streams they are, to ask for the exit code.
pub(super) enum Process {
    /// An exec's id.
    Exec(String),
    /// A container's name or id.
    Container(String),
}

impl Docker {
    /// Splits standard output from standard error, and asks for the exit code once both have ended.
    pub(super) fn pipe(
        &self,
        call: String,
        process: Process,
        output: Output,
        input: Input,
    ) -> Pipe {
        let (pieces, mut received) = mpsc::channel(WAITING);
        let (done, ended) = oneshot::channel();
        tokio::spawn(pump(output, pieces, done));

        let docker = self.clone();
        let bytes = stream::poll_fn(move |context| received.poll_recv(context));
        Pipe {
            output: Box::pin(StreamReader::new(bytes)),
            input: Box::pin(Ending(Some(input))),
            ended: Box::pin(async move {
                let end = ended.await.map_err(|_| EngineError::Protocol {
                    call: call.clone(),
                    message: "its streams were given up".to_owned(),
                })?;
                let message =
                    end.map_err(|error| docker.failure(&call, docker.limits.look, error))?;
                let code = docker.exit_code(&call, &process).await?;
                Ok((code, message))
            }),
        }
    }

    async fn exit_code(&self, call: &str, process: &Process) -> EngineResult<i64> {
        let give_up = tokio::time::Instant::now() + SETTLE;
        loop {
            let (running, code) = match process {
                Process::Exec(id) => {
                    let found = self
                        .call(call, self.limits.look, self.api.inspect_exec(id))
                        .await?;
                    (found.running, found.exit_code)
                }
                Process::Container(name) => {
                    let found = self
                        .call(
                            call,
                            self.limits.look,
                            self.api.inspect_container(name, None),
                        )
                        .await?;
                    let state = found.state.unwrap_or_default();
                    (state.running, state.exit_code)
                }
            };
            if let (Some(false), Some(code)) = (running, code) {
                return Ok(code);
            }
            if tokio::time::Instant::now() >= give_up {
                return Err(EngineError::Protocol {
                    call: call.to_owned(),
                    message: "its streams ended, and it still runs".to_owned(),
                });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Carries standard output to the reader, and keeps the end of standard error. A reader that has gone does not stop
/// it: the end is still to be told.
async fn pump(
    mut output: Output,
    pieces: mpsc::Sender<io::Result<Bytes>>,
    done: oneshot::Sender<Result<String, Error>>,
) {
    let mut kept = VecDeque::with_capacity(KEPT);
    let mut end = Ok(());
    while let Some(piece) = output.next().await {
        match piece {
            Ok(LogOutput::StdOut { message }) => {
                // An error here says that the reader has gone.
                let _ = pieces.send(Ok(message)).await;
            }
            Ok(LogOutput::StdErr { message }) => {
                kept.extend(message);
                let surplus = kept.len().saturating_sub(KEPT);
                kept.drain(..surplus);
            }
            Ok(LogOutput::StdIn { .. }) => {}
            // Without a terminal every piece is framed: this is what was left of a torn one.
            Ok(LogOutput::Console { .. }) => {
                end = Err(Error::from(io::Error::from(io::ErrorKind::UnexpectedEof)));
                break;
            }
            Err(error) => {
                end = Err(error);
                break;
            }
        }
    }
    if let Err(error) = &end {
        let _ = pieces.send(Err(io::Error::other(error.to_string()))).await;
    }
    drop(pieces);
    let text = String::from_utf8_lossy(kept.make_contiguous()).into_owned();
    let _ = done.send(end.map(|()| text));
}

/// An input that ends when it is dropped: the connection's other half lives on in [`pump`].
struct Ending(Option<Input>);

impl Ending {
    fn poll(
        &mut self,
        act: impl FnOnce(Pin<&mut (dyn AsyncWrite + Send)>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Some(input) => act(input.as_mut()),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl AsyncWrite for Ending {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(|input| input.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|input| input.poll_flush(context).map_ok(|()| 0))
            .map_ok(|_| ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|input| input.poll_shutdown(context).map_ok(|()| 0))
            .map_ok(|_| ())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(mut input) = self.0.take() else {
            return;
        };
        // Outside a runtime the whole connection ends anyway.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = input.shutdown().await;
            });
        }
    }
}
