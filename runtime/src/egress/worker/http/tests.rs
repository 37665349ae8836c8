use hyper::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::*;

/// Long enough for everything that is to happen; nothing waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

fn api() -> Target {
    Target {
        host: Host::read("api.example.com").unwrap(),
        port: 80,
    }
}

/// A client and a server with the forwarding between them.
struct Bench {
    client: DuplexStream,
    server: DuplexStream,
    forwarding: JoinHandle<Result<(), Reason>>,
}

impl Bench {
    fn new(dialect: Dialect) -> Self {
        Self::within(HEAD_LIMIT, dialect)
    }

    fn within(head_limit: Duration, dialect: Dialect) -> Self {
        let (client, theirs) = duplex(64 * 1024);
        let (server, ours) = duplex(64 * 1024);
        let forwarding =
            tokio::spawn(
                async move { forward_within(head_limit, dialect, &api(), theirs, ours).await },
            );
        Self {
            client,
            server,
            forwarding,
        }
    }

    async fn ask(&mut self, text: &str) {
        self.client.write_all(text.as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, text: &str) {
        self.server.write_all(text.as_bytes()).await.unwrap();
    }

    /// How the forwarding ended, all that the server was sent and all that the client was.
    async fn end(self) -> (Result<(), Reason>, String, String) {
        let Self {
            mut client,
            mut server,
            forwarding,
        } = self;
        let outcome = tokio::time::timeout(PATIENCE, forwarding).await;
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        server.read_to_end(&mut to_server).await.unwrap();
        client.read_to_end(&mut to_client).await.unwrap();
        (
            outcome.unwrap().unwrap(),
            String::from_utf8_lossy(&to_server).into_owned(),
            String::from_utf8_lossy(&to_client).into_owned(),
        )
    }
}

/// Reads up to and with `end`.
async fn hear(from: &mut DuplexStream, end: &str) -> String {
    let mut heard = Vec::new();
    let all = async {
        while !heard.ends_with(end.as_bytes()) {
            let byte = from.read_u8().await;
            heard.push(byte.unwrap_or_else(|error| {
                panic!("{error} after {:?}", String::from_utf8_lossy(&heard))
            }));
        }
    };
    let heard_all = tokio::time::timeout(PATIENCE, all).await.is_ok();
    let heard = String::from_utf8(heard).unwrap();
    assert!(heard_all, "no {end:?} in {heard:?}");
    heard
}

const END: &str = "\r\n\r\n";

#[tokio::test]
async fn requests_for_the_host_pass_one_after_the_other_without_what_is_for_one_connection() {
    let mut bench = Bench::new(Dialect::One);
    bench
        .ask(
            "POST /a?b=c HTTP/1.1\r\nHost: API.example.com\r\nX-Mixed-Case: 1\r\nConnection: keep-alive, X-Hop\r\nX-Hop: \
             1\r\nContent-Length: 5\r\n\r\nhello",
        )
        .await;
    let asked = hear(&mut bench.server, "hello").await;
    assert_eq!(
        asked,
        "POST /a?b=c HTTP/1.1\r\nHost: API.example.com\r\nX-Mixed-Case: 1\r\nContent-Length: 5\r\n\r\nhello"
    );
    bench
        .answer("HTTP/1.1 200 Fine\r\nX-Answer: 1\r\nKeep-Alive: timeout=9\r\nContent-Length: 2\r\n\r\nok")
        .await;
    let answered = hear(&mut bench.client, "ok").await;
    assert!(answered.starts_with("HTTP/1.1 200 Fine\r\nX-Answer: 1\r\n"));
    assert!(!answered.to_lowercase().contains("keep-alive"));

    bench
        .ask("HEAD / HTTP/1.1\r\nhost: api.example.com:80\r\n\r\n")
        .await;
    assert!(
        hear(&mut bench.server, END)
            .await
            .starts_with("HEAD / HTTP/1.1")
    );
    bench
        .answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n")
        .await;
    assert!(hear(&mut bench.client, END).await.contains("304"));
    bench
        .ask("GET / HTTP/1.0\r\nHost: api.example.com\r\n\r\n")
        .await;
    hear(&mut bench.server, END).await;
    bench
        .answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nend\r\n0\r\n\r\n")
        .await;
    let (outcome, _, last) = bench.end().await;
    assert_eq!(outcome, Ok(()));
    assert!(
        last.ends_with("\r\n\r\nend"),
        "as HTTP/1.0 understands it: {last}"
    );
}

#[tokio::test]
async fn a_request_for_another_host_reaches_nobody_and_ends_the_connection() {
    for (request, mismatch) in [
        ("GET / HTTP/1.1\r\nHost: other.example\r\n", "other.example"),
        ("GET / HTTP/1.1\r\nHost: example.com\r\n", "example.com"),
        (
            "GET / HTTP/1.1\r\nHost: api.example.com:8080\r\n",
            "api.example.com:8080",
        ),
        (
            "GET / HTTP/1.1\r\nHost: api.example.com@other.example\r\n",
            "api.example.com@other.example",
        ),
        ("GET / HTTP/1.1\r\nHost: \r\n", ""),
        (
            "GET http://other.example/ HTTP/1.1\r\nHost: api.example.com\r\n",
            "other.example",
        ),
        (
            "GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n",
            "other.example",
        ),
        (
            "GET http://api.example.com/ HTTP/1.1\r\nHost: other.example\r\n",
            "other.example",
        ),
        (
            "GET http://u@api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n",
            "u@api.example.com",
        ),
        (
            "CONNECT other.example:443 HTTP/1.1\r\nHost: api.example.com\r\n",
            "CONNECT other.example:443",
        ),
        (
            "CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com\r\n",
            "CONNECT api.example.com:80",
        ),
    ] {
        let mut bench = Bench::new(Dialect::One);
        bench.ask(&format!("{request}\r\n")).await;
        let (outcome, to_server, to_client) = bench.end().await;
        assert_eq!(
            outcome,
            Err(Reason::HostMismatch(mismatch.to_owned())),
            "{request}"
        );
        assert_eq!(to_server, "", "{request}");
        assert!(
            to_client.starts_with("HTTP/1.1 403 "),
            "{request}: {to_client}"
        );
        assert!(to_client.contains("x-selu-refused: host-mismatch\r\n"));
    }
}

#[tokio::test]
async fn without_one_host_there_is_no_request() {
    for (request, reason) in [
        ("GET / HTTP/1.1\r\nAccept: */*\r\n", "no-host"),
        ("GET / HTTP/1.0\r\n", "no-host"),
        ("GET http://api.example.com/ HTTP/1.1\r\n", "no-host"),
        (
            "GET / HTTP/1.1\r\nHost: api.example.com\r\nHost: api.example.com\r\n",
            "not-http",
        ),
        (
            "GET / HTTP/1.1\r\nHost: api.example.com\r\nhost: other.example\r\n",
            "not-http",
        ),
        (
            "GET https://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n",
            "not-http",
        ),
    ] {
        let mut bench = Bench::new(Dialect::One);
        bench.ask(&format!("{request}\r\n")).await;
        let (outcome, to_server, to_client) = bench.end().await;
        assert_eq!(outcome.unwrap_err().code(), reason, "{request}");
        assert_eq!(to_server, "", "{request}");
        assert!(
            to_client.starts_with("HTTP/1.1 403 ") || to_client.starts_with("HTTP/1.0 403 "),
            "{to_client}"
        );
    }
}

#[tokio::test]
async fn what_is_no_clean_head_is_refused_before_anything_passes() {
    let long = format!(
        "GET / HTTP/1.1\r\nHost: api.example.com\r\nX: {}\r\n",
        "x".repeat(HEAD_MAX)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: api.example.com\r\n{}",
        "X: 1\r\n".repeat(200)
    );
    for (request, status) in [
        (
            "GET / HTTP/1.1\r\nHost: other.example\r\n api.example.com\r\n",
            "400",
        ),
        ("GET / HTTP/1.1\r\nHost : api.example.com\r\n", "400"),
        ("GET / HTTP/1.1\r\n Host: api.example.com\r\n", "400"),
        (
            "GET / HTTP/1.1\r\nHost: api.example.com\r\nX: a\0b\r\n",
            "400",
        ),
        ("GET /\0 HTTP/1.1\r\nHost: api.example.com\r\n", "400"),
        ("GET  / HTTP/1.1\r\nHost: api.example.com\r\n", "400"),
        (
            "GET / HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 3\r\nContent-Length: 4\r\n",
            "400",
        ),
        (
            "GET / HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: +3\r\n",
            "400",
        ),
        (
            "GET / HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked, identity\r\n",
            "400",
        ),
        (
            "GET / HTTP/1.0\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n",
            "400",
        ),
        (long.as_str(), "431"),
        (many.as_str(), "431"),
    ] {
        let mut bench = Bench::new(Dialect::One);
        bench.ask(&format!("{request}\r\n")).await;
        let (outcome, to_server, to_client) = bench.end().await;
        let shown: String = request.chars().take(90).collect();
        assert_eq!(outcome.unwrap_err().code(), "not-http", "{shown}");
        assert_eq!(to_server, "", "{shown}");
        assert!(
            to_client.contains(&format!(" {status} ")),
            "{shown}: {to_client}"
        );
    }
}

#[tokio::test]
async fn a_second_request_sent_along_is_judged_by_itself() {
    let mut bench = Bench::new(Dialect::One);
    bench
        .ask(
            "GET /1 HTTP/1.1\r\nHost: api.example.com\r\n\r\nGET /2 HTTP/1.1\r\nHost: other.example\r\n\r\nGET /3 \
             HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
        )
        .await;
    assert!(hear(&mut bench.server, END).await.starts_with("GET /1 "));
    bench
        .answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none")
        .await;
    let (outcome, to_server, to_client) = bench.end().await;
    assert_eq!(
        outcome,
        Err(Reason::HostMismatch("other.example".to_owned()))
    );
    assert_eq!(to_server, "");
    assert!(to_client.contains("\r\n\r\none"));
    assert!(to_client.contains("HTTP/1.1 403 "));
}

#[tokio::test]
async fn a_body_that_two_readers_would_measure_differently_has_one_length_afterwards() {
    let hidden = "GET /hidden HTTP/1.1\r\nHost: other.example\r\n\r\n";
    for lengths in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
    ] {
        let mut bench = Bench::new(Dialect::One);
        bench
            .ask(&format!(
                "POST / HTTP/1.1\r\nHost: api.example.com\r\n{lengths}\r\n\r\n0\r\n\r\n{hidden}"
            ))
            .await;
        let head = hear(&mut bench.server, END).await.to_lowercase();
        assert!(!head.contains("content-length"), "{head}");
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        assert_eq!(hear(&mut bench.server, END).await, "0\r\n\r\n");
        bench
            .answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .await;
        // Whatever came after it is not taken for a request: the connection ends.
        let (_, to_server, to_client) = bench.end().await;
        assert_eq!(to_server, "", "{lengths}");
        assert_eq!(to_client.matches("HTTP/1.1 ").count(), 1, "{to_client}");
    }
}

#[tokio::test]
async fn requests_inside_of_a_body_stay_a_body() {
    let inner = "GET /inner HTTP/1.1\r\nHost: other.example\r\n\r\n";
    let mut bench = Bench::new(Dialect::One);
    bench
        .ask(&format!(
            "POST / HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n000{:x};ext=\"a\"\r\n{inner}\r\n0\r\n\r\n",
            inner.len()
        ))
        .await;
    hear(&mut bench.server, END).await;
    // Extensions and leading zeros, which readers differ on, are gone.
    let seen = hear(&mut bench.server, "\r\n0\r\n\r\n").await;
    assert_eq!(seen, format!("{:X}\r\n{inner}\r\n0\r\n\r\n", inner.len()));

    let mut bench = Bench::new(Dialect::One);
    bench
        .ask(&format!(
            "POST / HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: {}\r\n\r\n{inner}",
            inner.len()
        ))
        .await;
    let seen = hear(&mut bench.server, inner).await;
    assert!(seen.contains(&format!("Content-Length: {}\r\n\r\n", inner.len())));
}

#[tokio::test]
async fn a_head_that_does_not_end_is_not_waited_for_but_an_idle_client_is_no_offence() {
    let mut bench = Bench::within(Duration::from_millis(50), Dialect::One);
    bench.ask("GET / HTTP/1.1\r\nHost: api.exa").await;
    let (outcome, to_server, _) = bench.end().await;
    assert_eq!(outcome, Err(Reason::TooSlow));
    assert_eq!(to_server, "");

    let mut bench = Bench::within(Duration::from_millis(50), Dialect::One);
    bench
        .ask("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
        .await;
    hear(&mut bench.server, END).await;
    bench.answer("HTTP/1.1 204 No Content\r\n\r\n").await;
    hear(&mut bench.client, END).await;
    assert_eq!(bench.end().await.0, Ok(()));
}

#[tokio::test]
async fn an_absolute_form_for_the_host_arrives_as_servers_expect_it() {
    let mut bench = Bench::new(Dialect::One);
    bench
        .ask("GET http://API.example.com:80/x?y HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
        .await;
    assert_eq!(
        hear(&mut bench.server, END).await,
        "GET /x?y HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
    );
}

#[tokio::test]
async fn bodies_pass_as_they_come_in_both_directions() {
    let mut bench = Bench::new(Dialect::One);
    bench
        .ask("POST / HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 2097152\r\n\r\nfirst")
        .await;
    hear(&mut bench.server, "first").await;
    bench
        .answer("HTTP/1.1 200 OK\r\nContent-Length: 2097152\r\n\r\nearly")
        .await;
    hear(&mut bench.client, "early").await;
    let Bench {
        client,
        server,
        forwarding: _forwarding,
    } = bench;
    let rest = vec![b'x'; 2_097_152 - 5];
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let (mut got_client, mut got_server) = (vec![0; rest.len()], vec![0; rest.len()]);
    let all = async {
        tokio::try_join!(
            to_client.write_all(&rest),
            to_server.write_all(&rest),
            async { from_client.read_exact(&mut got_client).await.map(|_| ()) },
            async { from_server.read_exact(&mut got_server).await.map(|_| ()) },
        )
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap().unwrap();
    assert!(got_client == rest && got_server == rest);
}

#[tokio::test]
async fn a_web_socket_becomes_a_tunnel_and_any_other_upgrade_does_not() {
    let ask = |protocol: &str| {
        format!(
            "GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"
        )
    };
    let mut bench = Bench::new(Dialect::One);
    bench.ask(&ask("websocket")).await;
    let asked = hear(&mut bench.server, END).await.to_lowercase();
    assert!(asked.contains("upgrade: websocket\r\n") && asked.contains("connection: upgrade\r\n"));
    bench
        .answer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\u{1}server")
        .await;
    assert!(
        hear(&mut bench.client, "\u{1}server")
            .await
            .starts_with("HTTP/1.1 101 ")
    );
    bench.ask("\u{2}client").await;
    hear(&mut bench.server, "\u{2}client").await;
    bench.client.shutdown().await.unwrap();
    bench.server.shutdown().await.unwrap();
    assert_eq!(bench.end().await.0, Ok(()));

    let mut bench = Bench::new(Dialect::One);
    bench.ask(&ask("h2c")).await;
    let asked = hear(&mut bench.server, END).await.to_lowercase();
    assert!(!asked.contains("upgrade"), "{asked}");
    bench
        .answer(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nPRI",
        )
        .await;
    let (_, _, to_client) = bench.end().await;
    assert_eq!(to_client, "", "nobody asked for that");
}

#[tokio::test]
async fn a_server_that_ends_an_idle_connection_ends_the_clients() {
    let mut bench = Bench::new(Dialect::One);
    bench
        .ask("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
        .await;
    hear(&mut bench.server, END).await;
    bench.answer("HTTP/1.1 204 No Content\r\n\r\n").await;
    hear(&mut bench.client, END).await;
    bench.server.shutdown().await.unwrap();
    assert_eq!(bench.end().await.0, Ok(()));
}

#[tokio::test]
async fn dropping_the_forwarding_cuts_both_sides_in_the_middle_of_a_body() {
    let mut bench = Bench::new(Dialect::One);
    bench
        .ask("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
        .await;
    hear(&mut bench.server, END).await;
    bench
        .answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        .await;
    hear(&mut bench.client, "half").await;
    bench.forwarding.abort();
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    let ends = async {
        bench.client.read_to_end(&mut to_client).await.unwrap();
        bench.server.read_to_end(&mut to_server).await.unwrap();
    };
    tokio::time::timeout(PATIENCE, ends).await.unwrap();
    assert!(to_client.is_empty() && to_server.is_empty());
}

/// An HTTP/2 server that answers with the authority it was asked for.
fn serve_two(server: DuplexStream) {
    tokio::spawn(async move {
        let service = service_fn(|request: Request<Incoming>| async move {
            let text = format!("{} {}", request.method(), request.uri());
            Ok::<_, Broken>(Response::new(Full::new(Bytes::from(text))))
        });
        let tasks = Tasks::default();
        let _ = hyper::server::conn::http2::Builder::new(tasks)
            .serve_connection(TokioIo::new(server), service)
            .await;
    });
}

#[tokio::test]
async fn each_stream_of_http2_is_for_the_host_or_ends_the_connection() {
    use http_body_util::{BodyExt, Empty};

    let (client, theirs) = duplex(64 * 1024);
    let (server, ours) = duplex(64 * 1024);
    serve_two(server);
    let forwarding = tokio::spawn(async move { forward(Dialect::Two, &api(), theirs, ours).await });
    let tasks = Tasks::default();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(tasks.clone(), TokioIo::new(client))
            .await
            .unwrap();
    let driver = tokio::spawn(connection);
    let get = |uri: &str| {
        Request::builder()
            .method(Method::GET)
            .uri(uri)
            .body(Empty::<Bytes>::new())
            .unwrap()
    };
    for _ in 0..3 {
        let response = sender
            .send_request(get("http://api.example.com/a?b"))
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "GET http://api.example.com/a?b");
    }
    let response = sender
        .send_request(get("http://other.example/"))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let outcome = tokio::time::timeout(PATIENCE, forwarding)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        outcome,
        Err(Reason::HostMismatch("other.example".to_owned()))
    );
    // The connection is over for the client too.
    let _ = tokio::time::timeout(PATIENCE, driver)
        .await
        .unwrap()
        .unwrap();
    assert!(
        sender
            .send_request(get("http://api.example.com/"))
            .await
            .is_err()
    );
}
