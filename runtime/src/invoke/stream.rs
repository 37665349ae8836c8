//! Results that come in pieces (StreamInvoke).

use super::{Call, CallError, Client, Dialect, fits, late, request, shorten, timed, within};

impl Client {
    /// Calls a tool once and hands each piece of its result to `piece`, in order. `piece` may refuse to go on with an
    /// error of its own.
    pub async fn call_stream(
        &self,
        call: &Call<'_>,
        mut piece: impl FnMut(&[u8]) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        within(call.deadline, async {
            if self.dialect().await? == Dialect::Older {
                return Err(CallError::NotInOlder {
                    what: "streamed results",
                });
            }
            let request = timed(call, fits(request(call))?);
            let answer = self.service.clone().stream_invoke(request).await;
            let mut chunks = self.heard(answer).map_err(|error| late(call, error))?;
            loop {
                let chunk = chunks.message().await;
                let chunk = chunk.map_err(|status| late(call, self.explain(&status)))?;
                let Some(chunk) = chunk else {
                    return Err(CallError::Broken {
                        reason: "the stream ended without its last piece".to_owned(),
                    });
                };
                if !chunk.error.is_empty() {
                    return Err(CallError::Tool {
                        message: shorten(&chunk.error),
                    });
                }
                piece(&chunk.data)?;
                if chunk.done {
                    return Ok(());
                }
            }
        })
        .await
    }
}
