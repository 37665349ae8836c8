use std::io;

use selu_compiler::model::NetworkMode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;
use crate::egress::record::Phase;
use crate::egress::worker::testing::{Lab, hello, pair, rule, server};

const GLOBAL: &str = "93.184.216.34";

/// A lab where every name resolves to one server, on any port that is listed here.
async fn lab(hosts: &[&str]) -> (Lab, TcpListener) {
    let lab = Lab::allowlist(hosts);
    let (listener, address) = server().await;
    lab.world.name("api.example.com", &[GLOBAL]);
    lab.world.host(&format!("{GLOBAL}:443"), address);
    (lab, listener)
}

fn target(name: &str) -> Target {
    Target {
        host: Host::read(name).unwrap(),
        port: 443,
    }
}

/// A client whose connection is carried, and the task that carries it.
async fn connect(lab: &Lab, name: &str) -> (TcpStream, JoinHandle<()>) {
    let (near, far) = pair().await;
    let (context, target) = (Arc::clone(&lab.context), target(name));
    let task = tokio::spawn(async move { carry(&context, far, &target, Via::Tcp).await });
    (near, task)
}

/// Whether the stream is reset, or ended without a byte.
async fn is_cut(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 16]).await {
        Ok(count) => count == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

#[tokio::test]
async fn bytes_pass_both_ways_and_each_side_ends_its_own() {
    let (lab, listener) = lab(&["api.example.com:443"]).await;
    let (mut client, task) = connect(&lab, "api.example.com").await;
    let (mut server, _) = listener.accept().await.unwrap();

    client.write_all(b"*1\r\n$4\r\nPING\r\n").await.unwrap();
    client.shutdown().await.unwrap();
    let mut asked = String::new();
    server.read_to_string(&mut asked).await.unwrap();
    assert_eq!(asked, "*1\r\n$4\r\nPING\r\n");
    server.write_all(b"+PONG\r\n").await.unwrap();
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "+PONG\r\n");
    task.await.unwrap();

    let lines = lab
        .recorded(|lines| lines.iter().any(|l| l.event.phase == Phase::Closed))
        .await;
    let [opened, closed] = [Phase::Opened, Phase::Closed]
        .map(|phase| &lines.iter().find(|l| l.event.phase == phase).unwrap().event);
    assert_eq!(opened.id, closed.id);
    assert_eq!(opened.address.unwrap().to_string(), GLOBAL);
    assert_eq!((closed.sent, closed.received), (14, 7));
    assert_eq!(closed.reason, None);
}

#[tokio::test]
async fn much_passes_unchanged_through_the_kernel() {
    let (lab, listener) = lab(&["api.example.com:443"]).await;
    let (client, task) = connect(&lab, "api.example.com").await;
    let (mut server, _) = listener.accept().await.unwrap();
    let much: Vec<u8> = (0_u32..2_000_000)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes())
        .collect();
    // Not to be taken for HTTP or TLS.
    let mut sent = vec![0];
    sent.extend(&much);
    let (mut reading, mut writing) = client.into_split();
    let expected = sent.clone();
    let send = tokio::spawn(async move {
        writing.write_all(&sent).await.unwrap();
        writing.shutdown().await.unwrap();
    });
    let mut arrived = Vec::new();
    server.read_to_end(&mut arrived).await.unwrap();
    assert!(
        arrived == expected,
        "{} of {} bytes",
        arrived.len(),
        expected.len()
    );
    let echo = tokio::spawn(async move {
        server.write_all(&arrived).await.unwrap();
    });
    let mut back = Vec::new();
    reading.read_to_end(&mut back).await.unwrap();
    assert!(
        back == expected,
        "{} of {} bytes",
        back.len(),
        expected.len()
    );
    send.await.unwrap();
    echo.await.unwrap();
    task.await.unwrap();
}

#[tokio::test]
async fn a_server_that_speaks_first_is_heard_before_the_client_says_anything() {
    let (lab, listener) = lab(&["api.example.com:443"]).await;
    let (mut client, _task) = connect(&lab, "api.example.com").await;
    let (mut server, _) = listener.accept().await.unwrap();
    server.write_all(b"* OK IMAP4rev1\r\n").await.unwrap();
    let mut greeting = [0; 16];
    client.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"* OK IMAP4rev1\r\n");
    client.write_all(b"a LOGOUT\r\n").await.unwrap();
    let mut asked = [0; 10];
    server.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"a LOGOUT\r\n");
}

#[tokio::test]
async fn a_hello_with_the_right_name_passes_whole() {
    let (lab, listener) = lab(&["api.example.com:443"]).await;
    let (mut client, _task) = connect(&lab, "api.example.com").await;
    let (mut server, _) = listener.accept().await.unwrap();
    let hello = hello(Some("API.example.com"));
    for part in hello.chunks(7) {
        client.write_all(part).await.unwrap();
    }
    let mut arrived = vec![0; hello.len()];
    server.read_exact(&mut arrived).await.unwrap();
    assert_eq!(arrived, hello);
}

#[tokio::test]
async fn a_hello_with_another_name_or_none_is_cut_before_a_byte_of_it_leaves() {
    for (name, code) in [
        (Some("evil.example.com"), "sni-mismatch"),
        (Some("api.example.com.evil.com"), "sni-mismatch"),
        (None, "no-sni"),
    ] {
        let (lab, listener) = lab(&["api.example.com:443"]).await;
        let (mut client, task) = connect(&lab, "api.example.com").await;
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(&hello(name)).await.unwrap();
        assert!(is_cut(&mut client).await);
        assert!(is_cut(&mut server).await, "{name:?} reached the server");
        task.await.unwrap();
        assert_eq!(lab.refusal().await.0, code);
    }
}

#[tokio::test]
async fn a_hello_after_the_server_spoke_is_checked_too() {
    let (lab, listener) = lab(&["api.example.com:443"]).await;
    let (mut client, _task) = connect(&lab, "api.example.com").await;
    let (mut server, _) = listener.accept().await.unwrap();
    server.write_all(b"hi").await.unwrap();
    client.read_exact(&mut [0; 2]).await.unwrap();
    client
        .write_all(&hello(Some("evil.example.com")))
        .await
        .unwrap();
    assert!(is_cut(&mut client).await);
    assert!(is_cut(&mut server).await);
    assert_eq!(lab.refusal().await.0, "sni-mismatch");
}

#[tokio::test]
async fn what_is_not_allowed_is_reset_and_nobody_is_asked() {
    let (lab, listener) = lab(&["api.example.com:8443"]).await;
    for (name, code) in [
        ("api.example.com", "port-not-listed"),
        ("other.example.com", "not-listed"),
    ] {
        let (mut client, task) = connect(&lab, name).await;
        let error = client.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        task.await.unwrap();
        let denied = lab
            .recorded(|lines| lines.iter().any(|l| l.event.name.as_deref() == Some(name)))
            .await;
        let event = &denied.last().unwrap().event;
        assert_eq!(event.reason.as_ref().unwrap().code, code);
        assert_eq!(event.port, Some(443));
    }
    assert!(lab.world.asked.lock().unwrap().is_empty());
    drop(listener);
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_with_its_address() {
    let (lab, _listener) = lab(&["api.example.com:443"]).await;
    lab.world.name("api.example.com", &[GLOBAL, "127.0.0.1"]);
    let (mut client, _task) = connect(&lab, "api.example.com").await;
    assert!(is_cut(&mut client).await);
    let lines = lab.recorded(|lines| !lines.is_empty()).await;
    assert_eq!(lines[0].event.reason.as_ref().unwrap().code, "not-global");
    assert_eq!(lines[0].event.address.unwrap().to_string(), "127.0.0.1");
}

#[tokio::test]
async fn a_changed_policy_cuts_what_it_forbids_and_leaves_the_rest() {
    let (lab, listener) = lab(&["api.example.com:443", "other.example.com:443"]).await;
    lab.world.name("other.example.com", &[GLOBAL]);
    let (mut revoked, task) = connect(&lab, "other.example.com").await;
    let (mut revoked_server, _) = listener.accept().await.unwrap();
    let (mut kept, _kept_task) = connect(&lab, "api.example.com").await;
    let (mut kept_server, _) = listener.accept().await.unwrap();
    for (client, server) in [
        (&mut revoked, &mut revoked_server),
        (&mut kept, &mut kept_server),
    ] {
        client.write_all(b"\0one").await.unwrap();
        server.read_exact(&mut [0; 4]).await.unwrap();
    }

    lab.go_by(&rule(NetworkMode::Allowlist, &["api.example.com:443"], &[]))
        .await;
    assert!(task.is_finished() || task.await.is_ok());
    assert!(is_cut(&mut revoked).await);
    assert!(is_cut(&mut revoked_server).await);
    kept.write_all(b"two").await.unwrap();
    let mut two = [0; 3];
    kept_server.read_exact(&mut two).await.unwrap();
    assert_eq!(&two, b"two");
    assert_eq!(
        lab.refusal().await,
        ("revoked".to_owned(), "other.example.com".to_owned())
    );
}

#[tokio::test]
async fn a_permission_that_is_taken_back_cuts_private_connections() {
    let hosts = ["api.example.com:443"];
    let lab = Lab::new(&rule(NetworkMode::Allowlist, &hosts, &hosts));
    let (listener, address) = server().await;
    lab.world.name("api.example.com", &["192.168.1.5"]);
    lab.world.host("192.168.1.5:443", address);
    let (mut client, _task) = connect(&lab, "api.example.com").await;
    let (mut server, _) = listener.accept().await.unwrap();
    client.write_all(b"\0").await.unwrap();
    server.read_exact(&mut [0]).await.unwrap();

    lab.go_by(&rule(NetworkMode::Allowlist, &hosts, &[])).await;
    assert!(is_cut(&mut client).await);
    assert!(is_cut(&mut server).await);
}

#[tokio::test]
async fn a_network_that_is_gone_cuts_everything() {
    let (lab, listener) = lab(&["api.example.com:443"]).await;
    let (mut client, task) = connect(&lab, "api.example.com").await;
    let (mut server, _) = listener.accept().await.unwrap();
    lab.context.cancelled.cancel();
    task.await.unwrap();
    assert!(is_cut(&mut client).await);
    assert!(is_cut(&mut server).await);
    let (mut late, _task) = connect(&lab, "api.example.com").await;
    assert!(is_cut(&mut late).await, "nothing begins in it either");
}

#[tokio::test]
async fn a_broken_server_breaks_the_client_off() {
    let (lab, listener) = lab(&["api.example.com:443"]).await;
    let (mut client, _task) = connect(&lab, "api.example.com").await;
    let (server, _) = listener.accept().await.unwrap();
    client.write_all(b"\0").await.unwrap();
    let mut server = server;
    server.read_exact(&mut [0]).await.unwrap();
    abort(&server);
    drop(server);
    let error = client.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn idleness_counts_from_what_passed_last() {
    let activity = Activity::new();
    activity.now();
    activity.idle(Duration::from_millis(5)).await;
}

#[tokio::test]
async fn the_first_reason_for_an_end_is_the_one_that_is_recorded() {
    let (lab, _listener) = lab(&["api.example.com:443"]).await;
    let passage = Passage::open(&lab.context, &target("api.example.com"), Via::Tcp)
        .await
        .unwrap();
    passage.ticket.because(Reason::Idle);
    passage.ticket.because(Reason::TooSlow);
    drop(passage);
    assert_eq!(lab.refusal().await.0, "idle");
}

#[tokio::test]
async fn names_that_the_proxy_is_asked_for_count_as_new_ones_too() {
    let (lab, _listener) = lab(&["*.wild.example:443"]).await;
    for n in 0..120 {
        let target = target(&format!("n{n}.wild.example"));
        let passage = Passage::open(&lab.context, &target, Via::Proxy).await;
        assert_eq!(passage.err(), Some(Reason::NoSuchName));
    }
    let open = |name: &'static str| {
        let context = Arc::clone(&lab.context);
        async move {
            Passage::open(&context, &target(name), Via::Proxy)
                .await
                .err()
        }
    };
    assert_eq!(open("n120.wild.example").await, Some(Reason::TooManyNames));
    assert_eq!(
        open("n0.wild.example").await,
        Some(Reason::NoSuchName),
        "not new"
    );
    let asked = lab.world.asked.lock().unwrap();
    assert!(!asked.iter().any(|name| name == "n120.wild.example"));
}
