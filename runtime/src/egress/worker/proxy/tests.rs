use std::time::Duration;

use selu_compiler::model::NetworkMode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::super::testing::{Lab, hello, pair, rule, server};
use super::*;
use crate::egress::record::Line;

/// Long enough for everything that is to happen; nothing waits for it.
const PATIENCE: Duration = Duration::from_secs(20);
const END: &str = "\r\n\r\n";

/// A network with a client at its proxy.
struct Bench {
    lab: Lab,
    client: TcpStream,
    serving: JoinHandle<()>,
}

impl Bench {
    fn new(lab: Lab, client: TcpStream, gateway: TcpStream) -> Self {
        let serving = tokio::spawn(converse(Arc::clone(&lab.context), gateway));
        Self {
            lab,
            client,
            serving,
        }
    }

    /// With `hosts` allowed.
    async fn of(hosts: &[&str]) -> Self {
        let (client, gateway) = pair().await;
        Self::new(Lab::allowlist(hosts), client, gateway)
    }

    /// A server outside, at a name and an address that stand for it.
    async fn outside(&self, name: &str, port: u16) -> TcpListener {
        let (listener, at) = server().await;
        self.lab.world.name(name, &["93.184.216.34"]);
        self.lab.world.host(&format!("93.184.216.34:{port}"), at);
        listener
    }

    async fn ask(&mut self, text: &str) {
        self.client.write_all(text.as_bytes()).await.unwrap();
    }

    /// The whole answer to the last request.
    async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        let read = self.client.read_to_end(&mut rest);
        // A reset after the answer is an end as well.
        let _ = tokio::time::timeout(PATIENCE, read).await.unwrap();
        String::from_utf8_lossy(&rest).into_owned()
    }

    async fn recorded(&self, enough: usize) -> Vec<Line> {
        self.lab.recorded(|lines| lines.len() >= enough).await
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
    accepted.unwrap().unwrap().0
}

async fn hear(from: &mut TcpStream, end: &str) -> String {
    let mut heard = Vec::new();
    let all = async {
        while !heard.ends_with(end.as_bytes()) {
            match from.read_u8().await {
                Ok(byte) => heard.push(byte),
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&heard)),
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap();
    String::from_utf8(heard).unwrap()
}

#[tokio::test]
async fn a_plain_request_goes_to_its_host_and_one_connection_serves_several() {
    let mut bench = Bench::of(&["api.example.com:8080"]).await;
    let listener = bench.outside("api.example.com", 8080).await;
    bench
        .ask("GET http://API.example.com:8080/a?b HTTP/1.1\r\nHost: api.example.com:8080\r\nProxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\n\r\n")
        .await;
    let mut server = accept(&listener).await;
    assert_eq!(
        hear(&mut server, END).await,
        "GET /a?b HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n"
    );
    server
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none")
        .await
        .unwrap();
    hear(&mut bench.client, "\r\n\r\none").await;
    bench
        .ask("GET http://api.example.com:8080/2 HTTP/1.0\r\n\r\n")
        .await;
    let second = hear(&mut server, END).await.to_lowercase();
    assert_eq!(
        second,
        "get /2 http/1.1\r\nhost: api.example.com:8080\r\n\r\n"
    );
    server
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo")
        .await
        .unwrap();
    assert!(bench.rest().await.ends_with("\r\n\r\ntwo"));
    let lines = bench.recorded(2).await;
    let phases: Vec<_> = lines.iter().map(|line| line.event.phase).collect();
    assert_eq!(phases, [Phase::Opened, Phase::Closed]);
    let closed = &lines[1].event;
    assert_eq!(closed.name.as_deref(), Some("api.example.com"));
    assert_eq!((closed.port, closed.via), (Some(8080), Via::Proxy));
    assert!(closed.sent > 80 && closed.received > 80, "{closed:?}");
}

#[tokio::test]
async fn requests_for_two_hosts_go_to_two_servers() {
    let mut bench = Bench::of(&["a.example.com", "b.example.com"]).await;
    for (name, address) in [
        ("a.example.com", "93.184.216.1"),
        ("b.example.com", "93.184.216.2"),
    ] {
        let (listener, at) = server().await;
        bench.lab.world.name(name, &[address]);
        bench.lab.world.host(&format!("{address}:80"), at);
        bench
            .ask(&format!(
                "GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n"
            ))
            .await;
        let mut server = accept(&listener).await;
        let asked = hear(&mut server, END).await;
        assert!(asked.contains(&format!("Host: {name}\r\n")), "{asked}");
        server
            .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            .await
            .unwrap();
        hear(&mut bench.client, END).await;
    }
}

#[tokio::test]
async fn what_is_not_listed_is_answered_with_the_line_that_would_allow_it() {
    for request in [
        "GET http://other.example.com/ HTTP/1.1\r\nHost: other.example.com\r\n\r\n",
        "CONNECT other.example.com:80 HTTP/1.1\r\nHost: other.example.com:80\r\n\r\n",
    ] {
        let mut bench = Bench::of(&["api.example.com:80"]).await;
        bench.ask(request).await;
        let answer = bench.rest().await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(
            answer.contains("x-selu-refused: not-listed\r\n"),
            "{answer}"
        );
        assert!(answer.contains("- \"other.example.com:80\"\n"), "{answer}");
        assert_eq!(
            bench.lab.world.asked.lock().unwrap().len(),
            0,
            "not even looked up"
        );
        assert_eq!(
            bench.lab.refusal().await,
            ("not-listed".to_owned(), "other.example.com".to_owned())
        );
    }
}

#[tokio::test]
async fn no_line_is_offered_for_an_address_that_no_list_opens() {
    for (target, offered) in [("169.254.169.254:80", false), ("93.184.216.34:80", true)] {
        let mut bench = Bench::of(&["api.example.com:80"]).await;
        bench
            .ask(&format!("CONNECT {target} HTTP/1.1\r\n\r\n"))
            .await;
        let answer = bench.rest().await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert_eq!(answer.contains("to allow it"), offered, "{answer}");
    }
}

#[tokio::test]
async fn nothing_that_names_two_hosts_or_none_is_passed_on() {
    for (request, code) in [
        (
            "GET http://api.example.com/ HTTP/1.1\r\nHost: other.example.com\r\n",
            "host-mismatch",
        ),
        (
            "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com:8080\r\n",
            "host-mismatch",
        ),
        ("GET http://api.example.com/ HTTP/1.1\r\n", "no-host"),
        (
            "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nHost: api.example.com\r\n",
            "not-http",
        ),
        (
            "GET http://u:p@api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n",
            "not-http",
        ),
        (
            "GET https://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n",
            "not-http",
        ),
        (
            "GET ftp://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n",
            "not-http",
        ),
        ("GET / HTTP/1.1\r\nHost: api.example.com\r\n", "not-http"),
        (
            "GET http://api.example.com:0/ HTTP/1.1\r\nHost: api.example.com:0\r\n",
            "not-http",
        ),
        (
            "GET http://0x5db8d822/ HTTP/1.1\r\nHost: 0x5db8d822\r\n",
            "not-http",
        ),
        (
            "CONNECT api.example.com HTTP/1.1\r\nHost: api.example.com\r\n",
            "not-http",
        ),
        (
            "CONNECT api.example.com:0 HTTP/1.1\r\nHost: api.example.com\r\n",
            "not-http",
        ),
        (
            "CONNECT api.example.com:80 HTTP/1.1\r\nHost: other.example.com:80\r\n",
            "host-mismatch",
        ),
        (
            "CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com:443\r\n",
            "host-mismatch",
        ),
        (
            "CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com\r\nHost: other.example.com\r\n",
            "not-http",
        ),
    ] {
        let mut bench = Bench::of(&["api.example.com"]).await;
        bench.lab.world.name("api.example.com", &["93.184.216.34"]);
        bench.ask(&format!("{request}\r\n")).await;
        let answer = bench.rest().await;
        assert!(
            answer.contains(" 400 Bad Request\r\n"),
            "{request}: {answer}"
        );
        assert_eq!(bench.lab.world.asked.lock().unwrap().len(), 0, "{request}");
        assert_eq!(bench.lab.refusal().await.0, code, "{request}");
    }
}

#[tokio::test]
async fn d10_the_proxy_is_no_way_to_itself_to_the_host_to_neighbours_or_to_what_is_private() {
    let any = [NetworkMode::Any, NetworkMode::Allowlist];
    let targets = [
        "gateway.selu.internal:3128",
        "localhost:3128",
        "127.0.0.1:3128",
        "10.231.7.3:3128",
        "10.231.7.2:50051",
        "198.41.0.4:22",
        "169.254.169.254:80",
        "168.63.129.16:80",
        "[::1]:80",
        "[::ffff:127.0.0.1]:80",
        "[fd00:ec2::254]:80",
        "inside.example.com:80",
        "host.docker.internal:2375",
        "gateway.docker.internal:80",
        "172.17.0.1:2375",
    ];
    for mode in any {
        for target in targets {
            let hosts: Vec<&str> = match mode {
                NetworkMode::Allowlist if !target.contains("selu.internal") => vec![target],
                _ => Vec::new(),
            };
            let (client, gateway) = pair().await;
            let mut bench = Bench::new(Lab::new(&rule(mode, &hosts, &[])), client, gateway);
            bench
                .lab
                .world
                .name("inside.example.com", &["93.184.216.34", "10.0.0.5"]);
            bench.lab.world.name("localhost", &["127.0.0.1"]);
            for host in ["host.docker.internal", "gateway.docker.internal"] {
                bench.lab.world.name(host, &["172.17.0.1"]);
            }
            bench
                .ask(&format!("CONNECT {target} HTTP/1.1\r\n\r\n"))
                .await;
            let answer = bench.rest().await;
            assert!(
                answer.starts_with("HTTP/1.1 403 "),
                "{mode:?} {target}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn requests_take_a_part_of_the_networks_connections_only() {
    let lab = Lab::allowlist(&["api.example.com"]);
    let limits = lab.context.limits.clone();
    let places =
        || -> Vec<_> { std::iter::from_fn(|| limits.admit_http(Dialect::One).ok()).collect() };
    let held = places();
    assert_eq!(held.len(), 64);
    let (client, gateway) = pair().await;
    let mut bench = Bench::new(lab, client, gateway);
    let listener = bench.outside("api.example.com", 80).await;
    bench
        .ask("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
        .await;
    assert!(bench.rest().await.starts_with("HTTP/1.1 503 "));
    assert_eq!(bench.lab.refusal().await.0, "too-many-connections");

    drop(held);
    let (mut client, gateway) = pair().await;
    let _serving = tokio::spawn(converse(Arc::clone(&bench.lab.context), gateway));
    client
        .write_all(b"GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
        .await
        .unwrap();
    let mut server = accept(&listener).await;
    hear(&mut server, END).await;
    assert_eq!(places().len(), 63, "one is in use");
}

#[tokio::test]
async fn a_destination_that_does_not_answer_is_told_apart_from_a_refusal() {
    let mut bench = Bench::of(&["api.example.com:80"]).await;
    bench.lab.world.name("api.example.com", &["93.184.216.34"]);
    bench
        .ask("CONNECT api.example.com:80 HTTP/1.1\r\n\r\n")
        .await;
    let answer = bench.rest().await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(
        answer.contains("x-selu-refused: connect-failed\r\n"),
        "{answer}"
    );
    assert!(!answer.contains("to allow it"), "{answer}");
}

#[tokio::test]
async fn a_tunnel_carries_tls_for_its_name_also_where_the_client_does_not_wait() {
    for early in [true, false] {
        let mut bench = Bench::of(&["api.example.com:443"]).await;
        let listener = bench.outside("api.example.com", 443).await;
        let connect = b"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n";
        let hello = hello(Some("api.example.com"));
        if early {
            bench
                .client
                .write_all(&[&connect[..], &hello].concat())
                .await
                .unwrap();
        } else {
            bench.client.write_all(connect).await.unwrap();
        }
        let mut server = accept(&listener).await;
        assert!(
            hear(&mut bench.client, END)
                .await
                .starts_with("HTTP/1.1 200 ")
        );
        if !early {
            bench.client.write_all(&hello).await.unwrap();
        }
        let mut arrived = vec![0; hello.len()];
        tokio::time::timeout(PATIENCE, server.read_exact(&mut arrived))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(arrived, hello);
        server.write_all(b"\x15\x03\x03").await.unwrap();
        hear(&mut bench.client, "\x15\x03\x03").await;
        bench.client.shutdown().await.unwrap();
        server.shutdown().await.unwrap();
        tokio::time::timeout(PATIENCE, bench.serving)
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn a_tunnel_for_one_name_carries_nothing_for_another() {
    for (inside, code) in [
        (hello(Some("other.example.com")), "sni-mismatch"),
        (hello(None), "no-sni"),
        (
            b"GET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n".to_vec(),
            "host-mismatch",
        ),
        (
            b"CONNECT other.example.com:443 HTTP/1.1\r\nHost: api.example.com\r\n\r\n".to_vec(),
            "host-mismatch",
        ),
        (
            b"GET http://other.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n".to_vec(),
            "host-mismatch",
        ),
    ] {
        let mut bench = Bench::of(&["api.example.com:443"]).await;
        let listener = bench.outside("api.example.com", 443).await;
        bench
            .ask("CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
            .await;
        let mut server = accept(&listener).await;
        hear(&mut bench.client, END).await;
        bench.client.write_all(&inside).await.unwrap();
        let mut arrived = Vec::new();
        // The end may come as a reset.
        let _ = tokio::time::timeout(PATIENCE, server.read_to_end(&mut arrived))
            .await
            .unwrap();
        assert_eq!(arrived, b"", "{code}");
        assert_eq!(
            bench.lab.refusal().await,
            (code.to_owned(), "api.example.com".to_owned())
        );
    }
}

#[tokio::test]
async fn a_changed_policy_cuts_what_it_no_longer_allows_and_keeps_the_rest() {
    for tunnel in [true, false] {
        let mut bench = Bench::of(&["api.example.com:80"]).await;
        let listener = bench.outside("api.example.com", 80).await;
        bench
            .ask(match tunnel {
                true => "CONNECT api.example.com:80 HTTP/1.1\r\n\r\n",
                false => "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
            })
            .await;
        let mut server = accept(&listener).await;
        if tunnel {
            hear(&mut bench.client, END).await;
            server.write_all(b"* OK").await.unwrap();
            hear(&mut bench.client, "* OK").await;
        } else {
            hear(&mut server, END).await;
            server
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf")
                .await
                .unwrap();
            hear(&mut bench.client, "half").await;
        }
        let kept = ["api.example.com:80", "more.example.com:443"];
        bench
            .lab
            .go_by(&rule(NetworkMode::Allowlist, &kept, &[]))
            .await;
        server.write_all(b"kept").await.unwrap();
        hear(&mut bench.client, "kept").await;

        bench
            .lab
            .go_by(&rule(
                NetworkMode::Allowlist,
                &["more.example.com:443"],
                &[],
            ))
            .await;
        // When that has returned, everything is cut.
        assert_eq!(bench.rest().await, "");
        assert_eq!(bench.lab.refusal().await.0, "revoked");
    }
}

#[tokio::test]
async fn a_web_socket_through_the_proxy_is_recorded_until_its_end() {
    let mut bench = Bench::of(&["api.example.com:80"]).await;
    let listener = bench.outside("api.example.com", 80).await;
    bench
        .ask("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await;
    let mut server = accept(&listener).await;
    hear(&mut server, END).await;
    server
        .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await
        .unwrap();
    hear(&mut bench.client, END).await;
    bench.ask("ping").await;
    hear(&mut server, "ping").await;
    server.write_all(b"pong").await.unwrap();
    hear(&mut bench.client, "pong").await;
    bench.client.shutdown().await.unwrap();
    server.shutdown().await.unwrap();
    let lines = bench.recorded(2).await;
    assert_eq!(lines[1].event.phase, Phase::Closed);
    assert_eq!(lines[1].event.reason, None);
}
