use super::*;
use crate::egress::worker::limits::Everyone;
use crate::egress::worker::testing::{Mutator, hello, pair};
use tokio::io::AsyncWriteExt;

fn limits() -> Limits {
    Limits::new(&Everyone::new())
}

fn room(limits: &Limits) -> Room<'_> {
    Room::new(limits, &BytesMut::new()).unwrap()
}

fn clear(bytes: &[u8]) -> Option<Opening> {
    match guess(bytes, &mut 0).unwrap() {
        Guess::Clear(opening) => Some(opening),
        Guess::Unclear(_) => None,
    }
}

fn tls(name: &str) -> Option<Opening> {
    Some(Opening::Tls(Some(name.to_owned())))
}

/// The same handshake message over records of so many bytes.
fn fragmented(hello: &[u8], size: usize) -> Vec<u8> {
    hello[5..]
        .chunks(size)
        .flat_map(|part| {
            let length = u16::try_from(part.len()).unwrap().to_be_bytes();
            [&[0x16, 3, 1, length[0], length[1]], part].concat()
        })
        .collect()
}

#[test]
fn a_tls_hello_tells_its_name_also_over_many_records() {
    let whole = hello(Some("api.example.com"));
    assert_eq!(clear(&whole), tls("api.example.com"));
    assert_eq!(
        clear(&hello(Some("API.Example.com"))),
        tls("api.example.com")
    );
    assert_eq!(clear(&hello(None)), Some(Opening::Tls(None)));
    for size in [1, 2, 3, 50] {
        assert_eq!(
            clear(&fragmented(&whole, size)),
            tls("api.example.com"),
            "{size}"
        );
    }
    for end in 1..whole.len() {
        assert_eq!(clear(&whole[..end]), None, "{end} bytes");
    }
}

#[test]
fn what_follows_a_hello_changes_nothing() {
    let mut early = hello(Some("api.example.com"));
    early.extend([0x17, 3, 3, 0, 2, 1, 2]);
    assert_eq!(clear(&early), tls("api.example.com"));
}

#[test]
fn a_hello_that_cannot_be_read_is_refused() {
    let mut two = hello(Some("api.example.com"));
    let at = two.windows(3).position(|w| w == b"api").unwrap();
    two[at] = 0;
    let refused = [
        two,
        // Another message than a hello.
        vec![0x16, 3, 1, 0, 4, 2, 0, 0, 0],
        // SSL 2.
        vec![0x80, 0x2e, 1, 3, 1, 0, 0, 0],
    ];
    for bytes in refused {
        let refused = guess(&bytes, &mut 0);
        assert!(
            matches!(refused, Err(Reason::NotTls(_))),
            "{bytes:?}: {refused:?}"
        );
    }
}

#[test]
fn http_is_recognised_in_every_form_that_some_server_reads() {
    for line in [
        "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.0\n",
        "get / http/1.1\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\n",
        "GET\t/\tHTTP/1.1\r\n",
        " GET / HTTP/1.1\r\n",
        "\r\n \x0bGET\x0c/\x1fHTTP/1.1\r\n",
        "GET / HTTP/1.1\rHost: a\r\r\n",
        "GET  /  HTTP/1.1  \r\n",
        "X-OWN-METHOD / HTTP/1.1\r\n",
        "GET http://other.example/ HTTP/1.1\r\n",
        "CONNECT other.example:443 HTTP/1.1\r\n",
        "GET / HTTP/9.9\r\n",
        "PRI * HTTP/2.0\r\n\r\nXX",
        "GET \x00/ HTTP/1.1\r\n",
        "GET \x0e/ HTTP/1.1\r\n",
        "G\x05T / HTTP/1.1\r\n",
        "(GET) / HTTP/1.1\r\n",
        " HTTP/1.1\r\n",
    ] {
        assert_eq!(clear(line.as_bytes()), Some(Opening::Http1), "{line:?}");
    }
    assert_eq!(clear(PREFACE), Some(Opening::Http2));
    let long = format!("GET /{} HTTP/1.1", "a".repeat(LINE_MAX));
    assert_eq!(clear(long.as_bytes()), Some(Opening::Http1));
}

#[test]
fn a_line_that_may_become_http_is_waited_for() {
    for line in [
        "G",
        "GET",
        "GET ",
        "GET /",
        "GET / HTTP/1",
        "GET / HTTP/1.1",
        "\r\n",
        "\n\r\nPO",
        "PRI * HTTP/2.0\r\n\r\nSM",
        "PRI * HTTP/2.0\r\n",
    ] {
        assert_eq!(clear(line.as_bytes()), None, "{line:?}");
    }
}

#[test]
fn other_protocols_pass_at_once() {
    let begins: &[&[u8]] = &[
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"<134>1 2026-01-01T00:00:00Z web - - - - \"GET / HTTP/1.1\" 200\n",
        b"EHLO client.example\r\n",
        b"a001 LOGIN user pass\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"PING\r\n",
        b"\r\nPING\r\n",
        b"{\"jsonrpc\":\"2.0\"}",
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
        b"\x10\x0c\x00\x04MQTT",
        b"\x16\x02",
        b"0\x0c\x02\x01\x01`\x07\x02\x01\x03\x04\x00\x80\x00",
    ];
    for begin in begins {
        assert_eq!(clear(begin), Some(Opening::Raw), "{begin:?}");
    }
}

#[tokio::test]
async fn what_ends_before_it_is_clear_is_refused() {
    for begin in [&b"GET / HT"[..], &hello(Some("a.example.com"))[..20]] {
        let (mut near, far) = pair().await;
        near.write_all(begin).await.unwrap();
        near.shutdown().await.unwrap();
        let mut read = BytesMut::new();
        let stop = sniff(&far, &mut read, &mut room(&limits())).await;
        assert!(matches!(stop, Err(Stop::Refused(_))), "{stop:?}");
    }
    let (near, far) = pair().await;
    drop(near);
    let opening = sniff(&far, &mut BytesMut::new(), &mut room(&limits())).await;
    assert_eq!(opening.unwrap(), Opening::Raw, "nothing at all");
}

#[tokio::test]
async fn a_begin_without_an_end_is_refused_within_the_bound() {
    // Records of one byte: a hello that would need far more than is held.
    let flood = [0x16, 3, 1, 0, 1, 1]
        .iter()
        .copied()
        .chain([0x16, 3, 1, 0, 1, 0].into_iter().cycle().take(12));
    let mut bytes: Vec<u8> = flood.collect();
    bytes[5] = 1;
    bytes[11] = 1; // a handshake message of 65536 bytes
    bytes.extend([0x16, 3, 1, 0, 1, 0].into_iter().cycle().take(64 * 1024));
    let (mut near, far) = pair().await;
    let writer = tokio::spawn(async move {
        // The other side may reset before everything is written.
        let _ = near.write_all(&bytes).await;
        near
    });
    let mut read = BytesMut::new();
    let stop = sniff(&far, &mut read, &mut room(&limits())).await;
    assert!(
        matches!(stop, Err(Stop::Refused(Reason::NotTls(_)))),
        "{stop:?}"
    );
    assert!(read.len() <= BUFFER + 4096, "{} bytes held", read.len());
    drop(far);
    writer.await.unwrap();
}

#[tokio::test]
async fn who_begins_with_much_needs_a_place_for_it_and_a_usual_begin_does_not() {
    let limits = limits();
    let places: Vec<_> = std::iter::from_fn(|| limits.admit_opening().ok()).collect();
    assert_eq!(places.len(), 32);
    let usual = hello(Some("api.example.com"));
    let long = [&[0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb][..], &[0; 8000]].concat();
    for (begin, enters) in [(&usual, true), (&long, false)] {
        let (mut near, far) = pair().await;
        near.write_all(begin).await.unwrap();
        let mut read = BytesMut::new();
        let outcome = sniff(&far, &mut read, &mut room(&limits)).await;
        assert_eq!(outcome.is_ok(), enters, "{outcome:?}");
        assert!(read.capacity() <= OPENING, "{}", read.capacity());
        let early = BytesMut::from(&begin[..]);
        assert_eq!(Room::new(&limits, &early).is_ok(), enters);
    }
}

/// Sniffs with almost no patience.
async fn hasty(begin: &[u8]) -> Result<Opening, Stop> {
    let (mut near, far) = pair().await;
    near.write_all(begin).await.unwrap();
    let short = Duration::from_millis(20);
    sniff_within(
        short,
        short,
        &far,
        &mut BytesMut::new(),
        &mut room(&limits()),
    )
    .await
}

#[tokio::test]
async fn a_hello_or_a_request_that_does_not_go_on_is_refused_in_time() {
    for begin in [
        &b"\x16\x03"[..],
        b"GET / HTTP/1.1",
        b"GET / HTTP/1.1\rHost: a\r\r",
    ] {
        let stop = hasty(begin).await;
        assert!(
            matches!(stop, Err(Stop::Refused(Reason::TooSlow))),
            "{stop:?}"
        );
    }
}

#[tokio::test]
async fn a_client_that_waits_after_a_word_is_heard_and_never_becomes_http() {
    assert_eq!(hasty(b"PING").await.unwrap(), Opening::Pending);

    for (rest, is_refused) in [
        (&b"more\n"[..], false),
        (b"\x00", false),
        (b" / HTTP/1.1\r\nHost: a\r\n\r\n", true),
        (b" / http/1.1", true),
    ] {
        let (mut near, far) = pair().await;
        let mut read = BytesMut::from("PING");
        near.write_all(rest).await.unwrap();
        match read_on(&far, &mut read, &mut room(&limits())).await {
            Ok(goes_on) => assert!(!goes_on && !is_refused, "{rest:?}"),
            Err(Stop::Refused(Reason::NotHttp(_))) => assert!(is_refused, "{rest:?}"),
            Err(stop) => panic!("{stop:?}"),
        }
    }
    let (mut near, far) = pair().await;
    let mut read = BytesMut::from("PING");
    near.write_all(b" / HT").await.unwrap();
    assert!(
        read_on(&far, &mut read, &mut room(&limits()))
            .await
            .unwrap()
    );
    near.write_all(b"TP/1.1").await.unwrap();
    assert!(
        read_on(&far, &mut read, &mut room(&limits()))
            .await
            .is_err()
    );
}

#[test]
fn damaged_begins_neither_panic_nor_forge_a_name() {
    let seeds = [
        hello(Some("api.example.com")),
        fragmented(&hello(Some("api.example.com")), 7),
        b"GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n".to_vec(),
        PREFACE.to_vec(),
    ];
    let mut mutator = Mutator::new(2);
    for _ in 0..20_000 {
        let bytes = mutator.mutate(&seeds);
        if let Ok(Guess::Clear(Opening::Tls(Some(name)))) = guess(&bytes, &mut 0) {
            let written = bytes.iter().filter(|b| b.is_ascii_alphanumeric()).count();
            assert!(name.len() <= 253 && written > 0, "{name}");
            assert_eq!(name, name.to_ascii_lowercase());
        }
    }
}
