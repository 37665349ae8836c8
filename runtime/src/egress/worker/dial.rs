//! The way out: one lookup a connection, every answer judged, and a socket that is bound to the outside's device (N8, S6).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hickory_proto::rr::{RData, RecordType};
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{Resolver, TokioResolver};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use super::limits::CONNECT_LIMIT;
use super::reach::Reach;
use super::rules::{Host, Reason, Target};

/// Answers of one name that are tried.
const ATTEMPTS: usize = 8;
/// How long an address is tried before the next one is tried besides.
const STAGGER: Duration = Duration::from_millis(250);
/// How long a resolver may take, and how often each is asked.
const LOOKUP_LIMIT: Duration = Duration::from_secs(3);
const LOOKUP_ATTEMPTS: usize = 2;
/// Answers that are kept for as long as they say, at most an hour.
const CACHED: u64 = 1024;
const CACHED_FOR: Duration = Duration::from_secs(3600);

/// Makes connections to what may be reached.
pub(crate) struct Dialer {
    reach: Reach,
    /// `None` while there is no way out.
    outside: Option<Arc<dyn Outside>>,
}

/// What is beyond the gateway.
#[async_trait]
pub(super) trait Outside: Send + Sync {
    /// All addresses of a name in its normal form.
    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Reason>;
    /// A connection.
    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream>;
}

impl Dialer {
    /// A way out within `reach`.
    pub(super) fn new(reach: Reach, outside: Option<Arc<dyn Outside>>) -> Self {
        Self { reach, outside }
    }

    /// Whether an address may be dialled.
    pub(super) fn judge(&self, address: IpAddr, private_permitted: bool) -> Result<(), Reason> {
        self.reach.judge(address, private_permitted)
    }

    /// Connects; that the rules allow it was checked. One answer that may not be dialled refuses them all.
    pub(super) async fn dial(
        &self,
        target: &Target,
        private_permitted: bool,
    ) -> Result<(TcpStream, IpAddr), Reason> {
        let Some(outside) = &self.outside else {
            return Err(Reason::ConnectFailed(
                "the gateway has no way out".to_owned(),
            ));
        };
        let dial = async {
            let addresses = match &target.host {
                Host::Name(name) => outside.addresses(name).await?,
                Host::Literal(address) => vec![*address],
            };
            for address in &addresses {
                self.judge(*address, private_permitted)?;
            }
            first(outside.as_ref(), &addresses, target.port).await
        };
        timeout(CONNECT_LIMIT, dial)
            .await
            .unwrap_or(Err(Reason::TimedOut(CONNECT_LIMIT.as_secs())))
    }
}

/// The first connection of staggered attempts.
async fn first(
    outside: &dyn Outside,
    addresses: &[IpAddr],
    port: u16,
) -> Result<(TcpStream, IpAddr), Reason> {
    // The outside network has IPv4 alone.
    let reachable = addresses.iter().copied().filter(IpAddr::is_ipv4);
    let mut attempts: FuturesUnordered<_> = (0_u32..)
        .zip(reachable.take(ATTEMPTS))
        .map(|(turn, address)| async move {
            sleep(STAGGER * turn).await;
            let made = outside.connect(SocketAddr::new(address, port)).await;
            (made, address)
        })
        .collect();
    let mut refusal = match addresses.is_empty() {
        true => Reason::NoSuchName,
        false => Reason::ConnectFailed("the gateway reaches IPv4 alone".to_owned()),
    };
    while let Some((made, address)) = attempts.next().await {
        match made {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => refusal = Reason::ConnectFailed(error.to_string()),
        }
    }
    Err(refusal)
}

/// The real outside.
pub(super) struct Internet {
    resolver: TokioResolver,
    device: String,
}

impl Internet {
    /// Asks the resolvers of the gateway's container, and leaves by `device`.
    pub(super) fn new(device: String, resolv_conf: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(resolv_conf)?;
        let servers: Vec<_> = name_servers(&text)
            .map(NameServerConfig::udp_and_tcp)
            .collect();
        let mut builder = Resolver::builder_with_config(
            ResolverConfig::from_name_servers(servers),
            TokioRuntimeProvider::default(),
        );
        let options = builder.options_mut();
        options.timeout = LOOKUP_LIMIT;
        options.attempts = LOOKUP_ATTEMPTS;
        options.cache_size = CACHED;
        options.positive_max_ttl = Some(CACHED_FOR);
        options.negative_max_ttl = Some(Duration::from_secs(30));
        options.use_hosts_file = ResolveHosts::Never;
        options.max_active_requests = 1024;
        options.try_tcp_on_error = true;
        let resolver = builder.build().map_err(io::Error::other)?;
        Ok(Self { resolver, device })
    }
}

/// The addresses of a `resolv.conf`. Nothing else in it matters: only absolute names are asked for.
fn name_servers(text: &str) -> impl Iterator<Item = IpAddr> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then_some(())?;
        words.next()?.parse().ok()
    })
}

#[async_trait]
impl Outside for Internet {
    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Reason> {
        // With the dot at its end it is absolute: no search domain is ever added.
        let answer = self
            .resolver
            .lookup(format!("{name}."), RecordType::A)
            .await;
        let lookup = match answer {
            Ok(lookup) => lookup,
            Err(error) if error.is_no_records_found() => return Err(Reason::NoSuchName),
            Err(error) => return Err(Reason::LookupFailed(error.to_string())),
        };
        let addresses = lookup
            .answers()
            .iter()
            .filter_map(|record| match &record.data {
                RData::A(address) => Some(IpAddr::V4(address.0)),
                RData::AAAA(address) => Some(IpAddr::V6(address.0)),
                _ => None,
            });
        Ok(addresses.collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind_device(Some(self.device.as_bytes()))?;
        socket.connect(address).await
    }
}

#[cfg(test)]
mod tests;
