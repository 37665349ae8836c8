//! The resolver of one container: it answers with virtual addresses and asks nobody (S15).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_proto::op::{Edns, Message, MessageType, Metadata, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{DNSClass, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};

use super::NetworkContext;
use super::rules::{Host, Reason};
use crate::egress::control::GATEWAY_NAME;
use crate::egress::record::{Event, Phase, Via};

/// The port that every resolver has.
pub(super) const PORT: u16 = 53;

/// How long an answer holds. An address is its name's for good; the time bounds how long a revoked name is remembered.
const TTL: u32 = 60;
/// The largest question that is read; one name is all that it may hold.
const QUESTION_MAX: usize = 1232;
/// How long a TCP connection may say nothing.
const SILENCE: Duration = Duration::from_secs(10);
/// How long nothing is read after a refusal.
const PAUSE: Duration = Duration::from_millis(5);
/// [`ResponseCode::Refused`] on the wire.
const REFUSED: u8 = 5;
/// Questions on one TCP connection.
const QUESTIONS: usize = 100;

/// Answers datagrams until the network is gone.
pub(super) async fn serve_datagrams(
    context: Arc<NetworkContext>,
    socket: UdpSocket,
    capability: Ipv4Addr,
) {
    let mut buffer = [0; QUESTION_MAX];
    loop {
        let received = tokio::select! {
            biased;
            () = context.cancelled.cancelled() => return,
            received = socket.recv_from(&mut buffer) => received,
        };
        // An error is one datagram's, such as a port that is closed again.
        let Ok((length, from)) = received else {
            sleep(PAUSE).await;
            continue;
        };
        if from.ip() != capability {
            continue;
        }
        if let Some(answer) = answer(&context, &buffer[..length], Instant::now()) {
            // Who asked asks again when nothing comes.
            let _ = socket.send_to(&answer, from).await;
            // A flood waits in the kernel, and is lost there, rather than take the time of other networks.
            if answer.get(3).is_some_and(|code| code & 0x0f == REFUSED) {
                sleep(PAUSE).await;
            }
        }
    }
}

/// Answers one TCP connection's questions.
pub(super) async fn serve_stream(context: Arc<NetworkContext>, mut stream: TcpStream) {
    for _ in 0..QUESTIONS {
        let exchange = tokio::select! {
            biased;
            () = context.cancelled.cancelled() => return,
            exchange = timeout(SILENCE, exchange(&context, &mut stream)) => exchange,
        };
        if !matches!(exchange, Ok(Ok(true))) {
            return;
        }
    }
}

async fn exchange(context: &NetworkContext, stream: &mut TcpStream) -> std::io::Result<bool> {
    let length = usize::from(stream.read_u16().await?);
    if length > QUESTION_MAX {
        return Ok(false);
    }
    let mut question = vec![0; length];
    stream.read_exact(&mut question).await?;
    let Some(answer) = answer(context, &question, Instant::now()) else {
        return Ok(false);
    };
    let Ok(length) = u16::try_from(answer.len()) else {
        return Ok(false);
    };
    let mut message = Vec::with_capacity(2 + answer.len());
    message.extend(length.to_be_bytes());
    message.extend(answer);
    stream.write_all(&message).await?;
    Ok(true)
}

/// The answer to one message; `None` for what is no question.
pub(super) fn answer(context: &NetworkContext, bytes: &[u8], now: Instant) -> Option<Vec<u8>> {
    let [high, low, flags, ..] = bytes else {
        return None;
    };
    if bytes.len() < 12 || flags & 0x80 != 0 {
        return None;
    }
    let id = u16::from_be_bytes([*high, *low]);
    let message = match Message::from_vec(bytes) {
        Ok(message) if message.metadata.message_type == MessageType::Query => message,
        Ok(_) => return None,
        Err(_) => {
            return Message::error_msg(id, OpCode::Query, ResponseCode::FormErr)
                .to_vec()
                .ok();
        }
    };
    let mut reply = Message::response(id, message.metadata.op_code);
    reply.metadata = Metadata::response_from_request(&message.metadata);
    reply.metadata.recursion_available = true;
    let mut unknown_version = false;
    if let Some(asked) = &message.edns {
        let mut edns = Edns::new();
        edns.set_max_payload(1232);
        unknown_version = asked.version() > 0;
        reply.set_edns(edns);
    }
    let code = match message.queries.as_slice() {
        _ if message.metadata.op_code != OpCode::Query => Err(ResponseCode::NotImp),
        _ if unknown_version => Err(ResponseCode::BADVERS),
        [query] => {
            reply.add_query(query.clone());
            decide(context, query, now)
        }
        _ => Err(ResponseCode::FormErr),
    };
    match code {
        Ok(Some(address)) => {
            let name = message.queries.first()?.name().clone();
            reply.add_answer(Record::from_rdata(name, TTL, RData::A(A(address))));
        }
        Ok(None) => {}
        Err(code) => reply.metadata.response_code = code,
    }
    reply.to_vec().ok()
}

/// The address, nothing of this type, or the refusal.
fn decide(
    context: &NetworkContext,
    query: &Query,
    now: Instant,
) -> Result<Option<Ipv4Addr>, ResponseCode> {
    if query.query_class() != DNSClass::IN {
        return Err(ResponseCode::Refused);
    }
    let written = query.name().to_ascii();
    let denied = |reason: &Reason| context.recorder.record(event(context, &written, reason));
    if !context.questions.take(now) {
        // Without the name, so that a flood of names is one line of the log.
        let mut event = event(context, "", &Reason::RateLimited);
        event.name = None;
        context.recorder.record(event);
        return Err(ResponseCode::Refused);
    }
    let Some(Host::Name(name)) = Host::read(&written) else {
        denied(&Reason::NameTooLong);
        return Err(ResponseCode::NXDomain);
    };
    let is_a = query.query_type() == RecordType::A;
    if name == GATEWAY_NAME {
        return Ok(is_a.then_some(context.gateway));
    }
    let going_by = context.going_by();
    if let Err(reason) = going_by.rules.verdict_on_name(&name) {
        denied(&reason);
        return Err(ResponseCode::NXDomain);
    }
    // Of an allowed name there is an IPv4 address and nothing else: no IPv6, no hints, no text.
    if !is_a {
        return Ok(None);
    }
    context
        .address(&name, going_by.rules.lists(&name), now)
        .map(Some)
        .map_err(|reason| {
            denied(&reason);
            ResponseCode::ServFail
        })
}

fn event(context: &NetworkContext, name: &str, reason: &Reason) -> Event {
    let mut event = Event::new(&context.instance, &context.network, Via::Dns, Phase::Denied);
    event.name = Some(name.trim_end_matches('.').to_ascii_lowercase());
    event.reason = Some(reason.into());
    event
}

#[cfg(test)]
mod tests;
