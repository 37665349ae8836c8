//! The control socket, parent's side: one question a connection, from the policy's user alone.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::super::RUN_UID;
use super::super::control::{Answer, Question, SOCKET};
use super::super::policy::Standing;

/// How long a question may take to arrive.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// Longest question that is read.
const LONGEST_QUESTION: u64 = 256;

/// A question that waits for its answer.
pub(super) struct Asked {
    pub(super) question: Question,
    pub(super) reply: oneshot::Sender<Result<Standing, String>>,
}

/// Opens the socket. Its folder is a tmpfs of the container's own.
pub(super) fn open() -> io::Result<mpsc::Receiver<Asked>> {
    let listener = UnixListener::bind(SOCKET)?;
    // The parent may give it to nobody, so it is everybody's, and who asks is looked at.
    std::fs::set_permissions(SOCKET, Permissions::from_mode(0o666))?;
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(accept(listener, sender));
    Ok(receiver)
}

async fn accept(listener: UnixListener, questions: mpsc::Sender<Asked>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let uid = stream.peer_cred().map(|peer| peer.uid());
                if uid.is_ok_and(|uid| uid == RUN_UID) {
                    tokio::spawn(serve(stream, questions.clone()));
                }
            }
            // Out of descriptors, for a moment.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve(mut stream: UnixStream, questions: mpsc::Sender<Asked>) {
    let mut bytes = Vec::new();
    let mut limited = (&mut stream).take(LONGEST_QUESTION);
    let reading = limited.read_to_end(&mut bytes);
    if !matches!(timeout(ASK_LIMIT, reading).await, Ok(Ok(_))) {
        return;
    }
    let answer = match serde_json::from_slice(&bytes) {
        Ok(question) => {
            let (reply, answer) = oneshot::channel();
            if questions.send(Asked { question, reply }).await.is_err() {
                return;
            }
            match answer.await {
                Ok(Ok(standing)) => Answer::Standing(standing),
                Ok(Err(text)) => Answer::Failed(text),
                Err(_) => return,
            }
        }
        Err(error) => Answer::Failed(format!("that is no question: {error}")),
    };
    if let Ok(line) = serde_json::to_vec(&answer) {
        // Whoever asked may have gone.
        let _ = stream.write_all(&line).await;
    }
}
