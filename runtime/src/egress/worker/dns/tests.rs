use std::str::FromStr;

use hickory_proto::rr::Name;
use selu_compiler::model::NetworkMode;

use super::*;
use crate::egress::worker::testing::{Lab, rule};

fn question(name: &str, kind: RecordType) -> Message {
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_str(name).unwrap(), kind));
    message
}

fn ask(lab: &Lab, message: &Message) -> Message {
    let answer = answer(&lab.context, &message.to_vec().unwrap(), Instant::now()).unwrap();
    Message::from_vec(&answer).unwrap()
}

/// The address, or the code of the answer.
fn lookup(lab: &Lab, name: &str, kind: RecordType) -> Result<String, ResponseCode> {
    let question = question(name, kind);
    let answer = ask(lab, &question);
    assert_eq!(answer.metadata.id, question.metadata.id);
    assert_eq!(
        answer.queries, question.queries,
        "the question comes back as it was"
    );
    assert!(answer.metadata.recursion_available);
    match (answer.metadata.response_code, answer.answers.as_slice()) {
        (ResponseCode::NoError, []) => Ok("nothing".to_owned()),
        (ResponseCode::NoError, [record]) => match &record.data {
            RData::A(address) => Ok(address.to_string()),
            other => panic!("{other:?}"),
        },
        (code, []) => Err(code),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_allowed_name_has_one_virtual_address_whatever_its_case() {
    let lab = Lab::allowlist(&["api.example.com:443", "b.example.com:443"]);
    let first = lookup(&lab, "api.example.com.", RecordType::A).unwrap();
    assert!(first.starts_with("10.231.7.1"), "{first}");
    assert_eq!(
        lookup(&lab, "API.example.COM.", RecordType::A),
        Ok(first.clone())
    );
    assert_ne!(lookup(&lab, "b.example.com.", RecordType::A), Ok(first));
    assert!(
        lab.world.asked.lock().unwrap().is_empty(),
        "nobody outside was asked (S15)"
    );
}

#[tokio::test]
async fn an_allowed_name_has_nothing_but_an_ipv4_address() {
    let lab = Lab::allowlist(&["api.example.com:443"]);
    for kind in [
        RecordType::AAAA,
        RecordType::TXT,
        RecordType::HTTPS,
        RecordType::SVCB,
        RecordType::MX,
        RecordType::NS,
        RecordType::SOA,
        RecordType::CNAME,
        RecordType::ANY,
        RecordType::PTR,
        RecordType::NULL,
    ] {
        let answer = lookup(&lab, "api.example.com.", kind);
        assert_eq!(answer, Ok("nothing".to_owned()), "{kind}");
    }
}

#[tokio::test]
async fn other_names_do_not_exist_and_are_recorded() {
    let lab = Lab::allowlist(&["api.example.com:443", "*.wild.example:443"]);
    for name in [
        "other.example.com.",
        "example.com.",
        "x.api.example.com.",
        "wild.example.",
        "localhost.",
        "10.231.7.130.",
        ".",
        "a_b.wild.example.",
        "*.wild.example.",
        "2.7.231.10.in-addr.arpa.",
    ] {
        let answer = lookup(&lab, name, RecordType::A);
        assert_eq!(answer, Err(ResponseCode::NXDomain), "{name}");
    }
    assert_eq!(
        lab.refusal().await,
        ("not-listed".to_owned(), "other.example.com".to_owned())
    );
}

#[tokio::test]
async fn the_gateway_itself_has_a_name_in_every_network() {
    let lab = Lab::allowlist(&["api.example.com:443"]);
    let gateway = lab.context.gateway.to_string();
    assert_eq!(
        lookup(&lab, "gateway.selu.internal.", RecordType::A),
        Ok(gateway)
    );
    let other = lookup(&lab, "gateway.selu.internal.", RecordType::AAAA);
    assert_eq!(other, Ok("nothing".to_owned()));
    let below = lookup(&lab, "x.gateway.selu.internal.", RecordType::A);
    assert_eq!(below, Err(ResponseCode::NXDomain));
}

#[tokio::test]
async fn names_below_a_wildcard_never_take_the_address_of_a_listed_name() {
    let hosts = ["*.wild.example:443", "api.example.com:443"];
    let mut small = rule(NetworkMode::Allowlist, &hosts, &[]);
    small.subnet = "10.231.7.0/28".parse().unwrap();
    let lab = Lab::new(&small);
    let answers: Vec<_> = (0..8)
        .map(|n| lookup(&lab, &format!("n{n}.wild.example."), RecordType::A).is_ok())
        .collect();
    assert_eq!(
        answers.iter().filter(|given| **given).count(),
        6,
        "one is kept"
    );
    assert!(lookup(&lab, "api.example.com.", RecordType::A).is_ok());
}

#[tokio::test]
async fn new_names_are_bounded_in_an_hour_and_recorded() {
    let lab = Lab::allowlist(&["*.wild.example:443"]);
    let mut answers = (0..125).map(|n| lookup(&lab, &format!("n{n}.wild.example."), RecordType::A));
    assert!(answers.by_ref().take(120).all(|answer| answer.is_ok()));
    assert_eq!(answers.next(), Some(Err(ResponseCode::ServFail)));
    let named = |line: &crate::egress::record::Line| line.event.phase == Phase::Named;
    let lines = lab
        .recorded(|lines| lines.iter().filter(|l| named(l)).count() == 120)
        .await;
    assert!(
        lines
            .iter()
            .any(|line| line.event.name.as_deref() == Some("n7.wild.example"))
    );
}

#[tokio::test]
async fn an_empty_pool_is_a_failure_and_not_another_names_address() {
    let mut small = rule(NetworkMode::Allowlist, &["*.wild.example:443"], &[]);
    small.subnet = "10.231.7.0/28".parse().unwrap();
    let lab = Lab::new(&small);
    let mut seen = std::collections::BTreeSet::new();
    for n in 0..7 {
        let address = lookup(&lab, &format!("n{n}.wild.example."), RecordType::A).unwrap();
        assert!(seen.insert(address));
    }
    let full = lookup(&lab, "n7.wild.example.", RecordType::A);
    assert_eq!(full, Err(ResponseCode::ServFail));
    let refusal = lab.refusal().await;
    assert_eq!(
        refusal,
        ("pool-empty".to_owned(), "n7.wild.example".to_owned())
    );
}

#[tokio::test]
async fn a_flood_of_questions_is_refused_and_ends_with_its_rate() {
    let lab = Lab::allowlist(&["api.example.com:443"]);
    let bytes = question("api.example.com.", RecordType::A)
        .to_vec()
        .unwrap();
    let begin = Instant::now();
    let codes: Vec<_> = (0..300)
        .map(|_| {
            let answer = answer(&lab.context, &bytes, begin).unwrap();
            Message::from_vec(&answer).unwrap().metadata.response_code
        })
        .collect();
    assert_eq!(
        codes
            .iter()
            .filter(|c| **c == ResponseCode::Refused)
            .count(),
        100
    );
    let later = answer(&lab.context, &bytes, begin + Duration::from_secs(1)).unwrap();
    let later = Message::from_vec(&later).unwrap();
    assert_eq!(later.metadata.response_code, ResponseCode::NoError);
}

#[tokio::test]
async fn what_is_no_plain_question_is_answered_with_its_fault() {
    let lab = Lab::allowlist(&["api.example.com:443"]);
    let plain = question("api.example.com.", RecordType::A);
    let code = |message: &Message| ask(&lab, message).metadata.response_code;

    let mut two = plain.clone();
    two.add_query(plain.queries[0].clone());
    assert_eq!(code(&two), ResponseCode::FormErr);
    let mut none = plain.clone();
    none.queries.clear();
    assert_eq!(code(&none), ResponseCode::FormErr);
    let mut notify = plain.clone();
    notify.metadata.op_code = OpCode::Notify;
    assert_eq!(code(&notify), ResponseCode::NotImp);
    let mut chaos = plain.clone();
    chaos.queries[0].set_query_class(DNSClass::CH);
    assert_eq!(code(&chaos), ResponseCode::Refused);

    let mut response = plain.clone();
    response.metadata.message_type = MessageType::Response;
    let bytes = response.to_vec().unwrap();
    assert_eq!(
        answer(&lab.context, &bytes, Instant::now()),
        None,
        "no echo of echoes"
    );
    assert_eq!(answer(&lab.context, &[0; 11], Instant::now()), None);
    let torn = &plain.to_vec().unwrap()[..20];
    let torn = Message::from_vec(&answer(&lab.context, torn, Instant::now()).unwrap()).unwrap();
    assert_eq!(torn.metadata.response_code, ResponseCode::FormErr);

    let mut edns = plain;
    edns.set_edns(Edns::new());
    assert!(ask(&lab, &edns).edns.is_some());
    edns.edns.as_mut().unwrap().set_version(1);
    // The same number means something else where messages are signed.
    assert_eq!(u16::from(code(&edns)), u16::from(ResponseCode::BADVERS));
}

#[tokio::test]
async fn questions_are_answered_over_tcp_too() {
    let lab = Lab::allowlist(&["api.example.com:443"]);
    let (mut near, far) = crate::egress::worker::testing::pair().await;
    let serving = tokio::spawn(serve_stream(Arc::clone(&lab.context), far));
    let bytes = question("api.example.com.", RecordType::A)
        .to_vec()
        .unwrap();
    for _ in 0..2 {
        near.write_u16(u16::try_from(bytes.len()).unwrap())
            .await
            .unwrap();
        near.write_all(&bytes).await.unwrap();
        let length = near.read_u16().await.unwrap();
        let mut answer = vec![0; usize::from(length)];
        near.read_exact(&mut answer).await.unwrap();
        assert_eq!(Message::from_vec(&answer).unwrap().answers.len(), 1);
    }
    near.write_u16(60_000).await.unwrap();
    serving.await.unwrap();
    assert_eq!(
        near.read(&mut [0]).await.unwrap(),
        0,
        "a question that is too long ends it"
    );
}
