//! A door in front of the real engine's socket that counts the calls of one client and spoils one of them.

use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{UnixListener, UnixStream};

/// What happens to the chosen call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// The connection ends before the engine hears of the call.
    Before,
    /// The engine carries the call out, and the connection ends before its answer.
    After,
    /// The connection ends in the middle of the answer or, after an upgrade, of the streams.
    Within,
    /// The engine does not hear of the call, and the answer is this status.
    Status(u16),
    /// Neither the engine hears of the call nor the client of an answer.
    Silence,
    /// As [`Self::Before`], and the client is killed.
    KilledBefore,
    /// As [`Self::After`], and the client is killed.
    KilledAfter,
    /// The client is interrupted, as by Ctrl-C, and the call goes on.
    Interrupted,
}

/// One call of an operation. How often an engine is asked for the same thing depends on how long that takes, so a call is
/// told by its kind, and by how many of that kind came before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) kind: String,
    pub(crate) before: usize,
}

/// The door. It is open until it is dropped.
pub(crate) struct Door {
    socket: PathBuf,
    state: Arc<Mutex<State>>,
    /// Ends the door's thread when dropped.
    _open: tokio::sync::oneshot::Sender<()>,
    _folder: tempfile::TempDir,
}

/// Changes the body of a call of some kind, as an engine would that does not know an option.
pub(crate) type Ignoring = (&'static str, fn(&mut Value));

/// Changes the engine's answer to calls of some kind, as another engine would give it; which calls, see [`kind`].
pub(crate) type Answering = fn(&str, &mut Value);

#[derive(Default)]
struct State {
    ignoring: Option<Ignoring>,
    answering: Option<Answering>,
    /// The kinds of the calls that came, in order.
    calls: Vec<String>,
    /// Versions of the API that calls named in their path.
    versions: Vec<String>,
    spoil: Option<(Call, How)>,
    /// The client's process, once it is known.
    client: Option<u32>,
}

type Answer = Response<BoxBody<Bytes, std::io::Error>>;

impl Door {
    /// Opens one in front of the engine's socket; `spoil` says which call, and how.
    pub(crate) fn open(spoil: Option<(Call, How)>) -> Self {
        Self::with(State {
            spoil,
            ..State::default()
        })
    }

    /// Opens one in front of an engine that ignores an option.
    pub(crate) fn ignoring(option: Ignoring) -> Self {
        Self::with(State {
            ignoring: Some(option),
            ..State::default()
        })
    }

    /// Opens one that makes the engine look like another.
    pub(crate) fn answering(change: Answering) -> Self {
        Self::with(State {
            answering: Some(change),
            ..State::default()
        })
    }

    fn with(state: State) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        let state = Arc::new(Mutex::new(state));
        let (open, closed) = tokio::sync::oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (path, shared) = (socket.clone(), Arc::clone(&state));
        std::thread::spawn(move || {
            crate::daemon::wait(async move {
                let listener = UnixListener::bind(path).unwrap();
                ready.send(()).unwrap();
                tokio::select! {
                    () = serve(listener, shared) => {}
                    _ = closed => {}
                }
            });
        });
        is_ready.recv().unwrap();
        Self {
            socket,
            state,
            _open: open,
            _folder: folder,
        }
    }

    /// What `--host` needs.
    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Whom to kill or interrupt where the way of spoiling says so.
    pub(crate) fn client_is(&self, process: u32) {
        self.state.lock().unwrap().client = Some(process);
    }

    /// The versions of the API that calls named.
    pub(crate) fn versions(&self) -> Vec<String> {
        self.state.lock().unwrap().versions.clone()
    }

    /// The kinds of the calls so far, such as `POST containers/*/start`.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state.lock().unwrap().calls.clone()
    }
}

async fn serve(listener: UnixListener, state: Arc<Mutex<State>>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            return;
        };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(move |request| pass(request, Arc::clone(&state)));
            // An end that we or the client brought about is no failure of the door.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(client), service)
                .with_upgrades()
                .await;
        });
    }
}

/// A call's body on its way to the engine.
type Sent = BoxBody<Bytes, hyper::Error>;

/// The call with another body.
async fn changed(
    request: Request<Incoming>,
    change: fn(&mut Value),
) -> Result<Request<Sent>, CutOff> {
    let (mut head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| CutOff)?.to_bytes();
    let mut value: Value = serde_json::from_slice(&body).unwrap();
    change(&mut value);
    let text = serde_json::to_vec(&value).unwrap();
    head.headers.remove("transfer-encoding");
    head.headers.insert("content-length", text.len().into());
    let body = Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {});
    Ok(Request::from_parts(head, body.boxed()))
}

/// A call that was cut off: hyper ends the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("cut off")]
struct CutOff;

async fn pass(request: Request<Incoming>, state: Arc<Mutex<State>>) -> Result<Answer, CutOff> {
    let (ignoring, answering) = {
        let state = state.lock().unwrap();
        (state.ignoring, state.answering)
    };
    let request = match ignoring {
        Some((of_kind, change)) if kind(&request) == of_kind => changed(request, change).await?,
        _ => request.map(|body| body.boxed()),
    };
    let how = {
        let mut state = state.lock().unwrap();
        let kind = kind(&request);
        let before = state.calls.iter().filter(|call| **call == kind).count();
        state.calls.push(kind.clone());
        let first = request.uri().path().split('/').nth(1);
        if let Some(version) = first.filter(|word| word.starts_with("v1.")) {
            state.versions.push(version.to_owned());
        }
        let call = Call { kind, before };
        state
            .spoil
            .as_ref()
            .filter(|(chosen, _)| *chosen == call)
            .map(|(_, how)| *how)
    };
    match how {
        None => match answering {
            Some(change) => answered(request, change).await,
            None => forward(request, false).await,
        },
        Some(How::Within) => forward(request, true).await,
        Some(How::Before) => Err(CutOff),
        Some(How::After) => {
            executed(request).await;
            Err(CutOff)
        }
        Some(How::Status(code)) => Ok(refusal(code)),
        Some(How::Interrupted) => {
            signal_client(&state, "-INT").await;
            forward(request, false).await
        }
        Some(How::Silence) => std::future::pending().await,
        Some(how @ (How::KilledBefore | How::KilledAfter)) => {
            if how == How::KilledAfter {
                executed(request).await;
            }
            signal_client(&state, "-9").await;
            Err(CutOff)
        }
    }
}

/// The engine's answer with another body, if it is one of JSON.
async fn answered(request: Request<Sent>, change: Answering) -> Result<Answer, CutOff> {
    let kind = kind(&request);
    let answer = forward(request, false).await?;
    let json = answer.headers().get("content-type");
    let json = json.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !answer.status().is_success() || !json {
        return Ok(answer);
    }
    let (mut head, body) = answer.into_parts();
    let body = body.collect().await.map_err(|_| CutOff)?.to_bytes();
    // Streams of several values are no one's to change.
    let body = match serde_json::from_slice(&body) {
        Ok(mut value) => {
            change(&kind, &mut value);
            Bytes::from(serde_json::to_vec(&value).unwrap())
        }
        Err(_) => body,
    };
    head.headers.remove("transfer-encoding");
    head.headers.insert("content-length", body.len().into());
    let body = Full::new(body).map_err(|never: Infallible| match never {});
    Ok(Response::from_parts(head, body.boxed()))
}

/// Lets the engine carry the call out and hears its answer to the end; an upgraded one is only begun.
async fn executed(request: Request<Sent>) {
    if let Ok(answer) = forward(request, false).await
        && answer.status() != StatusCode::SWITCHING_PROTOCOLS
    {
        let _ = answer.into_body().collect().await;
    }
}

async fn signal_client(state: &Arc<Mutex<State>>, signal: &str) {
    // The test learns the process's number when it has started it, which may be a moment after its first call.
    loop {
        let client = state.lock().unwrap().client;
        if let Some(process) = client {
            let killed = std::process::Command::new("kill")
                .args([signal, &process.to_string()])
                .status();
            assert!(killed.is_ok_and(|status| status.success()));
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn refusal(code: u16) -> Answer {
    let body = Full::new(Bytes::from_static(
        br#"{"message":"spoilt by the test's door"}"#,
    ))
    .map_err(|never: Infallible| match never {})
    .boxed();
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    answer
        .headers_mut()
        .insert("content-type", "application/json".parse().unwrap());
    answer
}

/// Carries a call to the engine and its answer back, streams of an upgraded connection included. `within` cuts the
/// answer off after its first half, and streams after the first bytes from the engine.
async fn forward(mut request: Request<Sent>, within: bool) -> Result<Answer, CutOff> {
    let engine = UnixStream::connect(engine_socket())
        .await
        .map_err(|_| CutOff)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(engine))
        .await
        .map_err(|_| CutOff)?;
    tokio::spawn(connection.with_upgrades());
    let upgrade = request
        .headers()
        .contains_key("upgrade")
        .then(|| hyper::upgrade::on(&mut request));
    let mut answer = sender.send_request(request).await.map_err(|_| CutOff)?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some(from_client) = upgrade
    {
        let from_engine = hyper::upgrade::on(&mut answer);
        tokio::spawn(async move {
            let (Ok(client), Ok(engine)) = (from_client.await, from_engine.await) else {
                return;
            };
            let (mut client, mut engine) = (TokioIo::new(client), TokioIo::new(engine));
            if within {
                // The client's side goes on until the engine said something; then everything ends.
                let mut first = [0; 1];
                let (mut hears, mut speaks) = tokio::io::split(&mut engine);
                let (mut client_hears, _) = tokio::io::split(&mut client);
                tokio::select! {
                    _ = tokio::io::AsyncReadExt::read(&mut hears, &mut first) => {}
                    _ = tokio::io::copy(&mut client_hears, &mut speaks) => {}
                }
            } else {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
            }
        });
    }
    let (parts, body) = answer.into_parts();
    let body = Passing {
        body,
        // The connection to the engine lives as long as its answer is read.
        _sender: sender,
        left: within.then_some(1),
    };
    Ok(Response::from_parts(parts, body.boxed()))
}

/// The engine's answer on its way through; `left` frames are let through where it is to be cut off.
struct Passing {
    body: Incoming,
    _sender: hyper::client::conn::http1::SendRequest<Sent>,
    left: Option<u32>,
}

impl Body for Passing {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let cut = || Some(Err(std::io::Error::other("cut off within the answer")));
        match self.left {
            Some(0) => return Poll::Ready(cut()),
            Some(left) => self.left = Some(left - 1),
            None => {}
        }
        let half = self.left.is_some();
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Pending => {
                // Nothing passed yet.
                self.left = self.left.map(|left| left + 1);
                Poll::Pending
            }
            Poll::Ready(None) if half => Poll::Ready(cut()),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Ok(frame))) if half => match frame.into_data() {
                Ok(data) => Poll::Ready(Some(Ok(Frame::data(data.slice(..data.len() / 2))))),
                Err(_) => Poll::Ready(cut()),
            },
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(frame))),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(std::io::Error::other(error)))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Method and path without the API's version, names and ids.
fn kind<B>(request: &Request<B>) -> String {
    let path = request.uri().path();
    let words: Vec<&str> = path
        .split('/')
        .filter(|word| !word.is_empty())
        .skip_while(|word| word.starts_with("v1."))
        .collect();
    const FIXED: [&str; 22] = [
        "_ping",
        "attach",
        "build",
        "connect",
        "containers",
        "create",
        "disconnect",
        "exec",
        "images",
        "info",
        "json",
        "load",
        "logs",
        "networks",
        "prune",
        "remove",
        "resize",
        "start",
        "stop",
        "update",
        "version",
        "volumes",
    ];
    let shown: Vec<&str> = words
        .iter()
        .map(|word| if FIXED.contains(word) { *word } else { "*" })
        .collect();
    format!("{} {}", request.method(), shown.join("/"))
}

/// The engine that the tests use.
fn engine_socket() -> PathBuf {
    match std::env::var("DOCKER_HOST") {
        Ok(host) => PathBuf::from(
            host.strip_prefix("unix://")
                .expect("these tests need an engine on a Unix socket"),
        ),
        Err(_) => PathBuf::from("/var/run/docker.sock"),
    }
}
