//! A network for tests: real sockets on loopback, names and outside made up. The judgement of addresses is the real one.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use selu_compiler::model::{InstanceKey, Network, NetworkMode};
use selu_compiler::plan::GatewayRule;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use super::addresses::Addresses;
use super::context::Parts;
use super::dial::{Dialer, Outside};
use super::limits::{Everyone, Limits};
use super::reach::Reach;
use super::rules::{Reason, Rules};
use super::{GoingBy, NetworkContext};
use crate::egress::record::{Ask, Line, Recorder, Told, copy};

/// A made-up outside: what names resolve to, and where connections to an address really go.
#[derive(Default)]
pub(crate) struct World {
    names: Mutex<BTreeMap<String, Vec<IpAddr>>>,
    hosts: Mutex<BTreeMap<SocketAddr, SocketAddr>>,
    pairs: Mutex<BTreeMap<SocketAddr, UnboundedSender<TcpStream>>>,
    dialled: AtomicUsize,
    /// Names that were looked up.
    pub(crate) asked: Mutex<Vec<String>>,
}

impl World {
    /// What a name resolves to.
    pub(crate) fn name(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|a| a.parse().unwrap()).collect();
        self.names
            .lock()
            .unwrap()
            .insert(name.to_owned(), addresses);
    }

    /// A connection to `address` ends up at `server`.
    pub(crate) fn host(&self, address: &str, server: SocketAddr) {
        let address = address.parse().unwrap();
        self.hosts.lock().unwrap().insert(address, server);
    }

    /// The server's ends of the connections to `address`, each a [`nameless_pair`].
    pub(crate) fn pairs(&self, address: &str) -> UnboundedReceiver<TcpStream> {
        let (sender, arriving) = unbounded_channel();
        let address = address.parse().unwrap();
        self.pairs.lock().unwrap().insert(address, sender);
        arriving
    }

    /// How many of these were made since the last time.
    pub(crate) fn take_dialled(&self) -> usize {
        self.dialled.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl Outside for Arc<World> {
    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Reason> {
        self.asked.lock().unwrap().push(name.to_owned());
        let names = self.names.lock().unwrap();
        names.get(name).cloned().ok_or(Reason::NoSuchName)
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        if let Some(arriving) = self.pairs.lock().unwrap().get(&address) {
            let (near, far) = nameless_pair();
            self.dialled.fetch_add(1, Ordering::Relaxed);
            arriving.send(far).map_err(io::Error::other)?;
            return Ok(near);
        }
        let server = self.hosts.lock().unwrap().get(&address).copied();
        match server {
            Some(server) => TcpStream::connect(server).await,
            None => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

/// A network with everything that it needs.
pub(crate) struct Lab {
    /// What the servers share.
    pub(crate) context: Arc<NetworkContext>,
    /// What is outside.
    pub(crate) world: Arc<World>,
    folder: tempfile::TempDir,
}

/// The addresses of the engine's host, for tests.
pub(crate) const HOST: &str = "198.41.0.4";
/// The range of our own networks, for tests.
pub(crate) const RANGE: &str = "10.231.0.0/16";

/// A rule for tests.
pub(crate) fn rule(mode: NetworkMode, hosts: &[&str], private: &[&str]) -> GatewayRule {
    let strings = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect();
    GatewayRule {
        instance: InstanceKey::new("weather", "api"),
        subnet: "10.231.7.0/24".parse().unwrap(),
        capability: "10.231.7.2".parse().unwrap(),
        rules: Network {
            mode,
            hosts: strings(hosts),
        },
        private: strings(private),
    }
}

impl Lab {
    /// A network with an allowlist.
    pub(crate) fn allowlist(hosts: &[&str]) -> Self {
        Self::new(&rule(NetworkMode::Allowlist, hosts, &[]))
    }

    /// A network.
    pub(crate) fn new(rule: &GatewayRule) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = Arc::new(World::default());
        let network = "selu_demo_weather_api_1";
        let planned = rule.network(network);
        let context = NetworkContext::new(Parts {
            network: network.to_owned(),
            instance: rule.instance.clone(),
            device: None,
            gateway: Ipv4Addr::LOCALHOST,
            recorder: Recorder::start(folder.path()).unwrap(),
            limits: Limits::new(&Everyone::new()),
            addresses: Addresses::open(folder.path(), network, planned.virtual_range()).unwrap(),
            going_by: going_by(rule, &world),
        });
        Self {
            context: Arc::new(context.unwrap()),
            world,
            folder,
        }
    }

    /// Goes by another rule, as after a policy.
    pub(crate) async fn go_by(&self, rule: &GatewayRule) {
        let going_by = going_by(rule, &self.world);
        assert!(self.context.go_by(going_by).await.unwrap());
    }

    /// What was recorded, once it has what is waited for.
    pub(crate) async fn recorded(&self, enough: impl Fn(&[Line]) -> bool) -> Vec<Line> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let mut out = Vec::new();
            copy(self.folder.path(), &Ask::default(), &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let told = |line| match serde_json::from_str(line).unwrap() {
                Told::Line(line) => Some(line),
                Told::Head(_) => None,
            };
            let lines: Vec<Line> = text.lines().filter_map(told).collect();
            if enough(&lines) {
                return lines;
            }
            assert!(Instant::now() < deadline, "recorded so far: {text}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// The reason of the first refusal or cut that is recorded, and what it was about.
    pub(crate) async fn refusal(&self) -> (String, String) {
        let refused = |line: &Line| line.event.reason.is_some();
        let lines = self.recorded(|lines| lines.iter().any(refused)).await;
        let event = lines.into_iter().find(refused).unwrap().event;
        let about = match (event.name, event.address) {
            (Some(name), _) => name,
            (None, address) => address.map(|a| a.to_string()).unwrap_or_default(),
        };
        (event.reason.unwrap().code, about)
    }
}

fn going_by(rule: &GatewayRule, world: &Arc<World>) -> GoingBy {
    let reach = Reach::new(&[HOST.parse().unwrap()], &[RANGE.parse().unwrap()]);
    GoingBy {
        rules: Rules::new(rule).unwrap(),
        dialer: Arc::new(Dialer::new(reach, Some(Arc::new(Arc::clone(world))))),
    }
}

/// A listener on loopback and its address.
pub(crate) async fn server() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Two ends of one connection on loopback.
pub(crate) async fn pair() -> (TcpStream, TcpStream) {
    let (listener, address) = server().await;
    let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
    (near.unwrap(), far.unwrap().0)
}

/// Two ends of one connection without addresses and ports: a million of them, one after the other, use up nothing.
pub(crate) fn nameless_pair() -> (TcpStream, TcpStream) {
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    let as_tcp = |end: std::os::unix::net::UnixStream| {
        end.set_nonblocking(true).unwrap();
        TcpStream::from_std(std::net::TcpStream::from(OwnedFd::from(end))).unwrap()
    };
    (as_tcp(near), as_tcp(far))
}

/// A TLS client's hello, as a client of TLS 1.2 and 1.3 sends it.
pub(crate) fn hello(name: Option<&str>) -> Vec<u8> {
    fn sized(bytes: &[u8]) -> Vec<u8> {
        let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
        [&length, bytes].concat()
    }
    fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes(), sized(body).as_slice()].concat()
    }
    let mut extensions = Vec::new();
    if let Some(name) = name {
        let entry = [&[0], sized(name.as_bytes()).as_slice()].concat();
        extensions.extend(extension(0, &sized(&entry)));
    }
    extensions.extend(extension(13, &sized(&[4, 3, 8, 4]))); // signature algorithms
    extensions.extend(extension(43, &[4, 3, 4, 3, 3])); // versions
    let body = [
        &[3, 3][..],
        &[7; 32],                       // random
        &[0],                           // no session
        &sized(&[0x13, 1, 0xc0, 0x2f]), // suites
        &[1, 0],                        // no compression
        &sized(&extensions),
    ]
    .concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[1], &length[1..], body.as_slice()].concat();
    [&[0x16, 3, 1], sized(&message).as_slice()].concat()
}

/// Changes bytes at random from a fixed start.
pub(crate) struct Mutator(u64);

impl Mutator {
    /// The same seed, the same changes.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most.max(1) as u64).unwrap()
    }

    /// One of the seeds, changed at one to eight places.
    pub(crate) fn mutate(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            let byte = self.0.to_le_bytes()[3];
            match (self.below(6), bytes.is_empty()) {
                (0, false) => bytes[at] = byte,
                (1, false) => bytes[at] ^= 1 << self.below(8),
                (2, false) => drop(bytes.remove(at)),
                (3, false) => bytes.truncate(at),
                (4, false) => {
                    let end = (at + self.below(16)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
                _ => bytes.insert(
                    at,
                    [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xff][self.below(8)],
                ),
            }
        }
        bytes
    }
}
