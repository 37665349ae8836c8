//! Files that go to a capability before a call, and come from it after one.

use std::path::Path;
use std::time::Duration;

use futures_util::stream;
use selu_proto::v1::{
    DownloadOutputArtifactRequest, UploadInputArtifactChunk, UploadInputArtifactResponse,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::oneshot;

use super::{CallError, Client, Dialect, shorten, within};

/// Largest file either way, in bytes: what listens on the other side is not trusted with this machine's disk.
pub const MAX_ARTIFACT_BYTES: u64 = 1 << 30;

/// Bytes in one piece.
const PIECE: usize = 256 * 1024;

/// What the older dialect lacks.
const ARTIFACTS: CallError = CallError::NotInOlder { what: "artifacts" };

/// What a download was; the names are the capability's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Bytes that were written.
    pub bytes: u64,
    /// What the capability calls it.
    pub filename: String,
    /// What the capability says it is.
    pub mime_type: String,
}

impl Client {
    /// Hands a file over, once, and gives the capability's id for it.
    pub async fn upload(
        &self,
        filename: &str,
        mime_type: &str,
        content: impl AsyncRead + Send + Unpin + 'static,
        deadline: Duration,
    ) -> Result<String, CallError> {
        within(deadline, async {
            if self.dialect().await? == Dialect::Older {
                return Err(ARTIFACTS);
            }
            let (told, mut sent) = oneshot::channel();
            let reading = Reading {
                first: Some((filename.to_owned(), mime_type.to_owned())),
                content,
                bytes: 0,
                told: Some(told),
            };
            let pieces = stream::unfold(reading, Reading::next);
            let mut service = self.service.clone();
            let request = service.upload_input_artifact(pieces);
            tokio::pin!(request);
            // A reading that failed gives the request up: the capability must not take a part for the whole.
            let (answer, sent) = tokio::select! {
                answer = &mut request => (answer, sent.try_recv().ok()),
                told = &mut sent => match told {
                    Ok(Err(reason)) => return Err(CallError::Artifact { reason }),
                    told => (request.await, told.ok()),
                },
            };
            let sent = match sent {
                Some(Ok(bytes)) => Some(bytes),
                Some(Err(reason)) => return Err(CallError::Artifact { reason }),
                None => None,
            };
            let UploadInputArtifactResponse {
                capability_artifact_id,
                size_bytes,
                error,
            } = self.heard(answer)?;
            if !error.is_empty() {
                return Err(CallError::Tool {
                    message: shorten(&error),
                });
            }
            if sent != Some(size_bytes) {
                let sent = sent.map_or("a part".to_owned(), |bytes| format!("{bytes} bytes"));
                return Err(CallError::Artifact {
                    reason: format!("{sent} were sent, the capability took {size_bytes}"),
                });
            }
            if capability_artifact_id.is_empty() {
                return Err(CallError::Artifact {
                    reason: "the capability gave no id for it".to_owned(),
                });
            }
            Ok(capability_artifact_id)
        })
        .await
    }

    /// Fetches a file, once, into `to`.
    pub async fn download(
        &self,
        id: &str,
        mut to: impl AsyncWrite + Send + Unpin,
        deadline: Duration,
    ) -> Result<Received, CallError> {
        within(deadline, async {
            if self.dialect().await? == Dialect::Older {
                return Err(ARTIFACTS);
            }
            let request = DownloadOutputArtifactRequest {
                capability_artifact_id: id.to_owned(),
            };
            let answer = self.service.clone().download_output_artifact(request).await;
            let mut chunks = self.heard(answer)?;
            let mut received = Received {
                bytes: 0,
                filename: String::new(),
                mime_type: String::new(),
            };
            loop {
                let chunk = chunks.message().await;
                let Some(chunk) = chunk.map_err(|status| self.explain(&status))? else {
                    return Err(CallError::Broken {
                        reason: "the artifact ended without its last piece".to_owned(),
                    });
                };
                if !chunk.error.is_empty() {
                    return Err(CallError::Tool {
                        message: shorten(&chunk.error),
                    });
                }
                received.bytes += chunk.data.len() as u64;
                if received.bytes > MAX_ARTIFACT_BYTES {
                    return Err(too_large());
                }
                let written = to.write_all(&chunk.data).await;
                written.map_err(|error| CallError::Artifact {
                    reason: format!("it cannot be written: {error}"),
                })?;
                for (known, told) in [
                    (&mut received.filename, chunk.filename),
                    (&mut received.mime_type, chunk.mime_type),
                ] {
                    if !told.is_empty() {
                        *known = shorten(&told);
                    }
                }
                if chunk.done {
                    let flushed = to.flush().await;
                    flushed.map_err(|error| CallError::Artifact {
                        reason: format!("it cannot be written: {error}"),
                    })?;
                    return Ok(received);
                }
            }
        })
        .await
    }
}

fn too_large() -> CallError {
    CallError::Artifact {
        reason: format!("it is larger than {MAX_ARTIFACT_BYTES} bytes"),
    }
}

/// A file on its way. A client's stream cannot end with an error, so the end is told beside it.
struct Reading<R> {
    first: Option<(String, String)>,
    content: R,
    bytes: u64,
    told: Option<oneshot::Sender<Result<u64, String>>>,
}

impl<R: AsyncRead + Send + Unpin> Reading<R> {
    async fn next(mut self) -> Option<(UploadInputArtifactChunk, Self)> {
        let mut data = Vec::with_capacity(PIECE);
        let read = (&mut self.content)
            .take(PIECE as u64)
            .read_to_end(&mut data)
            .await;
        let end = match read {
            Ok(0) if self.first.is_none() => Some(Ok(self.bytes)),
            Ok(read) => {
                self.bytes += read as u64;
                (self.bytes > MAX_ARTIFACT_BYTES).then(|| Err(too_large().to_string()))
            }
            Err(error) => Some(Err(format!("it cannot be read: {error}"))),
        };
        if let Some(end) = end {
            let failed = end.is_err();
            if let Some(told) = self.told.take() {
                // The upload may have been given up meanwhile.
                let _ = told.send(end);
            }
            if failed {
                // Whoever is told gives the request up; an end here would look like the file's own.
                std::future::pending::<()>().await;
            }
            return None;
        }
        // An empty file is one piece without data.
        let (filename, mime_type) = self.first.take().unwrap_or_default();
        let chunk = UploadInputArtifactChunk {
            filename,
            mime_type,
            data,
        };
        Some((chunk, self))
    }
}

/// What a file is by the end of its name; `application/octet-stream` where that tells nothing.
pub fn mime_type(file: &Path) -> &'static str {
    let extension = file
        .extension()
        .map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("csv") => "text/csv",
        Some("gif") => "image/gif",
        Some("htm" | "html") => "text/html",
        Some("jpeg" | "jpg") => "image/jpeg",
        Some("json") => "application/json",
        Some("md") => "text/markdown",
        Some("pdf") => "application/pdf",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain",
        Some("webp") => "image/webp",
        Some("xml") => "application/xml",
        Some("yaml" | "yml") => "application/yaml",
        Some("zip") => "application/zip",
        _ => "application/octet-stream",
    }
}
