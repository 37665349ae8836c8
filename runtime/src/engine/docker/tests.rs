//! The adapter against a double of an engine: silence, half answers and misleading codes (F14, F16, B11).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::Docker;
use super::call::Limits;
use super::find::{Surroundings, connect_within};
use crate::engine::{Engine, EngineError, EngineResult, EngineView, Labels};

/// What the double does after a request.
enum Answer {
    /// Status and body, whole.
    Whole(u16, &'static str),
    /// The beginning of a stream, and then nothing more.
    Stalled(&'static str),
    /// Nothing at all.
    Silence,
}

/// An engine that answers as told; the first line of each request is handed in, such as `POST /images/create?…`.
async fn double(answer: fn(&str) -> Answer) -> (Docker, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("engine.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answer));
        }
    });
    let short = Duration::from_secs(1);
    let limits = Limits {
        ping: short,
        look: short,
        act: short,
        registry: short,
        helper: short,
        next: short,
    };
    let address = format!("unix://{}", socket.display());
    let docker = connect_within(limits, Some(&address), &Surroundings::default()).await;
    (docker.unwrap(), folder)
}

async fn serve(mut stream: UnixStream, answer: fn(&str) -> Answer) {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&piece[..read]),
        }
    }
    let text = String::from_utf8_lossy(&request).into_owned();
    let line = text.lines().next().unwrap_or_default();
    let reply = match answer(line) {
        _ if line.contains("/_ping") => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK".to_owned(),
        Answer::Whole(status, body) => format!(
            "HTTP/1.1 {status} Told\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
        Answer::Stalled(piece) => format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{piece}\r\n",
            piece.len()
        ),
        Answer::Silence => String::new(),
    };
    let _ = stream.write_all(reply.as_bytes()).await;
    std::future::pending::<()>().await;
}

fn timed_out<T>(result: EngineResult<T>) -> String {
    match result {
        Err(error @ EngineError::Timeout { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("an answer"),
    }
}

const REFERENCE: &str =
    "example.org/x@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[tokio::test]
async fn f14_an_engine_that_stays_silent_is_given_up_and_the_call_is_named() {
    let (docker, _folder) = double(|_| Answer::Silence).await;
    let message = timed_out(docker.start("selu_x").await);
    assert_eq!(
        message,
        "the engine did not answer start container selu_x within 1 s"
    );
    for message in [
        timed_out(docker.container("selu_x").await),
        timed_out(docker.image("x:1").await),
        timed_out(docker.logs("selu_x", 5).await),
        timed_out(docker.exec("selu_x", "1:1", &["a".to_owned()]).await),
        timed_out(docker.attach("selu_x").await),
        timed_out(docker.pull(REFERENCE, &|_| {}).await),
        timed_out(docker.load_image(Vec::new().into()).await),
    ] {
        assert!(message.contains("within 1 s"), "{message}");
    }
}

#[tokio::test]
async fn a_silent_engine_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("silent.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    let limits = Limits {
        ping: Duration::from_secs(1),
        ..Limits::default()
    };
    let address = format!("unix://{}", socket.display());
    let around = Surroundings::default();
    match connect_within(limits, Some(&address), &around).await {
        Err(EngineError::Unreachable { tried }) => {
            assert!(
                tried[0].contains("did not answer ping within 1 s"),
                "{tried:?}"
            );
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a silent engine counted as found"),
    }
}

#[tokio::test]
async fn f14_a_stream_that_stops_in_the_middle_is_given_up() {
    let (docker, _folder) = double(|_| Answer::Stalled("{\"status\":\"Downloading\"}\n")).await;
    let lines = std::sync::Mutex::new(Vec::new());
    let note = |line: &str| lines.lock().unwrap().push(line.to_owned());
    let message = timed_out(docker.pull(REFERENCE, &note).await);
    assert!(message.contains("pull example.org/x@sha256:"), "{message}");
    assert_eq!(*lines.lock().unwrap(), ["Downloading"]);
    timed_out(docker.container("selu_x").await);
}

#[tokio::test]
async fn b11_an_error_inside_a_stream_is_the_pulls_and_a_rate_limit_is_told_apart() {
    let (docker, _folder) = double(|_| {
        Answer::Whole(
            200,
            "{\"status\":\"Pulling\"}\n{\"errorDetail\":{\"message\":\"toomanyrequests: slow down\"},\"error\":\"x\"}\n",
        )
    })
    .await;
    let error = docker.pull(REFERENCE, &|_| {}).await.unwrap_err();
    assert!(matches!(error, EngineError::RateLimited { .. }), "{error}");
    assert!(error.to_string().contains("slow down"), "{error}");
}

#[tokio::test]
async fn f13_f16_already_in_that_state_is_done_other_codes_are_not_and_a_log_that_cannot_be_had_is_said()
 {
    let (docker, _folder) = double(|line| match line {
        _ if line.contains("/start") || line.contains("/stop") => Answer::Whole(304, ""),
        _ if line.contains("selu_other") => Answer::Whole(500, "{\"message\":\"disk full\"}"),
        _ if line.starts_with("DELETE") => {
            Answer::Whole(404, "{\"message\":\"No such container: selu_x\"}")
        }
        _ => Answer::Whole(
            501,
            "{\"message\":\"configured logging driver does not support reading\"}",
        ),
    })
    .await;
    docker.start("selu_x").await.unwrap();
    docker.stop("selu_x", Duration::ZERO).await.unwrap();
    docker.remove_container("selu_x").await.unwrap();
    docker.remove_network("selu_x").await.unwrap();
    let error = docker.remove_network("selu_other").await.unwrap_err();
    assert_eq!(error.to_string(), "remove network selu_other: disk full");
    let log = docker.logs("selu_x", 5).await.unwrap();
    assert!(
        log.starts_with("[the engine cannot give this container's log: "),
        "{log}"
    );
}

#[tokio::test]
async fn a_build_that_another_images_removal_has_ended_is_begun_again_and_any_other_is_not() {
    const GONE: &str = "{\"errorDetail\":{\"message\":\"unable to find image \\\"sha256:00\\\"\"},\"error\":\"x\"}\n";
    static BUILDS: AtomicU32 = AtomicU32::new(0);
    let (docker, _folder) = double(|line| {
        if !line.contains("/build?") {
            return Answer::Whole(200, "{}");
        }
        let number = BUILDS.fetch_add(1, Ordering::Relaxed);
        Answer::Whole(
            200,
            match number {
                _ if line.contains("t=broken") => {
                    "{\"errorDetail\":{\"message\":\"disk full\"},\"error\":\"x\"}\n"
                }
                _ if line.contains("t=never") => GONE,
                0 | 1 => GONE,
                _ => "{\"stream\":\"Successfully built 00\"}\n",
            },
        )
    })
    .await;
    let build = async |tag: &str| {
        let before = BUILDS.load(Ordering::Relaxed);
        let context = bytes::Bytes::from_static(b"context");
        let built = docker
            .build(context, "Dockerfile", tag, &Labels::new(), &|_| {})
            .await;
        let builds = BUILDS.load(Ordering::Relaxed) - before;
        (built.map_err(|error| error.to_string()), builds)
    };
    assert_eq!(build("x:1").await, (Ok(()), 3));
    let disk_full = Err("build broken:1: disk full".to_owned());
    assert_eq!(build("broken:1").await, (disk_full, 1));
    let gone = Err("build never:1: unable to find image \"sha256:00\"".to_owned());
    assert_eq!(build("never:1").await, (gone, 5));
}
